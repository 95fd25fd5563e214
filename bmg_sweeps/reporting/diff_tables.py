"""Tables of how two points differ, or two selected configurations."""

from collections.abc import Callable, Iterable
from typing import Any

from bmg_sweeps import formatting
from bmg_sweeps.analysis.diff import Compared, Difference, Side
from bmg_sweeps.analysis.readings import Trained
from bmg_sweeps.reporting import tables
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Table


def make(found: Difference) -> list[Table]:
    """Makes the tables of a difference.

    Returns:
        The values that differ, the numbers of both with the row at which each column
        parts, and by what both were made.
    """
    return [_values(found), _numbers(found), _provenance(found)]


def parting(found: Difference) -> str:
    """Says in a sentence where the curves part."""
    first, axis = found.parting, found.axis
    if axis is None:
        return "The two have trained on no common axis."
    if not found.num_rows:
        same = " of the same " + ", ".join(found.one.over) if found.one.over else ""
        return f"The two have no rows{same} at the same {axis}."
    rows = formatting.counted(found.num_rows, "row")
    if first is None:
        return f"All numbers of the {rows} that both have are bitwise the same."
    pairs = zip(found.one.over, first.run, strict=True)
    run = f", {', '.join(f'{field} {value}' for field, value in pairs)}"
    numbers = " and ".join(map(_exact, (first.one, first.other)))
    return (
        f"The curves part at {formatting.shown_amount(first.amount)} {axis}"
        f"{run if first.run else ''}: {first.column} is {numbers}."
    )


def _values(found: Difference) -> Table:
    rows = tuple(
        (field, *(None if value is None else tables.value(value) for value in pair))
        for field, pair in found.fields.items()
    )
    if found.one.trainer != found.other.trainer:
        rows = (("trainer", found.one.trainer, found.other.trainer), *rows)
    every = {*found.one.values, *found.other.values}
    same = formatting.counted(len(every) - len(found.fields), "value")
    columns = (Column("field"), *(Column(side.name, "value") for side in _sides(found)))
    title = f"Values of {_names(found)} that differ"
    notes = (f"The same in both: {same}.",)
    return Table(_key(found, "values"), title, columns, rows, notes)


def _numbers(found: Difference) -> Table:
    columns = (
        Column("column"),
        *(Column(side.name, "estimate") for side in _sides(found)),
        *(Column("Δ", "difference"), Column("parts at", "amount")),
    )
    title = f"Numbers of {_names(found)}"
    if found.axis is not None:
        title += f" at {formatting.shown_amount(found.amount)} {found.axis}"
    notes = [parting(found), f"Δ is {found.other.name} − {found.one.name}."]
    if found.one.over:
        seed = found.one.over[0]
        notes.append(f"Mean over {seed}s ± standard deviation over {seed}s.")
    rows = tuple(map(_number, found.columns))
    return Table(_key(found, "numbers"), title, columns, rows, tuple(notes))


def _number(one: Compared) -> tuple[Cell, ...]:
    is_both = one.one is not None and one.other is not None
    change = one.other.mean - one.one.mean if is_both else None
    at = one.parting.amount if one.parting else None
    return one.column, one.one, one.other, change, at


def _provenance(found: Difference) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (what, *(read(side) for side in _sides(found))) for what, read in _MADE.items()
    ]
    num_same = 0
    for what in ("packages", "numerics"):
        noted = [_versions(side, what) for side in _sides(found)]
        for name in sorted({*noted[0], *noted[1]}):
            pair = tuple(one.get(name) for one in noted)
            num_same += pair[0] == pair[1]
            rows += [(name, *pair)] if pair[0] != pair[1] else []
    columns = (Column("what"), *(Column(side.name) for side in _sides(found)))
    note = f"The same in both: {num_same:,} versions and settings."
    title = f"How {_names(found)} were made"
    return Table(_key(found, "provenance"), title, columns, tuple(rows), (note,))


def _versions(side: Side, what: str) -> dict[str, str]:
    """What the runs noted, by name; several versions side by side."""
    found: dict[str, set[str]] = {}
    for run in side.runs.values():
        for name, value in (getattr(run.record.provenance, what) or {}).items():
            found.setdefault(name, set()).add(str(value))
    return {name: ", ".join(sorted(values)) for name, values in found.items()}


def _joined(read: Callable[[Trained], Iterable[Any]]) -> Callable[[Side], str | None]:
    """Makes a reader of what any run of a side has."""

    def joined(side: Side) -> str | None:
        found = {
            str(v) for run in side.runs.values() for v in read(run) if v is not None
        }
        return ", ".join(sorted(found)) or None

    return joined


def _hours(side: Side) -> str:
    return formatting.suffixed(sum(run.record.hours for run in side.runs.values()))


_MADE: dict[str, Callable[[Side], str | None]] = {
    "points": lambda side: str(len(side.runs)),
    "trained to": _joined(
        lambda run: [
            formatting.shown_amounts(
                {a: n for a, n in run.record.progress.items() if a != "hours"}
            )
        ]
    ),
    "hours of training": _hours,
    "ended with": _joined(lambda run: [run.record.failure and run.record.failure.kind]),
    "code revision": _joined(lambda run: run.record.revisions),
    "hash of the trainer's code": _joined(lambda run: run.record.codes),
    "device": _joined(lambda run: run.record.devices),
    "threads": _joined(lambda run: [run.record.provenance.threads]),
    "points in a pack": _joined(lambda run: [run.record.provenance.pack_width]),
}


def _sides(found: Difference) -> tuple[Side, Side]:
    return found.one, found.other


def _names(found: Difference) -> str:
    return f"{found.one.name} and {found.other.name}"


def _key(found: Difference, part: str) -> Key:
    return Key(Kind.DIFFERENCE, found.axis or "", part)


def _exact(number: float | None) -> str:
    return "not finite" if number is None else repr(number)
