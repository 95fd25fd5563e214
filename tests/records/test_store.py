"""Records survive whatever befalls the process that writes them."""

import contextlib
import errno
import gzip
import hashlib
import io
import json
import os
import pathlib
import pickle
import threading
import zipfile

import forged
import numpy as np
import pytest

from bmg_sweeps import errors
from bmg_sweeps.records import attempts, encoding, files, leases, manifests, store

KEY = ("trainer", "0123456789ab")
STOP = {"env_steps": 100}
ROWS = {"env_steps": [10, 20], "total_reward": [0.5, None]}
MANIFEST = "manifest-0001.json"


def begin(storage):
    return attempts.begin(storage, store.read(storage, *KEY))


def commit(attempt, steps=20, fill=1.0, **keywords):
    attempt.commit(
        progress={"env_steps": steps},
        state=[np.full(3, fill, np.float32), np.array(steps)],
        rows=ROWS,
        **keywords,
    )


def the(storage, pattern):
    """Returns the path of the newest file of the record that fits a pattern."""
    return max(pathlib.Path(storage.path(*KEY)).glob(pattern))


def flip(path, place=0.5):
    """Flips a bit of the byte that lies so far into a file."""
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 1
    path.write_bytes(data)


def names(storage):
    return sorted(p.name for p in pathlib.Path(storage.path(*KEY)).iterdir())


def test_a_commit_is_read_back_as_it_was_written(storage):
    """State, rows and progress come back equal, dtypes included."""
    commit(begin(storage), provenance={"device": "cpu"}, release=True)
    record = store.read(storage, *KEY)
    state = store.state(storage, record)
    np.testing.assert_array_equal(state[0], np.ones(3, np.float32), strict=True)
    np.testing.assert_array_equal(state[1], np.array(20), strict=True)
    assert store.rows(storage, record) == ROWS
    assert record.progress == {"env_steps": 20}
    assert record.provenance.as_dict() == {"device": "cpu"}
    assert record.damage is None


def test_a_record_of_a_thousand_rows_takes_under_40_kb_beside_its_state(storage):
    """Seven columns of noise, four of slow values, two counts: two-colors' table.

    Noise has more digits than most metrics, about the room that the gin text takes.
    """
    draw = np.random.default_rng(0).normal
    noise = draw(size=(7, 1000)).astype(np.float32)
    slow = np.repeat(draw(size=(4, 100)).astype(np.float32), 10, axis=1)
    rows = {
        str(i): [float(str(value)) for value in column]
        for i, column in enumerate([*noise, *slow])
    }
    rows |= {"steps": list(range(0, 10**7, 10**4)), "updates": list(range(1000))}
    begin(storage).commit(progress={}, state=[], rows=rows)
    folder = pathlib.Path(storage.path(*KEY))
    sizes = [p.stat().st_size for p in folder.iterdir() if p.suffix != ".npz"]
    assert 30_000 < sum(sizes) < 40_000
    assert store.rows(storage, store.read(storage, *KEY)) == rows


def test_an_empty_storage_has_empty_records(storage):
    """Reading creates nothing: not the record, not the storage."""
    record = store.read(storage, *KEY)
    assert store.status(record, STOP) == "missing"
    assert store.state(storage, record) is None
    assert store.rows(storage, record) == {}
    assert not pathlib.Path(storage.root).exists()


def test_only_the_last_two_commits_are_kept(storage):
    """Older objects are deleted; those of the commit before may still be being read."""
    attempt = begin(storage)
    for steps in (10, 20, 30):
        commit(attempt, steps)
    kept = [name for name in names(storage) if not name.startswith("manifest")]
    assert kept == [
        "rows-0001-000002.json.gz",
        "rows-0001-000003.json.gz",
        "state-0001-000002.npz",
        "state-0001-000003.npz",
    ]


WRITES_PER_COMMIT = 3  # State, rows, manifest.


