"""Figure 12: exploration schedules of the Q(λ) agent, by L and matching function.

Claim: if L is large enough, the agent explores more when the task switches; 'value'
matching can do better than policy matching. The legends are not in the text: the values
of L are those of the authors' later study, and shorter ones.
"""

from bmg_sweeps.sweep import (
    Claim,
    Curve,
    Method,
    Quantity,
    Scale,
    Select,
    Sweep,
    arm,
)

KIND = {"update_kind": "bootstrapped_meta_gradient"}
MATCHING = {"policy": "policy_kl", "value": "value"}
L = (1, 4, 16, 32, 128)
METHODS = {
    f"{name} L={n}": KIND | {"matching_function": function, "target_steps": n}
    for name, function in MATCHING.items()
    for n in L
}
RANGE = {
    "metric": "epsilon_after_flip",
    "minus": "epsilon_cycle_end",
    "last": 1_000_000,  # Ten cycles, as either is ε on one step.
}


def grid(seeds, target_steps):
    """Both matching functions with each L."""
    return arm(
        KIND,
        matching_function=MATCHING.values(),
        target_steps=target_steps,
        seed=range(seeds),
    )


def schedules(name):
    """The last two times that the task switches there and back."""
    return Curve(
        title=f"Exploration, {name} matching",
        metric="epsilon",
        label="ε",
        last=400_000,
        methods=tuple(f"{name} L={n}" for n in L),
    )


SWEEP = Sweep(
    title="Two-colors with Q(λ): meta-learned exploration schedules",
    trainer="two_colors_q_lambda",
    scales={
        "smoke": Scale(grid(2, (1, 128)), stop={"env_steps": 100_000}),
        "lite": Scale(grid(3, (1, 16, 128)), stop={"env_steps": 2_000_000}),
        "paper": Scale(grid(50, L), stop={"env_steps": 10_000_000}),
    },
    select=Select(
        metric="total_reward", mode="max", budgets={"env_steps": 10}, is_sum=True
    ),
    methods={name: Method(values, tuned={}) for name, values in METHODS.items()},
    curves=(
        schedules("policy"),
        schedules("value"),
        Curve(title="Total reward", metric="total_reward", label="total reward"),
    ),
    claims=(
        Claim(
            text="With L = 128, exploration rises more after a switch than with L = 1",
            more=Quantity(method="policy L=128", **RANGE),
            less=Quantity(method="policy L=1", **RANGE),
        ),
        Claim(
            text="L = 128 earns more than L = 1",
            more="policy L=128",
            less="policy L=1",
        ),
        Claim(
            text="'Value' matching can earn more, L = 16 against policy's L = 128",
            more="value L=16",
            less="policy L=128",
        ),
    ),
)
