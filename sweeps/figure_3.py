"""Figure 3: bootstrapped against fixed exploration of a Q(λ) agent in two-colors.

Claim: meta-learned ε-greedy exploration earns significantly more than the best fixed ε.
The text does not say whether by policy or by 'value' matching: both are tried.
"""

from bmg_sweeps import paper
from bmg_sweeps.sweep import Claim, Curve, Method, Scale, Select, Sweep, arm

FIXED = {"update_kind": "fixed_epsilon", "target_steps": 1}
BMG = {"update_kind": "bootstrapped_meta_gradient"}
PAPER = {"trace_decay": 0.7}
# The values of the authors' later study of the same setting, Luketina et al. (2022),
# which tries other rates of the agent, too, where ε is fixed.
LATER = {"trace_decay": 0.9, "num_recent_rewards": 100, "meta_hidden_sizes": (128, 128)}
TUNED = {"target_steps": "L", "matching_function": "μ"}
EPSILONS = (0.3, 0.1, 0.03, 0.01)  # Candidates of the later study; not in the paper.


def grid(seeds, epsilons, target_steps, matching=("policy_kl", "value")):
    """Both methods, with the paper's values and with those of the later study."""
    points = ()
    for values in (PAPER, LATER):
        points += arm(FIXED | values, epsilon=epsilons, seed=range(seeds))
        points += arm(
            BMG | values,
            matching_function=matching,
            target_steps=target_steps,
            seed=range(seeds),
        )
    return points


SWEEP = Sweep(
    title="Two-colors with Q(λ): total reward with fixed and meta-learned exploration",
    trainer="two_colors_q_lambda",
    scales={
        "smoke": Scale(grid(2, (0.1,), (16,), ("value",)), stop={"env_steps": 100_000}),
        "lite": Scale(grid(3, (0.3, 0.1), (16,)), stop={"env_steps": 2_000_000}),
        "paper": Scale(
            grid(50, EPSILONS, (1, 4, 16, 32, 128)), stop={"env_steps": 10_000_000}
        ),
    },
    select=Select(
        metric="total_reward", mode="max", budgets={"env_steps": 10}, is_sum=True
    ),
    methods={
        "fixed": Method(FIXED | PAPER, tuned={"epsilon": "ε"}),
        "BMG": Method(BMG | PAPER, tuned=TUNED),
        "fixed, λ=0.9": Method(FIXED | LATER, tuned={"epsilon": "ε"}),
        "BMG, λ=0.9": Method(BMG | LATER, tuned=TUNED),
    },
    curves=(
        Curve(title="Total reward", metric="total_reward", label="total reward"),
        Curve(
            title="Exploration over the last four reward cycles",
            metric="epsilon",
            label="ε",
            last=400_000,
        ),
    ),
    claims=(
        Claim(text="BMG earns more than the best fixed ε", more="BMG", less="fixed"),
        Claim(
            text="So it does with the values of Luketina et al. (2022)",
            more="BMG, λ=0.9",
            less="fixed, λ=0.9",
        ),
    ),
    published=paper.TWO_COLORS_Q_LAMBDA,
)
