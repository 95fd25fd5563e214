"""The paper's numbers, and those of others it is compared with, as data.

For comparison only: sweeps name what stands beside them, and nothing else reads it. A
module holds the numbers of one setting.
"""

from bmg_sweeps.paper.atari import ATARI_META_GRADIENTS, ATARI_SCORES
from bmg_sweeps.paper.few_shot import (
    FEW_SHOT_ACCURACY,
    FEW_SHOT_META_GRADIENTS,
    FEW_SHOT_SPEED,
)
from bmg_sweeps.paper.two_colors import TWO_COLORS_Q_LAMBDA, TWO_COLORS_TOTAL_REWARD

__all__ = [
    "ATARI_META_GRADIENTS",
    "ATARI_SCORES",
    "FEW_SHOT_ACCURACY",
    "FEW_SHOT_META_GRADIENTS",
    "FEW_SHOT_SPEED",
    "TWO_COLORS_Q_LAMBDA",
    "TWO_COLORS_TOTAL_REWARD",
]