@pytest.mark.parametrize("survivor", range(WRITES_PER_COMMIT + 1))
def test_a_kill_at_any_write_of_a_commit_leaves_the_last_or_the_next(
    storage, monkeypatch, survivor
):
    """Whatever number of a commit's writes come through, the record is whole."""
    attempt = begin(storage)
    commit(attempt, 20, fill=1.0)
    replace, written = files.Storage.replace, []

    def replace_until_killed(self, data, *parts):
        if len(written) == survivor:
            raise KeyboardInterrupt
        written.append(parts)
        replace(self, data, *parts)

    with monkeypatch.context() as patch:
        patch.setattr(files.Storage, "replace", replace_until_killed)
        with contextlib.suppress(KeyboardInterrupt):
            commit(attempt, 30, fill=2.0)
    record = store.read(storage, *KEY)
    expected = 20 if survivor < WRITES_PER_COMMIT else 30
    assert record.damage is None
    assert record.progress == {"env_steps": expected}
    assert store.state(storage, record)[1] == expected
    assert store.rows(storage, record) == ROWS


def test_a_disk_that_fills_up_harms_nothing(storage, monkeypatch):
    """A write that fails halfway leaves the last commit, and no temporary file."""
    attempt = begin(storage)
    commit(attempt)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(attempts, "RETRY_SECONDS", 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            commit(attempt, 30)
    assert store.read(storage, *KEY).progress == {"env_steps": 20}
    assert not [name for name in names(storage) if name.endswith(".tmp")]


def test_two_processes_cannot_hold_a_point(storage):
    """The second sees the lease; one that read before the lease loses the race."""
    before = store.read(storage, *KEY)
    begin(storage)
    with pytest.raises(attempts.Busy):
        begin(storage)
    with pytest.raises(attempts.Busy):
        attempts.begin(storage, before)
    assert store.status(store.read(storage, *KEY), STOP) == "running"


def test_a_lost_attempt_is_taken_over_and_cannot_commit(storage, monkeypatch):
    """The stale attempt is told, and the record is the later attempt's alone."""
    stale = begin(storage)
    commit(stale, 10)
    monkeypatch.setattr(leases, "has_ended", lambda lease: True)
    later = begin(storage)
    commit(later, 20)
    with pytest.raises(attempts.Stale, match="attempt 1 was taken over by attempt 2"):
        commit(stale, 30)
    assert store.read(storage, *KEY).progress == {"env_steps": 20}
    commit(later, 40)
    assert store.read(storage, *KEY).progress == {"env_steps": 40}


def test_an_attempt_taken_over_between_check_and_commit_harms_nothing(
    storage, monkeypatch
):
    """The race itself: the stale manifest does not count, later objects survive."""
    stale = begin(storage)
    commit(stale, 10)
    monkeypatch.setattr(leases, "has_ended", lambda lease: True)
    later = begin(storage)
    commit(later, 20)
    monkeypatch.setattr(attempts.Attempt, "_check_current", lambda self: None)
    commit(stale, 30)
    record = store.read(storage, *KEY)
    assert record.damage is None
    assert store.state(storage, record)[1] == 20


@pytest.mark.parametrize("content", [b"", b'{"attempt": 1, "lease": null}'])
def test_what_a_killed_write_left_is_not_taken_for_a_manifest(storage, content):
    """A temporary file, empty or whole, changes nothing for anybody."""
    attempt = begin(storage)
    commit(attempt)
    files._write_temporary(storage.path(*KEY, "manifest-0001.json"), content)
    assert store.read(storage, *KEY).progress == {"env_steps": 20}
    commit(attempt, 30, release=True)
    assert begin(storage).number == 2


def test_a_commit_while_a_record_is_read_is_not_damage(storage, monkeypatch):
    """Listing and manifest are two looks; what moved in between is looked at again."""
    attempt = begin(storage)
    commit(attempt)
    commits = iter([30, 40, 50, 60, 70])
    sizes = files.Storage.sizes

    def list_and_commit(self, *parts):
        found = sizes(self, *parts)
        with monkeypatch.context() as patch:
            patch.setattr(files.Storage, "sizes", sizes)  # The commit lists, too.
            for steps in [next(commits, None), next(commits, None)]:
                if steps:
                    commit(attempt, steps)
        return found

    monkeypatch.setattr(files.Storage, "sizes", list_and_commit)
    record = store.read(storage, *KEY)
    assert record.damage is None
    assert record.progress == {"env_steps": 70}


def test_a_released_point_is_free(storage):
    """After the last commit nobody holds it; the next attempt counts up."""
    commit(begin(storage), release=True)
    assert begin(storage).number == 2


def test_three_tables_are_committed_together_and_apart_from_each_other(storage):
    """What a commit does not name stays as it was."""
    attempt = begin(storage)
    validation, test = {"env_steps": [10], "score": [1.5]}, {"env_steps": [10]}
    commit(attempt, validation=validation, test=test)
    longer = {"env_steps": [10, 20], "score": [1.5, 2.5]}
    attempt.commit(validation=longer, release=True)
    record = store.read(storage, *KEY)
    assert store.rows(storage, record) == ROWS
    assert store.rows(storage, record, "validation") == longer
    assert store.rows(storage, record, "test") == test
    assert "validation-0001-000002.json.gz" in names(storage)


def test_a_record_without_evaluations_has_none(storage):
    """Their tables are empty, not an error."""
    commit(begin(storage), release=True)
    record = store.read(storage, *KEY)
    assert store.rows(storage, record, "validation") == {}
    assert store.rows(storage, record, "test") == {}


def test_records_of_before_are_read_and_continued(storage):
    """Their manifests have no check, nor a commit before, and leases no pulse."""
    commit(begin(storage), steps=100)
    path = pathlib.Path(storage.path(*KEY, MANIFEST))
    manifest = json.loads(path.read_text())
    for field in ("check", "previous"):
        del manifest[field]
    manifest["lease"] = {"host": "a", "pid": 1, "started": 0.0, "expires": 0.0}
    path.write_text(json.dumps(manifest))
    record = store.read(storage, *KEY)
    assert record.damage is None
    assert record.is_leased()
    assert store.status(record, STOP) == "done"
    assert store.rows(storage, record) == ROWS


@pytest.mark.parametrize("harm", [flip, os.unlink, lambda p: os.truncate(p, 50)])
@pytest.mark.parametrize("part", store.PARTS)
def test_a_damaged_object_costs_one_commit(storage, part, harm):
    """The record falls back on the commit before, goes on, and says why."""
    attempt = begin(storage)
    for steps in (10, 20, 100):
        commit(attempt, steps, fill=steps, validation=ROWS, test=ROWS)
    attempt.commit(provenance={"code": "abc"}, release=True)  # Changes no object.
    path = the(storage, f"{part}-*")
    harm(path)
    record = store.verify(storage, store.read(storage, *KEY), store.PARTS)
    assert path.name in record.fallback
    assert len(record.fallback.splitlines()) == 1
    assert record.damage is None
    assert record.progress == {"env_steps": 20}
    assert record.provenance.as_dict() == {"code": "abc"}
    assert store.status(record, STOP) == "missing"
    again = attempts.begin(storage, record)
    again.commit(provenance={})
    record = store.read(storage, *KEY)
    assert (record.fallback, record.progress) == (None, {"env_steps": 20})
    assert store.state(storage, record)[1] == 20
    assert not path.exists()


def test_damage_to_the_commit_before_as_well_begins_the_point_anew(storage):
    """Two copies are lost; the first that was is named."""
    attempt = begin(storage)
    commit(attempt, 10, release=False)
    commit(attempt, 100, release=True)
    for path in pathlib.Path(storage.path(*KEY)).glob("rows-*"):
        flip(path)
    record = store.verify(storage, store.read(storage, *KEY))
    assert "rows-0001-000002.json.gz" in record.damage
    assert store.status(record, STOP) == "missing"
    begun = attempts.begin(storage, record)
    assert begun.number == 2
    begun.commit(provenance={})
    assert store.read(storage, *KEY).progress == {}


def test_a_flipped_bit_in_a_table_of_a_done_point_is_found_by_verifying(storage):
    """The cheap look sees names and sizes; the scan of a launch reads the tables."""
    commit(begin(storage), steps=100, release=True)
    flip(the(storage, "rows-*"))
    for verify, expected in ((False, "done"), (True, "missing")):
        record = store.scan(storage, [KEY], verify)[KEY[1]]
        assert store.status(record, STOP) == expected


def test_verifying_a_whole_record_changes_nothing(storage):
    """Nor does it read states: those may be large, and only training needs them."""
    commit(begin(storage), steps=100, release=True)
    flip(the(storage, "state-*"))
    record = store.read(storage, *KEY)
    assert store.verify(storage, record) == record


def test_verifying_follows_a_record_that_moves(storage):
    """Objects that a commit replaced meanwhile are no damage."""
    attempt = begin(storage)
    commit(attempt, 10)
    record = store.read(storage, *KEY)
    for steps in (20, 30, 40):
        commit(attempt, steps)
    record = store.verify(storage, record, store.PARTS)
    assert (record.damage, record.fallback) == (None, None)
    assert record.progress == {"env_steps": 40}


@pytest.mark.parametrize("place", np.linspace(0, 0.999, 23))
def test_a_flipped_bit_anywhere_in_a_manifest_is_damage(storage, place):
    """Also where it would be read as another number: a manifest checks itself."""
    commit(begin(storage), provenance={"device": "cpu"}, release=True)
    before = store.read(storage, *KEY)
    flip(pathlib.Path(storage.path(*KEY, MANIFEST)), place)
    assert MANIFEST in (store.read(storage, *KEY).damage or "")
    assert before.damage is None


def test_a_damaged_manifest_falls_back_on_the_attempt_before(storage):
    """While its objects are there, only the later attempt's work is lost."""
    commit(begin(storage), 10, release=True)
    later = begin(storage)
    commit(later, 100)
    flip(pathlib.Path(storage.path(*KEY, "manifest-0002.json")))
    record = store.read(storage, *KEY)
    assert "manifest-0002.json" in record.fallback
    assert record.progress == {"env_steps": 10}
    assert begin(storage).number == 3
    assert store.read(storage, *KEY).progress == {"env_steps": 10}
    with pytest.raises(attempts.Stale):
        commit(later, 110)


def test_a_damaged_manifest_begins_anew_when_the_attempt_before_is_gone(storage):
    """Its objects were deleted as the later attempt went on; numbers still rise."""
    commit(begin(storage), 10, release=True)
    later = begin(storage)
    for steps in (20, 30, 100):
        commit(later, steps)
    flip(pathlib.Path(storage.path(*KEY, "manifest-0002.json")))
    record = store.read(storage, *KEY)
    assert "manifest-0002.json" in record.damage
    assert begin(storage).number == 3


@pytest.mark.parametrize("part", ["state", "rows"])
def test_a_truncated_object_is_noticed_named_and_counted_as_missing(storage, part):
    """A short object shows in the listing, without reading it."""
    commit(begin(storage), steps=100, release=True)
    assert store.status(store.read(storage, *KEY), STOP) == "done"
    path = the(storage, f"{part}-*")
    path.write_bytes(path.read_bytes()[:-1])
    record = store.read(storage, *KEY)
    assert path.name in record.damage
    assert store.status(record, STOP) == "missing"


@pytest.mark.parametrize(
    ("part", "read"), [("state", store.state), ("rows", store.rows)]
)
def test_a_flipped_bit_is_noticed_and_named(storage, part, read):
    """An object of the right length is checked against its hash when it is read."""
    commit(begin(storage), release=True)
    path = the(storage, f"{part}-*")
    flip(path)
    with pytest.raises(store.Damaged, match=path.name):
        read(storage, store.read(storage, *KEY))


MALFORMED = {
    "empty": "",
    "cut": "{",
    "list": "[]",
    "number": "3",
    "no text": b"\xff",
    "deep": "[" * 10**5,
    "deep enough": '{"attempt": 1, "provenance": ' + '{"a":' * 900 + "1" + "}" * 901,
    "attempt": {"attempt": "x"},
    "other attempt": {"attempt": 7},
    "no attempt": {"attempt": None},
    "NaN": '{"attempt": 1, "progress": {"env_steps": NaN}}',
    "infinity": '{"attempt": 1, "progress": {"env_steps": 1e999}}',
    "negative": {"progress": {"env_steps": -1}},
    "negative hours": {"progress": {"hours": -0.5}},
    "huge": {"progress": {"env_steps": 10**400}},
    "truth": {"progress": {"env_steps": True}},
    "words": {"progress": {"env_steps": "100"}},
    "progress": {"progress": [100]},
    "provenance": {"provenance": "abc"},
    "revisions": {"provenance": {"revisions": 3}},
    "device": {"provenance": {"device": 3}},
    "failure": {"failure": "it failed"},
    "tries": {"failure": {"kind": "failed", "tries": "2"}},
    "frames": {"failure": {"kind": "failed", "tries": 1, "frames": 3}},
    "lease": {"lease": True},
    "pulse": {"lease": {"pulse": "../secret"}},
    "state": {"state": "state-0001-000001.npz"},
    "no size": {"state": {"name": "state-0001-000001.npz", "sha256": ""}},
    "parent": {"state": {"name": "../secret", "bytes": 6, "sha256": ""}},
    "absolute": {"rows": {"name": "/etc/passwd", "bytes": 6, "sha256": ""}},
    "inner": {"rows": {"name": "rows-0001-000001.npz/a", "bytes": 6, "sha256": ""}},
    "other part": {
        "rows": {"name": "state-0001-000001.npz", "bytes": 6, "sha256": ""},
    },
    "previous": {"previous": {"state": {"name": "../a", "bytes": 6, "sha256": ""}}},
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_manifest_is_damage_of_one_line(storage, text):
    """Whatever stands there, nobody reads where it leads, and the point begins anew."""
    commit(begin(storage), release=True)
    pathlib.Path(storage.path(*KEY[:1], "secret")).write_text("secret")
    if isinstance(text, dict):
        text = forged.manifest({"attempt": 1} | text)
    data = text if isinstance(text, bytes) else text.encode()
    pathlib.Path(storage.path(*KEY, MANIFEST)).write_bytes(data)
    record = store.read(storage, *KEY)
    assert record.damage.startswith(f"{MANIFEST}: ")
    assert len(record.damage.splitlines()) == 1
    assert len(record.damage) < 200
    assert store.status(record, STOP) == "missing"
    assert store.verify(storage, record, store.PARTS) == record
    assert store.rows(storage, record) == {}
    commit(begin(storage), release=True)
    assert store.read(storage, *KEY).damage is None


def test_a_manifest_that_is_too_large_is_not_even_read(storage, monkeypatch):
    """Its size shows in the listing."""
    commit(begin(storage), release=True)
    monkeypatch.setattr(manifests, "MAX_BYTES", 100)
    monkeypatch.setattr(files.Storage, "read", None)
    assert store.read(storage, *KEY).damage.startswith(
        f"{MANIFEST}: expected at most 100 "
    )


def test_a_table_that_swells_is_damage(storage, monkeypatch):
    """What unpacks to far more than real rows do is not unpacked to its end."""
    commit(begin(storage), release=True)
    table = b'{"env_steps": [' + b" " * 10**6 + b"]}"
    forge(storage, "rows", gzip.compress(table))
    record = store.read(storage, *KEY)
    assert store.rows(storage, record) == {"env_steps": []}
    monkeypatch.setattr(encoding, "_MAX_TABLE_BYTES", 10**5)
    with pytest.raises(store.Damaged, match="not whole, or of more than"):
        store.rows(storage, record)


def test_files_that_are_not_the_records_are_left_alone(storage):
    """Names that only look like those of manifests or objects stop nobody."""
    attempt = begin(storage)
    foreign = ["manifest-x.json", "manifest-0009.json.bak", "state-x-1.npz", "notes"]
    for name in foreign:
        pathlib.Path(storage.path(*KEY, name)).write_text("")
    pathlib.Path(storage.path(*KEY, "manifest-0008.json")).mkdir()
    for steps in (10, 20, 30):
        commit(attempt, steps)
    assert store.read(storage, *KEY).progress == {"env_steps": 30}
    assert set(foreign) <= set(names(storage))


def test_a_link_is_no_object(storage):
    """Whoever can put a link into a record cannot make it read what it leads to."""
    commit(begin(storage), release=True)
    path = the(storage, "state-*")
    elsewhere = pathlib.Path(storage.root).parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert path.name in store.read(storage, *KEY).damage


def forge(storage, part, data):
    """Puts other bytes in a part's place, and a manifest that vouches for them."""
    path = the(storage, f"{part}-*")
    path.write_bytes(data)
    manifest = pathlib.Path(storage.path(*KEY, "manifest-0001.json"))
    content = json.loads(manifest.read_text())
    del content["check"]
    digest = hashlib.sha256(data).hexdigest()
    content[part] |= {"bytes": len(data), "sha256": digest}
    manifest.write_bytes(forged.manifest(content))


def npz(compress=False, **arrays):
    buffer = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def archive(descr, shape, content):
    """A state of one array, whose header says what it likes."""
    member, whole = io.BytesIO(), io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, header)
    with zipfile.ZipFile(whole, "w") as file:
        file.writestr("0.npy", member.getvalue() + content)
    return whole.getvalue()


def pickled():
    """A pickle of just the length that an array of its shape would have."""
    content = pickle.dumps(np.array([{"a": 1}], dtype=object))
    content += bytes(-len(content) % 8)
    return archive("|O", (len(content) // 8,), content)


@pytest.mark.parametrize(
    "data",
    [
        pickled(),
        npz(a=np.zeros(1)),
        npz(**{"1": np.zeros(1), "0": np.zeros(1)}),
        npz(compress=True, **{"0": np.zeros(10**6)}),
        archive("<f8", (10**12,), bytes(8)),  # Of 8 TB, it says.
        b"PK, but no archive",
        b"",
    ],
    ids=["pickle", "name", "order", "bomb", "shape", "garbage", "empty"],
)
def test_a_state_that_is_not_arrays_is_damage_and_runs_no_code(storage, data):
    """Whatever a manifest vouches for: one line that names the object."""
    commit(begin(storage), release=True)
    forge(storage, "state", data)
    with pytest.raises(
        store.Damaged, match=r"^state-0001-000001.npz: not a state \(.+$"
    ):
        store.state(storage, store.read(storage, *KEY))


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(b'{"env_steps": [1], "total_reward": [NaN]}'),
        gzip.compress(b'{"env_steps": [1e999]}'),
        gzip.compress(b'{"env_steps": [1, 2], "total_reward": [1]}'),
        gzip.compress(b'{"env_steps": 3}'),
        gzip.compress(b'{"env_steps": [[3]]}'),
        gzip.compress(b"[1, 2]"),
        gzip.compress(b"[" * 10**6),
        b"no gzip",
    ],
    ids=[
        "NaN",
        "infinity",
        "ragged",
        "scalar",
        "nested",
        "list",
        "deep",
        "garbage",
    ],
)
def test_a_table_that_is_not_columns_is_damage(storage, data):
    """Readers of rows meet columns of one length, of finite numbers, or one line."""
    commit(begin(storage), release=True)
    forge(storage, "rows", data)
    with pytest.raises(store.Damaged, match=r"^rows-0001-000001.json.gz: not a table"):
        store.rows(storage, store.read(storage, *KEY))


def test_not_a_number_cannot_be_written(storage):
    """JSON has no NaN; whoever commits one has a bug."""
    with pytest.raises(ValueError, match="JSON"):
        begin(storage).commit(progress={}, rows={"env_steps": [float("nan")]})


@pytest.mark.parametrize(
    ("failure", "code", "expected"),
    [
        (manifests.Failure("failed", 1), None, "missing"),
        (manifests.Failure("failed", 2), None, "failed"),
        (manifests.Failure("diverged", 1), None, "diverged"),
        (manifests.Failure("diverged", 1), "abc", "diverged"),
        (manifests.Failure("diverged", 1), "other", "missing"),
    ],
)
def test_status_of_an_attempt_that_ended_early(storage, failure, code, expected):
    """Tries are used up before a point has failed; divergence is the code's result."""
    commit(begin(storage), failure=failure, provenance={"code": "abc"}, release=True)
    assert store.status(store.read(storage, *KEY), STOP, code) == expected


def test_a_point_is_done_on_every_axis_of_the_stop_rule(storage):
    """Two sweeps with different stop rules are both satisfied, or it is missing."""
    attempt = begin(storage)
    attempt.commit(progress={"env_steps": 100, "hours": 0.5}, release=True)
    record = store.read(storage, *KEY)
    assert store.status(record, {"env_steps": 100}) == "done"
    assert store.status(record, {"env_steps": 100, "hours": 1.0}) == "missing"


def test_a_storage_that_cannot_be_written_is_refused(tmp_path):
    """A file where the folder should be: one line with the path."""
    (tmp_path / "runs").write_text("")
    storage = files.open_storage(str(tmp_path / "runs"))
    with pytest.raises(errors.UserError, match=r"--storage .*runs: expected a folder"):
        files.check_writable(storage)


def test_a_folder_without_hard_links_is_refused(storage, monkeypatch):
    """As on exFAT, and in some mounts of object storage."""

    def link(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(errors.UserError, match="it has no hard links, which records"):
        files.check_writable(storage)


def of_any_number(put):
    """Writes an object, whether it must be new or not."""
    return lambda storage, data, path, **_: put(storage, data, path)


def of_the_first(put):
    """Writes an object only once."""

    def write(storage, data, path, **mode):
        if mode or not storage.fs.exists(path):
            put(storage, data, path, **mode)

    return write


UNTRUE = {
    "creation": (of_any_number, "only one process can create an object"),
    "writing": (of_the_first, "to read what was written last, 'third'; got b'first'"),
}


@pytest.mark.parametrize(("untrue", "said"), UNTRUE.values(), ids=UNTRUE)
def test_a_storage_is_not_believed_but_tried(monkeypatch, untrue, said):
    """Else two processes would have the same point, and both commit."""
    storage = files.open_storage("memory://untrue")
    files.check_writable(storage)
    monkeypatch.setattr(files.Storage, "_put", untrue(files.Storage._put))
    with pytest.raises(errors.UserError, match=said):
        files.check_writable(storage)
    assert storage.sizes() == {}


def test_an_unknown_file_system_is_refused():
    """One line, with the URI."""
    with pytest.raises(errors.UserError, match=r"--storage nosuch://x"):
        files.open_storage("nosuch://x")


def test_records_on_object_storage_need_no_rename():
    """The same promises with single puts, on fsspec's file system in memory."""
    storage = files.open_storage("memory://runs")
    assert not storage.is_local
    commit(begin(storage), steps=100, release=True)
    record = store.read(storage, *KEY)
    assert store.status(record, STOP) == "done"
    assert store.state(storage, record)[1] == 100


def test_a_scan_asks_only_once_for_all_points_that_there_are_not(storage, monkeypatch):
    """Of 1,000 missing points none costs a request of its own."""
    commit(begin(storage), steps=100, release=True)
    asked = []
    for name in ("sizes", "folders", "read"):
        method = getattr(files.Storage, name)

        def ask(self, *parts, method=method):
            asked.append(parts)
            return method(self, *parts)

        monkeypatch.setattr(files.Storage, name, ask)
    keys = [KEY, *(("trainer", f"missing{i}") for i in range(1000))]
    records = store.scan(storage, keys)
    assert len(records) == 1001
    assert store.status(records[KEY[1]], STOP) == "done"
    assert records["missing7"].manifest == manifests.EMPTY
    assert sorted(asked) == [("trainer",), KEY, (*KEY, MANIFEST)]


def test_many_points_are_declared_at_the_same_time(storage, monkeypatch):
    """Each write waits for the disk or the server: two of them meet."""
    both, declare = threading.Barrier(2, timeout=10), store.declare

    def meet(*arguments):
        both.wait()
        declare(*arguments)

    monkeypatch.setattr(store, "declare", meet)
    store.declare_all(storage, [("trainer", "a", "x = 1"), ("trainer", "b", "x = 2")])
    assert store.gin_text(storage, "trainer", "a") == "x = 1"
    assert store.gin_text(storage, "trainer", "b") == "x = 2"


def test_a_refusal_to_declare_one_of_many_points_is_told(storage, monkeypatch):
    """As that of a single one is."""

    def refused(*_):
        raise files.StorageError("--storage runs: expected one that can be written")

    monkeypatch.setattr(store, "declare", refused)
    with pytest.raises(files.StorageError):
        store.declare_all(storage, [("trainer", "a", "x = 1")])


@pytest.fixture
def refusals(monkeypatch):
    """Errors that the next writes to disk raise, one each."""
    errors_, fsync = [], os.fsync
    monkeypatch.setattr(attempts.time, "sleep", lambda seconds: None)

    def refuse(descriptor):
        if errors_:
            raise errors_.pop(0)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    return errors_


def test_a_commit_outlasts_writes_that_fail_for_a_while(storage, refusals):
    """It is tried again until storage takes it, and is one commit."""
    attempt = begin(storage)
    commit(attempt, 10)
    refusals += [OSError(5, "Input/output error")] * 5
    commit(attempt, 20)
    record = store.read(storage, *KEY)
    assert not refusals
    assert record.progress == {"env_steps": 20}
    assert record.manifest.previous.progress == {"env_steps": 10}


def refuse(path):
    raise OSError(5, "Input/output error")


def test_a_deletion_that_fails_does_not_undo_a_commit(storage, monkeypatch):
    """The commit stands, once; the next one deletes what was left."""
    attempt = begin(storage)
    commit(attempt, 10)
    commit(attempt, 20)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        commit(attempt, 30)
    previous = store.read(storage, *KEY).manifest.previous
    assert previous.progress == {"env_steps": 20}
    assert len([name for name in names(storage) if name.startswith("state")]) == 3
    commit(attempt, 40)
    assert len([name for name in names(storage) if name.startswith("state")]) == 2


def test_every_refusal_of_a_disk_is_one_kind_of_error(storage, monkeypatch):
    """Also that of deleting a temporary file."""
    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(files.StorageError, match="Input/output error"):
        storage.create(b"", "object")


def test_a_point_is_let_go_of_where_storage_keeps_failing(
    storage, refusals, monkeypatch
):
    """It stays as its last commit left it, without a lease, for anybody to go on."""
    monkeypatch.setattr(attempts, "RETRY_SECONDS", 0)
    attempt = begin(storage)
    commit(attempt, 10)
    refusals.append(OSError(5, "Input/output error"))
    with pytest.raises(files.StorageError, match="Input/output error"):
        commit(attempt, 20)
    attempt.abandon()
    record = store.read(storage, *KEY)
    assert record.manifest.lease is None
    assert record.progress == {"env_steps": 10}


def test_what_killed_writes_left_is_deleted_when_it_is_old(storage, monkeypatch):
    """Not before: another process may be writing it."""
    path = storage.path(*KEY, "state-0001-000001.npz")
    left = pathlib.Path(files._write_temporary(path, b"half"))
    commit(begin(storage), release=True)
    assert left.exists()
    monkeypatch.setattr(files, "_LEFT_SECONDS", 0.0)
    begin(storage)
    assert not left.exists()


@pytest.mark.parametrize("folder", [(), (".alive",), (".code",), ("wandb",)])
def test_what_killed_writes_left_beside_the_points_is_deleted_too(
    storage, monkeypatch, folder
):
    left = pathlib.Path(files._write_temporary(storage.path(*folder, "name"), b"half"))
    other = left.with_name(".tmp-of-somebody-else")
    other.touch()
    files.clear(storage)
    assert left.exists()
    monkeypatch.setattr(files, "_LEFT_SECONDS", 0.0)
    files.clear(storage)
    assert not left.exists()
    assert other.exists()


def test_a_creation_that_is_repeated_finds_its_own_object(storage):
    """As where the answer to a request was lost; another's is still a conflict."""
    storage.create(b"mine", "object")
    storage.create(b"mine", "object")
    with pytest.raises(FileExistsError):
        storage.create(b"other", "object")


def nulled(value, place=()):
    """Yields a manifest's fields with null in the place of each of them, one by one."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in items:
        yield (*place, key)
        if isinstance(one, dict | list):
            yield from nulled(one, (*place, key))


def test_a_null_in_the_place_of_any_field_is_damage_or_nothing(storage):
    """Whichever it is, all that reads a record does, and no command ends by it."""
    failure = manifests.Failure("failed", 1, "E", "no", frames=("a",))
    noted = {"devices": ["cpu"], "codes": ["c"], "packages": {"jax": "1"}, "x": [1]}
    commit(begin(storage), provenance=noted)
    path = the(storage, "manifest-*")
    written = json.loads(path.read_text())
    del written["check"]
    written["failure"] = manifests.as_dict(manifests.Manifest(failure=failure))[
        "failure"
    ]
    for place in nulled(written):
        fields = json.loads(json.dumps(written))
        inner = fields
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = None
        path.write_text(json.dumps(fields))
        record = store.verify(storage, store.read(storage, *KEY), store.PARTS)
        assert store.status(record, STOP) in ("missing", "running"), place
        assert record.damage or store.rows(storage, record) in (ROWS, {}), place
        _ = (record.codes, record.devices, record.revisions, record.pack_width)
        manifests.as_dict(record.manifest)
        if record.failure is not None:
            store.reason(record.failure)
