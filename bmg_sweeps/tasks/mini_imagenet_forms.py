"""The forms in which users have miniImageNet; `mini_imagenet` says what each is.

A form is two functions: one finds the files of each split, the other reads the classes
of one split. How many of each there should be is not known here.
"""

import csv
import functools
import io
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from PIL import Image

from bmg_sweeps import errors
from bmg_sweeps.tasks import pickles, sources

SIZE = 84  # Pixels along each side.
CHANNELS = 3

Inputs = dict[str, list[pathlib.Path]]
"""The files and folders of each split that is there."""

_NAMES = {"train": ("train",), "validation": ("val", "validation"), "test": ("test",)}
_JPEG = (".jpg", ".jpeg")
_NPZ_KINDS = {
    "data": "u",
    "offsets": "iu",
    "labels": "iu",
    "class_names": "U",
    "file_names": "U",
}
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class Class(NamedTuple):
    """The images of a class."""

    num_images: int
    decode: Callable[[], np.ndarray]  # ↦ uint8 [n, 84, 84, 3].


class Form(NamedTuple):
    """A form, and how it is read."""

    description: str
    inputs: Callable[[pathlib.Path], Inputs]
    classes: Callable[
        [list[pathlib.Path]], dict[str, Class]
    ]  # Reads those of one split.


class _Stored(NamedTuple):
    """An image that is not decoded yet."""

    class_name: str
    file_name: str
    where: str  # What an error calls it.
    read: Callable[[], bytes]


def _npz_inputs(folder: pathlib.Path) -> Inputs:
    found = {
        split: [
            path
            for path in sources.listed(folder)
            if re.fullmatch(rf"({'|'.join(names)})(_\w+)?\.npz", path.name)
        ]
        for split, names in _NAMES.items()
    }
    return {split: paths for split, paths in found.items() if paths}


def _npz_classes(paths: list[pathlib.Path]) -> dict[str, Class]:
    """Reads .npz files; the labels of each are into its own `class_names`."""
    names: dict[str, tuple[str, ...]] = {}
    images: list[_Stored] = []
    for path in paths:
        file = sources.read_npz(path, _NPZ_KINDS)
        _check_npz(path, file)
        names[path.name] = tuple(map(str, file["class_names"]))
        images += _npz_images(path, file)
    sources.check_disjoint(paths[0].parent, names)
    every_name = [name for local in names.values() for name in local]
    return _grouped(every_name, images, paths[0].parent, _exact)


def _check_npz(path: pathlib.Path, file: dict[str, np.ndarray]) -> None:
    num_images, num_classes = file["file_names"].size, file["class_names"].size
    lengths = {
        "data": file["data"].size,
        "offsets": num_images + 1,
        "labels": num_images,
        "class_names": num_classes,
        "file_names": num_images,
    }
    for key, length in lengths.items():
        if file[key].shape != (length,):
            shape = list(file[key].shape)
            raise sources.refused(f"{path}, {key}", f"{shape}, expected [{length}]")
    sources.check_array(f"{path}, data", file["data"], "uint8", (None,))
    offsets, labels = file["offsets"].astype(np.int64), file["labels"]
    end = file["data"].size
    if offsets[0] != 0 or offsets[-1] != end or np.any(np.diff(offsets) < 0):
        raise sources.refused(
            f"{path}, offsets",
            f"{offsets[0]}, …, {offsets[-1]}, expected to ascend from 0 to {end}",
        )
    if num_images and not 0 <= labels.min() <= labels.max() < num_classes:
        raise sources.refused(
            f"{path}, labels",
            f"{labels.min()} to {labels.max()}, expected 0 to {num_classes - 1}",
        )


def _npz_images(path: pathlib.Path, file: dict[str, np.ndarray]) -> Iterator[_Stored]:
    offsets = file["offsets"].astype(np.int64)
    for i, file_name in enumerate(map(str, file["file_names"])):
        jpeg = file["data"][offsets[i] : offsets[i + 1]]
        class_name = str(file["class_names"][file["labels"][i]])
        yield _Stored(class_name, file_name, f"{path}, {file_name}", jpeg.tobytes)


def _pickle_inputs(folder: pathlib.Path) -> Inputs:
    return _existing(folder, "mini-imagenet-cache-{}.pkl", pathlib.Path.is_file)


def _pickle_classes(paths: list[pathlib.Path]) -> dict[str, Class]:
    """Reads a pickle; nothing in it is run."""
    (path,) = paths
    value = pickles.load(path)
    try:
        if not isinstance(value, dict):
            raise TypeError(f"found {type(value).__name__}")
        content = {pickles.text(key): entry for key, entry in value.items()}
        images = pickles.array(content["image_data"])
        indices = {
            pickles.text(name): np.sort(pickles.array(entry), axis=None)
            for name, entry in content["class_dict"].items()
        }
    except _MALFORMED as error:
        raise sources.refused(
            path,
            f"expected a dict of image_data and class_dict ({errors.described(error)})",
        ) from error
    shape = (None, SIZE, SIZE, CHANNELS)
    sources.check_array(f"{path}, image_data", images, "uint8", shape)
    used = np.concatenate([np.zeros(0, np.int64), *indices.values()])
    if used.size and not 0 <= used.min() <= used.max() < len(images):
        raise sources.refused(
            f"{path}, class_dict",
            f"images {used.min()} to {used.max()}, expected 0 to {len(images) - 1}",
        )
    if np.unique(used).size < used.size:
        raise sources.refused(f"{path}, class_dict", "an image twice, expected once")
    return {
        name: Class(own.size, functools.partial(images.take, own, axis=0))
        for name, own in indices.items()
    }


