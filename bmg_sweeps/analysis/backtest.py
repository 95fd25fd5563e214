"""What successive halving would have chosen, from the records of a sweep that ended.

All configurations train to the first rung; one of η of them goes on to the next one,
and so on; of those that are left the best at the end is chosen. The records have what
the others would have done as well, so what stopping costs and what it saves is known.

The regret is how much more the choice among all of them earns. By the seeds that choose
it is never below 0, and flatters the choice in full, which has more to be lucky among.
So it is also read as `held_out` reads a choice: both choose by some seeds, are read on
others, and the difference has that interval.

Source: Jamieson and Talwalkar (2016), "Non-stochastic Best Arm Identification and
Hyperparameter Optimization", Figure 1, with the rungs and η that the user names, as in
Li et al. (2018), "Hyperband: A Novel Bandit-Based Approach to Hyperparameter
Optimization".
"""

import dataclasses
import functools
import itertools
import statistics
from collections.abc import Callable, Sequence

import numpy as np

from bmg_sweeps.analysis import (
    at_budget,
    differences,
    folds,
    held_out,
    readings,
    selection,
)
from bmg_sweeps.analysis.at_budget import Missing
from bmg_sweeps.analysis.folds import Candidate
from bmg_sweeps.analysis.intervals import Interval
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Rungs
from bmg_sweeps.records import store
from bmg_sweeps.sweep.point import Point

# Which seeds choose for which, by scores and how to choose among them.
_By = Callable[[np.ndarray, held_out.Choose], np.ndarray]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Backtest:
    """What halving would have chosen of a method, and what that costs and saves."""

    method: str
    kept: tuple[int, ...]  # Configurations: all of them, then after each rung.
    in_full: Point | None = None  # The choice among all; None where all diverged.
    by_halving: Point | None = None
    plain_regret: float | None = None  # By the seeds that chose.
    regret: float | None = None  # Held out: all seeds but one choose.
    interval: Interval | float | None = None  # Of what decides: `folds.HeldOut`.
    reason: str = ""  # Why nothing is held out.
    share_of_hours: float | None = None  # None where hours are not known or compared.


def run(
    results: Results, rungs: Rungs, tests: Callable[[str], store.Rows]
) -> list[Backtest]:
    """Halves the configurations of each method that has several.

    Args:
        results: of the sweep; its last budget on the rungs' axis is the end.
        rungs: below that budget.
        tests: reads the tests of a run by its id, once it is chosen.

    Returns:
        One for each method that has two configurations of which each run has reached
        the end, or diverged.
    """
    end = selection.last_budget(results.chosen, rungs.axis)
    amounts = (*rungs.amounts, end)
    at = selection.select(results.sweep, results.trained, rungs.axis, amounts)
    found = []
    for method in results.methods:
        rivals = _in_all([at.candidates.get((a, method), ()) for a in amounts])
        if len(rivals[-1]) > 1:
            found.append(_of_method(results, rungs, method, rivals, tests))
    return found


