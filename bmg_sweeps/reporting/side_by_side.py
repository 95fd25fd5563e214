"""The selection at each budget in the paper's form: a row a budget, methods abreast."""

import dataclasses
from collections.abc import Mapping

from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.reporting import best_tables, held_out_cells, published, tables
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Table
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.sweep.display import PublishedBest

_Found = Mapping[tuple[float, str], Score | PublishedBest]  # By budget and method.


def is_possible(results: Results, axis: str) -> bool:
    """Whether the paper has such a table, and each point a method."""
    selected = results.selections[axis]
    named = {score.method for score in selected.scores} <= results.sweep.methods.keys()
    is_published = published.has_selections(results.chosen, axis)
    return named and is_published and not selected.refused


def table(results: Results, axis: str) -> Table:
    """Makes the table.

    Returns:
        For each budget that we or others have a number of, each method's selected
        values by symbol, validation and test; and what is published of the same.
    """
    chosen = results.chosen
    notes = [best_tables.how(results), *held_out_cells.notes(results, axis)]
    notes.append(_complete(results, axis))
    notes += best_tables.remarks(results, axis)
    notes += published.note(chosen)
    sources = {a.source: None for a in published.best(chosen, axis)}
    notes += [f"Published: {source}. Δ is ours − published." for source in sources]
    return Table(
        Key(Kind.BEST, axis),
        best_tables.title_of(results, axis),
        tuple(_columns(results, axis)),
        tuple(_rows(results, axis)),
        tuple(notes),
    )


def published_table(results: Results, axis: str) -> list[Table]:
    """Makes the table of every published number, with ours where we trained that far.

    Returns:
        One table; none where nothing is published, or `table` has all of it.
    """
    if is_possible(results, axis):
        return []
    others, best = published.best(results.chosen, axis), results.selections[axis].best
    ours = {(score.budget, score.method): score for score in best}
    rows = []
    for a in others:
        row = (a.method, a.budget, Estimate(a.mean, a.deviation))
        score = ours.get((a.budget, a.method))
        found: tuple[Cell, ...] = (None, None, None)
        if score:
            found = (
                published.ours(results.chosen, score),
                grid.describe(results.sweep, score.configuration.values),
                published.difference(results.chosen, score, a),
            )
        rows.append((*row, *found, a.source))
    columns = (
        *(Column("method"), Column(axis, "amount")),
        Column("published", "estimate", is_published=True),
        *(Column("ours", "estimate"), Column("selected")),
        Column("Δ", "difference", is_published=True),
        Column("source"),
    )
    note = "Published numbers are others', copied from the source; ours are measured."
    title = "Published numbers beside ours"
    key = Key(Kind.PUBLISHED, axis)
    return [Table(key, title, columns, tuple(rows), (note,))] if rows else []


def _methods(chosen: Chosen, axis: str) -> dict[str, grid.Method]:
    """The methods that have points here, or numbers elsewhere."""
    theirs = {other.method for other in published.best(chosen, axis)}
    named = theirs.union(chosen.methods)
    return {name: one for name, one in chosen.sweep.methods.items() if name in named}


def _columns(results: Results, axis: str) -> list[Column]:
    chosen, rule = results.chosen, results.sweep.select
    apart = _apart_columns(results, axis)
    columns = [Column(axis, "amount")]
    numbers = ["validation", "test"] if rule.test else [rule.metric]
    for name, method in _methods(chosen, axis).items():
        symbols = [symbol.text for symbol in method.symbols.values()]
        columns += [Column(symbol, "value", name) for symbol in symbols]
        columns += [Column(number, "estimate", name) for number in numbers]
        columns += [dataclasses.replace(column, group=name) for column in apart]
        if published.best(chosen, axis):
            group = f"{name} published"
            columns += [Column(symbol, "value", group, True) for symbol in symbols]
            columns.append(Column(numbers[-1], "printed", group, True))
            columns.append(Column("Δ", "difference", group, True))
    return columns


def _apart_columns(results: Results, axis: str) -> list[Column]:
    """The held-out number alone: a wide table has no room for more."""
    return held_out_cells.columns(results.selections[axis])[:1]


def _rows(results: Results, axis: str) -> list[tuple[Cell, ...]]:
    others, best = published.best(results.chosen, axis), results.selections[axis].best
    ours: _Found = {(score.budget, score.method): score for score in best}
    theirs: _Found = {(other.budget, other.method): other for other in others}
    made = []
    for budget in sorted({budget for budget, _ in (*ours, *theirs)}):
        row: list[Cell] = [budget]
        for name, method in _methods(results.chosen, axis).items():
            score, other = ours.get((budget, name)), theirs.get((budget, name))
            row += _our_cells(results, axis, method, score)
            if others:
                row += _their_cells(results.chosen, method, other, score)
        made.append(tuple(row))
    return made


def _complete(results: Results, axis: str) -> str:
    """Says how many configurations of each method were considered."""
    counts: dict[str, list[tuple[int, int]]] = {}
    selected = results.selections[axis]
    for budget in {one.budget for one in (*selected.scores, *selected.left_out)}:
        for method in results.methods:
            at = (budget, method)
            scored = sum((s.budget, s.method) == at for s in selected.scores)
            left_out = sum((s.budget, s.method) == at for s in selected.left_out)
            counts.setdefault(method, []).append((scored, scored + left_out))
    parts = []
    for method, pairs in counts.items():
        few, many = min(pairs), max(pairs)
        span = f"{few[0]} to {many[0]}" if few != many else f"{few[0]}"
        parts.append(f"{method} {span} of {many[1]}")
    return f"Complete configurations at the budgets: {', '.join(parts) or 'none'}."


def _our_cells(
    results: Results, axis: str, method: grid.Method, score: Score | None
) -> list[Cell]:
    rule, selected = results.sweep.select, results.selections[axis]
    if score is None:
        number = len(method.tuned) + (2 if rule.test else 1)
        return [None] * (number + len(_apart_columns(results, axis)))
    values = score.configuration.values
    cells: list[Cell] = [
        None
        if symbol.is_silent(values[field])
        else tables.value(symbol.labels.get(values[field], values[field]))
        for field, symbol in method.symbols.items()
    ]
    tests = [score.test] if rule.test else []
    number_apart = held_out_cells.number(selected.apart(score))
    apart = [number_apart for _ in _apart_columns(results, axis)]
    return [*cells, score.estimate, *tests, *apart]


def _their_cells(
    chosen: Chosen,
    method: grid.Method,
    other: PublishedBest | None,
    score: Score | None,
) -> list[Cell]:
    if other is None:
        return [None] * (len(method.tuned) + 2)
    symbols = [symbol.text for symbol in method.symbols.values()]
    cells: list[Cell] = [
        tables.value(other.selected[s]) if s in other.selected else None
        for s in symbols
    ]
    difference = score and published.difference(chosen, score, other)
    return [*cells, Estimate(other.mean, other.deviation), difference]
