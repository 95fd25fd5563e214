"""The paper's numbers, and those of others it is compared with, as data.

For comparison and for tests only: no trainer, grid or selection reads them.
"""

import types
from collections.abc import Mapping
from typing import Any, NamedTuple

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
# The same, the part "Q(λ)".
TWO_COLORS_Q_LAMBDA = {
    "learning_rate": 3e-5,
    "adam_eps": 1e-4,
    "adam_b1": 0.9,
    "adam_b2": 0.999,
    "gradient_decay": 0.9,
    "trace_decay": 0.7,
    "discount": 0.99,
    "hidden_sizes": (256, 256),
    "meta_learning_rate": 1e-4,
    "meta_adam_eps": 1e-4,
    "meta_adam_b1": 0.9,
    "meta_adam_b2": 0.999,
    "meta_gradient_decay": 0.9,
    "meta_hidden_sizes": (32,),
    "num_recent_rewards": 50,  # Appendix B.3.
}
TWO_COLORS_META_LEARNING_RATES = (3e-6, 1e-5, 3e-5, 1e-4, 3e-4)

# Table 4, "Hyper-parameter sweep per computational budget", by symbol. The total of 24
# for MAML counts FOMAML and ANIL jointly: both may be true.
FEW_SHOT_GRID = {
    "MAML": {
        "β": (1e-4, 1e-3),
        "K": (1, 5, 10),
        "FOMAML": (True, False),
        "ANIL": (True, False),
    },
    "BMG": {"β": (1e-4, 1e-3), "K": (1, 5), "L": (1, 5, 10), "μ": (1, 2)},
}

# Table 7, data efficiency: the best hyper-parameters and their meta-test accuracy (in
# percent, mean of 3 seeds) by thousands of meta-updates.
# μ = 1 is the matching function KL(x̃ ‖ ·), and 2 is KL(· ‖ x̃).
TABLE_7 = (
    # BMG: β, K, L, μ, accuracy; MAML: β, K, FOMAML, ANIL, accuracy.
    (10, (1e-3, 1, 10, 1, 61.4), (1e-3, 1, False, True, 61.7)),
    (20, (1e-3, 1, 10, 1, 61.8), (1e-3, 1, False, False, 61.9)),
    (30, (1e-3, 1, 10, 1, 62.5), (1e-3, 10, False, True, 62.3)),
    (40, (1e-3, 5, 1, 1, 63.1), (1e-3, 5, False, False, 62.7)),
    (50, (1e-3, 5, 1, 1, 63.5), (1e-3, 10, False, True, 62.9)),
    (60, (1e-3, 5, 1, 1, 63.7), (1e-3, 1, False, False, 63.0)),
    (70, (1e-3, 1, 1, 2, 63.7), (1e-3, 5, False, False, 63.0)),
    (80, (1e-3, 5, 1, 1, 63.7), (1e-4, 5, False, False, 63.1)),
    (90, (1e-3, 5, 1, 1, 63.8), (1e-3, 5, False, False, 63.3)),
    (100, (1e-3, 1, 1, 2, 63.8), (1e-4, 5, False, False, 63.4)),
    (110, (1e-3, 1, 1, 2, 63.9), (1e-4, 5, False, False, 63.6)),
    (120, (1e-4, 5, 5, 1, 63.9), (1e-4, 5, False, False, 63.6)),
    (130, (1e-4, 5, 10, 1, 64.0), (1e-4, 5, False, False, 63.6)),
    (140, (1e-4, 5, 5, 1, 64.1), (1e-4, 5, False, False, 63.6)),
    (150, (1e-4, 5, 5, 1, 64.2), (1e-4, 10, False, True, 63.6)),
    (160, (1e-4, 5, 5, 1, 64.3), (1e-4, 5, False, False, 63.6)),
    (170, (1e-4, 5, 5, 1, 64.4), (1e-4, 5, False, False, 63.7)),
    (180, (1e-4, 5, 5, 1, 64.5), (1e-4, 10, False, False, 63.8)),
    (190, (1e-4, 5, 10, 1, 64.6), (1e-4, 5, False, False, 63.9)),
    (200, (1e-3, 5, 10, 2, 64.7), (1e-4, 10, False, False, 64.0)),
    (210, (1e-4, 5, 1, 1, 64.7), (1e-4, 5, False, False, 64.1)),
    (220, (1e-4, 5, 5, 1, 64.7), (1e-4, 10, False, False, 64.2)),
    (230, (1e-4, 5, 5, 1, 64.8), (1e-4, 5, False, False, 64.2)),
    (240, (1e-4, 5, 1, 2, 64.8), (1e-4, 5, False, False, 64.1)),
    (250, (1e-4, 5, 5, 1, 64.9), (1e-4, 5, False, False, 64.1)),
    (260, (1e-4, 5, 1, 1, 64.9), (1e-4, 5, False, False, 64.0)),
    (270, (1e-4, 5, 1, 1, 64.8), (1e-4, 5, False, False, 63.9)),
    (280, (1e-4, 5, 1, 1, 64.8), (1e-4, 5, False, False, 63.8)),
    (290, (1e-4, 5, 1, 1, 64.7), (1e-4, 5, False, False, 63.8)),
    (300, (1e-4, 5, 5, 1, 64.7), (1e-4, 5, False, False, 63.8)),
)

