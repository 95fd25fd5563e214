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
import contextlib
import dataclasses
import functools
import hashlib
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import psutil

from bmg_sweeps import errors
from bmg_sweeps.records import encoding, files, manifests

LEASE_SECONDS = 180.0  # An attempt that has not committed for so long is lost.
TRIES = 2  # Attempts that may raise before a point counts as failed.
RETRY_SECONDS = 60.0  # How long a commit is tried again while storage refuses.
_THREADS = 32  # Records that are read at once from storage that is far away.

Rows = encoding.Rows
PARTS, SPLITS, TABLES = manifests.PARTS, manifests.SPLITS, manifests.TABLES


class Busy(Exception):
    """Another process works on the point."""


class Stale(Exception):
    """The attempt was taken over by a later one and must not commit."""


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
        return lease is not None and _may_live(lease)

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
    attempts = _attempts(sizes)
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


def state(storage: files.Storage, record: Record) -> list[np.ndarray] | None:
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


class Attempt:
    """A process's hold on a record, from `begin` to the commit that releases it."""

    def __init__(self, storage: files.Storage, record: Record, owner: str) -> None:
        """Use `begin`."""
        self._owner = owner
        self._storage = storage
        self._key = (record.trainer, record.id)
        self._number = record.manifest.get("attempt", 0) + 1
        self._commits = 0
        kept = {} if record.begins_anew else dict(record.manifest)
        self._manifest = kept | {"attempt": self._number, "lease": _lease(owner)}

    @property
    def number(self) -> int:
        """Counts from 1, over all processes that ever worked on the point."""
        return self._number

    def commit(
        self,
        *,
        progress: Mapping[str, float] | None = None,
        state: Sequence[np.ndarray] | None = None,
        rows: Rows | None = None,
        validation: Rows | None = None,
        test: Rows | None = None,
        provenance: Mapping[str, Any] | None = None,
        failure: Mapping[str, Any] | None = None,
        release: bool = False,
    ) -> None:
        """Makes state and tables the record's, together.

        Args:
            progress: amounts by axis, or None to keep those of the last commit.
            state: arrays, or None likewise.
            rows: all rows of training so far, or None likewise.
            validation: all rows of evaluations on what selects, or None likewise.
            test: all rows of evaluations on what is reported, or None likewise.
            provenance: where and by what they were made.
            failure: why the attempt ends early.
            release: whether this ends the attempt.

        Raises:
            Stale: a later attempt has taken the record over.
            StorageError: storage has refused for `RETRY_SECONDS`; the record is as the
                last commit left it.
        """
        objects = _packed(state, rows=rows, validation=validation, test=test)
        changes: dict[str, Any] = {"failure": failure}
        if progress is not None:
            changes["progress"] = dict(progress)
        if provenance is not None:
            changes["provenance"] = dict(provenance)
        self._commits += 1
        _patiently(functools.partial(self._commit, changes, objects, release))

    def _commit(self, changes, objects, release) -> None:
        self._check_current()
        manifest = self._manifest | changes
        manifest["lease"] = None if release else _lease(self._owner)
        if objects:
            manifest["previous"] = manifests.data_of(self._manifest)
        for part, data in objects.items():
            manifest[part] = self._put(part, data)
        self._write(manifest)

    def abandon(self) -> None:
        """Lets go of the record as the last commit left it, if storage allows it."""
        with contextlib.suppress(files.StorageError, Stale):
            self._check_current()
            self._remove_unused()  # On a full disk, room for a manifest.
            self._write(self._manifest | {"lease": None})

    def _write(self, manifest: dict[str, Any]) -> None:
        data = manifests.dump(manifest)
        self._storage.replace(data, *self._key, manifests.name(self._number))
        self._manifest = manifest
        self._remove_unused()

    def _create(self) -> None:
        data = manifests.dump(self._manifest)
        self._storage.create(data, *self._key, manifests.name(self._number))

    def _remove_older(self) -> None:
        """Deletes what earlier attempts left, but for the last one's manifest."""
        for number in _attempts(self._storage.sizes(*self._key)):
            if number < self._number - 1:
                self._storage.remove(*self._key, manifests.name(number))
        self._storage.remove_temporaries(*self._key)

    def _put(self, part: str, data: bytes) -> dict[str, Any]:
        name = manifests.object_name(part, self._number, self._commits)
        self._storage.replace(data, *self._key, name)
        digest = hashlib.sha256(data).hexdigest()
        return {"name": name, "bytes": len(data), "sha256": digest}

    def _remove_unused(self) -> None:
        """Deletes objects that no longer count, but for those of the commit before.

        Readers may be on their way to those, or a later attempt may have begun with
        them; its own objects are never touched.
        """
        commits = manifests.commits(self._manifest)
        used = {o["name"] for m in commits for o in manifests.objects(m).values()}
        with contextlib.suppress(files.StorageError):  # The next commit deletes them.
            for name in self._storage.sizes(*self._key):
                owner = manifests.owner_of(name)
                if owner is not None and owner <= self._number and name not in used:
                    self._storage.remove(*self._key, name)

    def _check_current(self) -> None:
        newest = max(_attempts(self._storage.sizes(*self._key)), default=0)
        if newest > self._number:
            raise Stale(
                f"point {self._key[1]}: attempt {self._number} was taken over by "
                f"attempt {newest}"
            )
        if newest < self._number:
            raise Stale(f"point {self._key[1]}: its record was deleted")


