"""How much each field of a method's grid matters: an exact analysis of variance.

A score is split into a mean, an effect of each field and of the seed, and what only
several of them together explain,

    y(x) = f₀ + Σᵢ fᵢ(xᵢ) + Σᵢ<ⱼ fᵢⱼ(xᵢ, xⱼ) + …
    f_U(x) = E[y | x_U] − Σ f_W(x), over all W ⊂ U

where E is a mean over the grid. The share of a part is E[f_U²] / E[(y − f₀)²]. On a
full grid the shares are exact and sum to 1: no model of the scores is fitted.

Source: Hutter, Hoos and Leyton-Brown (2014), "An Efficient Approach for Assessing
Hyperparameter Importance", Section 3.1, who fit a random forest to a grid with gaps.
"""

import dataclasses
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bmg_sweeps.analysis import estimates
from bmg_sweeps.analysis.readings import Trained
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.sweep import display, grid

SEED = "seed"  # How the shares are called that are of no field or pair.
REST = "three fields or more"
WITH_SEED = "fields with the seed"


@dataclasses.dataclass(frozen=True)
class Marginal:
    """A value of a field, and the mean scores of all configurations that have it."""

    value: Any
    mean: float
    by_seed: tuple[float, ...]  # In the seeds' order.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Importance:
    """What explains the variance of a method's scores at a budget."""

    method: str
    axis: str
    budget: float
    # By part: symbols of fields, pairs of them, then those that are named above.
    shares: Mapping[str, float] = dataclasses.field(default_factory=dict)
    marginals: Mapping[str, tuple[Marginal, ...]] = dataclasses.field(
        default_factory=dict
    )  # By field.
    reason: str = ""  # Why there are no shares.


def of_axis(results: Results, axis: str) -> list[Importance]:
    """Analyzes every method that has several configurations, at each budget.

    Args:
        axis: one on which something may be selected.

    Returns:
        In the order of budgets, then of methods.
    """
    selected = results.selections[axis]
    scores: dict[tuple[float, str], list[Score]] = {}
    for score in selected.scores:
        scores.setdefault((score.budget, score.method), []).append(score)
    budgets = {one.budget for one in selected.scores}
    budgets |= {one.budget for one in selected.left_out}
    return [
        _analyzed(results, members, axis, budget, scores.get((budget, method), []))
        for budget in sorted(budgets)
        for method, members in _grids(results).items()
    ]


def varied(
    members: Sequence[Mapping[str, Any]], tuned: Collection[str]
) -> dict[str, list[Any]]:
    """Finds the fields that configurations differ in, with their values in order.

    Args:
        members: values of each configuration, by field.
        tuned: fields that are said to tell them apart. Another field that is tied to
            one of these, as a second rate that always equals the first, is left out.
    """
    found = {}
    for field in members[0]:
        values = dict.fromkeys(one[field] for one in members)
        if len(values) > 1 and (
            field in tuned or not any(_are_tied(members, field, f) for f in tuned)
        ):
            found[field] = sorted(values, key=lambda v: (str(type(v)), v))
    return found


def _are_tied(members: Sequence[Mapping[str, Any]], a: str, b: str) -> bool:
    """Whether each value of either field comes with one value of the other only."""
    pairs = {(one[a], one[b]) for one in members}
    return len(pairs) == len({x for x, _ in pairs}) == len({y for _, y in pairs})


def symbols_of(
    sweep: grid.Sweep, method: str, fields: Iterable[str]
) -> dict[str, display.Symbol]:
    """Returns how fields are shown, also those that do not tune the method."""
    known = _tuned(sweep, method)
    return {field: known.get(field, display.Symbol(field)) for field in fields}


def _tuned(sweep: grid.Sweep, method: str) -> dict[str, display.Symbol]:
    """What a method says that tunes it; nothing where the sweep has no such method."""
    declared = sweep.methods.get(method)
    return declared.symbols if declared else {}


