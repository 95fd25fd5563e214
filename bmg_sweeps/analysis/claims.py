"""What a sweep claims, decided by its points as far as they can.

A claim compares two quantities: it says that one is more, or that the two are equal
within a margin. `verdicts` has the words and what stands behind them. Where there are
tasks beside the seeds, each seed has one number: the mean over its tasks, or another
statistic over them. Without any spread between seeds there is nothing that a difference
could be measured by, and the claim is open.

Where a method had a choice of configurations, the numbers that decide are those of
seeds that did not choose (`held_out`): its own are too high, by more the more there
were to choose from. What the seeds that chose say stands beside it, as the plain
verdict. A claim that is not decided says how many fresh seeds would decide it
(`power`).
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bmg_sweeps.analysis import (
    at_budget,
    differences,
    estimates,
    folds,
    held_out,
    intervals,
    power,
    readings,
    selection,
    verdicts,
)
from bmg_sweeps.analysis.at_budget import Missing
from bmg_sweeps.analysis.differences import Difference
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.intervals import Interval
from bmg_sweeps.analysis.readings import Trained
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.analysis.verdicts import Verdict
from bmg_sweeps.records import store
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.display import Claim, Quantity
from bmg_sweeps.sweep.point import Point

NO_SPREAD = "no spread between seeds"
NO_MARGIN = "equal_within = None: no margin says how much is equal"


@dataclasses.dataclass(frozen=True)
class Reading:
    """A quantity's numbers, of what is selected of its method."""

    quantity: Quantity
    score: Score
    by_seed: Mapping[Any, float]
    numbers: np.ndarray | None = None  # [N, M] by seed and task; None where one lacks.
    # By seed, of what other seeds chose, or why there is none; None without a choice.
    apart: Mapping[object, float] | str | None = None

    def estimate(self, statistic: str | None) -> Estimate:
        """Mean and deviation over seeds, each of which has one number: `of_seeds`."""
        return estimates.estimate(self.of_seeds(statistic).values())

    def of_seeds(self, statistic: str | None) -> dict[Any, float]:
        """The mean of each seed over its tasks, or another statistic over them."""
        if statistic is None or self.numbers is None:
            return dict(self.by_seed)
        points = [_point(statistic, seed[np.newaxis]) for seed in self.numbers]
        return dict(zip(sorted(self.by_seed), points, strict=True))

    @property
    def held_out(self) -> float | None:
        """The mean of what other seeds chose; None where there is none."""
        is_there = isinstance(self.apart, Mapping)
        return estimates.estimate(self.apart.values()).mean if is_there else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decided:
    """A claim, the verdict, and what led to it."""

    claim: Claim
    verdict: Verdict = Verdict.OPEN
    reason: str = ""  # Why it is open, beside a wide interval.
    difference: Interval | float | None = None
    # Of the seeds that chose, by its own interval; None where there was no choice.
    plain: "Decided | None" = None
    more: Reading | None = None
    less: Reading | None = None
    # Fresh seeds of each side that would decide it; None where it is decided, or
    # nothing tells how many.
    lacking: power.Range | None = None


def decide(results: Results) -> tuple[Decided, ...]:
    """Compares the quantities of each of a sweep's claims.

    Returns:
        One for each claim, at the last budget of the first axis that there is; all are
        open where nothing may be selected on it.
    """
    selected, all_claims = results.first, results.sweep.claims
    refused = selected.refused
    if refused:
        return tuple(Decided(claim=claim, reason=refused) for claim in all_claims)
    last = selection.last_budget(results.chosen, selected.axis)
    best = {s.method: s for s in selected.best if s.budget == last}
    found = [_compared(results, claim, best) for claim in all_claims]
    alone = {i: one for i, (_, one) in enumerate(found) if one is not None}
    together = verdicts.together([*alone.values()])
    words = dict(zip(alone, together, strict=True))
    decided = [
        dataclasses.replace(one, verdict=words.get(i, Verdict.OPEN))
        for i, (one, _) in enumerate(found)
    ]
    level = verdicts.LEVEL / max(1, sum(not one.verdict.is_decided for one in decided))
    return tuple(
        dataclasses.replace(one, lacking=_lacking(one, level)) for one in decided
    )


