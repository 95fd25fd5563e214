"""Means over runs, and their deviation over seeds."""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from bmg_sweeps import formatting
from bmg_sweeps.sweep.point import Point


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean over runs, and the sample standard deviation over seeds."""

    mean: float
    deviation: float | None  # None with one seed.


def by_seed(
    over: Sequence[str], points: Sequence[Point], values: Sequence[float]
) -> dict[Any, float]:
    """Averages each seed's values, over whatever else there is one of.

    Args:
        over: fields that are averaged over, the seed first.
        points: runs.
        values: a number of each.

    Returns:
        The means, by seed.
    """
    numbers: dict[Any, list[float]] = {}
    for p, value in zip(points, values, strict=True):
        numbers.setdefault(p.values[over[0]], []).append(value)
    return {seed: statistics.fmean(of_seed) for seed, of_seed in numbers.items()}


def estimate(values: Iterable[float]) -> Estimate:
    """Averages numbers, one a seed."""
    values = list(values)
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Estimate(statistics.fmean(values), deviation)


def over_runs(over, points: Sequence[Point], values: Sequence[float]) -> Estimate:
    """Averages over everything; deviates over the first field, the seeds."""
    of_seeds = estimate(by_seed(over, points, values).values())
    return dataclasses.replace(of_seeds, mean=statistics.fmean(values))


def exact(estimate: Estimate) -> str:
    """Writes both with the mean's units in full: 1,774,099 ± 60,321."""
    size = abs(estimate.mean)
    digits = 0 if size >= 1000 else 3
    if 0 < size < 0.1:  # Three that count: 0.000213.
        digits = 2 - math.floor(math.log10(size))
    return " ± ".join(f"{part:,.{digits}f}" for part in _parts(estimate))


def short(estimate: Estimate) -> str:
    """Writes both with three digits and a suffix: 1.77M ± 60.3k."""
    return " ± ".join(formatting.suffixed(part) for part in _parts(estimate))


def _parts(estimate: Estimate) -> list[float]:
    return [p for p in (estimate.mean, estimate.deviation) if p is not None]
