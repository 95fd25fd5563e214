"""What a paper claims, decided by the points of a sweep as far as they can.

A claim compares two quantities. It is supported where the 95 % interval of their
difference lies above 0, and contradicted where it lies below; else it is open. That two
are equal cannot be shown: such a claim is contradicted, or not.
"""

from collections.abc import Mapping
from typing import NamedTuple

from bmg_sweeps import formatting
from bmg_sweeps.analysis import estimates, intervals, selection
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.reporting import tables
from bmg_sweeps.reporting.tables import Table
from bmg_sweeps.sweep import display, grid


class _Reading(NamedTuple):
    """A quantity's numbers."""

    what: str  # Method, configuration, column and budget.
    by_seed: dict[object, float]
    points: frozenset[str]


def table(results: Results) -> list[Table]:
    """Compares the quantities of each claim.

    Args:
        results: of the sweep.

    Returns:
        One table; none of a sweep without claims.
    """
    rule = results.sweep.select
    selected = results.selections.get(rule.axis)
    if not results.sweep.claims or selected is None or selected.refused:
        return []
    last = selection.last_budget(results.chosen, rule.axis)
    best = {s.method: s for s in selected.best if s.budget == last}
    rows = [_row(results, claim, best, last) for claim in results.sweep.claims]
    seeds = f"{rule.over[0]}s"
    notes = (
        f"Of what is best of each method at {tables.amount(last)} {rule.axis}, "
        f"chosen by the same {seeds}: mean ± standard deviation over them, and 95 % "
        f"intervals of the difference by Student's t, of pairs where both are of the "
        f"same runs, else by Welch.",
    )
    columns = ("claim", "by our points", "difference", "more", "less")
    return [Table("What the paper claims", columns, tuple(rows), notes)]


def _row(
    results: Results, claim: display.Claim, best: Mapping[str, Score], last: float
) -> tuple[str, ...]:
    more, less = (
        _reading(results, quantity, best, last) for quantity in (claim.more, claim.less)
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


def _reading(results: Results, quantity, best, last) -> _Reading | str:
    """Reads a quantity; or says why it has no numbers."""
    score = best.get(quantity.method)
    if score is None:
        return f"no configuration of {quantity.method} is complete"
    rule, amount = results.sweep.select, quantity.at or last
    if rule.test and (quantity.metric, quantity.at, quantity.last) == (None,) * 3:
        values = score.test_values
        if score.test is None:
            return f"{quantity.method}: not every seed has {rule.test}"
    else:
        values = _readings(rule, quantity, results.members(score), amount)
        if isinstance(values, str):
            return f"{quantity.method}: {values}"
    parts = [grid.name(results.sweep, score.configuration.values)]
    columns = filter(None, (quantity.metric, quantity.minus))
    parts += [" − ".join(columns)] if quantity.metric else []
    parts += [f"at {tables.amount(amount)}"] if quantity.at else []
    parts += [f"over {tables.amount(quantity.last)}"] if quantity.last else []
    return _Reading(
        what=" ".join(parts),
        by_seed=estimates.by_seed(rule.over, score.points, values),
        points=frozenset(p.id for p in score.points),
    )


def _readings(rule: grid.Select, quantity, members, amount) -> list[float] | str:
    """Reads a column of each run, less another one if the quantity says so."""
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
