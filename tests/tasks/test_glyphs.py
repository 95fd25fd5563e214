"""Glyphs: enough characters, all different, and always the same."""

import itertools

import numpy as np
import pytest
from PIL import Image, ImageFilter

from bmg_sweeps import errors
from bmg_sweeps.tasks import data_sets, glyphs


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield data_sets.load("glyphs", None)


def test_there_are_enough_of_each_split_and_no_character_is_in_two(loaded):
    """Splits are as large as Omniglot's tests need, and share no character."""
    shapes = {split: s.images.shape for split, s in loaded.splits.items()}
    assert shapes == {
        "train": (248, 20, 28, 28, 1),
        "validation": (60, 20, 28, 28, 1),
        "test": (60, 20, 28, 28, 1),
    }
    names = [name for split in loaded.splits.values() for name in split.class_names]
    assert len(names) == len(set(names))
    assert set(names) == set(glyphs.CHARACTERS)


def test_scripts_are_mixed_in_every_split(loaded):
    """The assignment is shuffled: no script is wholly in one."""
    for split in loaded.splits.values():
        names = split.class_names
        for first, last in ("AZ", "az", "αω", "ԱՖ", "აჰ"):
            assert any(first <= name <= last for name in names), (first, names)


def test_images_have_ink_and_none_at_the_edge(loaded):
    """Bright on black, whole, and no two images of a character are equal."""
    for split in loaded.splits.values():
        images = split.images[..., 0]
        assert images.max(axis=(2, 3)).min() > 127
        ink = images.mean(axis=(2, 3)) / 255
        assert ink.min() > 0.005
        assert ink.max() < 0.5
        edges = [images[:, :, [0, -1]], images[:, :, :, [0, -1]].swapaxes(2, 3)]
        assert np.mean([edge.max(axis=(2, 3)) > 127 for edge in edges]) < 0.01
        for own in images:
            assert len({image.tobytes() for image in own}) == glyphs.NUM_IMAGES


def test_no_two_characters_look_the_same():
    """Cosine similarity of the unmoved glyphs, blurred a little, over all faces."""
    fonts = glyphs.source(None).files
    vectors = np.array(
        [
            [
                np.asarray(image.filter(ImageFilter.GaussianBlur(0.7)), np.float32)
                for image in unmoved(fonts, character)
            ]
            for character in glyphs.CHARACTERS
        ]
    ).reshape(len(glyphs.CHARACTERS), len(fonts), -1)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    similarity = np.einsum("afx,bfx->ab", vectors, vectors) / len(fonts)
    similar = [
        (glyphs.CHARACTERS[a], glyphs.CHARACTERS[b], similarity[a, b])
        for a, b in itertools.combinations(range(len(similarity)), 2)
        if similarity[a, b] > 0.935  # 0.93, give or take another version of FreeType.
    ]
    assert similar == []


def unmoved(fonts, character):
    for path in fonts:
        image = glyphs._glyph(path, character)
        yield image.resize((glyphs.SIZE, glyphs.SIZE), Image.Resampling.BOX)


def test_every_face_has_every_character():
    """A face without one would draw the same box for all."""
    from matplotlib import ft2font

    for path in glyphs.source(None).files:
        charmap = ft2font.FT2Font(path).get_charmap()
        assert not [c for c in glyphs.CHARACTERS if ord(c) not in charmap], path


def test_the_images_are_the_same_every_time(loaded):
    """Whatever the order of threads: each character has numbers of its own."""
    contents = glyphs.source(None).contents("test")
    for index in (7, 3):
        np.testing.assert_array_equal(
            contents.images_of(index), loaded.splits["test"].images[index]
        )


def test_a_missing_font_is_one_line(monkeypatch):
    """It names the file."""
    monkeypatch.setattr(glyphs, "FACES", ("Nowhere",))
    with pytest.raises(errors.UserError, match=r"Nowhere.ttf: missing; expected Matpl"):
        glyphs.source(None)
