"""Sources: what a data set looks like before it is decoded.

A module of a data set makes a `Source` of the user's folder, `cache` decodes it once,
and `data_sets` hands it out. Here is what these three share: the two types, and how
files that may be anything are read, with errors of one line.
"""

import io
import os
import pathlib
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from PIL import Image

from bmg_sweeps import errors, formatting

SPLITS = ("train", "validation", "test")

MAX_NPZ_BYTES = 1 << 30  # Ten times what an .npz of a data set here unpacks to.
MAX_NAMES = 5  # An error lists so many entries of a folder.


class Contents(NamedTuple):
    """The classes of a split, each with the same number of images."""

    class_names: tuple[str, ...]
    shape: tuple[int, ...]  # [C, n, H, W, channels].
    images_of: Callable[[int], np.ndarray]  # Class ↦ uint8 [n, H, W, channels].


class Source(NamedTuple):
    """A data set that is found, and not yet read."""

    root: pathlib.Path
    files: tuple[pathlib.Path, ...]  # All that its arrays are made of.
    contents: Callable[[str], Contents]  # Split ↦ what it holds.


def refused(where: object, problem: str) -> errors.UserError:
    """Returns an error of one line: a file, folder or class, and what is wrong."""
    return errors.UserError(errors.one_line(f"{where}: {problem}"))


def entries(folder: pathlib.Path) -> str:
    """Lists the first few names in a folder, for an error message."""
    names = sorted(path.name for path in listed(folder))
    more = [f"… ({len(names):,} in all)"] if len(names) > MAX_NAMES else []
    return ", ".join(names[:MAX_NAMES] + more) or "nothing"


def listed(folder: pathlib.Path) -> list[pathlib.Path]:
    """Lists a folder by name, without what is hidden; a folder that is none is empty.

    Raises:
        UserError: the folder is there and cannot be read.
    """
    try:
        found = [path for path in folder.iterdir() if not path.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise refused(folder, f"cannot be read ({error.strerror})") from error
    return sorted(found)


def folders_in(folder: pathlib.Path) -> list[pathlib.Path]:
    """Lists the folders in a folder by name, those that are hidden left out."""
    return [path for path in listed(folder) if path.is_dir()]


def candidates(
    name: str, folder: pathlib.Path | None, own_names: Iterable[str]
) -> Iterator[pathlib.Path]:
    """Yields where a data set may be: the user's folder, then those that bear its name.

    Args:
        name: of the data set.
        folder: given by the user.
        own_names: what the data set's own folder is called, in small letters without
            - and _.

    Yields:
        Folders that exist.

    Raises:
        MachineError: no folder is given, or it is none on this machine.
    """
    if folder is None:
        raise errors.MachineError(
            f"data set {name}: no folder; expected --data DIR or the environment "
            f"variable BMG_SWEEPS_DATA"
        )
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        raise errors.MachineError(
            errors.one_line(f"data {folder}: expected a folder, found {found}")
        )
    yield folder
    for child in folders_in(folder):
        if re.sub("[-_ ]", "", child.name.lower()) in own_names:
            yield child


def read_bytes(path: pathlib.Path) -> bytes:
    """Returns a file's content; raises UserError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise refused(path, f"cannot be read ({error.strerror})") from error


def read_npz(path: pathlib.Path, dtypes: dict[str, str]) -> dict[str, np.ndarray]:
    """Reads named arrays of an .npz, and nothing that is pickled.

    Args:
        path: of the file.
        dtypes: the kinds that each array may have, as in `numpy.dtype.kind`.

    Returns:
        The arrays, in memory.

    Raises:
        UserError: it is no .npz, lacks an array, or unpacks to more than 1 GiB.
    """
    try:
        with zipfile.ZipFile(path) as file:
            size = sum(member.file_size for member in file.infolist())
        if size > MAX_NPZ_BYTES:
            raise ValueError(f"{size:,} bytes inside, at most {MAX_NPZ_BYTES:,}")
        with np.load(path, allow_pickle=False) as file:
            missing = [key for key in dtypes if key not in file]
            arrays = {key: np.asarray(file[key]) for key in dtypes if not missing}
    except Exception as error:  # NumPy's and zipfile's, of many kinds.
        raise refused(
            path, f"expected an .npz of plain arrays ({errors.first_line(error)})"
        ) from error
    if missing:
        raise refused(path, f"lacks {missing[0]}; expected {', '.join(dtypes)}")
    for key, kinds in dtypes.items():
        if arrays[key].dtype.kind not in kinds:
            expected = "strings" if kinds == "U" else "integers"
            raise refused(
                f"{path}, {key}", f"{_described(arrays[key])}, expected {expected}"
            )
    return arrays


def check_array(
    where: object, array: np.ndarray, dtype: str, shape: tuple[int | None, ...]
) -> None:
    """Raises UserError unless an array has this type and shape; None is any length."""
    fits = len(array.shape) == len(shape) and all(
        wanted in (None, length)
        for length, wanted in zip(array.shape, shape, strict=True)
    )
    if array.dtype != dtype or not fits:
        sizes = ", ".join("N" if wanted is None else str(wanted) for wanted in shape)
        raise refused(where, f"{_described(array)}, expected {dtype} [{sizes}]")


def check_count(where: object, found: int, expected: int, noun: str) -> None:
    """Raises UserError unless there are as many things as there should be."""
    if found != expected:
        raise refused(
            where, f"{formatting.counted(found, noun)}, expected {expected:,}"
        )


def check_disjoint(where: object, class_names: dict[str, tuple[str, ...]]) -> None:
    """Raises UserError where a class is in two splits, or twice in one."""
    splits: dict[str, str] = {}
    for split, names in class_names.items():
        for name in names:
            if name in splits:
                raise refused(
                    f"{where}, class {name}",
                    f"in {splits[name]} and again in {split}, expected once",
                )
            splits[name] = split


def decoded(data: bytes, where: object) -> Image.Image:
    """Decodes a JPEG or PNG.

    Args:
        data: of the file.
        where: what an error calls it.

    Returns:
        The image as it is.

    Raises:
        UserError: it is not one, or damaged.
    """
    try:
        image = Image.open(io.BytesIO(data), formats=("JPEG", "PNG"))
        image.load()
    except Exception as error:  # Pillow's decoders raise all kinds.
        reason = "no JPEG or PNG" if _is_unknown(error) else errors.first_line(error)
        raise refused(where, f"cannot be decoded ({reason})") from error
    return image


def files_below(*folders: pathlib.Path, depth: int = 2) -> Iterator[pathlib.Path]:
    """Yields the files in folders and in theirs, in no order.

    Args:
        folders: that exist.
        depth: how many levels of folders within them are looked into. Links are
            followed, and some lead back.

    Yields:
        Paths of files.

    Raises:
        UserError: a folder cannot be read.
    """
    for folder in folders:
        try:
            with os.scandir(folder) as found:
                entries_found = list(found)
        except OSError as error:
            raise refused(folder, f"cannot be read ({error.strerror})") from error
        for entry in entries_found:
            if not entry.is_dir():
                yield pathlib.Path(entry.path)
            elif depth > 0:
                yield from files_below(pathlib.Path(entry.path), depth=depth - 1)


def _is_unknown(error: Exception) -> bool:
    return "cannot identify image file" in str(error)


def _described(array: np.ndarray) -> str:
    return f"{array.dtype} [{', '.join(map(str, array.shape))}]"
