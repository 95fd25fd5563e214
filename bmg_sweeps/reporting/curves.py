"""What figures show: columns of runs over training, and what the best attain."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bmg_sweeps import formatting
from bmg_sweeps.analysis import estimates, readings
from bmg_sweeps.analysis.readings import Trained
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score, Selection
from bmg_sweeps.sweep import display, grid, task_display
from bmg_sweeps.sweep.choices import Chosen


class Attained(NamedTuple):
    """What one method's selected configurations attain, in a panel of the best."""

    method: str
    at: list[float | str]  # Budgets, or values of the panel's field.
    means: list[float]
    deviations: list[float | None]  # Over seeds; None with one.
    held_out: list[float | None]  # Where there was a choice, and else None.


class Line(NamedTuple):
    """What is drawn of one configuration: arrays [T]."""

    amounts: np.ndarray
    means: np.ndarray
    deviations: np.ndarray | None = None  # Over seeds; None with one, and of a range.
    others: np.ndarray | None = None  # Means of the other end, of a range.


Panel = display.Curve | display.Best | task_display.TaskSummary


def panels(sweep: grid.Sweep) -> tuple[Panel, ...]:
    """Returns the panels of a sweep's figure; those of its tasks are figures apart.

    Where the sweep has none, it is one of the metric that decides.
    """
    metric = sweep.select.metric
    shown = tuple(c for c in sweep.curves if isinstance(c, Panel))
    return shown or (display.Curve(title=metric, metric=metric, label=metric),)


def curve(
    members: Sequence[Trained],
    axis: str,
    metric: str,
    between: tuple[float, float] = (0.0, np.inf),
    most: int = 500,
) -> tuple[np.ndarray, np.ndarray]:
    """Reads a metric of several runs at amounts that all of them have reached.

    Args:
        members: the S runs.
        axis: that the amounts are measured on.
        metric: the column.
        between: amounts above the first and up to the second are shown.
        most: amounts at most; more are thinned out evenly, the last one kept.

    Returns:
        Amounts [T], ascending, and values [S, T], NaN where not finite. The amounts are
        those of rows that all runs have; on an axis where they have at most one in
        common, such as hours, an even grid over the part that all have.
    """
    tables = [one.table(metric) for one in members]
    columns = [np.asarray(table.get(axis, ()), dtype=float) for table in tables]
    if any(len(column) == 0 for column in columns):
        return np.empty(0), np.empty((len(members), 0))
    amounts = functools.reduce(np.intersect1d, columns)
    if len(amounts) < 2:
        first = max(column[0] for column in columns)
        last = min(column[-1] for column in columns)
        if first < last:
            amounts = np.linspace(first, last, most)
    amounts = amounts[(amounts > between[0]) & (amounts <= between[1])]
    if len(amounts) > most:
        places = np.linspace(len(amounts) - 1, 0, most).round().astype(int)
        amounts = amounts[places[::-1]]
    values = [
        [readings.value_at(table, axis, metric, amount) for amount in amounts]
        for table in tables
    ]
    # None becomes NaN, which is not drawn.
    return amounts, np.array(values, dtype=float).reshape(len(members), len(amounts))


def line(
    results: Results,
    axis: str,
    panel: display.Curve,
    members: Sequence[Trained],
    most: int = 500,
) -> Line:
    """Reads what a panel shows of one configuration.

    Args:
        results: of the sweep.
        axis: that the line is drawn over.
        panel: says which columns, and which part of the sweep's own axis.
        members: the configuration's runs.
        most: amounts at most.

    Returns:
        The line; it is empty where the runs have no rows there.
    """
    rule = results.sweep.select
    between = window(results.chosen, panel)
    if axis != rule.axis:
        within = (rule.axis, *between)
        members = [_within(one, panel.metric, *within) for one in members]
        between = 0.0, results.chosen.stop.get(axis, np.inf)
    amounts, values = curve(members, axis, panel.metric, between, most)
    means, deviations = over_seeds(rule.over, members, values)
    if panel.to is None:
        return Line(amounts, means, deviations)
    _, values = curve(members, axis, panel.to, between, most)
    return Line(amounts, means, None, over_seeds(rule.over, members, values)[0])


