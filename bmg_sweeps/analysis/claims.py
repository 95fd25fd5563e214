"""What a sweep claims, decided by its points as far as they can.

A claim compares two quantities: it says that one is more, or that the two are equal
within a margin. `verdicts` has the words and what stands behind them. Where there are
tasks beside the seeds, means of seeds are compared; or a statistic over tasks, of which
runs are resampled within each task. Without any spread between seeds there is nothing
that a difference could be measured by, and the claim is open.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np

from bmg_sweeps.analysis import (
    at_budget,
    differences,
    estimates,
    intervals,
    selection,
    verdicts,
)
from bmg_sweeps.analysis.differences import Difference
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.intervals import Interval
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.analysis.verdicts import Verdict
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.display import Claim, Quantity

NO_SPREAD = "no spread between seeds"
NO_MARGIN = "equal_within = None: no margin says how much is equal"


@dataclasses.dataclass(frozen=True)
class Reading:
    """A quantity's numbers, of what is selected of its method."""

    quantity: Quantity
    score: Score
    by_seed: Mapping[object, float]
    numbers: np.ndarray | None = None  # [N, M] by seed and task; None where one lacks.

    def estimate(self, statistic: str | None) -> Estimate:
        """Mean over seeds, or a statistic over tasks; and its deviation over seeds."""
        if statistic is None or self.numbers is None:
            return estimates.estimate(self.by_seed.values())
        point = functools.partial(intervals.point_over_tasks, statistic)
        apart = estimates.estimate(point(seed[np.newaxis]) for seed in self.numbers)
        return dataclasses.replace(apart, mean=point(self.numbers))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decided:
    """A claim, the verdict, and what led to it."""

    claim: Claim
    verdict: Verdict = Verdict.OPEN
    reason: str = ""  # Why it is open, beside a wide interval.
    difference: Interval | float | None = None
    more: Reading | None = None
    less: Reading | None = None


def decide(results: Results) -> tuple[Decided, ...]:
    """Compares the quantities of each of a sweep's claims.

    Returns:
        One for each claim; all are open where nothing is selected on the sweep's axis.
    """
    axis, all_claims = results.sweep.select.axis, results.sweep.claims
    selected = results.selections.get(axis)
    if selected is None or selected.refused:
        reason = (selected and selected.refused) or f"no budgets of {axis}"
        return tuple(Decided(claim=claim, reason=reason) for claim in all_claims)
    last = selection.last_budget(results.chosen, axis)
    best = {s.method: s for s in selected.best if s.budget == last}
    found = [_compared(results, claim, best) for claim in all_claims]
    alone = {i: one for i, (_, one) in enumerate(found) if one is not None}
    together = verdicts.together([*alone.values()])
    words = dict(zip(alone, together, strict=True))
    return tuple(
        dataclasses.replace(one, verdict=words.get(i, Verdict.OPEN))
        for i, (one, _) in enumerate(found)
    )


def _compared(
    results: Results, claim: Claim, best: Mapping[str, Score]
) -> tuple[Decided, verdicts.Alone | None]:
    """Compares both quantities; a claim without a difference has no verdict."""
    more, less = (_reading(results, side, best) for side in claim.quantities)
    if isinstance(more, str) or isinstance(less, str):
        reason = more if isinstance(more, str) else str(less)
        return Decided(claim=claim, reason=reason), None
    one = Decided(claim=claim, more=more, less=less)
    reason = _why_not(results.sweep.select.over, claim, more, less)
    if reason:
        return dataclasses.replace(one, reason=reason), None
    difference = _difference(claim.over_tasks, more, less)
    if not isinstance(difference, Difference):
        return dataclasses.replace(one, reason=NO_SPREAD, difference=difference), None
    alone = _alone(claim, difference)
    is_unclear = _is_equality(claim) and claim.equal_within is None
    return (
        dataclasses.replace(
            one,
            difference=difference.interval(),
            reason=NO_MARGIN if is_unclear and alone.verdict == Verdict.OPEN else "",
        ),
        alone,
    )


def _why_not(
    over: Sequence[str], claim: Claim, more: Reading, less: Reading
) -> str | None:
    """Says why two readings cannot be compared."""
    if min(len(more.by_seed), len(less.by_seed)) < 2:
        return "one seed has no interval"
    if _tasks(over, more.score) != _tasks(over, less.score):
        return f"the two are of different values of {', '.join(over[1:])}"
    return None


def _alone(claim: Claim, difference: Difference) -> verdicts.Alone:
    if _is_equality(claim):
        return verdicts.that_equal(difference, claim.equal_within or 0.0)
    return verdicts.that_more(difference)


def _is_equality(claim: Claim) -> bool:
    return claim.are_equal or claim.equal_within is not None


def _tasks(over, score: Score) -> set[tuple]:
    return {estimates.task(over, p) for p in score.points}


def _reading(
    results: Results, quantity: Quantity, best: Mapping[str, Score]
) -> Reading | str:
    """Reads a quantity; or says why it has no numbers."""
    score = best.get(quantity.method)
    if score is None:
        is_there = quantity.method in results.methods
        none = "no configuration of {} is complete" if is_there else "no point is of {}"
        return none.format(quantity.method)
    rule = results.sweep.select
    values = _values(rule, quantity, score, results.members(score))
    if isinstance(values, str):
        return f"{quantity.method}: {values}"
    by_seed = estimates.by_seed(rule.over, score.points, values)
    numbers = estimates.matrix(rule.over, score.points, values)
    return Reading(quantity, score, by_seed, numbers)


def _values(
    rule: grid.Select, quantity: Quantity, score: Score, members
) -> list[float] | str:
    """Reads a column of each run, less another one if the quantity says so."""
    names = filter(None, (quantity.metric or rule.test or rule.metric, quantity.minus))
    amount, found = quantity.at or score.budget, []
    for name in names:
        if name == rule.test:
            values = _tests(rule, quantity, score, amount)
        else:
            values = at_budget.read_all(members, rule.axis, amount, name, quantity.last)
        if isinstance(values, str):
            return values
        found.append(values)
    return [column[0] - sum(column[1:]) for column in zip(*found, strict=True)]


def _tests(
    rule: grid.Select, quantity: Quantity, score: Score, amount: float
) -> list[float] | str:
    """Reads the tests of each run, at whichever amount the quantity is of."""
    values = [
        at_budget.look_up(rows, rule.axis, amount, rule.test, quantity.last)
        for rows in score.test_rows
    ]
    if not values or None in values:
        return f"not every {rule.over[0]} has {rule.test}"
    return values


def _difference(
    statistic: str | None, more: Reading, less: Reading
) -> Difference | float:
    """Compares in pairs where both are of the same runs."""
    if statistic and more.numbers is not None and less.numbers is not None:
        return differences.over_tasks(statistic, more.numbers, less.numbers)
    if {p.id for p in more.score.points} == {p.id for p in less.score.points}:
        pairs = [more.by_seed[seed] - less.by_seed[seed] for seed in more.by_seed]
        size = max(map(abs, (*more.by_seed.values(), *less.by_seed.values())))
        return differences.of_pairs(differences.mean(pairs, size=size))
    sides = (differences.mean([*one.by_seed.values()]) for one in (more, less))
    return differences.of_means(*sides)
