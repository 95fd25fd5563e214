"""Attempts: how a process takes hold of a record, commits to it, and lets it go."""

import contextlib
import functools
import hashlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from bmg_sweeps import errors, privacy
from bmg_sweeps.records import encoding, files, leases, manifests, store

if TYPE_CHECKING:  # A list of sweeps shall not wait for it.
    import numpy as np

_T = TypeVar("_T")
RETRY_SECONDS = 60.0  # While storage refuses, a commit is tried again for so long.


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
        self._storage = storage
        self._key = (record.trainer, record.id)
        self._number = record.manifest.attempt + 1
        self._commits = 0
        kept = manifests.EMPTY if record.begins_anew else record.manifest
        self._lease = leases.take(storage, owner)
        self._is_over = False
        self._manifest = msgspec.structs.replace(
            kept, attempt=self._number, lease=self._lease
        )

    @property
    def number(self) -> int:
        """Attempts on a point are counted from 1, whichever process makes them."""
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
        failure: manifests.Failure | None = None,
        release: bool = False,
    ) -> None:
        """Makes state and tables the record's, together.

        What is None stays as the last commit left it, but for `failure`.

        Args:
            progress: amounts by axis.
            state: the trainer's state, as arrays.
            rows: all rows of training so far.
            validation: all rows of evaluations that the selection reads.
            test: all rows of evaluations that are reported.
            provenance: where and by what they were made; it replaces what was noted.
            failure: why the attempt ends early.
            release: whether the attempt ends with this commit.

        Raises:
            Stale: a later attempt has taken the record over.
            StorageError: storage has refused for `RETRY_SECONDS`. The record is as the
                last commit left it.
        """
        objects = _packed(state, rows=rows, validation=validation, test=test)
        changes: dict[str, Any] = {"failure": failure and _scrubbed(failure)}
        if progress is not None:
            changes["progress"] = dict(progress)
        if provenance is not None:
            changes["provenance"] = manifests.Provenance.of(as_kept(provenance))
        self._commits += 1
        patiently(functools.partial(self._commit, changes, objects, release))
        if release:
            self.end()

    def _commit(self, changes, objects, release) -> None:
        self._check_current()
        changes = dict(changes, lease=None if release else self._lease)
        if objects:
            changes["previous"] = manifests.commit_of(self._manifest)
        for part, data in objects.items():
            changes[part] = self._put(part, data)
        self._write(msgspec.structs.replace(self._manifest, **changes))

    def abandon(self) -> None:
        """Lets go of the record as the last commit left it, if storage allows it."""
        with contextlib.suppress(files.StorageError, Stale):
            self._check_current()
            self._remove_unused()  # A full disk then has room for a manifest.
            self._write(msgspec.structs.replace(self._manifest, lease=None))
        self.end()

    def end(self) -> None:
        """Stops vouching for the attempt, whatever its lease says."""
        if not self._is_over:
            self._is_over = True
            leases.drop(self._storage)

    def _write(self, manifest: manifests.Manifest) -> None:
        data = manifests.dump(manifest)
        self._storage.replace(data, *self._key, manifests.name(self._number))
        self._manifest = manifest
        self._remove_unused()

    def _create(self) -> None:
        data = manifests.dump(self._manifest)
        self._storage.create(data, *self._key, manifests.name(self._number))

    def _remove_older(self) -> None:
        """Deletes the manifests of earlier attempts, but for the last one's."""
        for number in manifests.attempts(self._storage.sizes(*self._key)):
            if number < self._number - 1:
                self._storage.remove(*self._key, manifests.name(number))
        self._storage.remove_temporaries(*self._key)

    def _put(self, part: str, data: bytes) -> manifests.StoredObject:
        name = manifests.object_name(part, self._number, self._commits)
        self._storage.replace(data, *self._key, name)
        digest = hashlib.sha256(data).hexdigest()
        return manifests.StoredObject(name=name, bytes=len(data), sha256=digest)

    def _remove_unused(self) -> None:
        """Deletes objects that no longer count, but for those of the commit before.

        A reader may be about to open those, or a later attempt may have begun with
        them. The objects of a later attempt are never touched.
        """
        commits = manifests.commits(self._manifest)
        used = {o.name for m in commits for o in manifests.objects(m).values()}
        with contextlib.suppress(files.StorageError):  # The next commit deletes them.
            for name in self._storage.sizes(*self._key):
                owner = manifests.owner_of(name)
                if owner is not None and owner <= self._number and name not in used:
                    self._storage.remove(*self._key, name)

    def _check_current(self) -> None:
        newest = max(manifests.attempts(self._storage.sizes(*self._key)), default=0)
        if newest != self._number:
            self.end()
        if newest > self._number:
            raise Stale(
                f"point {self._key[1]}: attempt {self._number} was taken over by "
                f"attempt {newest}"
            )
        if newest < self._number:
            raise Stale(f"point {self._key[1]}: its record was deleted")


