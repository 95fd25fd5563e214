"""What a page draws of each method's grid: marginal means, and all configurations."""

from typing import Any

from bmg_sweeps import formatting
from bmg_sweeps.analysis import importance
from bmg_sweeps.analysis.importance import Importance
from bmg_sweeps.analysis.results import Results

MAX_LINES = 200  # Configurations of a method that are drawn, the best ones first.


def data(results: Results, axis: str) -> list[dict[str, Any]]:
    """Collects what is drawn, at the last budget at which a method's grid is full.

    Returns:
        For each such method its name, budget and metric; `fields`, with their values
        in order, share of the variance, means, and means of each of the `seeds`; and
        `lines`, for each configuration the places of its values and its score.
    """
    if results.selections[axis].refused or not results.chosen.has_choice:
        return []
    last = {one.method: one for one in importance.of_axis(results, axis) if one.shares}
    return [_grid(results, one) for one in last.values()]


def _grid(results: Results, one: Importance) -> dict[str, Any]:
    rule, selected = results.sweep.select, results.selections[one.axis]
    symbols = importance.symbols_of(results.sweep, one.method, one.marginals)
    at = (one.budget, one.method)
    scores = [s for s in selected.scores if (s.budget, s.method) == at]
    scores.sort(key=lambda s: s.estimate.mean, reverse=rule.mode == "max")
    shown = scores[:MAX_LINES]
    places = {f: [m.value for m in of] for f, of in one.marginals.items()}
    fields = [
        {
            "symbol": symbols[field].text,
            "share": one.shares[symbols[field].text],
            "values": [symbols[field].shown(m.value) for m in marginals],
            "means": [m.mean for m in marginals],
            "seeds": [
                list(of) for of in zip(*(m.by_seed for m in marginals), strict=True)
            ],
        }
        for field, marginals in one.marginals.items()
    ]
    seeds = sorted({p.values[rule.over[0]] for p in scores[0].points})
    all_of_them = formatting.counted(len(scores), "configuration")
    few = f"the best {len(shown)} of {all_of_them}"
    return {
        "method": one.method,
        "at": f"{formatting.shown_amount(one.budget)} {one.axis}",
        "metric": rule.metric,
        "title": all_of_them if len(shown) == len(scores) else few,
        "fields": fields,
        "seeds": [f"{rule.over[0]} {seed}" for seed in seeds],
        "lines": [
            [
                *(places[f].index(s.configuration.values[f]) for f in places),
                s.estimate.mean,
            ]
            for s in shown
        ],
    }
