"""miniImageNet: every form gives the same arrays, and every flaw its one line."""

import functools
import io
import os
import pathlib
import pickle
import struct
import tracemalloc

import numpy as np
import pytest
import small_data
from PIL import Image

from bmg_sweeps import errors
from bmg_sweeps.tasks import data_sets, mini_imagenet

write_csvs = small_data.write_csvs
write_folders = small_data.write_folders
write_packed = small_data.write_packed


def write_pickles(folder, data, protocol=2, validation="val"):
    dumps = functools.partial(pickle.dumps, protocol=protocol)
    small_data.write_pickles(folder, data, dumps, validation)


FORMS = {
    "CSVs and images/": write_csvs,
    "CSVs beside the images": functools.partial(write_csvs, images="."),
    "CSVs in a folder": functools.partial(write_csvs, tables="ravi_split"),
    "folders of classes": write_folders,
    "folders, validation": functools.partial(
        write_folders,
        names={"train": "train", "validation": "validation", "test": "test"},
    ),
    "packed": write_packed,
    **{
        f"pickles of protocol {protocol}": functools.partial(
            write_pickles, protocol=protocol
        )
        for protocol in range(6)
    },
    "pickles of Python 2": functools.partial(
        small_data.write_pickles, dumps=small_data.python_2
    ),
    "pickles, validation": functools.partial(write_pickles, validation="validation"),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch, tmp_path):
    monkeypatch.setattr(mini_imagenet, "EXPECTED", small_data.MINI_IMAGENET)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def load(folder):
    return data_sets.load("mini_imagenet", folder)


@pytest.mark.parametrize("write", FORMS.values(), ids=FORMS)
def test_every_form_gives_the_same_arrays(tmp_path, write):
    """Classes by name, images by file name, whatever the order in the files."""
    data = small_data.jpegs()
    write(tmp_path / "mine", data)
    loaded = load(tmp_path / "mine")
    assert list(loaded.splits) == ["train", "validation", "test"]
    for split, classes in data.items():
        assert loaded.splits[split].class_names == tuple(classes)
        np.testing.assert_array_equal(
            loaded.splits[split].images, small_data.pixels(classes), strict=True
        )


def test_images_of_another_size_or_kind_are_made_84_by_84_rgb(tmp_path):
    """As in the original's proc_images.py: a Lanczos filter, and no crop."""
    data = small_data.jpegs(size=(120, 100), mode="L")
    write_csvs(tmp_path / "mine", data)
    images = load(tmp_path / "mine").splits["test"].images
    files = [file for files in data["test"].values() for file in files.values()]
    for image, file in zip(images.reshape(-1, 84, 84, 3), files, strict=True):
        gray = Image.open(io.BytesIO(file))
        resized = gray.convert("RGB").resize((84, 84), Image.Resampling.LANCZOS)
        np.testing.assert_array_equal(image, np.asarray(resized))


def test_a_class_may_be_a_link_and_its_changes_are_seen(tmp_path):
    """Images of a split of one's own are often linked from elsewhere."""
    data = small_data.jpegs()
    write_folders(tmp_path / "mine", data)
    own = tmp_path / "mine" / "test" / "n00000007"
    own.rename(tmp_path / "elsewhere")
    own.symlink_to(tmp_path / "elsewhere")
    (own / "back").symlink_to(own)
    np.testing.assert_array_equal(
        load(tmp_path / "mine").splits["test"].images, small_data.pixels(data["test"])
    )
    first, second, *_ = sorted(own.glob("*.jpg"))
    first.write_bytes(second.read_bytes())
    changed = load(tmp_path / "mine").splits["test"].images
    np.testing.assert_array_equal(changed[0, 0], changed[0, 1])


