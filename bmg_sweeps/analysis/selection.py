"""The best configuration by validation, for every budget.

A configuration is a point without its seed. At a budget its score is the mean over its
seeds of the validation metric at the last row at or before the budget. Only complete
configurations are considered: they have every seed that their method has, on every one
of its tasks; each run has trained to the budget, and its number there is finite. A
crashed, diverged or partial configuration is listed with the reason, and never chosen.
Ties go to the smaller id, so that the choice does not depend on the order of anything.
Tests are read once the choice is made, for what was chosen.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bmg_sweeps import errors
from bmg_sweeps.analysis import at_budget, estimates, folds, readings
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.sweep.point import Point


@dataclasses.dataclass(frozen=True)
class Score:
    """A complete configuration at a budget."""

    method: str
    configuration: Point
    axis: str
    budget: float
    points: tuple[Point, ...]  # One for each combination of what is averaged over.
    values: tuple[float, ...]  # The validation metric of each point.
    estimate: estimates.Estimate  # Their mean.
    read_at: float  # The earliest row that was read for this budget.
    # Read for the best only, afterwards: rows of tests of each point, and its value.
    test_rows: tuple[store.Rows, ...] = dataclasses.field(default=(), repr=False)
    test_values: tuple[float | None, ...] = ()
    test: estimates.Estimate | None = None  # Their mean, where all are finite.


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """A configuration that is not considered at a budget, and why."""

    method: str
    configuration: Point
    budget: float
    reason: str


@dataclasses.dataclass(frozen=True)
class Selection:
    """Everything that was considered for a sweep on one axis, and the best of it."""

    axis: str
    scores: tuple[Score, ...] = ()  # All budgets, methods and configurations.
    left_out: tuple[LeftOut, ...] = ()
    best: tuple[Score, ...] = ()  # One for each budget and method that has any.
    refused: str | None = None  # Why nothing can be selected on this axis.
    # By budget and method, of what a method may have chosen with two seeds or more;
    # made afterwards.
    held_out: Mapping[tuple[float, str], folds.HeldOut] = dataclasses.field(
        default_factory=dict
    )
    best_by: Mapping[str, tuple[Score, ...]] = dataclasses.field(default_factory=dict)
    # By field: at the last budget, one for each of its values and each method.
    # By budget and method: the complete ones, and those of which runs diverged.
    candidates: Mapping[tuple[float, str], Sequence[folds.Candidate]] = (
        dataclasses.field(default_factory=dict, repr=False)
    )

    def apart(self, score: Score) -> folds.HeldOut | None:
        """Returns what is held out of a score's method at its budget."""
        return self.held_out.get((score.budget, score.method))


class Rungs(NamedTuple):
    """Where successive halving stops configurations, and how many of them."""

    axis: str
    amounts: tuple[float, ...]  # Ascending.
    keep_one_in: int  # η ≥ 2.


def budgets(select: grid.Select, stop: Mapping[str, float]) -> dict[str, list[float]]:
    """Works out the budgets of each axis.

    Args:
        select: how the sweep selects.
        stop: how far its points train.

    Returns:
        Amounts by axis, ascending.

    Raises:
        UserError: the stop rule does not say how far an axis goes that it divides.
    """
    amounts = {}
    for axis, parts in select.budgets.items():
        if not isinstance(parts, int):
            amounts[axis] = list(parts)
        elif axis in stop:
            # The last is the stop rule itself: 0.1 * 3 / 3 is more than 0.1.
            parts_before = [stop[axis] * i / parts for i in range(1, parts)]
            amounts[axis] = [*parts_before, float(stop[axis])]
    if not amounts:
        raise errors.UserError(
            f"--stop {', '.join(stop)}: expected {select.axis}=N, on which the "
            f"budgets are measured"
        )
    return amounts


def first_axis(chosen: Chosen) -> str:
    """Returns the first axis that has budgets, as its stop rule may lack the others."""
    return next(iter(budgets(chosen.sweep.select, chosen.stop)))


def last_budget(chosen: Chosen, axis: str) -> float:
    """Returns the last of the budgets of an axis."""
    return budgets(chosen.sweep.select, chosen.stop)[axis][-1]


