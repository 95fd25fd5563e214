"""The best configuration by validation, for every budget.

A configuration is a point without its seed. At a budget its score is the mean over its
seeds of the validation metric at the last row at or before the budget. Only complete
configurations are considered: every seed has trained to the budget and its number there
is finite. A crashed, diverged or partial configuration is listed with the reason, and
never chosen. Ties go to the smaller id, so that the choice does not depend on the order
of anything.
"""

import bisect
import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence

from bmg_sweeps import errors, files, grid, store
from bmg_sweeps.planning import Chosen
from bmg_sweeps.point import Point


@dataclasses.dataclass(frozen=True)
class Trained:
    """A point, its record, and the rows that it left."""

    point: Point
    record: store.Record
    rows: store.Rows


@dataclasses.dataclass(frozen=True)
class Score:
    """A complete configuration at a budget."""

    method: str
    configuration: Point
    budget: float
    mean: float  # Of the validation metric, over seeds.
    deviation: float | None  # Sample standard deviation; None with one seed.
    points: tuple[Point, ...]  # One for each seed.


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """A configuration that is not considered at a budget, and why."""

    method: str
    configuration: Point
    budget: float
    reason: str


@dataclasses.dataclass(frozen=True)
class Selection:
    """Everything that was considered for a sweep, and the best of it."""

    scores: tuple[Score, ...]  # All budgets, methods and configurations.
    left_out: tuple[LeftOut, ...]
    best: tuple[Score, ...]  # One for each budget and method that has any.


def load(storage: files.Storage, chosen: Chosen) -> list[Trained]:
    """Reads the records of a sweep's points, with their rows.

    Args:
        storage: of the records.
        chosen: the sweep.

    Returns:
        One for each point; rows are empty where there are none or they are damaged.
    """
    trained = []
    for point in chosen.points:
        record = store.read(storage, point.trainer, point.id)
        try:
            rows = {} if record.damage else store.rows(storage, record)
        except store.Damaged as error:
            record = dataclasses.replace(record, damage=str(error))
            rows = {}
        trained.append(Trained(point, record, rows))
    return trained


def budgets(select: grid.Select, stop: Mapping[str, float]) -> list[float]:
    """Divides the stop rule into budgets, at 1/n … n/n of it.

    Args:
        select: how the sweep selects.
        stop: how far its points train.

    Returns:
        Amounts on the axis of selection, ascending.

    Raises:
        UserError: the stop rule does not say how far that is.
    """
    if select.axis not in stop:
        raise errors.UserError(
            f"--stop {', '.join(stop)}: expected {select.axis}=N, on which the "
            f"budgets are measured"
        )
    whole = stop[select.axis]
    return [whole * i / select.num_budgets for i in range(1, select.num_budgets + 1)]


def select(
    sweep: grid.Sweep, trained: Sequence[Trained], amounts: Sequence[float]
) -> Selection:
    """Scores every configuration at every budget and chooses the best of each method.

    Args:
        sweep: says what decides, and which methods there are.
        trained: the sweep's points.
        amounts: the budgets.

    Returns:
        Scores, what was left out, and the best.
    """
    configurations: dict[str, list[Trained]] = {}
    for one in trained:
        key = one.point.configuration(sweep.select.over).id
        configurations.setdefault(key, []).append(one)
    scores, left_out, best = [], [], []
    for amount in amounts:
        here = []
        for members in configurations.values():
            result = _score(sweep, members, amount)
            (here if isinstance(result, Score) else left_out).append(result)
        scores += here
        for method in [*sweep.methods, "other"]:
            rivals = [score for score in here if score.method == method]
            if rivals:
                best.append(min(rivals, key=lambda s: _rank(sweep.select, s)))
    return Selection(tuple(scores), tuple(left_out), tuple(best))


def at_budgets(chosen: Chosen, trained: Sequence[Trained]) -> Selection:
    """Selects at each of a sweep's budgets, as its reports do.

    Args:
        chosen: the sweep, its points and stop rule.
        trained: their records.

    Returns:
        As `select`.
    """
    amounts = budgets(chosen.sweep.select, chosen.stop)
    return select(chosen.sweep, trained, amounts)


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


def _rank(select: grid.Select, score: Score) -> tuple[float, str]:
    mean = -score.mean if select.mode == "max" else score.mean
    return mean, score.configuration.id


def _score(
    sweep: grid.Sweep, members: Sequence[Trained], amount: float
) -> Score | LeftOut:
    """Scores one configuration at one budget, or says why it cannot be."""
    rule = sweep.select
    configuration = members[0].point.configuration(rule.over)
    method = grid.method_of(sweep, configuration.values)
    values = [value_at(o.rows, rule.axis, rule.metric, amount) for o in members]
    reasons = [_incomplete(one, rule.axis, amount) for one in members]
    if not any(reasons):
        reasons = [
            _without_value(one, rule, amount) if value is None else None
            for one, value in zip(members, values, strict=True)
        ]
    for one, reason in zip(members, reasons, strict=True):
        if reason:
            seed = ", ".join(f"{f} {one.point.values[f]}" for f in rule.over)
            return LeftOut(method, configuration, amount, f"{seed}: {reason}")
    return Score(
        method=method,
        configuration=configuration,
        budget=amount,
        mean=statistics.fmean(values),
        deviation=statistics.stdev(values) if len(values) > 1 else None,
        points=tuple(one.point for one in members),
    )


def _without_value(one: Trained, rule: grid.Select, amount: float) -> str:
    """Says why a point that has trained to a budget has no number there."""
    if rule.metric not in one.rows:
        return f"{rule.metric} is no column of its rows"
    if not bisect.bisect_right(one.rows[rule.axis], amount):
        return f"no row before {amount:g} {rule.axis}"
    return f"{rule.metric} is not finite"


def _incomplete(one: Trained, axis: str, amount: float) -> str | None:
    """Says why a point's number at a budget does not count; None where it does."""
    if one.record.damage:
        return f"damaged record ({one.record.damage})"
    if one.record.progress.get(axis, 0) >= amount:
        return None
    failure = one.record.failure
    if failure:
        return f"{failure['kind']} ({failure['type']}: {failure['message']})"
    reached = one.record.progress.get(axis, 0)
    return f"trained to {reached:,.0f} {axis}" if reached else "not run"
