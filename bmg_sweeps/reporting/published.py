"""Published numbers that may stand beside a sweep's own, and why others may not."""

from bmg_sweeps import paper
from bmg_sweeps.launching.planning import Chosen
from bmg_sweeps.paper import Anchor, Measured
from bmg_sweeps.sweep import grid

_SCALE = "paper"  # The only one whose numbers compare with those of others.


def why_not(chosen: Chosen) -> str | None:
    """Says why published numbers do not compare with a sweep's; None where they do.

    Args:
        chosen: the sweep, its points, and what led to them.

    Returns:
        Such as "this is scale smoke".
    """
    if chosen.choice.scale != _SCALE:
        return f"this is scale {chosen.choice.scale}"
    if chosen.choice.gin:
        return f"this is with --gin {chosen.choice.gin[0]}"
    for field, value in paper.VALUES.get(chosen.sweep.anchors, {}).items():
        other = [p.values[field] for p in chosen.points if p.values[field] != value]
        if other:
            return f"this is with {field} = {grid.short(other[0])}"
    return None


def has_selections(chosen: Chosen, axis: str) -> bool:
    """Whether it is published what was selected at the budgets of an axis."""
    anchors = paper.ANCHORS.get(chosen.sweep.anchors, ())
    return any(a.axis == axis and a.selected for a in anchors)


def anchors(chosen: Chosen, axis: str) -> list[Anchor]:
    """Returns the published numbers that compare, of the budgets of an axis."""
    if why_not(chosen):
        return []
    found = paper.ANCHORS.get(chosen.sweep.anchors, ())
    return [a for a in found if a.axis == axis]


def measured(chosen: Chosen, metric: str) -> list[Measured]:
    """Returns the published numbers that compare, of a column."""
    if why_not(chosen):
        return []
    found = paper.MEASURED.get(chosen.sweep.anchors, ())
    return [m for m in found if m.metric == metric]


def is_of(one: Measured, sweep: grid.Sweep, values: grid.Values) -> bool:
    """Whether a published number is one of a configuration."""
    method = sweep.methods.get(one.method)
    if method is None or grid.method_of(sweep, values) != one.method:
        return False
    ours = {s.text: s.shown(values[f]) for f, s in method.symbols.items()}
    return all(ours.get(s) == grid.short(v) for s, v in one.configuration.items())


def note(chosen: Chosen) -> list[str]:
    """Says why published numbers are missing, where there are any."""
    reason = why_not(chosen)
    known = (
        chosen.sweep.anchors in paper.ANCHORS or chosen.sweep.anchors in paper.MEASURED
    )
    if not (reason and known):
        return []
    return [
        f"Published numbers are left out: {reason}, and does not compare with them."
    ]


def written(mean: float, deviation: float | None) -> str:
    """Writes a number with the digits that it was published with."""
    parts = [mean] if deviation is None else [mean, deviation]
    return " ± ".join(f"{part:g}" for part in parts)
