"""Figure 11: total reward of BMG's actor-critic under three matching functions.

Claim: the mode-covering KL(x̃ ‖ ·) is slightly better than the mode-seeking KL(· ‖ x̃)
and the symmetric one. K = 1 and L = 7 are our reading.
"""

from bmg_sweeps.sweep import Claim, Curve, Method, Scale, Select, Sweep, arms

BMG = {
    "update_kind": "bootstrapped_meta_gradient",
    "inner_steps": 1,
    "target_steps": 7,
}
METHODS = {
    "KL-1": BMG | {"matching_function": "policy_kl"},
    "KL-2": BMG | {"matching_function": "reverse_policy_kl"},
    "KL-S": BMG | {"matching_function": "symmetric_policy_kl"},
}
RATES = (3e-4, 1e-4, 3e-5, 1e-5, 3e-6)  # β: the candidates of Table 1.


def grid(seeds, rates):
    """Every method with every rate."""
    return arms(METHODS.values(), meta_learning_rate=rates, seed=range(seeds))


SWEEP = Sweep(
    title="Two-colors: matching functions of BMG",
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
    curves=(Curve(title="Total reward", metric="total_reward", label="total reward"),),
    claims=tuple(
        Claim(text=f"KL-1 earns more than {other}", more="KL-1", less=other)
        for other in ("KL-2", "KL-S")
    ),
)
