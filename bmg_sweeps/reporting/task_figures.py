"""Figures of a sweep's tasks, each an image of its own: PNG files; in a page, SVG."""

import io
import re
from collections.abc import Mapping
from typing import Any

from matplotlib import pyplot, ticker

from bmg_sweeps import formatting
from bmg_sweeps.analysis import across_tasks
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting import figures, task_curves
from bmg_sweeps.sweep import task_display

MAX_COLUMNS = 8  # Of small panels.
FEW = 6  # Tasks whose panels are larger.
_LINEAR = 1.0  # Differences up to this are on a linear scale, and others on a log one.
_STYLE = figures.TEXT | {
    "svg.fonttype": "none",  # Text stays text.
    "svg.hashsalt": "bmg_sweeps",  # Else names inside differ each time.
}


def draw(results: Results, panel: task_display.Figure, form: str) -> bytes:
    """Draws one of a sweep's figures of tasks.

    Args:
        results: of the sweep.
        panel: of its `curves`.
        form: "png" or "svg".

    Returns:
        The file; an SVG has no title, which its page writes.
    """
    title = panel.title if form == "png" else ""
    with pyplot.rc_context(_STYLE):
        if isinstance(panel, task_display.TaskCurves):
            figure = _curves(results, panel, title)
        elif isinstance(panel, task_display.TaskDifferences):
            figure = _differences(results, panel, title)
        elif isinstance(panel, task_display.TaskDistribution):
            figure = _distribution(results, panel, title)
        else:
            figure = _profile(results, panel, title)
        buffer = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else {}
        figure.savefig(
            buffer, format=form, dpi=120, metadata=metadata, bbox_inches="tight"
        )  # No text is cut off, however long it is.
        pyplot.close(figure)
    return buffer.getvalue()


def file_names(panels: tuple[task_display.Figure, ...]) -> list[str]:
    """Names the files of figures by what they show: "1-task-curves"."""
    kinds = [type(panel).__name__ for panel in panels]
    words = [re.sub(r"(?<!^)(?=[A-Z])", "-", kind).lower() for kind in kinds]
    return [f"{i}-{word}" for i, word in enumerate(words, start=1)]


def _curves(results: Results, panel: task_display.TaskCurves, title: str) -> Any:
    """Draws small panels, a task in each, all over the same range of training."""
    by_task = list(task_curves.by_task(results, panel))
    is_few = len(by_task) <= FEW
    columns = min(len(by_task), 3 if is_few else MAX_COLUMNS)
    rows = -(-len(by_task) // columns)
    width, height = (5.0, 3.6) if is_few else (2.0, 1.5)
    size = (max(width * columns, 7.0), height * rows + 1.2)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=size, squeeze=False, layout="constrained"
    )
    font, styles = (9 if is_few else 6.5), figures.styles(results)
    for axes, (task, lines) in zip(grid.flat, by_task, strict=False):
        for method, line in lines.items():
            style = styles[method] | {"label": method}
            figures.draw_line(axes, line, style, width=1.5 if is_few else 0.9)
        _set_small(axes, formatting.short(task), font)
    for axes in grid.flat[len(by_task) :]:
        axes.remove()
    over = f"over {results.first.axis}"
    figure.suptitle(f"{title}, {over}" if title else over, fontsize=10)
    figure.supylabel(panel.metric, fontsize=font)
    _add_legend(figure, grid.flat[: len(by_task)], styles)
    return figure


def _set_small(axes: Any, title: str, font: float) -> None:
    axes.set_title(title, fontsize=font + 0.5, pad=4)
    axes.tick_params(labelsize=font, length=2, pad=1.5)
    axes.grid(alpha=0.3)
    for one in (axes.xaxis, axes.yaxis):
        one.set_major_locator(ticker.MaxNLocator(3))
        figures.set_ticks(one)
    if not axes.has_data():
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "no rows", ha="center", va="center", fontsize=font,
                  transform=axes.transAxes)  # fmt: skip


def _add_legend(figure: Any, panels: Any, styles: Mapping[str, Any]) -> None:
    """Names each method once, below the panels."""
    found = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        found.update(zip(labels, handles, strict=True))
    names = [method for method in styles if method in found]
    if names:
        figure.legend(
            [found[name] for name in names], names, loc="outside lower center",
            fontsize=8, ncols=min(len(names), 8), frameon=False,
        )  # fmt: skip


