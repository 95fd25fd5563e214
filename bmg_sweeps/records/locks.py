"""Locks on files, which the kernel ends with the process that holds them."""

import contextlib
import fcntl
import os
import pathlib


def hold(path: pathlib.Path) -> int | None:
    """Locks a new file until its descriptor is closed, or this process ends.

    Returns:
        The descriptor; None where the file cannot be made, or there are no locks.
    """
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except OSError:
            os.close(file)
            path.unlink()
    return None


def is_held(path: pathlib.Path) -> bool | None:
    """Whether a process of this machine holds a lock; None where nobody can tell."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(file)
