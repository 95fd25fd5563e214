"""What came out of a sweep: the rows of its points, and what is selected of them."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

from bmg_sweeps.analysis import readings, selection
from bmg_sweeps.analysis.readings import Trained
from bmg_sweeps.analysis.selection import Score, Selection
from bmg_sweeps.records import files
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.choices import Chosen


@dataclasses.dataclass(frozen=True)
class Results:
    """A sweep's points with their rows, and the selection on each axis of budgets."""

    chosen: Chosen
    trained: tuple[Trained, ...]
    selections: Mapping[str, Selection]  # By axis, in the order of the budgets.

    @property
    def sweep(self) -> grid.Sweep:
        """What the sweep's file declares."""
        return self.chosen.sweep

    @property
    def first(self) -> Selection:
        """The selection on the first axis, on which figures are drawn."""
        return next(iter(self.selections.values()))

    @functools.cached_property
    def configurations(self) -> dict[str, list[Trained]]:
        """The points of each configuration, by its id, in the sweep's order."""
        return readings.by_configuration(self.trained, self.sweep.select.over)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that have any point, in the sweep's order; "other" is last."""
        return self.chosen.methods

    def members(self, score: Score) -> list[Trained]:
        """Returns the points that a score is of, with their rows."""
        return [self.by_id[p.id] for p in score.points]

    @functools.cached_property
    def by_id(self) -> dict[str, Trained]:
        """The points with their rows, by id."""
        return {one.point.id: one for one in self.trained}


def load(
    storage: files.Storage,
    chosen: Chosen,
    budgets: Mapping[str, Sequence[float]] | None = None,
) -> Results:
    """Reads the records of a sweep, selects, and then reads the tests of what is best.

    Args:
        chosen: the sweep, its points and stop rule.
        budgets: amounts by axis; None is those of the sweep.

    Returns:
        The results; rows are empty where there are none or they are damaged.
    """
    trained = readings.load(storage, chosen)
    found = without_tests(chosen, trained, budgets)
    selections = {
        axis: selection.with_tests(storage, chosen.sweep, trained, selected)
        for axis, selected in found.selections.items()
    }
    return dataclasses.replace(found, selections=selections)


def without_tests(
    chosen: Chosen,
    trained: Sequence[Trained],
    budgets: Mapping[str, Sequence[float]] | None = None,
) -> Results:
    """Selects among points whose rows are known; no tests are read.

    Args:
        chosen: the sweep, its points and stop rule.
        trained: its points.
        budgets: amounts by axis; None is those of the sweep.

    Returns:
        The results.
    """
    budgets = budgets or selection.budgets(chosen.sweep.select, chosen.stop)
    sweep = chosen.sweep
    selections = {
        axis: selection.with_held_out(
            sweep, selection.select(sweep, trained, axis, amounts)
        )
        for axis, amounts in budgets.items()
    }
    return Results(chosen, tuple(trained), selections)
