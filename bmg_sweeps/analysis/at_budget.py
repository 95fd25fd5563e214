"""A column of runs at a budget: the number of each run, or why it has none."""

import bisect
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from bmg_sweeps import errors, formatting
from bmg_sweeps.analysis import estimates, readings
from bmg_sweeps.records import store
from bmg_sweeps.sweep import display, grid


class Missing(NamedTuple):
    """Why a run has no number at a budget."""

    reason: str
    # True if the training diverged. False if the run was not started or its machine
    # failed.
    is_divergence: bool = False


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
    values = read_all(members, axis, amount, measure.metric, measure.last)
    if isinstance(values, str):
        return values
    return estimates.over_runs(over, [one.point for one in members], values)


def read_all(
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
    values: list[float] = []
    for one in members:
        value = read(one, axis, amount, metric, last)
        if isinstance(value, Missing):
            return value.reason
        values.append(value)
    return values


def read(
    one: readings.Trained,
    axis: str,
    amount: float,
    metric: str,
    last: float | None = None,
) -> float | Missing:
    """Reads a column of one point, as `read_all` does."""
    missing = _incomplete(one, axis, amount, metric)
    if missing:
        return missing
    value = look_up(one.table(metric), axis, amount, metric, last)
    return _without_value(one, axis, amount, metric, last) if value is None else value


def read_test(
    one: readings.Trained,
    rows: store.Rows,
    rule: grid.Select,
    axis: str,
    amount: float,
    last: float | None = None,
) -> float | Missing:
    """Reads the test of one point; where its validation diverged, so did its test.

    Args:
        one: the point.
        rows: of its tests.
        rule: says which columns decide and test.
        axis: that the budget is measured on.
        amount: the budget.
        last: training before the budget whose rows are averaged; None is one row.

    Returns:
        The number, or why there is none.
    """
    deciding = read(one, axis, amount, rule.metric)
    if isinstance(deciding, Missing):
        return deciding
    value = look_up(rows, axis, amount, rule.test or "", last)
    without = Missing(f"not every {rule.over[0]} has {rule.test}")
    return without if value is None else value


def look_up(
    rows: store.Rows, axis: str, amount: float, metric: str, last: float | None = None
) -> float | None:
    """Looks a column up in rows: the last one at a budget, or the mean of several.

    Args:
        rows: of one point.
        axis: that the budget is measured on.
        amount: the budget.
        metric: the column.
        last: training before the budget whose rows are averaged; None is one row.

    Returns:
        The number; None where there is no such row, or one of them is not finite.
    """
    if last is None:
        return readings.value_at(rows, axis, metric, amount)
    begin, end = _window(rows, axis, amount, last)
    values = rows[metric][begin:end] if metric in rows else []
    return statistics.fmean(values) if values and None not in values else None


def _without_value(
    one: readings.Trained, axis: str, amount: float, metric: str, last: float | None
) -> Missing:
    """Says why a point that has trained to a budget has no number there."""
    table = one.table(metric)
    if metric not in table:
        return Missing(f"{metric} is no column of its rows")
    begin, end = _window(table, axis, amount, last)
    if not end:
        return Missing(f"no row before {amount:g} {axis}")
    if begin == end:
        return Missing(f"no row in the last {last:g} {axis} before {amount:g}")
    return Missing(f"{metric} is not finite", is_divergence=True)


def _window(
    rows: store.Rows, axis: str, amount: float, last: float | None
) -> tuple[int, int]:
    """Returns the places of the rows that are read: the last one, or several."""
    column = rows.get(axis, ())
    end = bisect.bisect_right(column, amount)
    begin = end - 1 if last is None else bisect.bisect_right(column, amount - last)
    return max(begin, 0), end


def _incomplete(
    one: readings.Trained, axis: str, amount: float, metric: str
) -> Missing | None:
    """Says why a point's number at a budget does not count; None where it does."""
    if one.record.damage:
        return Missing(f"damaged record ({one.record.damage})")
    width = readings.pack_width(one)
    if width != 1 and (readings.is_timed(axis) or readings.is_timed(metric)):
        if width is None:
            return Missing("left its pack; its hours may include the pack's")
        return Missing(f"ran in a pack of {width}, whose hours are not its own")
    reached = one.record.progress.get(axis, 0)
    if reached >= amount:
        return None
    failure = one.record.failure
    if failure:
        reason = errors.one_line(f"{failure.kind} ({store.reason(failure)})")
        return Missing(reason, is_divergence=failure.kind == "diverged")
    return Missing(
        f"trained to {formatting.amount(reached)} {axis}" if reached else "not run"
    )
