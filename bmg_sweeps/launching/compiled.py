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
    # Every trial calls this, so it lists the folder once and asks of no whole entry.
    names = {path.name for path in folder.glob("*")}
    stems = {name.removesuffix("-cache") for name in names if name.endswith("-cache")}
    for stem in stems:
        if f"{stem}-atime" in names:
            continue
        entry, partner = folder / f"{stem}-cache", folder / f"{stem}-atime"
        with contextlib.suppress(OSError):
            is_old = time.time() - entry.stat().st_mtime > _WRITTEN_SECONDS
            if is_old and not partner.exists():
                entry.unlink()
