"""Tables and figures of a sweep, from its records, beside published numbers."""

import csv
import dataclasses
import html
import io
import statistics
from collections.abc import Sequence

import rich.box
import rich.console
import rich.table
import rich.text

from bmg_sweeps import grid, paper, selection
from bmg_sweeps.planning import Chosen
from bmg_sweeps.selection import Trained

_WIDEST = 400  # Columns of a table in a terminal.


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean over seeds, and their standard deviation where there are several."""

    mean: float
    deviation: float | None

    def exact(self) -> str:
        """Writes both with the mean's units in full: 1,774,099 ± 60,321."""
        digits = 0 if abs(self.mean) >= 1000 else 3
        parts = [p for p in (self.mean, self.deviation) if p is not None]
        return " ± ".join(f"{part:,.{digits}f}" for part in parts)

    def short(self) -> str:
        """Writes both with three digits and a suffix: 1.77M ± 60.3k."""
        parts = [p for p in (self.mean, self.deviation) if p is not None]
        return " ± ".join(_suffixed(part) for part in parts)


Cell = str | Estimate


@dataclasses.dataclass(frozen=True)
class Table:
    """A title, column names, rows of cells, and remarks below."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
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
    result = selection.at_budgets(chosen, trained)
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
        key = score.configuration.id
        rows.append(
            (
                score.method,
                grid.describe(chosen.sweep, score.configuration.values),
                Estimate(score.mean, score.deviation),
                str(len(score.points)),
                Estimate(again[key].mean, again[key].deviation)
                if key in again
                else missing[key],
                str(len(again[key].points)) if key in again else "–",
            )
        )
    metric, axis = chosen.sweep.select.metric, chosen.sweep.select.axis
    return Table(
        title=f"{metric} at {_amount(before[0].budget)} {axis}",
        columns=("method", "selected", "then", "seeds", "on fresh seeds", "seeds"),
        rows=tuple(rows),
    )


def text(made: Sequence[Table], console: rich.console.Console) -> None:
    """Prints tables to a terminal, numbers with three digits."""
    for table in made:
        view = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
        for i, name in enumerate(table.columns):
            justify = "left" if i < 2 else "right"
            view.add_column(rich.text.Text(name), justify=justify)
        is_grouped = len({row[0] for row in table.rows}) < len(table.rows)
        for row, before in zip(table.rows, (None, *table.rows), strict=False):
            if is_grouped and before and row[0] != before[0]:
                view.add_section()
            cells = [c.short() if isinstance(c, Estimate) else c for c in row]
            view.add_row(*map(rich.text.Text, cells))  # Text is taken literally.
        console.print(rich.text.Text(table.title, style="bold"))
        # A table wider than the terminal runs over its edge: cells folded to fit it
        # cannot be read at all.
        wide = rich.console.Console(file=console.file, width=_WIDEST)
        wide.print(view)
        for note in table.notes:
            console.print(rich.text.Text(note), soft_wrap=True)
        console.print()


def markdown(made: Sequence[Table]) -> str:
    """Writes tables as GitHub Markdown, numbers in full."""
    lines = []
    for table in made:
        lines += [f"### {table.title}", "", _markdown_row(table.columns)]
        lines.append("|" + " --- |" * len(table.columns))
        lines += [_markdown_row(row) for row in table.rows]
        lines += ["", *(f"{note}  " for note in table.notes), ""]
    return "\n".join(lines)


def comma_separated(chosen: Chosen, trained: Sequence[Trained]) -> str:
    """Writes every configuration's score at every budget as CSV, one in a line.

    Args:
        chosen: the sweep, its points and stop rule.
        trained: their records.

    Returns:
        Columns for method, each tuned field, budget, mean, deviation, number of seeds,
        and whether it is the method's best there.
    """
    sweep = chosen.sweep
    result = selection.at_budgets(chosen, trained)
    fields = list(dict.fromkeys(f for m in sweep.methods.values() for f in m.tuned))
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    axis, metric = sweep.select.axis, sweep.select.metric
    head = ("method", *fields, axis, metric, "deviation", "seeds", "is_best")
    writer.writerow(head)
    for score in result.scores:
        values = score.configuration.values
        tuned = (
            sweep.methods[score.method].tuned if score.method in sweep.methods else ()
        )
        cells = [values[field] if field in tuned else "" for field in fields]
        numbers = (score.budget, score.mean, score.deviation, len(score.points))
        writer.writerow((score.method, *cells, *numbers, score in result.best))
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
                Estimate(best.mean, best.deviation),
                str(len(best.points)),
                f"{considered} / {considered + left_out}",
                Estimate(anchor.mean, anchor.deviation) if anchor else "–",
            )
        )
    notes = [
        f"{sweep.select.metric}: mean ± standard deviation over "
        f"{', '.join(sweep.select.over)}s. Chosen and reported on the same ones, as in "
        f"the paper: the best of many is flattered; `rerun` runs fresh ones."
    ]
    notes += [
        f"Published, at {_amount(a.budget)} {axis}: {a.method} "
        f"{Estimate(a.mean, a.deviation).exact()} ({a.source})."
        for a in paper.ANCHORS.get(sweep.anchors, ())
    ]
    columns = (axis, "method", "selected", sweep.select.metric, "seeds")
    return Table(
        title=f"Best by {sweep.select.metric} for each budget",
        columns=(*columns, "complete", "published"),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _scores_table(chosen, result, amounts) -> Table:
    by_configuration: dict[str, dict[float, selection.Score]] = {}
    for score in result.scores:
        key = score.configuration.id
        by_configuration.setdefault(key, {})[score.budget] = score
    rows = []
    for by_budget in by_configuration.values():
        one = next(iter(by_budget.values()))
        cells = [
            Estimate(by_budget[a].mean, by_budget[a].deviation)
            if a in by_budget
            else "–"
            for a in amounts
        ]
        described = grid.describe(chosen.sweep, one.configuration.values)
        rows.append((one.method, described, *cells))
    return Table(
        title=f"{chosen.sweep.select.metric} of every configuration, by budget",
        columns=("method", "configuration", *(_amount(a) for a in amounts)),
        rows=tuple(rows),
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
    revisions = sorted(
        {
            str(revision)
            for p in runs
            for revision in p.get("revisions", [p.get("revision", "unknown")])
        }
    )
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


def _markdown_row(row: Sequence[Cell]) -> str:
    cells = [c.exact() if isinstance(c, Estimate) else c for c in row]
    cells = [html.escape(c, quote=False).replace("|", "\\|") for c in cells]
    return "| " + " | ".join(cells) + " |"


def _anchor(sweep: grid.Sweep, best: selection.Score) -> paper.Anchor | None:
    for anchor in paper.ANCHORS.get(sweep.anchors, ()):
        if anchor.method == best.method and anchor.budget == best.budget:
            return anchor
    return None


def _amount(amount: float) -> str:
    return f"{amount:,.0f}" if amount == int(amount) else f"{amount:,.2f}"


def _suffixed(number: float) -> str:
    for factor, suffix in ((1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")):
        digits = f"{number / factor:.3g}"
        if abs(float(digits)) < 1000:  # After rounding: 999.6 is 1k.
            return digits + suffix
    return f"{number:.3g}"
