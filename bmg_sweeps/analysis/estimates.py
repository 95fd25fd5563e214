"""Means over runs, and their deviation over seeds."""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from bmg_sweeps import formatting
from bmg_sweeps.sweep.point import Point

if TYPE_CHECKING:
    import numpy as np

_ROUNDING = 1e-6  # A deviation that is less, relatively, is written as 0.


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean over runs, and the sample standard deviation over seeds."""

    mean: float
    deviation: float | None  # None with one seed.


def by_seed(
    over: Sequence[str], points: Sequence[Point], values: Iterable[Any]
) -> dict[Any, Any]:
    """Averages the values of each seed, over its tasks if there are several.

    Args:
        over: fields that are averaged over, the seed first.
        points: runs.
        values: for each run a number, or an array of numbers.

    Returns:
        The means, by seed.
    """
    groups: dict[Any, list[Any]] = {}
    for p, value in zip(points, values, strict=True):
        groups.setdefault(p.values[over[0]], []).append(value)
    return {seed: sum(group) / len(group) for seed, group in groups.items()}


def counted(over: Sequence[str], points: Sequence[Point]) -> str:
    """Counts runs by the fields that they are averaged over.

    Args:
        over: the fields, the seed first.
        points: runs of one configuration.

    Returns:
        Such as "3 seeds" or "2 seeds × 3 tasks"; "5 of 2 seeds × 3 tasks" where a run
        is missing.
    """
    numbers = [len({p.values[field] for p in points}) for field in over]
    text = " × ".join(map(formatting.counted, numbers, over))
    is_whole = math.prod(numbers) == len(points)
    return text if is_whole else f"{len(points)} of {text}"


def task(over: Sequence[str], point: Point) -> tuple[Any, ...]:
    """Returns what a run is of beside its seed; () where there are only seeds."""
    return tuple(point.values[field] for field in over[1:])


def matrix(
    over: Sequence[str], points: Sequence[Point], values: Iterable[float | None]
) -> "np.ndarray | None":
    """Arranges the values of runs as [seeds, tasks], both in order.

    Args:
        over: fields that are averaged over, the seed first.
        points: runs of one configuration.
        values: for each run a number, or None.

    Returns:
        The numbers; None where a run or its number is missing.
    """
    import numpy as np

    seeds = sorted({p.values[over[0]] for p in points})
    tasks = sorted({task(over, p) for p in points})
    numbers = np.full((len(seeds), len(tasks)), np.nan)
    for p, value in zip(points, values, strict=True):
        if value is not None:
            place = seeds.index(p.values[over[0]]), tasks.index(task(over, p))
            numbers[place] = value
    return None if np.isnan(numbers).any() else numbers


def estimate(values: Iterable[float]) -> Estimate:
    """Averages numbers, one a seed."""
    values = list(values)
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Estimate(statistics.fmean(values), deviation)


def over_runs(
    over: Sequence[str], points: Sequence[Point], values: Sequence[float]
) -> Estimate:
    """Averages each seed's numbers, then takes mean and deviation over seeds."""
    return estimate(by_seed(over, points, values).values())


def exact(estimate: Estimate) -> str:
    """Writes both with the mean's units in full: 1,774,099 ± 60,321.

    A small deviation has a digit that is not 0: 0.9540 ± 0.0002. A mean below 0.0001
    has three digits and an exponent.
    """
    size = abs(estimate.mean)
    if 0 < size < 1e-4:
        return short(estimate)
    digits = 0 if size >= 1000 else 3
    if 0 < size < 0.1:  # Three that count: 0.000213.
        digits = 2 - math.floor(math.log10(size))
    deviation = estimate.deviation or 0.0
    if deviation > _ROUNDING * size:
        digits = max(digits, -math.floor(math.log10(deviation)))
    return " ± ".join(f"{part:,.{digits}f}" for part in _parts(estimate))


def short(estimate: Estimate) -> str:
    """Writes both with three digits and a suffix: 1.77M ± 60.3k."""
    return " ± ".join(formatting.suffixed(part) for part in _parts(estimate))


def _parts(estimate: Estimate) -> list[float]:
    return [p for p in (estimate.mean, estimate.deviation) if p is not None]
