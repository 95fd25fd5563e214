"""What has been exported before, where, and who may export now.

All of it is in the storage, below `wandb/`:

    exported/<run id>.json         what the run was made of
    identity                       tells this storage from others of the same project
    lease/                         held by the one process that exports
    offline-run-<time>-<run id>/   a run that waits for its upload; of other storages
                                   than local ones these are in the user's cache
"""

import contextlib
import functools
import hashlib
import json
import pathlib
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bmg_sweeps import paths
from bmg_sweeps.records import attempts, files, leases, store

_LEASE = ("wandb", "lease")  # Kept as that of a point, by the same rules.


def folder(storage: files.Storage) -> pathlib.Path:
    """Returns the folder of offline runs: W&B reads and writes only local ones."""
    if storage.is_local:
        return pathlib.Path(storage.root, "wandb")
    return paths.cache() / digest(storage.uri)[:12] / "wandb"


def remove_folders(storage: files.Storage, run_id: str, kept: str | None) -> None:
    """Deletes all of a run's folders but one, also those that a kill left behind."""
    for path in folder(storage).glob(f"offline-run-*-{run_id}*"):
        if path.name != kept:
            shutil.rmtree(path)


def remembered(storage: files.Storage, run_id: str) -> Mapping[str, Any]:
    """Returns what was remembered of a run; nothing where there is none."""
    try:
        return json.loads(storage.read(*_memory(run_id)))
    except (FileNotFoundError, ValueError):
        return {}


def remember(storage: files.Storage, run_id: str, made: Mapping[str, Any]) -> None:
    """Remembers how a run was made."""
    storage.replace(json.dumps(made, indent=1).encode(), *_memory(run_id))


def identity(storage: files.Storage) -> str:
    """Returns what tells a storage from others, wherever it is moved."""
    with contextlib.suppress(FileExistsError):
        storage.create(uuid.uuid4().hex.encode(), "wandb", "identity")
    return storage.read("wandb", "identity").decode()


def digest(value: Any) -> str:
    """Hashes any JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def lease(
    storage: files.Storage, patience: float, tell: Callable[[], None]
) -> Iterator[Callable[[], None]]:
    """Holds the right to write W&B runs of a storage, which one process has at a time.

    Args:
        patience: seconds to wait for another process.
        tell: is called while waiting.

    Yields:
        A function that prolongs it.

    Raises:
        Busy: another process exports, and has not ended in time.
    """
    attempt = _begin(storage, time.monotonic() + patience, tell)
    try:
        yield attempt.commit
    finally:
        with contextlib.suppress(attempts.Stale):
            attempt.commit(release=True)
        attempt.end()


@functools.cache
def _holders(storage: files.Storage) -> leases.Watch:
    """One watch for all times that the lease is wanted: each of them may be short."""
    return leases.Watch(storage)


def _begin(storage, until: float, tell: Callable[[], None]) -> attempts.Attempt:
    holders = _holders(storage)
    while True:
        record = store.read(storage, *_LEASE)
        if record.manifest.lease is not None:
            holders.look(record.manifest.lease)
        try:
            return attempts.begin(storage, record, lost=holders.lost)
        except attempts.Busy:
            if time.monotonic() >= until:
                raise attempts.Busy("another process exports") from None
        tell()
        time.sleep(0.5)


def _memory(run_id: str) -> tuple[str, ...]:
    return "wandb", "exported", f"{run_id}.json"
