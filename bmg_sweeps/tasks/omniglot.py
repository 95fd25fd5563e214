"""Omniglot: 1,623 handwritten characters, each drawn once by 20 people.

Images are 28 × 28 pixels of one channel, the ink 255. The evaluation half, 659
characters, is the test split. Of the background half, 964 characters, whole alphabets
are held out for validation: Anglo-Saxon Futhorc, Armenian, Futurama, Korean and N’Ko,
169 characters, which have no sibling among the others as hiragana has in katakana.

Users have it in either of these forms:

- as its authors ship it: `images_background/ALPHABET/characterNN/*.png` and
  `images_evaluation/…`, 105 × 105 pixels, black ink on white; resized here with a
  Lanczos filter
- `omniglot28.npz`: `images` uint8 [N, 28, 28], ink = 255; `labels` [N] into
  `class_names` ("ALPHABET/characterNN"), and `half` of each class, "background" or
  "evaluation"

Source: Lake et al. (2015), who hold out nothing for validation.
"""

import functools
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageOps

from bmg_sweeps.tasks import sources

SIZE = 28  # Pixels along each side.
ORIGINAL_SIZE = 105
OWN_NAMES = ("omniglot", "omniglotpy")
VALIDATION_ALPHABETS = (
    "Anglo-Saxon_Futhorc",
    "Armenian",
    "Futurama",
    "Korean",
    "N_Ko",
)

_HALVES = {
    "train": "background",
    "validation": "background",
    "test": "evaluation",
}
_NPZ = "omniglot28.npz"
_NPZ_KINDS = {"images": "u", "labels": "iu", "class_names": "U", "half": "U"}

_Characters = dict[str, Callable[[], np.ndarray]]  # Name ↦ uint8 [20, 28, 28, 1].


class Expected(NamedTuple):
    """What a complete copy holds."""

    num_characters: dict[str, int]  # By half.
    num_drawings: int  # Each character has so many.


EXPECTED = Expected({"background": 964, "evaluation": 659}, 20)


def source(folder: pathlib.Path | None) -> sources.Source:
    """Finds the data set in its own folder or in one that holds it.

    Args:
        folder: given by the user.

    Returns:
        What is to be read: the folders of images, or else the packed form.

    Raises:
        UserError: there is neither.
    """
    for root in sources.candidates("omniglot", folder, OWN_NAMES):
        halves = [root / f"images_{half}" for half in EXPECTED.num_characters]
        if all(half.is_dir() for half in halves):
            files = tuple(sources.files_below(*halves))
            characters = functools.partial(_folder_characters, root)
            return sources.Source(root, files, _by_split(root, characters))
        if (root / _NPZ).is_file():
            characters = functools.partial(_npz_characters, root / _NPZ)
            return sources.Source(root, (root / _NPZ,), _by_split(root, characters))
    raise sources.refused(
        f"data {folder}",
        f"no Omniglot; expected images_background/ALPHABET/characterNN/*.png and "
        f"images_evaluation/…, or {_NPZ}; found {sources.entries(folder)}",
    )


def _by_split(
    root: pathlib.Path,
    characters: Callable[[str], _Characters],
) -> Callable[[str], sources.Contents]:
    def contents(split: str) -> sources.Contents:
        half = _HALVES[split]
        found = characters(half)
        where, expected = f"data {root}, {half} half", EXPECTED.num_characters[half]
        sources.check_count(where, len(found), expected, "character")
        names = tuple(
            name
            for name in sorted(found)
            if split == "test" or _is_held_out(name) == (split == "validation")
        )
        return sources.Contents(
            names,
            (len(names), EXPECTED.num_drawings, SIZE, SIZE, 1),
            lambda index: found[names[index]](),
        )

    return contents


def _is_held_out(name: str) -> bool:
    return name.split("/")[0] in VALIDATION_ALPHABETS


def _folder_characters(root: pathlib.Path, half: str) -> _Characters:
    return {
        f"{alphabet.name}/{character.name}": functools.partial(_drawings, character)
        for alphabet in sources.folders_in(root / f"images_{half}")
        for character in sources.folders_in(alphabet)
    }


def _drawings(folder: pathlib.Path) -> np.ndarray:
    """Decodes the drawings of a character, in the order of their file names."""
    paths = [path for path in sources.listed(folder) if path.suffix.lower() == ".png"]
    sources.check_count(folder, len(paths), EXPECTED.num_drawings, "drawing")
    return np.stack([_resized(path) for path in paths])[..., None]


def _resized(path: pathlib.Path) -> np.ndarray:
    image = sources.decoded(sources.read_bytes(path), path)
    if image.size != (ORIGINAL_SIZE, ORIGINAL_SIZE):
        size = " × ".join(map(str, image.size))
        expected = f"{ORIGINAL_SIZE} × {ORIGINAL_SIZE}"
        raise sources.refused(path, f"{size} pixels, expected {expected}")
    # Pillow takes the nearest pixel of a two-color image, whatever the filter.
    ink = ImageOps.invert(image.convert("L"))
    return np.asarray(ink.resize((SIZE, SIZE), Image.Resampling.LANCZOS))


def _npz_characters(path: pathlib.Path, half: str) -> _Characters:
    file = sources.read_npz(path, _NPZ_KINDS)
    images, labels = file["images"], file["labels"]
    names, halves = map(str, file["class_names"]), file["half"]
    sources.check_array(f"{path}, images", images, "uint8", (None, SIZE, SIZE))
    for key, found, expected in [
        ("labels", labels.shape, images.shape[:1]),
        ("half", halves.shape, file["class_names"].shape),
    ]:
        if found != expected or len(found) != 1:
            raise sources.refused(
                f"{path}, {key}", f"{list(found)}, expected {list(expected)}"
            )
    if labels.size and not 0 <= labels.min() <= labels.max() < len(halves):
        raise sources.refused(
            f"{path}, labels",
            f"{labels.min()} to {labels.max()}, expected 0 to {len(halves) - 1}",
        )
    counts = np.bincount(labels, minlength=len(halves))
    characters = {}
    for label, (name, own_half) in enumerate(zip(names, halves, strict=True)):
        if own_half == half:
            where = f"{path}, class {name}"
            sources.check_count(where, counts[label], EXPECTED.num_drawings, "drawing")
            characters[name] = functools.partial(_labeled, images, labels == label)
    return characters


def _labeled(images: np.ndarray, is_own: np.ndarray) -> np.ndarray:
    return images[is_own][..., None]
