"""The cache of compiled programs, in the user's own folder."""

import contextlib
import os
import pathlib
import time

from bmg_sweeps import paths

_MAX_BYTES = 1 << 30  # With a limit, JAX locks the cache.
_WRITTEN_SECONDS = 60.0  # A file that is younger may be about to get its partner.


def use_cache() -> None:
    """Has JAX, which must not be imported yet, cache programs in our folder.

    Where the environment names a folder, that is the user's: it is used as JAX uses it,
    and nothing in it is deleted.
    """
    own, temporary = paths.cache(), paths.own_temporary()
    if own.is_relative_to(temporary) and not paths.is_own(temporary):
        return  # Compiled programs are run: not those that another user has put there.
    if os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(own)) == str(own):
        os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"] = str(_MAX_BYTES)
        mend(own)


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
