"""Records survive whatever befalls the process that writes them."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from bmg_sweeps import errors, files, store

KEY = ("trainer", "0123456789ab")
STOP = {"env_steps": 100}
ROWS = {"env_steps": [10, 20], "total_reward": [0.5, None]}


@pytest.fixture
def storage(tmp_path):
    return files.open_storage(str(tmp_path / "runs"))


def begin(storage):
    return store.begin(storage, store.read(storage, *KEY))


def commit(attempt, steps=20, fill=1.0, **keywords):
    attempt.commit(
        progress={"env_steps": steps},
        state=[np.full(3, fill, np.float32), np.array(steps)],
        rows=ROWS,
        **keywords,
    )


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
    assert record.provenance == {"device": "cpu"}
    assert record.damage is None


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
    with pytest.raises(store.Busy):
        begin(storage)
    with pytest.raises(store.Busy):
        store.begin(storage, before)
    assert store.status(store.read(storage, *KEY), STOP) == "running"


def test_an_expired_attempt_is_taken_over_and_cannot_commit(storage, monkeypatch):
    """The stale attempt is told, and the record is the later attempt's alone."""
    stale = begin(storage)
    commit(stale, 10)
    monkeypatch.setattr(store, "_may_live", lambda lease: False)
    later = begin(storage)
    commit(later, 20)
    with pytest.raises(store.Stale, match="attempt 1 was taken over by attempt 2"):
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
    monkeypatch.setattr(store, "_may_live", lambda lease: False)
    later = begin(storage)
    commit(later, 20)
    monkeypatch.setattr(store.Attempt, "_check_current", lambda self: None)
    commit(stale, 30)
    record = store.read(storage, *KEY)
    assert record.damage is None
    assert store.state(storage, record)[1] == 20


def test_the_lease_of_a_dead_process_does_not_bind(storage):
    """A killed worker's point is free at once, not when its lease expires."""
    code = (
        "import sys; from bmg_sweeps import files, store;"
        "s = files.open_storage(sys.argv[1]);"
        f"store.begin(s, store.read(s, *{KEY!r}))"
    )
    subprocess.run([sys.executable, "-c", code, storage.root], check=True, timeout=60)
    record = store.read(storage, *KEY)
    assert record.manifest["lease"]["expires"] > store.time.time()
    assert store.status(record, STOP) == "missing"
    commit(begin(storage))


def test_the_lease_of_another_host_binds_until_it_expires(storage, monkeypatch):
    """Its processes cannot be seen from here; the clock decides."""
    monkeypatch.setattr(store, "_host", lambda: "elsewhere")
    begin(storage)
    monkeypatch.undo()
    assert store.read(storage, *KEY).is_leased()
    monkeypatch.setattr(store.time, "time", lambda: 4e9)  # Long after.
    assert not store.read(storage, *KEY).is_leased()


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


@pytest.mark.parametrize("part", ["state", "rows"])
def test_a_truncated_object_is_noticed_named_and_counted_as_missing(storage, part):
    """A short object shows in the listing, without reading it."""
    commit(begin(storage), steps=100, release=True)
    assert store.status(store.read(storage, *KEY), STOP) == "done"
    path = next(pathlib.Path(storage.path(*KEY)).glob(f"{part}-*"))
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
    path = next(pathlib.Path(storage.path(*KEY)).glob(f"{part}-*"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(store.Damaged, match=path.name):
        read(storage, store.read(storage, *KEY))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"attempt": "x"}'])
def test_a_broken_manifest_is_noticed_and_begun_anew(storage, text):
    """Garbage where the manifest was is damage, not a crash."""
    commit(begin(storage), release=True)
    pathlib.Path(storage.path(*KEY, "manifest-0001.json")).write_text(text)
    record = store.read(storage, *KEY)
    assert "manifest-0001.json" in record.damage
    attempt = store.begin(storage, record)
    commit(attempt, release=True)
    assert store.read(storage, *KEY).damage is None


def test_a_state_with_a_pickle_inside_is_refused(storage):
    """np.load must never unpickle: an object array is an error, not code that runs."""
    commit(begin(storage), release=True)
    path = next(pathlib.Path(storage.path(*KEY)).glob("state-*"))
    buffer = io.BytesIO()
    np.savez(buffer, **{"0": np.array([{"a": 1}], dtype=object)})
    path.write_bytes(buffer.getvalue())
    manifest = pathlib.Path(storage.path(*KEY, "manifest-0001.json"))
    content = json.loads(manifest.read_text())
    content["state"]["bytes"] = len(buffer.getvalue())
    content["state"]["sha256"] = store.hashlib.sha256(buffer.getvalue()).hexdigest()
    manifest.write_text(json.dumps(content))
    assert zipfile.is_zipfile(path)
    with pytest.raises(ValueError, match="allow_pickle"):
        store.state(storage, store.read(storage, *KEY))


def test_not_a_number_cannot_be_written(storage):
    """JSON has no NaN; whoever commits one has a bug."""
    with pytest.raises(ValueError, match="JSON"):
        begin(storage).commit(progress={}, rows={"env_steps": [float("nan")]})


@pytest.mark.parametrize(
    ("failure", "code", "expected"),
    [
        ({"kind": "failed", "tries": 1}, None, "missing"),
        ({"kind": "failed", "tries": 2}, None, "failed"),
        ({"kind": "diverged", "tries": 1}, None, "diverged"),
        ({"kind": "diverged", "tries": 1}, "abc", "diverged"),
        ({"kind": "diverged", "tries": 1}, "other", "missing"),
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
