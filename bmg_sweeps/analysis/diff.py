"""How two points differ, or two selected configurations: values, numbers and curves.

Either is a side with runs: one where it is a point, else one for each seed and task of
the configuration. Runs of the same seed and task are compared row by row, bit for bit.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from bmg_sweeps import errors
from bmg_sweeps.analysis import estimates, readings
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.readings import Trained
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.point import Point
from bmg_sweeps.trainer import bindings, source

_TIME = "training_seconds"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Side:
    """A point, or a selected configuration, with the runs that it has left."""

    name: str
    trainer: str
    values: Mapping[str, Any]  # By field; of a configuration without the next ones.
    over: tuple[str, ...]  # Fields that its runs differ in; () of a point.
    runs: Mapping[tuple[Any, ...], Trained]  # By the values of those fields.
    tests: Mapping[str, Estimate] = dataclasses.field(default_factory=dict)  # Chosen.


class Parting(NamedTuple):
    """The first row at which two runs differ in a column."""

    amount: float
    column: str
    run: tuple[Any, ...]  # Which one it is: a key of `Side.runs`.
    one: float | None
    other: float | None


@dataclasses.dataclass(frozen=True)
class Compared:
    """What both sides have in one column."""

    column: str
    one: Estimate | None
    other: Estimate | None
    parting: Parting | None = None  # None where the curves are the same.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """How two sides differ."""

    one: Side
    other: Side
    # Values that differ; None for a side that lacks the field.
    fields: Mapping[str, tuple[Any, Any]]
    axis: str | None  # None where the two have trained on no common axis.
    amount: float  # At which the columns are read.
    columns: tuple[Compared, ...]
    num_rows: int  # That both have at the same amounts, in all runs.

    @property
    def parting(self) -> Parting | None:
        """The first row of all at which the curves part."""
        found = [one.parting for one in self.columns if one.parting]
        return min(found, key=lambda p: p.amount, default=None)


def of_point(storage: files.Storage, trainer: str, point_id: str) -> Side:
    """Reads a point from its record.

    Raises:
        UserError: the record is damaged, or its values cannot be read.
    """
    try:
        text = store.gin_text(storage, trainer, point_id)
    except FileNotFoundError as error:
        raise errors.UserError(
            f"point {point_id}: its record has no gin text"
        ) from error
    values = {**_were(trainer), **bindings.parse_bindings(trainer, text)}
    record = store.read(storage, trainer, point_id)
    run = readings.load_one(storage, Point(trainer, values), record)
    if run.record.damage:
        raise errors.UserError(
            f"point {point_id}: damaged record ({run.record.damage})"
        )
    return Side(name=point_id, trainer=trainer, values=values, over=(), runs={(): run})


def _were(trainer: str) -> dict[str, Any]:
    """The values that points had of the fields that were added after them."""
    try:
        fields = source.fields(trainer)
    except errors.UserError:
        return {}  # There is no such trainer any more.
    return {name: field.was for name, field in fields.items() if field.was is not None}


def of_score(found: Results, score: Score) -> Side:
    """Makes a side of a configuration that a sweep has selected."""
    over, test = found.sweep.select.over, found.sweep.select.test
    values = score.configuration.values
    return Side(
        name=f"{found.chosen.name} {grid.name(found.sweep, values)}",
        trainer=score.configuration.trainer,
        values=values,
        over=over,
        runs={
            tuple(one.point.values[field] for field in over): one
            for one in found.members(score)
        },
        tests={test: score.test} if test and score.test else {},
    )


def compare(one: Side, other: Side, at: tuple[str, float] | None = None) -> Difference:
    """Compares two sides.

    Args:
        one: the first.
        other: the second.
        at: axis and amount at which numbers are read; None is as far as all runs have
            trained, on the first axis of both.

    Returns:
        Fields in the trainers' order, and columns by name.
    """
    names = dict.fromkeys((*one.values, *other.values))
    pairs = {name: (one.values.get(name), other.values.get(name)) for name in names}
    axis, amount = at or _last(one, other)
    columns: tuple[Compared, ...] = ()
    num_rows = 0
    if axis is not None:
        columns = tuple(
            Compared(
                name,
                _read(one, axis, amount, name),
                _read(other, axis, amount, name),
                _parting(one, other, axis, name),
            )
            for name in _columns(one, other)
        )
        num_rows = sum(
            len({*table[axis]} & {*theirs[axis]})
            for table, theirs in _tables(one, other, axis)
        )
    tests = dict.fromkeys((*one.tests, *other.tests))
    columns += tuple(Compared(n, one.tests.get(n), other.tests.get(n)) for n in tests)
    return Difference(
        one=one,
        other=other,
        fields={name: pair for name, pair in pairs.items() if pair[0] != pair[1]},
        axis=axis,
        amount=amount,
        columns=columns,
        num_rows=num_rows,
    )


def _last(one: Side, other: Side) -> tuple[str | None, float]:
    """The first axis of both sides, and how far all of their runs have trained."""
    runs = [*one.runs.values(), *other.runs.values()]
    for axis in runs[0].record.progress:
        if axis != "hours" and all(axis in run.record.progress for run in runs):
            return axis, min(run.record.progress[axis] for run in runs)
    return None, 0.0


def _columns(one: Side, other: Side) -> list[str]:
    """The columns that any run has, but for axes and what measures time or memory."""
    runs = [*one.runs.values(), *other.runs.values()]
    found = {name for run in runs for name in (*run.rows, *run.validation)}
    left_out = {axis for run in runs for axis in run.record.progress} | {_TIME}
    return sorted(n for n in found - left_out if not readings.is_of_device(n))


def _read(side: Side, axis: str, amount: float, name: str) -> Estimate | None:
    values = [
        readings.value_at(run.table(name), axis, name, amount)
        for run in side.runs.values()
    ]
    if None in values:
        return None
    if not side.over:
        return Estimate(values[0], None)
    points = [run.point for run in side.runs.values()]
    return estimates.over_runs(side.over, points, values)


def _tables(one: Side, other: Side, axis: str) -> list[tuple[store.Rows, store.Rows]]:
    """Pairs the tables of training and of validation of the runs that both have."""
    pairs = []
    for key in one.runs.keys() & other.runs.keys():
        ours, theirs = one.runs[key], other.runs[key]
        pairs += [(ours.rows, theirs.rows), (ours.validation, theirs.validation)]
    return [pair for pair in pairs if all(axis in table for table in pair)]


def _parting(one: Side, other: Side, axis: str, name: str) -> Parting | None:
    """Finds the first row that two runs have with another number in it."""
    found = []
    for key in sorted(one.runs.keys() & other.runs.keys()):
        ours, theirs = (side.runs[key].table(name) for side in (one, other))
        if not all({axis, name} <= table.keys() for table in (ours, theirs)):
            continue
        others = dict(zip(theirs[axis], theirs[name], strict=True))
        for amount, value in zip(ours[axis], ours[name], strict=True):
            if amount in others and others[amount] != value:
                found.append(Parting(amount, name, key, value, others[amount]))
                break
    return min(found, key=lambda p: p.amount, default=None)