def test_indices_may_be_arrays_or_numpy_integers(tmp_path):
    """A class's indices as an array, or a list of int64: both are seen in the wild."""
    data = small_data.jpegs()
    write_pickles(tmp_path, data)
    content = small_data.cached(data["test"])
    names = list(content["class_dict"])
    own = content["class_dict"]
    own[names[0]] = np.array(own[names[0]], np.int32)
    own[names[1]] = list(np.array(own[names[1]], np.int64))
    content["image_data"] = np.asfortranarray(content["image_data"])
    for protocol in (2, 4, 5):
        path = tmp_path / "mini-imagenet-cache-test.pkl"
        path.write_bytes(pickle.dumps(content, protocol=protocol))
        np.testing.assert_array_equal(
            load(tmp_path).splits["test"].images, small_data.pixels(data["test"])
        )


class Malicious:
    """Makes a folder where it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


class Evaluated:
    """Evaluates an expression where it is unpickled."""

    def __reduce__(self):
        return eval, ("1",)


def class_of(data, split="train"):
    return next(iter(data[split]))


def repack(change, name="test.npz"):
    """Makes a break of a packed file."""

    def apply(folder):
        with np.load(folder / name) as file:
            arrays = dict(file)
        change(arrays)
        np.savez(folder / name, **arrays)

    return apply


def repickle(change, name="test"):
    """Makes a break of a pickle's content, or of what is pickled in its place."""

    def apply(folder):
        path = folder / f"mini-imagenet-cache-{name}.pkl"
        content = pickle.loads(path.read_bytes())
        replaced = change(content)
        content = content if replaced is None else replaced
        path.write_bytes(pickle.dumps(content, protocol=4))

    return apply


def write_text(name, text):
    return lambda folder: (folder / name).write_text(text)


def remove(pattern):
    """Makes a break that removes one file."""
    return lambda folder: min(folder.glob(pattern)).unlink()


def removed_class(folder):
    path = min((folder / "train").iterdir())
    path.rename(folder / path.name)


def truncate(pattern, length=900):
    def apply(folder):
        path = min(folder.glob(pattern))
        path.write_bytes(path.read_bytes()[:length])

    return apply


def overwrite(pattern, data):
    return lambda folder: min(folder.glob(pattern)).write_bytes(data)


def append_row(folder):
    with (folder / "test.csv").open("a") as file:
        file.write("n0000000700000000.jpg,n00000007\n")


def move_class(folder):
    """The same class in two splits."""
    path = min((folder / "train").iterdir())
    for other in (folder / "test").iterdir():
        other.rename(folder / "test" / path.name)
        return


def one_class_twice(content):
    content["class_dict"]["n00000008"] = content["class_dict"]["n00000007"]


def without(key):
    def change(content):
        del content[key]

    return change


def setting(key, value):
    def change(content):
        content[key] = value(content[key]) if callable(value) else value

    return change


def indices(change):
    def apply(content):
        change(content["class_dict"]["n00000007"])

    return apply


def pillar(arrays):
    """Replaces the first image of a packed file by one of another size."""
    image = np.frombuffer(small_data.jpeg(np.random.default_rng(0), (84, 85)), np.uint8)
    end = arrays["offsets"][1]
    arrays["data"] = np.concatenate([image, arrays["data"][end:]])
    arrays["offsets"][1:] += len(image) - end


