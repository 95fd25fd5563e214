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
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bmg_sweeps import errors
from bmg_sweeps.launching import planning
from bmg_sweeps.launching.planning import Chosen
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.point import Point

_RATE = "_per_second"  # After the name of an axis, its amount by training seconds.


@dataclasses.dataclass(frozen=True)
class Trained:
    """A point, its record, and the rows that it left; no tests are among them."""

    point: Point
    record: store.Record
    rows: store.Rows
    validation: store.Rows = dataclasses.field(default_factory=dict)

    def table(self, metric: str) -> store.Rows:
        """Returns the rows that have a column: those of training or of validation."""
        return self.validation if metric in self.validation else self.rows


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean over runs, and the sample standard deviation over seeds."""

    mean: float
    deviation: float | None  # None with one seed.


@dataclasses.dataclass(frozen=True)
class Score:
    """A complete configuration at a budget."""

    method: str
    configuration: Point
    axis: str
    budget: float
    points: tuple[Point, ...]  # One for each combination of what is averaged over.
    values: tuple[float, ...]  # The validation metric of each point.
    estimate: Estimate  # Of these.
    test_values: tuple[float | None, ...] = ()  # Read for the best only, afterwards.
    test: Estimate | None = None  # Of these, where all are finite.


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


def load(storage: files.Storage, chosen: Chosen) -> list[Trained]:
    """Reads the records of a sweep's points, with their rows and validations.

    Args:
        storage: of the records.
        chosen: the sweep.

    Returns:
        One for each point; rows are empty where there are none or they are damaged.
    """
    keys = [(p.trainer, p.id) for p in chosen.points]
    records = store.scan(storage, keys)
    return [load_one(storage, p, records[p.id]) for p in chosen.points]


def load_one(storage: files.Storage, point: Point, record: store.Record) -> Trained:
    """Reads the rows of one point, as `load` does."""
    try:
        tables = [
            {} if record.damage else _table(storage, record, name)
            for name in ("rows", "validation")
        ]
    except store.Damaged as error:
        record = dataclasses.replace(record, damage=str(error))
        tables = [{}, {}]
    return Trained(point, record, *tables)


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
    sweep: grid.Sweep, trained: Sequence[Trained], axis: str, amounts: Sequence[float]
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
    refused = refusal(trained, axis, sweep.select.metric)
    if refused:
        return Selection(axis, refused=refused)
    configurations = by_configuration(trained, sweep.select.over)
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


def refusal(trained: Iterable[Trained], *names: str) -> str | None:
    """Says why points cannot be compared on an axis or by a column; None if they can.

    Args:
        trained: the points.
        *names: axes and columns; those that measure time need a single device.
    """
    devices = {d for one in trained for d in one.record.devices}
    timed = [name for name in names if is_timed(name)]
    if not timed or len(devices) < 2:
        return None
    return f"{timed[0]} on {' and '.join(sorted(devices))} cannot be compared"


def is_timed(name: str) -> bool:
    """Whether an axis or a column measures time, and so is the device's as well."""
    return name == "hours" or name.endswith(_RATE)


def measured(
    members: Sequence[Trained],
    over: Sequence[str],
    axis: str,
    amount: float,
    measure: grid.Measure,
) -> Estimate | str:
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
    values = readings(members, axis, amount, measure.metric, measure.last)
    if isinstance(values, str):
        return values
    return _estimate(over, [one.point for one in members], values)


