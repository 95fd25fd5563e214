"""What the best of n configurations earns: arms compared at equal budgets of tuning.

The best of 90 configurations beats the best of 5 by chance alone. So each method's grid
is searched at random, n of its N configurations drawn without replacement, and the best
of them taken: its expectation needs no draws, as each is the best with a known
probability. The plain one is chosen and read on the same seeds, and is flattered as the
plain best is; the one that is held out is chosen by all seeds but one and read on that
one (see `held_out`). With n = 1 both are the mean of all runs, with n = N the number
that the report has of the choice.

It describes random search of this grid. A grid is no sample of what might have been
tried, so it has no interval over configurations, and it decides no claim.

Scores are matrices [N, S], as in `held_out`; of S ≥ 1 seeds. More is better. NaN is a
run that diverged. A configuration that has diverged on a seed that chooses is chosen
only where nothing else was drawn, and then counts as the floor.

Source: Dodge et al. (2019), "Show Your Work: Improved Reporting of Experimental
Results", for the expected best of n. Theirs draws with replacement; this one is the
estimate without bias of Tang et al. (2020), "Showing Your Work Doesn't Always Work",
which Lourie et al. (2024), "Show Your Work with Confidence", call the U-statistic.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bmg_sweeps.analysis import estimates, folds, readings
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.sweep import grid

MAX_NUMBERS = 300  # Values of n of one curve; of more they are spread evenly by factor.


class Expected(NamedTuple):
    """An expectation for each of T numbers n; arrays [T], or [T, S] by seed."""

    values: np.ndarray  # NaN where a draw may have no number.
    lost: np.ndarray  # How probably it has none.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arm:
    """What the best of n configurations of one method earns."""

    method: str
    size: int  # N: configurations of which every run has a number, or diverged.
    num_lacking: int  # Those that were not run, or failed by their machine.
    hours: float | None  # Of a device, for all runs of a configuration, on average.
    numbers: tuple[int, ...]  # [T]: n, ascending from 1 to N.
    plain: Expected  # [T]
    held_out: Expected | None  # [T, S]; None with one seed.

    def plain_at(self, number: int) -> Estimate | float:
        """The plain expectation at n; or how probably there is none."""
        place = self.numbers.index(number)
        return _estimate(self.plain.values[[place]], self.plain.lost[[place]])

    def held_out_at(self, number: int) -> Estimate | float | None:
        """What is held out at n, and its deviation over seeds; as `plain_at`."""
        if self.held_out is None:
            return None
        place = self.numbers.index(number)
        return _estimate(self.held_out.values[place], self.held_out.lost[place])


@dataclasses.dataclass(frozen=True, kw_only=True)
class TuningCurves:
    """Those of a sweep's methods, at one budget of training."""

    axis: str
    budget: float
    arms: tuple[Arm, ...]
    without_hours: str | None  # Why device hours cannot be compared.

    @property
    def smallest(self) -> int:
        """The number of configurations that every method has."""
        return min(arm.size for arm in self.arms)

    @property
    def are_equal(self) -> bool:
        """Whether all methods had as many to choose from."""
        return all(arm.size == self.smallest for arm in self.arms)


def make(results: Results) -> TuningCurves | None:
    """Works out the curves of a sweep, on its first axis of budgets.

    They are of the metric that decides, also where there are tests: those of what was
    not chosen are not read.

    Returns:
        Those at the last budget that any configuration has reached whole, or of all
        that have diverged; None where no method had a choice, or nothing is there to
        be chosen.
    """
    selected = results.first
    # A run that diverged counts at all budgets, also where the others are not yet.
    lost = max((amount for amount, _ in selected.candidates), default=None)
    budget = max((score.budget for score in selected.scores), default=lost)
    if budget is None or not results.chosen.has_choice:
        return None
    by_method = {
        method: selected.candidates[budget, method]
        for method in results.methods
        if (budget, method) in selected.candidates
    }
    smallest = min(map(len, by_method.values()))
    refused = readings.refusal(results.trained, "hours")
    arms = [
        _arm(results, budget, method, candidates, smallest)
        for method, candidates in by_method.items()
    ]
    if refused:
        arms = [dataclasses.replace(arm, hours=None) for arm in arms]
    return TuningCurves(
        axis=selected.axis, budget=budget, arms=tuple(arms), without_hours=refused
    )


def below(size: int, numbers: Sequence[int]) -> np.ndarray:
    """Says how probably n that are drawn are all among the i lowest of N.

        C(i, n) / C(N, n) = Π_{i < j ≤ N} (j − n) / j

    Args:
        size: N.
        numbers: [T], n from 1 to N, ascending.

    Returns:
        [T, N + 1], for i from 0 to N.
    """
    places = np.arange(size, 0, -1)  # j
    factors = np.maximum(places - np.array(numbers)[:, None], 0) / places
    ones = np.ones((len(numbers), 1))
    return np.hstack([ones, np.cumprod(factors, axis=1)])[:, ::-1]


