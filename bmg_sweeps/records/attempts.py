"""A process's hold on a record, from its beginning to its last commit."""

import contextlib
import functools
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bmg_sweeps.records import encoding, files, leases, manifests, store

if TYPE_CHECKING:  # A list of sweeps shall not wait for it.
    import numpy as np

RETRY_SECONDS = 60.0  # How long a commit is tried again while storage refuses.


class Busy(Exception):
    """Another process works on the point."""


class Stale(Exception):
    """The attempt was taken over by a later one and must not commit."""


class Attempt:
    """A process's hold on a record, from `begin` to the commit that releases it."""

    def __init__(
        self, storage: files.Storage, record: store.Record, owner: str
    ) -> None:
        """Use `begin`."""
        self._owner = owner
        self._storage = storage
        self._key = (record.trainer, record.id)
        self._number = record.manifest.get("attempt", 0) + 1
        self._commits = 0
        kept = {} if record.begins_anew else dict(record.manifest)
        self._manifest = kept | {"attempt": self._number, "lease": leases.new(owner)}

    @property
    def number(self) -> int:
        """Counts from 1, over all processes that ever worked on the point."""
        return self._number

    def commit(
        self,
        *,
        progress: Mapping[str, float] | None = None,
        state: "Sequence[np.ndarray] | None" = None,
        rows: store.Rows | None = None,
        validation: store.Rows | None = None,
        test: store.Rows | None = None,
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
        manifest["lease"] = None if release else leases.new(self._owner)
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
        for number in manifests.attempts(self._storage.sizes(*self._key)):
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
        newest = max(manifests.attempts(self._storage.sizes(*self._key)), default=0)
        if newest > self._number:
            raise Stale(
                f"point {self._key[1]}: attempt {self._number} was taken over by "
                f"attempt {newest}"
            )
        if newest < self._number:
            raise Stale(f"point {self._key[1]}: its record was deleted")


def begin(storage: files.Storage, record: store.Record, owner: str = "") -> Attempt:
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
    state: "Sequence[np.ndarray] | None", **tables: store.Rows | None
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
