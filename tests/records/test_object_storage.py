"""Records on object storage: a real S3 server, of moto, on this machine's loopback."""

import socket
import threading
import time
import urllib.request

import numpy as np
import pytest
import toy_points

from bmg_sweeps import __main__, errors
from bmg_sweeps.records import attempts, files, leases, store
from bmg_sweeps.running import pack

KEY = ("trainer", "0123456789ab")
STOP = {"env_steps": 100}
ROWS = {"env_steps": [10, 20], "total_reward": [0.5, None]}
MAX_SECONDS = 8.0  # Until a storage that cannot be used is an error.


@pytest.fixture(scope="module")
def address():
    """Starts a server on a free port."""
    from moto import server as moto_server

    server = moto_server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def credentials(monkeypatch, tmp_path):
    """Keys that open nothing, and no file of the user's that says more."""
    import s3fs

    nothing = tmp_path / "nothing"
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(nothing),
        "AWS_SHARED_CREDENTIALS_FILE": str(nothing),
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    s3fs.S3FileSystem.clear_instance_cache()
    yield
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def storage(address, credentials, monkeypatch):
    """An empty bucket."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    tell(address, "reset")
    storage = files.open_storage("s3://bucket/runs")
    storage.fs.mkdir("bucket")
    return storage


def tell(address, what, data=b""):
    """Gives the server an order of its own kind, none of S3's."""
    headers = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(f"{address}/moto-api/{what}", data, headers)
    urllib.request.urlopen(request, timeout=5).close()


def begin(storage):
    return attempts.begin(storage, store.read(storage, *KEY))


def commit(attempt, steps=20, **keywords):
    attempt.commit(
        progress={"env_steps": steps},
        state=[np.ones(3, np.float32), np.array(steps)],
        rows=ROWS,
        **keywords,
    )


def the(storage, part):
    """Returns the path of the newest object of a kind."""
    return max(n for n in storage.sizes(*KEY) if n.startswith(part))


def test_a_record_is_declared_begun_committed_and_read_back(storage):
    """As on a disk, with single puts and nothing renamed."""
    assert not storage.is_local
    store.declare(storage, *KEY, "a = 1")
    store.declare(storage, *KEY, "a = 1")
    assert store.gin_text(storage, *KEY) == "a = 1"
    assert store.status(store.read(storage, *KEY), STOP) == "missing"
    attempt = begin(storage)
    assert store.status(store.read(storage, *KEY), STOP) == "running"
    for steps in (10, 50, 100):
        commit(attempt, steps, validation=ROWS)
    attempt.commit(release=True)
    record = store.read(storage, *KEY)
    assert store.status(record, STOP) == "done"
    assert store.state(storage, record)[1] == 100
    assert store.rows(storage, record) == ROWS
    assert store.rows(storage, record, "validation") == ROWS
    assert sorted(storage.sizes(*KEY)) == [
        "manifest-0001.json",
        "point.gin",
        "rows-0001-000002.json.gz",
        "rows-0001-000003.json.gz",
        "state-0001-000002.npz",
        "state-0001-000003.npz",
        "validation-0001-000002.json.gz",
        "validation-0001-000003.json.gz",
    ]


def test_one_of_many_that_begin_at_once_gets_the_point(storage):
    """Creation is exclusive: the server decides, whoever asks first."""
    before = store.read(storage, *KEY)
    barrier, outcomes = threading.Barrier(6), []

    def race():
        barrier.wait()
        try:
            outcomes.append(attempts.begin(storage, before).number)
        except attempts.Busy:
            outcomes.append("busy")

    threads = [threading.Thread(target=race) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, outcomes)) == ["1", *["busy"] * 5]


def test_an_attempt_that_was_taken_over_cannot_commit(storage, monkeypatch):
    """It is told at its next commit, and harms nothing."""
    stale = begin(storage)
    commit(stale, 10)
    monkeypatch.setattr(leases, "has_ended", lambda lease: True)
    later = begin(storage)
    commit(later, 20)
    with pytest.raises(attempts.Stale, match="attempt 1 was taken over by attempt 2"):
        commit(stale, 30)
    assert store.read(storage, *KEY).progress == {"env_steps": 20}


@pytest.mark.parametrize("part", ["state", "rows"])
def test_a_damaged_object_costs_one_commit(storage, part):
    """Cut short it shows in the listing, altered when it is read."""
    attempt = begin(storage)
    for steps in (50, 100):
        commit(attempt, steps)
    name = the(storage, part)
    data = storage.read(*KEY, name)
    for harmed in (data[:-1], data[:-1] + bytes([data[-1] ^ 1])):
        storage.replace(harmed, *KEY, name)
        record = store.verify(storage, store.read(storage, *KEY), store.PARTS)
        assert name in record.fallback
        assert record.progress == {"env_steps": 50}
        assert store.state(storage, record)[1] == 50


