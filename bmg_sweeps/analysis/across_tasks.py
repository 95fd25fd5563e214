"""What each method's selected configuration has on every task, such as each game.

A method has a task where each seed of its configuration has trained on it to the
budget. What a method lacks is named, so that a statistic says which tasks it is over.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bmg_sweeps.analysis import at_budget, selection
from bmg_sweeps.analysis.readings import Trained
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.point import Point
from bmg_sweeps.sweep.task_display import Tasks


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnTasks:
    """A method's scores: N seeds of each of the M tasks that it has."""

    method: str
    configuration: Point
    seeds: tuple[Any, ...]
    tasks: tuple[Any, ...]
    members: tuple[tuple[Trained, ...], ...]  # [M][N] runs.
    scores: np.ndarray  # [N, M] in the tasks' own units.
    normalized: np.ndarray  # [N, M] on one scale.
    missing: Mapping[Any, str]  # Tasks that others have, and why they are not here.

    def of(self, task: Any) -> int | None:
        """Returns the place of a task; None where it is missing."""
        return self.tasks.index(task) if task in self.tasks else None

    def means(self) -> dict[Any, float]:
        """Averages the normalized scores of each task over seeds."""
        return dict(zip(self.tasks, self.normalized.mean(axis=0).tolist(), strict=True))


def tasks_of(results: Results) -> tuple[Any, ...]:
    """Returns all tasks of a sweep's points, in order."""
    field = _declared(results).field
    return tuple(sorted({p.values[field] for p in results.chosen.points}))


def read(results: Results) -> tuple[OnTasks, ...]:
    """Reads what the methods have at the last budget of the sweep's first axis.

    A method's configuration is the selected one. Where none is complete, and there is
    only one, it is that: it has the tasks that are done.

    Args:
        results: of a sweep that names its tasks.

    Returns:
        One for each method that has a configuration to show, in the sweep's order.
    """
    every, found = tasks_of(results), []
    for method, members in _configurations(results).items():
        found.append(_read(results, method, members, every))
    return tuple(found)


def wins(one: OnTasks, other: OnTasks) -> tuple[int, int]:
    """Counts the tasks on which a method has more on average than another.

    Returns:
        How many, and how many tasks both have.
    """
    ours, others = one.means(), other.means()
    return count_more(ours, others)


def count_more(
    scores: Mapping[Any, float], others: Mapping[Any, float]
) -> tuple[int, int]:
    """Counts the tasks whose score is more than another's, and those that both have."""
    common = scores.keys() & others.keys()
    return sum(scores[task] > others[task] for task in common), len(common)


def _declared(results: Results) -> Tasks:
    tasks = results.sweep.tasks
    if tasks is None:
        raise ValueError("tasks = None: expected a sweep that names its tasks")
    return tasks


def _configurations(results: Results) -> dict[str, list[Trained]]:
    """The runs of the configuration that is shown, by method."""
    sweep, axis = results.sweep, results.first.axis
    last = selection.last_budget(results.chosen, axis)
    best = {s.method: s for s in results.first.best if s.budget == last}
    rivals: dict[str, list[list[Trained]]] = {}
    for members in results.configurations.values():
        method = grid.method_of(sweep, members[0].point.values)
        rivals.setdefault(method, []).append(members)
    shown = {}
    for method in results.methods:
        if method in best:
            shown[method] = results.members(best[method])
        elif len(rivals.get(method, ())) == 1:
            (shown[method],) = rivals[method]
    return shown


def _read(
    results: Results, method: str, members: Sequence[Trained], every: Sequence[Any]
) -> OnTasks:
    """Arranges the runs of a configuration by task and seed."""
    tasks, rule = _declared(results), results.sweep.select
    runs = {
        (m.point.values[tasks.field], m.point.values[rule.over[0]]): m for m in members
    }
    seeds = tuple(sorted({seed for _, seed in runs}))
    found: dict[Any, list[tuple[float, float]]] = {}
    missing: dict[Any, str] = {}
    for task in every:
        cells = [_cells(results, runs.get((task, seed)), seed) for seed in seeds]
        why = next((cell for cell in cells if isinstance(cell, str)), None)
        if why is None:
            found[task] = cells
        else:
            missing[task] = why
    values = np.array([*found.values()], dtype=float).reshape(len(found), len(seeds), 2)
    return OnTasks(
        method=method,
        configuration=members[0].point.configuration(rule.over),
        seeds=seeds,
        tasks=tuple(found),
        members=tuple(tuple(runs[task, seed] for seed in seeds) for task in found),
        scores=values[..., 0].T,
        normalized=values[..., 1].T,
        missing=missing,
    )


def _cells(
    results: Results, run: Trained | None, seed: Any
) -> tuple[float, float] | str:
    """Reads both scores of a run; or says why it has none."""
    tasks, rule = _declared(results), results.sweep.select
    if run is None:
        return f"no point of {rule.over[0]} {seed}"
    axis = results.first.axis
    last = selection.last_budget(results.chosen, axis)
    pair = []
    for metric in (tasks.score, tasks.normalized):
        column = at_budget.read_all([run], axis, last, metric)
        if isinstance(column, str):
            return f"{rule.over[0]} {seed}: {column}"
        pair += column
    return pair[0], pair[1]
