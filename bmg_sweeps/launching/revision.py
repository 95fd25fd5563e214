"""Which code a launch runs."""

import ast
import functools
import hashlib
import io
import os
import pathlib
import subprocess
import zipfile
from collections.abc import Iterable, Iterator

from bmg_sweeps import paths
from bmg_sweeps.launching import sending
from bmg_sweeps.records import files

# Of bmg_sweeps, what decides the numbers of a point; the rest moves them about.
_NUMERIC = ("atari_scores", "core", "environments", "tasks")
# What counts as edited: code, and neither logs nor results beside it.
_CODE = ("bmg_sweeps", "gin", "sweeps", "trainers", "*.py", "requirements*.txt")
_EDITED = ("status", "--porcelain", "--", *_CODE)


def fingerprints(trainers: Iterable[str]) -> dict[str, str]:
    """Hashes the sources that decide the numbers of trainers' points.

    Args:
        trainers: names of modules in trainers/.

    Returns:
        By trainer, a short hash of its file and of all that it imports, directly or
        not, from trainers/, from the parts of bmg_sweeps/ that compute, and from the
        user's own modules and packages beside them.
    """
    return {trainer: _fingerprint(trainer) for trainer in set(trainers)}


def revision() -> str:
    """Names the checkout's commit, with "+dirty" where its code differs from it.

    Returns:
        "unknown" where the checkout is no repository of its own.
    """
    try:
        if pathlib.Path(_git("rev-parse", "--show-toplevel")) != paths.ROOT:
            return "unknown"
        commit = _git("rev-parse", "--short=12", "HEAD")
        return commit + ("+dirty" if _git(*_EDITED) else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def keep(storage: files.Storage, codes: Iterable[str]) -> None:
    """Keeps the checkout's sources in the storage, once for each fingerprint.

    A revision that is "+dirty" cannot be had back from git; this can, with

        unzip <storage>/.code/<fingerprint>.zip

    Args:
        storage: where the records are.
        codes: what `fingerprints` returned, of the points that are about to run.
    """
    for code in codes:
        if not storage.exists(".code", f"{code}.zip"):
            storage.replace(_zipped(), ".code", f"{code}.zip")


def _zipped() -> bytes:
    """Packs the sources; the same ones to the same bytes."""
    kept = [p for p in sending.sources() if p.suffix in (".gin", ".py")]
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted([*kept, *paths.ROOT.glob("requirements*.txt")]):
            name = path.relative_to(paths.ROOT).as_posix()
            archive.writestr(
                zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED
            )
    return target.getvalue()


def _fingerprint(trainer: str) -> str:
    digest = hashlib.sha256()
    for path in _closure(paths.TRAINERS / f"{trainer}.py"):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _closure(path: pathlib.Path) -> list[pathlib.Path]:
    """Finds all files that a file imports, directly or not, with itself."""
    found, todo = set(), [path]
    while todo:
        path = todo.pop()
        if path not in found and path.is_file():
            found.add(path)
            todo += _imported(path, path.stat().st_mtime_ns)
    return sorted(found, key=lambda path: (path.name, str(path)))


@functools.cache
def _imported(path: pathlib.Path, modified: int) -> list[pathlib.Path]:
    """Finds the files that a file imports itself, as far as they decide numbers."""
    del modified  # Part of the key, so that an edited file is read again.
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # It is told when the trainer is looked at.
        return []
    package = _package(path)
    modules = {name for node in ast.walk(tree) for name in _modules(node, package)}
    return [p for name in modules - {""} if _is_numeric(name) for p in _files(name)]


def _package(path: pathlib.Path) -> list[str]:
    """Names the packages that a file is in, the outermost first."""
    if path.is_relative_to(paths.TRAINERS):
        return ["trainers", *path.parent.relative_to(paths.TRAINERS).parts]
    return [*path.parent.relative_to(paths.ROOT).parts]


def _is_numeric(module: str) -> bool:
    first, *parts = module.split(".")
    return first != "bmg_sweeps" or (bool(parts) and parts[0] in _NUMERIC)


def _modules(node: ast.AST, package: list[str]) -> Iterator[str]:
    """Names what an import statement may import; not all of it need be a module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        # Of a package with d levels, "from ." keeps all d, and "from .." one less.
        outer = package[: max(0, len(package) + 1 - node.level)] if node.level else []
        base = [*outer, *filter(None, [node.module])]
        yield ".".join(base)
        yield from (".".join([*base, alias.name]) for alias in node.names)


def _files(module: str) -> Iterator[pathlib.Path]:
    """Names where a module, and the packages that it is in, may be defined."""
    first, *parts = module.split(".")
    folder = paths.TRAINERS if first == "trainers" else paths.ROOT / first
    for part in parts:
        yield folder / "__init__.py"
        folder /= part
    yield folder / "__init__.py"
    yield folder.with_suffix(".py")


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(paths.ROOT), *arguments],
        capture_output=True,
        text=True,
        check=True,
        # As inside of a hook, these would name another repository.
        env={k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
    )
    return done.stdout.strip()