def survivors(scores: np.ndarray, keep_one_in: int) -> list[np.ndarray]:
    """Says which configurations go on from each rung.

        |Aₖ₊₁| = max(1, ⌊|Aₖ| / η⌋)

    Args:
        scores: [N, S, R + 1], of R rungs and of the end. What diverged is last.
        keep_one_in: η.

    Returns:
        Places in order: all of them, then those that are left after each rung.
    """
    alive = [np.arange(len(scores))]
    for rung in range(scores.shape[2] - 1):
        means = scores[alive[-1], :, rung].mean(axis=1)
        order = np.argsort(-means, kind="stable")  # NaN is last.
        number = max(1, len(means) // keep_one_in)
        alive.append(np.sort(alive[-1][order[:number]]))
    return alive


def choose(scores: np.ndarray, keep_one_in: int) -> int:
    """Returns the place of what is best at the end among what is left, or NONE."""
    *_, left = survivors(scores, keep_one_in)
    place = held_out.best(scores[left, :, -1])
    return held_out.NONE if place == held_out.NONE else int(left[place])


def _in_all(at: Sequence[Sequence[Candidate]]) -> list[list[Candidate]]:
    """Keeps the candidates that are at every rung; ties go to the smaller id."""
    ids = set.intersection(*({one.configuration.id for one in here} for here in at))
    kept = ([c for c in here if c.configuration.id in ids] for here in at)
    return [sorted(here, key=lambda c: c.configuration.id) for here in kept]


def _of_method(
    results: Results,
    rungs: Rungs,
    method: str,
    rivals: Sequence[Sequence[Candidate]],
    tests: Callable[[str], store.Rows],
) -> Backtest:
    rule, candidates = results.sweep.select, rivals[-1]
    seeds = folds.seeds_of(rule, candidates)
    scores = np.stack([folds.matrix(rule, here, seeds) for here in rivals], axis=-1)
    alive = survivors(scores, rungs.keep_one_in)
    places = held_out.best(scores[..., -1]), choose(scores, rungs.keep_one_in)
    full, halved = (
        None if place == held_out.NONE else candidates[place].configuration
        for place in places
    )
    means = scores[..., -1].mean(axis=1)
    found = Backtest(
        method=method,
        kept=tuple(map(len, alive)),
        in_full=full,
        by_halving=halved,
        plain_regret=float(means[places[0]] - means[places[1]]) if halved else None,
        share_of_hours=_share_of_hours(results, rungs, candidates, alive),
    )
    read = functools.partial(_regrets, results, rungs, candidates, scores, tests)
    return _with_regret(found, read, len(seeds))


def _with_regret(
    found: Backtest, read: Callable[[_By], list[float] | str], num_seeds: int
) -> Backtest:
    """Adds what is held out: the number of folds of one, and the interval's."""
    if num_seeds < 2:
        return dataclasses.replace(found, reason="one seed holds nothing out")
    ones = decisive = read(held_out.by_all_but_one)
    if isinstance(ones, str):
        return dataclasses.replace(found, reason=ones)
    found = dataclasses.replace(found, regret=statistics.fmean(ones))
    if num_seeds >= held_out.MIN_HALVES:
        decisive = read(held_out.by_halves)
    if isinstance(decisive, str):
        return dataclasses.replace(found, reason=decisive)
    one = differences.of_pairs(held_out.mean(decisive))
    interval = one if isinstance(one, float) else one.interval()
    return dataclasses.replace(found, interval=interval)


def _regrets(
    results: Results,
    rungs: Rungs,
    candidates: Sequence[Candidate],
    scores: np.ndarray,
    tests: Callable[[str], store.Rows],
    by: _By,
) -> list[float] | str:
    """Reads, for each seed, by how much the choice in full has more; or why not."""
    rule = results.sweep.select
    halving = functools.partial(choose, keep_one_in=rungs.keep_one_in)
    seeds = folds.seeds_of(rule, candidates)
    end = selection.last_budget(results.chosen, rungs.axis)
    values = folds.values_of(candidates)

    def value_of(p: Point) -> float | Missing:
        if rule.test is None:
            return values[p.id]
        one = results.by_id[p.id]
        return at_budget.read_test(one, tests(p.id), rule, rungs.axis, end)

    sides = []
    for places in (by(scores[..., -1], held_out.best), by(scores, halving)):
        runs = folds.runs_of(rule, candidates, seeds, places)
        side = folds.read(runs, value_of, rule.floor)
        if isinstance(side, str):
            return side
        sides.append(side)
    sign = 1 if rule.mode == "max" else -1
    full, halved = sides
    return [sign * (full[seed] - halved[seed]) for seed in seeds]


def _share_of_hours(
    results: Results,
    rungs: Rungs,
    candidates: Sequence[Candidate],
    alive: Sequence[np.ndarray],
) -> float | None:
    """Divides the hours up to where each configuration stops by those to the end."""
    members = [[results.by_id[p.id] for p in one.points] for one in candidates]
    runs = [one for runs in members for one in runs]
    if readings.refusal(runs, "hours"):
        return None
    end = selection.last_budget(results.chosen, rungs.axis)
    stops = dict.fromkeys(range(len(candidates)), end)
    for amount, (before, after) in zip(
        rungs.amounts, itertools.pairwise(alive), strict=True
    ):
        stops |= dict.fromkeys(set(before.tolist()) - set(after.tolist()), amount)
    halved = [
        readings.device_hours(one, rungs.axis, stops[place])
        for place, runs in enumerate(members)
        for one in runs
    ]
    full = [readings.device_hours(one, rungs.axis, end) for one in runs]
    if None in halved or None in full or not sum(full):
        return None
    return sum(halved) / sum(full)