def begin(storage: files.Storage, record: Record, owner: str = "") -> Attempt:
    """Takes hold of a point, if nobody else has.

    Args:
        storage: of the records.
        record: of the point, as `read` or `verify` gave it.
        owner: how to call who takes hold of it, to those who find it taken.

    Returns:
        An attempt that may commit until its lease expires unrenewed.

    Raises:
        Busy: another process works on it, or was faster.
        StorageError: storage has refused for `RETRY_SECONDS`.
    """
    if record.is_leased():
        raise Busy(f"point {record.id} is being worked on")
    attempt = Attempt(storage, record, owner)
    try:
        _patiently(attempt._create)
        with _abandoning(attempt):
            attempt._check_current()
            attempt._remove_older()
    except (FileExistsError, Stale) as error:
        raise Busy(f"point {record.id} was taken by another process") from error
    return attempt


@contextlib.contextmanager
def _abandoning(attempt: Attempt) -> Iterator[None]:
    try:
        yield
    except files.StorageError:
        attempt.abandon()
        raise


def _packed(
    state: Sequence[np.ndarray] | None, **tables: Rows | None
) -> dict[str, bytes]:
    """Encodes the objects that a commit is given, by part."""
    objects = {
        name: encoding.pack_rows(table)
        for name, table in tables.items()
        if table is not None
    }
    return (
        objects if state is None else objects | {"state": encoding.pack_arrays(state)}
    )


def _patiently(action: Callable[[], None]) -> None:
    """Does what storage refuses again, at growing intervals, for `RETRY_SECONDS`."""
    deadline, pause = time.monotonic() + RETRY_SECONDS, 0.25
    while True:
        try:
            return action()
        except files.StorageError:
            if time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause = min(2 * pause, 8.0)


def _all_of(provenance: Mapping[str, Any], several: str, one: str) -> list[str]:
    """Returns what all attempts noted, or the only one did."""
    return list(provenance.get(several, [provenance[one]] if one in provenance else []))


def _attempts(names: Iterable[str]) -> list[int]:
    """Returns the attempts of which there are manifests, the newest first."""
    numbers = (manifests.attempt_of(name) for name in names)
    return sorted((n for n in numbers if n is not None), reverse=True)


def _lease(owner: str) -> dict[str, Any]:
    process = psutil.Process()
    return {
        "owner": owner,
        "host": _host(),
        "pid": process.pid,
        "started": process.create_time(),
        "expires": time.time() + LEASE_SECONDS,
        "token": uuid.uuid4().hex[:8],  # No two manifests that begin are the same.
    }


def _may_live(lease: Mapping[str, Any]) -> bool:
    """Asks this host for its own processes, and the clock for those of others."""
    if lease["host"] != _host():
        return time.time() < lease["expires"]
    try:
        process = psutil.Process(lease["pid"])
        return (
            abs(process.create_time() - lease["started"]) < 1
            and process.status() != psutil.STATUS_ZOMBIE
        )
    except psutil.NoSuchProcess:
        return False


def _host() -> str:
    """Tells hosts apart without naming them."""
    name = f"{socket.gethostname()}-{uuid.getnode()}"
    return hashlib.sha256(name.encode()).hexdigest()[:12]
