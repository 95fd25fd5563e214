"""Where the parts of a checkout are, and the user's cache."""

import os
import pathlib
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAINERS = ROOT / "trainers"
GIN = ROOT / "gin"
SWEEPS = ROOT / "sweeps"
DATA_VARIABLE = "BMG_SWEEPS_DATA"  # Environment variable: folder of data sets.


def cache() -> pathlib.Path:
    """Returns the folder of compiled programs and decoded data, in the user's cache.

    It is among the temporary files where the user has no home.
    """
    folder = home()
    usual = folder / ".cache" if folder else own_temporary()
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or usual, "bmg_sweeps")


def home() -> pathlib.Path | None:
    """Returns the user's home folder, if they have one."""
    try:
        return pathlib.Path.home()
    except RuntimeError:
        return None


def own_temporary() -> pathlib.Path:
    """Returns the user's own folder among the temporary files, which may not exist."""
    return pathlib.Path(tempfile.gettempdir(), f"bmg_sweeps-{os.getuid()}")


def is_own(folder: pathlib.Path) -> bool:
    """Makes a folder if there is none; whether others can change nothing in it.

    Args:
        folder: where others may make one of this name first, and wait.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder.stat()
    return about.st_uid == os.getuid() and not about.st_mode & 0o022
