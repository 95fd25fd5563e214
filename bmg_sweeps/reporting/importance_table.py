"""The table of what explains the scores of each method's grid, at every budget."""

from bmg_sweeps import formatting
from bmg_sweeps.analysis import importance
from bmg_sweeps.analysis.importance import Importance
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting import tables
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Table
from bmg_sweeps.sweep.choices import Chosen


def keys(chosen: Chosen, axis: str) -> list[Key]:
    """Names the table; none where each method has one configuration."""
    return [Key(Kind.IMPORTANCE, axis)] if chosen.has_choice else []


def table(results: Results, axis: str) -> list[Table]:
    """Makes the table: a row for each part of the variance, a column for each budget.

    Returns:
        One table; none where each method has one configuration. A method whose grid is
        partial everywhere has no rows, and a note says what it lacks.
    """
    if not keys(results.chosen, axis):
        return []
    found = importance.of_axis(results, axis)
    amounts = tables.thinned(sorted({one.budget for one in found}))
    by_method: dict[str, dict[float, Importance]] = {}
    for one in found:
        by_method.setdefault(one.method, {})[one.budget] = one
    rows: list[tuple[Cell, ...]] = []
    for method, by_budget in by_method.items():
        parts = dict.fromkeys(p for one in by_budget.values() for p in one.shares)
        rows += [
            (method, part, *(by_budget[a].shares.get(part) for a in amounts))
            for part in parts
        ]
    columns = [Column("method"), Column("part")]
    columns += [Column(formatting.shown_amount(a), "fraction") for a in amounts]
    metric = results.sweep.select.metric
    title = f"What explains the variance of {metric} over each grid, by {axis}"
    notes = (_how(results), *_lacks(by_method))
    return [
        Table(Key(Kind.IMPORTANCE, axis), title, tuple(columns), tuple(rows), notes)
    ]


def _how(results: Results) -> str:
    seed = results.sweep.select.over[0]
    return (
        f"Shares of the variance of {results.sweep.select.metric} over all "
        f"configurations and {seed}s of a method, by an exact functional analysis of "
        f"variance (Hutter et al., 2014): of a field alone, of what only two fields "
        f"together explain, and of the {seed}. They depend on the values that the grid "
        f"has: a field matters little where its values are alike."
    )


def _lacks(by_method: dict[str, dict[float, Importance]]) -> list[str]:
    """Says of which budgets a method has no shares, and why of the last of these."""
    notes = []
    for method, by_budget in by_method.items():
        lacking = [one for one in by_budget.values() if one.reason]
        if lacking:
            last, count = lacking[-1], f"{len(lacking)} of {len(by_budget)} budgets"
            notes.append(
                f"{method} has no shares at {count}. At "
                f"{formatting.shown_amount(last.budget)}: {last.reason}."
            )
    return notes
