"""How many fresh seeds would decide a claim, if its effect is what it seems to be.

Source: Cohen (1988), "Statistical Power Analysis for the Behavioral Sciences", for a
power of 80 %; Browne (1995), "On the Use of a Pilot Sample for Sample Size
Determination", for the deviation's upper limit in place of itself.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from bmg_sweeps.analysis import differences

POWER = 0.80
MAX_SEEDS = 1_000  # More are not counted.
_LIMIT = 0.80  # The deviation is below its upper limit in so many cases.
_WIDE = 2  # A range is wide whose ends differ by more than this factor.


class Range(NamedTuple):
    """Numbers of seeds; None is more than `MAX_SEEDS`."""

    low: int | None
    high: int | None

    @property
    def is_wide(self) -> bool:
        """Whether the deviation is known too badly to plan by."""
        return self.low is not None and (self.high or math.inf) > _WIDE * self.low


def seeds_to_decide(
    effect: float, variances: Sequence[float], freedom: float, level: float
) -> Range:
    """Says how many fresh seeds of each side decide a claim with a power of 80 %.

    The first number takes the deviation as it was found, the second its upper 80 %
    limit,

        s √(ν / χ²₀.₂,ᵥ)

    Args:
        effect: the difference.
        variances: s² from seed to seed of both sides; of pairs that of the difference.
        freedom: ν, degrees of freedom of their sum.
        level: of the test, two-sided.

    Returns:
        Both numbers.
    """
    from scipy import special  # Not needed to plan, list or launch.

    factor = freedom / float(special.chdtri(freedom, _LIMIT))
    larger = [factor * variance for variance in variances]
    low, high = (_seeds(effect, some, level) for some in (variances, larger))
    return Range(low, high)


def power(effect: float, variances: Sequence[float], seeds: int, level: float) -> float:
    """Says how probably a test of fresh seeds finds an effect.

        P(T > t) = E Φ(λ − t s/σ),  λ = δ / √(Σ s²/n),  ν = (n − 1) (Σ s²)² / Σ s⁴

    Args:
        effect: δ.
        variances: s², as `seeds_to_decide` takes them.
        seeds: n ≥ 2 of each side.
        level: of the test, two-sided.

    Returns:
        The probability that it is found with the sign that it has.
    """
    from scipy import special

    total = math.fsum(variances)
    freedom = (seeds - 1) * total**2 / math.fsum(v**2 for v in variances)
    shift = abs(effect) / math.sqrt(total / seeds)
    bound = -float(special.stdtrit(freedom, level / 2))
    # SciPy's own distribution of T has no number for some large shifts.
    ratios = differences.deviation_ratios(freedom)
    return float(special.ndtr(shift - bound * ratios).mean())


def _seeds(effect: float, variances: Sequence[float], level: float) -> int | None:
    """Returns the least number of seeds; more of them have more power."""
    low, high = 1, MAX_SEEDS
    if power(effect, variances, high, level) < POWER:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if power(effect, variances, middle, level) < POWER:
            low = middle
        else:
            high = middle
    return high