BOMBS = {  # A memo entry of number 2²⁵, and an array of a million million numbers.
    "memo": b"\x80\x02}r" + struct.pack("<I", 2**25) + b".",
    "array": b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n"
    b"(I1000000\nI1000000\ntU\x01btR.",
}
FLAWS = {
    "no validation split, CSVs": (
        write_csvs,
        remove("val.csv"),
        ["mine: no validation split among its CSVs", "only train, test; expected tr"],
    ),
    "no test split, folders": (
        write_folders,
        lambda folder: (folder / "test").rename(folder / "tests"),
        ["mine: no test split among its class folders", "only train, validation; exp"],
    ),
    "no test split, packed": (
        write_packed,
        remove("test.npz"),
        ["no test split among its packed .npz files, only train, validation"],
    ),
    "no test split, pickles": (
        write_pickles,
        remove("*-test.pkl"),
        ["no test split among its pickles"],
    ),
    "a class is missing": (
        write_folders,
        removed_class,
        ["mine, train split: 3 classes, expected 4"],
    ),
    "an image is missing": (
        write_folders,
        remove("train/*/*.jpg"),
        ["mine, train split, class n00000001: 4 images, expected 5"],
    ),
    "a class in two splits": (
        write_folders,
        move_class,
        ["class n00000001: in train and again in test, expected once"],
    ),
    "a JPEG that is cut off": (
        write_folders,
        truncate("test/n00000007/*.jpg"),
        ["test/n00000007/n0000000700000000.jpg: cannot be decoded", "truncated"],
    ),
    "a JPEG that is none": (
        write_csvs,
        overwrite("images/n00000007*.jpg", b"GIF89a"),
        ["n0000000700000000.jpg: cannot be decoded (no JPEG or PNG)"],
    ),
    "an image that the table names is missing": (
        write_csvs,
        remove("images/n00000007*.jpg"),
        ["images/n0000000700000000.jpg: cannot be read (No such file"],
    ),
    "a row twice": (
        write_csvs,
        append_row,
        ["test.csv, class n00000007: n0000000700000000.jpg given twice"],
    ),
    "other columns": (
        write_csvs,
        write_text("test.csv", "name,label\na.jpg,b\n"),
        ["test.csv: expected columns filename,label (found ['name', 'label'])"],
    ),
    "a row of three": (
        write_csvs,
        write_text("test.csv", "filename,label\na.jpg,b,c\n"),
        ["test.csv: expected columns filename,label (found ['a.jpg', 'b', 'c'])"],
    ),
    "an empty table": (
        write_csvs,
        write_text("test.csv", ""),
        ["test.csv: expected columns filename,label (found [])"],
    ),
    "a table that is no text": (
        write_csvs,
        overwrite("test.csv", b"\xff\xfe\0"),
        ["test.csv: expected columns filename,label"],
    ),
    "a table that leads elsewhere": (
        write_csvs,
        write_text("test.csv", "filename,label\n../a.jpg,b\n"),
        ["test.csv: '../a.jpg', expected a file name"],
    ),
    "a pickle of a list": (
        write_pickles,
        repickle(lambda _: [1]),
        ["test.pkl: expected a dict of image_data and class_dict", "found list"],
    ),
    "a pickle without images": (
        write_pickles,
        repickle(without("image_data")),
        ["cache-test.pkl: expected a dict of", "KeyError: 'image_data'"],
    ),
    "a pickle of floats": (
        write_pickles,
        repickle(setting("image_data", lambda images: images / 255)),
        ["cache-test.pkl: expected a dict of", "found an array of 'f8'"],
    ),
    "a pickle of objects": (
        write_pickles,
        repickle(setting("image_data", np.array([None, "a"], object))),
        ["cache-test.pkl: expected a dict of", "found an array of 'O8'"],
    ),
    "a pickle of another shape": (
        write_pickles,
        repickle(setting("image_data", lambda images: images[:, :80])),
        ["test.pkl, image_data: uint8 [15, 80, 84, 3], expected uint8 [N, 84, 84, 3]"],
    ),
    "a pickle of words": (
        write_pickles,
        repickle(setting("class_dict", {"n00000007": "many"})),
        ["cache-test.pkl: expected a dict of", "found str"],
    ),
    "a pickle with a class too few": (
        write_pickles,
        repickle(lambda content: without("n00000007")(content["class_dict"])),
        ["mine, test split: 2 classes, expected 3"],
    ),
    "a pickle with an image too few": (
        write_pickles,
        repickle(indices(lambda own: own.pop())),
        ["mine, test split, class n00000007: 4 images, expected 5"],
    ),
    "a pickle with an image in two classes": (
        write_pickles,
        repickle(one_class_twice),
        ["test.pkl, class_dict: an image twice, expected once"],
    ),
    "a pickle with an index out of range": (
        write_pickles,
        repickle(indices(lambda own: own.append(15))),
        ["test.pkl, class_dict: images 0 to 15, expected 0 to 14"],
    ),
    "a pickle that is cut off": (
        write_pickles,
        truncate("*-test.pkl"),
        ["cache-test.pkl: expected a whole pickle ("],
    ),
    "a pickle that is none": (
        write_pickles,
        overwrite("*-test.pkl", b"<html>"),
        ["cache-test.pkl: expected a whole pickle ("],
    ),
    "a pickle that evaluates": (
        write_pickles,
        repickle(lambda _: Evaluated()),
        ["test.pkl: asks for 'builtins.eval'; expected NumPy arrays, dicts and lists"],
    ),
    "packed objects": (
        write_packed,
        repack(setting("class_names", lambda names: names.astype(object))),
        ["test.npz: expected an .npz of plain arrays (Object arrays cannot be loaded"],
    ),
    "a packed file that is none": (
        write_packed,
        overwrite("test.npz", b"PK"),
        ["test.npz: expected an .npz of plain arrays (File is not a zip file)"],
    ),
    "a packed file without labels": (
        write_packed,
        repack(without("labels")),
        ["test.npz: lacks labels; expected data, offsets, labels, class_names, file"],
    ),
    "packed numbers for names": (
        write_packed,
        repack(setting("class_names", np.arange(3))),
        ["test.npz, class_names: int64 [3], expected strings"],
    ),
    "packed offsets out of range": (
        write_packed,
        repack(setting("offsets", lambda offsets: offsets + 7)),
        ["test.npz, offsets: 7, …, ", "expected to ascend from 0 to "],
    ),
    "packed offsets that descend": (
        write_packed,
        repack(setting("offsets", lambda o: np.array([0, *o[1:-1][::-1], o[-1]]))),
        ["test.npz, offsets: 0, …, ", "expected to ascend from 0 to "],
    ),
    "a packed offset too few": (
        write_packed,
        repack(setting("offsets", lambda offsets: offsets[:-1])),
        ["test.npz, offsets: [15], expected [16]"],
    ),
    "a packed label out of range": (
        write_packed,
        repack(setting("labels", lambda labels: labels + 1)),
        ["test.npz, labels: 1 to 3, expected 0 to 2"],
    ),
    "a packed label too few": (
        write_packed,
        repack(setting("labels", lambda labels: labels[1:])),
        ["test.npz, labels: [14], expected [15]"],
    ),
    "packed data of another type": (
        write_packed,
        repack(setting("data", lambda data: data.astype(np.uint16))),
        ["test.npz, data: uint16 [", "expected uint8 [N]"],
    ),
    "a packed JPEG that is damaged": (
        write_packed,
        repack(setting("data", lambda data: data * 0)),
        ["test.npz, n00000", ".jpg: cannot be decoded (no JPEG or PNG)"],
    ),
    "a packed image of another size": (
        write_packed,
        repack(pillar),
        ["test.npz, n000", "uint8 [85, 84, 3], expected uint8 [84, 84, 3]"],
    ),
    "a class in both packed files": (
        write_packed,
        lambda folder: (folder / "train_b.npz").write_bytes(
            (folder / "train_a.npz").read_bytes()
        ),
        ["class n00000004: in train_a.npz and again in train_b.npz, expected once"],
    ),
}