def shares(means: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Says how probably each configuration is the best of n.

        C(i − 1, n − 1) / C(N, n) = C(i, n) / C(N, n) − C(i − 1, n) / C(N, n)

    for the one of rank i, ascending. Equal ones share what they have together.

    Args:
        means: [N] that decide; -inf for what is chosen where there is nothing else.
        parts: [T, N + 1], of `below`.

    Returns:
        [T, N].
    """
    _, group, sizes = np.unique(means, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    of_groups = (parts[:, last] - parts[:, last - sizes]) / sizes
    return of_groups[:, group]


def plain(scores: np.ndarray, floor: float, parts: np.ndarray) -> Expected:
    """Chooses and reads by the mean over all seeds.

        Eₙ = Σᵢ C(i − 1, n − 1) / C(N, n) · x̄₍ᵢ₎

    Args:
        scores: x, [N, S].
        floor: what counts for a configuration that has diverged; NaN is nothing.
        parts: [T, N + 1], of `below`.

    Returns:
        E, [T].
    """
    means = scores.mean(axis=1)
    return _expected(means, means, floor, parts)


def held_out(
    scores: np.ndarray, counted: np.ndarray, floor: float, parts: np.ndarray
) -> Expected:
    """Chooses by the mean over all seeds but s, and reads s.

        Eₙ = 1/S Σₛ Σᵢ C(i − 1, n − 1) / C(N, n) · x₍ᵢ₎ₛ, i by the mean over r ≠ s

    Args:
        scores: x, [N, S], S ≥ 2.
        counted: the same, with what counts for a run that has diverged in its place;
            NaN where nothing does.
        floor: what counts for a configuration that has diverged; NaN is nothing.
        parts: [T, N + 1], of `below`.

    Returns:
        The inner sums, [T, S]: E is their mean over seeds.
    """
    found = [
        _expected(
            np.delete(scores, seed, axis=1).mean(axis=1),
            counted[:, seed],
            floor,
            parts,
        )
        for seed in range(scores.shape[1])
    ]
    return Expected(
        *(np.stack(of_seeds, axis=1) for of_seeds in zip(*found, strict=True))
    )


def _expected(
    means: np.ndarray, values: np.ndarray, floor: float, parts: np.ndarray
) -> Expected:
    """Averages what is read, by how probably each is chosen."""
    has_diverged = np.isnan(means)
    values = np.where(has_diverged, floor, values)
    weights = shares(np.where(has_diverged, -np.inf, means), parts)
    lost = weights @ np.isnan(values)
    return Expected(np.where(lost > 0, np.nan, weights @ np.nan_to_num(values)), lost)


def _estimate(values: np.ndarray, lost: np.ndarray) -> Estimate | float:
    """Averages over seeds; where one may have no number, how probable that is."""
    probability = float(lost.mean())
    return probability or estimates.estimate(values.tolist())


def _arm(
    results: Results,
    budget: float,
    method: str,
    candidates: Sequence[folds.Candidate],
    smallest: int,
) -> Arm:
    rule, size = results.sweep.select, len(candidates)
    # With tests the floor is in their unit, and the metric may have another one.
    floor = np.nan if rule.test or rule.floor is None else rule.floor
    sign = 1 if rule.mode == "max" else -1
    seeds = folds.seeds_of(rule, candidates)
    scores = folds.matrix(rule, candidates, seeds)
    numbers = _numbers(size, smallest)
    parts = below(size, numbers)
    one = plain(scores, sign * floor, parts)
    other = None
    if len(seeds) > 1:
        counted = folds.matrix(rule, candidates, seeds, floor)
        other = held_out(scores, counted, sign * floor, parts)
        other = other._replace(values=sign * other.values)
    whole = sum(
        grid.method_of(results.sweep, members[0].point.values) == method
        for members in results.configurations.values()
    )
    return Arm(
        method=method,
        size=size,
        num_lacking=whole - size,
        hours=_hours(results, budget, candidates),
        numbers=numbers,
        plain=one._replace(values=sign * one.values),
        held_out=other,
    )


def _numbers(size: int, also: int) -> tuple[int, ...]:
    """Returns n from 1 to N: all of them, or as many as a curve needs."""
    if size <= MAX_NUMBERS:
        return tuple(range(1, size + 1))
    spread = np.geomspace(1, size, MAX_NUMBERS).round().astype(int)
    return tuple(sorted({*spread.tolist(), also}))


def _hours(
    results: Results, budget: float, candidates: Sequence[folds.Candidate]
) -> float | None:
    """Averages the device hours of configurations up to a budget; None if unknown.

    Those of a configuration are of all of its runs, and of a run in a pack its part.
    """
    axis, total = results.first.axis, 0.0
    for p in (p for one in candidates for p in one.points):
        hours = readings.device_hours(results.by_id[p.id], axis, budget)
        if hours is None:
            return None
        total += hours
    return total / len(candidates)
