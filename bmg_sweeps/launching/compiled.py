"""The cache of compiled programs, in the user's own folder."""

import contextlib
import pathlib
import time

_WRITTEN_SECONDS = 60.0  # A file that is younger may be about to get its partner.


def mend(folder: pathlib.Path) -> None:
    """Deletes entries that a killed process left half written.

    JAX keeps an entry in two files, `…-cache` and `…-atime`. Where the second is
    missing, no later program is cached.

    Args:
        folder: the cache, which may not exist.
    """
    for entry in folder.glob("*-cache"):
        partner = entry.with_name(entry.name.removesuffix("-cache") + "-atime")
        with contextlib.suppress(OSError):
            is_old = time.time() - entry.stat().st_mtime > _WRITTEN_SECONDS
            if is_old and not partner.exists():
                entry.unlink()
