"""Data sets by name: what a user gets wrong, the cache, and the real ones.

The real ones are looked for in BMG_SWEEPS_DATA, and decoded into the user's cache if
XDG_CACHE_HOME is set, or else into a folder of the test's own.
"""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small_data

from bmg_sweeps import errors, paths
from bmg_sweeps.tasks import cache, data_sets, episodes, mini_imagenet, sources


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "bmg_sweeps" / "data"


@pytest.fixture
def small(monkeypatch, own_cache, tmp_path):
    """The folder of a small miniImageNet."""
    monkeypatch.setattr(mini_imagenet, "EXPECTED", small_data.MINI_IMAGENET)
    folder = tmp_path / "mine"
    small_data.write_packed(folder, small_data.jpegs())
    return folder


def load(folder):
    return data_sets.load("mini_imagenet", folder)


@pytest.mark.parametrize(
    ("name", "folder", "message"),
    [
        ("glyph", None, "data set 'glyph': did you mean glyphs?"),
        (
            "cifar",
            None,
            "data set 'cifar': expected one of: glyphs, mini_imagenet, omniglot",
        ),
        (
            "mini_imagenet",
            None,
            "data set mini_imagenet: no folder; expected --data DIR or the environment "
            "variable BMG_SWEEPS_DATA",
        ),
        (
            "omniglot",
            "",
            "data set omniglot: no folder; expected --data DIR or the environment "
            "variable BMG_SWEEPS_DATA",
        ),
        ("omniglot", "nowhere", "data nowhere: expected a folder, found nothing"),
        ("omniglot", __file__, f"data {__file__}: expected a folder, found a file"),
        ("omniglot", "a\nb", r"data a\nb: expected a folder, found nothing"),
    ],
)
def test_a_wrong_name_or_path_is_one_line(name, folder, message):
    with pytest.raises(errors.UserError) as caught:
        data_sets.load(name, folder)
    assert str(caught.value) == message


def test_arrays_are_mapped_read_only_and_decoded_once(small, capsys):
    """The second time, they come from the cache, though no image can be decoded."""
    first = load(small)
    assert "decoding once" in capsys.readouterr().err
    for split in first.splits.values():
        assert isinstance(split.images, np.memmap)
        with pytest.raises(ValueError, match="read-only"):
            split.images[0] = 0
    second = load(small)
    assert capsys.readouterr().err == ""
    assert second.checksum == first.checksum


def test_what_is_decoded_is_loaded_without_a_lock(small, monkeypatch):
    """Many processes that start at once do not wait for each other."""
    load(small)
    monkeypatch.setattr(cache.filelock, "FileLock", None)
    load(small)


def test_other_forms_have_the_same_checksum_and_other_images_another(small, tmp_path):
    """It is of the images and names, and not of the files."""
    data = small_data.jpegs()
    checksum = load(small).checksum
    small_data.write_folders(tmp_path / "folders", data)
    assert load(tmp_path / "folders").checksum == checksum
    (first, second, *_) = data["test"].values()
    first.update(zip(first, second.values(), strict=True))
    small_data.write_folders(tmp_path / "folders", data)
    other = load(tmp_path / "folders").checksum
    assert other != checksum
    data["test"]["n00000010"] = data["test"].pop("n00000009")
    small_data.write_folders(tmp_path / "renamed", data)
    assert load(tmp_path / "renamed").checksum not in (checksum, other)


def test_changed_files_are_decoded_anew_and_the_earlier_removed(small, own_cache):
    """Also what a killed process left; another data set's stays."""
    load(small)
    other = own_cache / "omniglot-0123"
    left = own_cache / ".tmp-mini_imagenet-0123"
    other.mkdir()
    left.mkdir()
    (earlier,) = own_cache.glob("mini_imagenet-*")
    path = small / "test.npz"
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    load(small)
    (later,) = own_cache.glob("mini_imagenet-*")
    assert earlier != later
    assert other.exists()
    assert not left.exists()


def flip_byte(folder):
    path = folder / "validation.npy"
    data = bytearray(path.read_bytes())
    data[-1000] ^= 1
    path.write_bytes(data)


def pickle_array(folder):
    np.save(folder / "test.npy", np.array([{}], object), allow_pickle=True)


def reshape_array(folder):
    array = np.load(folder / "test.npy")
    np.save(folder / "test.npy", array.reshape(5, 3, *array.shape[2:]))


def edit_manifest(folder):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["test"]["sha256"]
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "damage",
    [
        flip_byte,
        pickle_array,
        reshape_array,
        edit_manifest,
        lambda folder: (folder / "train.npy").unlink(),
        lambda folder: (folder / "train.npy").write_bytes(b""),
        lambda folder: (folder / "manifest.json").write_text("[" * 100_000),
        lambda folder: (folder / "manifest.json").write_text("[]"),
    ],
)
def test_a_damaged_cache_is_made_again_with_one_line(small, own_cache, capsys, damage):
    """Whichever of its files it is."""
    before = load(small)
    (folder,) = own_cache.glob("mini_imagenet-*")
    expected = {split: np.array(s.images) for split, s in before.splits.items()}
    damage(folder)
    capsys.readouterr()
    after = load(small)
    assert capsys.readouterr().err == (
        f"mini_imagenet: damaged, so decoding again, into {folder}\n"
    )
    assert after.checksum == before.checksum
    for split, images in expected.items():
        np.testing.assert_array_equal(after.splits[split].images, images)


