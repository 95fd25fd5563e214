"""Tables of what was selected: at each budget, or for each value of a field."""

import dataclasses

from bmg_sweeps import formatting
from bmg_sweeps.analysis import estimates, selection
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting import published, tables
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Share, Table
from bmg_sweeps.sweep import display, grid


def table(results: Results, axis: str) -> Table:
    """Makes a table of what was selected, a row for each budget and method.

    Returns:
        Budget, method, what was selected, validation and test, beside published ones.
    """
    chosen, rule = results.chosen, results.sweep.select
    selected, key = results.selections[axis], Key(Kind.BEST, axis)
    title = title_of(results, axis)
    if selected.refused:
        return Table(key, title, (Column("why not"),), ((selected.refused,),))
    others = published.best(chosen, axis)
    columns = [Column(axis, "amount"), *_selected_columns(rule)]
    columns += [Column("points", "count"), Column("complete", "share")]
    if others:
        columns.append(Column("published", "estimate", is_published=True))
        columns.append(Column("Δ", "difference", is_published=True))
    rows = [_best_row(results, best, others) for best in selected.best]
    notes = [how(results), *published.note(chosen)]
    notes += [
        f"Published, at {formatting.shown_amount(a.budget)} {axis}: {a.method} "
        f"{estimates.exact(Estimate(a.mean, a.deviation))} ({a.source})."
        for a in others
    ]
    return Table(key, title, tuple(columns), tuple(rows), tuple(notes))


def headline(results: Results, axis: str) -> list[Table]:
    """Makes the last budget's part of the table of the best.

    Returns:
        One table; none where nothing was selected.
    """
    best = results.selections[axis].best
    if not best:
        return []
    whole, last = table(results, axis), best[-1].budget
    made = dataclasses.replace(
        whole,
        key=Key(Kind.HEADLINE, axis),
        title=f"Best at {formatting.shown_amount(last)} {axis}",
        columns=whole.columns[1:],
        rows=tuple(
            row[1:]
            for row, score in zip(whole.rows, best, strict=True)
            if score.budget == last
        ),
        notes=whole.notes[:1],
    )
    return [made]


def by_value(results: Results, axis: str) -> list[Table]:
    """Makes tables of the best at the last budget, apart for each value of a field.

    Returns:
        One for each field that the sweep's panels show so.
    """
    rule, made = results.sweep.select, []
    for field in results.sweep.by:
        rows = [
            (
                tables.value(score.configuration.values[field]),
                *_selected_cells(results, score),
            )
            for score in results.selections[axis].best_by.get(field, ())
        ]
        last = formatting.shown_amount(selection.last_budget(results.chosen, axis))
        made.append(
            Table(
                Key(Kind.BY_VALUE, axis, field),
                f"Best by {rule.metric} at {last} {axis}, by {field}",
                (Column(field, "value"), *_selected_columns(rule)),
                tuple(rows),
                (how(results),),
            )
        )
    return made


def title_of(results: Results, axis: str) -> str:
    """Names the table, whichever form it has."""
    return f"Best by {results.sweep.select.metric} for each budget of {axis}"


def how(results: Results) -> str:
    """Says what is averaged, and over what it was chosen."""
    rule = results.sweep.select
    over = ", ".join(f"{field}s" for field in rule.over)
    text = f"Mean over {over} ± standard deviation over {rule.over[0]}s. "
    if rule.test:
        return text + f"Chosen by {rule.metric}; {rule.test} was read afterwards."
    return text + (
        "Chosen and reported on the same ones: the best of many is flattered; `rerun` "
        "runs fresh ones."
    )


def _selected_columns(rule: grid.Select) -> list[Column]:
    columns = [Column("method"), Column("selected"), Column(rule.metric, "estimate")]
    return columns + ([Column(rule.test, "estimate")] if rule.test else [])


def _selected_cells(results: Results, score: selection.Score) -> list[Cell]:
    described = grid.describe(results.sweep, score.configuration.values)
    tests = [score.test] if results.sweep.select.test else []
    return [score.method, described, score.estimate, *tests]


def _best_row(
    results: Results, best: selection.Score, others: list[display.PublishedBest]
) -> tuple[Cell, ...]:
    at, selected = (best.budget, best.method), results.selections[best.axis]
    considered = sum((s.budget, s.method) == at for s in selected.scores)
    left_out = sum((s.budget, s.method) == at for s in selected.left_out)
    row = [best.budget, *_selected_cells(results, best)]
    row.append(runs(results, best.points))
    row.append(Share(considered, considered + left_out))
    if others:
        found = [a for a in others if (a.budget, a.method) == at]
        ours = best.test or best.estimate
        row.append(Estimate(found[0].mean, found[0].deviation) if found else None)
        row.append(ours.mean - found[0].mean if found else None)
    return tuple(row)


def runs(results: Results, points) -> int | str:
    """Counts a configuration's runs: seeds, or in words seeds and tasks."""
    over = results.sweep.select.over
    return len(points) if len(over) == 1 else estimates.counted(over, points)