def select(
    sweep: grid.Sweep,
    trained: Sequence[readings.Trained],
    axis: str,
    amounts: Sequence[float],
) -> Selection:
    """Scores every configuration at every budget and chooses the best of each method.

    Args:
        sweep: says what decides, and which methods there are.
        trained: the sweep's points.
        axis: that the budgets are measured on.
        amounts: the budgets.

    Returns:
        Scores, what was left out, and the best.
    """
    refused = readings.refusal(trained, axis, sweep.select.metric)
    if refused:
        return Selection(axis, refused=refused)
    configurations = readings.by_configuration(trained, sweep.select.over)
    lacking = _lacking(sweep, configurations)
    scores, left_out, best = [], [], []
    candidates: dict[tuple[float, str], list[folds.Candidate]] = {}
    for amount in amounts:
        here: list[Score] = []
        for key, members in configurations.items():
            result, runs = _score(sweep, members, axis, amount, lacking.get(key))
            if isinstance(result, Score):
                here.append(result)
            else:
                left_out.append(result)
            if runs:
                candidates.setdefault((amount, result.method), []).append(runs)
        scores += here
        for method in [*sweep.methods, "other"]:
            rivals = [score for score in here if score.method == method]
            if rivals:
                best.append(min(rivals, key=lambda s: _rank(sweep.select, s)))
    last = [score for score in scores if score.budget == amounts[-1]]
    return Selection(
        axis,
        tuple(scores),
        tuple(left_out),
        tuple(best),
        best_by={field: _best_by(sweep.select, last, field) for field in sweep.by},
        candidates=candidates,
    )


def with_held_out(sweep: grid.Sweep, result: Selection) -> Selection:
    """Chooses again by part of the seeds, which a launch on its way does without."""
    held_out = {
        (amount, method): apart
        for (amount, method), runs in result.candidates.items()
        if (apart := folds.make(sweep.select, method, amount, runs))
    }
    return dataclasses.replace(result, held_out=held_out)


def with_tests(
    storage: files.Storage,
    sweep: grid.Sweep,
    trained: Sequence[readings.Trained],
    result: Selection,
) -> Selection:
    """Reads the test metric of the chosen configurations, now that they are chosen.

    Args:
        sweep: says which column that is, if any.
        trained: the sweep's points.
        result: the choice.

    Returns:
        The same, with tests in `best`.
    """
    rule = sweep.select
    if rule.test is None:
        return result
    runs = {one.point.id: one for one in trained}
    # The same configuration may be the best at many budgets.
    tests = functools.cache(lambda i: readings.tests(storage, runs[i].record))
    return dataclasses.replace(
        result,
        best=tuple(_tested(rule, score, tests) for score in result.best),
        best_by={
            field: tuple(_tested(rule, score, tests) for score in scores)
            for field, scores in result.best_by.items()
        },
        held_out={
            key: _tested_apart(rule, result.axis, one, runs, tests)
            for key, one in result.held_out.items()
        },
    )


def _tested(
    rule: grid.Select, score: Score, tests: Callable[[str], store.Rows]
) -> Score:
    """Reads the tests of a configuration."""
    rows = tuple(tests(p.id) for p in score.points)
    values = tuple(
        readings.value_at(table, score.axis, rule.test or "", score.budget)
        for table in rows
    )
    numbers = [value for value in values if value is not None]
    is_whole = len(numbers) == len(values)
    test = estimates.over_runs(rule.over, score.points, numbers) if is_whole else None
    return dataclasses.replace(score, test_rows=rows, test_values=values, test=test)


def _tested_apart(
    rule: grid.Select,
    axis: str,
    apart: folds.HeldOut,
    runs: Mapping[str, readings.Trained],
    tests: Callable[[str], store.Rows],
) -> folds.HeldOut:
    """Reads the tests of the runs that are read where other seeds have chosen."""
    rows = {p.id: tests(p.id) for p in apart.points}
    found = dataclasses.replace(apart, test_rows=rows)
    return folds.with_estimate(
        found,
        rule,
        lambda p: at_budget.read_test(runs[p.id], rows[p.id], rule, axis, apart.budget),
    )


def on_fresh_seeds(
    chosen: Chosen,
    scores: Sequence[Score],
    seeds: Sequence[int],
    option: str = "--seeds",
) -> tuple[Point, ...]:
    """Makes the points that run selected configurations again on fresh seeds.

    Args:
        chosen: the sweep that they were selected from.
        scores: of the configurations.
        seeds: that none of the sweep's points has.
        option: of the command line, which says them.

    Returns:
        Each configuration with each seed, on all tasks that it was selected on.

    Raises:
        UserError: a seed was used in the selection, or scores are not averaged over
            a seed.
    """
    field = chosen.sweep.select.over[0]
    used = {p.values[field] for p in chosen.points}
    if not all(type(value) is int for value in used):
        raise errors.UserError(
            f"{option}: expected a sweep whose select.over has its seed; "
            f"{chosen.name} has {field!r}"
        )
    if again := [seed for seed in seeds if seed in used]:
        raise errors.UserError(
            f"{option}: {field} {again[0]} was used in the selection; expected fresh "
            f"ones"
        )
    points = [p.replaced(**{field: n}) for s in scores for n in seeds for p in s.points]
    return tuple({p.id: p for p in points}.values())


