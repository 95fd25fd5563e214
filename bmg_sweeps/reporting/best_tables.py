"""Tables of what was selected: at each budget, or for each value of a field."""

from bmg_sweeps import formatting
from bmg_sweeps.analysis import estimates, selection
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting import published, tables
from bmg_sweeps.reporting.tables import Cell, Table
from bmg_sweeps.sweep import display, grid


def table(results: Results, axis: str) -> Table:
    """Makes a table of what was selected, a row for each budget and method.

    Args:
        results: of the sweep.
        axis: of the budgets.

    Returns:
        Budget, method, what was selected, validation and test, beside published ones.
    """
    chosen, rule = results.chosen, results.sweep.select
    selected, title = results.selections[axis], title_of(results, axis)
    if selected.refused:
        return Table(title, ("why not",), ((selected.refused,),))
    others = published.best(chosen, axis)
    rows = [_best_row(results, best, others) for best in selected.best]
    columns = (axis, "method", "selected", rule.metric)
    columns += (rule.test,) if rule.test else ()
    columns += ("points", "complete")
    columns += ("published", "Δ") if others else ()
    notes = [how(rule), *published.note(chosen)]
    notes += [
        f"Published, at {tables.amount(a.budget)} {axis}: {a.method} "
        f"{estimates.exact(Estimate(a.mean, a.deviation))} ({a.source})."
        for a in others
    ]
    return Table(title, columns, tuple(rows), tuple(notes))


def by_value(results: Results, axis: str) -> list[Table]:
    """Makes tables of the best at the last budget, apart for each value of a field.

    Args:
        results: of the sweep.
        axis: of the budgets.

    Returns:
        One for each field that the sweep's panels show so.
    """
    chosen, rule = results.chosen, results.sweep.select
    made = []
    for field in results.sweep.by:
        rows = [
            (
                display.short(score.configuration.values[field]),
                score.method,
                grid.describe(results.sweep, score.configuration.values),
                score.estimate,
                *((score.test or "–",) if rule.test else ()),
            )
            for score in results.selections[axis].best_by.get(field, ())
        ]
        last = tables.amount(selection.last_budget(chosen, axis))
        title = f"Best by {rule.metric} at {last} {axis}, by {field}"
        columns = (field, "method", "selected", rule.metric)
        columns += (rule.test,) if rule.test else ()
        made.append(Table(title, columns, tuple(rows), (how(rule),)))
    return made


def title_of(results: Results, axis: str) -> str:
    """Names the table, whichever form it has."""
    return f"Best by {results.sweep.select.metric} for each budget of {axis}"


def how(rule: grid.Select) -> str:
    """Says what is averaged, and over what it was chosen."""
    over = ", ".join(f"{field}s" for field in rule.over)
    text = f"Mean over {over} ± standard deviation over {rule.over[0]}s. "
    if rule.test:
        return text + f"Chosen by {rule.metric}; {rule.test} was read afterwards."
    return text + (
        "Chosen and reported on the same ones, as in the paper: the best of many is "
        "flattered; `rerun` runs fresh ones."
    )


def _best_row(results: Results, best: selection.Score, others) -> tuple[Cell, ...]:
    at, selected = (best.budget, best.method), results.selections[best.axis]
    considered = sum((s.budget, s.method) == at for s in selected.scores)
    left_out = sum((s.budget, s.method) == at for s in selected.left_out)
    row: list[Cell] = [
        tables.amount(best.budget),
        best.method,
        grid.describe(results.sweep, best.configuration.values),
        best.estimate,
    ]
    if results.sweep.select.test:
        row.append(best.test or "–")
    over = results.sweep.select.over
    is_product = len(over) > 1
    runs = estimates.counted(over, best.points) if is_product else len(best.points)
    row += [str(runs), f"{considered} / {considered + left_out}"]
    if others:
        found = [a for a in others if (a.budget, a.method) == at]
        ours = best.test or best.estimate
        row.append(Estimate(found[0].mean, found[0].deviation) if found else "–")
        row.append(formatting.signed(ours.mean - found[0].mean) if found else "–")
    return tuple(row)
