"""Folders for temporary files, which go even when the launch that made them is killed.

A launch keeps a lock on a file in its folder, which ends with it. The next launch
deletes the folders of its user that nobody holds.
"""

import contextlib
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

from bmg_sweeps.records import locks

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
    with made as path:
        lock = locks.hold(pathlib.Path(path, _HELD))
        try:
            yield path
        finally:
            if lock is not None:
                os.close(lock)


def _is_left(path: pathlib.Path) -> bool:
    """Whether a folder is this user's, was held once, and is held no more."""
    try:
        is_ours = path.stat().st_uid == os.getuid()
    except OSError:
        return False
    return is_ours and locks.is_held(path / _HELD) is False
