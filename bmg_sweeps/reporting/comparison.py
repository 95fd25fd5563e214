"""What was selected against itself on fresh seeds, as a table and as a sentence."""

import dataclasses
import statistics
from collections.abc import Mapping
from typing import Any

from bmg_sweeps import formatting
from bmg_sweeps.analysis import estimates
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.reporting import best_tables, claim_table, report
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Table
from bmg_sweeps.sweep import grid


def table(before: Results, after: Results) -> Table:
    """Compares the selected configurations with themselves on fresh seeds.

    Args:
        before: at one budget.
        after: of what was selected, at the same budget on the fresh seeds.

    Returns:
        One row for each configuration, of tests where the sweep has any.
    """
    rule, best = before.sweep.select, before.first.best
    again = {score.configuration.id: score for score in after.first.best}
    missing = {one.configuration.id: one.reason for one in after.first.left_out}
    side = (Column("validation", "estimate"),) if rule.test else ()
    seeds = Column(f"{rule.over[0]}s", "count")
    columns = (Column("method"), Column("selected"), Column("then", "estimate"), *side)
    columns += (seeds, Column(f"on fresh {seeds.name}", "estimate"), *side, seeds)
    rows = []
    for score in best:
        found = again.get(score.configuration.id)
        reason = missing.get(score.configuration.id)
        described = grid.describe(before.sweep, score.configuration.values)
        without = (reason, *(None for _ in side), None)
        cells = _compared(after, found) if found else without
        rows.append((score.method, described, *_compared(before, score), *cells))
    note = f"Beside it, validation: {rule.metric}, which decided."
    budget = formatting.shown_amount(best[0].budget)
    return Table(
        Key(Kind.COMPARISON),
        f"{rule.test or rule.metric} at {budget} {before.first.axis}",
        columns,
        tuple(rows),
        (note,) if rule.test else (),
        _context(before, after),
    )


def claims(after: Results) -> list[Table]:
    """Makes the table of a sweep's claims by fresh seeds alone.

    Args:
        after: of what was selected, on the fresh seeds.

    Returns:
        One table; none of a sweep without claims.
    """
    seed = after.sweep.select.over[0]
    fresh = sorted({p.values[seed] for p in after.chosen.points})
    title = f"Claims, by the fresh {seed}s {formatting.ranges(fresh)} alone"
    note = (
        "Of one look, however many were made: rerun --until-decided has a plan for "
        "several."
    )
    return [
        dataclasses.replace(
            table,
            key=Key(Kind.CLAIMS, field="fresh"),
            title=title,
            notes=(*table.notes, note),
            about=report.context(after),
        )
        for table in claim_table.table(after)
    ]


def _context(before: Results, after: Results) -> str:
    """Says what the numbers are numbers of, and which seeds are the fresh ones."""
    seed = before.sweep.select.over[0]
    fresh = sorted({p.values[seed] for p in after.chosen.points})
    trained = before.trained + after.trained
    about = report.context(dataclasses.replace(before, trained=trained))
    return f"{about}; fresh {seed}s {formatting.ranges(fresh)}"


def _compared(results: Results, score: Score) -> tuple[Cell, ...]:
    """A configuration's number, validation beside a test, and the number of runs."""
    runs = best_tables.runs(results, score.points)
    if results.sweep.select.test:
        return (score.test, score.estimate, runs)
    return (score.estimate, runs)


def sentence(before: Results, after: Results) -> str:
    """Says in one sentence which method is ahead, and whether it was when selected.

    Args:
        before: at one budget.
        after: of what was selected, at the same budget on the fresh seeds.

    Returns:
        Of the best two methods on the fresh seeds, how often the one had more than the
        other, seed by seed, on those seeds and on those of the selection. Of a single
        method, its numbers on both. Empty where nothing was trained on fresh seeds.
    """
    rule = before.sweep.select
    column, seed = rule.test or rule.metric, rule.over[0]
    then, now = _by_method_and_seed(before), _by_method_and_seed(after)
    ranked = sorted(now, key=lambda method: statistics.fmean(now[method].values()))
    if not ranked:
        return ""
    best, *others = ranked[::-1] if rule.mode == "max" else ranked
    if not others and best not in then:
        return ""
    if not others:
        fresh, old = (
            formatting.suffixed(statistics.fmean(numbers[best].values()))
            for numbers in (now, then)
        )
        return f"{best} has {column} {fresh} on fresh {seed}s, and had {old} before."
    pair = (best, others[0])
    ahead = "more" if rule.mode == "max" else "less"
    fresh = _count(rule, now, *pair, f"fresh {seed}s")
    old = _count(rule, then, *pair, f"{seed}s that it was chosen on")
    return f"{best} had {ahead} {column} than {others[0]} {fresh}; and {old}."


def _by_method_and_seed(results: Results) -> dict[str, dict[Any, float]]:
    """Reads the number of each seed of what is best of each method.

    Where the sweep has tests they are meant, and a method that lacks one is left out: a
    test does not compare with a validation.
    """
    rule = results.sweep.select
    return {
        score.method: estimates.by_seed(
            rule.over, score.points, score.test_values if rule.test else score.values
        )
        for score in results.first.best
        if score.test or not rule.test
    }


def _count(
    rule: grid.Select,
    numbers: Mapping[str, Mapping[Any, float]],
    best: str,
    other: str,
    noun: str,
) -> str:
    """Counts the seeds on which one method is ahead, and says by how much on average.

    >>> numbers = {"a": {0: 5.0, 1: 1.0}, "b": {0: 2.0, 1: 2.0}}
    >>> rule = grid.Select(metric="x", mode="max", budgets={"n": 1})
    >>> _count(rule, numbers, "a", "b", "seeds")
    'on 1 of 2 seeds, by 1 on average'
    """
    sign = 1 if rule.mode == "max" else -1
    ours, others = numbers.get(best, {}), numbers.get(other, {})
    leads = [sign * (ours[s] - others[s]) for s in ours.keys() & others.keys()]
    if not leads:
        return f"on none of the {noun}, of which they have none in common"
    ahead, mean = sum(lead > 0 for lead in leads), statistics.fmean(leads)
    by = formatting.suffixed(mean)
    return f"on {ahead} of {len(leads)} {noun}, by {by} on average"
