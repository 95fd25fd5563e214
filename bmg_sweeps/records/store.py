"""Records: what points leave in storage.

A record is a folder, `<storage>/<trainer>/<point id>/`:

    point.gin                      the resolved point
    manifest-0003.json             what attempt 3 has committed; the highest one counts
    state-0003-000017.npz          the trainer's state at the attempt's 17th commit
    rows-0003-000017.json.gz       all rows of training up to there, by column
    validation-0003-000017.json.gz all rows of evaluations; test-… likewise

An attempt begins by creating its manifest, which only one process can do; `leases` says
how others see that it lives. It commits by replacing the manifest, after state and rows
lie in storage as new objects. A kill at any instant leaves the last commit whole. An
attempt that was taken over goes on replacing a manifest that no longer counts: it
cannot harm the record, and it notices at its next commit. The objects of the commit
before the last are kept: where one of the last is damaged, the record falls back on
them.

Nothing is unpickled: states are arrays, all else is text.
"""

import concurrent.futures
import dataclasses
import functools
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bmg_sweeps import errors
from bmg_sweeps.records import encoding, files, leases, manifests

if TYPE_CHECKING:  # A list of sweeps shall not wait for it.
    import numpy as np

TRIES = 2  # Attempts that may raise before a point counts as failed.
_THREADS = 32  # So many records are declared at once, or read from object storage.

Rows = encoding.Rows
PARTS, SPLITS, TABLES = manifests.PARTS, manifests.SPLITS, manifests.TABLES


class Damaged(Exception):
    """An object of the record is missing, or not as it was written."""


@dataclasses.dataclass(frozen=True)
class Record:
    """What storage holds of one point: the newest commit whose objects are there."""

    trainer: str
    id: str
    manifest: manifests.Manifest = manifests.EMPTY
    damage: str | None = None  # Why nothing of it can be used, in one line.
    fallback: str | None = None  # Why its last commit does not count, in one line.

    @property
    def progress(self) -> dict[str, float]:
        """Amounts by axis at the last commit."""
        return {} if self.damage else self.manifest.progress

    @property
    def objects(self) -> dict[str, manifests.StoredObject]:
        """The objects of the last commit, by part."""
        return manifests.objects(self.manifest)

    @property
    def failure(self) -> manifests.Failure | None:
        """Why the last attempt ended early."""
        return self.manifest.failure

    @property
    def provenance(self) -> manifests.Provenance:
        """Where and by what it was made."""
        return self.manifest.provenance

    @property
    def begins_anew(self) -> bool:
        """Whether a next attempt has nothing to go on from."""
        has_diverged = self.failure is not None and self.failure.kind == "diverged"
        return bool(self.damage) or has_diverged

    @property
    def owner(self) -> str:
        """The name that the holder of the lease gave itself."""
        lease = self.manifest.lease
        return (lease and lease.owner) or "another process"

    @property
    def revisions(self) -> list[str | None]:
        """The code revisions of all attempts."""
        return _all_of(self.provenance.revisions, self.provenance.revision)

    @property
    def codes(self) -> list[str | None]:
        """The fingerprints of the code of all attempts."""
        return _all_of(self.provenance.codes, self.provenance.code)

    @property
    def devices(self) -> list[str | None]:
        """The device models of all attempts."""
        return _all_of(self.provenance.devices, self.provenance.device)

    @property
    def hours(self) -> float:
        """The time that training took, without compiling and evaluating."""
        return self.progress.get("hours", 0.0)

    @property
    def pack_width(self) -> int | None:
        """The width of the pack that it must go on in; None where it may begin anew.

        The last bits of a program's numbers depend on its width.
        """
        if self.provenance.left_pack is not None:
            return 1
        goes_on = self.progress and not self.begins_anew
        return (self.provenance.pack_width or 1) if goes_on else None

    def is_leased(self, lost: Collection[str] = ()) -> bool:
        """Whether a process that may still be alive works on it.

        Args:
            lost: tokens of leases whose holders a `leases.Watch` has found lost.
        """
        lease = self.manifest.lease
        is_held = lease is not None and lease.token not in lost
        return is_held and not leases.has_ended(lease)

    def reaches(self, stop: Mapping[str, float]) -> bool:
        """Whether it was trained as far as a stop rule asks, on each of its axes."""
        return all(
            self.progress.get(axis, 0) >= amount for axis, amount in stop.items()
        )