# Table 8, computational efficiency: the same by hours of training. As printed: 4 and 21
# hours have two rows, and MAML has no number at 24. We compare with the first of two
# rows, the one nearer to the hour before.
TABLE_8 = (
    (1, (1e-3, 1, 1, 2, 63.5), (1e-3, 1, False, False, 63.0)),
    (2, (1e-3, 1, 1, 2, 63.6), (1e-3, 10, False, True, 63.0)),
    (3, (1e-3, 5, 1, 1, 63.7), (1e-3, 5, False, False, 63.0)),
    (4, (1e-3, 5, 1, 1, 63.8), (1e-4, 5, False, True, 63.1)),
    (4, (1e-3, 5, 1, 1, 63.8), (1e-4, 1, False, True, 63.4)),
    (5, (1e-3, 5, 1, 1, 63.8), (1e-4, 5, False, False, 63.5)),
    (6, (1e-3, 5, 10, 1, 63.8), (1e-4, 5, False, False, 63.6)),
    (7, (1e-4, 5, 1, 1, 63.8), (1e-4, 5, False, False, 63.6)),
    (8, (1e-3, 5, 1, 1, 63.8), (1e-4, 5, False, False, 63.6)),
    (9, (1e-4, 5, 1, 1, 63.9), (1e-4, 5, False, False, 63.6)),
    (10, (1e-4, 5, 1, 1, 64.2), (1e-4, 5, False, False, 63.7)),
    (11, (1e-4, 5, 5, 1, 64.3), (1e-4, 5, False, False, 63.8)),
    (12, (1e-4, 5, 5, 1, 64.5), (1e-4, 5, False, False, 63.9)),
    (13, (1e-4, 5, 5, 1, 64.6), (1e-4, 5, False, False, 63.9)),
    (14, (1e-4, 5, 1, 2, 64.7), (1e-4, 5, False, False, 63.8)),
    (15, (1e-4, 5, 1, 1, 64.8), (1e-4, 5, False, False, 63.4)),
    (16, (1e-4, 5, 1, 1, 64.8), (1e-3, 10, False, False, 63.2)),
    (17, (1e-4, 5, 1, 1, 64.8), (1e-4, 10, False, False, 63.3)),
    (18, (1e-4, 5, 10, 1, 64.8), (1e-4, 10, False, False, 63.5)),
    (19, (1e-4, 5, 5, 1, 64.8), (1e-4, 10, False, False, 63.6)),
    (20, (1e-4, 5, 5, 1, 64.7), (1e-4, 10, False, False, 63.8)),
    (21, (1e-4, 5, 10, 1, 64.7), (1e-4, 10, False, False, 63.9)),
    (21, (1e-4, 5, 10, 1, 64.7), (1e-4, 10, False, False, 63.8)),
    (22, (1e-4, 5, 5, 1, 64.7), (1e-4, 10, False, False, 63.9)),
    (23, (1e-4, 5, 10, 1, 64.7), (1e-4, 10, False, False, 63.8)),
    (24, (1e-4, 5, 10, 1, 64.7), None),
)

# Table 5: meta-training steps per second on a V100, mean and deviation over 5 seeds.
TABLE_5 = (
    # K, L, MAML, BMG.
    (1, 1, ((14.3, 0.4),), ((12.4, 0.5),)),
    (1, 5, None, ((6.9, 0.3),)),
    (1, 10, None, ((4.4, 0.1),)),
    (5, 1, ((4.4, 0.06),), ((4.2, 0.04),)),
    (5, 5, None, ((3.2, 0.03),)),
    (5, 10, None, ((2.5, 0.01),)),
    (10, 1, ((2.3, 0.01),), ((2.2, 0.01),)),
    (10, 5, None, ((1.9, 0.01),)),
    (10, 10, None, ((1.7, 0.01),)),
    (15, None, ((1.4, 0.01),), None),
    (20, None, ((1.1, 0.01),), None),
)

# Table 6: means over meta-updates 100,000 to 150,000, deviations over 5 seeds: cosine
# similarity θ of consecutive meta-gradients, variance V of the meta-gradient, and ratio
# ρ of its norm to its variance.
TABLE_6 = (
    # K, L, and θ, V, ρ of MAML and of BMG.
    (1, 1, ((0.17, 0.01), (0.21, 0.01), (0.02, 0.02)),
     ((0.17, 0.01), (0.0002, 5e-6), (0.59, 0.03))),
    (1, 5, None, ((0.18, 0.01), (0.001, 1e-5), (0.23, 0.01))),
    (1, 10, None, ((0.19, 0.01), (0.0003, 2e-5), (0.36, 0.01))),
    (5, 1, ((0.03, 0.01), (0.07, 0.009), (0.08, 0.03)),
     ((0.03, 0.005), (0.01, 9e-5), (0.84, 0.03))),
    (5, 5, None, ((0.04, 0.005), (0.001, 5e-5), (0.46, 0.02))),
    (5, 10, None, ((0.05, 0.004), (0.003, 3e-5), (0.18, 0.02))),
)  # fmt: skip


