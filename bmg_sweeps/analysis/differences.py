"""How much more one quantity is than another, and how sure that is.

A difference has a distribution: Student's t around the estimate, scaled by its standard
error. Intervals are its quantiles, and how probable a difference beyond a bound is by
chance alone is its tail there.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bmg_sweeps.analysis.intervals import Interval

CONFIDENCE = 0.95
_PARTS = 1000  # Of a distribution, in a sum that stands for an integral.
_ROUNDING = 1e-12  # Numbers that differ by less, relatively, do not vary.


class Mean(NamedTuple):
    """A mean of numbers, one a seed, and how far chance moves it."""

    estimate: float
    variance: float  # Of the mean.
    freedom: float  # Degrees of freedom of the variance.


@dataclasses.dataclass(frozen=True)
class Difference:
    """An estimate and its distribution."""

    estimate: float
    quantile: Callable[[float], float]  # Below which lies such a part of it.
    below: Callable[[float], float]  # Which part of it is at or below a number.
    above: Callable[[float], float]  # Which part of it is at or above a number.

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """Returns the middle part of the distribution."""
        tail = (1 - confidence) / 2
        return Interval(self.estimate, self.quantile(tail), self.quantile(1 - tail))


def mean(
    values: Sequence[float], factor: float | None = None, size: float = 0.0
) -> Mean:
    """Averages numbers, one a seed.

        x̄, with the variance f s²

    Args:
        values: [S], S ≥ 2.
        factor: f; None is 1/S, that of separate runs.
        size: of the numbers that these are differences of, whose rounding they have.

    Returns:
        The mean, with S − 1 degrees of freedom. Numbers that are equal but for rounding
        have no variance.
    """
    number, middle = len(values), math.fsum(values) / len(values)
    if np.ptp(values) <= _ROUNDING * max(size, *np.abs(values)):
        return Mean(middle, 0.0, number - 1)
    factor = 1 / number if factor is None else factor
    return Mean(middle, factor * float(np.var(values, ddof=1)), number - 1)


def of_pairs(differences: Mean) -> Difference | float:
    """Compares two quantities of the same runs, by Student's t.

        d̄ ± t_{S−1} √v

    Args:
        differences: mean of the differences, one a seed.

    Returns:
        The difference; its estimate alone where the differences do not vary.
    """
    return _by_t(differences)


def of_means(more: Mean, less: Mean) -> Difference | float:
    """Compares the means of separate runs, by Welch's t.

        x̄ − ȳ ± t_ν √(v + w), with ν = (v + w)² / (v²/ν_v + w²/ν_w)

    Source: Welch (1947), "The generalization of Student's problem".

    Args:
        more: the mean x̄, of variance v.
        less: the mean ȳ, of variance w, which may be another one.

    Returns:
        The difference; its estimate alone where neither varies.
    """
    estimate, variance = more.estimate - less.estimate, more.variance + less.variance
    if not variance:
        return estimate
    parts = (m.variance**2 / m.freedom for m in (more, less))
    return _by_t(Mean(estimate, variance, variance**2 / sum(parts)))


def deviation_ratios(freedom: float) -> np.ndarray:
    """Returns s/σ in the middle of equal parts of its distribution, √(χ²_ν / ν).

    A mean over them stands for the expectation over s.
    """
    from scipy import special

    parts = (np.arange(_PARTS) + 0.5) / _PARTS
    return np.sqrt(special.chdtri(freedom, 1 - parts) / freedom)


def _by_t(one: Mean) -> Difference | float:
    if not one.variance:
        return one.estimate
    from scipy import special  # Not needed to plan, list or launch.

    error = math.sqrt(one.variance)

    def below(bound: float) -> float:
        return float(special.stdtr(one.freedom, (bound - one.estimate) / error))

    def above(bound: float) -> float:
        return float(special.stdtr(one.freedom, (one.estimate - bound) / error))

    def quantile(part: float) -> float:
        return one.estimate + error * float(special.stdtrit(one.freedom, part))

    return Difference(one.estimate, quantile, below, above)
