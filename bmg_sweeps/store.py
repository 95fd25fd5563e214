"""Records: what points leave in storage. The only module that knows their objects.

A record is a folder, `<storage>/<trainer>/<point id>/`:

    point.gin                      the resolved point, written once
    manifest-0003.json             what attempt 3 has committed; the highest one counts
    state-0003-000017.npz          the trainer's state at its 17th commit
    rows-0003-000017.json.gz       all rows up to there, by column

An attempt begins by creating its manifest, which only one process can, and commits by
replacing it, after state and rows lie in storage as new objects. A kill at any instant
leaves the last commit whole. An attempt that was taken over goes on replacing a
manifest that no longer counts: it cannot harm the record, and it notices at its next
commit.

Nothing is unpickled: states are arrays, all else is text.
"""

import contextlib
import dataclasses
import gzip
import hashlib
import io
import json
import socket
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import psutil

from bmg_sweeps import files

LEASE_SECONDS = 180.0  # An attempt that has not committed for so long is lost.
TRIES = 2  # Attempts that may raise before a point counts as failed.

Rows = dict[str, list]
"""Values by column; None stands for a number that was not finite."""


class Busy(Exception):
    """Another process works on the point."""


class Stale(Exception):
    """The attempt was taken over by a later one and must not commit."""


class Damaged(Exception):
    """An object of the record is missing, or not as it was written."""


@dataclasses.dataclass(frozen=True)
class Record:
    """What storage holds of one point: the newest manifest, checked against objects."""

    trainer: str
    id: str
    manifest: Mapping[str, Any]
    damage: str | None = None  # What is wrong with it, in one line.

    @property
    def progress(self) -> dict[str, float]:
        """Amounts by axis at the last commit."""
        return {} if self.damage else self.manifest.get("progress", {})

    @property
    def failure(self) -> Mapping[str, Any] | None:
        """Why the last attempt ended early: kind, type, message, frames, tries."""
        return self.manifest.get("failure")

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


def declare(storage: files.Storage, trainer: str, point_id: str, gin_text: str) -> None:
    """Writes a point's gin text, once; a record begins with it.

    Args:
        storage: of the records.
        trainer: of the point.
        point_id: of the point.
        gin_text: all of its bindings.
    """
    with contextlib.suppress(FileExistsError):
        storage.create(gin_text.encode(), trainer, point_id, "point.gin")


def gin_text(storage: files.Storage, trainer: str, point_id: str) -> str:
    """Reads the text that `declare` wrote."""
    return storage.read(trainer, point_id, "point.gin").decode()


def read(storage: files.Storage, trainer: str, point_id: str) -> Record:
    """Reads a record's newest manifest, and looks whether its objects are whole.

    Args:
        storage: of the records.
        trainer: of the point.
        point_id: of the point.

    Returns:
        The record; an empty one where nothing has been committed.
    """
    while True:
        record, seen = _read(storage, trainer, point_id)
        if record.damage is None:
            return record
        # A commit between two looks is no damage: look again until nothing moves.
        again, seen_again = _read(storage, trainer, point_id)
        if seen == seen_again:
            return again


def _read(storage: files.Storage, trainer: str, point_id: str) -> tuple[Record, Any]:
    """Reads a record once; returns what it saw beside it, to tell whether it moved."""
    sizes = storage.sizes(trainer, point_id)
    names = sorted(name for name in sizes if name.startswith("manifest-"))
    if not names:
        return Record(trainer, point_id, {}), sizes
    data = b""
    try:
        data = storage.read(trainer, point_id, names[-1])
        manifest = json.loads(data)
        int(manifest["attempt"])
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        manifest = {"attempt": _attempt(names[-1])}
        damage = f"{names[-1]}: {error or type(error).__name__}"
        return Record(trainer, point_id, manifest, damage), (names[-1], data)
    damage = None
    for part in ("state", "rows"):
        item = manifest.get(part)
        if item and sizes.get(item["name"]) != item["bytes"]:
            damage = (
                f"{item['name']}: expected {item['bytes']} bytes, "
                f"found {sizes.get(item['name'], 'no such file')}"
            )
    return Record(trainer, point_id, manifest, damage), (names[-1], data)


def scan(storage: files.Storage, keys: Sequence[tuple[str, str]]) -> dict[str, Record]:
    """Reads the records of many points.

    Args:
        storage: of the records.
        keys: trainer and id of each point.

    Returns:
        Records by point id.
    """
    return {point_id: read(storage, trainer, point_id) for trainer, point_id in keys}


def rows(storage: files.Storage, record: Record, table: str = "rows") -> Rows:
    """Reads all committed rows of a record.

    Args:
        storage: of the records.
        record: as `read` gave it.

    Returns:
        Values by column.

    Raises:
        Damaged: the object is missing or not as it was written.
    """
    if record.manifest.get(table) is None:
        return {}
    return json.loads(gzip.decompress(_object(storage, record, table)))


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
    if record.manifest.get("state") is None:
        return None
    data = _object(storage, record, "state")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return [arrays[str(i)] for i in range(len(arrays))]


