"""Figure 10: what the target's last step is taken with, for BMG with K = 1.

Claim: with L = 1 the range of entropy weights collapses, with L = 7 it is wide;
entropy in the last step makes no significant difference to the return, and the
meta-learned rule in its place drives the weight up, with a catastrophic loss.
"""

from bmg_sweeps.sweep import (
    Claim,
    Curve,
    Method,
    Quantity,
    Scale,
    Select,
    Sweep,
    arms,
)

KINDS = {
    "": {"target_weight": "meta_entropy_weight", "meta_entropy_weight": 0.0},
    " + entropy": {"target_weight": "meta_entropy_weight", "meta_entropy_weight": 0.1},
    ", rule only": {"target_weight": "meta_learned_weight", "meta_entropy_weight": 0.0},
}
METHODS = {
    f"L={n}{name}": {
        "update_kind": "bootstrapped_meta_gradient",
        "inner_steps": 1,
        "target_steps": n,
    }
    | kind
    for n in (1, 7)
    for name, kind in KINDS.items()
}
RATES = (3e-4, 1e-4, 3e-5, 1e-5, 3e-6)  # β: the candidates of Table 1.
RANGE = {"metric": "entropy_weight_after_flip", "minus": "entropy_weight_cycle_end"}


def grid(seeds, rates):
    """Every method with every rate."""
    return arms(METHODS.values(), meta_learning_rate=rates, seed=range(seeds))


def panel(target_steps):
    """From 3,333 steps after a flip to the end of the cycle.

    So does Figure 9. The paper's Figure 10 begins at the flip itself.
    """
    return Curve(
        title=f"Range of entropy weights, K=1 L={target_steps}",
        metric=RANGE["metric"],
        to=RANGE["minus"],
        label="ε, line: after a flip",
        methods=(f"L={target_steps}", f"L={target_steps} + entropy"),
    )


SWEEP = Sweep(
    title="Two-colors: the last step of BMG's target",
    trainer="two_colors_actor_critic",
    scales={
        "smoke": Scale(grid(2, RATES[:1]), stop={"env_steps": 400_000}),
        "lite": Scale(grid(3, RATES[:1]), stop={"env_steps": 2_000_000}),
        "paper": Scale(grid(50, RATES), stop={"env_steps": 10_000_000}),
    },
    select=Select(
        metric="total_reward", mode="max", budgets={"env_steps": 10}, is_sum=True
    ),
    methods={
        name: Method(values, tuned={"meta_learning_rate": "β"})
        for name, values in METHODS.items()
    },
    curves=(
        panel(7),
        panel(1),
        Curve(title="Total reward", metric="total_reward", label="total reward"),
    ),
    claims=(
        Claim(
            text="The range is wider with L = 7 than with L = 1",
            more=Quantity(method="L=7", **RANGE),
            less=Quantity(method="L=1", **RANGE),
        ),
        Claim(
            text="With L = 7, entropy in the last step widens it somewhat",
            more=Quantity(method="L=7 + entropy", **RANGE),
            less=Quantity(method="L=7", **RANGE),
        ),
        Claim(
            text="With L = 7, it makes no difference to the return",
            more="L=7 + entropy",
            less="L=7",
            are_equal=True,
        ),
        *(
            Claim(
                text=f"The rule for all steps, L = {n}, is a catastrophic loss",
                more="L=7",
                less=f"L={n}, rule only",
            )
            for n in (1, 7)
        ),
        Claim(
            text="The rule for all steps drives the weight up",
            more=Quantity(method="L=7, rule only", metric="entropy_weight"),
            less=Quantity(method="L=7", metric="entropy_weight"),
        ),
    ),
)