def _compared(
    results: Results, claim: Claim, best: Mapping[str, Score]
) -> tuple[Decided, verdicts.Alone | None]:
    """Compares both quantities; a claim without a difference has no verdict."""
    rule, axis = results.sweep.select, results.first.axis
    refused = refusal(rule, axis, claim, results.trained)
    if refused:
        return Decided(claim=claim, reason=refused), None
    more, less = (
        _reading(results, side, best, claim.over_tasks) for side in claim.quantities
    )
    if isinstance(more, str) or isinstance(less, str):
        reason = more if isinstance(more, str) else str(less)
        return Decided(claim=claim, reason=reason), None
    one = Decided(claim=claim, more=more, less=less)
    reason = _why_not(rule.over, claim, more, less)
    if reason:
        return dataclasses.replace(one, reason=reason), None
    plain, alone = _judged(one, _difference(claim.over_tasks, more, less))
    if more.apart is None and less.apart is None:
        return plain, alone
    one = dataclasses.replace(one, plain=plain)
    for side in (more, less):
        if isinstance(side.apart, str):
            reason = f"{side.quantity.method}: {side.apart}"
            return dataclasses.replace(one, reason=reason), None
    return _judged(one, _difference_apart(claim.over_tasks, more, less))


def _judged(
    one: Decided, difference: Difference | float
) -> tuple[Decided, verdicts.Alone | None]:
    """Adds a difference to a claim, and the verdict by its own interval."""
    if not isinstance(difference, Difference):
        return dataclasses.replace(one, reason=NO_SPREAD, difference=difference), None
    alone = _alone(one.claim, difference)
    is_unclear = is_equality(one.claim) and one.claim.equal_within is None
    judged = dataclasses.replace(
        one,
        verdict=alone.verdict,
        difference=difference.interval(),
        reason=NO_MARGIN if is_unclear and alone.verdict == Verdict.OPEN else "",
    )
    return judged, alone


def _lacking(one: Decided, level: float) -> power.Range | None:
    """Says how many fresh seeds would decide a claim that one quantity is more.

    The effect is what is held out. The deviations are those of the configurations that
    are chosen, which the fresh seeds would be of.
    """
    more, less = one.more, one.less
    is_lacking = not one.verdict.is_decided and isinstance(one.difference, Interval)
    if not is_lacking or more is None or less is None or is_equality(one.claim):
        return None
    both = [side.of_seeds(one.claim.over_tasks) for side in (more, less)]
    if is_paired(more, less):
        of_seeds, size = pairs(*both)
        sides = [differences.mean(of_seeds, 1.0, size)]
    else:
        sides = [differences.mean([*by_seed.values()], 1.0) for by_seed in both]
    total = sum(side.variance for side in sides)
    if not total:
        return None
    freedom = total**2 / sum(side.variance**2 / side.freedom for side in sides)
    variances = [side.variance for side in sides]
    effect = one.difference.estimate
    return power.seeds_to_decide(effect, variances, freedom, level)


def refusal(
    rule: grid.Select, axis: str, claim: Claim, trained: Iterable[Trained]
) -> str | None:
    """Says why a claim's quantities cannot be compared at all; None if they can.

    Args:
        rule: says which columns decide and test.
        axis: that the budgets are measured on.
        claim: names the quantities.
        trained: the points; numbers of time and memory need a single device.
    """
    if axis != rule.axis and any(q.at or q.last for q in claim.quantities):
        return f"it names amounts of {rule.axis}, and budgets are of {axis}"
    names = [name for q in claim.quantities for name in _columns(rule, q)]
    return readings.refusal(trained, axis, *names)


def _columns(rule: grid.Select, quantity: Quantity) -> list[str]:
    """Names the column that is read, and the one that is taken off it, if any."""
    first = quantity.metric or rule.test or rule.metric
    return [first, quantity.minus] if quantity.minus else [first]


def _why_not(
    over: Sequence[str], claim: Claim, more: Reading, less: Reading
) -> str | None:
    """Says why two readings cannot be compared."""
    if min(len(more.by_seed), len(less.by_seed)) < 2:
        return "one seed has no interval"
    if tasks(over, more.score) != tasks(over, less.score):
        return f"the two are of different values of {', '.join(over[1:])}"
    return None


def _alone(claim: Claim, difference: Difference) -> verdicts.Alone:
    if is_equality(claim):
        return verdicts.that_equal(difference, claim.equal_within or 0.0)
    return verdicts.that_more(difference)


def is_equality(claim: Claim) -> bool:
    """Whether a claim says that two are equal, or so but for a margin."""
    return claim.are_equal or claim.equal_within is not None


def tasks(over: Sequence[str], score: Score) -> set[tuple]:
    """Returns what the runs of a score are of beside their seeds."""
    return {estimates.task(over, p) for p in score.points}


def _point(statistic: str, numbers: np.ndarray) -> float:
    return intervals.point_over_tasks(statistic, numbers)


