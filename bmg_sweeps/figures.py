"""Learning curves of a sweep as a PNG file."""

import io
import itertools
from collections.abc import Sequence

import matplotlib
import numpy as np

from bmg_sweeps import curves, grid
from bmg_sweeps.planning import Chosen
from bmg_sweeps.selection import Selection, Trained

matplotlib.use("Agg")  # No window: the file is all that is wanted.
from matplotlib import pyplot

# Okabe and Ito's colors, which the color-blind can tell apart.
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")


def draw(chosen: Chosen, trained: Sequence[Trained], result: Selection) -> bytes:
    """Draws each of a sweep's panels, with the best configuration of every method.

    Args:
        chosen: the sweep, its points and stop rule.
        trained: their records.
        result: what was selected on the axis that curves are drawn on.

    Returns:
        A PNG file. Lines are means over seeds, bands one standard deviation around.
        Best is at the last budget that any configuration has reached.
    """
    sweep = chosen.sweep
    last = max((score.budget for score in result.best), default=None)
    best = [score for score in result.best if score.budget == last]
    by_id = {one.point.id: one for one in trained}
    shown = curves.panels(sweep)
    figure, panels = pyplot.subplots(
        1, len(shown), figsize=(7 * len(shown), 4.5), squeeze=False
    )
    for panel, curve in zip(panels[0], shown, strict=True):
        for score, color in zip(best, itertools.cycle(_COLORS), strict=False):
            members = [by_id[p.id] for p in score.points]
            values = grid.describe(sweep, score.configuration.values)
            label = f"{score.method}: {values}, {len(members)} seeds"
            _draw_line(panel, result.axis, curve, chosen.stop, members, color, label)
        panel.set(title=curve.title, xlabel=result.axis, ylabel=curve.label)
        panel.ticklabel_format(style="sci", axis="both", scilimits=(-3, 4))
        panel.grid(alpha=0.3)
        if best:
            panel.legend(fontsize=7)
    figure.suptitle(f"{sweep.title} (best of each method at the last budget)")
    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    pyplot.close(figure)
    return buffer.getvalue()


def _draw_line(panel, axis: str, shown, stop, members, color, label) -> None:
    end = min(shown.until or np.inf, stop.get(axis, np.inf))
    begin = end - shown.last if shown.last else 0.0
    amounts, values = curves.curve(members, axis, shown.metric, (begin, end))
    mean = values.mean(axis=0)
    panel.plot(amounts, mean, color=color, label=label, linewidth=1.5)
    if len(members) > 1:
        deviation = values.std(axis=0, ddof=1)
        panel.fill_between(
            amounts, mean - deviation, mean + deviation, color=color, alpha=0.2
        )
