"""Tables of a sweep that has tasks: scores of each, a summary, and published ones."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bmg_sweeps import formatting
from bmg_sweeps.analysis import across_tasks, estimates, intervals, selection
from bmg_sweeps.analysis.across_tasks import OnTasks
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting import published, tables
from bmg_sweeps.reporting.improvement import MAX_ABREAST, TOO_NARROW
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Share, Table
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.sweep.display import PublishedTasks
from bmg_sweeps.sweep.task_display import STATISTICS, Tasks

_SHOWN = {"interquartile_mean": "interquartile mean"}  # Statistics of other names.
_SAME = 0.01  # Relative difference of two numbers that were printed with few digits.


def make(results: Results) -> list[Table]:
    """Makes the tables at the last budget of the sweep's first axis.

    Returns:
        The scores of each task, a summary of them, and what is published of the latter;
        none of a sweep without tasks, or where nothing may be selected.
    """
    if results.sweep.tasks is None or results.first.refused:
        return []
    found = across_tasks.read(results)
    others = {one.method: one for one in _published(results.chosen)}
    made = [
        _by_task(results, results.sweep.tasks, found, others),
        _summary(results, results.sweep.tasks, found, others),
    ]
    return made + published_summaries(results.chosen)


def keys(chosen: Chosen) -> list[Key]:
    """Names the tables of `make`."""
    if chosen.sweep.tasks is None:
        return []
    found = [Key(Kind.TASKS), Key(Kind.TASK_SUMMARY)]
    return found + [table.key for table in published_summaries(chosen)]


def published_summaries(chosen: Chosen) -> list[Table]:
    """Makes the table of published statistics over tasks, where they compare.

    Returns:
        One table; none where there are none.
    """
    tasks, by_task = chosen.sweep.tasks, _published(chosen)
    printed = published.summaries(chosen, *_budget(chosen))
    if tasks is None or not (by_task or printed):
        return []
    rows: list[tuple[Cell, ...]] = []
    for one in by_task:
        values = _numbers(one.normalized.values())
        above = Share(_above(one.normalized.values()), len(one.normalized))
        cells = [intervals.point_over_tasks(name, values) for name in STATISTICS]
        rows.append((one.method, *cells, above, one.source))
    for other in printed:
        numbers = [getattr(other, name) for name in STATISTICS]
        rows.append((other.method, *numbers, None, other.source))
    columns = (
        Column("method"),
        *(Column(_SHOWN.get(n, n), "interval", "", True) for n in STATISTICS),
        Column(f"above {tasks.reference}", "share", "", True),
        Column("source"),
    )
    note = (
        f"Of {tasks.normalized}. Where the number of {tasks.field}s above "
        f"{tasks.reference} is known, we computed the row from the published scores of "
        f"each {tasks.field}; the others are as printed."
    )
    title = f"Published, over {tasks.field}s"
    key = Key(Kind.TASK_PUBLISHED)
    return [Table(key, title, columns, tuple(rows), (note,))]


def _by_task(
    results: Results,
    tasks: Tasks,
    found: Sequence[OnTasks],
    others: Mapping[str, PublishedTasks],
) -> Table:
    """A row a task, and below them how many tasks each method is ahead on."""
    ours = {one.method: one for one in found}
    columns = [Column(tasks.field, "value")]
    for method in results.methods:
        if others:
            columns.append(Column("ours", "estimate", method))
            columns.append(Column("published", "printed", method, True))
        else:
            columns.append(Column(method, "estimate"))
    rows: list[tuple[Cell, ...]] = []
    for task in across_tasks.tasks_of(results):
        row: list[Cell] = [tables.value(task)]
        for method in results.methods:
            row.append(_score(ours.get(method), task))
            if others:
                score = others[method].scores.get(task) if method in others else None
                row.append(None if score is None else Estimate(score, None))
        rows.append(tuple(row))
    rows += _counts(results, tasks, ours, others)
    title = f"{tasks.score} of each {tasks.field} at {_at(results.chosen)}"
    seeds = results.sweep.select.over[0]
    notes = [
        f"Mean over {seeds}s ± standard deviation over {seeds}s, of {tasks.score}. "
        f"What is above {tasks.reference} has {tasks.normalized} above 1.",
        *published.note(results.chosen),
        *(f"Published: {s}." for s in dict.fromkeys(o.source for o in others.values())),
    ]
    return Table(Key(Kind.TASKS), title, tuple(columns), tuple(rows), tuple(notes))


def _counts(
    results: Results,
    tasks: Tasks,
    ours: Mapping[str, OnTasks],
    others: Mapping[str, PublishedTasks],
) -> list[tuple[Cell, ...]]:
    """The rows below: tasks above the reference, and above the baseline's score."""
    means = {method: one.means() for method, one in ours.items()}
    theirs = {method: one.normalized for method, one in others.items()}
    above: list[Cell] = [f"above {tasks.reference}"]
    ahead: list[Cell] = [f"more than {tasks.baseline}"]
    for method in results.methods:
        for scores in (means, theirs) if others else (means,):
            mine, base = scores.get(method), scores.get(tasks.baseline or "")
            above.append(_of(_above(mine.values()), len(mine)) if mine else None)
            is_compared = mine and base and method != tasks.baseline
            ahead.append(
                _of(*across_tasks.count_more(mine, base)) if is_compared else None
            )
    is_there = tasks.baseline in results.methods
    return [tuple(above), tuple(ahead)] if is_there else [tuple(above)]


