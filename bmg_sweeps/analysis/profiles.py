"""Distributions of normalized scores over many tasks, and what tuning per task gains.

Scores are matrices [N, M], N runs (seeds) of each of M tasks; those of several
configurations are [H, N, M]. Intervals resample runs within each task.

Source: Agarwal et al. (2021), "Deep Reinforcement Learning at the Edge of the
Statistical Precipice", Sections 4.2 and 4.3; Adkins, Bowling and White (2024), "A
Method for Evaluating Hyperparameter Sensitivity in Reinforcement Learning".
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bmg_sweeps.analysis import at_budget, estimates, selection
from bmg_sweeps.analysis.intervals import Interval
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.sweep import grid

_RESAMPLES = 2000
_SEED = 0  # Resampling starts from it, so that a report is the same each time.
_PERCENTILES = (2.5, 97.5)


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """What a method gains where each task has a configuration of its own."""

    for_all: float  # Mean over tasks of the configuration that is best on average.
    per_task: float  # The same of the best configuration of each task.
    held_out: float | None  # The gain, read on a seed that did not choose; mean of all.

    @property
    def gain(self) -> float:
        """The sensitivity, by the runs that chose."""
        return self.per_task - self.for_all


def optimality_gap(scores: np.ndarray, target: float = 1.0) -> Interval | float:
    """Says how far scores are below a target; what is above it does not count.

        γ − 1/(N M) Σₙ Σₘ min(xₙₘ, γ)

    Args:
        scores: x, [N, M].
        target: γ.

    Returns:
        The gap and its 95 % stratified bootstrap interval; without one where N is 1.
    """
    parts = np.minimum(scores, target)[..., np.newaxis]
    return _estimated(parts, lambda mean: target - mean)[0]


def profile(scores: np.ndarray, thresholds: Sequence[float]) -> list[Interval | float]:
    """Says what share of all runs has more than each of several scores.

        F̂(τ) = 1/(N M) Σₙ Σₘ [xₙₘ > τ]

    Args:
        scores: x, [N, M].
        thresholds: τ.

    Returns:
        For each the share and its 95 % stratified bootstrap interval, at this threshold
        alone; without one where N is 1.
    """
    above = scores[..., np.newaxis] > np.array(thresholds)
    return _estimated(above, lambda mean: mean)


def sensitivity(scores: np.ndarray) -> Sensitivity:
    """Says what tuning for each task alone gains over one setting for all.

        Φ = 1/M Σₘ maxₕ x̄ₕₘ − maxₕ 1/M Σₘ x̄ₕₘ

    Adkins et al. normalize each task by quantiles of all its runs; here scores are as
    the sweep normalizes them.

    Args:
        scores: x, [H, N, M]; x̄ are means over runs.

    Returns:
        Both parts of Φ. Chosen by noise alone, the first is too high, and so is Φ;
        `held_out` is Φ of choices by N − 1 runs, read on the other one, N ≥ 2.
    """
    number, tasks = scores.shape[1], np.arange(scores.shape[2])
    means = scores.mean(1)
    gains = []
    for run in range(number if number > 1 else 0):
        others = np.delete(scores, run, axis=1).mean(1)
        alone = scores[others.argmax(0), run, tasks].mean()
        gains.append(alone - scores[others.mean(1).argmax(), run].mean())
    return Sensitivity(
        for_all=float(means.mean(1).max()),
        per_task=float(means.max(0).mean()),
        held_out=float(np.mean(gains)) if gains else None,
    )


def of_configurations(results: Results) -> dict[str, np.ndarray]:
    """Reads the normalized scores of every complete configuration.

    Args:
        results: of a sweep that names its tasks.

    Returns:
        By method [H, N, M], at the last budget of the first axis, of those that have
        every seed that the method has on each of its tasks. Methods with fewer than two
        of them are left out.
    """
    rule, tasks = results.sweep.select, results.sweep.tasks
    whole = {m: len(of_seeds) * len(of_tasks)
             for m, (of_seeds, of_tasks) in _runs(results).items()}  # fmt: skip
    axis = results.first.axis
    last = selection.last_budget(results.chosen, axis)
    found: dict[str, list[np.ndarray]] = {}
    for members in results.configurations.values():
        points = [one.point for one in members]
        values = at_budget.read_all(members, axis, last, tasks.normalized)
        method = grid.method_of(results.sweep, points[0].values)
        if isinstance(values, str) or len(points) < whole[method]:
            continue
        numbers = estimates.matrix(rule.over, points, values)
        if numbers is not None:
            found.setdefault(method, []).append(numbers)
    several = {m: found[m] for m in results.methods if len(found.get(m, ())) > 1}
    return {method: np.stack(numbers) for method, numbers in several.items()}


def _runs(results: Results) -> dict[str, tuple[set[Any], set[Any]]]:
    """Returns the seeds and the tasks that each method has."""
    over = results.sweep.select.over
    found: dict[str, tuple[set[Any], set[Any]]] = {}
    for p in results.chosen.points:
        method = grid.method_of(results.sweep, p.values)
        seeds, tasks = found.setdefault(method, (set(), set()))
        seeds.add(p.values[over[0]])
        tasks.add(estimates.task(over, p))
    return found


def _estimated(
    parts: np.ndarray, of_mean: Callable[[np.ndarray], np.ndarray]
) -> list[Interval | float]:
    """Computes a function of the means of parts [N, M, T], over runs and tasks.

    A resample of runs within each task is how often it has each of them, so the means
    of all resamples are one product of matrices.
    """
    number, tasks, _ = parts.shape
    found = of_mean(parts.mean((0, 1))).tolist()
    if number < 2:
        return found
    generator = np.random.default_rng(_SEED)
    places = generator.integers(number, size=(_RESAMPLES, number, tasks))
    times = np.stack([(places == run).sum(1) for run in range(number)], axis=1)
    means = np.tensordot(times.astype(float), parts.astype(float), 2) / (number * tasks)
    lows, highs = np.percentile(of_mean(means), _PERCENTILES, axis=0).tolist()
    return [Interval(*three) for three in zip(found, lows, highs, strict=True)]
