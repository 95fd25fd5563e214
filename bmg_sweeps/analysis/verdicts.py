"""Verdicts on several comparisons at once, which together are seldom wrong.

Of ten claims that are all about nothing, each decided at 5 %, one or more is decided
wrongly in 40 % of reports. So the smallest of their probabilities must pass 5 % / 10,
the next one 5 % / 9, and so on; what passes only by its own interval leans.

Source: Holm (1979), "A Simple Sequentially Rejective Multiple Test Procedure".
"""

import enum
from collections.abc import Sequence
from typing import NamedTuple

from bmg_sweeps.analysis.differences import Difference

LEVEL = 0.05


class Verdict(enum.StrEnum):
    """What points say about a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    LEANS_TO_SUPPORTED = "leans to supported"
    LEANS_TO_CONTRADICTED = "leans to contradicted"
    OPEN = "open"

    @property
    def is_decided(self) -> bool:
        """Whether it is more than a leaning."""
        return self in (Verdict.SUPPORTED, Verdict.CONTRADICTED)


_LEANING = {
    Verdict.SUPPORTED: Verdict.LEANS_TO_SUPPORTED,
    Verdict.CONTRADICTED: Verdict.LEANS_TO_CONTRADICTED,
    Verdict.OPEN: Verdict.OPEN,
}


class Alone(NamedTuple):
    """A verdict by a claim's own interval, and how probable it is by chance alone."""

    verdict: Verdict
    chance: float  # The p-value.


def that_more(difference: Difference) -> Alone:
    """Judges that a difference is above 0: by its two-sided 95 % interval."""
    low, high = difference.below(0.0), difference.above(0.0)
    word = Verdict.SUPPORTED if low < high else Verdict.CONTRADICTED
    return _alone(word, 2 * min(low, high))


def that_equal(difference: Difference, within: float) -> Alone:
    """Judges that a difference lies within ±δ.

    It is supported where the 90 % interval lies inside, which is two one-sided tests at
    5 %, and contradicted where the 95 % interval lies outside; else it is open.

    Source: Schuirmann (1987), "A comparison of the two one-sided tests procedure".

    Args:
        difference: of two quantities.
        within: δ ≥ 0. Nothing supports a claim within 0.
    """
    inside = max(difference.below(-within), difference.above(within))
    if inside < LEVEL:
        return _alone(Verdict.SUPPORTED, inside)
    outside = 2 * min(difference.below(within), difference.above(-within))
    return _alone(Verdict.CONTRADICTED, outside)


def together(alone: Sequence[Alone]) -> list[Verdict]:
    """Judges several claims, so that any is wrong in no more than 5 % of reports.

    Args:
        alone: the verdict of each by itself.

    Returns:
        The verdicts, in the same order; those that do not pass lean.
    """
    found = [_LEANING[one.verdict] for one in alone]
    order = sorted(range(len(alone)), key=lambda place: alone[place].chance)
    for rank, place in enumerate(order):
        if alone[place].chance >= LEVEL / (len(alone) - rank):
            break
        found[place] = alone[place].verdict
    return found


def _alone(verdict: Verdict, chance: float) -> Alone:
    return Alone(verdict if chance < LEVEL else Verdict.OPEN, min(chance, 1.0))