def window(chosen: Chosen, panel: display.Curve) -> tuple[float, float]:
    """Returns the part of the sweep's own axis that a panel shows."""
    stop = chosen.stop.get(chosen.sweep.select.axis, np.inf)
    end = min(panel.until or np.inf, stop)
    return (max(0.0, end - panel.last) if panel.last else 0.0), end


def span(
    results: Results, axis: str, panel: display.Curve, lines: Sequence[Line]
) -> str:
    """Says which part of an axis is drawn, in a panel that does not show all of it.

    Args:
        results: of the sweep.
        axis: that the lines are drawn over.
        panel: of the figure.
        lines: that are drawn in it.

    Returns:
        Such as "5.6M to 6M env_steps"; "" where the panel shows all, or nothing.
    """
    drawn = [line.amounts for line in lines if len(line.amounts)]
    if not drawn or (panel.until is None and panel.last is None):
        return ""
    is_own = axis == results.sweep.select.axis
    begin = window(results.chosen, panel)[0] if is_own else min(a[0] for a in drawn)
    end = formatting.suffixed(max(amounts[-1] for amounts in drawn))
    start = f"{formatting.suffixed(begin)} to" if begin else "up to"
    return f"{start} {end} {axis}"


def over_seeds(
    over: Sequence[str], members: Sequence[Trained], values: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Averages each seed's runs, then takes mean and deviation over seeds.

    Args:
        over: fields that are averaged over, the seed first.
        members: the S runs.
        values: [S, T], such as `curve` returns.

    Returns:
        Mean [T], and sample standard deviation [T]; None with one seed.
    """
    points = [one.point for one in members]
    by_seed = np.array([*estimates.by_seed(over, points, values).values()])
    deviation = by_seed.std(axis=0, ddof=1) if len(by_seed) > 1 else None
    return by_seed.mean(axis=0), deviation


def attained(results: Results, panel: display.Best) -> list[Attained]:
    """Reads the test, or the metric that decides, of what was selected.

    Args:
        results: of the sweep.
        panel: says on which axis, and whether by budget or by the values of a field.

    Returns:
        One for each method of which there is anything.
    """
    selected = results.selections.get(panel.axis, Selection(panel.axis))
    scores = selected.best_by.get(panel.by, ()) if panel.by else selected.best
    found: dict[str, Attained] = {}
    for score in scores:
        estimate = score.test if results.sweep.select.test else score.estimate
        if estimate is None:
            continue
        values = score.configuration.values
        one = found.setdefault(score.method, Attained(score.method, [], [], [], []))
        one.at.append(formatting.short(values[panel.by]) if panel.by else score.budget)
        one.means.append(estimate.mean)
        one.deviations.append(estimate.deviation)
        one.held_out.append(None if panel.by else held_out(selected, score))
    return [found[method] for method in results.methods if method in found]


def categories(results: Results, panel: display.Best) -> list[str]:
    """Returns the values of a panel's field that any method has, in order."""
    selected = results.selections.get(panel.axis, Selection(panel.axis))
    field = panel.by or ""
    values = (s.configuration.values[field] for s in selected.best_by.get(field, ()))
    return list(dict.fromkeys(map(formatting.short, values)))


def held_out(selected: Selection, score: Score) -> float | None:
    """Returns what is held out of a score's method; None where it had no choice."""
    apart = selected.apart(score)
    estimate = apart.estimate if apart and apart.has_choice else None
    return estimate.mean if estimate else None


def below(sweep: grid.Sweep, panel: display.Best) -> str:
    """Names what a panel of the best is drawn over."""
    for method in sweep.methods.values():
        if panel.by in method.symbols:
            return method.symbols[panel.by].text
    return panel.by or panel.axis


def _within(one: Trained, metric: str, axis: str, begin: float, end: float) -> Trained:
    """Keeps the rows of a part of an axis, to be drawn on another one."""
    table = one.table(metric)
    if axis not in table:
        return one
    kept = [i for i, amount in enumerate(table[axis]) if begin < amount <= end]
    rows = {name: [column[i] for i in kept] for name, column in table.items()}
    return Trained(one.point, one.record, rows)
