"""Records: what points leave in storage. The only module that knows their objects.

A record is a folder, `<storage>/<trainer>/<point id>/`:

    point.gin                      the resolved point
    manifest-0003.json             what attempt 3 has committed; the highest one counts
    state-0003-000017.npz          the trainer's state at its 17th commit
    rows-0003-000017.json.gz       all rows of training up to there, by column
    validation-0003-000017.json.gz the same of evaluations, and test-…

An attempt begins by creating its manifest, which only one process can, and commits by
replacing it, after state and rows lie in storage as new objects. A kill at any instant
leaves the last commit whole. An attempt that was taken over goes on replacing a
manifest that no longer counts: it cannot harm the record, and it notices at its next
commit. The objects of the commit before are kept: where one of the last is damaged, the
record falls back on those.

Nothing is unpickled: states are arrays, all else is text.
"""

import concurrent.futures
import dataclasses
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bmg_sweeps import errors
from bmg_sweeps.records import encoding, files, leases, manifests

if TYPE_CHECKING:  # A list of sweeps shall not wait for it.
    import numpy as np

TRIES = 2  # Attempts that may raise before a point counts as failed.
_THREADS = 32  # Records that are read at once from storage that is far away.

Rows = encoding.Rows
PARTS, SPLITS, TABLES = manifests.PARTS, manifests.SPLITS, manifests.TABLES


class Damaged(Exception):
    """An object of the record is missing, or not as it was written."""


