"""Whatever befalls a point while it trains, it ends as if nothing had.

Each fault is followed by an undisturbed run. The point must then be done, with each row
exactly once, and state and rows equal, bit for bit, to those of a run without faults.

A kill is simulated by an exception that nothing catches, after which no file operation
of the run succeeds any more; some are real, of another process. `make test-faults` runs
all of them and counts; `make test` runs a few of each kind.
"""

import contextlib
import functools
import os
import pathlib
import random
import signal
import subprocess
import sys

import numpy as np
import pytest
import toy_points

from bmg_sweeps.records import attempts, files, leases, store
from bmg_sweeps.running import pack

FEW_AND_ALL = ["few", pytest.param("all", marks=pytest.mark.faults)]
MAX_FILES = 7  # Two commits of state and rows, two manifests, the gin text.
RUNS_CHUNKS = 6


class Killed(BaseException):
    """The process is no more."""


class Trap:
    """Stands in for `os` and `open` in `files`; springs at each operation."""

    def __init__(self, spring=lambda number: None):
        self.number = 0
        self._spring = spring

    def __getattr__(self, name):
        return getattr(os, name)

    def _operate(self, action, *arguments, **keywords):
        self.number += 1
        self._spring(self.number)
        return action(*arguments, **keywords)

    fsync = functools.partialmethod(_operate, os.fsync)
    link = functools.partialmethod(_operate, os.link)
    replace = functools.partialmethod(_operate, os.replace)
    scandir = functools.partialmethod(_operate, os.scandir)
    unlink = functools.partialmethod(_operate, os.unlink)

    @contextlib.contextmanager
    def open(self, path, mode):
        """Opens a file whose writes are torn by the trap."""
        with self._operate(open, path, mode) as file:
            write = file.write

            class Torn:
                flush, fileno = file.flush, file.fileno

                @staticmethod
                def write(data):
                    write(data[: len(data) // 2])
                    file.flush()
                    self._operate(write, data[len(data) // 2 :])

            yield Torn

    @contextlib.contextmanager
    def set(self):
        """Lets the files of the project be reached only through the trap."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "os", self)
            patch.setattr(files, "open", self.open, raising=False)
            yield self


def kill_at(place):
    def spring(number):
        if number >= place:
            raise Killed

    return spring


def refuse(places):
    def spring(number):
        if number in places:
            raise OSError(5, "Input/output error")

    return spring


def run_until_killed(storage, point_id, spring):
    """Returns the status of a run with a trap, or None where it was killed."""
    try:
        with Trap(spring).set():
            return toy_points.run(storage, point_id)
    except Killed:
        toy_points.end_pulses()
        return None


class Bench:
    """Points, one for each fault, and the count of what became of them."""

    def __init__(self, storage):
        self.injected = self.lost = self.twice = self.equal = 0
        self.storage = storage
        toy_points.declare(storage, "calm")
        with Trap().set() as trap:
            toy_points.run(storage, "calm")
        self.operations = trap.number
        self.calm = toy_points.outcome(storage, "calm")

    def point(self):
        """Declares the point that the next fault befalls."""
        self.injected += 1
        return toy_points.declare(self.storage, f"fault{self.injected}")

    def folder(self, point_id, storage=None):
        """Returns where a point's record lies."""
        storage = storage or self.storage
        return pathlib.Path(storage.path(toy_points.TRAINER, point_id))

    def check(self, point_id, fault, storage=None):
        """Runs the point once more, undisturbed, and judges what it ends with."""
        storage = storage or self.storage
        with pytest.MonkeyPatch.context() as patch:
            # The process that was killed is this one, which lives.
            patch.setattr(leases, "has_ended", lambda lease: True)
            status = toy_points.run(storage, point_id)
        self.lost += status != "done"
        assert status == "done", fault
        found = toy_points.outcome(storage, point_id)
        self.twice += not toy_points.is_once(found[1])
        assert toy_points.is_once(found[1]), fault
        self.equal += toy_points.is_same(self.calm, found)
        assert toy_points.is_same(self.calm, found), fault
        record = toy_points.read(storage, point_id)
        attempts.begin(storage, record).commit(
            release=True
        )  # Of a longer stop rule, say.
        names = [path.name for path in self.folder(point_id, storage).iterdir()]
        assert not [name for name in names if name.startswith(".")], (fault, names)
        assert len(names) <= MAX_FILES, (fault, names)

    def tally(self):
        """Says in one line what all the faults did."""
        return (
            f"store faults: {self.injected} injected, {self.lost} points lost, "
            f"{self.twice} rows twice, {self.equal} bitwise equal"
        )


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Commits after every chunk, and no waiting."""
    with toy_points.importable(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack, "COMMIT_SECONDS", 0.0)
        patch.setattr(files, "_LEFT_SECONDS", 0.0)
        patch.setattr(attempts.time, "sleep", lambda seconds: None)
        yield


@pytest.fixture(scope="module")
def bench(quick, tmp_path_factory, request):
    storage = files.open_storage(str(tmp_path_factory.mktemp("faults") / "runs"))
    bench = Bench(storage)
    yield bench
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\n{bench.tally()}")


def test_the_traps_see_a_whole_run(bench):
    """Opening, half a write, fsync, renaming: four for each of three objects."""
    assert bench.operations > 4 * 3 * RUNS_CHUNKS
    assert toy_points.is_once(bench.calm[1])


@pytest.mark.parametrize("how_many", FEW_AND_ALL)
def test_a_kill_at_any_file_operation(bench, how_many):
    """Before each one of a whole training run, and in the middle of each write."""
    for place in range(1, bench.operations + 1, 1 if how_many == "all" else 11):
        point_id = bench.point()
        assert run_until_killed(bench.storage, point_id, kill_at(place)) is None
        bench.check(point_id, f"killed at operation {place}")


@pytest.mark.faults
def test_a_real_kill_of_a_process(bench):
    """Signal 9 from within, at operations spread over the run; leases are as real."""
    here, tests = pathlib.Path(__file__).parent, pathlib.Path(__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": f"{tests.parent}:{tests}:{here}"}
    environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # As this process compiles.
    for place in np.linspace(1, bench.operations, 24).astype(int):
        point_id = bench.point()
        code = "import sys, test_store_faults as t; t.die(*sys.argv[1:])"
        done = subprocess.run(
            [sys.executable, "-c", code, bench.storage.root, point_id, str(place)],
            env=environment,
            check=False,
            timeout=120,
        )
        assert done.returncode == -signal.SIGKILL
        record = toy_points.read(bench.storage, point_id)
        assert not record.is_leased()
        bench.check(point_id, f"process killed at operation {place}")


def die(root, point_id, place):
    """Trains a point in this process, which kills itself at a file operation."""

    def spring(number):
        if number == int(place):
            os.kill(os.getpid(), signal.SIGKILL)

    pack.COMMIT_SECONDS = 0.0
    with toy_points.importable(), Trap(spring).set():
        toy_points.run(files.open_storage(root), point_id)


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 1 << int(8 * place)
    path.write_bytes(data)


def truncate(path, place):
    os.truncate(path, int(place * path.stat().st_size))


def delete(path, place):
    path.unlink()


@pytest.mark.parametrize("how_many", FEW_AND_ALL)
@pytest.mark.parametrize("part", ["state", "rows", "manifest"])
@pytest.mark.parametrize("harm", [flip, truncate, delete])
def test_damage_to_the_newest_object(bench, harm, part, how_many):
    """At random places, after any number of chunks, the last included."""
    for seed in range(8 if how_many == "all" else 1):
        generator = random.Random(f"{harm.__name__} {part} {seed}")
        chunks = generator.randint(1, RUNS_CHUNKS)
        point_id = bench.point()
        toy_points.run(
            bench.storage, point_id, should_stop=toy_points.stop_after(chunks)
        )
        path = max(bench.folder(point_id).glob(f"{part}-*"))
        harm(path, generator.random())
        is_unseen = part == "state" and chunks == RUNS_CHUNKS
        if is_unseen:
            continue_from_state(bench.storage, point_id)
        bench.check(point_id, f"{harm.__name__} {path.name} after {chunks} chunks")
        if not is_unseen and (harm, part) != (delete, "manifest"):
            restarted = toy_points.read(bench.storage, point_id).provenance.restarted
            assert path.name in restarted


def continue_from_state(storage, point_id):
    """Reads a done point's state, as a longer stop rule would: damage is noticed."""
    record = toy_points.read(storage, point_id)
    record = store.verify(storage, record, store.PARTS)
    assert record.fallback
    attempts.begin(storage, record).commit(release=True)


@pytest.mark.parametrize("how_many", FEW_AND_ALL)
def test_writes_that_fail_for_a_while(bench, how_many):
    """A commit is tried again until they succeed; the run does not even end."""
    first = 12  # Before that, the point is only being looked at and taken.
    for place in range(first, bench.operations, 4 if how_many == "all" else 40):
        point_id = bench.point()
        places = range(place, place + 1 + place % 5)
        status = run_until_killed(bench.storage, point_id, refuse(places))
        assert status in ("done", "missing"), place
        record = toy_points.read(bench.storage, point_id)
        assert record.failure is None, record.failure
        bench.check(point_id, f"operations {places} failed")


@pytest.mark.parametrize("how_many", FEW_AND_ALL)
def test_writes_that_fail_for_good(bench, how_many, monkeypatch):
    """The point is left missing, not failed, and whoever may write goes on with it.

    "For good" is for longer than a commit is tried again, or until the run ends.
    """
    monkeypatch.setattr(attempts, "RETRY_SECONDS", 0)
    for place in range(1, bench.operations, 5 if how_many == "all" else 49):
        point_id = bench.point()
        places = range(place, place + 1 if place % 2 else 10**6)
        status = run_until_killed(bench.storage, point_id, refuse(places))
        record = toy_points.read(bench.storage, point_id)
        assert status == "missing" or record.reaches(toy_points.STOP), place
        assert record.failure is None
        assert record.manifest.attempt <= 1  # It was no try of the point's.
        bench.check(point_id, f"operations {places} failed, for good")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(tmp_path)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def fill(folder, free_blocks):
    """Writes files of one block until the disk is full, and deletes some again."""
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(OSError):
        for i in range(10**6):
            (folder / str(i)).write_bytes(bytes(4096))
    for path in sorted(folder.iterdir(), key=lambda p: p.stat().st_size)[:1]:
        path.unlink()  # The one that was cut short.
    for path in list(folder.iterdir())[:free_blocks]:
        path.unlink()


@pytest.mark.parametrize("how_many", FEW_AND_ALL)
def test_a_full_disk(bench, small_disk, how_many, monkeypatch):
    """It fills up after any chunk, with room for none or some of a commit's objects."""
    monkeypatch.setattr(attempts, "RETRY_SECONDS", 0)
    storage = files.open_storage(str(small_disk / "runs"))
    every = [(c, free) for c in range(RUNS_CHUNKS) for free in range(3)]
    for chunks, free in every if how_many == "all" else every[1::8]:
        point_id = toy_points.declare(storage, bench.point())
        stop = toy_points.stop_after(chunks)

        def fill_up(stop=stop, free=free):
            if stop():
                fill(small_disk / "filler", free)
            return False

        status = toy_points.run(storage, point_id, should_stop=fill_up)
        assert status == "missing", (chunks, free)
        assert toy_points.read(storage, point_id).failure is None
        for path in (small_disk / "filler").iterdir():
            path.unlink()
        bench.check(point_id, f"full after {chunks} chunks, {free} free", storage)
        for path in bench.folder(point_id, storage).iterdir():
            path.unlink()


@pytest.mark.parametrize("how_many", FEW_AND_ALL)
def test_an_attempt_that_comes_back_after_it_was_taken_over(
    bench, how_many, monkeypatch
):
    """Another trains the point, in part or to its end, between any two operations."""
    for place in range(12, bench.operations, 3 if how_many == "all" else 33):
        point_id = bench.point()
        chunks = (2, RUNS_CHUNKS)[place % 2]

        def take_over(number, place=place, point_id=point_id, chunks=chunks):
            if number == place:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(files, "os", os)
                    patch.setattr(leases, "has_ended", lambda lease: True)
                    stop = toy_points.stop_after(chunks)
                    toy_points.run(bench.storage, point_id, should_stop=stop)

        run_until_killed(bench.storage, point_id, take_over)
        bench.check(point_id, f"taken over at operation {place}")