# Section 6 and Appendix D, "Few-Shot MiniImagenet", by the trainer's field.
FEW_SHOT = {
    "data_set": "mini_imagenet",
    "num_ways": 5,
    "num_shots": 5,
    "num_queries": 5,
    "num_evaluation_queries": 5,
    "num_blocks": 4,
    "num_filters": 32,
    "evaluation_steps": 10,
}


class Anchor(NamedTuple):
    """A published number to stand beside ours, of what was selected at a budget."""

    method: str  # As named in the sweeps.
    budget: float
    mean: float
    deviation: float | None  # Over seeds.
    source: str
    axis: str = "env_steps"  # That the budget is measured on.
    selected: Mapping[str, Any] = types.MappingProxyType({})  # Values by symbol.


class Measured(NamedTuple):
    """A published number of one configuration, whatever was selected."""

    method: str  # As named in the sweeps.
    configuration: Mapping[str, Any]  # Values by symbol.
    metric: str  # Column of the rows.
    mean: float
    deviation: float | None  # Over seeds.
    source: str


_LUKETINA = "Luketina et al. (2022), Table 1; 10 seeds"

# Total reward after 10M environment steps. The authors' later study of the same setting
# ("reward context"); the paper's own curves are not in its text.
ANCHORS = {
    "two_colors_total_reward": (
        Anchor("fixed", 10e6, 1.24e6, 0.09e6, _LUKETINA),
        Anchor("MG + entropy", 10e6, 1.58e6, 0.08e6, _LUKETINA + ", α_ent ∈ {0, 0.1}"),
        Anchor("BMG", 10e6, 1.74e6, 0.03e6, _LUKETINA),
        Anchor("optimal policy", 10e6, 2.79e6, None, "value iteration"),
        Anchor("random policy", 10e6, -0.386e6, None, "value iteration"),
    ),
    # There with λ = 0.9, 100 rewards as input, and two layers of 128 in the meta-net.
    "two_colors_q_lambda": (
        Anchor("fixed, λ=0.9", 10e6, 0.58e6, 0.07e6, _LUKETINA),
        Anchor("BMG, λ=0.9", 10e6, 1.93e6, 0.03e6, _LUKETINA),
        Anchor("optimal policy", 10e6, 2.79e6, None, "value iteration"),
    ),
}


_PAPER = "Flennerhag et al. (2022), Table"
_SYMBOLS = {name: tuple(axes) for name, axes in FEW_SHOT_GRID.items()}


def _anchors(rows, axis: str, unit: int, source: str) -> tuple[Anchor, ...]:
    """Reads a table of what was best at each budget; of two equal ones the first."""
    first = {row[0]: row for row in reversed(rows)}
    return tuple(
        Anchor(
            method=method,
            budget=budget * unit,
            mean=cells[-1],
            deviation=None,
            source=source,
            axis=axis,
            selected=dict(zip(_SYMBOLS[method], cells[:-1], strict=True)),
        )
        for budget, *methods in (first[budget] for budget in sorted(first))
        for method, cells in zip(("BMG", "MAML"), methods, strict=True)
        if cells
    )


def _measured(rows, metrics: tuple[str, ...], source: str) -> tuple[Measured, ...]:
    """Reads a table of K, L, and an estimate of each metric for MAML and for BMG."""
    return tuple(
        Measured(
            method, {s: x for s, x in shape.items() if s in of}, metric, *cell, source
        )
        for inner_steps, target_steps, *methods in rows
        for method, of, cells in zip(("MAML", "BMG"), ("K", "KL"), methods, strict=True)
        for shape in ({"K": inner_steps, "L": target_steps},)
        for metric, cell in zip(metrics, cells or (), strict=bool(cells))
    )


ANCHORS["few_shot_accuracy"] = (
    *_anchors(TABLE_7, "meta_updates", 1000, f"{_PAPER} 7; 3 seeds"),
    *_anchors(TABLE_8, "hours", 1, f"{_PAPER} 8; 3 seeds, V100"),
)

# By the same names as the anchors.
MEASURED = {
    "few_shot_speed": _measured(
        TABLE_5,
        ("meta_updates_per_second",),
        f"{_PAPER} 5; 5 seeds, V100",
    ),
    "few_shot_meta_gradients": _measured(
        TABLE_6,
        ("cosine_similarity", "meta_gradient_variance", "norm_to_variance"),
        f"{_PAPER} 6; 5 seeds",
    ),
}

# What points need for these numbers to be about the same thing.
_MINI_IMAGENET = {"data_set": "mini_imagenet", "num_ways": 5, "num_shots": 5}
VALUES = dict.fromkeys(("few_shot_accuracy", *MEASURED), _MINI_IMAGENET)
