"""What a paper claims, decided by the points of a sweep as far as they can.

A claim compares two quantities. It is supported where the 95 % interval of their
difference lies above 0, and contradicted where it lies below; else it is open. That two
are equal cannot be shown: such a claim is contradicted, or not.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bmg_sweeps import formatting
from bmg_sweeps.analysis import estimates, intervals, selection
from bmg_sweeps.analysis.readings import Trained
from bmg_sweeps.analysis.selection import Score, Selection
from bmg_sweeps.reporting.tables import Table
from bmg_sweeps.sweep import display, grid
from bmg_sweeps.sweep.choices import Chosen


class _Reading(NamedTuple):
    """A quantity's numbers."""

    what: str  # Method, configuration, column and budget.
    by_seed: dict[object, float]
    points: frozenset[str]


def table(chosen: Chosen, trained: Sequence[Trained], result: Selection) -> list[Table]:
    """Compares the quantities of each claim.

    Args:
        chosen: the sweep and its points.
        trained: their records.
        result: what was selected on the first axis.

    Returns:
        One table; none of a sweep without claims.
    """
    if not chosen.sweep.claims or result.refused:
        return []
    last = selection.last_budget(chosen, result.axis)
    best = {s.method: s for s in result.best if s.budget == last}
    by_id = {one.point.id: one for one in trained}
    rows = [_row(chosen, claim, best, by_id, last) for claim in chosen.sweep.claims]
    seeds = f"{chosen.sweep.select.over[0]}s"
    notes = (
        f"Of what is best of each method at {formatting.shown_amount(last)} "
        f"{result.axis}, chosen by the same {seeds}: mean ± standard deviation over "
        f"them, and 95 % intervals of the difference by Student's t, of pairs where "
        f"both are of the same runs, else by Welch.",
    )
    columns = ("claim", "by our points", "difference", "more", "less")
    return [Table("What the paper claims", columns, tuple(rows), notes)]


def _row(
    chosen: Chosen,
    claim: display.Claim,
    best: Mapping[str, Score],
    by_id: Mapping[str, Trained],
    last: float,
) -> tuple[str, ...]:
    more, less = (
        _reading(chosen, quantity, best, by_id, last)
        for quantity in (claim.more, claim.less)
    )
    reasons = [found for found in (more, less) if isinstance(found, str)]
    if reasons:
        return (claim.text, f"open: {reasons[0]}", "–", "–", "–")
    shown = [
        f"{found.what}: {estimates.short(estimates.estimate(found.by_seed.values()))}"
        for found in (more, less)
    ]
    if min(len(more.by_seed), len(less.by_seed)) < 2:
        return (claim.text, "open: one seed has no interval", "–", *shown)
    difference = _difference(more, less)
    written = intervals.interval(difference, formatting.suffixed)
    return (claim.text, _verdict(claim, difference), written, *shown)


def _reading(chosen, quantity, best, by_id, last) -> _Reading | str:
    """Reads a quantity; or says why it has no numbers."""
    score = best.get(quantity.method)
    if score is None:
        return f"no configuration of {quantity.method} is complete"
    rule, sweep = chosen.sweep.select, chosen.sweep
    members, amount = [by_id[p.id] for p in score.points], quantity.at or last
    if rule.test and (quantity.metric, quantity.at, quantity.last) == (None,) * 3:
        values = score.test_values
        if score.test is None:
            return f"{quantity.method}: not every seed has {rule.test}"
    else:
        values = _readings(chosen, quantity, members, amount)
        if isinstance(values, str):
            return f"{quantity.method}: {values}"
    parts = [grid.name(sweep, score.configuration.values)]
    columns = filter(None, (quantity.metric, quantity.minus))
    parts += [" − ".join(columns)] if quantity.metric else []
    parts += [f"at {formatting.shown_amount(amount)}"] if quantity.at else []
    parts += [f"over {formatting.shown_amount(quantity.last)}"] if quantity.last else []
    return _Reading(
        what=" ".join(parts),
        by_seed=estimates.by_seed(rule.over, score.points, values),
        points=frozenset(p.id for p in score.points),
    )


def _readings(chosen, quantity, members, amount) -> list[float] | str:
    """Reads a column of each run, less another one if the quantity says so."""
    rule = chosen.sweep.select
    columns = filter(None, (quantity.metric or rule.metric, quantity.minus))
    found = []
    for column in columns:
        values = selection.read_column(
            members, rule.axis, amount, column, quantity.last
        )
        if isinstance(values, str):
            return values
        found.append(values)
    return [of[0] - sum(of[1:]) for of in zip(*found, strict=True)]


def _difference(more: _Reading, less: _Reading) -> intervals.Interval:
    if more.points == less.points:
        return intervals.of_pairs(
            [more.by_seed[seed] - less.by_seed[seed] for seed in more.by_seed]
        )
    return intervals.of_difference(
        list(more.by_seed.values()), list(less.by_seed.values())
    )


def _verdict(claim: display.Claim, difference: intervals.Interval) -> str:
    if claim.are_equal:
        is_zero_within = difference.low <= 0 <= difference.high
        return "not contradicted" if is_zero_within else "contradicted"
    if difference.low > 0:
        return "supported"
    return "contradicted" if difference.high < 0 else "open"
