"""Published numbers that may stand beside a sweep's own, and why others may not."""

from bmg_sweeps import formatting
from bmg_sweeps.analysis import differences
from bmg_sweeps.analysis.differences import Difference
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.intervals import Interval
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.sweep.display import (
    PublishedBest,
    PublishedMeasure,
    PublishedSummary,
    PublishedTasks,
)

PAPER = "paper"  # The scale of a sweep that is as large as in its paper.


def is_papers(chosen: Chosen) -> bool:
    """Whether a sweep repeats what a paper has: it has its numbers, or its scale."""
    sweep = chosen.sweep
    return sweep.published is not None or PAPER in sweep.scales


def why_not(chosen: Chosen) -> str | None:
    """Says why published numbers do not compare with a sweep's; None where they do.

    Args:
        chosen: the sweep, its points, and what led to them.

    Returns:
        Such as "this is scale smoke".
    """
    published = chosen.sweep.published
    if published is None:
        return "none are known"
    if chosen.choice.scale != published.scale:
        return f"this is scale {chosen.choice.scale}"
    if chosen.choice.gin:
        return f"this is with --gin {chosen.choice.gin[0]}"
    scale, stop = chosen.sweep.scales.get(published.scale), chosen.choice.stop
    if scale is not None and stop and stop != scale.stop:
        return f"this is trained to {formatting.shown_amounts(stop)}"
    for field, value in published.values.items():
        other = [p.values[field] for p in chosen.points if p.values[field] != value]
        if other:
            return f"this is with {field} = {formatting.short(other[0])}"
    return None


def has_selections(chosen: Chosen, axis: str) -> bool:
    """Whether it is published what was selected at the budgets of an axis."""
    published = chosen.sweep.published
    return published is not None and any(
        one.axis == axis and one.selected for one in published.best
    )


def best(chosen: Chosen, axis: str) -> list[PublishedBest]:
    """Returns the published numbers that compare, of the budgets of an axis."""
    numbers = chosen.sweep.published
    if numbers is None or why_not(chosen):
        return []
    return [one for one in numbers.best if one.axis == axis]


def measured(chosen: Chosen, metric: str) -> list[PublishedMeasure]:
    """Returns the published numbers that compare, of a column."""
    numbers = chosen.sweep.published
    if numbers is None or why_not(chosen):
        return []
    return [one for one in numbers.measures if one.metric == metric]


def on_tasks(chosen: Chosen, axis: str, budget: float) -> list[PublishedTasks]:
    """Returns the published scores of tasks that compare, at a budget of an axis."""
    numbers = chosen.sweep.published
    if numbers is None or why_not(chosen):
        return []
    return [one for one in numbers.tasks if (one.axis, one.budget) == (axis, budget)]


def summaries(chosen: Chosen, axis: str, budget: float) -> list[PublishedSummary]:
    """Returns the published statistics over tasks that compare, at a budget."""
    numbers = chosen.sweep.published
    if numbers is None or why_not(chosen):
        return []
    found = numbers.summaries
    return [one for one in found if (one.axis, one.budget) == (axis, budget)]


def ours(chosen: Chosen, score: Score) -> Estimate | None:
    """Returns what stands beside a published number: the test, where there are any."""
    return score.test if chosen.sweep.select.test else score.estimate


def difference(
    chosen: Chosen, score: Score, other: PublishedBest
) -> Interval | float | None:
    """Takes a published number off ours.

    Args:
        chosen: the sweep.
        score: ours.
        other: the published number.

    Returns:
        Ours − published, with a 95 % interval by Welch's t where both have a deviation
        over several seeds; None where ours lacks a test.
    """
    estimate, rule = ours(chosen, score), chosen.sweep.select
    if estimate is None:
        return None
    number = len({p.values[rule.over[0]] for p in score.points})
    sides = [
        differences.Mean(mean, deviation**2 / seeds, seeds - 1)
        for mean, deviation, seeds in (
            (estimate.mean, estimate.deviation, number),
            (other.mean, other.deviation, other.seeds),
        )
        if deviation is not None and seeds is not None and seeds > 1
    ]
    if len(sides) < 2:
        return estimate.mean - other.mean
    found = differences.of_means(*sides)
    return found.interval() if isinstance(found, Difference) else found


def is_of(one: PublishedMeasure, sweep: grid.Sweep, values: grid.Values) -> bool:
    """Whether a published number is one of a configuration."""
    method = sweep.methods.get(one.method)
    if method is None or grid.method_of(sweep, values) != one.method:
        return False
    ours = {s.text: s.shown(values[f]) for f, s in method.symbols.items()}
    return all(ours.get(s) == formatting.short(v) for s, v in one.configuration.items())


def note(chosen: Chosen) -> list[str]:
    """Says why published numbers are missing, where there are any."""
    reason = why_not(chosen)
    if chosen.sweep.published is None or reason is None:
        return []
    return [
        f"Published numbers are left out: {reason}, and does not compare with them."
    ]