@dataclasses.dataclass(frozen=True)
class Record:
    """What storage holds of one point: the newest commit whose objects are there."""

    trainer: str
    id: str
    manifest: Mapping[str, Any]
    damage: str | None = None  # Why nothing of it can be used, in one line.
    fallback: str | None = None  # Why its last commit does not count, in one line.
    earlier: tuple[Mapping[str, Any], ...] = ()  # Commits before this, newest first.

    @property
    def progress(self) -> dict[str, float]:
        """Amounts by axis at the last commit."""
        return {} if self.damage else self.manifest.get("progress", {})

    @property
    def failure(self) -> Mapping[str, Any] | None:
        """Why the last attempt ended early: kind, type, message, frames, tries."""
        failure = self.manifest.get("failure")
        return failure and {"type": "", "message": "", "frames": []} | failure

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where and by what it was made."""
        return self.manifest.get("provenance", {})

    @property
    def begins_anew(self) -> bool:
        """Whether there is nothing that a next attempt could go on from."""
        return bool(self.damage) or (self.failure or {}).get("kind") == "diverged"

    @property
    def owner(self) -> str:
        """Who holds the lease, as they named themselves."""
        return (self.manifest.get("lease") or {}).get("owner") or "another process"

    @property
    def revisions(self) -> list[str]:
        """The code revisions that it was made by."""
        return _all_of(self.provenance, "revisions", "revision")

    @property
    def devices(self) -> list[str]:
        """The models of the devices that it was made on."""
        return _all_of(self.provenance, "devices", "device")

    @property
    def hours(self) -> float:
        """Time that training took, without compiling and evaluating."""
        return self.progress.get("hours", 0.0)

    @property
    def pack_width(self) -> int | None:
        """Width of the pack that it must go on in; None where it may begin anew.

        The last bits of a program's numbers depend on its width.
        """
        if "left_pack" in self.provenance:
            return 1
        goes_on = self.progress and not self.begins_anew
        return self.provenance.get("pack_width", 1) if goes_on else None

    def is_leased(self) -> bool:
        """Whether a process that may still be alive works on it."""
        lease = self.manifest.get("lease")
        return lease is not None and leases.may_live(lease)

    def reaches(self, stop: Mapping[str, float]) -> bool:
        """Whether it was trained as far as a stop rule asks, on each of its axes."""
        return all(
            self.progress.get(axis, 0) >= amount for axis, amount in stop.items()
        )


def status(record: Record, stop: Mapping[str, float], code: str | None = None) -> str:
    """Says where a point stands in a launch.

    Args:
        record: of the point.
        stop: the launch's stop rule.
        code: fingerprint of the code that asks; a point that diverged under another
            one is missing. None asks for the record alone.

    Returns:
        "done", "running", "diverged", "failed" (its tries are used up) or "missing".
    """
    if record.reaches(stop) and record.progress:
        return "done"
    if record.is_leased():
        return "running"
    failure = record.failure
    if failure and failure["kind"] == "diverged":
        is_other_code = code not in (None, record.provenance.get("code"))
        return "missing" if is_other_code else "diverged"
    if failure and failure["tries"] >= TRIES:
        return "failed"
    return "missing"


def reason(failure: Mapping[str, Any]) -> str:
    """Says why an attempt ended early: type, message and last frame, in one line."""
    where = f" ({failure['frames'][-1]})" if failure["frames"] else ""
    type_ = "" if failure["kind"] == "diverged" else f"{failure['type']}: "
    return f"{type_}{failure['message']}{where}"


def declare(storage: files.Storage, trainer: str, point_id: str, gin_text: str) -> None:
    """Writes a point's gin text; a record begins with it.

    Another text under its id was altered, or was written when the trainer had fewer
    fields: it is replaced.

    Args:
        storage: of the records.
        trainer: of the point.
        point_id: of the point.
        gin_text: all of its bindings.
    """
    try:
        storage.create(gin_text.encode(), trainer, point_id, "point.gin")
    except FileExistsError:
        storage.replace(gin_text.encode(), trainer, point_id, "point.gin")


def gin_text(storage: files.Storage, trainer: str, point_id: str) -> str:
    """Reads the text that `declare` wrote."""
    return storage.read(trainer, point_id, "point.gin").decode()


def read(storage: files.Storage, trainer: str, point_id: str) -> Record:
    """Reads a record's newest manifest, and looks whether its objects are there.

    Args:
        storage: of the records.
        trainer: of the point.
        point_id: of the point.

    Returns:
        The record; an empty one where nothing has been committed.
    """
    while True:
        record, seen = _read(storage, trainer, point_id)
        if record.damage is None and record.fallback is None:
            return record
        # A commit between two looks is no damage: look again until nothing moves.
        again, seen_again = _read(storage, trainer, point_id)
        if seen == seen_again:
            return again


def _read(storage: files.Storage, trainer: str, point_id: str) -> tuple[Record, Any]:
    """Reads a record once; returns what it saw beside it, to tell whether it moved."""
    sizes = storage.sizes(trainer, point_id)
    attempts = manifests.attempts(sizes)
    problem, seen = None, []
    for attempt in attempts:
        name = manifests.name(attempt)
        try:
            if sizes[name] > manifests.MOST_BYTES:
                raise ValueError(f"of {sizes[name]} bytes")
            seen.append(storage.read(trainer, point_id, name))
            manifest = manifests.load(seen[-1], attempt)
        except (FileNotFoundError, ValueError) as error:
            problem = problem or f"{name}: {errors.first_line(error)}"
            continue
        if problem:  # Whoever held an earlier attempt holds it no more.
            manifest |= {"attempt": attempts[0], "lease": None}
        commits = tuple(manifests.commits(manifest))
        record = Record(trainer, point_id, commits[0], None, problem, commits[1:])
        return _newest_whole(record, functools.partial(_missing, sizes)), seen
    manifest = {"attempt": attempts[0]} if attempts else {}
    return Record(trainer, point_id, manifest, problem), seen


def verify(
    storage: files.Storage, record: Record, parts: Sequence[str] = TABLES
) -> Record:
    """Reads objects of a record whole, and falls back where one was altered.

    Args:
        storage: of the records.
        record: as `read` gave it.
        parts: which objects; by default the tables, from which results are made.

    Returns:
        The record at its newest commit of which all is as it was written.
    """
    altered = functools.partial(_altered, storage, record.trainer, record.id, parts)
    while True:
        checked = _newest_whole(record, altered)
        if checked == record:
            return checked
        again = read(storage, record.trainer, record.id)
        if again.manifest == record.manifest:
            return checked
        record = again  # It was altered by a commit.


def _newest_whole(
    record: Record, problem_of: Callable[[Mapping[str, Any]], str | None]
) -> Record:
    """Goes back to the newest commit that has no problem; damaged where all have."""
    commits, first = (record.manifest, *record.earlier), record.fallback
    if record.damage:
        return record
    for i, manifest in enumerate(commits):
        problem = problem_of(manifest)
        if problem is None:
            earlier = commits[i + 1 :]
            return dataclasses.replace(
                record, manifest=manifest, fallback=first, earlier=earlier
            )
        first = first or problem
    return dataclasses.replace(record, damage=first, fallback=None, earlier=())


def _missing(sizes: Mapping[str, int], manifest: Mapping[str, Any]) -> str | None:
    """Names an object of a commit that is not there, or not of its size."""
    for item in manifests.objects(manifest).values():
        found = sizes.get(item["name"], "no such file")
        if found != item["bytes"]:
            return f"{item['name']}: expected {item['bytes']} bytes, found {found}"
    return None


def _altered(storage, trainer, point_id, parts, manifest) -> str | None:
    """Names an object of a commit that is not as it was written."""
    for part, item in manifests.objects(manifest).items():
        if part in parts:
            try:
                _object(storage, trainer, point_id, item)
            except Damaged as error:
                return str(error)
    return None


def scan(
    storage: files.Storage, keys: Sequence[tuple[str, str]], whole: bool = False
) -> dict[str, Record]:
    """Reads the records of many points; asks only once for those that there are not.

    Args:
        storage: of the records.
        keys: trainer and id of each point.
        whole: whether to `verify` them, too.

    Returns:
        Records by point id.
    """
    there = {trainer: storage.folders(trainer) for trainer in {t for t, _ in keys}}
    records = {i: Record(trainer, i, {}) for trainer, i in keys}
    known = [(trainer, i) for trainer, i in keys if i in there[trainer]]

    def read_one(key: tuple[str, str]) -> Record:
        record = read(storage, *key)
        return verify(storage, record) if whole else record

    if storage.is_local:
        found = [read_one(key) for key in known]
    else:
        with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
            found = list(pool.map(read_one, known))
    return records | {record.id: record for record in found}


def rows(storage: files.Storage, record: Record, table: str = "rows") -> Rows:
    """Reads all committed rows of a record.

    Args:
        storage: of the records.
        record: as `read` gave it.
        table: "rows" are those of training; or "validation" or "test".

    Returns:
        Values by column; none where none were committed.

    Raises:
        Damaged: the object is missing or not as it was written.
    """
    return _decoded(storage, record, table, encoding.unpack_rows) or {}


def state(storage: files.Storage, record: Record) -> "list[np.ndarray] | None":
    """Reads the last committed state of a record.

    Args:
        storage: of the records.
        record: as `read` gave it.

    Returns:
        Its arrays, in the order in which they were committed; None where none were.

    Raises:
        Damaged: the object is missing or not as it was written.
    """
    return _decoded(storage, record, "state", encoding.unpack_arrays)


def _decoded(storage, record, part, unpack) -> Any:
    item = manifests.objects(record.manifest).get(part)
    if item is None:
        return None
    data = _object(storage, record.trainer, record.id, item)
    try:
        return unpack(data)
    except ValueError as error:
        raise Damaged(f"{item['name']}: {error}") from error


def _object(storage, trainer, point_id, item) -> bytes:
    try:
        data = storage.read(trainer, point_id, item["name"])
    except FileNotFoundError as error:
        raise Damaged(f"{item['name']}: no such file") from error
    if hashlib.sha256(data).hexdigest() != item["sha256"]:
        raise Damaged(f"{item['name']}: not the bytes that were written")
    return data


def _all_of(provenance: Mapping[str, Any], several: str, one: str) -> list[str]:
    """Returns what all attempts noted, or the only one did."""
    return list(provenance.get(several, [provenance[one]] if one in provenance else []))
