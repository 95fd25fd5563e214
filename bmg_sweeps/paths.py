"""Where the parts of a checkout are, and how sweep files are found and loaded."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAINERS = ROOT / "trainers"
GIN = ROOT / "gin"
SWEEPS = ROOT / "sweeps"
DATA_VARIABLE = "BMG_SWEEPS_DATA"  # Of the environment: the folder of data sets.


def cache() -> pathlib.Path:
    """Returns the folder for what can be made again, in the user's own cache."""
    caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(caches, "bmg_sweeps")