def _reading(
    results: Results,
    quantity: Quantity,
    best: Mapping[str, Score],
    statistic: str | None,
) -> Reading | str:
    """Reads a quantity; or says why it has no numbers."""
    score = best.get(quantity.method)
    if score is None:
        is_there = quantity.method in results.methods
        none = "no configuration of {} is complete" if is_there else "no point is of {}"
        return none.format(quantity.method)
    rule, apart = results.sweep.select, results.first.apart(score)
    tests = dict(zip((p.id for p in score.points), score.test_rows, strict=False))
    tests |= apart.test_rows if apart else {}

    def value_of(p: Point) -> float | Missing:
        rows = tests.get(p.id, {})
        one, at = results.by_id[p.id], (score.axis, score.budget)
        return value(rule, quantity, one, rows, at)

    values: list[float] = []
    for p in score.points:
        number = value_of(p)
        if isinstance(number, Missing):
            return f"{quantity.method}: {number.reason}"
        values.append(number)
    return Reading(
        quantity,
        score,
        estimates.by_seed(rule.over, score.points, values),
        estimates.matrix(rule.over, score.points, values),
        _apart(rule, quantity, apart, value_of, statistic),
    )


def value(
    rule: grid.Select,
    quantity: Quantity,
    one: Trained,
    tests: store.Rows,
    budget: tuple[str, float],
) -> float | Missing:
    """Reads a column of one run, less another one if the quantity says so.

    Args:
        rule: says which columns decide and test.
        quantity: what is read.
        one: the run.
        tests: rows of its tests.
        budget: axis, and where a quantity is read that names no other amount.

    Returns:
        The number, or why there is none.
    """
    axis, amount = budget
    amount, last, found = quantity.at or amount, quantity.last, []
    for name in _columns(rule, quantity):
        if name == rule.test:
            number = at_budget.read_test(one, tests, rule, axis, amount, last)
        else:
            number = at_budget.read(one, axis, amount, name, last)
        if isinstance(number, Missing):
            return number
        found.append(number)
    return found[0] - sum(found[1:])


def _apart(
    rule: grid.Select,
    quantity: Quantity,
    apart: folds.HeldOut | None,
    value_of: Callable[[Point], float | Missing],
    statistic: str | None,
) -> Mapping[object, float] | str | None:
    """Reads a quantity where other seeds have chosen; None where none had a choice."""
    if apart is None or not apart.has_choice:
        return None
    floor = rule.floor if is_deciding(rule, quantity) else None
    return read_seeds(apart.decisive, value_of, floor, statistic, "folds")


def is_deciding(rule: grid.Select, quantity: Quantity) -> bool:
    """Whether a quantity is in the unit of the floor: what decides, or its test."""
    return _columns(rule, quantity) == [rule.test or rule.metric]


def read_seeds(
    runs: folds.Runs,
    value_of: Callable[[Point], float | Missing],
    floor: float | None,
    statistic: str | None,
    noun: str,
) -> dict[object, float] | str:
    """Reads a quantity of each seed: the mean over tasks, or a statistic.

    Args:
        runs: of each seed.
        value_of: reads the quantity of a run.
        floor: what counts where a run has diverged; None is nothing.
        statistic: over tasks; None is the mean.
        noun: what the seeds are where they diverge.

    Returns:
        A number by seed; or why there is none.
    """
    if statistic is None:
        return folds.read(runs, value_of, floor, noun=noun)

    def combine(numbers: Sequence[float]) -> float:
        return _point(statistic, np.array([numbers]))

    return folds.read(runs, value_of, floor, combine, noun)


def _difference(
    statistic: str | None, more: Reading, less: Reading
) -> Difference | float:
    """Compares the numbers of seeds, in pairs where both are of the same runs."""
    both = [side.of_seeds(statistic) for side in (more, less)]
    if is_paired(more, less):
        of_seeds, size = pairs(*both)
        return differences.of_pairs(differences.mean(of_seeds, size=size))
    sides = (differences.mean([*by_seed.values()]) for by_seed in both)
    return differences.of_means(*sides)


def _difference_apart(
    statistic: str | None, more: Reading, less: Reading
) -> Difference | float:
    """Compares what other seeds chose; a method without a choice has what it has."""
    ours, theirs = more.apart, less.apart
    if (
        isinstance(ours, Mapping)
        and isinstance(theirs, Mapping)
        and is_paired(more, less)
    ):
        of_seeds, size = pairs(ours, theirs)
        return differences.of_pairs(held_out.mean(of_seeds, size))
    sides = (
        held_out.mean([*one.apart.values()])
        if isinstance(one.apart, Mapping)
        else differences.mean([*one.of_seeds(statistic).values()])
        for one in (more, less)
    )
    return differences.of_means(*sides)


def is_paired(more: Reading, less: Reading) -> bool:
    """Whether two readings are of the same runs."""
    return {p.id for p in more.score.points} == {p.id for p in less.score.points}


def pairs(
    more: Mapping[object, float], less: Mapping[object, float]
) -> tuple[list[float], float]:
    """Takes seeds off each other; and says how large the numbers are."""
    size = max(map(abs, (*more.values(), *less.values())))
    return [more[seed] - less[seed] for seed in more], size
