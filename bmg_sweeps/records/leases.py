"""Leases: which process holds a record, and whether it still lives.

A process that holds records has a pulse. Every few seconds, whatever else it does, it
writes an object anew,

    <storage>/.alive/<pulse>

Who finds a record held looks at the holder's pulse again and again. Once it has stood
still for `LOST_SECONDS` by the watcher's own clock, the holder is lost. Nothing that
two machines may disagree about is compared: no clock, no process id, no host's name.

On one machine the kernel tells at once. The process keeps a lock on a file of the same
name in the folder for temporary files, and the lock ends with it, however it dies.

A holder that was taken for lost and comes back does no harm: see `attempts`.
"""

import contextlib
import os
import pathlib
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Literal

from bmg_sweeps import paths
from bmg_sweeps.records import files, locks, manifests

BEAT_SECONDS = 10.0
LOST_SECONDS = 60.0  # Six beats; a storage that refuses for a while costs some.
_LOOK_SECONDS = 5.0  # A look counts for no more: a watcher may have been asleep, too.
_FOLDER = ".alive"


class _Pulse:
    """The pulse of this process in a storage, while it holds records there."""

    def __init__(self, storage: files.Storage) -> None:
        self.name = uuid.uuid4().hex
        self.holds = 0
        self._storage = storage
        self._is_over = threading.Event()
        self._beat()
        self._lock = _locked(self.name)
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(BEAT_SECONDS)
        with contextlib.suppress(files.StorageError):
            self._storage.remove(_FOLDER, self.name)
        if self._lock is not None:
            with contextlib.suppress(FileNotFoundError):
                _lock_path(self.name).unlink()
            os.close(self._lock)

    def _go_on(self) -> None:
        while not self._is_over.wait(BEAT_SECONDS):
            with contextlib.suppress(files.StorageError):
                self._beat()

    def _beat(self) -> None:
        self._storage.replace(uuid.uuid4().bytes, _FOLDER, self.name)


PULSES: dict[files.Storage, _Pulse] = {}  # Of this process, by storage.
_CHANGING = threading.Lock()


def take(storage: files.Storage, owner: str) -> manifests.Lease:
    """Makes a lease of this process, whose pulse begins with the first one.

    Args:
        storage: where the record lies.
        owner: the name that others read who find the record held.

    Raises:
        StorageError: the storage refuses the pulse.
    """
    with _CHANGING:
        if storage not in PULSES:
            PULSES[storage] = _Pulse(storage)
        pulse = PULSES[storage]
        pulse.holds += 1
    return manifests.Lease(owner=owner, token=uuid.uuid4().hex[:8], pulse=pulse.name)


def owner_of(launch: str) -> str:
    """Names a launch to others who want the same points."""
    return f"launch {launch}"


def drop(storage: files.Storage) -> None:
    """Ends a lease of this process, and with the last one its pulse."""
    with _CHANGING:
        pulse = PULSES[storage]
        pulse.holds -= 1
        if pulse.holds == 0:
            del PULSES[storage]
            pulse.end()


@contextlib.contextmanager
def one_pulse(storage: files.Storage) -> Iterator[None]:
    """Keeps the pulse of this process from one lease to the next.

    Args:
        storage: of the leases. Where it refuses the pulse, each lease asks for it anew.
    """
    with contextlib.ExitStack() as kept:
        with contextlib.suppress(files.StorageError):
            take(storage, "")
            kept.callback(drop, storage)
        yield


def has_ended(lease: manifests.Lease) -> bool:
    """Whether this machine's kernel knows that the holder is gone.

    Where the holder is of another machine, or has another folder for temporary files,
    it does not, and only a `Watch` can tell.
    """
    return _is_locked(lease.pulse) is False


def bury(storage: files.Storage, lease: manifests.Lease) -> None:
    """Deletes what a holder that is gone has left of its pulse."""
    if lease.pulse:
        with contextlib.suppress(files.StorageError):
            storage.remove(_FOLDER, lease.pulse)
        if has_ended(lease):
            with contextlib.suppress(OSError):
                _lock_path(lease.pulse).unlink()


class Watch:
    """Looks at the pulses of holders, to find those that are lost."""

    def __init__(self, storage: files.Storage) -> None:
        self.lost: set[str] = set()  # Tokens of leases that no longer count.
        self._storage = storage
        # By pulse: the last beat, how long it has stood still, and the last look.
        self._seen: dict[str, tuple[bytes | None, float, float]] = {}

    def look(self, lease: manifests.Lease) -> Literal["lives", "lost", "unknown"]:
        """Looks once, which takes one request; every few seconds, to find out.

        Args:
            lease: of a record that is held. Older code's had no pulse, which counts as
                one that stands still.
        """
        is_locked = _is_locked(lease.pulse)
        if is_locked is not None or lease.token in self.lost:
            return "lives" if is_locked else "lost"
        key, now = lease.pulse or lease.token, time.monotonic()
        try:
            beat = self._storage.read(_FOLDER, lease.pulse) if lease.pulse else None
        except FileNotFoundError:
            beat = None
        except files.StorageError:
            self._seen.pop(key, None)  # Who cannot see cannot say.
            return "unknown"
        last, still, looked = self._seen.get(key, (beat, 0.0, now))
        if beat not in (None, last):
            self._seen[key] = (beat, 0.0, now)
            return "lives"
        still += min(now - looked, _LOOK_SECONDS)
        self._seen[key] = (last, still, now)
        if still < LOST_SECONDS:
            return "unknown"
        self.lost.add(lease.token)
        return "lost"


def _locked(name: str) -> int | None:
    """Locks a new file until this process ends; None where there are no locks."""
    path = _lock_path(name)
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return locks.hold(path)


def _is_locked(name: str) -> bool | None:
    """Whether a process of this machine holds the lock; None where there is none."""
    return locks.is_held(_lock_path(name)) if name else None


def _lock_path(name: str) -> pathlib.Path:
    return paths.own_temporary() / "held" / name