def test_a_damaged_manifest_begins_the_point_anew(storage):
    """There is no attempt before to go back to."""
    commit(begin(storage), 100)
    storage.replace(b'{"attempt": 1', *KEY, "manifest-0001.json")
    assert "manifest-0001.json" in store.read(storage, *KEY).damage
    assert begin(storage).number == 2


def test_a_scan_makes_no_request_for_a_point_that_there_is_not(storage, monkeypatch):
    """One listing tells of all of them; what there is, is read by many threads."""
    ids = [f"{i:012x}" for i in range(4)]
    for i in ids:
        key = (KEY[0], i)
        attempts.begin(storage, store.read(storage, *key)).commit(
            progress={"env_steps": 100}, release=True
        )
    requests = []
    call = type(storage.fs)._call_s3

    def count(self, method, *arguments, **keywords):
        requests.append(str(keywords.get("Prefix") or keywords.get("Key")))
        return call(self, method, *arguments, **keywords)

    monkeypatch.setattr(type(storage.fs), "_call_s3", count)
    missing = [f"{i:012x}" for i in range(1000, 2000)]
    records = store.scan(storage, [(KEY[0], i) for i in [*ids, *missing]])
    assert sum(store.status(r, STOP) == "done" for r in records.values()) == 4
    assert len(records) == 1004
    assert requests
    assert not [r for r in requests if any(i in r for i in missing)]


@pytest.fixture
def toy():
    with toy_points.importable():
        yield


def test_a_point_trains_stops_and_goes_on_to_the_same_bits_as_on_a_disk(
    storage, toy, tmp_path, monkeypatch
):
    """All of it through the loop that trains; state and rows are equal bit for bit."""
    disk = files.open_storage(str(tmp_path / "runs"))
    assert toy_points.run(disk, toy_points.declare(disk, "a")) == "done"
    monkeypatch.setattr(pack, "COMMIT_SECONDS", 0.0)
    toy_points.declare(storage, "a")
    status = toy_points.run(storage, "a", should_stop=toy_points.stop_after(2))
    assert status == "missing"
    assert toy_points.read(storage, "a").progress["env_steps"] == 20
    assert toy_points.run(storage, "a") == "done"
    assert toy_points.read(storage, "a").manifest.attempt == 2
    found = toy_points.outcome(storage, "a")
    assert toy_points.is_once(found[1])
    assert toy_points.is_same(toy_points.outcome(disk, "a"), found)


def assert_one_line_soon(capsys, uri, reason):
    """Reading ends a command with one line; so does the look before a launch."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    began = time.monotonic()
    assert __main__.main(["status", "figure_2", "--storage", uri]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: --storage {uri}: expected a folder that")
    assert reason in line
    with pytest.raises(errors.UserError, match=reason):
        files.check_writable(files.open_storage(uri))
    assert time.monotonic() - began < MAX_SECONDS


def test_a_missing_bucket_is_one_line(storage, capsys):
    """Not a table of points that are missing."""
    assert_one_line_soon(capsys, "s3://nobucket/runs", "does not exist")


def test_wrong_credentials_are_one_line(storage, address, capsys):
    """The server refuses the key."""
    tell(address, "reset-auth", b"0")
    try:
        assert_one_line_soon(capsys, "s3://bucket/runs", "Access Key Id")
    finally:
        tell(address, "reset-auth", b"inf")


def test_missing_credentials_are_one_line(storage, capsys, monkeypatch):
    """Nobody is asked for them over the network."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert_one_line_soon(capsys, "s3://bucket/runs", "credentials")


def test_an_endpoint_where_nobody_listens_is_one_line(credentials, capsys, monkeypatch):
    """Tried a few times, and not for minutes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    assert_one_line_soon(capsys, "s3://bucket/runs", "Could not connect")


def test_an_endpoint_that_never_answers_is_given_up(credentials, monkeypatch):
    """A put to a host that takes connections and says nothing would wait forever."""
    monkeypatch.setattr(files, "_PUT_SECONDS", 1.0)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = "http://{}:{}".format(*silent.getsockname())
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        storage = files.open_storage("s3://bucket/runs")
        began = time.monotonic()
        with pytest.raises(files.StorageError, match="FSTimeoutError"):
            files.check_writable(storage)
        assert time.monotonic() - began < MAX_SECONDS
