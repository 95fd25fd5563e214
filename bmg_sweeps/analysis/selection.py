"""The best configuration by validation, for every budget.

A configuration is a point without its seed. At a budget its score is the mean over its
seeds of the validation metric at the last row at or before the budget. Only complete
configurations are considered: every seed has trained to the budget and its number there
is finite. A crashed, diverged or partial configuration is listed with the reason, and
never chosen. Ties go to the smaller id, so that the choice does not depend on the order
of anything. Tests are read once the choice is made, for what was chosen.
"""

import bisect
import dataclasses
import functools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bmg_sweeps import errors, formatting
from bmg_sweeps.analysis import estimates, readings
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import display, grid
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
    test_values: tuple[float | None, ...] = ()  # Read for the best only, afterwards.
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
    best_by: Mapping[str, tuple[Score, ...]] = dataclasses.field(default_factory=dict)
    # By field: at the last budget, one for each of its values and each method.


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
            amounts[axis] = [stop[axis] * i / parts for i in range(1, parts + 1)]
    if not amounts:
        raise errors.UserError(
            f"--stop {', '.join(stop)}: expected {select.axis}=N, on which the "
            f"budgets are measured"
        )
    return amounts


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
    scores, left_out, best = [], [], []
    for amount in amounts:
        here = []
        for members in configurations.values():
            result = _score(sweep, members, axis, amount)
            (here if isinstance(result, Score) else left_out).append(result)
        scores += here
        for method in [*sweep.methods, "other"]:
            rivals = [score for score in here if score.method == method]
            if rivals:
                best.append(min(rivals, key=lambda s: _rank(sweep.select, s)))
    last = [score for score in scores if score.budget == amounts[-1]]
    best_by = {field: _best_by(sweep.select, last, field) for field in sweep.by}
    return Selection(axis, tuple(scores), tuple(left_out), tuple(best), None, best_by)


def measured(
    members: Sequence[readings.Trained],
    over: Sequence[str],
    axis: str,
    amount: float,
    measure: display.Measure,
) -> estimates.Estimate | str:
    """Reads a measure of one configuration at a budget.

    Args:
        members: its points.
        over: names of the fields that are averaged over.
        axis: that the budget is measured on.
        amount: the budget.
        measure: the column, and how much training its rows are averaged over.

    Returns:
        Its mean, and deviation over seeds; or why there is none.
    """
    values = read_column(members, axis, amount, measure.metric, measure.last)
    if isinstance(values, str):
        return values
    return estimates.over_runs(over, [one.point for one in members], values)


def read_column(
    members: Sequence[readings.Trained],
    axis: str,
    amount: float,
    metric: str,
    last: float | None = None,
) -> list[float] | str:
    """Reads a column of several points at a budget.

    Args:
        members: the points.
        axis: that the budget is measured on.
        amount: the budget.
        metric: the column.
        last: training before the budget whose rows are averaged; None is one row.

    Returns:
        A number for each point; or why there is none of the first that has none.
    """
    begin = None if last is None else amount - last
    values, reasons = _values(members, axis, amount, metric, begin)
    return next(filter(None, reasons), None) or values


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
    metric = sweep.select.test
    if metric is None:
        return result
    records = {one.point.id: one.record for one in trained}
    # The same configuration may be the best at many budgets.
    tests = functools.cache(lambda point_id: readings.tests(storage, records[point_id]))

    def tested(score: Score) -> Score:
        tables = [tests(p.id) for p in score.points]
        values = tuple(
            readings.value_at(t, score.axis, metric, score.budget) for t in tables
        )
        is_whole = all(value is not None for value in values)
        test = (
            estimates.over_runs(sweep.select.over, score.points, values)
            if is_whole
            else None
        )
        return dataclasses.replace(score, test_values=values, test=test)

    best = tuple(map(tested, result.best))
    best_by = {f: tuple(map(tested, scores)) for f, scores in result.best_by.items()}
    return dataclasses.replace(result, best=best, best_by=best_by)


def on_fresh_seeds(
    chosen: Chosen, scores: Sequence[Score], seeds: Sequence[int]
) -> tuple[Point, ...]:
    """Makes the points that run selected configurations again on fresh seeds.

    Args:
        chosen: the sweep that they were selected from.
        scores: of the configurations.
        seeds: that none of the sweep's points has.

    Returns:
        Each configuration with each seed, on all tasks that it was selected on.

    Raises:
        UserError: a seed was used in the selection, or the first field that scores
            are averaged over is no seed.
    """
    field = chosen.sweep.select.over[0]
    used = {p.values[field] for p in chosen.points}
    if not all(type(value) is int for value in used):
        raise errors.UserError(
            f"--seeds: expected a sweep whose select.over begins with its seed; "
            f"{chosen.name} begins with {field!r}"
        )
    if again := [seed for seed in seeds if seed in used]:
        raise errors.UserError(
            f"--seeds: {field} {again[0]} was used in the selection; expected fresh "
            f"ones"
        )
    points = [p.replaced(**{field: n}) for s in scores for n in seeds for p in s.points]
    return tuple({p.id: p for p in points}.values())


