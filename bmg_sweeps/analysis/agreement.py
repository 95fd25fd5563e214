"""Whether an earlier budget ranks a method's configurations as the last one does.

If it does, the rest of the training would have changed no choice; if not, whoever had
stopped there would have kept the wrong ones. Two budgets agree by Kendall's τ_b of the
mean scores over seeds,

    τ_b = (C − D) / √((C + D + T)(C + D + U))

where C pairs of configurations have the same order at both budgets, D have opposite
ones, T are tied at the one only and U at the other only. It is 1 where the order is the
same and 0 where it has nothing to do with the other.

A running sum contains its own past, so its budgets agree even where what is earned
after one has nothing to do with what was earned before. Of such a metric the increments
are compared as well: dₖ = x(bₖ) − x(bₖ₋₁), with x(b₀) = 0, which have no row in common.

Source: Kendall (1945), "The Treatment of Ties in Ranking Problems".
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from bmg_sweeps.analysis import estimates
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Selection
from bmg_sweeps.sweep import grid

MIN_CONFIGURATIONS = 5  # Of fewer a rank correlation says little.

Scores = Mapping[str, np.ndarray]  # [S], by configuration's id; more is better.


@dataclasses.dataclass(frozen=True)
class Correlation:
    """τ_b of all seeds, and as it is without each of them."""

    tau: float
    without: tuple[float, ...]  # None of one seed, nor where all tie without it.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Agreement:
    """How a budget's ranking of a method's configurations agrees with the last one."""

    method: str
    budget: float
    last: float  # The last budget that configurations of the method have reached.
    num_configurations: int  # That are complete at both.
    scores: Correlation | None  # None below `MIN_CONFIGURATIONS`, or where all tie.
    increments: Correlation | None  # Of a running sum.
    rank: int | None  # At this budget, of the configuration that is best at the last.
    num_ranked: int  # Complete at this budget.


def of_axis(results: Results, axis: str) -> list[Agreement]:
    """Compares each budget before the last, for each method with a choice.

    Args:
        results: of the sweep.
        axis: one on which something may be selected.

    Returns:
        In the order of methods, then of budgets.
    """
    selected, found = results.selections[axis], []
    by_method = _scores(results, selected)
    last = {score.method: score for score in selected.best}  # Of each, the last one.
    for method in results.methods:
        by_budget = by_method.get(method, {})
        budgets = [*by_budget]
        if len(budgets) < 2 or len(by_budget[budgets[-1]]) < 2:
            continue
        best = last[method].configuration.id
        found += [
            _agreement(results.sweep.select, method, by_budget, budget, best)
            for budget in budgets[:-1]
        ]
    return found


def correlation(early: np.ndarray, late: np.ndarray) -> Correlation | None:
    """Compares two rankings by means over seeds, and again without each seed.

    Args:
        early: scores [N, S] at a budget.
        late: those at another one, [N, S], of the same configurations and seeds.

    Returns:
        τ_b; None below `MIN_CONFIGURATIONS`, or where all means are equal.
    """
    number, seeds = early.shape
    if number < MIN_CONFIGURATIONS:
        return None
    tau = _tau(early, late)
    if np.isnan(tau):
        return None
    left = range(seeds) if seeds > 1 else ()
    without = (_tau(np.delete(early, s, 1), np.delete(late, s, 1)) for s in left)
    return Correlation(tau, tuple(t for t in without if not np.isnan(t)))


def _tau(early: np.ndarray, late: np.ndarray) -> float:
    from scipy import stats  # Not needed to plan, list or launch.

    # No p-value is wanted, and the exact one is slow.
    means = early.mean(axis=1), late.mean(axis=1)
    return float(stats.kendalltau(*means, method="asymptotic").statistic)


def _scores(
    results: Results, selected: Selection
) -> dict[str, dict[float, dict[str, np.ndarray]]]:
    """Arranges scores by method, budget and configuration."""
    rule, found = results.sweep.select, {}
    sign = 1 if rule.mode == "max" else -1
    for score in selected.scores:
        by_seed = estimates.by_seed(rule.over, score.points, score.values)
        numbers = sign * np.array([by_seed[seed] for seed in sorted(by_seed)])
        by_budget = found.setdefault(score.method, {})
        by_budget.setdefault(score.budget, {})[score.configuration.id] = numbers
    return found


def _agreement(
    rule: grid.Select,
    method: str,
    by_budget: Mapping[float, Scores],
    budget: float,
    best: str,
) -> Agreement:
    budgets = [*by_budget]
    early, late = by_budget[budget], by_budget[budgets[-1]]
    kept = [key for key in late if key in early]
    means = {key: numbers.mean() for key, numbers in early.items()}
    rank = None
    if best in means:
        rank = 1 + sum(bool(m > means[best]) for m in means.values())
    increments = None
    if rule.is_sum:
        increments = correlation(
            *_paired(
                _increments(by_budget, budget), _increments(by_budget, budgets[-1])
            )
        )
    return Agreement(
        method=method,
        budget=budget,
        last=budgets[-1],
        num_configurations=len(kept),
        scores=correlation(*_paired(early, late)),
        increments=increments,
        rank=rank,
        num_ranked=len(means),
    )


def _increments(by_budget: Mapping[float, Scores], budget: float) -> Scores:
    """What was added since the budget before; a sum begins at 0."""
    budgets = [*by_budget]
    place, scores = budgets.index(budget), by_budget[budget]
    if not place:
        return scores
    before = by_budget[budgets[place - 1]]
    return {key: scores[key] - before[key] for key in scores if key in before}


def _paired(early: Scores, late: Scores) -> Sequence[np.ndarray]:
    """Arranges the configurations that both have as [N, S]."""
    kept = [key for key in late if key in early]
    return [np.array([of[key] for key in kept]).reshape(len(kept), -1)
            for of in (early, late)]  # fmt: skip
