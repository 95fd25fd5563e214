"""Small data sets in each of the forms that users have them in."""

import csv
import io
import pickle
import struct
from typing import ClassVar

import numpy as np
from PIL import Image

from bmg_sweeps.tasks import mini_imagenet, omniglot

MINI_IMAGENET = mini_imagenet.Expected({"train": 4, "validation": 2, "test": 3}, 5)
OMNIGLOT = omniglot.Expected({"background": 5, "evaluation": 3}, 4)
ALPHABETS = {
    "background": ("Greek", "Greek", "Korean", "N_Ko", "Latin"),
    "evaluation": ("Angelic", "Keble", "ULOG"),
}
SHORT = {"train": "train", "validation": "val", "test": "test"}


def jpeg(rng, size=(84, 84), mode="RGB", kind="JPEG"):
    """Returns the bytes of an image of random patches."""
    patches = rng.integers(0, 256, (7, 7, 3), np.uint8)
    image = Image.fromarray(patches).resize(size, Image.Resampling.BICUBIC)
    stream = io.BytesIO()
    image.convert(mode).save(stream, kind)
    return stream.getvalue()


def jpegs(**image):
    """Returns split ↦ class ↦ file name ↦ bytes, in the order of the names."""
    rng = np.random.default_rng(0)
    data, number = {}, 0
    for split, num_classes in MINI_IMAGENET.num_classes.items():
        data[split] = {}
        for _ in range(num_classes):
            number += 1
            name = f"n{number:08}"
            data[split][name] = {
                f"{name}{i:08}.jpg": jpeg(rng, **image)
                for i in range(MINI_IMAGENET.num_images)
            }
    return data


def pixels(data):
    """Decodes a split: [C, n, 84, 84, 3]."""
    return np.array(
        [
            [np.asarray(Image.open(io.BytesIO(file))) for file in files.values()]
            for files in data.values()
        ]
    )


def entries(data):
    """Lists class, file name and bytes, in no order that one could mistake for one."""
    listed = [(c, f, b) for c, files in data.items() for f, b in files.items()]
    return [listed[i] for i in np.random.default_rng(1).permutation(len(listed))]


def write_csvs(folder, data, *, images="images", tables="."):
    """Ravi and Larochelle's tables, and the images that they name."""
    for place in (images, tables):
        (folder / place).mkdir(parents=True, exist_ok=True)
    for split, classes in data.items():
        rows = [(name, label) for label, name, _ in entries(classes)]
        path = folder / tables / f"{SHORT[split]}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([("filename", "label"), *rows])
        for _, name, content in entries(classes):
            (folder / images / name).write_bytes(content)


def write_folders(folder, data, names=SHORT):
    """A folder of images a class."""
    for split, classes in data.items():
        for label, name, content in entries(classes):
            path = folder / names[split] / label / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def write_packed(folder, data):
    """The training split in two files, the others in one each."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, classes in data.items():
        names = list(classes)
        parts = (names[2:], names[:2]) if split == "train" else (names,)
        for letter, part in zip("ab", parts, strict=False):
            stem = f"train_{letter}" if split == "train" else SHORT[split]
            np.savez(folder / f"{stem}.npz", **packed({n: classes[n] for n in part}))


def packed(classes):
    """The arrays of a packed file."""
    names = list(classes)[::-1]
    rows = entries(classes)
    return {
        "data": np.frombuffer(b"".join(content for *_, content in rows), np.uint8),
        "offsets": np.cumsum([0, *(len(content) for *_, content in rows)]),
        "labels": np.array([names.index(label) for label, *_ in rows], np.int16),
        "class_names": np.array(names),
        "file_names": np.array([name for _, name, _ in rows]),
    }


def cached(classes):
    """The content of a pickle."""
    images = pixels(classes)
    count = images.shape[1]
    indices = {
        name: list(range(i * count, (i + 1) * count)) for i, name in enumerate(classes)
    }
    return {"image_data": images.reshape(-1, 84, 84, 3), "class_dict": indices}


def write_pickles(folder, data, dumps, validation="val"):
    """The pickles that learn2learn and others pass around."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, classes in data.items():
        short = validation if split == "validation" else split
        path = folder / f"mini-imagenet-cache-{short}.pkl"
        path.write_bytes(dumps(cached(classes)))


class _Python2(pickle._Pickler):
    """Writes text and bytes alike as Python 2 does its strings."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_string(self, value):
        data = value if isinstance(value, bytes) else value.encode()
        self.write(pickle.BINSTRING + struct.pack("<i", len(data)) + data)
        self.memoize(value)

    dispatch[bytes] = dispatch[str] = save_string


def python_2(value):
    """Pickles a value as Python 2 and NumPy 1 did."""
    stream = io.BytesIO()
    _Python2(stream, protocol=2).dump(value)
    return stream.getvalue().replace(b"cnumpy._core.", b"cnumpy.core.")


def drawings():
    """Returns half ↦ character ↦ 105 × 105 arrays, False where there is ink."""
    rng = np.random.default_rng(2)
    halves = {}
    for half, alphabets in ALPHABETS.items():
        halves[half] = {}
        for i, alphabet in enumerate(alphabets):
            patches = rng.random((OMNIGLOT.num_drawings, 15, 15)) > 0.3
            large = patches.repeat(7, axis=1).repeat(7, axis=2)
            halves[half][f"{alphabet}/character{i + 1:02}"] = large
    return halves


def write_drawings(folder, halves):
    """Omniglot as its authors ship it."""
    for half, characters in halves.items():
        for number, (name, arrays) in enumerate(characters.items()):
            place = folder / f"images_{half}" / name
            place.mkdir(parents=True)
            for i, array in enumerate(arrays):
                image = Image.fromarray(array)
                image.save(place / f"{number:04}_{i + 1:02}.png")


def packed_drawings():
    """The arrays of omniglot28.npz: a number of its own in each image."""
    names = [
        f"{alphabet}/character{i + 1:02}"
        for alphabets in ALPHABETS.values()
        for i, alphabet in enumerate(alphabets)
    ]
    labels = np.tile(np.arange(len(names), dtype=np.int16), OMNIGLOT.num_drawings)
    images = np.arange(labels.size, dtype=np.uint8)
    return {
        "images": np.broadcast_to(images[:, None, None], (labels.size, 28, 28)),
        "labels": labels,
        "class_names": np.array(names),
        "half": np.repeat(list(ALPHABETS), [len(a) for a in ALPHABETS.values()]),
    }
