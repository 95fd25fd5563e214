"""The table of what successive halving would have chosen, from a sweep's records."""

from collections.abc import Callable

from bmg_sweeps import formatting
from bmg_sweeps.analysis import backtest, held_out, selection
from bmg_sweeps.analysis.backtest import Backtest
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Rungs
from bmg_sweeps.records import store
from bmg_sweeps.reporting import report
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Table
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.point import Point

_COLUMNS = (
    *(Column("method"), Column("configurations"), Column("chosen in full")),
    *(Column("chosen by halving"), Column("plain regret", "interval")),
    *(Column("held-out regret", "interval"), Column("95 % interval", "interval")),
    Column("share of the hours", "fraction"),
)


def table(results: Results, rungs: Rungs, tests: Callable[[str], store.Rows]) -> Table:
    """Makes the table: a row for each method that had a choice.

    Args:
        results: of the sweep.
        rungs: below its last budget.
        tests: reads the tests of a run by its id.

    Returns:
        The table; a note says which methods are not in it.
    """
    found = backtest.run(results, rungs, tests)
    there = {one.method for one in found}
    absent = [method for method in results.methods if method not in there]
    rows = tuple(_row(results.sweep, one) for one in found)
    at = " and ".join(map(formatting.shown_amount, rungs.amounts))
    title = (
        f"Successive halving at {at} {rungs.axis}, one of {rungs.keep_one_in} kept: "
        f"what it would have chosen"
    )
    notes = [*_notes(results, rungs)]
    if absent:
        notes.append(f"Without a choice there: {', '.join(absent)}.")
    key, about = Key(Kind.BACKTEST, rungs.axis), report.context(results)
    return Table(key, title, _COLUMNS, rows, tuple(notes), about)


def _row(sweep: grid.Sweep, one: Backtest) -> tuple[Cell, ...]:
    described = (_described(sweep, p) for p in (one.in_full, one.by_halving))
    regret = one.reason if one.regret is None else one.regret
    kept = " → ".join(map(str, one.kept))
    interval = one.interval if one.interval is not None else one.reason or None
    return (
        *(one.method, kept, *described, one.plain_regret, regret, interval),
        one.share_of_hours,
    )


def _described(sweep: grid.Sweep, chosen: Point | None) -> Cell:
    return None if chosen is None else grid.describe(sweep, chosen.values)


def _notes(results: Results, rungs: Rungs) -> list[str]:
    rule = results.sweep.select
    seed = rule.over[0]
    end = formatting.shown_amount(selection.last_budget(results.chosen, rungs.axis))
    what = rule.test or rule.metric
    return [
        f"Regret: by how much the choice among all at {end} {rungs.axis} is better. "
        f"Plain: in {rule.metric}, by the {seed}s that chose, so never below 0. Held "
        f"out: in {what}; both choose by all {seed}s but one and are read on that one. "
        f"Its interval is that of claims: from {held_out.MIN_HALVES} {seed}s on each "
        f"half of them is read by what the other chose.",
        "Hours: training to where each configuration stops, of training all to the "
        "end. Only configurations of which each run has reached the end, or diverged.",
    ]
