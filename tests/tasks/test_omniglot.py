"""Omniglot: its two forms, its split, and its flaws."""

import numpy as np
import pytest
import small_data
from PIL import Image

from bmg_sweeps import errors
from bmg_sweeps.tasks import data_sets, omniglot


@pytest.fixture(autouse=True)
def _small(monkeypatch, tmp_path):
    monkeypatch.setattr(omniglot, "EXPECTED", small_data.OMNIGLOT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


NAMES = {  # Korean and N_Ko are held out.
    "train": ("Greek/character01", "Greek/character02", "Latin/character05"),
    "validation": ("Korean/character03", "N_Ko/character04"),
    "test": ("Angelic/character01", "Keble/character02", "ULOG/character03"),
}


def load(folder):
    return data_sets.load("omniglot", folder)


def test_drawings_become_28_by_28_with_ink_255(tmp_path):
    """A Lanczos filter over all shades, though the files have two."""
    halves = small_data.drawings()
    small_data.write_drawings(tmp_path / "mine", halves)
    loaded = load(tmp_path / "mine")
    drawings = halves["background"] | halves["evaluation"]
    for split, names in NAMES.items():
        images = loaded.splits[split].images
        assert loaded.splits[split].class_names == names
        assert images.shape == (len(names), 4, 28, 28, 1)
        for own, name in zip(images[..., 0], names, strict=True):
            for image, drawing in zip(own, drawings[name], strict=True):
                ink = Image.fromarray(np.where(drawing, 0, 255).astype(np.uint8))
                resized = ink.resize((28, 28), Image.Resampling.LANCZOS)
                np.testing.assert_array_equal(image, np.asarray(resized))
    assert len(np.unique(images)) > 2


def test_packed_drawings_are_taken_as_they_are(tmp_path):
    """Drawing d of character c is number 8 d + c, and so are its pixels."""
    np.savez(tmp_path / "omniglot28.npz", **small_data.packed_drawings())
    loaded = load(tmp_path)
    numbers = np.arange(4)[None, :] * 8
    expected = {"train": [0, 1, 4], "validation": [2, 3], "test": [5, 6, 7]}
    for split, characters in expected.items():
        assert loaded.splits[split].class_names == NAMES[split]
        first = loaded.splits[split].images[:, :, 0, 0, 0]
        np.testing.assert_array_equal(first, np.array(characters)[:, None] + numbers)


def repack(key, change):
    """Makes a break of the packed form."""

    def apply(folder):
        arrays = small_data.packed_drawings()
        arrays[key] = change(arrays[key])
        np.savez(folder / "omniglot28.npz", **arrays)

    return apply


def unpacked(damage):
    """Makes a break of the folder of drawings."""

    def apply(folder):
        small_data.write_drawings(folder, small_data.drawings())
        damage(folder)

    return apply


def remove_drawing(folder):
    min(folder.glob("images_evaluation/Keble/*/*.png")).unlink()


def remove_character(folder):
    path = folder / "images_background" / "N_Ko"
    path.rename(folder / "N_Ko")


def shrink_drawing(folder):
    path = min(folder.glob("images_evaluation/Keble/*/*.png"))
    Image.new("1", (105, 28)).save(path)


def damage_drawing(folder):
    min(folder.glob("images_evaluation/Keble/*/*.png")).write_bytes(b"\x89PNG")


FLAWS = {
    "one half": (
        unpacked(lambda f: (f / "images_evaluation").rename(f / "images")),
        ["mine: no Omniglot; expected images_background/ALPHABET/characterNN/*.png"],
    ),
    "a character is missing": (
        unpacked(remove_character),
        ["mine, background half: 4 characters, expected 5"],
    ),
    "a drawing is missing": (
        unpacked(remove_drawing),
        ["images_evaluation/Keble/character02: 3 drawings, expected 4"],
    ),
    "a drawing of another size": (
        unpacked(shrink_drawing),
        ["character02/0001_01.png: 105 × 28 pixels, expected 105 × 105"],
    ),
    "a drawing that is damaged": (
        unpacked(damage_drawing),
        ["character02/0001_01.png: cannot be decoded (no JPEG or PNG)"],
    ),
    "packed images of another size": (
        repack("images", lambda images: images[:, :27]),
        ["omniglot28.npz, images: uint8 [32, 27, 28], expected uint8 [N, 28, 28]"],
    ),
    "a packed label out of range": (
        repack("labels", lambda labels: labels + 1),
        ["omniglot28.npz, labels: 1 to 8, expected 0 to 7"],
    ),
    "a packed label too few": (
        repack("labels", lambda labels: labels[1:]),
        ["omniglot28.npz, labels: [31], expected [32]"],
    ),
    "a packed half too few": (
        repack("half", lambda half: half[1:]),
        ["omniglot28.npz, half: [7], expected [8]"],
    ),
    "an unknown half": (
        repack("half", lambda half: np.where(half == "evaluation", "other", half)),
        ["mine, evaluation half: 0 characters, expected 3"],
    ),
    "a packed drawing too few": (
        repack("labels", lambda labels: np.where(labels == 2, 1, labels)),
        ["class Greek/character02: 8 drawings, expected 4"],
    ),
    "packed objects": (
        repack("class_names", lambda names: names.astype(object)),
        ["omniglot28.npz: expected an .npz of plain arrays (Object arrays cannot"],
    ),
}


@pytest.mark.parametrize(("make", "fragments"), FLAWS.values(), ids=FLAWS)
def test_a_flaw_is_one_line(tmp_path, make, fragments):
    """It names the file or class, what was found, and what was expected."""
    folder = tmp_path / "mine"
    folder.mkdir()
    make(folder)
    with pytest.raises(errors.UserError) as caught:
        load(folder)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    for fragment in fragments:
        assert fragment in message
