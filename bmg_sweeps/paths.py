"""Where the parts of a checkout are, and the user's cache."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAINERS = ROOT / "trainers"
GIN = ROOT / "gin"
SWEEPS = ROOT / "sweeps"
DATA_VARIABLE = "BMG_SWEEPS_DATA"  # Environment variable: folder of data sets.


def cache() -> pathlib.Path:
    """Returns the folder of compiled programs and decoded data, in the user's cache."""
    caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(caches, "bmg_sweeps")
