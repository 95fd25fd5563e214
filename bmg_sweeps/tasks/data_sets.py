"""Data sets of labeled images, by name.

A data set is a module here with `source(folder)`, which finds it in the user's folder.
The rest is common to all: `cache` decodes what is found, once.
"""

import contextlib
import contextvars
import hashlib
import json
import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bmg_sweeps import errors, paths
from bmg_sweeps.tasks import cache, glyphs, mini_imagenet, omniglot

DATA_SETS = {
    "glyphs": glyphs,
    "mini_imagenet": mini_imagenet,
    "omniglot": omniglot,
}


class Split(NamedTuple):
    """The classes of a split, each with the same number of images."""

    images: np.ndarray  # uint8 [C, n, H, W, channels]; read-only, mapped from a file.
    class_names: tuple[str, ...]  # [C], ascending.


class DataSet(NamedTuple):
    """A data set, decoded."""

    name: str
    splits: dict[str, Split]  # "train", "validation" and "test"; no class is in two.
    checksum: str  # Hash of all images and class names: equal for equal data.


_FOLDER: contextvars.ContextVar[str | None] = contextvars.ContextVar(
    "folder", default=None
)


@contextlib.contextmanager
def in_folder(folder: str | None) -> Iterator[None]:
    """Has data sets read from a folder while the context is open.

    Args:
        folder: where the user has them; None is what the environment names.

    Yields:
        Nothing.
    """
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


def user_folder() -> str | None:
    """Returns the folder that the user has named for data sets, if any."""
    return _FOLDER.get() or os.environ.get(paths.DATA_VARIABLE)


def load(name: str, folder: str | os.PathLike | None) -> DataSet:
    """Loads a data set, and checks that it is complete.

    Args:
        name: one of `DATA_SETS`.
        folder: that the user has it in, its own or one that holds that, or None.

    Returns:
        All of its splits; the first time, all is decoded, which takes a while.

    Raises:
        UserError: there is no such data set, or the folder does not hold it whole. One
            line names the file or class, what was found, and what was expected.
    """
    if name not in DATA_SETS:
        expected = errors.expected_one_of(name, DATA_SETS)
        raise errors.UserError(f"data set {errors.shown(name)}: {expected}")
    module = DATA_SETS[name]
    source = module.source(pathlib.Path(folder).expanduser() if folder else None)
    stored = cache.load(name, source)
    return DataSet(
        name,
        {split: Split(kept.images, kept.class_names) for split, kept in stored.items()},
        _checksum(stored),
    )


def _checksum(stored: dict[str, cache.Stored]) -> str:
    content = {split: [kept.class_names, kept.sha256] for split, kept in stored.items()}
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