def _summary(
    results: Results,
    tasks: Tasks,
    found: Sequence[OnTasks],
    others: Mapping[str, PublishedTasks],
) -> Table:
    """A row a method: statistics over tasks, and how often it is ahead of others."""
    shown = [one for one in found if one.tasks]
    every, rivals = len(across_tasks.tasks_of(results)), _rivals(tasks, shown)
    rows = []
    for one in shown:
        row: list[Cell] = [
            one.method,
            grid.describe(results.sweep, one.configuration.values),
            Share(len(one.tasks), every),
            *(intervals.over_tasks(name, one.normalized) for name in STATISTICS),
            Share(_above(one.means().values()), len(one.tasks)),
        ]
        row += [
            None if one is rival else Share(*across_tasks.wins(one, rival))
            for rival in rivals
        ]
        rows.append((*row, *_their_statistics(one, others)))
    names = [_SHOWN.get(name, name) for name in STATISTICS]
    columns = (
        *(Column("method"), Column("selected"), Column(f"{tasks.field}s", "share")),
        *(Column(name, "interval") for name in names),
        Column(f"above {tasks.reference}", "share"),
        *(Column(f"more than {rival.method}", "share") for rival in rivals),
        *(Column(n, "interval", "published", True) for n in names if others),
    )
    title = f"{tasks.normalized} over {tasks.field}s at {_at(results.chosen)}"
    notes = (
        _how(results, tasks),
        *_lacking(results, shown),
        *([f"Published: over the same {tasks.field}s."] if others else []),
        *published.note(results.chosen),
        *_disagreements(results.chosen, tasks),
    )
    return Table(Key(Kind.TASK_SUMMARY), title, columns, tuple(rows), notes)


def _rivals(tasks: Tasks, shown: Sequence[OnTasks]) -> list[OnTasks]:
    """The methods that all are compared with: of many, only the baseline."""
    if len(shown) <= MAX_ABREAST:
        return list(shown)
    return [one for one in shown if one.method == tasks.baseline]


def _their_statistics(
    one: OnTasks, others: Mapping[str, PublishedTasks]
) -> list[float | None]:
    """The published statistics, over the tasks that we have."""
    if not others:
        return []
    theirs = others[one.method].normalized if one.method in others else {}
    values = [theirs[task] for task in one.tasks if task in theirs]
    if len(values) < len(one.tasks):
        return [None] * len(STATISTICS)
    return [intervals.point_over_tasks(name, _numbers(values)) for name in STATISTICS]


def _how(results: Results, tasks: Tasks) -> str:
    seed, field = results.sweep.select.over[0], tasks.field
    return (
        f"1 is {tasks.reference}. Median and mean are of the means over {seed}s of "
        f"each {field}; the interquartile mean is of all runs. 95 % intervals of a "
        f"bootstrap over {seed}s, stratified by {field}; a single {seed} has none. "
        f"{TOO_NARROW}"
    )


def _lacking(results: Results, found: Sequence[OnTasks]) -> list[str]:
    """Says which methods have not all tasks, and that they do not compare."""
    field, notes = results.sweep.select.over[1], []
    every = len(across_tasks.tasks_of(results))
    for one in found:
        if one.missing:
            names = [formatting.short(task) for task in one.missing]
            first = next(iter(one.missing.values()))
            notes.append(
                f"{one.method} lacks {len(names)} of {every} {field}s: "
                f"{', '.join(names)} ({names[0]}: {first}). Statistics over the "
                f"others do not compare with those over all."
            )
    shown = {one.method for one in found}
    notes += [
        f"{method} has no complete configuration."
        for method in results.methods
        if method not in shown
    ]
    return notes


def _disagreements(chosen: Chosen, tasks: Tasks) -> list[str]:
    """Names printed statistics that are not those of the same source's tasks."""
    by_task, notes = {one.method: one for one in _published(chosen)}, []
    for one in published.summaries(chosen, *_budget(chosen)):
        if one.method not in by_task:
            continue
        values = _numbers(by_task[one.method].normalized.values())
        for name in STATISTICS:
            printed, ours = getattr(one, name), intervals.point_over_tasks(name, values)
            if printed and not math.isclose(printed, ours, rel_tol=_SAME):
                notes.append(
                    f"{one.source} states a {_SHOWN.get(name, name)} of {printed:g} "
                    f"for {one.method}; the published scores of each {tasks.field} "
                    f"give {formatting.suffixed(ours)}."
                )
    return notes


def _published(chosen: Chosen) -> list[PublishedTasks]:
    return published.on_tasks(chosen, *_budget(chosen))


def _budget(chosen: Chosen) -> tuple[str, float]:
    """Returns the first axis and its last budget."""
    axis = selection.first_axis(chosen)
    return axis, selection.last_budget(chosen, axis)


def _at(chosen: Chosen) -> str:
    axis, last = _budget(chosen)
    return f"{formatting.shown_amount(last)} {axis}"


def _score(one: OnTasks | None, task: Any) -> Estimate | None:
    place = one.of(task) if one else None
    if one is None or place is None:
        return None
    return estimates.estimate(one.scores[:, place].tolist())


def _numbers(values: Iterable[float]) -> np.ndarray:
    """Arranges one number a task as those of a single run, [1, M]."""
    return np.array([[*values]], dtype=float)


def _above(values: Iterable[float]) -> int:
    return sum(value > 1 for value in values)


def _of(part: int, whole: int) -> str:
    return f"{part} / {whole}"