def status(
    record: Record,
    stop: Mapping[str, float],
    code: str | None = None,
    lost: Collection[str] = (),
) -> str:
    """Says where a point stands in a launch.

    Args:
        record: the point's.
        stop: the launch's stop rule, amounts by axis.
        code: fingerprint of the code that asks. A point that diverged under other code
            is missing; None leaves it diverged.
        lost: tokens of leases whose holders a `leases.Watch` has found lost.

    Returns:
        "done", "running", "diverged", "failed" (its tries are used up) or "missing".
    """
    if record.reaches(stop) and record.progress:
        return "done"
    if record.is_leased(lost):
        return "running"
    failure = record.failure
    if failure and failure.kind == "diverged":
        is_other_code = code not in (None, record.provenance.code)
        return "missing" if is_other_code else "diverged"
    if failure and failure.tries >= TRIES:
        return "failed"
    return "missing"


def reason(failure: manifests.Failure) -> str:
    """Says why an attempt ended early: type, message and last frame, in one line."""
    where = f" ({failure.frames[-1]})" if failure.frames else ""
    type_ = "" if failure.kind == "diverged" else f"{failure.type}: "
    return f"{type_}{failure.message}{where}"


def declare(storage: files.Storage, trainer: str, point_id: str, gin_text: str) -> None:
    """Writes a point's gin text, with which its record begins.

    Another text under the same id is replaced: it was altered, or was written when the
    trainer had fewer fields.
    """
    try:
        storage.create(gin_text.encode(), trainer, point_id, "point.gin")
    except FileExistsError:
        storage.replace(gin_text.encode(), trainer, point_id, "point.gin")


def declare_all(storage: files.Storage, points: Iterable[tuple[str, str, str]]) -> None:
    """Declares many points at once: a disk or a server is what one waits for.

    Args:
        storage: where the records lie.
        points: trainer, id and gin text of each.
    """
    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda point: declare(storage, *point), points))


def is_declared(storage: files.Storage, trainer: str, point_id: str) -> bool:
    """Whether a point's record has begun, here as this machine sees the storage."""
    return storage.exists(trainer, point_id, "point.gin")


def gin_text(storage: files.Storage, trainer: str, point_id: str) -> str:
    """Reads the text that `declare` wrote."""
    return storage.read(trainer, point_id, "point.gin").decode()


def read(storage: files.Storage, trainer: str, point_id: str) -> Record:
    """Reads a record's newest manifest, and looks whether its objects are there.

    Returns:
        The record; an empty one where nothing has been committed.
    """
    while True:
        record, seen = _read(storage, trainer, point_id)
        if record.damage is None and record.fallback is None:
            return record
        # A commit between two looks is not damage: look again until nothing moves.
        again, seen_again = _read(storage, trainer, point_id)
        if seen == seen_again:
            return again


def _read(storage: files.Storage, trainer: str, point_id: str) -> tuple[Record, Any]:
    """Reads a record once; returns it, and the bytes that were seen on the way."""
    sizes = storage.sizes(trainer, point_id)
    attempts = manifests.attempts(sizes)
    problem, seen = None, []
    for attempt in attempts:
        name = manifests.name(attempt)
        try:
            if sizes[name] > manifests.MAX_BYTES:
                raise ValueError(
                    f"expected at most {manifests.MAX_BYTES} bytes, got {sizes[name]}"
                )
            seen.append(storage.read(trainer, point_id, name))
            manifest = manifests.load(seen[-1], attempt)
        except (FileNotFoundError, ValueError) as error:
            problem = problem or f"{name}: {errors.first_line(error)}"
            continue
        if problem:  # The lease of an earlier attempt no longer counts.
            manifest = msgspec.structs.replace(
                manifest, attempt=attempts[0], lease=None
            )
        record = Record(trainer, point_id, manifest, fallback=problem)
        return _newest_whole(record, functools.partial(_missing, sizes)), seen
    newest = manifests.Manifest(attempt=max(attempts, default=0))
    return Record(trainer, point_id, newest, problem), seen