def readings(
    members: Sequence[Trained],
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


def by_configuration(
    trained: Iterable[Trained], over: Sequence[str]
) -> dict[str, list[Trained]]:
    """Groups points that differ only in the fields that are averaged over.

    Args:
        trained: points, in any order.
        over: names of those fields.

    Returns:
        The points of each configuration, by its id, in the order of the first ones.
    """
    groups: dict[str, list[Trained]] = {}
    for one in trained:
        groups.setdefault(one.point.configuration(over).id, []).append(one)
    return groups


def at_budgets(chosen: Chosen, trained: Sequence[Trained]) -> dict[str, Selection]:
    """Selects at each of a sweep's budgets, as its reports do.

    Args:
        chosen: the sweep, its points and stop rule.
        trained: their records.

    Returns:
        As `select`, by axis.
    """
    return {
        axis: select(chosen.sweep, trained, axis, amounts)
        for axis, amounts in budgets(chosen.sweep.select, chosen.stop).items()
    }


def tested(
    storage: files.Storage, chosen: Chosen, trained: Sequence[Trained]
) -> list[Selection]:
    """Selects on every axis as `at_budgets` does, then reads tests as `with_tests`."""
    return [
        with_tests(storage, chosen.sweep, trained, result)
        for result in at_budgets(chosen, trained).values()
    ]


def with_tests(
    storage: files.Storage,
    sweep: grid.Sweep,
    trained: Sequence[Trained],
    result: Selection,
) -> Selection:
    """Reads the test metric of the chosen configurations, now that they are chosen.

    Args:
        storage: of the records.
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
    tests = functools.cache(lambda point_id: _tests(storage, records[point_id]))

    def tested(score: Score) -> Score:
        tables = [tests(p.id) for p in score.points]
        values = tuple(value_at(t, score.axis, metric, score.budget) for t in tables)
        is_whole = all(value is not None for value in values)
        test = _estimate(sweep.select.over, score.points, values) if is_whole else None
        return dataclasses.replace(score, test_values=values, test=test)

    best = tuple(map(tested, result.best))
    best_by = {f: tuple(map(tested, scores)) for f, scores in result.best_by.items()}
    return dataclasses.replace(result, best=best, best_by=best_by)


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


def value_at(rows: store.Rows, axis: str, metric: str, amount: float) -> float | None:
    """Looks a metric up at the last row at or before a budget.

    Args:
        rows: of one point.
        axis: the budget's column, ascending.
        metric: the column that is asked for.
        amount: the budget.

    Returns:
        The number; None where there is no such row or it was not finite there.
    """
    end = bisect.bisect_right(rows.get(axis, ()), amount)
    value = rows[metric][end - 1] if end and metric in rows else None
    return value if value is not None and math.isfinite(value) else None


def _table(storage: files.Storage, record: store.Record, name: str) -> store.Rows:
    """Reads a table whose axes ascend; raises Damaged for any other."""
    rows = store.rows(storage, record, name)
    rows = _with_times(rows, record.progress)
    for axis in (*record.progress, "training_seconds"):
        column = rows.get(axis, [])
        if None in column or column != sorted(column):
            raise store.Damaged(
                f"{record.manifest[name]['name']}: {axis} does not ascend"
            )
    return rows


def _with_times(rows: store.Rows, axes: Iterable[str]) -> store.Rows:
    """Adds training time in the unit of its budgets, and each axis by its seconds."""
    seconds = rows.get("training_seconds")
    if seconds is None or None in seconds:
        return rows
    rates = {
        axis + _RATE: [
            a / s if s else None for a, s in zip(rows[axis], seconds, strict=True)
        ]
        for axis in axes
        if axis in rows and None not in rows[axis]
    }
    return rows | rates | {"hours": [second / 3600 for second in seconds]}


def _tests(storage: files.Storage, record: store.Record) -> store.Rows:
    try:
        return _table(storage, record, "test")
    except store.Damaged:
        return {}


def by_seed(
    over: Sequence[str], points: Sequence[Point], values: Sequence[float]
) -> dict[Any, float]:
    """Averages each seed's values, over whatever else there is one of.

    Args:
        over: fields that are averaged over, the seed first.
        points: runs.
        values: a number of each.

    Returns:
        The means, by seed.
    """
    numbers: dict[Any, list[float]] = {}
    for p, value in zip(points, values, strict=True):
        numbers.setdefault(p.values[over[0]], []).append(value)
    return {seed: statistics.fmean(of_seed) for seed, of_seed in numbers.items()}


def estimate(values: Iterable[float]) -> Estimate:
    """Averages numbers, one a seed."""
    values = list(values)
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Estimate(statistics.fmean(values), deviation)


def _estimate(over, points: Sequence[Point], values: Sequence[float]) -> Estimate:
    """Averages over everything; deviates over the first field, the seeds."""
    of_seeds = estimate(by_seed(over, points, values).values())
    return dataclasses.replace(of_seeds, mean=statistics.fmean(values))


def _rank(select: grid.Select, score: Score) -> tuple[float, str]:
    mean = score.estimate.mean
    return -mean if select.mode == "max" else mean, score.configuration.id


def _score(
    sweep: grid.Sweep, members: Sequence[Trained], axis: str, amount: float
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
        estimate=_estimate(rule.over, points, values),
    )


def _values(
    members: Sequence[Trained],
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
        value_at(one.table(metric), axis, metric, amount)
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
    best = [min(of, key=lambda s: _rank(rule, s)) for of in rivals.values()]
    return tuple(sorted(best, key=lambda s: s.configuration.values[field]))


def _without_value(one: Trained, metric: str, axis: str, amount: float) -> str:
    """Says why a point that has trained to a budget has no number there."""
    table = one.table(metric)
    if metric not in table:
        return f"{metric} is no column of its rows"
    if not bisect.bisect_right(table[axis], amount):
        return f"no row before {amount:g} {axis}"
    return f"{metric} is not finite"


def _incomplete(one: Trained, axis: str, amount: float, metric: str) -> str | None:
    """Says why a point's number at a budget does not count; None where it does."""
    if one.record.damage:
        return f"damaged record ({one.record.damage})"
    width = one.record.provenance.get("pack_width", 1)
    if width > 1 and (is_timed(axis) or is_timed(metric)):
        return f"ran in a pack of {width}, whose hours are not its own"
    if one.record.progress.get(axis, 0) >= amount:
        return None
    failure = one.record.failure
    if failure:
        text = f"{failure['kind']} ({failure['type']}: {failure['message']})"
        return errors.one_line(text)
    reached = one.record.progress.get(axis, 0)
    return f"trained to {planning.amount(reached)} {axis}" if reached else "not run"