def as_json(sweep: grid.Sweep, selected: Selection, score: Score) -> dict[str, Any]:
    """Writes a selected configuration as values that JSON has."""
    apart = selected.apart(score)
    return {
        "method": score.method,
        "budget": {score.axis: score.budget},
        "metric": sweep.select.metric,
        "mean": score.estimate.mean,
        "deviation": score.estimate.deviation,
        "test": dataclasses.asdict(score.test) if score.test else None,
        "held_out": apart and _apart_as_json(apart),
        "trainer": score.configuration.trainer,
        "configuration": score.configuration.values,
        "points": [p.id for p in score.points],
    }


def _apart_as_json(apart: folds.HeldOut) -> dict[str, Any]:
    """Writes what is held out, or why there is nothing; and what is like the best."""
    estimate = apart.estimate
    return {
        "mean": estimate and estimate.mean,
        "deviation": estimate and estimate.deviation,
        "reason": apart.reason or None,
        "configurations": apart.num_configurations,
        "like_the_best": [p.values for p in apart.alike],
        "is_rough": apart.is_rough,
    }


def ranked(select: grid.Select, scores: Iterable[Score]) -> list[Score]:
    """Orders scores of one budget, the best first."""
    return sorted(scores, key=lambda score: _rank(select, score))


def _rank(select: grid.Select, score: Score) -> tuple[float, str]:
    mean = score.estimate.mean
    return -mean if select.mode == "max" else mean, score.configuration.id


def _lacking(
    sweep: grid.Sweep, configurations: Mapping[str, Sequence[readings.Trained]]
) -> dict[str, str]:
    """Says which configurations lack a run that the grid of their method has.

    That grid is all of its seeds on all of its tasks: a mean over one seed is no rival
    of a mean over five, nor one of an easy task of one of two.
    """
    over = sweep.select.over
    by_method: dict[str, list[str]] = {}
    for key, members in configurations.items():
        method = grid.method_of(sweep, members[0].point.values)
        by_method.setdefault(method, []).append(key)
    found = {}
    for keys in by_method.values():
        runs = {key: {_run(over, m.point) for m in configurations[key]} for key in keys}
        every = set().union(*runs.values())
        seeds, tasks = ({run[part] for run in every} for part in (0, 1))
        for key in keys:
            missing = [r for r in itertools.product(seeds, tasks) if r not in runs[key]]
            if missing:
                found[key] = _no_point(over, missing, len(seeds) * len(tasks))
    return found


def _run(over: Sequence[str], point: Point) -> tuple[Any, tuple[Any, ...]]:
    """Returns the seed of a run, and what it is of beside it."""
    return point.values[over[0]], estimates.task(over, point)


def _no_point(over: Sequence[str], missing: Iterable[tuple], whole: int) -> str:
    (seed, task), *others = sorted(missing)
    first = _named(over, (seed, *task))
    lacks = f" and {len(others)} more" if others else ""
    return f"no point of {first}{lacks}; the method has {whole} of each"


def _named(over: Sequence[str], values: Iterable[Any]) -> str:
    return ", ".join(f"{f} {value}" for f, value in zip(over, values, strict=True))


def _score(
    sweep: grid.Sweep,
    members: Sequence[readings.Trained],
    axis: str,
    amount: float,
    lacking: str | None,
) -> tuple[Score | LeftOut, folds.Candidate | None]:
    """Scores one configuration at one budget, or says why it cannot be.

    Returns:
        What it is to the plain choice, and to one by part of the seeds: there it counts
        also where runs have diverged.
    """
    rule = sweep.select
    configuration = members[0].point.configuration(rule.over)
    method = grid.method_of(sweep, configuration.values)
    if lacking:
        return LeftOut(method, configuration, amount, lacking), None
    points = tuple(one.point for one in members)
    values = [at_budget.read(one, axis, amount, rule.metric) for one in members]
    candidate = folds.Candidate(configuration, points, tuple(values))
    numbers, failed = [], False
    why = ""
    for p, value in zip(points, values, strict=True):
        if isinstance(value, at_budget.Missing):
            run = _named(rule.over, (p.values[f] for f in rule.over))
            why = why or f"{run}: {value.reason}"
            failed |= not value.is_divergence
        else:
            numbers.append(value)
    if why:
        left_out = LeftOut(method, configuration, amount, why)
        return left_out, None if failed else candidate
    rows = (readings.row_at(m.table(rule.metric), axis, amount) for m in members)
    score = Score(
        method=method,
        configuration=configuration,
        axis=axis,
        budget=amount,
        points=points,
        values=tuple(numbers),
        estimate=estimates.over_runs(rule.over, points, numbers),
        read_at=min(row for row in rows if row is not None),
    )
    return score, candidate


def _best_by(rule: grid.Select, scores: Sequence[Score], field: str):
    """Chooses among the configurations that have one value of a field."""
    rivals: dict[tuple, list[Score]] = {}
    for score in scores:
        key = score.configuration.values[field], score.method
        rivals.setdefault(key, []).append(score)
    best = [min(group, key=lambda s: _rank(rule, s)) for group in rivals.values()]
    return tuple(sorted(best, key=lambda s: s.configuration.values[field]))