def as_json(sweep: grid.Sweep, score: Score) -> dict[str, Any]:
    """Writes a selected configuration as values that JSON has."""
    return {
        "method": score.method,
        "budget": {score.axis: score.budget},
        "metric": sweep.select.metric,
        "mean": score.estimate.mean,
        "deviation": score.estimate.deviation,
        "test": dataclasses.asdict(score.test) if score.test else None,
        "trainer": score.configuration.trainer,
        "configuration": score.configuration.values,
        "points": [p.id for p in score.points],
    }


def _rank(select: grid.Select, score: Score) -> tuple[float, str]:
    mean = score.estimate.mean
    return -mean if select.mode == "max" else mean, score.configuration.id


def _score(
    sweep: grid.Sweep, members: Sequence[readings.Trained], axis: str, amount: float
) -> Score | LeftOut:
    """Scores one configuration at one budget, or says why it cannot be."""
    rule = sweep.select
    configuration = members[0].point.configuration(rule.over)
    method = grid.method_of(sweep, configuration.values)
    values, reasons = _values(members, axis, amount, rule.metric)
    for one, reason in zip(members, reasons, strict=True):
        if reason:
            seed = ", ".join(f"{f} {one.point.values[f]}" for f in rule.over)
            return LeftOut(method, configuration, amount, f"{seed}: {reason}")
    points = tuple(one.point for one in members)
    return Score(
        method=method,
        configuration=configuration,
        axis=axis,
        budget=amount,
        points=points,
        values=tuple(values),
        estimate=estimates.over_runs(rule.over, points, values),
    )


def _values(
    members: Sequence[readings.Trained],
    axis: str,
    amount: float,
    metric: str,
    begin: float | None = None,
) -> tuple[list[float | None], list[str | None]]:
    """Reads each point's number at a budget, and says why where it has none."""
    reasons = [_incomplete(one, axis, amount, metric) for one in members]
    if any(reasons):
        return [], reasons
    values = [
        readings.value_at(one.table(metric), axis, metric, amount)
        if begin is None
        else _mean(one.table(metric), axis, metric, begin, amount)
        for one in members
    ]
    return values, [
        _without_value(one, metric, axis, amount) if value is None else None
        for one, value in zip(members, values, strict=True)
    ]


def _mean(rows: store.Rows, axis: str, metric: str, begin: float, end: float):
    """Averages a column between two amounts; None where that is not finite."""
    first, last = (bisect.bisect_right(rows.get(axis, ()), n) for n in (begin, end))
    values = rows[metric][first:last] if metric in rows else []
    return statistics.fmean(values) if values and None not in values else None


def _best_by(rule: grid.Select, scores: Sequence[Score], field: str):
    """Chooses among the configurations that have one value of a field."""
    rivals: dict[tuple, list[Score]] = {}
    for score in scores:
        key = score.configuration.values[field], score.method
        rivals.setdefault(key, []).append(score)
    best = [min(group, key=lambda s: _rank(rule, s)) for group in rivals.values()]
    return tuple(sorted(best, key=lambda s: s.configuration.values[field]))


def _without_value(one: readings.Trained, metric: str, axis: str, amount: float) -> str:
    """Says why a point that has trained to a budget has no number there."""
    table = one.table(metric)
    if metric not in table:
        return f"{metric} is no column of its rows"
    if not bisect.bisect_right(table[axis], amount):
        return f"no row before {amount:g} {axis}"
    return f"{metric} is not finite"


def _incomplete(
    one: readings.Trained, axis: str, amount: float, metric: str
) -> str | None:
    """Says why a point's number at a budget does not count; None where it does."""
    if one.record.damage:
        return f"damaged record ({one.record.damage})"
    width = one.record.provenance.pack_width or 1
    if width > 1 and (readings.is_timed(axis) or readings.is_timed(metric)):
        return f"ran in a pack of {width}, whose hours are not its own"
    if one.record.progress.get(axis, 0) >= amount:
        return None
    failure = one.record.failure
    if failure:
        return errors.one_line(f"{failure.kind} ({store.reason(failure)})")
    reached = one.record.progress.get(axis, 0)
    return f"trained to {formatting.amount(reached)} {axis}" if reached else "not run"
