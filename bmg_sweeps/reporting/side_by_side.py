"""The selection at each budget in the paper's form: a row a budget, methods abreast."""

from collections.abc import Mapping

from bmg_sweeps.analysis.selection import Score, Selection
from bmg_sweeps.launching.planning import Chosen
from bmg_sweeps.paper import Anchor
from bmg_sweeps.reporting import best_tables, published, tables
from bmg_sweeps.reporting.tables import Cell, Table
from bmg_sweeps.sweep import grid

_Found = Mapping[tuple[float, str], Score | Anchor]  # By budget and method.


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
    sources = {a.source: None for a in published.anchors(chosen, result.axis)}
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
        if published.anchors(chosen, result.axis):
            names += [*symbols, numbers[-1], "Δ"]
            groups += [f"{method} published"] * (len(symbols) + 2)
    return names, groups


def _rows(chosen: Chosen, result: Selection) -> list[tuple[Cell, ...]]:
    anchors = published.anchors(chosen, result.axis)
    ours: _Found = {(score.budget, score.method): score for score in result.best}
    theirs: _Found = {(anchor.budget, anchor.method): anchor for anchor in anchors}
    made = []
    for budget in sorted({budget for budget, _ in (*ours, *theirs)}):
        row: list[Cell] = [tables.amount(budget)]
        for name, method in chosen.sweep.methods.items():
            score, anchor = ours.get((budget, name)), theirs.get((budget, name))
            row += _our_cells(chosen.sweep.select, method, score)
            if anchors:
                row += _their_cells(method, anchor, score)
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


def _their_cells(method: grid.Method, anchor: Anchor | None, score: Score | None):
    if anchor is None:
        return ["–"] * (len(method.tuned) + 2)
    symbols = [symbol.text for symbol in method.symbols.values()]
    cells = [grid.short(anchor.selected.get(symbol, "–")) for symbol in symbols]
    cells.append(published.written(anchor.mean, anchor.deviation))
    ours = score and (score.test or score.estimate)
    return [*cells, tables.signed(ours.mean - anchor.mean) if ours else "–"]
