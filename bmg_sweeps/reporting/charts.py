"""Learning curves of every configuration, as data for a page's charts."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bmg_sweeps.analysis import estimates, readings
from bmg_sweeps.analysis.readings import Trained
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Selection
from bmg_sweeps.reporting import (
    agreement_lines,
    curves,
    expected_best,
    grid_charts,
    published,
    task_curves,
)
from bmg_sweeps.sweep import display, grid, task_display
from bmg_sweeps.sweep.choices import Chosen

MAX_NUMBERS = 80_000  # In all lines of a page, so that it stays small enough to mail.
MAX_AMOUNTS = 300  # A line has no more amounts.
MIN_AMOUNTS = 20  # A line has no fewer, however many lines there are.


def data(results: Results) -> dict[str, Any]:
    """Collects what the charts show, as values that JSON has.

    Returns:
        `configurations`, in the sweep's order, with labels and the number of their
        style; `panels`, with labels, and what the best attain in those that show it,
        by budget or by the `categories` of a field;
        `expected_best`, panels of their own; `methods`, by name; `amounts`, the rows of
        numbers that lines are drawn over; and `axes`, each with the places of its best
        configurations and,
        for each panel, a line `[place in amounts, means, deviations]` by the place of
        its configuration, published numbers, and which part of the axis is shown if not
        all of it is. In a panel of ranges the last of the three are the means of the
        range's other end. An axis also has `grids`, as `grid_charts` says, and
        `agreement`, the lines of `agreement_lines`.
    """
    groups, selections = results.configurations, results.selections
    places = {key: i for i, key in enumerate(groups)}
    best = {a: [places[key] for key in _best_ids(s)] for a, s in selections.items()}
    shown = curves.panels(results.sweep)
    is_best = {i for of_axis in best.values() for i in of_axis}
    limits = _limits(results, is_best)
    pool: dict[tuple, int] = {}
    axes = []
    for axis, selected in selections.items():
        panels = [
            _panel(results, axis, panel, limits, pool)
            for panel in (() if selected.refused else shown)
        ]
        about = {"name": axis, "best": best[axis], "panels": panels}
        about |= {"grids": grid_charts.data(results, axis)}
        agreeing = [one._asdict() for one in agreement_lines.make(results, axis)]
        axes.append(about | {"agreement": agreeing})
    return {
        "configurations": _configurations(results, best[results.first.axis]),
        "panels": [
            {"title": p.title, "label": p.label, "is_range": _is_range(p)}
            | _best(results, p)
            for p in shown
        ],
        "expected_best": expected_best.data(results),
        "methods": list(results.methods),
        "axes": axes,
        "amounts": [list(amounts) for amounts in pool],
    }


def _best(results: Results, panel: curves.Panel) -> dict[str, Any]:
    """What the selected configurations attain, in a panel that shows it."""
    if isinstance(panel, display.Curve):
        return {}
    if isinstance(panel, task_display.TaskSummary):
        attained = task_curves.summary(results, panel)
        labels = task_curves.labels(results) if attained else {}
        stars = task_curves.published_points(results.chosen, panel)
        return {
            "below": results.first.axis,
            "categories": [],
            "attained": [
                _written_attained(one) | {"label": labels[one.method]}
                for one in attained
            ],
            "published": [
                {"method": m, "at": at, "mean": mean, "deviation": None}
                for m, at, mean in stars
            ],
        }
    others = () if panel.by else published.best(results.chosen, panel.axis)
    return {
        "below": curves.below(results.sweep, panel),
        "categories": curves.categories(results, panel),
        "attained": [
            one._asdict() | {"label": one.method}
            for one in curves.attained(results, panel)
        ],
        "published": [_published_point(a) for a in others],
    }


def _written_attained(one: curves.Attained) -> dict[str, Any]:
    """Writes a statistic over tasks with few digits."""
    spread = [math.nan if d is None else d for d in one.deviations]
    numbers = {"at": _rounded(one.at, 6), "means": _rounded(one.means, 5)}
    return one._asdict() | numbers | {"deviations": _rounded(spread, 3)}


def _is_range(panel: curves.Panel) -> bool:
    return isinstance(panel, display.Curve) and panel.to is not None


def _panel(results: Results, axis: str, panel, limits, pool) -> dict[str, Any]:
    """What a panel shows on an axis: lines by the place of their configuration."""
    if not isinstance(panel, display.Curve):
        return {"lines": {}, "span": "", "published": []}
    lines: dict[int, curves.Line] = {}
    for i, members in enumerate(results.configurations.values()):
        method = grid.method_of(results.sweep, members[0].point.values)
        is_shown = panel.methods is None or method in panel.methods
        if is_shown and (line := _line(results, axis, panel, members, limits[i])):
            lines[i] = line
    return {
        "lines": {i: _written(line, pool) for i, line in lines.items()},
        "span": curves.span(results, axis, panel, [*lines.values()]),
        "published": _published(results.chosen, axis, panel),
    }


def _written(line: curves.Line, pool: dict[tuple, int]) -> list:
    place = pool.setdefault(tuple(_rounded(line.amounts, 6)), len(pool))
    written = [place, _rounded(line.means, 5)]
    if line.others is not None:
        written.append(_rounded(line.others, 5))
    elif line.deviations is not None:
        written.append(_rounded(line.deviations, 3))
    return written


def _configurations(results: Results, first: Sequence[int]) -> list[dict[str, Any]]:
    """Says what they are; one of each method, the first axis's best, has its style."""
    groups = results.configurations
    every = [*first, *range(len(groups))]
    sweep, runs = results.sweep, [*groups.values()]
    methods = [grid.method_of(sweep, members[0].point.values) for members in runs]
    shown = [next(i for i in every if methods[i] == m) for m in results.methods]
    order = dict.fromkeys([*shown, *every])
    styles = {place: style for style, place in enumerate(order)}
    return [
        _configuration(sweep, members) | {"style": styles[i]}
        for i, members in enumerate(runs)
    ]


