"""What a choice earns on seeds that did not choose, and how sure that is.

The best of many configurations is best by chance as well, and its score on the seeds
that chose it is too high. So some seeds choose, another one is read, and each seed is
read once: an average over choices, as a user makes them, not over one of them. It
estimates what S − 1 seeds choose, which is a little less than what S seeds do: the
number of the plain choice and this one lie on either side of the truth.

Each number stands beside others that its own run has helped to choose. They are not
independent, and the variance of their mean is more than s²/S. What stands here in its
place was simulated (`tests/analysis/test_held_out.py`): so corrected, intervals of 95 %
hold the truth in 94 to 98 % of sweeps.

Scores are matrices [N, S]: N configurations in the order of their ids, S ≥ 2 seeds.
More is better. NaN is a run that diverged.

Source: Nadeau and Bengio (2003), "Inference for the Generalization Error", for the
variance; Bouthillier et al. (2021), "Accounting for Variance in Machine Learning
Benchmarks", for the choice as a part of what varies.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bmg_sweeps.analysis import differences

NONE = -1  # Where all configurations have diverged on the seeds that choose.
MIN_HALVES = 4  # Seeds from which on two halves choose for each other.
CONFIDENCE = 0.95
_MAX_RATIO = 10  # Of variances of configurations: above it they have not one in common.
_MAX_WIDTH = 50.0  # No factor of a separation is more; that of 10⁵ at 1 freedom is not.
_NODES = 64  # Of a sum that stands for an integral.


Choose = Callable[[np.ndarray], int]  # By scores of seeds, of a place or `NONE`.


def best(scores: np.ndarray) -> int:
    """Returns the place of the highest mean over seeds, or NONE if all diverged."""
    means = scores.mean(axis=1)
    return NONE if np.isnan(means).all() else int(np.nanargmax(means))


def by_all_but_one(scores: np.ndarray, choose: Choose = best) -> np.ndarray:
    """Chooses for each seed by the mean over all other seeds.

        c(s) = argmaxᵢ 1/(S − 1) Σ_{r ≠ s} xᵢᵣ

    Args:
        scores: x, [N, S]; or [N, S, …], as `choose` takes it.
        choose: chooses by some of the seeds.

    Returns:
        c, [S]: places of configurations, or NONE. Of equal ones the first is chosen,
        and none that diverged on a seed that chooses.
    """
    seeds = range(scores.shape[1])
    return np.array([choose(np.delete(scores, seed, axis=1)) for seed in seeds])


def by_halves(scores: np.ndarray, choose: Choose = best) -> np.ndarray:
    """Chooses for each half of the seeds, every other one, by the mean over the other.

    Args:
        scores: [N, S], S ≥ 4; or [N, S, …], as `choose` takes it.
        choose: chooses by some of the seeds.

    Returns:
        Places of configurations by seed, as `by_all_but_one` has them.
    """
    first, second = choose(scores[:, 0::2]), choose(scores[:, 1::2])
    return np.array([(second, first)[s % 2] for s in range(scores.shape[1])])


def mean(values: Sequence[float], size: float = 0.0) -> differences.Mean:
    """Averages numbers of seeds, with a variance that allows for dependent folds.

        v = s² (1/S + 1/(S − 1))    of S = 2 or 3 seeds, each read by all others' choice
        v = s² 2/S                  of S ≥ 4 seeds, each read by the other half's choice

    Source: Nadeau and Bengio (2003), Section 3: 1/J + n₂/n₁ with J = S, n₂/n₁ =
    1/(S − 1). Folds of one of many seeds all but choose the same, and depend on each
    other by more than that: halves have no seed in common that chooses.

    Args:
        values: [S], S ≥ 2.
        size: as `differences.mean` takes it.

    Returns:
        The mean, with S − 1 degrees of freedom.
    """
    number = len(values)
    is_halves = number >= MIN_HALVES
    factor = 2 / number if is_halves else 1 / number + 1 / (number - 1)
    return differences.mean(values, factor, size)


class Alike(NamedTuple):
    """Configurations that cannot be told apart from the best."""

    places: tuple[int, ...]
    is_rough: bool  # Whether variances differ so much that one of all says little.


def alike(scores: np.ndarray) -> Alike | None:
    """Finds the configurations that cannot be told apart from the best.

        {i: x̄ᵢ ≥ max x̄ − d s √(2/S)}

    s is pooled over configurations. The set holds the one that is best in truth in 95 %
    of sweeps or more. How often one of them would win, by a bootstrap of seeds, is not
    told: the winner's share is 0.50 where fresh seeds choose it in 0.04.

    Source: Gupta (1965), "On Some Multiple Decision (Selection and Ranking) Rules".

    Args:
        scores: x, [N, S] of complete configurations, N ≥ 2 and S ≥ 2.

    Returns:
        The set; None where nothing varies between seeds.
    """
    number, seeds = scores.shape
    means, variances = scores.mean(axis=1), scores.var(axis=1, ddof=1)
    pooled = math.sqrt(variances.mean())
    if not pooled:
        return None
    width = separation(number, number * (seeds - 1)) * pooled * math.sqrt(2 / seeds)
    places = np.flatnonzero(means >= means.max() - width)
    is_rough = variances.max() > _MAX_RATIO * np.median(variances)
    return Alike(tuple(places.tolist()), bool(is_rough))


@functools.cache
def separation(number: int, freedom: int) -> float:
    """Says by how much the best of equal configurations may lie above a given one.

        P(max_{j ≠ i} x̄ⱼ − x̄ᵢ ≤ d s √(2/S)) = ∫∫ Φ(z + √2 d s/σ)ᴺ⁻¹ dΦ(z) dF(s/σ) = 0.95

    Args:
        number: N ≥ 2.
        freedom: degrees of freedom of s².

    Returns:
        d, such as 2.82 of 30 configurations with 3 seeds.
    """
    from scipy import optimize, special

    ratios = differences.deviation_ratios(freedom)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()

    def too_much(factor: float) -> float:
        within = special.log_ndtr(nodes + math.sqrt(2) * factor * ratios[:, np.newaxis])
        return float((np.exp((number - 1) * within) @ weights).mean() - CONFIDENCE)

    return float(optimize.brentq(too_much, 0.0, _MAX_WIDTH))
