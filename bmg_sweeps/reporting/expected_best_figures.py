"""The expected best of n configurations as a PNG file."""

import io
from typing import Any

import numpy as np
from matplotlib import pyplot, ticker

from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting import curves, expected_best, figures
from bmg_sweeps.reporting.expected_best import Panel

PLAIN = "chosen and read on the same runs"


def draw(results: Results, panels: list[Panel]) -> bytes:
    """Draws the panels side by side.

    Args:
        results: of the sweep.
        panels: of it.

    Returns:
        A PNG file. Lines are held out, bands one standard deviation over seeds; dotted
        ones are chosen and read on the same seeds.
    """
    styles = figures.styles(results)
    with pyplot.rc_context(figures.TEXT):
        size = (7.0 * len(panels), 4.5)
        figure, (row,) = pyplot.subplots(1, len(panels), figsize=size, squeeze=False)
        for axes, panel in zip(row, panels, strict=True):
            _draw(axes, panel, styles)
        sweep, scale = results.sweep, results.chosen.choice.scale
        figure.suptitle(f"{sweep.title} (scale {scale})\n{panels[0].title}")
        figure.tight_layout()
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=120)
        pyplot.close(figure)
    return buffer.getvalue()


def _draw(axes: Any, panel: Panel, styles: dict[str, dict[str, Any]]) -> None:
    for line in panel.lines:
        style = styles[line.method] | {"marker": "o" if len(line.at) == 1 else ""}
        at = np.array(line.at)
        # None is a gap.
        apart, spread, same = (
            np.array(numbers, dtype=float)
            for numbers in (line.held_out, line.deviations, line.plain)
        )
        named = style | {"label": line.method}
        if np.isfinite(apart).any():
            figures.draw_line(axes, curves.Line(at, apart, spread), named)
            named["label"] = None
        if len(line.at) == 1:  # It has no band.
            bar = {"color": style["color"], "fmt": "none", "capsize": 2}
            axes.errorbar(at, apart, np.nan_to_num(spread), **bar)
        axes.plot(at, same, **named | {"linestyle": ":"}, fillstyle="none")
    axes.plot([], [], color="gray", linestyle=":", label=PLAIN)
    if panel.is_log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    elif panel.over == "configurations":
        axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    if panel.mark is not None:
        axes.axvline(panel.mark, color="black", linewidth=0.8, alpha=0.5)
    axes.set(xlabel=expected_best.OVER[panel.over], ylabel=panel.label)
    for one in (axes.xaxis, axes.yaxis):
        figures.set_ticks(one)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