def shares(numbers: np.ndarray, fields: Sequence[str]) -> dict[str, float]:
    """Splits the variance of a full grid's scores.

    Args:
        numbers: scores, [n₁, …, n_k, S], an axis a field, and the seeds last.
        fields: names of the k fields.

    Returns:
        Shares by field; by pair, "a × b"; `REST` from three fields on; and `SEED` and
        `WITH_SEED` of several seeds. They sum to 1. None where all is alike.
    """
    number, centered = len(fields), numbers - numbers.mean()
    total = float((centered**2).mean())
    if total <= (np.finfo(float).eps * np.abs(numbers).max()) ** 2:
        return {}
    alone = [_mean(centered, place) for place in range(number + 1)]
    found = {f: _share(alone[i], total) for i, f in enumerate(fields)}
    for i, j in itertools.combinations(range(number), 2):
        together = _mean(centered, i, j) - alone[i] - alone[j]
        found[f"{fields[i]} × {fields[j]}"] = _share(together, total)
    of_fields = _share(centered.mean(-1), total)
    if number > 2:
        found[REST] = max(0.0, of_fields - sum(found.values()))
    if numbers.shape[-1] > 1:
        found[SEED] = _share(alone[number], total)
        found[WITH_SEED] = max(0.0, 1 - of_fields - found[SEED])
    return found


def _mean(numbers: np.ndarray, *kept: int) -> np.ndarray:
    """Averages over all axes but some."""
    others = tuple(axis for axis in range(numbers.ndim) if axis not in kept)
    return numbers.mean(others, keepdims=True)


def _share(effect: np.ndarray, total: float) -> float:
    return float((effect**2).mean()) / total


def _grids(results: Results) -> dict[str, list[list[Trained]]]:
    """The runs of each configuration, of the methods that have several."""
    found: dict[str, list[list[Trained]]] = {name: [] for name in results.methods}
    for members in results.configurations.values():
        method = grid.method_of(results.sweep, members[0].point.values)
        found[method].append(members)
    return {name: members for name, members in found.items() if len(members) > 1}


def _analyzed(
    results: Results,
    members: Sequence[Sequence[Trained]],
    axis: str,
    budget: float,
    scores: Sequence[Score],
) -> Importance:
    over = results.sweep.select.over
    configurations = [runs[0].point.configuration(over).values for runs in members]
    method = grid.method_of(results.sweep, configurations[0])
    fields = varied(configurations, _tuned(results.sweep, method))
    numbers = _numbers(over, members, scores, fields)
    blank = Importance(method=method, axis=axis, budget=budget)
    if isinstance(numbers, str):
        return dataclasses.replace(blank, reason=numbers)
    symbols = symbols_of(results.sweep, method, fields)
    found = shares(numbers, [symbol.text for symbol in symbols.values()])
    if not found:
        return dataclasses.replace(blank, reason="all scores are the same")
    marginals = {
        field: _marginals(np.moveaxis(numbers, place, 0), values)
        for place, (field, values) in enumerate(fields.items())
    }
    return dataclasses.replace(blank, shares=found, marginals=marginals)


def _marginals(numbers: np.ndarray, values: Sequence[Any]) -> tuple[Marginal, ...]:
    """Averages over all fields but the first; seeds are last."""
    by_seed = numbers.mean(tuple(range(1, numbers.ndim - 1)))
    return tuple(
        Marginal(value, float(row.mean()), tuple(row.tolist()))
        for value, row in zip(values, by_seed, strict=True)
    )


def _numbers(
    over: Sequence[str],
    members: Sequence[Sequence[Trained]],
    scores: Sequence[Score],
    fields: Mapping[str, Sequence[Any]],
) -> np.ndarray | str:
    """Arranges scores as `shares` takes them; or says what the grid lacks."""
    whole = math.prod(map(len, fields.values()))
    if len(members) != whole:
        return f"a partial grid: {len(members):,} of {whole:,} combinations are in it"
    if len(scores) < whole:
        return f"a partial grid: {len(scores):,} of {whole:,} are complete there"
    seeds = sorted({p.values[over[0]] for p in scores[0].points})
    numbers = np.empty((*map(len, fields.values()), len(seeds)))
    places = {f: {value: i for i, value in enumerate(of)} for f, of in fields.items()}
    for score in scores:
        values = score.configuration.values
        place = tuple(of[values[field]] for field, of in places.items())
        by_seed = estimates.by_seed(over, score.points, score.values)
        numbers[place] = [by_seed[seed] for seed in seeds]
    return numbers
