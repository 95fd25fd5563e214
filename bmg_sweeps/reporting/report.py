"""Tables of a sweep, from its records, beside published numbers."""

import csv
import dataclasses
import io
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from bmg_sweeps import formatting
from bmg_sweeps.analysis import readings, selection
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting import (
    agreement_table,
    best_tables,
    claim_table,
    expected_best,
    held_out_cells,
    importance_table,
    improvement,
    measures,
    profile_tables,
    published,
    side_by_side,
    tables,
    task_lines,
    task_tables,
)
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Table
from bmg_sweeps.sweep import display, grid
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.sweep.display import PublishedBest

MAX_TASKS = 6  # Tasks that are named beside a title.

_SHORTENED = " … "
_WHAT = (Column("what"), Column("value"))


def make(results: Results) -> list[Table]:
    """Makes the tables of a sweep.

    Returns:
        For each axis those of `of_axis`; what was left out, if anything; and where the
        numbers come from. All of them say scale, seeds, device, and what else the sweep
        shows.
    """
    made = [table for axis in results.selections for table in of_axis(results, axis)]
    made += left_out(results, *results.selections)
    return [*made, provenance(results)]


def of_axis(results: Results, axis: str) -> list[Table]:
    """Makes the tables of an axis of budgets.

    Returns:
        The selection for every budget, and for the values of a field; the methods at
        the last one, every configuration at every budget, and what explains their
        scores. With the first axis are its tasks, claims and measures, and the methods
        at equal budgets of tuning.
    """
    about = context(results)
    is_abreast = side_by_side.is_possible(results, axis)
    made = [(side_by_side if is_abreast else best_tables).table(results, axis)]
    is_first = axis == results.first.axis
    if not results.selections[axis].refused:
        made += best_tables.by_value(results, axis)
        made += task_tables.make(results) if is_first else []
        made += profile_tables.make(results) if is_first else []
        made += claim_table.table(results) if is_first else []
        made += expected_best.table(results) if is_first else []
        made += improvement.table(results, axis)
        made.append(_scores_table(results, axis))
        made += importance_table.table(results, axis)
        made += agreement_table.table(results, axis)
    made += measures.table(results) if is_first else []
    return [dataclasses.replace(table, about=about) for table in made]


def keys(chosen: Chosen) -> list[Key]:
    """Names the tables that a sweep's report has, whatever its records hold.

    Args:
        chosen: the sweep and its stop rule.

    Returns:
        Those of `make`, but for the comparison of methods, which needs several runs,
        and what was left out.
    """
    sweep, found = chosen.sweep, []
    for i, axis in enumerate(selection.budgets(sweep.select, chosen.stop)):
        is_first = i == 0
        found.append(Key(Kind.BEST, axis))
        found += [Key(Kind.BY_VALUE, axis, field) for field in sweep.by]
        found += task_tables.keys(chosen) if is_first else []
        found += profile_tables.keys(chosen) if is_first else []
        found += [Key(Kind.CLAIMS)] if is_first and sweep.claims else []
        found += expected_best.keys(chosen) if is_first else []
        found.append(Key(Kind.SCORES, axis))
        found += importance_table.keys(chosen, axis)
        found += agreement_table.keys(chosen, axis)
        found += [Key(Kind.MEASURES)] if is_first and sweep.measures else []
    return [*found, Key(Kind.PROVENANCE)]


def heading(results: Results, storage: str, command: str) -> Table:
    """Makes the table of what was asked.

    Args:
        results: of the sweep.
        storage: where the records are.
        command: that shows the same.

    Returns:
        Scale, stop rule, storage and command.
    """
    chosen = results.chosen
    rows = (
        ("scale", chosen.choice.scale),
        ("trained to", formatting.amounts(chosen.stop)),
        ("storage", storage),
        ("command", command),
    )
    return Table(Key(Kind.HEADING), chosen.sweep.title, _WHAT, rows)


def left_out(results: Results, *axes: str) -> list[Table]:
    """Makes the table of what was not considered, and why.

    Args:
        results: of the sweep.
        *axes: whose budgets are meant.

    Returns:
        One table, with each configuration once; none where nothing was left out. Of
        several axes a budget says its own.
    """
    first: dict[str, tuple[str, selection.LeftOut]] = {}
    for axis in axes:
        for one in results.selections[axis].left_out:
            first.setdefault(one.configuration.id, (axis, one))
    if not first:
        return []
    rows = []
    for axis, one in first.values():
        described = grid.describe(results.sweep, one.configuration.values)
        named = formatting.shown_amounts({axis: one.budget})
        budget = one.budget if len(axes) == 1 else named
        rows.append((one.method, described, budget, one.reason))
    columns = (Column("method"), Column("configuration"))
    columns += (Column("budget", "amount"), Column("why"))
    title = "Left out, from the first budget on that they do not reach"
    about = context(results)
    return [Table(Key(Kind.LEFT_OUT), title, columns, tuple(rows), about=about)]


