"""Published numbers of Atari: every game, summaries over games, and Table 3."""

from bmg_sweeps import atari_scores
from bmg_sweeps.sweep.display import (
    Published,
    PublishedMeasure,
    PublishedSummary,
    PublishedTasks,
)

_PAPER = "Flennerhag et al. (2022)"
_SEEDS = "3 seeds"
_FRAMES = 200e6

_METHODS = ("BMG KL", "BMG KL&V", "BMG KL&V, L=4", "BMG KL-S", "BMG L2", "STACX",
            "BMG V")  # fmt: skip
# Appendix C, "Mean per-game performance between 190-200M frames": mean episode returns,
# by the game's name in `atari_scores`. No deviations are printed.
ALL_GAMES = (
    # Game, and the methods in the order above.
    ("alien", 45677, 44880, 58067, 35750, 50692, 31809, 7964),
    ("amidar", 4800, 7099, 7528, 4974, 7691, 3719, 1896),
    ("assault", 20334, 29473, 33019, 21747, 28301, 19648, 4101),
    ("asterix", 511550, 439475, 533385, 487367, 6798, 245617, 86053),
    ("asteroids", 145337, 238320, 289689, 8585, 220366, 156096, 56577),
    ("atlantis", 831920, 813772, 814780, 806698, 854441, 848007, 648988),
    ("bank_heist", 571, 1325, 0, 13, 1165, 1329, 1339),
    ("battle_zone", 73323, 88407, 88350, 78941, 50453, 78359, 72787),
    ("beam_rider", 37170, 51649, 57409, 41454, 67726, 62892, 74397),
    ("berzerk", 21146, 2946, 1588, 2183, 240, 1523, 1069),
    ("bowling", 46, 50, 42, 46, 50, 28, 52),
    ("boxing", 100, 100, 86, 100, 100, 100, 100),
    ("breakout", 742, 832, 847, 774, 827, 717, 16),
    ("centipede", 537032, 542730, 558849, 291569, 550394, 478347, 8895),
    ("chopper_command", 830772, 934863, 838090, 736012, 11274, 846788, 341350),
    ("crazy_climber", 233445, 212229, 265729, 199150, 229496, 182617, 126353),
    ("defender", 393457, 374012, 421894, 364053, 69193, 344453, 55152),
    ("demon_attack", 132508, 133109, 133571, 132529, 133469, 130741, 129863),
    ("double_dunk", 22, 23, 23, 21, 23, 24, 23),
    ("enduro", 2349, 2349, 2350, 2360, 2365, 259, 2187),
    ("fishing_derby", 41, 63, 68, 41, 52, 62, 59),
    ("freeway", 10, 30, 25, 31, 30, 18, 33),
    ("frostbite", 8820, 3895, 3995, 5547, 13477, 2522, 1669),
    ("gopher", 116010, 116037, 122459, 92185, 122790, 87094, 11920),
    ("gravitar", 271, 709, 748, 259, 3594, 2746, 944),
    ("hero", 60896, 48551, 52432, 56044, 51631, 35559, 20235),
    ("ice_hockey", 5, 15, 20, 4, 15, 19, 20),
    ("jamesbond", 22129, 25951, 30157, 25766, 18200, 26123, 23263),
    ("kangaroo", 12200, 12557, 13174, 1940, 13235, 3182, 8722),
    ("krull", 10750, 9768, 10510, 11156, 10502, 10480, 8899),
    ("kung_fu_master", 51038, 58732, 54354, 54559, 63632, 67823, 54584),
    ("montezuma_revenge", 0, 0, 0, 0, 0, 0, 0),
    ("ms_pacman", 25926, 22876, 28279, 26267, 27564, 12647, 2759),
    ("name_this_game", 31203, 31863, 36838, 30912, 32344, 24616, 12583),
    ("phoenix", 529404, 542998, 658082, 407520, 440821, 370270, 247854),
    ("pitfall", 0, -1, 0, 0, 0, 0, 0),
    ("pong", 21, 21, 21, 21, 21, 21, 21),
    ("private_eye", 165, 144, 98, 130, 67, 100, 68),
    ("qbert", 87214, 37135, 72320, 30047, 75197, 27264, 3901),
    ("riverraid", 129515, 132751, 32300, 91267, 177127, 47671, 26418),
    ("road_runner", 240377, 61710, 521596, 17002, 424588, 62191, 34773),
    ("robotank", 64, 66, 71, 65, 64, 61, 65),
    ("seaquest", 684870, 2189, 82925, 616738, 1477, 1744, 3653),
    ("skiing", -10023, -8988, -9797, -8988, -9893, -10504, -13312),
    ("solaris", 2120, 2182, 2188, 1858, 2194, 2326, 2202),
    ("space_invaders", 35762, 54046, 40790, 11314, 49333, 34875, 15424),
    ("star_gunner", 588377, 663477, 790833, 587411, 39510, 298448, 43561),
    ("surround", 9, 9, 10, 9, 9, 3, 9),
    ("tennis", 23, 24, 23, 21, 24, 19, 24),
    ("time_pilot", 94746, 60918, 68626, 95854, 93466, 49932, 40127),
    ("tutankham", 282, 268, 291, 280, 288, 101, 205),
    ("up_n_down", 342121, 303741, 381780, 109392, 202715, 315588, 17252),
    ("venture", 0, 0, 0, 0, 0, 0, 0),
    ("video_pinball", 230252, 479861, 399094, 505212, 485852, 441220, 77100),
    ("wizard_of_wor", 21597, 45731, 49806, 22936, 10817, 47854, 24250),
    ("yars_revenge", 77001, 286734, 408061, 32031, 398656, 113651, 77169),
    ("zaxxon", 44280, 49448, 59011, 36261, 49734, 56952, 35494),
)  # fmt: skip

