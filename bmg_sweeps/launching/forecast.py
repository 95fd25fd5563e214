"""How long a launch may take and what it needs, by what points like its own have."""

import itertools
import statistics
from collections.abc import Mapping

from bmg_sweeps.launching import planning
from bmg_sweeps.records import store
from bmg_sweeps.sweep.point import Point

_Costs = Mapping[tuple, list[float]]  # Seconds by what they were spent on.


def seconds(
    plan: planning.Plan, slots: int, known: planning.Plan | None = None
) -> float | None:
    """Estimates how long the points of a plan will take.

    Training and evaluation count by the amount that is left, and compiling once for
    each structure, or once in each slot where those are more.

    Args:
        plan: with the records of all points, also of those that are done.
        slots: trials that run at once.
        known: whose records say what points take; the plan's own, unless given.

    Returns:
        Seconds; None where nothing like these points has been trained.
    """
    rates, compilations = _costs(plan if known is None else known)
    lengths = {p.id: _seconds_left(plan, p, rates) for p in plan.to_run}
    if not lengths or None in lengths.values():
        return None
    compiling = {p.structure: _median(compilations, p.structure) for p in plan.to_run}
    slots = min(slots, len(lengths))
    # Slots that share a structure compile it at the same time.
    repeats = max(1.0, slots / len(compiling))
    total = sum(lengths.values()) + repeats * sum(c or 0.0 for c in compiling.values())
    longest = max(lengths[p.id] + (compiling[p.structure] or 0.0) for p in plan.to_run)
    return max(total / slots, longest)


def memory_bytes(plan: planning.Plan, estimates: Mapping[tuple, int]) -> int | None:
    """Says how much device memory a point of the largest structure of a plan needs.

    Args:
        plan: with the records of all points, also of those that are done.
        estimates: bytes by structure, for those of which none has been compiled.

    Returns:
        Bytes; None where nothing is known of any structure.
    """
    counted: dict[tuple, int] = {}
    for p in plan.points:
        provenance = plan.records[p.id].provenance
        if provenance.program_bytes:
            part = provenance.program_bytes // (provenance.pack_width or 1)
            counted[p.structure] = max(part, counted.get(p.structure, 0))
    known = {**estimates, **counted}
    structures = {p.structure for p in plan.to_run}
    return max((known[s] for s in structures if s in known), default=None)


def _costs(plan: planning.Plan) -> tuple[_Costs, _Costs]:
    """Reads what a unit of each axis took, by axis and structure; and compiling."""
    rates: dict[tuple, list[float]] = {}
    compilations: dict[tuple, list[float]] = {}
    for p in plan.points:
        record = plan.records[p.id]
        spent = _seconds_spent(record)
        for axis, amount in record.progress.items():
            if spent and amount:
                rates.setdefault((axis, *p.structure), []).append(spent / amount)
        if compiled := record.provenance.compile_seconds:
            compilations.setdefault(p.structure, []).append(compiled)
    return rates, compilations


def _seconds_spent(record: store.Record) -> float:
    """Returns a point's own part of what its pack has spent."""
    evaluating = record.provenance.evaluation_seconds or 0.0
    return (record.hours * 3600 + evaluating) / (record.provenance.pack_width or 1)


def _seconds_left(plan: planning.Plan, point: Point, rates: _Costs) -> float | None:
    """Estimates what one point will take; the slowest axis of its stop rule counts."""
    progress = plan.records[point.id].progress
    longest = 0.0
    for axis, amount in plan.stops[point.id].items():
        rate = _median(rates, (axis, *point.structure))
        if axis == "hours":
            rate = rate or 3600.0
        if rate is None:
            return None
        longest = max(longest, rate * max(0.0, amount - progress.get(axis, 0)))
    return longest


def _median(costs: _Costs, key: tuple) -> float | None:
    """Returns a key's median, or where it has none, that of its neighbors.

    Those share its first part: an axis, or a trainer.
    """
    near = (numbers for other, numbers in costs.items() if other[0] == key[0])
    numbers = costs.get(key) or list(itertools.chain.from_iterable(near))
    return statistics.median(numbers) if numbers else None