def _differences(
    results: Results, panel: task_display.TaskDifferences, title: str
) -> Any:
    """Draws a bar for each task, the largest first, in the color of what is ahead."""
    pairs = task_curves.differences(results, panel)
    names = [formatting.short(task) for task, _ in pairs]
    values = [difference for _, difference in pairs]
    figure, axes = pyplot.subplots(figsize=(max(7.0, 0.24 * len(pairs) + 1.5), 4.5))
    styles = figures.styles(results)
    ahead_ones = [panel.more if value > 0 else panel.less for value in values]
    colors = [styles[method]["color"] for method in ahead_ones]
    axes.bar(range(len(pairs)), values, color=colors, width=0.8)
    if any(abs(value) > _LINEAR for value in values):
        axes.set_yscale("symlog", linthresh=_LINEAR)
    figures.set_ticks(axes.yaxis)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(pairs)), names, rotation=90, fontsize=8)
    axes.margins(x=0.01)
    axes.set_ylabel(f"{panel.label}: {panel.more} − {panel.less}", fontsize=9)
    axes.grid(axis="y", alpha=0.3)
    ahead, every = sum(v > 0 for v in values), len(across_tasks.tasks_of(results))
    common = f" that both have, of {every}" if len(pairs) < every else ""
    note = f"{panel.more} has more on {ahead} of {len(pairs)}{common}"
    axes.set_title(f"{title}\n{note}" if title else note, fontsize=10)
    figure.tight_layout()
    return figure


def _distribution(
    results: Results, panel: task_display.TaskDistribution, title: str
) -> Any:
    """Draws median, quartiles, and 5 and 95 % of the scores of each method."""
    found, styles = task_curves.distribution(results, panel), figures.styles(results)
    figure, axes = pyplot.subplots(figsize=(max(7.0, 1.1 * len(found) + 1.5), 4.5))
    if found:
        boxes = axes.boxplot(
            list(found.values()), whis=(5, 95), showfliers=False, patch_artist=True,
            medianprops={"color": "black"}, widths=0.6,
        )  # fmt: skip
        for box, method in zip(boxes["boxes"], found, strict=True):
            box.set(facecolor=styles[method]["color"], alpha=0.7)
        labels = task_curves.labels(results)
        names = [labels[method] for method in found]
        axes.set_xticks(range(1, len(found) + 1), names, fontsize=8)
        if not panel.is_standardized and _is_wide(axes.get_ylim()):
            axes.set_yscale("symlog", linthresh=_LINEAR)
            axes.autoscale(axis="y")
    figures.set_ticks(axes.yaxis)
    axes.set_ylabel(panel.label, fontsize=9)
    axes.grid(axis="y", alpha=0.3)
    axes.set_title(title, fontsize=10)
    figure.tight_layout()
    return figure


def _is_wide(limits: tuple[float, float]) -> bool:
    """Whether scores are so large that the small ones need a scale of their own."""
    return max(map(abs, limits)) > 10 * _LINEAR


def _profile(results: Results, panel: task_display.TaskProfile, title: str) -> Any:
    """Draws the share of each method's runs above every score, with its 95 % band."""
    found, styles = task_curves.profile(results, panel), figures.styles(results)
    figure, axes = pyplot.subplots(figsize=(7.0, 4.5))
    labels = task_curves.labels(results)
    for one in found:
        style = styles[one.method] | {"label": labels[one.method]}
        axes.step(one.thresholds, one.shares, **style, where="post")
        if one.edges is not None:
            axes.fill_between(
                one.thresholds, *one.edges, step="post", color=style["color"],
                alpha=0.12, linewidth=0,
            )  # fmt: skip
    if found:
        note = "bands: 95 %" if any(one.edges for one in found) else None
        axes.legend(title=note, fontsize=8, title_fontsize=8, frameon=False)
        axes.margins(x=0.01)
        if _is_wide(axes.get_xlim()):
            axes.set_xscale("symlog", linthresh=_LINEAR)
            axes.autoscale(axis="x")
    for one_axis in (axes.xaxis, axes.yaxis):
        figures.set_ticks(one_axis)
    seed, task = results.sweep.select.over
    axes.set_xlabel(f"τ: {panel.label}", fontsize=9)
    axes.set_ylabel(f"share of all {seed}s of all {task}s above τ", fontsize=9)
    axes.set_ylim(-0.02, 1.02)
    axes.grid(alpha=0.3)
    axes.set_title(title, fontsize=10)
    figure.tight_layout()
    return figure