class Attempt:
    """A process's hold on a record, from `begin` to the commit that releases it."""

    def __init__(self, storage: files.Storage, record: Record) -> None:
        """Use `begin`."""
        self._storage = storage
        self._key = (record.trainer, record.id)
        self._number = record.manifest.get("attempt", 0) + 1
        self._commits = 0
        kept = {} if record.begins_anew else dict(record.manifest)
        self._manifest = kept | {"attempt": self._number, "lease": _lease()}

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
        """Makes state and rows the record's, together.

        Args:
            progress: amounts by axis, or None to keep those of the last commit.
            state: arrays, or None likewise.
            rows: all rows so far, or None likewise.
            provenance: where and by what they were made.
            failure: why the attempt ends early.
            release: whether this ends the attempt.

        Raises:
            Stale: a later attempt has taken the record over.
        """
        self._check_current()
        self._commits += 1
        manifest = self._manifest | {
            "lease": None if release else _lease(),
            "failure": failure,
        }
        if progress is not None:
            manifest["progress"] = dict(progress)
        if state is not None:
            manifest["state"] = self._put("state", "npz", _npz(state))
        if rows is not None:
            manifest["rows"] = self._put("rows", "json.gz", _json_gz(rows))
        for name, table in (("validation", validation), ("test", test)):
            if table is not None:
                manifest[name] = self._put(name, "json.gz", _json_gz(table))
        if provenance is not None:
            manifest["provenance"] = dict(provenance)
        self._storage.replace(_json(manifest), *self._key, self._name())
        before, self._manifest = self._manifest, manifest
        self._remove_unused(before)

    def _name(self) -> str:
        return f"manifest-{self._number:04d}.json"

    def _put(self, part: str, suffix: str, data: bytes) -> dict[str, Any]:
        name = f"{part}-{self._number:04d}-{self._commits:06d}.{suffix}"
        self._storage.replace(data, *self._key, name)
        digest = hashlib.sha256(data).hexdigest()
        return {"name": name, "bytes": len(data), "sha256": digest}

    def _remove_unused(self, before: Mapping[str, Any]) -> None:
        """Deletes objects that no longer count, but for those of the commit before.

        Readers may be on their way to those, or a later attempt may have begun with
        them; its own objects are never touched.
        """
        parts = ("state", "rows", "validation", "test")
        manifests = (before, self._manifest)
        used = {m[p]["name"] for m in manifests for p in parts if m.get(p)}
        for name in self._storage.sizes(*self._key):
            kind, *numbers = name.split("-")
            if kind in parts and name not in used and int(numbers[0]) <= self._number:
                self._storage.remove(*self._key, name)

    def _check_current(self) -> None:
        newest = max(self._attempts())
        if newest != self._number:
            raise Stale(
                f"point {self._key[1]}: attempt {self._number} was taken over by "
                f"attempt {newest}"
            )

    def _attempts(self) -> list[int]:
        names = self._storage.sizes(*self._key)
        return [_attempt(name) for name in names if name.startswith("manifest-")]


def begin(storage: files.Storage, record: Record) -> Attempt:
    """Takes hold of a point, if nobody else has.

    Args:
        storage: of the records.
        record: of the point, as `read` gave it.

    Returns:
        An attempt that may commit until its lease expires unrenewed.

    Raises:
        Busy: another process works on it, or was faster.
    """
    if record.is_leased():
        raise Busy(f"point {record.id} is being worked on")
    attempt = Attempt(storage, record)
    try:
        storage.create(_json(attempt._manifest), *attempt._key, attempt._name())
        attempt._check_current()
    except (FileExistsError, Stale) as error:
        raise Busy(f"point {record.id} was taken by another process") from error
    for name in storage.sizes(*attempt._key):
        if name.startswith("manifest-") and _attempt(name) < attempt.number - 1:
            storage.remove(*attempt._key, name)
    return attempt


def _all_of(provenance: Mapping[str, Any], several: str, one: str) -> list[str]:
    """Returns what all attempts noted, or the only one did."""
    return list(provenance.get(several, [provenance[one]] if one in provenance else []))


def _attempt(manifest_name: str) -> int:
    return int(manifest_name.removeprefix("manifest-").removesuffix(".json"))


def _object(storage: files.Storage, record: Record, part: str) -> bytes:
    item = record.manifest[part]
    try:
        data = storage.read(record.trainer, record.id, item["name"])
    except FileNotFoundError as error:
        raise Damaged(f"{item['name']}: no such file") from error
    if hashlib.sha256(data).hexdigest() != item["sha256"]:
        raise Damaged(f"{item['name']}: not the bytes that were written")
    return data


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, allow_nan=False).encode()


def _json_gz(rows: Rows) -> bytes:
    text = json.dumps(rows, separators=(",", ":"), allow_nan=False)
    return gzip.compress(text.encode(), mtime=0)


def _npz(arrays: Sequence[np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{str(i): array for i, array in enumerate(arrays)})
    return buffer.getvalue()


def _lease() -> dict[str, Any]:
    process = psutil.Process()
    return {
        "host": _host(),
        "pid": process.pid,
        "started": process.create_time(),
        "expires": time.time() + LEASE_SECONDS,
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