def provenance(results: Results) -> Table:
    """Makes the table of the code, the devices and the times of a sweep's points."""
    trained = results.trained
    runs = [t.record.provenance for t in trained if t.record.provenance]
    # None stands for an attempt that did not note it.
    revisions = sorted({r for t in trained for r in t.record.revisions if r})
    codes = sorted({c for t in trained for c in t.record.codes if c})
    devices = readings.devices(trained)
    widths = sorted({p.pack_width or 1 for p in runs})
    threads = sorted({str(p.threads) for p in runs if p.threads is not None})
    notes = ["Code revisions are mixed."] if len(revisions) > 1 else []
    notes += ["The trainer's code is mixed."] if len(codes) > 1 else []
    notes += ["Devices are mixed."] if len(devices) > 1 else []
    rows = (
        ("points with a record", f"{len(runs)} of {len(trained)}"),
        ("code revision", ", ".join(revisions) or None),
        ("hash of the trainer's code", ", ".join(codes) or None),
        ("device", ", ".join(devices) or None),
        ("threads", ", ".join(threads) or None),
        ("points in a pack", ", ".join(map(str, widths)) or None),
        ("training seconds a point", _median(t.record.hours * 3600 for t in trained)),
        ("evaluation seconds", _median(p.evaluation_seconds or 0 for p in runs)),
        ("compile seconds", _median(p.compile_seconds or 0 for p in runs)),
    )
    key, about = Key(Kind.PROVENANCE), context(results)
    return Table(key, "Provenance", _WHAT, rows, tuple(notes), about)


def comma_separated(results: Results) -> str:
    """Writes what `score_lines` returns as CSV."""
    buffer = io.StringIO()
    csv.writer(buffer).writerows(score_lines(results))
    return buffer.getvalue()


def score_lines(results: Results) -> list[tuple[Any, ...]]:
    """Lists every configuration's score at every budget, one in a line.

    Returns:
        The names of the columns, then the lines; "" stands where there is nothing.
        Columns for method, configuration as tables describe it, each tuned field, axis,
        budget, mean and deviation of the metric, number of points (and of seeds and
        tasks, where there are both), whether it is the method's best there, and if so,
        mean and deviation of the test, of what is held out, and what is published of
        the method's best; and whether it cannot be told apart from that best.
        Where the sweep names its tasks, a line for each of them follows, which has the
        task, its score with the deviation, and what is published of it, as well.
    """
    sweep, rule = results.sweep, results.sweep.select
    fields = tuned_fields(sweep)
    over = rule.over if len(rule.over) > 1 else ()
    others = {axis: published.best(results.chosen, axis) for axis in results.selections}
    has_others = any(others.values())
    has_apart = any(map(held_out_cells.is_shown, results.selections.values()))
    names = (*("method", "configuration", *fields, "axis", "budget"),
             *(rule.metric, "deviation", "points", *(f"{f}s" for f in over), "is_best"),
             *((rule.test, "test_deviation") if rule.test else ()),
             *(_HELD_OUT if has_apart else ()),
             *(_PUBLISHED if has_others else ()))  # fmt: skip
    of_tasks = task_lines.names(sweep)
    lines: list[tuple[Any, ...]] = [(*names, *of_tasks)]
    for selected in results.selections.values():
        best = {(s.budget, s.configuration.id): s for s in selected.best}
        for score in selected.scores:
            winner = best.get((score.budget, score.configuration.id))
            tested = winner and winner.test
            head = (score.method, *_configuration(sweep, score, fields))
            head += (score.axis, score.budget)
            row = (*head, *dataclasses.astuple(score.estimate), len(score.points))
            row += tuple(len({p.values[field] for p in score.points}) for field in over)
            row += (winner is not None,)
            if rule.test:
                row += dataclasses.astuple(tested) if tested else ("", "")
            if has_apart:
                row += _apart(selected, score, winner is not None)
            if has_others:
                row += _published(others[score.axis], score) if winner else ("",) * 3
            lines.append((*row, *("",) * len(of_tasks)))
            for cells, of_task in task_lines.of(results, score):
                line = (*head, *cells, winner is not None)
                blank = ("",) * (len(names) - len(line))
                lines.append((*line, *blank, *of_task))
    return lines


def tuned_fields(sweep: grid.Sweep) -> list[str]:
    """Names the fields that tune any of a sweep's methods, each once."""
    return list(dict.fromkeys(f for m in sweep.methods.values() for f in m.tuned))


_HELD_OUT = ("held_out", "held_out_deviation", "like_best")
_PUBLISHED = ("published", "published_deviation", "published_configuration")


