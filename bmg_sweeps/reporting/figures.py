"""Learning curves of a sweep as a PNG file."""

import io
import itertools
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")  # No window: the file is all that is wanted.
from matplotlib import pyplot, ticker

from bmg_sweeps import formatting
from bmg_sweeps.analysis import estimates
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.reporting import agreement_lines, curves, published, task_curves
from bmg_sweeps.sweep import display, grid, task_display

# Okabe and Ito's colors, which the color-blind can tell apart; those of `page.js`.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
_GRAY = "#808890"  # Of published numbers that no method of ours has.
_DASHES = ("-", "--", ":", "-.")
STYLES = tuple({"color": c, "linestyle": d} for d in _DASHES for c in COLORS)
TEXT = {"text.parse_math": False}  # Names of methods are text.


def draw(results: Results) -> bytes:
    """Draws each of a sweep's panels, with the best configuration of every method.

    Args:
        results: of the sweep; curves are drawn on the first axis.

    Returns:
        A PNG file. Lines are means over seeds, bands one standard deviation around; a
        shaded range reaches from the mean of one column to that of another. Panels of
        one label have one scale.
        Best is at the last budget that any configuration has reached; what is not
        there, the title says. The last panel is the agreement of budgets, where there
        is one.
    """
    with pyplot.rc_context(TEXT):
        return _drawn(results)


def _drawn(results: Results) -> bytes:
    sweep, selected = results.sweep, results.first
    last = max((score.budget for score in selected.best), default=None)
    best = [score for score in selected.best if score.budget == last]
    shown = curves.panels(sweep)
    agreeing = agreement_lines.make(results, selected.axis)
    figure, panels = _panels(len(shown) + bool(agreeing))
    for panel, curve in zip(panels, shown, strict=False):
        if isinstance(curve, display.Best):
            _draw_best(panel, results, curve)
        elif isinstance(curve, task_display.TaskSummary):
            _draw_summary(panel, results, curve)
        else:
            _draw_curves(panel, results, curve, best)
    if agreeing:
        _draw_agreement(panels[-1], results, agreeing)
    for panel in panels:
        panel.grid(alpha=0.3)
        if panel.has_data():
            panel.legend(fontsize=7)
    _share_y(panels)
    figure.suptitle("\n".join([_title(results), *_not_drawn(results, best)]))
    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    pyplot.close(figure)
    return buffer.getvalue()


def styles(results: Results) -> dict[str, dict[str, Any]]:
    """Returns the style of each method that has points, the same in every figure."""
    return dict(zip(results.methods, itertools.cycle(STYLES), strict=False))


def _title(results: Results) -> str:
    """Says what is shown, and that it was chosen where there was a choice."""
    sweep, groups = results.sweep, results.configurations.values()
    methods = [grid.method_of(sweep, one.point.values) for one, *_ in groups]
    is_chosen = len(set(methods)) < len(methods)
    best = "; best of each method" if is_chosen else ""
    return f"{sweep.title} (scale {results.chosen.choice.scale}{best})"


def _not_drawn(results: Results, best: Sequence[Score]) -> list[str]:
    """Says which methods have no learning curve, as they are not where the best are."""
    shown = [p for p in curves.panels(results.sweep) if isinstance(p, display.Curve)]
    there = {score.method for score in best}
    missing = [
        method
        for method in results.methods
        if method not in there
        and any(p.methods is None or method in p.methods for p in shown)
    ]
    if not best or not missing:
        return []
    at = formatting.shown_amounts({best[0].axis: best[0].budget})
    return [f"No curve of {', '.join(missing)}: none is complete at {at}"]