# Section 5.2 states other medians than this table has, of human-normalized scores.
_TEXT_MEDIANS = {"BMG KL": 5.0, "BMG KL&V": 5.2, "BMG KL&V, L=4": 6.1, "STACX": 3.5}
# Extended Data Table 1 of the second has the STACX column of the table above.
_DISCO_RL = "Oh et al. (2025), Extended Data Table 1"
_HIGHER = (
    # Median and interquartile mean of human-normalized scores.
    ("IMPALA", 1.92, 2.84),
    ("STACX", 3.01, 5.68),
    ("Muesli", 10.77, 12.97),
    ("MuZero", 10.91, 13.66),
    ("Dreamer", 8.33, 9.71),
    ("Disco57", 9.59, 14.64),
    ("Disco103", 10.00, 14.83),
)

# Table 3: means between 50M and 150M frames, deviations over 3 seeds: cosine similarity
# of consecutive meta-gradients, variance of the meta-gradient, and ratio of its norm to
# its variance.
_TABLE_3_METHODS = ("BMG KL", "BMG KL&V", "BMG L2", "STACX")
TABLE_3 = (
    # Game, column, and the methods in the order above.
    ("kangaroo", "cosine_similarity",
     (0.19, 0.02), (0.11, 0.01), (0.001, 1e-4), (0.009, 0.01)),
    ("kangaroo", "meta_gradient_variance",
     (0.05, 0.01), (0.002, 1e-4), (2.3e-9, 4e-9), (6.4e-4, 7e-4)),
    ("kangaroo", "norm_to_variance", (49, None), (68, None), (47, None), (44, None)),
    ("ms_pacman", "cosine_similarity",
     (0.11, 0.006), (0.03, 0.006), (0.002, 4e-4), (-0.005, 0.01)),
    ("ms_pacman", "meta_gradient_variance",
     (90, 12), (0.8, 0.2), (9.6e-7, 2e-8), (0.9, 0.2)),
    ("ms_pacman", "norm_to_variance",
     (2.1, None), (7.9, None), (4.2, None), (2.1, None)),
    ("star_gunner", "cosine_similarity",
     (0.13, 0.008), (0.07, 0.001), (0.003, 5e-4), (0.002, 0.02)),
    ("star_gunner", "meta_gradient_variance",
     (4.2, 1.1), (1.5, 2.3), (1.9e-7, 3e-7), (0.06, 0.03)),
    ("star_gunner", "norm_to_variance",
     (6.1, None), (6.6, None), (11.7, None), (6.5, None)),
)  # fmt: skip


def _of_games(
    method: str, cells: tuple[tuple[str, float], ...], source: str
) -> PublishedTasks:
    return PublishedTasks(
        method=method,
        axis="frames",
        budget=_FRAMES,
        scores=dict(cells),
        normalized={game: atari_scores.normalized(game, n) for game, n in cells},
        source=source,
    )


def _summary(
    method: str,
    source: str,
    median: float,
    interquartile_mean: float | None = None,
) -> PublishedSummary:
    return PublishedSummary(
        method=method,
        axis="frames",
        budget=_FRAMES,
        median=median,
        interquartile_mean=interquartile_mean,
        source=source,
    )


ATARI_SCORES = Published(
    tasks=tuple(
        _of_games(
            method,
            tuple((game, scores[i]) for game, *scores in ALL_GAMES),
            f"{_PAPER}, per-game table; {_SEEDS}",
        )
        for i, method in enumerate(_METHODS)
    ),
    summaries=(
        *(_summary(m, f"{_PAPER}, Section 5.2", n) for m, n in _TEXT_MEDIANS.items()),
        *(_summary(method, _DISCO_RL, *numbers) for method, *numbers in _HIGHER),
    ),
)
# An agent on a game is a method of its own.
ATARI_META_GRADIENTS = Published(
    measures=tuple(
        PublishedMeasure(
            method=f"{method}, {game}",
            configuration={},
            metric=metric,
            mean=mean,
            deviation=deviation,
            source=f"{_PAPER}, Table 3; {_SEEDS}",
        )
        for game, metric, *cells in TABLE_3
        for method, (mean, deviation) in zip(_TABLE_3_METHODS, cells, strict=True)
    )
)
