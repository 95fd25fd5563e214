"""Who holds a record: seen at once on one machine, and by its pulse from elsewhere.

Another machine is a process with another folder for temporary files: the kernel's lock
is not found, as it is not from another machine or another container.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from unittest import mock

import pytest

from bmg_sweeps import paths
from bmg_sweeps.records import attempts, files, leases, locks, manifests, store

KEY = ("trainer", "0123456789ab")
HOLD = """
import sys, time
from bmg_sweeps import paths
from bmg_sweeps.records import attempts, files, leases, store
leases.BEAT_SECONDS = 0.05
storage = files.open_storage(sys.argv[1])
key = ("trainer", "0123456789ab")
attempt = attempts.begin(storage, store.read(storage, *key), "launch abc")
print("held", flush=True)
sys.stdin.readline()
try:
    attempt.commit(progress={"env_steps": 10}, release=True)
except attempts.Stale as error:
    sys.exit(str(error))
"""


@contextlib.contextmanager
def holder(storage, **environment):
    """A process that holds the record, until it is told to commit and end."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, storage.root],
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def elsewhere(tmp_path):
    """The environment of another machine."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return {"TMPDIR": str(folder)}


@pytest.fixture
def patient(monkeypatch):
    """A watch that takes two seconds: a busy machine holds up no beat so long."""
    monkeypatch.setattr(leases, "LOST_SECONDS", 2.0)


def read(storage):
    return store.read(storage, *KEY)


def watched(storage, seconds=2.0):
    """Looks at the holder for so long, or until it is lost; returns what was seen."""
    holders, seen = leases.Watch(storage), []
    until = time.monotonic() + seconds
    while time.monotonic() < until and "lost" not in seen:
        seen.append(holders.look(read(storage).manifest.lease))
        time.sleep(0.02)
    return holders, seen


def alive(storage):
    """The pulses; a process that is killed while it beats leaves half of one, too."""
    return [n for n in sorted(storage.sizes(".alive")) if not n.startswith(".tmp-")]


def held():
    return {path.name for path in (paths.own_temporary() / "held").glob("*")}


def test_a_killed_holder_of_this_machine_is_gone_at_once(storage):
    with holder(storage) as process:
        lease = read(storage).manifest.lease
        assert read(storage).is_leased()
        assert watched(storage, 0.1)[1][-1] == "lives"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not read(storage).is_leased()
    assert watched(storage, 0.1)[1][-1] == "lost"
    attempts.begin(storage, read(storage)).commit(release=True)
    assert alive(storage) == []
    assert lease.pulse not in held()


def test_a_holder_that_is_stopped_on_this_machine_lives(storage, patient):
    """Its pulse stands still, and the kernel knows better."""
    with holder(storage) as process:
        process.send_signal(signal.SIGSTOP)
        assert set(watched(storage, 2.5)[1]) == {"lives"}
        assert read(storage).is_leased()


def test_a_holder_elsewhere_lives_as_long_as_its_pulse(storage, patient, elsewhere):
    """However long it commits nothing; it was lost where a lease ended by time."""
    with holder(storage, **elsewhere) as process:
        holders, seen = watched(storage, 3.0)
        assert "lives" in seen
        assert "lost" not in seen
        with pytest.raises(attempts.Busy):
            attempts.begin(storage, read(storage), lost=holders.lost)
        process.communicate("\n", timeout=30)
        assert process.returncode == 0
    assert read(storage).progress == {"env_steps": 10}


def test_a_killed_holder_elsewhere_is_lost_when_its_pulse_stands_still(
    storage, patient, elsewhere
):
    with holder(storage, **elsewhere) as process:
        process.kill()
        process.wait()
        assert read(storage).is_leased()
        holders, seen = watched(storage, 10.0)
    assert set(seen[:-1]) <= {"lives", "unknown"}  # Its last beat may be seen come.
    with pytest.raises(attempts.Busy):
        attempts.begin(storage, read(storage))
    attempt = attempts.begin(storage, read(storage), lost=holders.lost)
    attempt.commit(release=True)
    assert alive(storage) == []


def test_a_lost_holder_that_comes_back_harms_nothing(storage, patient, elsewhere):
    """A machine that slept for a minute is told, and later attempts are not lost."""
    with holder(storage, **elsewhere) as process:
        process.send_signal(signal.SIGSTOP)
        holders, _ = watched(storage, 10.0)
        attempts.begin(storage, read(storage), lost=holders.lost).commit(
            progress={"env_steps": 20}
        )
        process.send_signal(signal.SIGCONT)
        _, said = process.communicate("\n", timeout=30)
        assert "attempt 1 was taken over by attempt 2" in said
    assert read(storage).progress == {"env_steps": 20}
    assert read(storage).is_leased(holders.lost)


def test_a_watcher_that_slept_does_not_take_its_sleep_for_the_holders(
    storage, monkeypatch, elsewhere
):
    """A laptop wakes up, and looks before the holder has beaten again."""
    with holder(storage, **elsewhere) as process:
        process.send_signal(signal.SIGSTOP)
        clock = iter([0.0, 1e4, 2e4])
        monkeypatch.setattr(leases.time, "monotonic", lambda: next(clock))
        holders, lease = leases.Watch(storage), read(storage).manifest.lease
        assert [holders.look(lease) for _ in range(3)] == ["unknown"] * 3


def test_the_clocks_of_machines_do_not_matter(storage, monkeypatch, patient, elsewhere):
    with holder(storage, **elsewhere):
        for seconds in (0.0, 4e9):
            monkeypatch.setattr(time, "time", lambda seconds=seconds: seconds)
            assert "lost" not in watched(storage, 2.5)[1]
            assert read(storage).is_leased()


def test_a_storage_that_refuses_is_not_a_pulse_that_stands_still(
    storage, monkeypatch, elsewhere
):
    monkeypatch.setattr(leases, "LOST_SECONDS", 6.0)
    with holder(storage, **elsewhere) as process:
        process.send_signal(signal.SIGSTOP)
        holders, lease = leases.Watch(storage), read(storage).manifest.lease
        clock = iter(range(0, 100, 4))
        monkeypatch.setattr(leases.time, "monotonic", lambda: next(clock))
        assert [holders.look(lease) for _ in range(2)] == ["unknown"] * 2
        with monkeypatch.context() as patch:
            patch.setattr(files.Storage, "read", _refuse)
            assert holders.look(lease) == "unknown"
        looks = [holders.look(lease) for _ in range(3)]
        assert looks == ["unknown", "unknown", "lost"]


def _refuse(storage, *parts):
    raise files.StorageError("no answer")


def test_a_lease_of_older_code_is_watched_like_one_that_stands_still(storage, patient):
    old = manifests.Lease(token="abcdef12")
    attempt = attempts.begin(storage, read(storage))
    attempt._lease = old
    attempt.commit()
    assert read(storage).is_leased()
    assert watched(storage, 10.0)[1][-1] == "lost"


def test_a_machine_without_locks_is_watched(storage, monkeypatch, patient):
    """As where the folder for temporary files lies on a file system that has none."""

    def flock(*_):
        raise OSError("no locks available")

    monkeypatch.setattr(locks.fcntl, "flock", flock)
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.05)
    attempt = attempts.begin(storage, read(storage))
    assert set(watched(storage, 2.5)[1]) == {"unknown", "lives"}
    attempt.commit(release=True)
    assert alive(storage) == []


def test_a_pulse_goes_on_when_the_storage_has_refused_it_for_a_while(
    storage, monkeypatch
):
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.05)
    attempt = attempts.begin(storage, read(storage))
    (pulse,) = alive(storage)
    refusals = []

    def replace(*_):
        refusals.append(1)
        raise files.StorageError("refused")

    with monkeypatch.context() as patch:
        patch.setattr(files.Storage, "replace", replace)
        await_(lambda: len(refusals) > 3)
    beat = storage.read(".alive", pulse)
    await_(lambda: storage.read(".alive", pulse) != beat)
    attempt.commit(release=True)


def await_(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_process_has_one_pulse_while_it_holds_anything(
    storage, monkeypatch, tmp_path
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # Without others' locks.
    before = held()
    first = attempts.begin(storage, read(storage))
    second = attempts.begin(storage, store.read(storage, "trainer", "b"))
    assert len(alive(storage)) == len(held() - before) == 1
    first.commit(release=True)
    assert len(alive(storage)) == 1
    second.abandon()
    assert alive(storage) == []
    assert held() == before


def test_one_pulse_serves_leases_that_follow_each_other(storage):
    """A batch of short points would start and end one for each of them."""
    with leases.one_pulse(storage):
        kept = alive(storage)
        for _ in range(2):
            attempt = attempts.begin(storage, read(storage))
            assert read(storage).manifest.lease.pulse == kept[0]
            attempt.commit(release=True)
            assert alive(storage) == kept
    assert alive(storage) == []


def test_a_pulse_that_is_refused_is_asked_for_by_each_lease(storage, monkeypatch):
    refused = files.StorageError("refused")
    monkeypatch.setattr(leases, "_Pulse", mock.Mock(side_effect=refused))
    with leases.one_pulse(storage):
        monkeypatch.undo()
        attempt = attempts.begin(storage, read(storage))
        attempt.commit(release=True)
        assert alive(storage) == []


@pytest.mark.parametrize("pulse", ["../../secret", "A" * 32, "0" * 31])
def test_a_pulse_is_a_name_and_leads_nowhere(pulse):
    manifest = manifests.Manifest(attempt=1, lease=manifests.Lease(pulse=pulse))
    with pytest.raises(ValueError, match=r"lease\.pulse"):
        manifests.load(manifests.dump(manifest), 1)
