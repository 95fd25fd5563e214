"""The selection at each budget in the paper's form: a row a budget, methods abreast."""

from collections.abc import Mapping

from bmg_sweeps import formatting
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.reporting import best_tables, published, tables
from bmg_sweeps.reporting.tables import Cell, Table
from bmg_sweeps.sweep import display, grid
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

    Args:
        results: of the sweep.
        axis: of the budgets.

    Returns:
        For each budget that we or others have a number of, each method's selected
        values by symbol, validation and test; and what is published of the same.
    """
    chosen, rule = results.chosen, results.sweep.select
    columns, groups = _columns(chosen, axis)
    notes = [best_tables.how(rule), _complete(results, axis), *published.note(chosen)]
    sources = {a.source: None for a in published.best(chosen, axis)}
    notes += [f"Published: {source}. Δ is ours − published." for source in sources]
    return Table(
        best_tables.title_of(results, axis),
        tuple(columns),
        tuple(_rows(results, axis)),
        tuple(notes),
        groups=tuple(groups),
    )


def _columns(chosen: Chosen, axis: str) -> tuple[list[str], list[str]]:
    """The columns' names, and the group that each is in."""
    rule = chosen.sweep.select
    names, groups = [axis], [""]
    numbers = ["validation", "test"] if rule.test else [rule.metric]
    for method, of in chosen.sweep.methods.items():
        symbols = [symbol.text for symbol in of.symbols.values()]
        names += [*symbols, *numbers]
        groups += [method] * (len(symbols) + len(numbers))
        if published.best(chosen, axis):
            names += [*symbols, numbers[-1], "Δ"]
            groups += [f"{method} published"] * (len(symbols) + 2)
    return names, groups


def _rows(results: Results, axis: str) -> list[tuple[Cell, ...]]:
    others, best = published.best(results.chosen, axis), results.selections[axis].best
    ours: _Found = {(score.budget, score.method): score for score in best}
    theirs: _Found = {(other.budget, other.method): other for other in others}
    made = []
    for budget in sorted({budget for budget, _ in (*ours, *theirs)}):
        row: list[Cell] = [tables.amount(budget)]
        for name, method in results.sweep.methods.items():
            score, other = ours.get((budget, name)), theirs.get((budget, name))
            row += _our_cells(results.sweep.select, method, score)
            if others:
                row += _their_cells(method, other, score)
        made.append(tuple(row))
    return made


def _complete(results: Results, axis: str) -> str:
    """Says how many configurations of each method were considered."""
    counts: dict[str, list[tuple[int, int]]] = {}
    selected = results.selections[axis]
    for budget in {one.budget for one in (*selected.scores, *selected.left_out)}:
        for method in results.sweep.methods:
            at = (budget, method)
            scored = sum((s.budget, s.method) == at for s in selected.scores)
            left_out = sum((s.budget, s.method) == at for s in selected.left_out)
            counts.setdefault(method, []).append((scored, scored + left_out))
    parts = []
    for method, of in counts.items():
        few, many = min(of), max(of)
        span = f"{few[0]} to {many[0]}" if few != many else f"{few[0]}"
        parts.append(f"{method} {span} of {many[1]}")
    return f"Complete configurations at the budgets: {', '.join(parts) or 'none'}."


def _our_cells(rule: grid.Select, method: grid.Method, score: Score | None):
    if score is None:
        return ["–"] * (len(method.tuned) + (2 if rule.test else 1))
    values = score.configuration.values
    cells: list[Cell] = [s.shown(values[f]) for f, s in method.symbols.items()]
    cells.append(score.estimate)
    if rule.test:
        cells.append(score.test or "–")
    return cells


def _their_cells(method: grid.Method, other: PublishedBest | None, score: Score | None):
    if other is None:
        return ["–"] * (len(method.tuned) + 2)
    symbols = [symbol.text for symbol in method.symbols.values()]
    cells = [display.short(other.selected.get(symbol, "–")) for symbol in symbols]
    cells.append(published.written(other.mean, other.deviation))
    ours = score and (score.test or score.estimate)
    return [*cells, formatting.signed(ours.mean - other.mean) if ours else "–"]
