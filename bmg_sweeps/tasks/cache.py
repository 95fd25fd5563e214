"""Decoded data sets, kept once a machine and shared by all processes.

    CACHE/data/NAME-FINGERPRINT/    train.npy  validation.npy  test.npy  manifest.json

The fingerprint is of the source's files, by name, size and time, and of the code that
reads them, so other data are decoded anew, and what was kept of earlier ones is
removed. The arrays are mapped into memory, read-only, after
their checksums are compared; a folder appears whole or not at all.
"""

import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import sys
import uuid
from collections.abc import Iterator
from typing import NamedTuple

import filelock
import numpy as np
import PIL

from bmg_sweeps import errors, paths
from bmg_sweeps.tasks import sources

_MANIFEST = "manifest.json"


class Stored(NamedTuple):
    """A split as it is kept."""

    images: np.ndarray  # uint8 [C, n, H, W, channels], mapped from its file.
    class_names: tuple[str, ...]
    sha256: str  # Hash of the images.


def load(name: str, source: sources.Source) -> dict[str, Stored]:
    """Returns a data set as arrays, and decodes it if that was not yet done.

    Args:
        name: of the data set.
        source: where it comes from.

    Returns:
        Its splits by name.

    Raises:
        UserError: the source is not what it should be, or the cache not writable.
    """
    root = paths.cache() / "data"
    folder = root / f"{name}-{_fingerprint(name, source)}"
    stored = _open(folder)
    if stored:
        return stored
    try:
        root.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(root / f"{name}.lock"):
            return _open(folder) or _made(name, source, folder)
    except OSError as error:
        reason = error.strerror or errors.first_line(error)
        raise sources.refused(
            f"cache {root}",
            f"cannot be written ({reason}); XDG_CACHE_HOME names another place",
        ) from error


def num_threads() -> int:
    """Returns how many cores this process is given."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _fingerprint(name: str, source: sources.Source) -> str:
    files, root = [], str(source.root)
    for path in sorted(map(str, source.files)):  # As text, being 60,000 or so.
        try:
            status = os.stat(path)
        except OSError as error:
            raise sources.refused(path, f"cannot be read ({error.strerror})") from error
        files.append((path.removeprefix(root), status.st_size, status.st_mtime_ns))
    # Other code, or another version of Pillow, may make other pixels.
    text = repr((PIL.__version__, _code(name), files))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _code(name: str) -> list[bytes]:
    """Returns the text of the modules that decide what becomes of an image."""
    here = pathlib.Path(__file__).parent
    common = [here / f"{module}.py" for module in ("cache", "pickles", "sources")]
    return [path.read_bytes() for path in [*common, *sorted(here.glob(f"{name}*.py"))]]


def _open(folder: pathlib.Path) -> dict[str, Stored] | None:
    """Maps the arrays of a folder; None if it is missing, or damaged."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_bytes())
        return {split: _mapped(folder, split, manifest) for split in sources.SPLITS}
    except (EOFError, LookupError, OSError, RecursionError, TypeError, ValueError):
        return None


def _mapped(folder: pathlib.Path, split: str, manifest: dict) -> Stored:
    entry = manifest[split]
    images = np.load(folder / f"{split}.npy", mmap_mode="r", allow_pickle=False)
    names, sha256 = tuple(entry["class_names"]), entry["sha256"]
    if images.dtype != np.uint8 or list(images.shape) != entry["shape"]:
        raise ValueError("another array")
    if hashlib.sha256(images).hexdigest() != sha256:
        raise ValueError("another checksum")
    return Stored(images, names, sha256)


def _made(name: str, source: sources.Source, folder: pathlib.Path) -> dict[str, Stored]:
    """Decodes a data set into a folder; only one process at a time comes here."""
    what = "damaged, so decoding again" if folder.exists() else "decoding once"
    print(f"{name}: {what}, into {folder}", file=sys.stderr)
    for left in folder.parent.glob(f".tmp-{name}-*"):  # By a process that was killed.
        shutil.rmtree(left)
    temporary = folder.parent / f".tmp-{name}-{uuid.uuid4().hex}"
    temporary.mkdir()
    try:
        _decode(name, source, temporary)
        for earlier in folder.parent.glob(f"{name}-*"):
            shutil.rmtree(earlier)
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    stored = _open(folder)
    if stored is None:
        raise OSError(f"{folder} does not hold what was written")
    return stored


def _decode(name: str, source: sources.Source, folder: pathlib.Path) -> None:
    manifest, class_names = {}, {}
    for split in sources.SPLITS:
        contents = source.contents(split)
        class_names[split] = contents.class_names
        sources.check_disjoint(name, class_names)
        with _new_array(folder / f"{split}.npy", contents.shape) as images:
            _fill(images, contents)
            sha256 = hashlib.sha256(images).hexdigest()
        manifest[split] = {
            "class_names": contents.class_names,
            "shape": contents.shape,
            "sha256": sha256,
        }
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1))


@contextlib.contextmanager
def _new_array(path: pathlib.Path, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    images = np.lib.format.open_memmap(path, "w+", np.uint8, shape)
    if hasattr(os, "posix_fallocate"):
        # A full disk is an error here; on writing to what is mapped, it is a crash.
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    yield images
    images.flush()


def _fill(images: np.ndarray, contents: sources.Contents) -> None:
    def fill(index: int) -> None:
        images[index] = contents.images_of(index)

    # Pillow lets other threads run while it decodes.
    with concurrent.futures.ThreadPoolExecutor(num_threads()) as pool:
        for _ in pool.map(fill, range(len(images))):
            pass