@pytest.mark.parametrize(("write", "damage", "fragments"), FLAWS.values(), ids=FLAWS)
def test_a_flaw_is_one_line_and_leaves_no_cache(tmp_path, write, damage, fragments):
    """It names the file or class, what was found, and what was expected."""
    write(tmp_path / "mine", small_data.jpegs())
    damage(tmp_path / "mine")
    with pytest.raises(errors.UserError) as caught:
        load(tmp_path / "mine")
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    for fragment in fragments:
        assert fragment in message
    left = list(pathlib.Path(tmp_path, "cache").rglob("*"))
    assert {path.name for path in left} <= {"bmg_sweeps", "data", "mini_imagenet.lock"}


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_runs_nothing(tmp_path, protocol):
    """It says what it asked for, and does not get it."""
    write_pickles(tmp_path / "mine", small_data.jpegs())
    made = tmp_path / "made"
    content = {"image_data": Malicious(made), "class_dict": {}}
    path = tmp_path / "mine" / "mini-imagenet-cache-train.pkl"
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    pickle.loads(path.read_bytes())
    made.rmdir()  # So it would have run.
    with pytest.raises(errors.UserError, match=r"train.pkl: asks for '\w+\.mkdir'"):
        load(tmp_path / "mine")
    assert not made.exists()


