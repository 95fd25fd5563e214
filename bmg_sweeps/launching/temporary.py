"""Folders for temporary files, which go even when the launch that made them is killed.

A launch keeps a lock on a file in its folder, which ends with it. The next launch
deletes the folders of its user that nobody holds.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

_HELD = ".held"


@contextlib.contextmanager
def folder(prefix: str, parent: str | None = None) -> Iterator[str]:
    """Makes a folder that only this user can enter, and deletes it in the end.

    Args:
        prefix: of its name; folders of this prefix that nobody holds are deleted.
        parent: where it is made; None is where temporary files are.

    Yields:
        Its path.
    """
    parent = parent or tempfile.gettempdir()
    for left in pathlib.Path(parent).glob(f"{prefix}*"):
        if _is_left(left):
            shutil.rmtree(left, ignore_errors=True)
    made = tempfile.TemporaryDirectory(
        prefix=prefix, dir=parent, ignore_cleanup_errors=True
    )
    with made as path, open(os.path.join(path, _HELD), "w") as file:
        with contextlib.suppress(OSError):  # Some file systems have no locks.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield path


def _is_left(path: pathlib.Path) -> bool:
    """Whether a folder is this user's, was held once, and is held no more."""
    try:
        if path.stat().st_uid != os.getuid():
            return False
        with open(path / _HELD) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
    except OSError:
        return False
