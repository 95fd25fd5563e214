"""What figures of tasks show: curves of each, statistics over them, profiles."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from bmg_sweeps.analysis import across_tasks, intervals, profiles, selection
from bmg_sweeps.analysis.across_tasks import OnTasks
from bmg_sweeps.analysis.intervals import Interval
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting import curves, published
from bmg_sweeps.reporting.curves import Attained, Line
from bmg_sweeps.sweep import task_display
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.sweep.display import PublishedTasks

MAX_AMOUNTS = 50  # Of a statistic over tasks, which is drawn with its deviations.
MAX_SMALL = 120  # Of a line in a small panel.


def figures(results: Results) -> tuple[task_display.Figure, ...]:
    """Returns the panels that are images of their own.

    Returns:
        Those whose methods have points; none where nothing may be selected.
    """
    if results.sweep.tasks is None or results.first.refused:
        return ()
    shown = results.sweep.curves
    return tuple(
        c for c in shown if isinstance(c, task_display.Figure) and _has_any(results, c)
    )


def _has_any(results: Results, panel: task_display.Figure) -> bool:
    """Whether a panel's methods have points: two that are compared both have to."""
    found = [method in results.methods for method in task_display.methods_of(panel)]
    needed = all if isinstance(panel, task_display.TaskDifferences) else any
    return not found or needed(found)


def by_task(
    results: Results, panel: task_display.TaskCurves
) -> Iterator[tuple[Any, dict[str, Line]]]:
    """Reads a column of every method, task by task.

    Args:
        results: of the sweep.
        panel: says which column and methods.

    Yields:
        Each task, and by method the line over the sweep's first axis.
    """
    axis, over = results.first.axis, results.sweep.select.over
    shown = _shown(results, panel)
    stop = results.chosen.stop.get(axis, np.inf)
    for task in across_tasks.tasks_of(results):
        lines = {}
        for one in shown:
            place = one.of(task)
            if place is None:
                continue
            members = one.members[place]
            amounts, values = curves.curve(
                members, axis, panel.metric, (0.0, stop), MAX_SMALL
            )
            if len(amounts):
                lines[one.method] = Line(
                    amounts, *curves.over_seeds(over, members, values)
                )
        yield task, lines


def summary(results: Results, panel: task_display.TaskSummary) -> list[Attained]:
    """Summarizes normalized scores over tasks, at amounts of training.

    Args:
        results: of the sweep.
        panel: says which statistic and methods.

    Returns:
        For each method the statistic, and its deviation over seeds: that of the
        statistic of each seed's scores.
    """
    if results.sweep.tasks is None or results.first.refused:
        return []
    metric, made = results.sweep.tasks.normalized, []
    stop = results.chosen.stop.get(results.first.axis, np.inf)
    for one in _shown(results, panel):
        runs = [run for members in one.members for run in members]
        amounts, values = curves.curve(
            runs, results.first.axis, metric, (0.0, stop), MAX_AMOUNTS
        )
        shape = (len(one.tasks), len(one.seeds), len(amounts))
        scores = np.moveaxis(values.reshape(shape), 0, 1)  # [N, M, T].
        means, deviations = [], []
        for i in range(len(amounts)):
            now = scores[..., i]
            means.append(intervals.point_over_tasks(panel.statistic, now))
            apart = [
                intervals.point_over_tasks(panel.statistic, seed[np.newaxis])
                for seed in now
            ]
            deviations.append(float(np.std(apart, ddof=1)) if len(apart) > 1 else None)
        made.append(Attained(one.method, amounts.tolist(), means, deviations, []))
    return made


def labels(results: Results) -> dict[str, str]:
    """Names methods in panels of all tasks, and says how many a method has of them.

    Returns:
        By method its label, such as "STACX (1 of 2 games)".
    """
    field, found = results.sweep.select.over[1], {}
    for one in across_tasks.read(results):
        every = len(one.tasks) + len(one.missing)
        lacks = f" ({len(one.tasks)} of {every} {field}s)" if one.missing else ""
        found[one.method] = f"{one.method}{lacks}"
    return found


