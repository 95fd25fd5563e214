"""miniImageNet: 100 classes of 600 color images of 84 × 84 pixels.

It may not be passed on, so users bring their own copy, in any of these forms; a split
named `val` may also be named `validation`:

- `train.csv`, `val.csv` and `test.csv` of Ravi and Larochelle, in the folder or in one
  inside it, with the JPEGs that they name in `images/` or in the folder; or a folder of
  JPEGs for each class, in `train/`, `val/` and `test/`
- pickles `mini-imagenet-cache-train.pkl`, … `-val.pkl`, … `-test.pkl`: a dict of
  `image_data`, uint8 [N, 84, 84, 3], and `class_dict`, class ↦ indices
- packed `train.npz` (or several, `train_a.npz`, `train_b.npz`), `val.npz`, `test.npz`:
  `data` the bytes of all JPEGs, `offsets` [N + 1] where each begins and the last ends,
  `labels` [N] into `class_names` of the same file, and `file_names` [N]

Source: Vinyals et al. (2016); the split of Ravi and Larochelle (2017). Classes are in
the order of their names and images in that of their file names, so all forms give the
same arrays; pickles have no file names, and their images keep their order. JPEGs of
another size are resized as by `proc_images.py` of the original MAML, with a Lanczos
filter; there the result is compressed as JPEG once more, and here it is not.
"""

import pathlib
from collections.abc import Iterator
from typing import NamedTuple

from bmg_sweeps.tasks import mini_imagenet_forms, sources

OWN_NAMES = ("miniimagenet",)


class Expected(NamedTuple):
    """What a complete copy holds."""

    num_classes: dict[str, int]  # By split.
    num_images: int  # Each class has so many.


EXPECTED = Expected({"train": 64, "validation": 16, "test": 20}, 600)


def source(folder: pathlib.Path | None) -> sources.Source:
    """Finds the data set in its own folder or in one that holds it.

    Args:
        folder: given by the user.

    Returns:
        What is to be read, in the form that is found first.

    Raises:
        UserError: there is none, or one that lacks a split.
    """
    found = [
        (root, form, inputs)
        for root in sources.candidates("mini_imagenet", folder, OWN_NAMES)
        for form in mini_imagenet_forms.ALL
        if (inputs := form.inputs(root))
    ]
    if not found:
        raise sources.refused(
            f"data {folder}",
            f"no miniImageNet; expected images/*.jpg with train.csv, val.csv and "
            f"test.csv (or train/CLASS/*.jpg, …), mini-imagenet-cache-train.pkl, …, or "
            f"train.npz, …; found {sources.entries(folder)}",
        )
    # The first that is complete, if any is.
    root, form, inputs = max(found, key=lambda entry: len(entry[2]))
    missing = [split for split in sources.SPLITS if split not in inputs]
    if missing:
        raise sources.refused(
            f"data {root}",
            f"no {missing[0]} split among its {form.description}, only "
            f"{', '.join(inputs)}; expected {', '.join(sources.SPLITS)}",
        )
    return sources.Source(
        root,
        tuple(_files(inputs)),
        lambda split: _contents(
            f"data {root}, {split} split",
            form.classes(inputs[split]),
            EXPECTED.num_classes[split],
        ),
    )


def _files(inputs: mini_imagenet_forms.Inputs) -> Iterator[pathlib.Path]:
    for path in dict.fromkeys(path for paths in inputs.values() for path in paths):
        if path.is_dir():
            yield from sources.files_below(path)
        else:
            yield path


def _contents(
    where: str, classes: dict[str, mini_imagenet_forms.Class], num_classes: int
) -> sources.Contents:
    """Puts the classes of a split in order, and checks that all is there."""
    sources.check_count(where, len(classes), num_classes, "class")
    for name, (num_images, _) in classes.items():
        expected = EXPECTED.num_images
        sources.check_count(f"{where}, class {name}", num_images, expected, "image")
    names = tuple(sorted(classes))
    return sources.Contents(
        names,
        (
            len(names),
            EXPECTED.num_images,
            mini_imagenet_forms.SIZE,
            mini_imagenet_forms.SIZE,
            mini_imagenet_forms.CHANNELS,
        ),
        lambda index: classes[names[index]].decode(),
    )
