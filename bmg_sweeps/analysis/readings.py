"""What points have left: their rows, read once from the records."""

import bisect
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from bmg_sweeps.records import files, manifests, store
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.sweep.point import Point

_RATE = "_per_second"  # After the name of an axis, its amount by training seconds.
_MEMORY = "peak_memory_gib"  # Of the device, by the compiler's count; in GiB.
_LOOKS = 5  # At a record whose commits overtake the reading of its tables.


@dataclasses.dataclass(frozen=True)
class Trained:
    """A point, its record, and the rows that it left; no tests are among them."""

    point: Point
    record: store.Record
    rows: store.Rows
    validation: store.Rows = dataclasses.field(default_factory=dict)

    def table(self, metric: str) -> store.Rows:
        """Returns the rows that have a column: those of training or of validation.

        Times and amounts are in both, and there are more rows of training.
        """
        return self.rows if metric in self.rows else self.validation


def load(storage: files.Storage, chosen: Chosen) -> list[Trained]:
    """Reads the records of a sweep's points, with their rows and validations.

    Args:
        chosen: the sweep.

    Returns:
        One for each point; rows are empty where there are none or they are damaged.
    """
    keys = [(p.trainer, p.id) for p in chosen.points]
    records = store.scan(storage, keys)
    return [load_one(storage, p, records[p.id]) for p in chosen.points]


def load_one(storage: files.Storage, point: Point, record: store.Record) -> Trained:
    """Reads the rows of one point, as `load` does.

    Returns:
        Them with the record that they are of: a later one than the given one where
        that one's rows were deleted by commits since.
    """
    if record.damage:
        return Trained(point, record, {})
    record, (rows, validation) = _tables(storage, record, "rows", "validation")
    return Trained(point, record, rows, validation)


def status(one: Trained, stop: Mapping[str, float]) -> str:
    """Says where a point stands, as `store.status` does; "damaged" apart from missing.

    Args:
        stop: how far points train, amounts by axis.
    """
    return "damaged" if one.record.damage else store.status(one.record, stop)


def devices(trained: Iterable[Trained]) -> list[str]:
    """Names the kinds of device that points were trained on, as far as it was noted."""
    return sorted({d for one in trained for d in one.record.devices if d})


def refusal(trained: Iterable[Trained], *names: str) -> str | None:
    """Says why points cannot be compared on an axis or by a column; None if they can.

    Args:
        trained: the points.
        *names: axes and columns; those of time and memory need a single device.
    """
    of_device = [name for name in names if is_of_device(name)]
    if not of_device or len(found := devices(trained)) < 2:
        return None
    return f"{of_device[0]} on {' and '.join(found)} cannot be compared"


def is_timed(name: str) -> bool:
    """Whether an axis or a column measures time, and so is the device's as well."""
    return name == "hours" or name.endswith(_RATE)


def is_of_device(name: str) -> bool:
    """Whether an axis or a column measures time or memory, and so the device."""
    return is_timed(name) or name == _MEMORY


def by_configuration(
    trained: Iterable[Trained], over: Sequence[str]
) -> dict[str, list[Trained]]:
    """Groups points that differ only in the fields that are averaged over.

    Args:
        trained: points, in any order.
        over: names of those fields.

    Returns:
        The points of each configuration, by its id, in the order of the first ones.
    """
    groups: dict[str, list[Trained]] = {}
    for one in trained:
        groups.setdefault(one.point.configuration(over).id, []).append(one)
    return groups


def value_at(rows: store.Rows, axis: str, metric: str, amount: float) -> float | None:
    """Looks a metric up at the last row at or before a budget.

    Args:
        rows: of one point.
        axis: the budget's column, ascending.
        metric: the column that is asked for.
        amount: the budget.

    Returns:
        The number; None where there is no such row or it was not finite there.
    """
    end = bisect.bisect_right(rows.get(axis, ()), amount)
    value = rows[metric][end - 1] if end and metric in rows else None
    return value if value is not None and math.isfinite(value) else None


def row_at(rows: store.Rows, axis: str, amount: float) -> float | None:
    """Returns the amount of the row that `value_at` reads; None where there is none."""
    end = bisect.bisect_right(rows.get(axis, ()), amount)
    return rows[axis][end - 1] if end else None


def pack_width(one: Trained) -> int | None:
    """Says how many points trained together in the hours of a point.

    Returns:
        The number, 1 of a point that trained alone; None where it is not known: the
        record of a point that left its pack, and went on alone from a checkpoint, does
        not say whether that was the pack's.
    """
    noted = one.record.provenance
    width = noted.pack_width or 1
    # Several revisions are noted by an attempt that goes on from a checkpoint.
    goes_on = noted.revisions is not None
    return None if width == 1 and goes_on and noted.left_pack is not None else width


def device_hours(one: Trained, axis: str, amount: float) -> float | None:
    """Returns a point's part of the hours of its pack, up to a budget.

    They are looked up among the rows of training, as evaluations may lie far apart.

    Args:
        one: the point.
        axis: that the budget is measured on.
        amount: the budget.

    Returns:
        The hours of a device; None where they are not known, as before the first row.
    """
    hours = value_at(one.rows, axis, "hours", amount)
    if hours is None and not one.rows:  # It diverged before there was any.
        hours = one.record.hours
    width = pack_width(one)
    return None if hours is None or width is None else hours / width


def tests(storage: files.Storage, record: store.Record) -> store.Rows:
    """Reads the tests of one point; none where they are damaged."""
    return _tables(storage, record, "test")[1][0]


def _tables(
    storage: files.Storage, record: store.Record, *names: str
) -> tuple[store.Record, list[store.Rows]]:
    """Reads tables of one commit; returns its record, which says if they are damaged.

    A point in work deletes the objects of a commit two commits later, and a scan of
    many points may be older than that. So what is missing is damage only if the record
    has not moved.
    """
    for _ in range(_LOOKS):
        try:
            return record, [_table(storage, record, name) for name in names]
        except store.Damaged as error:
            damaged = dataclasses.replace(record, damage=str(error))
        again = store.read(storage, record.trainer, record.id)
        if again.manifest == record.manifest:
            break
        record = again
    return damaged, [{} for _ in names]


def _table(storage: files.Storage, record: store.Record, name: str) -> store.Rows:
    """Reads a table whose axes ascend; raises Damaged for any other."""
    rows = store.rows(storage, record, name)
    rows = _with_times(rows, record.progress)
    rows = _with_memory(rows, record.provenance)
    for axis in (*record.progress, "training_seconds"):
        column = rows.get(axis, [])
        if None in column or column != sorted(column):
            raise store.Damaged(f"{record.objects[name].name}: {axis} does not ascend")
    return rows


def _with_times(rows: store.Rows, axes: Iterable[str]) -> store.Rows:
    """Adds training time in the unit of its budgets, and each axis by its seconds."""
    seconds = rows.get("training_seconds")
    if seconds is None or None in seconds:
        return rows
    rates = {
        axis + _RATE: [
            a / s if s else None for a, s in zip(rows[axis], seconds, strict=True)
        ]
        for axis in axes
        if axis in rows and None not in rows[axis]
    }
    return rows | rates | {"hours": [second / 3600 for second in seconds]}


def _with_memory(rows: store.Rows, provenance: manifests.Provenance) -> store.Rows:
    """Adds the point's part of its program's memory, the same in every row."""
    if not rows or provenance.program_bytes is None:
        return rows
    gib = provenance.program_bytes / (provenance.pack_width or 1) / 2**30
    return rows | {_MEMORY: [gib] * len(next(iter(rows.values())))}
