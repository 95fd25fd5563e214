"""What workers get of the checkout: its code, by a list of our own.

Ray would send the checkout but for what `.gitignore` names, and so neither a trainer
that is not to be committed, nor would it leave out a data set beside the code.
"""

import pathlib
import shutil

from bmg_sweeps import errors, formatting, paths

FOLDERS = ("bmg_sweeps", "gin", "sweeps", "trainers")
MAX_BYTES = 100 << 20  # Ray refuses some more; code has one or two megabytes.


def copy(target: pathlib.Path) -> None:
    """Copies what trainers may import: our folders, and the user's own packages.

    Args:
        target: a folder that does not exist yet.

    Raises:
        UserError: it is too large; names the largest file.
    """
    found = {path: path.stat().st_size for path in sources()}
    if (size := sum(found.values())) > MAX_BYTES:
        largest = max(found, key=lambda path: found[path])
        raise errors.UserError(
            f"the code to be sent to workers has {formatting.memory(size)}, "
            f"{formatting.memory(found[largest])} of them in "
            f"{largest.relative_to(paths.ROOT)}; expected at most "
            f"{formatting.memory(MAX_BYTES)} in {', '.join(FOLDERS)} and in packages "
            f"beside them"
        )
    for path in found:
        copied = target / path.relative_to(paths.ROOT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copied)


def sources() -> list[pathlib.Path]:
    """Finds the files of the checkout that workers get."""
    found = [path for folder in _folders() for path in _in(folder)]
    return [*found, *paths.ROOT.glob("*.py")]


def _folders() -> list[pathlib.Path]:
    """Finds the folders of the checkout that hold code."""
    packages = {path.parent for path in paths.ROOT.glob("*/__init__.py")}
    return sorted(packages | {paths.ROOT / name for name in FOLDERS})


def _in(folder: pathlib.Path) -> list[pathlib.Path]:
    """Finds the files in a folder, but for hidden ones and what Python compiled."""
    return [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(
            part.startswith(".") or part == "__pycache__"
            for part in path.relative_to(folder).parts
        )
    ]
