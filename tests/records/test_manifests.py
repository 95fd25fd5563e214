"""Manifests are checked when they are read, and read as they were written."""

import json
import pathlib

import forged
import msgspec
import pytest

from bmg_sweeps.records import attempts, manifests, store

OLD = sorted(pathlib.Path(__file__).with_name("old_storage").rglob("manifest-*.json"))
KEY = ("trainer", "0123456789ab")
LEASE = {"owner": "a", "token": "0"}
FAILURE = {"kind": "failed", "tries": 1}
ROWS = {"name": "rows-0001-000001.json.gz", "bytes": 6, "sha256": "ab"}


def load(**fields):
    return manifests.load(forged.manifest({"attempt": 1} | fields), 1)


def is_written(manifest):
    return json.loads(manifests.dump(manifest))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"attempt": "1"}, "attempt: expected `int`, got `str`"),
        ({"progress": [1]}, "progress: expected `object`, got `array`"),
        ({"progress": {"hours": -0.5}}, "progress[...]: expected `float` >= 0.0"),
        ({"progress": None}, "progress: expected `object`, got `null`"),
        ({"lease": LEASE | {"token": 0}}, "lease.token: expected `str`, got `int`"),
        ({"lease": LEASE | {"owner": None}}, "lease.owner: expected `str`, got `null`"),
        ({"failure": FAILURE | {"tries": True}}, "failure.tries: expected `int`, got"),
        (
            {"failure": FAILURE | {"frames": [3]}},
            "failure.frames[0]: expected `str |",
        ),
        ({"rows": ROWS | {"bytes": 0.5}}, "rows.bytes: expected `int`, got `float`"),
        ({"rows": ROWS | {"name": "a\nb"}}, r"rows.name: expected such as rows-0001"),
        ({"previous": {"rows": ROWS | {"name": "/a"}}}, "rows.name: expected such as"),
        ({"previous": {"progress": 3}}, "previous.progress: expected `object`, got"),
        ({"provenance": []}, "provenance: expected `object`, got `array`"),
        ({"provenance": {"pack_width": 0}}, "provenance.pack_width: expected `int` >="),
        (
            {"provenance": {"packages": {"jax": 1}}},
            "provenance.packages[...]: expected",
        ),
    ],
)
def test_a_field_of_a_wrong_type_is_named_in_one_line(storage, fields, said):
    """So is the file, where the record is read."""
    with pytest.raises(
        ValueError, match=said.partition(":")[0].partition("[")[0]
    ) as error:
        load(**fields)
    assert str(error.value).startswith(said)
    data = forged.manifest({"attempt": 1} | fields)
    storage.replace(data, *KEY, manifests.name(1))
    damage = store.read(storage, *KEY).damage
    assert damage == f"{manifests.name(1)}: {error.value}"
    assert damage.isprintable()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"progress": {"env_steps": -1}}, r"progress\[...\]: expected `int` >= 0"),
        ({"provenance": {"revision": 3}}, "provenance.revision: expected `str"),
        ({"provenance": {"threads": {1}}}, "provenance.threads: expected `int"),
    ],
)
def test_what_would_not_be_read_is_not_written(storage, changes, said):
    """Else the last commit would be lost with it, and its point begin anew."""
    attempt = attempts.begin(storage, store.read(storage, *KEY))
    attempt.commit(progress={"env_steps": 10}, rows={"env_steps": [10]})
    before = store.read(storage, *KEY)
    with pytest.raises(ValueError, match=f"^{said}"):
        attempt.commit(rows={"env_steps": [10, 20]}, **changes)
    assert store.read(storage, *KEY) == before


def test_what_a_trainer_noted_survives_another_attempt(storage):
    """Also under a name that the code uses itself, and what newer code noted."""
    noted = {
        "data_set": {"sha256": "ab", "images": [1, 2.5]},
        "extra": "é",
        "new": None,
    }
    noted |= {"device": "cpu", "revisions": ["a", None]}
    first = attempts.begin(storage, store.read(storage, *KEY))
    first.commit(progress={"steps": 1}, provenance=noted, release=True)
    record = store.read(storage, *KEY)
    assert is_written(record.manifest)["provenance"] == noted
    assert (record.provenance.device, record.provenance.threads) == ("cpu", None)
    attempts.begin(storage, record).commit(progress={"steps": 2}, release=True)
    assert store.read(storage, *KEY).provenance == record.provenance


def test_fields_that_newer_code_wrote_are_no_damage():
    """At any place but provenance they are left out."""
    new = {"new": [1]}
    fields = {"lease": LEASE, "failure": FAILURE, "rows": ROWS}
    newer = {name: value | new for name, value in fields.items()}
    assert load(**newer, **new, previous=new) == load(**fields, previous={})


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.parent.name)
def test_an_old_manifest_is_written_again_as_it_was(path):
    """The same fields of the same values, and the same check."""
    data = path.read_bytes()
    assert is_written(manifests.load(data, 1)) == json.loads(data)


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.parent.name)
def test_an_old_manifest_without_a_check_is_read(path):
    """The first ones had none."""
    fields = json.loads(path.read_text())
    with_check = manifests.load(path.read_bytes(), 1)
    del fields["check"]
    assert manifests.load(json.dumps(fields).encode(), 1) == with_check


def test_a_manifest_without_an_end_has_null_for_lease_and_failure():
    """Older code reads both; what was never committed is not there."""
    fields = is_written(manifests.Manifest(attempt=1))
    assert fields.pop("check")
    assert fields == {"attempt": 1, "lease": None, "failure": None, "provenance": {}}


# Texts that json writes in another way than msgspec, or that msgspec does not read.
ODD = {"small": 2e-5, "large": 1e16, "letter": "é", "half": "\ud800", "huge": 10**30}


@pytest.mark.parametrize("value", [1.5, *ODD.values()], ids=["plain", *ODD])
def test_a_change_is_noticed_whoever_writes_the_check(value):
    """The check is that of json's text; a byte of it is not that of another text."""
    data = forged.manifest({"attempt": 1, "provenance": {"a": value, "b": 1}})
    assert manifests.load(data, 1).provenance.extra == {"a": value, "b": 1}
    with pytest.raises(ValueError, match="not the content that was written"):
        manifests.load(data.replace(b'"b": 1', b'"b": 2'), 1)


def test_the_check_of_null_is_not_that_of_a_number_that_is_not_finite():
    """The library writes null for both."""
    data = forged.manifest({"attempt": 1, "provenance": {"a": None}})
    for number in (b"NaN", b"1e999"):
        with pytest.raises(ValueError, match="not JSON compliant"):
            manifests.load(data.replace(b'"a": null', b'"a": ' + number), 1)


def test_manifests_cannot_be_changed():
    """Readers share them."""
    with pytest.raises(AttributeError):
        manifests.EMPTY.attempt = 1
    changed = msgspec.structs.replace(manifests.EMPTY, attempt=1)
    assert manifests.EMPTY.attempt == 0 != changed.attempt