@pytest.mark.parametrize(
    "call",
    [
        b"cbuiltins\ngetattr\n",
        b"cnumpy\nload\n",
        b"cnumpy.core.multiarray\nfromfile\n",
        b"cnumpy\nndarray.tofile\n",
        b"\x8c\x05numpy\x8c\x0endarray.tofile\x93",
        b"cbmg_sweeps.tasks.pickles\nload\n",
        b"(ios\nmkdir\n",
        b"c__builtin__\neval\n",
    ],
)
def test_other_names_are_refused_and_admitted_ones_not_reached(tmp_path, call):
    """Also by the opcodes that nothing writes any more, and by dotted names."""
    write_pickles(tmp_path, small_data.jpegs())
    path = tmp_path / "mini-imagenet-cache-train.pkl"
    path.write_bytes(b"\x80\x04" + call + b"(tR.")
    with pytest.raises(errors.UserError, match=r"train.pkl: asks for '.*'; expected"):
        load(tmp_path)


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_small_pickle_takes_little_memory(tmp_path, bomb):
    """Whatever size it says something has: 512 MB for 10 bytes, in C's unpickler."""
    write_pickles(tmp_path, small_data.jpegs())
    (tmp_path / "mini-imagenet-cache-train.pkl").write_bytes(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(errors.UserError, match=r"train.pkl: expected a dict of"):
            load(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 1e8
    finally:
        tracemalloc.stop()


def test_an_admitted_name_can_be_given_no_state(tmp_path):
    """A BUILD on the name itself changes nothing that a later pickle would meet."""
    write_pickles(tmp_path, small_data.jpegs())
    path = tmp_path / "mini-imagenet-cache-train.pkl"
    kept = path.read_bytes()
    build = b"cnumpy\nndarray\n(N(dS'name'\nS'x'\nstb"
    path.write_bytes(build + b".")
    with pytest.raises(errors.UserError, match=r"train.pkl: expected a dict of"):
        load(tmp_path)
    path.write_bytes(kept)
    assert load(tmp_path).splits["train"].images.shape == (4, 5, 84, 84, 3)


WRONG = "no miniImageNet; expected images/*.jpg with train.csv, val.csv and test.csv"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([], "found nothing"),
        (["b.zip", "a", ".hidden"], "found a, b.zip"),
        (list("hgfedcba"), "found a, b, c, d, e, … (8 in all)"),
        (["train.csv", "val.csv", "test.csv"], "found test.csv, train.csv, val.csv"),
    ],
)
def test_a_wrong_folder_is_named_with_what_it_holds(tmp_path, names, found):
    """And with the three forms that would have done."""
    for name in names:
        (tmp_path / name).write_text("")
    with pytest.raises(errors.UserError) as caught:
        load(tmp_path)
    message = str(caught.value)
    assert message.startswith(f"data {tmp_path}: {WRONG}")
    assert "mini-imagenet-cache-train.pkl" in message
    assert "train.npz" in message
    assert message.endswith(found)


@pytest.mark.parametrize("name", ["miniimagenet", "mini-imagenet", "miniImageNet"])
def test_the_folder_may_hold_the_data_sets_own(tmp_path, name):
    """Beside other folders, and under any spelling."""
    (tmp_path / "another").mkdir()
    write_packed(tmp_path / name, small_data.jpegs())
    assert load(tmp_path).checksum == load(tmp_path / name).checksum


def test_a_complete_form_is_preferred_to_a_part_of_another(tmp_path):
    """A lone packed file beside the images is no reason to refuse them."""
    write_folders(tmp_path, small_data.jpegs())
    (tmp_path / "test.npz").write_bytes(b"")
    assert load(tmp_path).splits["test"].images.shape == (3, 5, 84, 84, 3)
