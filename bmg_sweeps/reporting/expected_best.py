"""The expected best of n configurations, as it is shown: a table, lines, a warning."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from bmg_sweeps import formatting
from bmg_sweeps.analysis import tuning_curves
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.tuning_curves import Arm, TuningCurves
from bmg_sweeps.reporting import held_out_cells, tables
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Share, Table
from bmg_sweeps.sweep.choices import Chosen

TITLE = "Expected best of n configurations"
# What panels are drawn over, by the name of what is measured.
OVER = {
    "configurations": "n configurations, drawn at random",
    "device_hours": "device hours of n configurations",
}
_MANY = 10  # Times as much at the end as at the begin is drawn over a logarithm.


class Line(NamedTuple):
    """What is drawn of one method; None where there is no number."""

    method: str
    at: list[float]
    held_out: list[float | None]
    deviations: list[float | None]  # Over seeds.
    plain: list[float | None]


class Panel(NamedTuple):
    """A part of a figure."""

    over: str  # One of OVER.
    title: str
    label: str  # Of the vertical axis.
    is_log: bool
    mark: float | None  # Up to which all methods have a line, if not all end there.
    lines: list[Line]


def keys(chosen: Chosen) -> list[Key]:
    """Names the table, where there is one."""
    return [Key(Kind.EXPECTED_BEST)] if chosen.has_choice else []


def table(results: Results) -> list[Table]:
    """Makes the table of the methods at equal budgets of tuning.

    Returns:
        One table: the methods at as many configurations as the smallest arm has, and
        each at all it has; none where no method has a choice.
    """
    found = tuning_curves.make(results)
    columns = [Column("n"), Column("method")]
    columns += [Column(held_out_cells.NAME, "estimate"), Column("plain", "estimate")]
    columns += [Column("drawn from", "share")]
    if found is None:
        return [Table(key, TITLE, tuple(columns), ()) for key in keys(results.chosen)]
    has_hours = any(arm.hours is not None for arm in found.arms)
    columns += [Column("device hours", "amount")] if has_hours else []
    few = "of each method" if found.are_equal else "the smallest arm"
    rows = [_row(arm, f"{found.smallest}, {few}", found.smallest) for arm in found.arms]
    rows += [
        _row(arm, "all", arm.size) for arm in found.arms if arm.size > found.smallest
    ]
    return [
        Table(
            Key(Kind.EXPECTED_BEST),
            f"{TITLE} at {_where(found)}",
            tuple(columns),
            tuple(row[: len(columns)] for row in rows),
            tuple(_notes(results, found)),
        )
    ]


def warnings(results: Results) -> list[str]:
    """Says that methods had more to choose from than others, if so."""
    found = tuning_curves.make(results)
    return _warnings(found) if found else []


def data(results: Results) -> list[dict[str, Any]]:
    """Collects what a page draws: the panels, as values that JSON has."""
    return [
        panel._asdict() | {"below": OVER[panel.over], "lines": _written(panel.lines)}
        for panel in panels(results)
    ]


def panels(results: Results) -> list[Panel]:
    """Collects what figures show.

    Returns:
        A panel over n, and one over device hours where they are known; none where no
        method has a choice.
    """
    found = tuning_curves.make(results)
    if found is None:
        return []
    by_number = [_line(arm, 1.0) for arm in found.arms]
    by_hours = [_line(arm, arm.hours) for arm in found.arms if arm.hours]
    shown = zip(OVER, (by_number, by_hours), strict=True)
    label = results.sweep.select.metric
    return [_panel(found, over, label, lines) for over, lines in shown if lines]


def _panel(found: TuningCurves, over: str, label: str, lines: list[Line]) -> Panel:
    ends = [line.at[-1] for line in lines]
    return Panel(
        over=over,
        title=f"{TITLE} at {_where(found)}",
        label=label,
        is_log=max(ends) >= _MANY * min(line.at[0] for line in lines),
        mark=min(ends) if min(ends) < max(ends) else None,
        lines=lines,
    )


def _line(arm: Arm, unit: float) -> Line:
    apart = [arm.held_out_at(number) for number in arm.numbers]
    same = [arm.plain_at(number) for number in arm.numbers]
    return Line(
        method=arm.method,
        at=[unit * number for number in arm.numbers],
        held_out=[one.mean if isinstance(one, Estimate) else None for one in apart],
        deviations=[
            one.deviation if isinstance(one, Estimate) else None for one in apart
        ],
        plain=[one.mean if isinstance(one, Estimate) else None for one in same],
    )


def _written(lines: list[Line]) -> list[dict[str, Any]]:
    """Writes numbers with few digits."""

    def short(numbers: list[float | None]) -> list[float | None]:
        return [None if n is None else float(f"{n:.6g}") for n in numbers]

    return [
        {
            name: part if name == "method" else short(part)
            for name, part in line._asdict().items()
        }
        for line in lines
    ]


def _row(arm: Arm, what: str, number: int) -> tuple[Cell, ...]:
    hours = None if arm.hours is None else number * arm.hours
    return (
        what,
        arm.method,
        _cell(arm.held_out_at(number)),
        _cell(arm.plain_at(number)),
        Share(arm.size, arm.size + arm.num_lacking),
        hours,
    )


def _cell(one: Estimate | float | None) -> Cell:
    """Writes how probable it is that there is no number, where there is none."""
    is_lost = isinstance(one, float)
    return f"{tables.NOTHING} (diverged in {100 * one:.2g} %)" if is_lost else one


def _where(found: TuningCurves) -> str:
    return f"{formatting.shown_amount(found.budget)} {found.axis}"


def _warnings(found: TuningCurves) -> list[str]:
    if found.are_equal:
        return []
    arms = ", ".join(f"{arm.method} {arm.size}" for arm in found.arms)
    return [
        f"Arms are unequal: {arms} configurations. The best of more is better by "
        f"chance, too: {TITLE.lower()} compares them at n = {found.smallest}."
    ]


def _notes(results: Results, found: TuningCurves) -> Iterator[str]:
    rule = results.sweep.select
    seed = rule.over[0]
    yield from _warnings(found)
    yield (
        f"n configurations are drawn at random from those of a method, and the best is "
        f"taken. {held_out_cells.NAME.capitalize()}: chosen by all {seed}s but one and "
        f"read on that one; plain: chosen and read on the same {seed}s. It describes "
        f"random search of this grid, and stands beside the verdict on a claim, not "
        f"in its place (Dodge et al., 2019)."
    )
    if rule.test:
        yield (f"Of {rule.metric}: of what was not chosen, {rule.test} is not read.")
    for arm in found.arms:
        if arm.num_lacking:
            yield (
                f"{arm.method}: {arm.num_lacking} of {arm.size + arm.num_lacking} "
                f"configurations are not complete, or failed by their machine; they "
                f"are not drawn."
            )
    if any(arm.plain.lost.any() or _is_lost(arm) for arm in found.arms):
        yield (
            "Diverged: how probable it is that what is chosen has; what that is worth, "
            "`floor` of the sweep's `Select` can say."
        )
    if found.without_hours:
        yield f"No device hours: {found.without_hours}."


def _is_lost(arm: Arm) -> bool:
    return arm.held_out is not None and bool(arm.held_out.lost.any())