def _apart(
    selected: selection.Selection, score: selection.Score, is_best: bool
) -> tuple[Any, ...]:
    """What is held out of the best, and whether a configuration is like it."""
    apart = selected.apart(score) if is_best else None
    estimate = apart.estimate if apart else None
    is_alike = held_out_cells.is_alike(selected, score)
    numbers = dataclasses.astuple(estimate) if estimate else ("", "")
    return (*numbers, "" if is_alike is None else is_alike)


def _configuration(
    sweep: grid.Sweep, score: selection.Score, fields: Sequence[str]
) -> tuple[Any, ...]:
    """Describes a configuration, then gives its values of the fields that tune it."""
    values, method = score.configuration.values, sweep.methods.get(score.method)
    tuned = method.tuned if method else ()
    cells = (values[field] if field in tuned else "" for field in fields)
    return (grid.describe(sweep, values), *cells)


def _published(
    others: Sequence[PublishedBest], best: selection.Score
) -> tuple[Any, ...]:
    """What is published of the best of a method at a budget."""
    at = (best.budget, best.method)
    for other in others:
        if (other.budget, other.method) == at:
            selected = (f"{s}={formatting.short(v)}" for s, v in other.selected.items())
            return (other.mean, other.deviation, " ".join(selected))
    return ("", "", "")


def context(results: Results) -> str:
    """Says what the numbers of every table are numbers of."""
    chosen, sweep = results.chosen, results.sweep
    devices = readings.devices(results.trained)
    shown = []
    for field, symbol in display.symbols_of(sweep.shown).items():
        values = dict.fromkeys(symbol.shown(p.values[field]) for p in chosen.points)
        shown.append(f"{symbol.text} {'/'.join(values)}")
    stop = formatting.shown_amounts(chosen.stop)
    runs = [
        f"{name} {text} ({number})" if _SHORTENED in text else f"{name} {text}"
        for name, text, number in averaged_over(chosen)
    ]
    codes = {c for t in results.trained for c in t.record.codes if c is not None}
    versions = f"by {len(codes)} versions of the trainer's code"
    mixed = [versions] if len(codes) > 1 else []
    parts = [f"scale {chosen.choice.scale}", *shown, *runs, f"trained to {stop}"]
    return "; ".join([*parts, *devices, *mixed])


def averaged_over(chosen: Chosen) -> list[tuple[str, str, int]]:
    """Says which seeds, and tasks if there are several, the numbers are means over.

    Args:
        chosen: the sweep and its points.

    Returns:
        For each field its name in the plural, its values, and how many they are. Of
        many tasks the first and the last stand for all.
    """
    tasks, found = chosen.sweep.tasks, []
    for field in chosen.sweep.select.over:
        values = sorted({p.values[field] for p in chosen.points})
        text = formatting.ranges(values)
        if tasks and field == tasks.field and len(values) > MAX_TASKS:
            text = f"{values[0]}{_SHORTENED}{values[-1]}"
        found.append((f"{field}s", text, len(values)))
    return found


def _scores_table(results: Results, axis: str) -> Table:
    selected, sweep = results.selections[axis], results.sweep
    every = sorted({s.budget for s in (*selected.scores, *selected.left_out)})
    amounts = tables.thinned(every)
    by_configuration: dict[str, dict[float, selection.Score]] = {}
    for score in selected.scores:
        key = score.configuration.id
        by_configuration.setdefault(key, {})[score.budget] = score
    last = {s.configuration.id: s for s in selected.scores if s.budget == every[-1]}
    alike = {key: held_out_cells.is_alike(selected, s) for key, s in last.items()}
    has_alike = any(is_alike is not None for is_alike in alike.values())
    rows = []
    for key, by_budget in by_configuration.items():
        one = next(iter(by_budget.values()))
        cells: list[Cell] = [one.method, grid.describe(sweep, one.configuration.values)]
        cells += [by_budget[a].estimate if a in by_budget else None for a in amounts]
        if has_alike:
            cells.append("yes" if alike.get(key) else None)
        rows.append(tuple(cells))
    columns = [Column("method"), Column("configuration")]
    columns += [Column(formatting.shown_amount(a), "estimate") for a in amounts]
    columns += [Column(held_out_cells.ALIKE)] if has_alike else []
    title = f"{sweep.select.metric} of every configuration, by {axis}"
    note = f"At {len(amounts)} of {len(every)} budgets; CSV has all of them."
    notes = (note,) if len(amounts) < len(every) else ()
    return Table(Key(Kind.SCORES, axis), title, tuple(columns), tuple(rows), notes)


def _median(seconds: Iterable[float]) -> str | None:
    known = [s for s in seconds if s > 0]
    return f"{formatting.suffixed(statistics.median(known))}, median" if known else None
