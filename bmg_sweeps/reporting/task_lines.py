"""What CSV has of each task, such as each game, below a configuration's own line."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from bmg_sweeps.analysis import at_budget, estimates
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.reporting import published
from bmg_sweeps.sweep import grid

_Cells = tuple[Any, ...]


def names(sweep: grid.Sweep) -> _Cells:
    """Names the last columns: the task, its score, deviation, and what is published.

    Returns:
        Such as "game" and "game_score"; () of a sweep without tasks.
    """
    if sweep.tasks is None:
        return ()
    score = f"{sweep.tasks.field}_{sweep.tasks.score}"
    return sweep.tasks.field, score, f"{score}_deviation", f"{score}_published"


def of(results: Results, score: Score) -> Iterator[tuple[_Cells, _Cells]]:
    """Writes a configuration's tasks at a budget.

    Args:
        results: of the sweep.
        score: of the configuration.

    Yields:
        For each task the metric that decides, its deviation over seeds, and the numbers
        of points, seeds and tasks; and the cells of `names`.
    """
    tasks = results.sweep.tasks
    if tasks is None:
        return
    raw = at_budget.read_all(
        results.members(score), score.axis, score.budget, tasks.score
    )
    others = published.on_tasks(results.chosen, score.axis, score.budget)
    theirs = {one.method: one.scores for one in others}.get(score.method, {})
    runs: dict[Any, list[int]] = {}
    for i, p in enumerate(score.points):
        runs.setdefault(p.values[tasks.field], []).append(i)
    for task, places in sorted(runs.items()):
        metric = estimates.estimate(score.values[i] for i in places)
        number: _Cells = ("", "")
        if not isinstance(raw, str):
            number = dataclasses.astuple(estimates.estimate(raw[i] for i in places))
        cells = (*dataclasses.astuple(metric), len(places), len(places), 1)
        yield cells, (task, *number, theirs.get(task, ""))
