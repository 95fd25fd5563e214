"""Several looks at the same claim, which together are wrong no more often than one.

Whoever looks at 5, 10, 15, 20 and 25 seeds, and stops where an interval of 95 % leaves
0 out, is wrong in 14 % of claims about nothing. Each look is made at a smaller level,
the same for all, so that any of them is wrong in α.

Source: Pocock (1977), "Group sequential methods in the design and analysis of clinical
trials"; Armitage, McPherson and Rowe (1969), "Repeated Significance Tests on
Accumulating Data", for the recursion.
"""

import functools
import math

from bmg_sweeps.analysis.intervals import Interval
from bmg_sweeps.analysis.verdicts import Verdict

_NODES = 8  # Of a quadrature, for each standard deviation of a step.


@functools.cache
def level(looks: int, alpha: float) -> float:
    """Returns the level of each of several looks, two-sided.

        P(max_{k ≤ K} |Z_k| > c) = α,  α' = 2 Φ(−c),  Z_k = S_k / √k

    S_k is a sum of k independent steps of N(0, 1), one for the seeds of each look.

    Args:
        looks: K ≥ 1. A hundred take two seconds.
        alpha: α, in which any look is wrong of a claim about nothing.

    Returns:
        α', such as 0.0158 of five looks at 0.05.
    """
    from scipy import optimize, special  # Not needed to plan, list or launch.

    least = -float(special.ndtri(alpha / 2))
    most = -float(special.ndtri(alpha / 2 / looks))  # Bonferroni's.
    if looks == 1:
        return alpha
    bound = optimize.brentq(lambda c: _crossed(c, looks) - alpha, least, most)
    return float(2 * special.ndtr(-bound))


def _crossed(bound: float, looks: int) -> float:
    """Says how probably any of the looks is beyond a bound.

    g_k(s) = ∫_{|u| ≤ c √(k−1)} g_{k−1}(u) φ(s − u) du,  1 − ∫_{|s| ≤ c √K} g_K(s) ds
    """
    import numpy as np
    from scipy import special

    before, mass = np.zeros(1), np.ones(1)  # All sums begin at 0.
    for look in range(1, looks + 1):
        edge = bound * math.sqrt(look)
        nodes, weights = special.roots_legendre(math.ceil(_NODES * edge))
        nodes, weights = edge * nodes, edge * weights
        steps = nodes[:, np.newaxis] - before
        density = np.exp(-(steps**2) / 2) @ mass / math.sqrt(2 * math.pi)
        before, mass = nodes, density * weights
    return 1 - float(mass.sum())


def verdict(difference: Interval, within: float | None = None) -> Verdict:
    """Judges a claim by the interval of one look.

    Args:
        difference: its interval is of 1 − α'.
        within: δ of a claim that two are equal; None of a claim that one is more.

    Returns:
        That one is more is supported where the interval lies above 0, and contradicted
        where it lies below. That two are equal is supported where it lies inside ±δ,
        and contradicted where it lies outside. All else is open.
    """
    low, high = difference.low, difference.high
    if within is not None and -within < low and high < within:
        return Verdict.SUPPORTED
    margin = within or 0.0
    is_above, is_below = low > margin, high < -margin
    if within is None and is_above:
        return Verdict.SUPPORTED
    return Verdict.CONTRADICTED if is_above or is_below else Verdict.OPEN
