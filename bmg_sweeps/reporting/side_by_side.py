"""The selection at each budget in the paper's form: a row a budget, methods abreast."""

from collections.abc import Mapping

from bmg_sweeps import formatting
from bmg_sweeps.analysis.selection import Score, Selection
from bmg_sweeps.reporting import best_tables, published
from bmg_sweeps.reporting.tables import Cell, Table
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.sweep.display import PublishedBest

_Found = Mapping[tuple[float, str], Score | PublishedBest]  # By budget and method.


def is_possible(chosen: Chosen, result: Selection) -> bool:
    """Whether the paper has such a table, and each point a method."""
    named = {score.method for score in result.scores} <= chosen.sweep.methods.keys()
    is_published = published.has_selections(chosen, result.axis)
    return named and is_published and not result.refused


def table(chosen: Chosen, result: Selection) -> Table:
    """Makes the table.

    Args:
        chosen: the sweep and its points.
        result: what was selected, with tests.

    Returns:
        For each budget that we or others have a number of, each method's selected
        values by symbol, validation and test; and what is published of the same.
    """
    columns, groups = _columns(chosen, result)
    rule = chosen.sweep.select
    notes = [best_tables.how(rule), _complete(chosen, result), *published.note(chosen)]
    sources = {a.source: None for a in published.best(chosen, result.axis)}
    notes += [f"Published: {source}. Δ is ours − published." for source in sources]
    return Table(
        best_tables.title_of(chosen, result),
        tuple(columns),
        tuple(_rows(chosen, result)),
        tuple(notes),
        groups=tuple(groups),
    )


def _columns(chosen: Chosen, result: Selection) -> tuple[list[str], list[str]]:
    """The columns' names, and the group that each is in."""
    rule = chosen.sweep.select
    names, groups = [result.axis], [""]
    numbers = ["validation", "test"] if rule.test else [rule.metric]
    for method, of in chosen.sweep.methods.items():
        symbols = [symbol.text for symbol in of.symbols.values()]
        names += [*symbols, *numbers]
        groups += [method] * (len(symbols) + len(numbers))
        if published.best(chosen, result.axis):
            names += [*symbols, numbers[-1], "Δ"]
            groups += [f"{method} published"] * (len(symbols) + 2)
    return names, groups


def _rows(chosen: Chosen, result: Selection) -> list[tuple[Cell, ...]]:
    others = published.best(chosen, result.axis)
    ours: _Found = {(score.budget, score.method): score for score in result.best}
    theirs: _Found = {(other.budget, other.method): other for other in others}
    made = []
    for budget in sorted({budget for budget, _ in (*ours, *theirs)}):
        row: list[Cell] = [formatting.shown_amount(budget)]
        for name, method in chosen.sweep.methods.items():
            score, other = ours.get((budget, name)), theirs.get((budget, name))
            row += _our_cells(chosen.sweep.select, method, score)
            if others:
                row += _their_cells(method, other, score)
        made.append(tuple(row))
    return made


def _complete(chosen: Chosen, result: Selection) -> str:
    """Says how many configurations of each method were considered."""
    counts: dict[str, list[tuple[int, int]]] = {}
    for budget in {one.budget for one in (*result.scores, *result.left_out)}:
        for method in chosen.sweep.methods:
            at = (budget, method)
            scored = sum((s.budget, s.method) == at for s in result.scores)
            left_out = sum((s.budget, s.method) == at for s in result.left_out)
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
    cells = [formatting.short(other.selected.get(symbol, "–")) for symbol in symbols]
    cells.append(published.written(other.mean, other.deviation))
    ours = score and (score.test or score.estimate)
    return [*cells, formatting.signed(ours.mean - other.mean) if ours else "–"]
