"""Records that a sweep nearly asks for: all but one field of theirs is as it says.

Where a value was edited, in a trainer's .gin or in a sweep, or a field was added, every
point has another id and is missing. Who is not told that the old ones are there may
train them all again.
"""

import collections
import concurrent.futures
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bmg_sweeps import errors
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import choices
from bmg_sweeps.sweep.point import Point
from bmg_sweeps.trainer import source

MOST = 5_000  # Records of a trainer that are read.
_THREADS = 32
_ALL = ""  # In place of a field: the record has one field less.


class _Near(NamedTuple):
    """A record, all of whose fields but one were summed up."""

    id: str
    field: str
    value: str  # As it is written.


class Records:
    """The records of a storage, to be found by all of their fields but one."""

    def __init__(self, storage: files.Storage) -> None:
        self._storage = storage
        self._known: dict[str, dict[int, list[_Near]]] = {}  # By trainer.
        self._totals: dict[str, int] = {}  # Records of each trainer.

    def near(self, chosen: choices.Chosen, missing: Sequence[Point]) -> list[str]:
        """Says which records are there in place of missing points.

        Args:
            chosen: the sweep. Only fields in which its points agree are looked at: in
                the others they differ from one another, too. Records that one of its
                scales asks for are left out.
            missing: those of its points that have no record.

        Returns:
            A line for each field and value that tells some of them from a record.
        """
        if not missing or not (known := self._by_rest(chosen.sweep.trainer)):
            return []
        here, *rest = (p.values for p in chosen.points)
        shared = {f for f, v in here.items() if all(v == one[f] for one in rest)}
        telling = shared - {"seed"}
        found = [tuple(_matches(p, known)) for p in missing]
        own = choices.ids_of_all_scales(chosen) if any(found) else set()
        counts = collections.Counter[tuple[str, str]]()
        for of_point in found:
            counts.update(
                {
                    (near.field, near.value)
                    for near in of_point
                    if near.id not in own
                    and (near.field in telling or near.field not in here)
                }
            )
        lines = [
            f"{number:,} of the missing points are there {_described(*differs, here)}"
            for differs, number in sorted(counts.items())
        ]
        total = self._totals[chosen.sweep.trainer]
        if total > MOST:
            lines.append(f"only {MOST:,} of {total:,} records were compared with them")
        return lines

    def _by_rest(self, trainer: str) -> Mapping[int, list[_Near]]:
        """Finds records by the sum of the hashes of all fields but one, and of all."""
        if trainer in self._known:
            return self._known[trainer]
        found = self._known[trainer] = dict[int, list[_Near]]()
        for point_id, values in self._read(trainer):
            hashes = {field: hash((field, value)) for field, value in values.items()}
            whole = sum(hashes.values())
            found.setdefault(whole, []).append(_Near(point_id, _ALL, ""))
            for field, one in hashes.items():
                near = _Near(point_id, field, values[field])
                found.setdefault(whole - one, []).append(near)
        return found

    def _read(self, trainer: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Reads ids and values of records; values that old points lack are left out."""
        ids = sorted(self._storage.folders(trainer))
        self._totals[trainer] = len(ids)
        ids = ids[:MOST]
        old = _old(trainer)
        with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
            texts = pool.map(functools.partial(self._text, trainer), ids)
            for point_id, text in zip(ids, texts, strict=True):
                values = _written(trainer, text)
                yield point_id, {k: v for k, v in values.items() if v != old.get(k)}

    def _text(self, trainer: str, point_id: str) -> str:
        try:
            return store.gin_text(self._storage, trainer, point_id)
        except (FileNotFoundError, UnicodeDecodeError):
            return ""


def _matches(p: Point, known: Mapping[int, list[_Near]]) -> Iterator[_Near]:
    """Finds the records that differ from a point in one field."""
    old = _old(p.trainer)
    values = {field: repr(value) for field, value in p.values.items()}
    values = {
        field: value for field, value in values.items() if value != old.get(field)
    }
    hashes = {field: hash((field, value)) for field, value in values.items()}
    whole = sum(hashes.values())
    for field, one in hashes.items():
        for near in known.get(whole - one, ()):
            if near.field in (field, _ALL):
                yield near._replace(field=field)
    for near in known.get(whole, ()):
        if near.field != _ALL and near.field not in values:
            yield near


def _described(field: str, value: str, here: Mapping[str, Any]) -> str:
    if field not in here:
        return f"with a field {field}, which the trainer has no longer"
    ours = errors.shown(here[field])
    if not value:
        return f"without {field}={ours}; was={ours} in the trainer makes them the same"
    return f"with {field}={errors.one_line(value)} in place of {ours}"


def _old(trainer: str) -> dict[str, str]:
    """Returns the values that count as if the field were not there."""
    fields = source.fields(trainer).items()
    return {name: repr(field.was) for name, field in fields if field.was is not None}


def _written(trainer: str, text: str) -> dict[str, str]:
    """Reads values as text: `Point.gin_text` writes each as `repr` does."""
    lines = (line.partition(" = ") for line in text.splitlines())
    prefix = f"{trainer}."
    return {
        name.removeprefix(prefix): value
        for name, _, value in lines
        if name.startswith(prefix)
    }
