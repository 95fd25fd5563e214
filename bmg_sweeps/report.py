"""Tables and figures of a sweep, from its records, beside published numbers."""

import csv
import dataclasses
import io
import statistics
from collections.abc import Sequence

import rich.console
import rich.table

from bmg_sweeps import grid, paper, selection
from bmg_sweeps.planning import Chosen
from bmg_sweeps.selection import Trained


@dataclasses.dataclass(frozen=True)
class Table:
    """A title, column names, rows of cells, and remarks below."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def tables(chosen: Chosen, trained: Sequence[Trained]) -> list[Table]:
    """Makes the tables of a sweep.

    Args:
        chosen: the sweep, its points and stop rule.
        trained: their records.

    Returns:
        The selection for every budget; every configuration at every budget; what was
        left out, if anything; and where the numbers come from.
    """
    amounts = selection.budgets(chosen.sweep.select, chosen.stop)
    result = selection.select(chosen.sweep, trained, amounts)
    made = [
        _best_table(chosen, result),
        _scores_table(chosen, result, amounts),
    ]
    if result.left_out:
        made.append(_left_out_table(chosen, result))
    return [*made, _provenance_table(trained)]


def comparison(
    chosen: Chosen,
    before: Sequence[selection.Score],
    after: selection.Selection,
) -> Table:
    """Compares the selected configurations with themselves on fresh seeds.

    Args:
        chosen: the sweep.
        before: what was selected.
        after: the same configurations, scored on the fresh seeds.

    Returns:
        One row for each configuration.
    """
    again = {score.configuration.id: score for score in after.scores}
    missing = {one.configuration.id: one.reason for one in after.left_out}
    rows = []
    for score in before:
        fresh = again.get(score.configuration.id)
        rows.append(
            (
                score.method,
                grid.describe(chosen.sweep, score.configuration.values),
                f"{_mean_and_deviation(score.mean, score.deviation)} "
                f"({len(score.points)} seeds)",
                f"{_mean_and_deviation(fresh.mean, fresh.deviation)} "
                f"({len(fresh.points)} seeds)"
                if fresh
                else missing[score.configuration.id],
            )
        )
    metric, axis = chosen.sweep.select.metric, chosen.sweep.select.axis
    return Table(
        title=f"{metric} at {_amount(before[0].budget)} {axis}",
        columns=("method", "configuration", "when selected", "on fresh seeds"),
        rows=tuple(rows),
    )


def text(made: Sequence[Table], console: rich.console.Console) -> None:
    """Prints tables to a terminal."""
    for table in made:
        view = rich.table.Table(title=table.title, title_justify="left")
        for i, name in enumerate(table.columns):
            view.add_column(name, justify="left" if i < 2 else "right", overflow="fold")
        for row in table.rows:
            view.add_row(*(rich.markup.escape(cell) for cell in row))
        console.print(view)
        for note in table.notes:
            console.print(note, highlight=False, markup=False)
        console.print()


def markdown(made: Sequence[Table]) -> str:
    """Writes tables as GitHub Markdown."""
    lines = []
    for table in made:
        lines += [f"### {table.title}", ""]
        lines.append("| " + " | ".join(table.columns) + " |")
        lines.append("|" + " --- |" * len(table.columns))
        for row in table.rows:
            lines.append("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |")
        lines += ["", *(f"{note}  " for note in table.notes), ""]
    return "\n".join(lines)


def comma_separated(made: Sequence[Table]) -> str:
    """Writes tables as CSV, each with its title in the first column."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for table in made:
        writer.writerow(("table", *table.columns))
        writer.writerows((table.title, *row) for row in table.rows)
    return buffer.getvalue()


