"""Tables of what was selected: at each budget, or for each value of a field."""

import dataclasses
from collections.abc import Iterable, Sequence

from bmg_sweeps import formatting
from bmg_sweeps.analysis import estimates, selection
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting import held_out_cells, published, tables
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Share, Table
from bmg_sweeps.sweep import display, grid

FAR = 0.05  # Part of a budget; a row that is further before it is told.


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
    columns += held_out_cells.columns(selected)
    columns += [Column("points", "count"), Column("complete", "share")]
    if others:
        columns.append(Column("published", "estimate", is_published=True))
        columns.append(Column("Δ", "difference", is_published=True))
    rows = [_best_row(results, best, others) for best in selected.best]
    notes = [how(results), *held_out_cells.notes(results, axis)]
    notes += [*remarks(results, axis), *published.note(chosen)]
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
        notes=(how(results), *held_out_cells.notes(results, axis)),
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
    flattered = "the best of many looks better than it is; `rerun` runs fresh ones."
    if rule.test:
        return text + (
            f"Chosen by {rule.metric}; {rule.test} was read afterwards, of the same "
            f"runs: there, too, {flattered}"
        )
    return text + f"Chosen and reported on the same ones: {flattered}"


def remarks(results: Results, axis: str) -> list[str]:
    """Says what of the best is not what its place in the table says.

    Returns:
        Which tests are missing; and which rows were read far before their budget.
    """
    rule, best = results.sweep.select, results.selections[axis].best
    untested = [s for s in best if rule.test and s.test is None]
    found = [
        f"{_where(methods, axis, budget)}: not every {rule.over[0]} has {rule.test}."
        for budget, methods in _by_budget(untested).items()
    ]
    early = [s for s in best if s.read_at < (1 - FAR) * s.budget]
    by_row: dict[float, list[selection.Score]] = {}
    for score in early:
        by_row.setdefault(score.read_at, []).append(score)
    for amount, scores in by_row.items():
        shown = formatting.shown_amount(amount)
        found += [
            f"{_where(methods, axis, budget)}: read at {shown}, far before the budget."
            for budget, methods in _by_budget(scores).items()
        ]
    return found


def _by_budget(scores: Iterable[selection.Score]) -> dict[float, list[str]]:
    found: dict[float, list[str]] = {}
    for score in scores:
        found.setdefault(score.budget, []).append(score.method)
    return found


def _where(methods: Sequence[str], axis: str, budget: float) -> str:
    return f"{', '.join(methods)} at {formatting.shown_amount(budget)} {axis}"


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
    row += held_out_cells.cells(selected, best)
    row.append(runs(results, best.points))
    row.append(Share(considered, considered + left_out))
    if others:
        found = [a for a in others if (a.budget, a.method) == at]
        row.append(Estimate(found[0].mean, found[0].deviation) if found else None)
        chosen = results.chosen
        row.append(published.difference(chosen, best, found[0]) if found else None)
    return tuple(row)


def runs(results: Results, points) -> int | str:
    """Counts a configuration's runs: seeds, or in words seeds and tasks."""
    over = results.sweep.select.over
    return len(points) if len(over) == 1 else estimates.counted(over, points)
