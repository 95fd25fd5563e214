"""Tables of a sweep, from its records, beside published numbers."""

import csv
import dataclasses
import io
import statistics
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from bmg_sweeps import grid, intervals, paper, selection, tables
from bmg_sweeps.planning import Chosen
from bmg_sweeps.point import Point
from bmg_sweeps.selection import Estimate, Selection, Trained
from bmg_sweeps.tables import Cell, Table


def make(
    chosen: Chosen, trained: Sequence[Trained], results: Sequence[Selection]
) -> list[Table]:
    """Makes the tables of a sweep.

    Args:
        chosen: the sweep, its points and stop rule.
        trained: their records.
        results: what was selected, on each axis.

    Returns:
        For each axis, the selection for every budget, the methods at the last one, and
        every configuration at every budget; what was left out, if anything; and where
        the numbers come from.
    """
    made = []
    for result in results:
        made.append(_best_table(chosen, result))
        if not result.refused:
            made += _methods_table(chosen, result)
            made.append(_scores_table(chosen, result))
    left_out = [one for result in results for one in result.left_out]
    if left_out:
        made.append(_left_out_table(chosen, left_out))
    return [*made, _provenance_table(trained)]


def comparison(
    chosen: Chosen, before: Sequence[selection.Score], after: Selection
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
                score.estimate,
                str(len(score.points)),
                again[key].estimate if key in again else missing[key],
                str(len(again[key].points)) if key in again else "–",
            )
        )
    metric, axis = chosen.sweep.select.metric, before[0].axis
    return Table(
        title=f"{metric} at {tables.amount(before[0].budget)} {axis}",
        columns=("method", "selected", "then", "seeds", "on fresh seeds", "seeds"),
        rows=tuple(rows),
    )


def comma_separated(chosen: Chosen, results: Sequence[Selection]) -> str:
    """Writes every configuration's score at every budget as CSV, one in a line.

    Args:
        chosen: the sweep, its points and stop rule.
        results: what was selected, on each axis.

    Returns:
        Columns for method, each tuned field, axis, budget, mean and deviation of the
        metric, number of points, whether it is the method's best there, and if so, mean
        and deviation of the test.
    """
    sweep = chosen.sweep
    fields = list(dict.fromkeys(f for m in sweep.methods.values() for f in m.tuned))
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    metric, test = sweep.select.metric, sweep.select.test
    head = ("method", *fields, "axis", "budget", metric, "deviation", "points")
    writer.writerow((*head, "is_best", *((test, "test_deviation") if test else ())))
    for result in results:
        best = {(s.budget, s.configuration.id): s for s in result.best}
        for score in result.scores:
            values = score.configuration.values
            is_ours = score.method in sweep.methods
            tuned = sweep.methods[score.method].tuned if is_ours else ()
            cells = [values[field] if field in tuned else "" for field in fields]
            numbers = (score.budget, *dataclasses.astuple(score.estimate))
            chosen_one = best.get((score.budget, score.configuration.id))
            is_best = chosen_one is not None
            row = (score.method, *cells, score.axis, *numbers, len(score.points))
            tested = chosen_one.test if is_best else None
            tail = dataclasses.astuple(tested) if tested else ("", "")
            writer.writerow((*row, is_best, *(tail if test else ())))
    return buffer.getvalue()


def _best_table(chosen: Chosen, result: Selection) -> Table:
    """The paper's form: budget, what was selected, validation, test."""
    sweep, axis = chosen.sweep, result.axis
    rule = sweep.select
    title = f"Best by {rule.metric} for each budget of {axis}"
    if result.refused:
        return Table(title, ("why not",), ((result.refused,),))
    anchors = [a for a in paper.ANCHORS.get(sweep.anchors, ()) if a.axis == axis]
    rows = [_best_row(chosen, result, best, anchors) for best in result.best]
    columns = (axis, "method", "selected", rule.metric)
    columns += (rule.test,) if rule.test else ()
    columns += ("points", "complete")
    columns += ("published", "Δ") if anchors else ()
    notes = [_how(rule)]
    notes += [
        f"Published, at {tables.amount(a.budget)} {axis}: {a.method} "
        f"{tables.exact(Estimate(a.mean, a.deviation))} ({a.source})."
        for a in anchors
    ]
    return Table(title, columns, tuple(rows), tuple(notes))


def _best_row(chosen, result, best: selection.Score, anchors) -> tuple[Cell, ...]:
    at = (best.budget, best.method)
    considered = sum((s.budget, s.method) == at for s in result.scores)
    left_out = sum((s.budget, s.method) == at for s in result.left_out)
    row: list[Cell] = [
        tables.amount(best.budget),
        best.method,
        grid.describe(chosen.sweep, best.configuration.values),
        best.estimate,
    ]
    if chosen.sweep.select.test:
        row.append(best.test or "–")
    row += [str(len(best.points)), f"{considered} / {considered + left_out}"]
    if anchors:
        found = [a for a in anchors if (a.budget, a.method) == at]
        ours = best.test or best.estimate
        row.append(Estimate(found[0].mean, found[0].deviation) if found else "–")
        row.append(tables.signed(ours.mean - found[0].mean) if found else "–")
    return tuple(row)


def _how(rule: grid.Select) -> str:
    """Says what is averaged, and over what it was chosen."""
    over = ", ".join(f"{field}s" for field in rule.over)
    text = f"Mean over {over} ± standard deviation over {rule.over[0]}s. "
    if rule.test:
        return text + f"Chosen by {rule.metric}; {rule.test} was read afterwards."
    return text + (
        "Chosen and reported on the same ones, as in the paper: the best of many is "
        "flattered; `rerun` runs fresh ones."
    )


