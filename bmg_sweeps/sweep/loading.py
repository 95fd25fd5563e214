"""How sweep files are found, by name or path, and loaded."""

import contextlib
import os
import pathlib
import re
import sys
import traceback
import types
from collections.abc import Iterable

from bmg_sweeps import errors, paths
from bmg_sweeps.sweep import grid


def sweep_names() -> list[str]:
    """Lists the sweeps that the checkout ships, by file stem.

    Returns:
        Names in alphabetical order, and numbers in theirs: figure_2 before figure_10.
    """
    return in_order(path.stem for path in paths.SWEEPS.glob("*.py"))


def in_order(names: Iterable[str]) -> list[str]:
    """Sorts names by their words and numbers: figure_2 before figure_10."""
    return sorted(names, key=_in_numbers)


def _in_numbers(name: str) -> list[tuple[int, str]]:
    """Splits a name into the words and numbers that it is sorted by."""
    parts = re.split(r"(\d+)", name)
    return [(int(part) if part.isdigit() else -1, part) for part in parts]


def load_sweep(name: str) -> grid.Sweep:
    """Loads a sweep by its name in sweeps/ or by the path of its file.

    Args:
        name: such as "figure_2", or any path that ends in .py.

    Returns:
        The file's `SWEEP`.

    Raises:
        UserError: there is no such file, or it does not define a valid sweep.
    """
    is_ours = name in sweep_names()
    path = paths.SWEEPS / f"{name}.py" if is_ours else pathlib.Path(name)
    if path.suffix != ".py" or not os.path.isfile(path):
        raise errors.UserError(
            f"sweep {name!r}: no such sweep, nor a path to a .py file; "
            + errors.expected_one_of(name, sweep_names())
        )
    sweep = _executed(path).get("SWEEP")
    if not isinstance(sweep, grid.Sweep):
        raise errors.UserError(
            f"sweep file {path}: expected SWEEP = Sweep(…), got {errors.shown(sweep)}"
        )
    return sweep


def _executed(path: pathlib.Path) -> dict[str, object]:
    """Runs a sweep file and returns its names.

    The file is read and not imported. sweeps/ must not be a package, because W&B
    imports a package of that name; users keep sweeps anywhere; and no cache shall be
    left beside them.
    """
    module = types.ModuleType(f"sweep_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # Dataclasses look for theirs there.
    try:
        code = compile(path.read_bytes(), str(path), "exec")
        # What a file prints is not the output of a command.
        with contextlib.redirect_stdout(sys.stderr):
            exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        raise errors.UserError(f"sweep file {path}{_where(error, path)}") from error
    finally:
        del sys.modules[module.__name__]
    return module.__dict__


def _where(error: BaseException, path: pathlib.Path) -> str:
    """Says on which line of a file an error arose, and what it is."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f", line {error.lineno}: {error.msg}"
    lines = [
        number
        for frame, number in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == str(path)
    ]
    place = f", line {lines[-1]}" if lines else ""
    return f"{place}: {errors.described(error)}"