def published_points(
    chosen: Chosen, panel: task_display.TaskSummary
) -> list[tuple[str, float, float]]:
    """Returns the published statistics that a panel has a place for.

    Returns:
        Method, budget and number: of the published tasks, or as printed where there are
        none.
    """
    axis = selection.first_axis(chosen)
    last = selection.last_budget(chosen, axis)
    found = {
        one.method: _of_published(panel.statistic, one)
        for one in published.on_tasks(chosen, axis, last)
    }
    for one in published.summaries(chosen, axis, last):
        number = getattr(one, panel.statistic)
        if number is not None:
            found.setdefault(one.method, number)
    return [(method, last, number) for method, number in found.items()]


def _of_published(statistic: str, one: PublishedTasks) -> float:
    scores = np.array([[*one.normalized.values()]])
    return intervals.point_over_tasks(statistic, scores)


def differences(
    results: Results, panel: task_display.TaskDifferences
) -> list[tuple[Any, float]]:
    """Compares two methods task by task, by the means of their normalized scores.

    Args:
        results: of the sweep.
        panel: says which methods.

    Returns:
        The tasks that both have, with more − less, largest first.
    """
    found = {one.method: one.means() for one in _shown(results, panel)}
    more, less = found.get(panel.more, {}), found.get(panel.less, {})
    common = [(task, more[task] - less[task]) for task in more if task in less]
    return sorted(common, key=lambda pair: -pair[1])


def distribution(
    results: Results, panel: task_display.TaskDistribution
) -> dict[str, np.ndarray]:
    """Collects the normalized scores of all runs on all tasks, by method.

    Args:
        results: of the sweep.
        panel: says which methods, and whether the scores of each task are less their
            mean, and by their deviation, over the runs of all these methods.

    Returns:
        Arrays [N M]. Where they are standardized, scores that are all the same are 0.
    """
    shown = _shown(results, panel)
    if not panel.is_standardized:
        return {one.method: one.normalized.ravel() for one in shown}
    runs: dict[Any, list[float]] = {}
    for one in shown:
        for task, column in zip(one.tasks, one.normalized.T, strict=True):
            runs.setdefault(task, []).extend(column)
    scale = {task: (np.mean(x), np.std(x) or 1.0) for task, x in runs.items()}
    return {one.method: _standardized(one, scale).ravel() for one in shown}


class Profile(NamedTuple):
    """What share of a method's runs has more than each score, as steps."""

    method: str
    thresholds: np.ndarray  # τ, at which a step begins.
    shares: list[float]
    edges: tuple[list[float], list[float]] | None  # The 95 % band; None of one seed.


def profile(results: Results, panel: task_display.TaskProfile) -> list[Profile]:
    """Says what share of all runs on all tasks has more than each score.

    Args:
        results: of the sweep.
        panel: says which methods.

    Returns:
        One for each method. Its steps begin at its own scores, so none is left out, and
        all reach from 0, or the lowest score that is shown, to the highest.
    """
    shown = _shown(results, panel)
    every = np.concatenate([[0.0], *(one.normalized.ravel() for one in shown)])
    made = []
    for one in shown:
        own = [every.min(), *one.normalized.ravel(), every.max()]
        thresholds = np.unique(own)
        found = profiles.profile(one.normalized, thresholds.tolist())
        bands = [each for each in found if isinstance(each, Interval)]
        shares = [each.estimate for each in bands] or found
        edges = [each.low for each in bands], [each.high for each in bands]
        made.append(Profile(one.method, thresholds, shares, edges if bands else None))
    return made


def _standardized(one: OnTasks, scale: Mapping[Any, tuple[Any, Any]]) -> np.ndarray:
    means, deviations = np.transpose([scale[task] for task in one.tasks])
    return (one.normalized - means) / deviations


def _shown(results: Results, panel: task_display.Panel) -> list[OnTasks]:
    """The methods of a panel that have any task."""
    methods = task_display.methods_of(panel)
    return [
        one
        for one in across_tasks.read(results)
        if one.tasks and (not methods or one.method in methods)
    ]
