"""The paper's numbers, and those of others it is compared with, as data.

For comparison and for tests only: no trainer, grid or selection reads them.
"""

from typing import NamedTuple

# Table 1, "Two-colors hyper-parameters", the part "Actor-critic", and the values of
# Section 5.1 and Appendix B.2 that it does not repeat, by the trainer's field.
TWO_COLORS_ACTOR_CRITIC = {
    "learning_rate": 0.1,
    "rollout_length": 16,  # "Batch size".
    "discount": 0.99,
    "matching_function": "policy_kl",
    "hidden_sizes": (256, 256),
    "meta_adam_eps": 1e-4,
    "meta_adam_b1": 0.9,
    "meta_adam_b2": 0.999,
    "meta_hidden_sizes": (32,),
    "policy_gradient_weight": 1.0,  # Section 5.1.
    "value_weight": 1.0,  # Section 5.1.
    "num_recent_rollouts": 10,  # Appendix B.2.
}
TWO_COLORS_META_LEARNING_RATES = (3e-6, 1e-5, 3e-5, 1e-4, 3e-4)


class Anchor(NamedTuple):
    """A published number to stand beside ours."""

    method: str  # As named in the sweeps.
    budget: float
    mean: float
    deviation: float | None  # Over seeds.
    source: str
    axis: str = "env_steps"  # That the budget is measured on.


_LUKETINA = "Luketina et al. (2022), Table 1; 10 seeds"

# Total reward after 10M environment steps. The authors' later study of the same setting
# ("reward context"); the paper's own curves are not in its text.
ANCHORS = {
    "two_colors_total_reward": (
        Anchor("fixed ε", 10e6, 1.24e6, 0.09e6, _LUKETINA),
        Anchor("MG", 10e6, 1.58e6, 0.08e6, _LUKETINA + ", α_ent ∈ {0, 0.1}"),
        Anchor("BMG", 10e6, 1.74e6, 0.03e6, _LUKETINA),
        Anchor("optimal policy", 10e6, 2.79e6, None, "value iteration"),
        Anchor("random policy", 10e6, -0.386e6, None, "value iteration"),
    ),
}