def verify(
    storage: files.Storage, record: Record, parts: Sequence[str] = TABLES
) -> Record:
    """Reads objects of a record, and falls back where one was altered.

    Args:
        storage: where the record lies.
        record: as `read` returned it.
        parts: the objects to read; by default the tables, from which results are made.

    Returns:
        The record at its newest commit whose objects are as they were written.
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
    record: Record, problem_of: Callable[[manifests.Manifest], str | None]
) -> Record:
    """Goes back to the newest commit that has no problem; damaged where all have."""
    if record.damage:
        return record
    first = record.fallback
    for manifest in manifests.commits(record.manifest):
        problem = problem_of(manifest)
        if problem is None and manifest is record.manifest:
            return record
        if problem is None:
            return dataclasses.replace(record, manifest=manifest, fallback=first)
        first = first or problem
    return dataclasses.replace(record, damage=first, fallback=None)


def _missing(sizes: Mapping[str, int], manifest: manifests.Manifest) -> str | None:
    """Names an object of a commit that is missing, or has another size."""
    for item in manifests.objects(manifest).values():
        found = sizes.get(item.name, "no such file")
        if found != item.bytes:
            return f"{item.name}: expected {item.bytes} bytes, found {found}"
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
    storage: files.Storage, keys: Sequence[tuple[str, str]], verify: bool = False
) -> dict[str, Record]:
    """Reads the records of many points. A point without a record costs no request.

    Args:
        storage: where the records lie.
        keys: trainer and id of each point.
        verify: whether the tables are read, too, as the function `verify` does.

    Returns:
        Records by point id.
    """
    there = {trainer: storage.folders(trainer) for trainer in {t for t, _ in keys}}
    records = {i: Record(trainer, i) for trainer, i in keys}
    known = [(trainer, i) for trainer, i in keys if i in there[trainer]]
    return records | read_all(storage, known, verify)


def read_all(
    storage: files.Storage, keys: Sequence[tuple[str, str]], verify: bool = False
) -> dict[str, Record]:
    """Reads the records of points that are declared, as `scan` does.

    It lists no folder, as that takes longer the more points there are of others.
    """
    read_one = functools.partial(_read_verified if verify else read, storage)
    if storage.is_local:
        found = [read_one(*key) for key in keys]
    else:
        with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
            found = list(pool.map(lambda key: read_one(*key), keys))
    return {record.id: record for record in found}


def _read_verified(storage: files.Storage, trainer: str, point_id: str) -> Record:
    return verify(storage, read(storage, trainer, point_id))


def rows(storage: files.Storage, record: Record, table: str = "rows") -> Rows:
    """Reads all committed rows of a record.

    Args:
        storage: where the record lies.
        record: as `read` returned it.
        table: "rows" for those of training, or "validation" or "test".

    Returns:
        Values by column; no columns where no rows were committed.

    Raises:
        Damaged: the object is missing or not as it was written.
    """
    return _decoded(storage, record, table, encoding.unpack_rows) or {}


def state(storage: files.Storage, record: Record) -> "list[np.ndarray] | None":
    """Reads the last committed state of a record.

    Returns:
        Its arrays, in the order in which they were committed; None where there is none.

    Raises:
        Damaged: the object is missing or not as it was written.
    """
    return _decoded(storage, record, "state", encoding.unpack_arrays)


def _decoded(storage, record, part, unpack) -> Any:
    item = record.objects.get(part)
    if item is None:
        return None
    data = _object(storage, record.trainer, record.id, item)
    try:
        return unpack(data)
    except ValueError as error:
        raise Damaged(f"{item.name}: {error}") from error


def _object(storage, trainer, point_id, item) -> bytes:
    try:
        data = storage.read(trainer, point_id, item.name)
    except FileNotFoundError as error:
        raise Damaged(f"{item.name}: no such file") from error
    if hashlib.sha256(data).hexdigest() != item.sha256:
        raise Damaged(f"{item.name}: not the bytes that were written")
    return data


def _all_of(several: manifests.Lines | None, one: str | None) -> list[str | None]:
    """Returns what all attempts noted, or what the only one did."""
    return list(several or ([] if one is None else [one]))
