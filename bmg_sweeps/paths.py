"""Where the parts of a checkout are, and how sweep files are found and loaded."""

import importlib.util
import os
import pathlib

from bmg_sweeps import errors, grid

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAINERS = ROOT / "trainers"
GIN = ROOT / "gin"
SWEEPS = ROOT / "sweeps"


def cache() -> pathlib.Path:
    """Returns the folder for what can be made again, in the user's own cache."""
    caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(caches, "bmg_sweeps")


def sweep_names() -> list[str]:
    """Lists the sweeps that the checkout ships, by file stem.

    Returns:
        Names in alphabetical order.
    """
    return sorted(path.stem for path in SWEEPS.glob("*.py"))


def load_sweep(name: str) -> grid.Sweep:
    """Loads a sweep by its name in sweeps/ or by the path of its file.

    Args:
        name: such as "figure_2", or any path that ends in .py.

    Returns:
        The file's `SWEEP`.

    Raises:
        UserError: there is no such file, or it does not define a valid sweep.
    """
    path = pathlib.Path(name) if name.endswith(".py") else SWEEPS / f"{name}.py"
    if not path.is_file():
        raise errors.UserError(
            f"sweep {name!r}: no such sweep, nor a path to a .py file; "
            + errors.expected_one_of(name, sweep_names())
        )
    # Loaded by path, not imported: sweeps/ must not be a package (W&B imports a
    # package of that name), and users keep sweeps anywhere.
    spec = importlib.util.spec_from_file_location(f"sweep_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise errors.UserError(
            f"sweep file {path}, line {error.lineno}: {error.msg}"
        ) from error
    except Exception as error:
        raise errors.UserError(
            f"sweep file {path}: {errors.described(error)}"
        ) from error
    sweep = getattr(module, "SWEEP", None)
    if not isinstance(sweep, grid.Sweep):
        raise errors.UserError(
            f"sweep file {path}: expected SWEEP = Sweep(…), got {sweep!r}"
        )
    return sweep
