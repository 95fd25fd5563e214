"""Atari's points survive: killed at random instants they end as if undisturbed.

And a log of actions that was tampered with is noticed. `make test-faults` kills
processes thirty times on MinAtar, and ten times on a real game.
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
import small_atari
from toy_points import assert_same, outcome, run_all, stop_after

from bmg_sweeps.environments import atari
from bmg_sweeps.records import attempts, files, store
from bmg_sweeps.running import pack
from bmg_sweeps.sweep import point

TRAINER = "atari"
# Its replay of 12 trajectories is full after three rounds, one a call.
FREEWAY = (
    small_atari.PONG
    | small_atari.IMPALA
    | {"game": "freeway", "channels": (), "num_blocks": 0}
)
# The same, with half the games.
FREEWAYS = FREEWAY | {"num_environments": 2, "replay_capacity": 6, "record_interval": 2}
MINATAR = small_atari.MINATAR | small_atari.BMG
ROUND = 2 * 5 * 4  # Frames of two games, five steps, four frames each.
STOP = {"frames": 6 * ROUND}
TRAIN = "import sys, test_atari_faults; test_atari_faults.train(*sys.argv[1:])"
ACTIONS = -3  # Their place among the arrays of a state: logits and checksums follow.


def declare(storage, point_id, values):
    gin_text = point.resolve(TRAINER, values).gin_text()
    store.declare(storage, TRAINER, point_id, gin_text)


def run(storage, point_id, stop=STOP, **keywords):
    return run_all(storage, {point_id: stop}, TRAINER, **keywords)[point_id]


def record(storage, point_id):
    return store.read(storage, TRAINER, point_id)


@pytest.fixture(scope="module")
def freeways(tmp_path_factory):
    """An undisturbed point of a real game, and two that have stopped on the way."""
    storage = files.open_storage(str(tmp_path_factory.mktemp("freeways")))
    for point_id in ("calm", "log"):
        declare(storage, point_id, FREEWAYS)
    assert run(storage, "calm") == "done"
    assert run(storage, "log", should_stop=stop_after(4)) == "missing"
    shutil.copytree(storage.path(TRAINER, "log"), storage.path(TRAINER, "file"))
    return storage


def test_a_log_that_was_tampered_with_begins_its_point_anew(freeways):
    """One action of the log is another one."""
    before = record(freeways, "log")
    state = store.state(freeways, before)
    state[ACTIONS] = state[ACTIONS].copy()
    state[ACTIONS][7] ^= 1
    attempt = attempts.begin(freeways, before)
    attempt.commit(state=state, progress=before.progress, release=True)
    assert run(freeways, "log") == "done"
    assert record(freeways, "log").provenance.restarted == (
        "damaged: saved games: the arrays do not match their checksum; expected those "
        "of freeway, saved under the same settings"
    )
    assert_same(outcome(freeways, "log", TRAINER), outcome(freeways, "calm", TRAINER))


def test_a_byte_that_flips_in_a_file_begins_its_point_anew(freeways):
    """The record itself notices, before any emulator acts."""
    (path,) = pathlib.Path(freeways.path(TRAINER, "file")).glob("state-*")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert run(freeways, "file") == "done"
    assert record(freeways, "file").provenance.restarted.startswith("damaged: ")
    assert_same(outcome(freeways, "file", TRAINER), outcome(freeways, "calm", TRAINER))


def test_emulators_that_lead_elsewhere_begin_a_point_anew(freeways, monkeypatch):
    """As those of another version of ale-py would; the last, for it goes on."""
    monkeypatch.setattr(atari, "span_seed", lambda *_: 1)
    assert run(freeways, "calm", {"frames": 7 * ROUND}) == "done"
    assert record(freeways, "calm").provenance.restarted == (
        "damaged: saved games: acted again, they lead elsewhere; expected the ale-py "
        "and the ROM with which they were saved"
    )


@pytest.mark.faults
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("values", "kills", "frames"),
    [(MINATAR, 30, 24_000), (FREEWAY, 10, 300 * ROUND)],
    ids=["minatar", "freeway"],
)
def test_a_process_that_is_killed_leaves_a_point_that_goes_on(
    storage, tmp_path, values, kills, frames
):
    """Signal 9 at random instants; in the end all arrays and all rows are the same."""
    for point_id in ("calm", "a"):
        declare(storage, point_id, values)
    generator, interrupted, began = random.Random(kills), 0, time.monotonic()
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", TRAIN, storage.root, "a", str(frames)],
            env=environment(tmp_path),
        )
        before = trained(storage, "a")
        while process.poll() is None and trained(storage, "a") == before:
            time.sleep(0.01)
        time.sleep(generator.uniform(0, 0.2))
        interrupted += process.poll() is None
        process.kill()
        assert process.wait() in (0, -signal.SIGKILL)
    reached = trained(storage, "a")
    for point_id in ("a", "calm"):
        words = [sys.executable, "-c", TRAIN, storage.root, point_id, str(frames)]
        subprocess.run(words, env=environment(tmp_path), check=True)
    print(
        f"\n{interrupted} of {kills} kills before the end, the last after {reached:,} "
        f"of {frames:,} frames, {time.monotonic() - began:.0f} s"
    )
    assert interrupted > kills / 2
    assert trained(storage, "a") >= frames
    assert_same(outcome(storage, "a", TRAINER), outcome(storage, "calm", TRAINER))


def trained(storage, point_id):
    """Frames of the last commit; 0 before there is one."""
    return record(storage, point_id).progress.get("frames", 0)


def environment(folder):
    here, tests = pathlib.Path(__file__).parent, pathlib.Path(__file__).parents[1]
    return os.environ | {
        "PYTHONPATH": f"{tests.parent}:{tests}:{here}",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_COMPILATION_CACHE_DIR": str(folder / "programs"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


def train(root, point_id, frames):
    """Trains a point in this process, with a commit after each chunk."""
    pack.COMMIT_SECONDS = 0.0
    run(files.open_storage(root), point_id, {"frames": int(frames)})
