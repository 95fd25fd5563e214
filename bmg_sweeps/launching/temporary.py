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
_NEW = "new_"  # Before the name of a folder that is not held yet.


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
    new = pathlib.Path(tempfile.mkdtemp(prefix=_NEW + prefix, dir=parent))
    lock = locks.hold(new / _HELD)
    made = new.rename(new.with_name(new.name.removeprefix(_NEW)))
    try:
        yield str(made)
    finally:
        if lock is not None:
            os.close(lock)
        shutil.rmtree(made, ignore_errors=True)


def _is_left(path: pathlib.Path) -> bool:
    """Whether a folder is this user's, was held once, and is held no more."""
    try:
        is_ours = path.stat().st_uid == os.getuid()
    except OSError:
        return False
    return is_ours and locks.is_held(path / _HELD) is False
