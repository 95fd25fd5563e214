"""What a sweep claims, decided by its points as far as they can.

A claim compares two quantities. It is supported where the 95 % interval of their
difference lies above 0, and contradicted where it lies below; else it is open. That two
are equal cannot be shown: such a claim is contradicted, or not. Where there are tasks
beside the seeds, means of seeds are compared; or a statistic over tasks, of which runs
are resampled within each task.
"""

import dataclasses
import enum
import functools
from collections.abc import Mapping

import numpy as np

from bmg_sweeps.analysis import estimates, intervals, selection
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.intervals import Interval
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.display import Claim, Quantity


class Verdict(enum.StrEnum):
    """What points say about a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_CONTRADICTED = "not contradicted"  # The claim is that two are equal.
    OPEN = "open"


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
    verdict: Verdict
    reason: str = ""  # Why there is no difference.
    difference: Interval | None = None
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
        return tuple(
            Decided(claim=claim, verdict=Verdict.OPEN, reason=reason)
            for claim in all_claims
        )
    last = selection.last_budget(results.chosen, axis)
    best = {s.method: s for s in selected.best if s.budget == last}
    return tuple(_decided(results, claim, best) for claim in all_claims)


def _decided(results: Results, claim: Claim, best: Mapping[str, Score]) -> Decided:
    more, less = (_reading(results, side, best) for side in claim.quantities)
    if isinstance(more, str) or isinstance(less, str):
        reason = more if isinstance(more, str) else str(less)
        return Decided(claim=claim, verdict=Verdict.OPEN, reason=reason)
    over = results.sweep.select.over
    if min(len(more.by_seed), len(less.by_seed)) < 2:
        reason = "one seed has no interval"
    elif _tasks(over, more.score) != _tasks(over, less.score):
        reason = f"the two are of different values of {', '.join(over[1:])}"
    elif claim.over_tasks and (more.numbers is None or less.numbers is None):
        reason = f"not every {over[0]} has every {over[1]}"
    else:
        difference = _difference(claim.over_tasks, more, less)
        return Decided(
            claim=claim,
            verdict=_verdict(claim, difference),
            difference=difference,
            more=more,
            less=less,
        )
    return Decided(
        claim=claim, verdict=Verdict.OPEN, reason=reason, more=more, less=less
    )


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
    if rule.test and (quantity.metric, quantity.at, quantity.last) == (None,) * 3:
        values = score.test_values
        if score.test is None:
            return f"{quantity.method}: not every seed has {rule.test}"
    else:
        values = _columns(rule, quantity, results.members(score), score.budget)
        if isinstance(values, str):
            return f"{quantity.method}: {values}"
    by_seed = estimates.by_seed(rule.over, score.points, values)
    numbers = estimates.matrix(rule.over, score.points, values)
    return Reading(quantity, score, by_seed, numbers)


def _columns(
    rule: grid.Select, quantity: Quantity, members, budget: float
) -> list[float] | str:
    """Reads a column of each run, less another one if the quantity says so."""
    names = filter(None, (quantity.metric or rule.metric, quantity.minus))
    found = []
    for name in names:
        values = selection.read_column(
            members, rule.axis, quantity.at or budget, name, quantity.last
        )
        if isinstance(values, str):
            return values
        found.append(values)
    return [column[0] - sum(column[1:]) for column in zip(*found, strict=True)]


def _difference(statistic: str | None, more: Reading, less: Reading) -> Interval:
    """Compares in pairs where both are of the same runs."""
    if statistic and more.numbers is not None and less.numbers is not None:
        return intervals.difference_over_tasks(statistic, more.numbers, less.numbers)
    if {p.id for p in more.score.points} == {p.id for p in less.score.points}:
        pairs = [more.by_seed[seed] - less.by_seed[seed] for seed in more.by_seed]
        return intervals.of_pairs(pairs)
    return intervals.of_difference([*more.by_seed.values()], [*less.by_seed.values()])


def _verdict(claim: Claim, difference: Interval) -> Verdict:
    if claim.are_equal:
        is_zero_within = difference.low <= 0 <= difference.high
        return Verdict.NOT_CONTRADICTED if is_zero_within else Verdict.CONTRADICTED
    if difference.low > 0:
        return Verdict.SUPPORTED
    return Verdict.CONTRADICTED if difference.high < 0 else Verdict.OPEN