def _csv_inputs(folder: pathlib.Path) -> Inputs:
    """Finds lists of images, and the folder that the images are in."""
    tables: Inputs = {}
    for place in (folder, *sources.folders_in(folder)):
        tables = tables or _existing(place, "{}.csv", pathlib.Path.is_file)
    for images in (folder / "images", folder):
        if any(path.suffix.lower() in _JPEG for path in sources.listed(images)):
            return {split: [*table, images] for split, table in tables.items()}
    return {}


def _csv_classes(paths: list[pathlib.Path]) -> dict[str, Class]:
    """Reads the JPEGs that a table of Ravi and Larochelle names."""
    table, folder = paths
    try:
        text = sources.read_bytes(table).decode("utf-8-sig")
        rows = [row for row in csv.reader(io.StringIO(text), strict=True) if row]
        wrong = [row for row in rows if len(row) != 2]
        if rows[:1] != [["filename", "label"]] or wrong:
            raise ValueError(f"found {errors.shown((wrong or rows or [[]])[0])}")
    except (ValueError, csv.Error) as error:
        if isinstance(error, errors.UserError):
            raise
        raise sources.refused(
            table, f"expected columns filename,label ({errors.first_line(error)})"
        ) from error
    for name, _ in rows[1:]:
        if pathlib.PurePath(name).name != name:
            raise sources.refused(table, f"{errors.shown(name)}, expected a file name")
    images = [_file_image(folder / name, label) for name, label in rows[1:]]
    return _grouped({label for _, label in rows[1:]}, images, table, _fitted)


def _folder_inputs(folder: pathlib.Path) -> Inputs:
    return _existing(folder, "{}", lambda path: bool(sources.folders_in(path)))


def _folder_classes(paths: list[pathlib.Path]) -> dict[str, Class]:
    """Reads a folder of JPEGs for each class."""
    (folder,) = paths
    classes = sources.folders_in(folder)
    images = [
        _file_image(path, class_folder.name)
        for class_folder in classes
        for path in sources.listed(class_folder)
        if path.suffix.lower() in _JPEG
    ]
    return _grouped([path.name for path in classes], images, folder, _fitted)


def _existing(
    folder: pathlib.Path, pattern: str, exists: Callable[[pathlib.Path], bool]
) -> Inputs:
    paths = {
        split: [folder / pattern.format(name) for name in names]
        for split, names in _NAMES.items()
    }
    found = {split: list(filter(exists, paths[split]))[:1] for split in paths}
    return {split: existing for split, existing in found.items() if existing}


def _file_image(path: pathlib.Path, class_name: str) -> _Stored:
    read = functools.partial(sources.read_bytes, path)
    return _Stored(class_name, path.name, str(path), read)


def _grouped(
    class_names: Iterable[str],
    images: Iterable[_Stored],
    where: pathlib.Path,
    pixels: Callable[[Image.Image, str], np.ndarray],
) -> dict[str, Class]:
    """Groups images by class, in the order of their file names."""
    members: dict[str, list[_Stored]] = {name: [] for name in class_names}
    for image in sorted(images, key=lambda image: image.file_name):
        own = members[image.class_name]
        if own and own[-1].file_name == image.file_name:
            problem = f"{image.file_name} given twice, expected once"
            raise sources.refused(f"{where}, class {image.class_name}", problem)
        own.append(image)

    def decode(own: list[_Stored]) -> np.ndarray:
        return np.stack(
            [pixels(sources.decoded(i.read(), i.where), i.where) for i in own]
        )

    return {
        name: Class(len(own), functools.partial(decode, own))
        for name, own in members.items()
    }


def _exact(image: Image.Image, where: str) -> np.ndarray:
    """Returns the pixels of an image that was resized before it was packed."""
    pixels = np.asarray(image)
    sources.check_array(where, pixels, "uint8", (SIZE, SIZE, CHANNELS))
    return pixels


def _fitted(image: Image.Image, where: str) -> np.ndarray:
    """Returns the pixels of an image of any size and kind."""
    del where
    image = image.convert("RGB")
    if image.size != (SIZE, SIZE):
        image = image.resize((SIZE, SIZE), Image.Resampling.LANCZOS)
    return np.asarray(image)


ALL = (
    Form("packed .npz files", _npz_inputs, _npz_classes),
    Form("pickles", _pickle_inputs, _pickle_classes),
    Form("CSVs", _csv_inputs, _csv_classes),
    Form("class folders", _folder_inputs, _folder_classes),
)
