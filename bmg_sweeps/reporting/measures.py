"""The table of a sweep's measures: columns of the rows, for every configuration."""

from bmg_sweeps import formatting
from bmg_sweeps.analysis import at_budget, readings, selection
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting import published
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Table
from bmg_sweeps.sweep import display, grid
from bmg_sweeps.sweep.choices import Chosen


def table(results: Results) -> list[Table]:
    """Makes the table at the last budget of the sweep's first axis.

    Returns:
        One table; none of a sweep without measures.
    """
    chosen, sweep, rule = results.chosen, results.sweep, results.sweep.select
    if not sweep.measures:
        return []
    axis = results.first.axis
    last = selection.last_budget(chosen, axis)
    refused = {
        m.metric: readings.refusal(results.trained, axis, m.metric)
        for m in sweep.measures
    }
    why: dict[str, list[str]] = {}
    rows = []
    for members in results.configurations.values():
        values = members[0].point.configuration(rule.over).values
        row: list[Cell] = [grid.method_of(sweep, values), grid.describe(sweep, values)]
        for measure in sweep.measures:
            found = refused[measure.metric] or at_budget.measured(
                members, rule.over, axis, last, measure
            )
            if isinstance(found, str):
                reason = f"{measure.label}: {found}"
                why.setdefault(reason, []).append(f"{row[0]} {row[1]}")
            row.append(found if isinstance(found, Estimate) else None)
            row += _others(chosen, measure, values)
        rows.append(tuple(row))
    title = f"Measures at {formatting.shown_amount(last)} {axis}"
    columns, notes = tuple(_columns(chosen)), _notes(chosen, axis, why)
    return [Table(Key(Kind.MEASURES), title, columns, tuple(rows), notes)]


def _columns(chosen: Chosen) -> list[Column]:
    columns = [Column("method"), Column("configuration")]
    for measure in chosen.sweep.measures:
        if published.measured(chosen, measure.metric):
            columns.append(Column("ours", "estimate", measure.label))
            columns.append(Column("published", "printed", measure.label, True))
        else:
            columns.append(Column(measure.label, "estimate"))
    return columns


def _others(
    chosen: Chosen, measure: display.Measure, values: grid.Values
) -> list[Cell]:
    """The published number of a configuration, where there is such a column."""
    numbers = published.measured(chosen, measure.metric)
    found = [m for m in numbers if published.is_of(m, chosen.sweep, values)]
    if found:
        return [Estimate(found[0].mean, found[0].deviation)]
    return [None] if numbers else []


def _notes(chosen: Chosen, axis: str, why: dict[str, list[str]]) -> tuple[str, ...]:
    rule = chosen.sweep.select
    over = ", ".join(f"{field}s" for field in rule.over)
    notes = [f"Mean over {over} ± standard deviation over {rule.over[0]}s."]
    for measure in chosen.sweep.measures:
        window = f"mean of the last {formatting.shown_amount(measure.last or 0)} {axis}"
        how = f"{window} before it" if measure.last else "the last number before it"
        sources = {m.source: None for m in published.measured(chosen, measure.metric)}
        beside = f"; published: {', '.join(sources)}" if sources else ""
        notes.append(f"{measure.label} is {measure.metric}, {how}{beside}.")
    notes += published.note(chosen)
    for reason, configurations in why.items():
        number = len(configurations)
        where = configurations[0] if number == 1 else f"{number} configurations"
        notes.append(f"{reason} ({where}).")
    return tuple(notes)
