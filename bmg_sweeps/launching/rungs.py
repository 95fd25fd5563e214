"""Rungs of a launch: where all points pause, and who goes on first.

Whatever stops a launch on its way then finds the points at one amount, and the best of
each method ahead. Nothing is dropped: at the end every point has trained as far as
without rungs, to the same bits.

Each rung is twice as far as the one before it, as in Li et al. (2018), "Hyperband: A
Novel Bandit-Based Approach to Hyperparameter Optimization", with η = 2.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from bmg_sweeps.analysis import readings, selection
from bmg_sweeps.records import files
from bmg_sweeps.sweep.choices import Chosen

PARTS = (1 / 8, 1 / 4, 1 / 2, 1.0)  # Of the stop rule.


def at(chosen: Chosen, part: float) -> Chosen:
    """Cuts a stop rule.

    Args:
        chosen: a sweep, its points and stop rule.
        part: of the rule, in (0, 1].

    Returns:
        The same with that part of each amount; where amounts are whole numbers,
        rounded up.
    """
    stop = {
        axis: math.ceil(amount * part) if isinstance(amount, int) else amount * part
        for axis, amount in chosen.stop.items()
    }
    return dataclasses.replace(chosen, stop=stop)


def ranks(storage: files.Storage, chosen: Sequence[Chosen]) -> dict[str, int]:
    """Ranks the configurations of each method by their scores at the stop rule.

    Scores are those that `selection` chooses by, at the amount of the stop rule on the
    axis of the sweep's budgets; where the rule has no such amount, on its first axis.

    Args:
        storage: where the records are.
        chosen: sweeps, cut at the rung that their points have reached.

    Returns:
        Ranks by point id; 0 is the best. All points of a configuration have its rank,
        and a point of several sweeps has its best one. Points of incomplete
        configurations have none.
    """
    ranks: dict[str, int] = {}
    for one in chosen:
        axis = one.sweep.select.axis
        if axis not in one.stop:
            axis = next(iter(one.stop))
        trained = readings.load(storage, one)
        at_rung = selection.select(one.sweep, trained, axis, [one.stop[axis]])
        for method in one.methods:
            scores = [s for s in at_rung.scores if s.method == method]
            for rank, score in enumerate(selection.ranked(one.sweep.select, scores)):
                for p in score.points:
                    ranks[p.id] = min(rank, ranks.get(p.id, rank))
    return ranks


def best_rank(ids: Iterable[str], ranks: Mapping[str, int]) -> float:
    """Returns the best rank of points; those without one come last."""
    return min(ranks.get(i, math.inf) for i in ids)