def _panels(number: int) -> tuple[Any, list[Any]]:
    """Makes a figure of so many panels, in rows that a page is wide enough for."""
    columns = number if number <= 3 else 2
    rows = -(-number // columns)
    figure, panels = pyplot.subplots(
        rows, columns, figsize=(7 * columns, 4.5 * rows), squeeze=False
    )
    for panel in panels.flat[number:]:
        panel.remove()
    return figure, list(panels.flat[:number])


def _share_y(panels: Sequence[Any]) -> None:
    """Gives all panels of one label the range of values that they have together."""
    drawn = [panel for panel in panels if panel.has_data()]
    for label in {panel.get_ylabel() for panel in drawn}:
        alike = [panel for panel in drawn if panel.get_ylabel() == label]
        lows, highs = zip(*(panel.get_ylim() for panel in alike), strict=True)
        for panel in alike:
            panel.set_ylim(min(lows), max(highs))


def _draw_best(panel, results: Results, shown: display.Best) -> None:
    """Draws what the selected ones attain, and the published numbers beside them."""
    chosen = results.chosen
    by_method = styles(results)
    if shown.by:
        panel.xaxis.update_units(curves.categories(results, shown))
    for one in curves.attained(results, shown):
        style = by_method[one.method]
        spread = [deviation or 0.0 for deviation in one.deviations]
        panel.errorbar(
            one.at, one.means, spread, **style, label=one.method, capsize=2,
            marker="o", markersize=4, linewidth=0 if shown.by else 1.5, elinewidth=1,
        )  # fmt: skip
        if any(number is not None for number in one.held_out):
            hollow = style | {"linestyle": ":", "marker": "o", "fillstyle": "none"}
            numbers = np.array(one.held_out, dtype=float)  # None is a gap.
            panel.plot(one.at, numbers, **hollow, label=f"{one.method}, held out")
    for method in () if shown.by else by_method:
        others = [a for a in published.best(chosen, shown.axis) if a.method == method]
        if others:
            at, means = [a.budget for a in others], [a.mean for a in others]
            style = by_method[method] | {"marker": "*", "fillstyle": "none"}
            label = f"{method}, published"
            panel.plot(at, means, **style, linewidth=0, label=label)
    below = curves.below(chosen.sweep, shown)
    panel.set(title=shown.title, xlabel=below, ylabel=shown.label)
    set_ticks(panel.yaxis)
    if not shown.by:
        set_ticks(panel.xaxis)


def _draw_summary(panel, results: Results, shown: task_display.TaskSummary) -> None:
    """Draws a statistic over tasks, and where it stands what is published."""
    by_method, attained = styles(results), task_curves.summary(results, shown)
    labels = task_curves.labels(results) if attained else {}
    for one in attained:
        style = by_method[one.method] | {"label": labels[one.method]}
        deviations = None if None in one.deviations else np.array(one.deviations, float)
        line = curves.Line(np.array(one.at), np.array(one.means), deviations)
        draw_line(panel, line, style)
    for method, at, number in task_curves.published_points(results.chosen, shown):
        style = by_method.get(method, {"color": _GRAY}) | {"linestyle": "none"}
        panel.plot([at], [number], **style, marker="*", fillstyle="none", clip_on=False)
    panel.set(title=shown.title, xlabel=results.first.axis, ylabel=shown.label)
    for one_axis in (panel.xaxis, panel.yaxis):
        set_ticks(one_axis)


def _draw_agreement(panel, results: Results, lines) -> None:
    """Draws how each budget's ranking agrees with the last one, a dot without a seed.

    Increments are hollow and dotted.
    """
    by_method = styles(results)
    for line in lines:
        style = by_method[line.method] | {"marker": "o", "markersize": 4}
        label = line.method
        if line.is_of_increments:
            style |= {"linestyle": ":", "fillstyle": "none"}
            label += ", increments"
        panel.plot(line.at, line.taus, **style, label=label)
        at = [a for a, dots in zip(line.at, line.without, strict=True) for _ in dots]
        dots = [dot for dots in line.without for dot in dots]
        panel.plot(at, dots, **style | {"linestyle": "", "markersize": 2, "alpha": 0.5})
    axis = results.first.axis
    panel.set(title="Agreement of budgets", xlabel=axis, ylabel=agreement_lines.LABEL)
    set_ticks(panel.xaxis)


def _draw_curves(panel, results: Results, shown: display.Curve, best) -> None:
    """Draws the selected configurations, on the first axis."""
    axis, sweep, lines = results.first.axis, results.sweep, []
    drawn = [s for s in best if shown.methods is None or s.method in shown.methods]
    by_method = styles(results)
    for score in drawn:
        name = grid.name(sweep, score.configuration.values)
        label = f"{name}, {estimates.counted(sweep.select.over, score.points)}"
        apart = curves.held_out(results.first, score)
        if apart is not None and shown.metric == _deciding(sweep) and not shown.to:
            label += f", held out {formatting.suffixed(apart)}"
        lines.append(curves.line(results, axis, shown, results.members(score)))
        draw_line(panel, lines[-1], by_method[score.method] | {"label": label})
    span = curves.span(results, axis, shown, lines)
    title = f"{shown.title}, {span}" if span else shown.title
    panel.set(title=title, xlabel=axis, ylabel=shown.label)
    for one in (panel.xaxis, panel.yaxis):
        set_ticks(one)


def _deciding(sweep: grid.Sweep) -> str:
    """Names the column that held-out numbers are of."""
    return sweep.select.test or sweep.select.metric


def draw_line(panel, line: curves.Line, style, width: float = 1.5) -> None:
    """Draws mean and deviation over seeds; or the range between two means.

    A single amount is a marker, as it makes no line.
    """
    if len(line.amounts) == 1:
        style = style | {"marker": "o", "markersize": 4}
    area = {"color": style["color"], "linewidth": 0}
    if line.others is not None:
        area |= {"alpha": 0.3, "label": style["label"]}
        panel.fill_between(line.amounts, line.means, line.others, **area)
        panel.plot(line.amounts, line.means, **style | {"label": None}, linewidth=0.8)
        return
    panel.plot(line.amounts, line.means, **style, linewidth=width)
    if line.deviations is not None:
        edges = line.means - line.deviations, line.means + line.deviations
        panel.fill_between(line.amounts, *edges, alpha=0.2, **area)


def set_ticks(axis: Any) -> None:
    """Writes the numbers of an axis as 200k and 2M."""

    def written(number: float, _: int) -> str:
        low, high = axis.get_view_interval()
        is_zero = abs(number) < 1e-9 * (high - low)  # But for rounding.
        return formatting.suffixed(0.0 if is_zero else number, digits=6)

    axis.set_major_formatter(ticker.FuncFormatter(written))
