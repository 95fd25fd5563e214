"""Learning curves: a column of several runs, at the same amounts of training."""

from collections.abc import Sequence

import numpy as np

from bmg_sweeps import grid, selection
from bmg_sweeps.selection import Trained


def panels(sweep: grid.Sweep) -> tuple[grid.Curve, ...]:
    """Returns what a sweep shows; the metric that decides, where it does not say."""
    metric = sweep.select.metric
    return sweep.curves or (grid.Curve(title=metric, metric=metric, label=metric),)


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
        those of rows that all runs have; on an axis where they have none in common,
        such as hours, an even grid.
    """
    tables = [one.table(metric) for one in members]
    columns = [np.asarray(table.get(axis, ()), dtype=float) for table in tables]
    if any(len(column) == 0 for column in columns):
        return np.empty(0), np.empty((len(members), 0))
    amounts = columns[0]
    for column in columns[1:]:
        amounts = np.intersect1d(amounts, column)
    if len(amounts) < 2:
        first = max(column[0] for column in columns)
        last = min(column[-1] for column in columns)
        amounts = np.linspace(first, last, most) if first < last else np.empty(0)
    amounts = amounts[(amounts > between[0]) & (amounts <= between[1])]
    if len(amounts) > most:
        places = np.linspace(len(amounts) - 1, 0, most).round().astype(int)
        amounts = amounts[places[::-1]]
    values = [
        [selection.value_at(table, axis, metric, amount) for amount in amounts]
        for table in tables
    ]
    # None becomes NaN, which is not drawn.
    return amounts, np.array(values, dtype=float).reshape(len(members), len(amounts))