def begin(
    storage: files.Storage,
    record: store.Record,
    owner: str = "",
    lost: Collection[str] = (),
) -> Attempt:
    """Takes hold of a point that nobody else holds.

    Args:
        storage: where the record lies.
        record: the point's, as `read` or `verify` returned it.
        owner: the name that others read who find the point taken.
        lost: tokens of leases whose holders a `leases.Watch` has found lost.

    Returns:
        An attempt. Its process has a pulse until the attempt is over.

    Raises:
        Busy: another process works on the point, or was faster.
        StorageError: storage has refused for `RETRY_SECONDS`.
    """
    if record.is_leased(lost):
        raise Busy(f"point {record.id} is being worked on")
    attempt = patiently(lambda: Attempt(storage, record, owner))
    try:
        patiently(attempt._create)
        with _abandoning(attempt):
            attempt._check_current()
            attempt._remove_older()
            if record.manifest.lease is not None:
                leases.bury(storage, record.manifest.lease)
    except (FileExistsError, Stale) as error:
        attempt.end()
        raise Busy(f"point {record.id} was taken by another process") from error
    except files.StorageError:
        attempt.end()
        raise
    return attempt


def as_kept(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a record keeps of what is noted: JSON without secrets or folders."""
    return _private(provenance, privacy.scrubber(folders=True))


@contextlib.contextmanager
def _abandoning(attempt: Attempt) -> Iterator[None]:
    try:
        yield
    except files.StorageError:
        attempt.abandon()
        raise


def _scrubbed(failure: manifests.Failure) -> manifests.Failure:
    """Leaves secrets and folders out of what was raised, which may say anything."""
    scrub = privacy.scrubber(folders=True)
    said = _private({"type": failure.type, "message": failure.message}, scrub)
    return msgspec.structs.replace(failure, **said)


def _private(value: Any, scrub: Callable[[str], str]) -> Any:
    """Scrubs every text in lists and mappings, and writes it in one line."""
    if isinstance(value, str):
        return errors.one_line(scrub(value))
    if isinstance(value, Mapping):
        return {key: _private(one, scrub) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_private(one, scrub) for one in value]
    return value


def _packed(
    state: "Sequence[np.ndarray] | None", **tables: store.Rows | None
) -> dict[str, bytes]:
    """Encodes the parts that are there; returns them by name."""
    objects = {
        name: encoding.pack_rows(table)
        for name, table in tables.items()
        if table is not None
    }
    return (
        objects if state is None else objects | {"state": encoding.pack_arrays(state)}
    )


def patiently(action: Callable[[], _T]) -> _T:
    """Repeats what storage refuses, at growing intervals, for `RETRY_SECONDS`.

    Args:
        action: a request of the storage.

    Raises:
        StorageError: it has refused for so long.
    """
    deadline, pause = time.monotonic() + RETRY_SECONDS, 0.25
    while True:
        try:
            return action()
        except files.StorageError:
            if time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause = min(2 * pause, 8.0)