def _methods_table(chosen: Chosen, result: Selection) -> list[Table]:
    """Compares the methods' best at the last budget, where there are runs enough."""
    last = max((s.budget for s in result.best), default=None)
    best = [s for s in result.best if s.budget == last]
    matrices = {s.method: _matrix(chosen.sweep.select, s) for s in best}
    matrices = {m: x for m, x in matrices.items() if x is not None and len(x) > 1}
    if len(matrices) < 2:
        return []
    rule = chosen.sweep.select
    sign = 1 if rule.mode == "max" else -1
    rows = []
    for method, scores in matrices.items():
        middle = intervals.interquartile_mean(scores)
        ours = sign * scores
        chances = [
            "–" if other == method else _chance(ours, sign * others)
            for other, others in matrices.items()
        ]
        rows.append((method, _interval(middle, tables.suffixed), *chances))
    versus = [f"P(better than {method})" for method in matrices]
    notes = (
        f"{rule.test or rule.metric} of each method's best at that budget, with 95 % "
        f"intervals of a stratified bootstrap over {rule.over[0]}s. Few runs make wide "
        f"intervals, and very few too narrow ones: of 2, 3 and 5 runs those that are "
        f"called 95 % hold the truth in about 50, 74 and 91 %.",
    )
    title = f"Methods at {tables.amount(last)} {result.axis}"
    columns = ("method", "interquartile mean", *versus)
    return [Table(title, columns, tuple(rows), notes)]


def _chance(ours: np.ndarray, others: np.ndarray) -> str:
    if ours.shape[1] != others.shape[1]:
        return "other tasks"
    found = intervals.probability_of_improvement(ours, others)
    return _interval(found, "{:.2f}".format)


def _matrix(rule: grid.Select, score: selection.Score) -> np.ndarray | None:
    """Arranges runs as [seeds, tasks]; None where some are missing."""
    values = score.test_values or score.values
    seeds = sorted({p.values[rule.over[0]] for p in score.points})
    tasks = sorted({_task(rule, p) for p in score.points})
    matrix = np.full((len(seeds), len(tasks)), np.nan)
    for p, value in zip(score.points, values, strict=True):
        if value is not None:
            place = seeds.index(p.values[rule.over[0]]), tasks.index(_task(rule, p))
            matrix[place] = value
    return None if np.isnan(matrix).any() else matrix


def _task(rule: grid.Select, point: Point) -> tuple:
    return tuple(point.values[field] for field in rule.over[1:])


def _interval(found: intervals.Interval, written: Callable[[float], str]) -> str:
    return f"{written(found.estimate)} [{written(found.low)}, {written(found.high)}]"


def _scores_table(chosen: Chosen, result: Selection) -> Table:
    amounts = sorted({s.budget for s in (*result.scores, *result.left_out)})
    by_configuration: dict[str, dict[float, selection.Score]] = {}
    for score in result.scores:
        key = score.configuration.id
        by_configuration.setdefault(key, {})[score.budget] = score
    rows = []
    for by_budget in by_configuration.values():
        one = next(iter(by_budget.values()))
        cells = [by_budget[a].estimate if a in by_budget else "–" for a in amounts]
        described = grid.describe(chosen.sweep, one.configuration.values)
        rows.append((one.method, described, *cells))
    return Table(
        title=f"{chosen.sweep.select.metric} of every configuration, by {result.axis}",
        columns=("method", "configuration", *(tables.amount(a) for a in amounts)),
        rows=tuple(rows),
    )


def _left_out_table(chosen: Chosen, left_out: Sequence[selection.LeftOut]) -> Table:
    first: dict[str, selection.LeftOut] = {}
    for one in left_out:
        first.setdefault(one.configuration.id, one)
    return Table(
        title="Left out, from the first budget on that they do not reach",
        columns=("method", "configuration", "budget", "why"),
        rows=tuple(
            (
                one.method,
                grid.describe(chosen.sweep, one.configuration.values),
                tables.amount(one.budget),
                one.reason,
            )
            for one in first.values()
        ),
    )


def _provenance_table(trained: Sequence[Trained]) -> Table:
    runs = [t.record.provenance for t in trained if t.record.provenance]
    revisions = sorted({r for t in trained for r in t.record.revisions})
    devices = sorted({d for t in trained for d in t.record.devices})
    widths = sorted({p.get("pack_width", 1) for p in runs})
    threads = sorted({str(p.get("threads")) for p in runs})
    notes = ["Code revisions are mixed."] if len(revisions) > 1 else []
    notes += ["Devices are mixed."] if len(devices) > 1 else []
    rows = (
        ("points with a record", f"{len(runs)} of {len(trained)}"),
        ("code revision", ", ".join(revisions) or "–"),
        ("device", ", ".join(devices) or "–"),
        ("threads", ", ".join(threads) or "–"),
        ("points in a pack", ", ".join(map(str, widths)) or "–"),
        ("training seconds a point", _median(t.record.hours * 3600 for t in trained)),
        ("evaluation seconds", _median(p.get("evaluation_seconds", 0) for p in runs)),
        ("compile seconds", _median(p.get("compile_seconds", 0) for p in runs)),
    )
    return Table("Provenance", ("what", "value"), rows, tuple(notes))


def _median(seconds: Iterable[float]) -> str:
    known = [s for s in seconds if s > 0]
    return f"{tables.suffixed(statistics.median(known))}, median" if known else "–"
