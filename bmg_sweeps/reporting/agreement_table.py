"""The table of how each budget's ranking of configurations agrees with the last one."""

from bmg_sweeps.analysis import agreement, selection
from bmg_sweeps.analysis.agreement import Agreement, Correlation
from bmg_sweeps.analysis.intervals import Interval
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting import tables
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Share, Table
from bmg_sweeps.sweep.choices import Chosen


def keys(chosen: Chosen, axis: str) -> list[Key]:
    """Names the table; none with one budget, or one configuration of each method."""
    budgets = selection.budgets(chosen.sweep.select, chosen.stop)[axis]
    is_shown = len(budgets) > 1 and chosen.has_choice
    return [Key(Kind.AGREEMENT, axis)] if is_shown else []


def table(results: Results, axis: str) -> list[Table]:
    """Makes the table: a row for each method and budget before its last one.

    Returns:
        One table; none with one budget, or where each method has one configuration. It
        has no rows while no two configurations of a method are complete.
    """
    if not keys(results.chosen, axis):
        return []
    rule, found = results.sweep.select, agreement.of_axis(results, axis)
    shown = {*tables.thinned(sorted({one.budget for one in found}))}
    rows = [_row(one, rule.is_sum) for one in found if one.budget in shown]
    columns = [Column("method"), Column(axis, "amount"), Column("the last", "amount")]
    columns += [Column("configurations", "count"), Column("τ_b", "correlation")]
    columns += [Column("τ_b of increments", "correlation")] if rule.is_sum else []
    columns += [Column("rank of the final best", "share")]
    title = f"Agreement of budgets: rankings by {rule.metric} with the last one's"
    key, notes = Key(Kind.AGREEMENT, axis), _notes(results)
    return [Table(key, title, tuple(columns), tuple(rows), notes)]


def _row(one: Agreement, is_sum: bool) -> tuple[Cell, ...]:
    increments = [_cell(one.increments)] if is_sum else []
    rank = None if one.rank is None else Share(one.rank, one.num_ranked)
    about = (one.method, one.budget, one.last, one.num_configurations)
    return (*about, _cell(one.scores), *increments, rank)


def _cell(found: Correlation | None) -> Cell:
    if found is None:
        return None
    if not found.without:
        return found.tau
    return Interval(found.tau, min(found.without), max(found.without))


def _notes(results: Results) -> tuple[str, ...]:
    rule = results.sweep.select
    seed, few = rule.over[0], agreement.MIN_CONFIGURATIONS
    how = (
        f"Kendall's τ_b of the configurations that are complete at both budgets, by "
        f"their means over {seed}s: 1 is the same order, 0 none in common. In brackets "
        f"are the least and the most that it is without any one {seed}: no interval. "
        f"With fewer than {few} configurations it is left out."
    )
    of_sum = (
        f"{rule.metric} is a running sum, which contains its own past. Increments are "
        f"what is added since the budget before, here and at the last."
    )
    return (how, of_sum) if rule.is_sum else (how,)