def test_a_failure_leaves_the_earlier_cache(small, own_cache):
    """Nothing is removed for the sake of data that turn out to be flawed."""
    load(small)
    (earlier,) = own_cache.glob("mini_imagenet-*")
    (small / "test.npz").write_bytes(b"")
    with pytest.raises(errors.UserError):
        load(small)
    assert list(own_cache.glob("*mini_imagenet-*")) == [earlier]


def test_a_cache_that_cannot_be_written_is_one_line(small, own_cache):
    """It says where another place is named."""
    own_cache.parent.mkdir(parents=True)
    own_cache.write_text("")
    with pytest.raises(errors.UserError) as caught:
        load(small)
    assert str(caught.value) == (
        f"cache {own_cache}: cannot be written (File exists); "
        f"XDG_CACHE_HOME names another place"
    )


def test_a_full_disk_is_one_line_and_no_crash(small, own_cache, monkeypatch):
    """A mapped file must have its room before it is written."""

    def allocate(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", allocate)
    with pytest.raises(errors.UserError, match=r"written \(No space left"):
        load(small)
    assert not list(own_cache.glob("*mini_imagenet-*"))


def test_two_processes_at_once_decode_once(own_cache):
    """Both get the same arrays; one of them says that it decoded."""
    code = (
        "from bmg_sweeps.tasks import data_sets; "
        "print(data_sets.load('glyphs', None).checksum)"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=paths.ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0], outputs
    assert len({checksum for checksum, _ in outputs}) == 1
    silent, spoken = sorted(said for _, said in outputs)
    assert silent == ""
    assert spoken.startswith("glyphs: decoding once, into ")


def test_a_class_in_two_splits_is_one_line(own_cache, tmp_path):
    """Of whatever data set."""

    def contents(split):
        names = {"train": ("a", "b"), "validation": ("c",), "test": ("b",)}[split]
        shape = (len(names), 1, 1, 1, 1)
        return sources.Contents(names, shape, lambda _: np.zeros(shape[1:]))

    with pytest.raises(errors.UserError, match=r"^toy, class b: in train and again in"):
        cache.load("toy", sources.Source(tmp_path, (), contents))


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Loads a real data set, if the user has said where they are."""
    folder = os.environ.get("BMG_SWEEPS_DATA")
    if not folder:
        pytest.skip("BMG_SWEEPS_DATA does not say where the real data sets are")
    loaded = {}
    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("XDG_CACHE_HOME"):
            patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))

        def load_once(name):
            if name not in loaded:
                loaded[name] = data_sets.load(name, folder)
            return loaded[name]

        yield load_once


@pytest.mark.parametrize(
    ("name", "num_classes", "rest"),
    [
        ("mini_imagenet", (64, 16, 20), (600, 84, 84, 3)),
        ("omniglot", (795, 169, 659), (20, 28, 28, 1)),
    ],
)
def test_the_real_data_sets_are_complete(real, name, num_classes, rest):
    """Classes and images of every split."""
    splits = real(name).splits
    for split, count in zip(sources.SPLITS, num_classes, strict=True):
        assert splits[split].images.shape == (count, *rest)
        assert splits[split].images.dtype == np.uint8
        assert len(splits[split].class_names) == count
        assert list(splits[split].class_names) == sorted(splits[split].class_names)


def test_the_real_classes_are_those_of_the_split(real):
    """The first and last of each, of Ravi and Larochelle's tables."""
    ends = {
        split: (content.class_names[0], content.class_names[-1])
        for split, content in real("mini_imagenet").splits.items()
    }
    assert ends == {
        "train": ("n01532829", "n13133613"),
        "validation": ("n01855672", "n09256479"),
        "test": ("n01930112", "n07613480"),
    }


def nearest_centroids(images, num_tasks):
    """Accuracies of 5-way 5-shot tasks by the nearest mean of raw pixels."""
    sizes = {"num_ways": 5, "num_shots": 5, "num_queries": 5}

    def accuracy(key, images):
        episode = episodes.sample(key, images, **sizes)
        centroids = episode.support_images.reshape(5, 5, -1).mean(1)
        queries = episode.query_images.reshape(25, -1)
        offsets = jnp.sum(jnp.square(centroids), axis=1)
        distances = offsets[None] - 2 * queries @ centroids.T
        return jnp.mean(distances.argmin(1) == episode.query_labels)

    keys = episodes.evaluation_keys("test", num_tasks)
    accuracies = jax.jit(lambda k, x: jax.lax.map(lambda key: accuracy(key, x), k))
    return np.asarray(accuracies(keys, jnp.asarray(images)))


@pytest.mark.parametrize(
    ("name", "percent", "half_width"),
    [("mini_imagenet", 30.2, 0.7), ("omniglot", 68.9, 0.9)],
)
def test_nearest_centroids_do_as_well_as_elsewhere(real, name, percent, half_width):
    """5-way 5-shot over 600 tasks, as measured by other code, ± 95 % of both."""
    accuracies = 100 * nearest_centroids(real(name).splits["test"].images, 600)
    own_half_width = 1.96 * accuracies.std() / np.sqrt(600)
    assert own_half_width == pytest.approx(half_width, abs=0.1)
    both = np.hypot(own_half_width, half_width)
    assert abs(accuracies.mean() - percent) < both