def _best_table(chosen, result) -> Table:
    sweep, axis = chosen.sweep, chosen.sweep.select.axis
    counts: dict[tuple, list[int]] = {}
    for score in (*result.scores, *result.left_out):
        pair = counts.setdefault((score.budget, score.method), [0, 0])
        pair[isinstance(score, selection.LeftOut)] += 1
    rows = []
    for best in result.best:
        considered, left_out = counts[best.budget, best.method]
        anchor = _anchor(sweep, best)
        rows.append(
            (
                _amount(best.budget),
                best.method,
                grid.describe(chosen.sweep, best.configuration.values),
                _mean_and_deviation(best.mean, best.deviation),
                str(len(best.points)),
                f"{considered} / {left_out}",
                (anchor and _mean_and_deviation(anchor.mean, anchor.deviation)) or "–",
            )
        )
    notes = [
        f"{sweep.select.metric}: mean ± standard deviation over "
        f"{', '.join(sweep.select.over)}. Chosen and reported on the same seeds, as in "
        f"the paper: the best of many is flattered; `rerun` gives fresh ones."
    ]
    notes += [
        f"Published, at {_amount(a.budget)} {axis}: {a.method} "
        f"{_mean_and_deviation(a.mean, a.deviation)} ({a.source})."
        for a in paper.ANCHORS.get(sweep.anchors, ())
    ]
    columns = (axis, "method", "selected", sweep.select.metric, "seeds")
    return Table(
        title=f"{sweep.title}: best by {sweep.select.metric} for each budget",
        columns=(*columns, "considered / left out", "published"),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _scores_table(chosen, result, amounts) -> Table:
    cells: dict[tuple[str, str], dict[float, str]] = {}
    for score in result.scores:
        key = score.method, grid.describe(chosen.sweep, score.configuration.values)
        mean = _mean_and_deviation(score.mean, score.deviation)
        cells.setdefault(key, {})[score.budget] = mean
    return Table(
        title=f"{chosen.sweep.select.metric} of every configuration, by budget",
        columns=("method", "configuration", *(_amount(a) for a in amounts)),
        rows=tuple(
            (*key, *(by_budget.get(a, "–") for a in amounts))
            for key, by_budget in cells.items()
        ),
    )


def _left_out_table(chosen, result) -> Table:
    first: dict[str, selection.LeftOut] = {}
    for one in result.left_out:
        first.setdefault(one.configuration.id, one)
    return Table(
        title="Left out, from the first budget on that they do not reach",
        columns=("method", "configuration", chosen.sweep.select.axis, "why"),
        rows=tuple(
            (
                one.method,
                grid.describe(chosen.sweep, one.configuration.values),
                _amount(one.budget),
                one.reason,
            )
            for one in first.values()
        ),
    )


def _provenance_table(trained: Sequence[Trained]) -> Table:
    runs = [t.record.provenance for t in trained if t.record.provenance]
    revisions = sorted({p.get("revision", "unknown") for p in runs})
    notes = ["Code revisions are mixed."] if len(revisions) > 1 else []
    seconds = [t.rows["training_seconds"][-1] for t in trained if t.rows]
    rows = [
        ("points with a record", f"{len(runs)} of {len(trained)}"),
        ("code revision", ", ".join(revisions) or "–"),
        ("device", ", ".join(sorted({p.get("device", "?") for p in runs})) or "–"),
        ("threads", ", ".join(sorted({str(p.get("threads")) for p in runs})) or "–"),
        ("training seconds a point", f"{statistics.median(seconds):.0f}, median")
        if seconds
        else ("training seconds a point", "–"),
    ]
    return Table("Provenance", ("what", "value"), tuple(rows), tuple(notes))


def _anchor(sweep: grid.Sweep, best: selection.Score) -> paper.Anchor | None:
    for anchor in paper.ANCHORS.get(sweep.anchors, ()):
        if anchor.method == best.method and anchor.budget == best.budget:
            return anchor
    return None


def _amount(amount: float) -> str:
    return f"{amount:,.0f}" if amount == int(amount) else f"{amount:,.2f}"


def _mean_and_deviation(mean: float, deviation: float | None) -> str:
    digits = 0 if abs(mean) >= 1000 else 3
    spread = "" if deviation is None else f" ± {deviation:,.{digits}f}"
    return f"{mean:,.{digits}f}{spread}"