def _best_ids(selected: Selection) -> list[str]:
    """The best of each method at the last budget that the method has reached."""
    last = {score.method: score.configuration.id for score in selected.best}
    return list(last.values())


def _configuration(sweep: grid.Sweep, members: Sequence[Trained]) -> dict[str, Any]:
    """Says what a configuration is, and how many of its seeds there are."""
    over = sweep.select.over
    values = members[0].point.configuration(over).values
    asked = {one.point.values[over[0]] for one in members}
    found = {one.point.values[over[0]] for one in _drawn(over, members)}
    count = estimates.counted(over, [one.point for one in members])
    return {
        "method": grid.method_of(sweep, values),
        "label": grid.describe(sweep, values),
        "seeds": count if found == asked else f"{len(found)} of {count}",
    }


def _drawn(over: Sequence[str], members: Sequence[Trained]) -> list[Trained]:
    """Keeps the seeds of which every run has rows: the others' means would differ."""
    without = [one for one in members if not one.rows or one.record.damage]
    partial = {one.point.values[over[0]] for one in without}
    return [one for one in members if one.point.values[over[0]] not in partial]


def _limits(results: Results, is_best: set[int]) -> list[int]:
    """Says of how many amounts each configuration's lines are, by its place.

    The best ones have as many as any; the others share what numbers are left.
    """
    seed, number = results.sweep.select.over[0], len(results.configurations)
    num_seeds = len({p.values[seed] for p in results.chosen.points})
    shown = curves.panels(results.sweep)
    num_curves = sum(isinstance(panel, display.Curve) for panel in shown)
    num_lines = len(results.selections) * num_curves * (1 if num_seeds < 2 else 2)
    others = (number - len(is_best)) * num_lines
    left = MAX_NUMBERS - len(is_best) * num_lines * MAX_AMOUNTS
    few = int(np.clip(left // (others or 1), MIN_AMOUNTS, MAX_AMOUNTS))
    return [MAX_AMOUNTS if i in is_best else few for i in range(number)]


def _line(results: Results, axis: str, panel, members, most: int) -> curves.Line | None:
    """Averages a column over seeds; None where there is nothing to draw."""
    members = _drawn(results.sweep.select.over, members)
    widths = {readings.pack_width(one) for one in members}
    is_timed = any(map(readings.is_timed, (axis, panel.metric)))
    if not members or (is_timed and widths != {1}):
        return None  # The hours of a pack are not its points' own.
    line = curves.line(results, axis, panel, members, most)
    return line if np.isfinite(line.means).any() else None


def _published(chosen: Chosen, axis: str, panel: display.Curve) -> list[dict[str, Any]]:
    """The published numbers that a panel has a place for."""
    rule = chosen.sweep.select
    begin, end = curves.window(chosen, panel)
    is_compared = panel.to is None and panel.metric == (rule.test or rule.metric)
    if axis != rule.axis or not is_compared:
        return []
    others = published.best(chosen, axis)
    return [_published_point(a) for a in others if begin < a.budget <= end]


def _published_point(a: display.PublishedBest) -> dict[str, Any]:
    return {"method": a.method, "at": a.budget, "mean": a.mean,
            "deviation": a.deviation}  # fmt: skip


def _rounded(numbers: Iterable[float], digits: int) -> list[float | int | None]:
    """Writes numbers with few digits; what is not finite is a gap."""
    short = [float(f"{n:.{digits}g}") if math.isfinite(n) else None for n in numbers]
    return [int(n) if n is not None and n.is_integer() else n for n in short]
