"""Tables of how scores are spread over many tasks, and what tuning per task gains."""

from collections.abc import Iterator, Mapping

import numpy as np

from bmg_sweeps import formatting
from bmg_sweeps.analysis import across_tasks, profiles, selection
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting.improvement import TOO_NARROW
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Share, Table
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.choices import Chosen

THRESHOLDS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # Normalized scores.


def make(results: Results) -> list[Table]:
    """Makes the tables at the last budget of the sweep's first axis.

    Returns:
        The performance profile with the optimality gap, of what is selected; and, where
        a method has several configurations, what tuning per task gains. None of a sweep
        without tasks, or where nothing may be selected.
    """
    if results.first.refused:
        return []
    makers = {Kind.TASK_PROFILE: _profile, Kind.TASK_SENSITIVITY: _sensitivity}
    return [makers[key.kind](results, key) for key in keys(results.chosen)]


def keys(chosen: Chosen) -> list[Key]:
    """Names the tables of `make`."""
    if chosen.sweep.tasks is None:
        return []
    several = [Key(Kind.TASK_SENSITIVITY)] if chosen.has_choice else []
    return [Key(Kind.TASK_PROFILE), *several]


def _profile(results: Results, key: Key) -> Table:
    tasks, rows = results.sweep.tasks, []
    every = len(across_tasks.tasks_of(results))
    for one in across_tasks.read(results):
        if one.tasks:
            gap = profiles.optimality_gap(one.normalized)
            shares = profiles.profile(one.normalized, THRESHOLDS)
            has = Share(len(one.tasks), every)
            rows.append((one.method, has, gap, *shares))
    columns = (
        *(Column("method"), Column(f"{tasks.field}s", "share")),
        Column("optimality gap", "interval"),
        *(
            Column(f"> {formatting.short(t)}", "probability", "share of runs")
            for t in THRESHOLDS
        ),
    )
    seed = results.sweep.select.over[0]
    note = (
        f"The optimality gap is how far {tasks.normalized} is below 1, "
        f"{tasks.reference}, on average; what is above does not count. Shares are of "
        f"all {seed}s of all {tasks.field}s (Agarwal et al., 2021). 95 % intervals of "
        f"a bootstrap over {seed}s, stratified by {tasks.field}. {TOO_NARROW}"
    )
    title = f"Profile of {tasks.normalized} over {tasks.field}s at {_at(results)}"
    return Table(key, title, columns, tuple(rows), (note,))


def _sensitivity(results: Results, key: Key) -> Table:
    tasks, rows = results.sweep.tasks, []
    of_methods = profiles.of_configurations(results)
    for method, scores in of_methods.items():
        found = profiles.sensitivity(scores)
        row: list[Cell] = [method, Share(len(scores), _number(results, method))]
        row += [Estimate(found.for_all, None), Estimate(found.per_task, None)]
        rows.append((*row, found.gain, found.held_out))
    columns = (
        *(Column("method"), Column("configurations", "share")),
        Column("one for all", "estimate"),
        Column(f"one for each {tasks.field}", "estimate"),
        *(Column("gain", "difference"), Column("gain, held out", "difference")),
    )
    seed = results.sweep.select.over[0]
    note = (
        f"Mean {tasks.normalized} over {tasks.field}s of the best configuration for "
        f"all, and of the best for each; the gain is the sensitivity of Adkins et al. "
        f"(2024). It is flattered, as the best of many is; held out it is read on a "
        f"{seed} that did not choose, and averaged over {seed}s."
    )
    title = f"What tuning for each {tasks.field} gains at {_at(results)}"
    notes = (note, *_without(results, of_methods))
    return Table(key, title, columns, tuple(rows), notes)


def _without(results: Results, found: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Names methods that are not in the table of sensitivities, and those of few tasks.

    Args:
        results: of the sweep.
        found: scores [H, N, M] by method, of those that are in it.
    """
    every, field = len(across_tasks.tasks_of(results)), results.sweep.tasks.field
    for method in results.methods:
        number = _number(results, method)
        if method in found:
            few = found[method].shape[-1]
            if few < every:
                yield f"{method} has {few} of {every} {field}s."
        elif number == 1:
            yield f"{method} is left out: it has one configuration."
        else:
            yield (
                f"{method} is left out: fewer than two of its {number} configurations "
                f"are complete."
            )


def _number(results: Results, method: str) -> int:
    """Counts a method's configurations, complete or not."""
    members = results.configurations.values()
    firsts = [runs[0].point.values for runs in members]
    return sum(grid.method_of(results.sweep, values) == method for values in firsts)


def _at(results: Results) -> str:
    axis = results.first.axis
    last = selection.last_budget(results.chosen, axis)
    return f"{formatting.shown_amount(last)} {axis}"
