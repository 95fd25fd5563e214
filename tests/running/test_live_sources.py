"""Live sources: a world outside JAX is saved with the state, and goes on bitwise.

A process that trains one is killed at random instants, again and again; `make
test-faults` does so thirty times. The point must end as if nothing had happened.
"""

import contextlib
import importlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import checked_here
import numpy as np
import pytest
import toy_checkout
import toy_points
import toy_variants
from toy_points import STOP, assert_same, declare, outcome, run_all, stop_after

from bmg_sweeps import __main__, paths
from bmg_sweeps.records import attempts, files, store
from bmg_sweeps.running import binding, check, lane, pack, tracing, work_unit

pytestmark = pytest.mark.usefixtures("toy")

TRAINER = "toy_live"
LONG = {"env_steps": 400}
TRAIN = "import sys, test_live_sources; test_live_sources.train(*sys.argv[1:])"
ARRAYS = 3  # Of the state; those of the world come after them.


@pytest.fixture
def live(toy):
    """The trainer's module."""
    return importlib.import_module(f"trainers.{TRAINER}")


def run(storage, point_id, stop=STOP, trainer=TRAINER, **keywords):
    """Declares a point and runs it; returns its status."""
    declare(storage, point_id, trainer)
    return run_all(storage, {point_id: stop}, trainer, **keywords)[point_id]


def read(storage, point_id, trainer=TRAINER):
    return store.read(storage, trainer, point_id)


def outcome_of(storage, point_id):
    return outcome(storage, point_id, TRAINER)


def commit(storage, point_id, state):
    """Commits other arrays in the place of a point's state."""
    record = read(storage, point_id)
    attempt = attempts.begin(storage, record)
    attempt.commit(state=state, progress=record.progress, release=True)


def test_the_arrays_of_the_world_are_committed_after_those_of_the_state(storage):
    """Its log grows by a byte for each step."""
    for n in (20, 60):
        run(storage, "a", {"env_steps": n})
        state = outcome_of(storage, "a")[0]
        assert [array.shape for array in state[:ARRAYS]] == [(), (2,), ()]
        assert [array.shape for array in state[ARRAYS:]] == [(2,), (n,), ()]
    assert 0 < state[ARRAYS + 1].sum() < 60


def test_a_seed_decides_the_world(storage):
    """Worlds of two seeds differ, and those of one are equal, after any others."""
    for point_id, seed in (("a", 1), ("b", 2), ("c", 1)):
        declare(storage, point_id, TRAINER, seed=seed)
    assert set(run_all(storage, dict.fromkeys("abc", STOP), TRAINER).values()) == {
        "done"
    }
    assert_same(outcome_of(storage, "a"), outcome_of(storage, "c"))
    assert outcome_of(storage, "a")[1] != outcome_of(storage, "b")[1]


def test_a_world_acts_with_the_state_that_training_goes_on_from(
    storage, live, monkeypatch
):
    """Once for each call of `train`, by the trainer's own `act`, step by step."""
    reading, biases = live.World.read, []

    def compare(self, act, state):
        biases.append(float(state.bias))
        config = binding.bind(TRAINER, toy_variants.gin_text(TRAINER))[1]
        for step in range(5):
            action, logit = act(np.float32(0.3), step)
            expected = live.act(config, state, np.float32(0.3), step)
            assert (int(action), float(logit)) == (
                int(expected[0]),
                pytest.approx(float(expected[1])),
            )
        return reading(self, act, state)

    monkeypatch.setattr(live.World, "read", compare)
    assert run(storage, "a") == "done"
    assert len(biases) == len(set(biases)) == 6


@pytest.fixture
def events(live, monkeypatch):
    """What becomes of worlds, in order."""
    events, open_source = [], live.open_source

    @contextlib.contextmanager
    def watched(structure):
        events.append("open")
        with open_source(structure) as source:
            yield source
        events.append("close")

    monkeypatch.setattr(live, "open_source", watched)
    return events


def test_each_attempt_on_a_point_has_a_world_of_its_own(storage, events):
    """It is opened once, and closed before another is opened."""
    for point_id in "ab":
        declare(storage, point_id, TRAINER)
    run_all(storage, dict.fromkeys("ab", STOP), TRAINER)
    assert events == ["open", "close"] * 2
    run(storage, "a", LONG)
    assert events == ["open", "close"] * 3


@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_a_world_that_refuses_begins_anew_with_its_point(storage, chunks, events):
    """A log that was tampered with leads elsewhere; half of it was acted by then."""
    run(storage, "calm")
    run(storage, "a", should_stop=stop_after(chunks))
    *state, seed, log, here = [*outcome_of(storage, "a")[0], *[None] * 3][: ARRAYS + 3]
    if chunks == 0:
        seed, log, here = np.zeros(2, np.uint32), np.uint8([1]), np.float32(0)
    commit(storage, "a", [*state[:ARRAYS], seed, 1 - log, here])
    events.clear()
    assert run(storage, "a") == "done"
    assert events == ["open", "close"] * 2
    assert_same(outcome_of(storage, "a"), outcome_of(storage, "calm"))
    restarted = read(storage, "a").provenance.restarted
    assert restarted.startswith("damaged: the actions lead to ")
    assert "\n" not in restarted


@pytest.mark.parametrize("trainer", [TRAINER, "toy_trainer"])
def test_a_state_with_arrays_that_nothing_takes_does_not_fit(storage, trainer):
    """Neither where the state itself has other shapes, nor where no world is live."""
    run(storage, "a", {"env_steps": 20}, trainer)
    state = store.state(storage, read(storage, "a", trainer))
    record = read(storage, "a", trainer)
    more = [*state, np.zeros(4)] if trainer == "toy_trainer" else [np.zeros(9), *state]
    attempts.begin(storage, record).commit(state=more, release=True)
    assert run(storage, "a", trainer=trainer) == "failed"
    assert run(storage, "a", trainer=trainer, retry=True) == "done"
    assert "does not fit" in read(storage, "a", trainer).provenance.restarted


def test_points_with_live_sources_train_alone(storage):
    """Also those that were asked for as a pack, without a word from a launch."""
    for point_id in "ab":
        declare(storage, point_id, TRAINER)
    for width in (2, None):
        stop = {"env_steps": 20 if width else 40}
        statuses = run_all(storage, dict.fromkeys("ab", stop), TRAINER, pack=width)
        assert statuses == dict.fromkeys("ab", "done")
        assert read(storage, "a").provenance.pack_width == 1
    assert "a pack of 2; expected 1 point" in read(storage, "a").provenance.left_pack


def test_the_device_decides_on_one_point(storage, monkeypatch):
    """Whatever its memory would hold."""
    monkeypatch.setattr(work_unit.programs, "fitting_width", lambda *_: 4)
    record = read(storage, declare(storage, "a", TRAINER))
    assert work_unit._best_width(storage, [record]) == 1


def test_a_launch_as_a_pack_is_refused(tmp_path, monkeypatch, capsys):
    """In one line, before anything starts."""
    checked_here.patch(monkeypatch)
    (tmp_path / "toy_live.gin").write_text(
        toy_checkout.GIN.replace("toy_trainer", TRAINER)
    )
    sweep = toy_checkout.SWEEP.replace("toy_trainer", TRAINER)
    sweep = sweep.format(points="product(seed=(0, 1))", env_steps=60)
    (tmp_path / "mine.py").write_text(sweep)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "TRAINERS", pathlib.Path(toy_points.__file__).parent)
    monkeypatch.setattr(paths, "GIN", tmp_path)
    words = ["launch", "mine.py", "--storage", "runs", "--dry-run"]
    assert __main__.main([*words, "--pack", "1"]) == 0
    assert __main__.main([*words, "--pack", "2"]) == 2
    said = "--pack 2: expected 1, as the source of trainer toy_live is live: "
    assert said in capsys.readouterr().err


REFUSED = {
    "no act": (
        ("def act(", "def _act("),
        "its source is live, and it has no act; expected act(config, state, observation"
        ", step) -> actions",
    ),
    "an evaluation": (
        ("def progress(", "def evaluate(*_):\n    pass\n\n\ndef progress("),
        "its source is live, and it has evaluate; expected one of them",
    ),
    "a world that cannot save itself": (
        ("def save(", "def _save("),
        "it has act, and its source is not live; expected one with observes, delivers, "
        "read, save and restore",
    ),
    "no source": (
        ("def open_source(", "def _open_source("),
        "it has act, and its source is not live; expected one with observes, delivers, "
        "read, save and restore",
    ),
}


@pytest.mark.parametrize(("change", "said"), REFUSED.values(), ids=REFUSED)
def test_a_trainer_that_is_half_live_is_refused(tmp_path, storage, change, said):
    """Before a launch, and by a point that was not checked."""
    with toy_variants.importable(tmp_path, "toy_half", change, of=TRAINER) as name:
        points = [(name, toy_variants.gin_text(name))]
        found = check.answer(
            {"points": points, "stops": [{}], "examples": [0], "sweeps": []}
        )
        assert run(storage, "a", trainer=name) == "failed"
    assert found["problem"] == (None, f"trainer toy_half: {said}")
    assert read(storage, "a", name).failure.message == f"trainer toy_half: {said}"


def test_a_trainer_may_have_a_world_for_some_structures_only(tmp_path):
    """Then it has an `act` that the others do not use."""
    change = ("yield World(structure.width)", "yield None")
    seen = ("source[", '{"past": jnp.zeros(3), "here": jnp.zeros(())}[')
    with toy_variants.importable(
        tmp_path, "toy_some", change, seen, of=TRAINER
    ) as name:
        outline = tracing.outline(*binding.bind(name, toy_variants.gin_text(name)))
    assert not outline.is_live


def test_an_act_that_does_not_fit_what_is_observed_is_named(tmp_path):
    """By its line; the world is opened for that, and never read."""
    broken = ("config.rate * observation", "observation @ jnp.zeros(3)")
    unread = (
        "if self._seed is None:\n            self._seed",
        "self.no\n        self._seed",
    )
    with toy_variants.importable(
        tmp_path, "toy_broken", broken, unread, of=TRAINER
    ) as name:
        points = [(name, toy_variants.gin_text(name))]
        found = check.answer(
            {"points": points, "stops": [{}], "examples": [0], "sweeps": []}
        )
    lines = (tmp_path / "toy_broken.py").read_text().splitlines()
    number = 1 + lines.index("    logit = state.bias - observation @ jnp.zeros(3)")
    place, problem = found["problem"]
    assert place == 0
    assert problem.startswith(f"trainers/toy_broken.py, line {number}: ")


def test_training_seconds_count_acting(storage, live, monkeypatch):
    """Six chunks, each with a world that takes its time; going back does not count."""
    run(storage, "warm")
    acting, restoring = live.World.read, live.World.restore

    def slowly(self, act, state):
        time.sleep(0.05)
        return acting(self, act, state)

    def restore_slowly(self, arrays):
        time.sleep(0.5)
        restoring(self, arrays)

    monkeypatch.setattr(live.World, "read", slowly)
    monkeypatch.setattr(live.World, "restore", restore_slowly)
    run(storage, "a", {"env_steps": 20})
    run(storage, "a")
    assert 6 * 0.05 <= read(storage, "a").hours * 3600 < 0.3 + 0.5


@pytest.mark.parametrize(
    ("commit_seconds", "pause"),
    [(0.0, 30.0), (0.5, 30.0), (1.0, 50.0), (10.0, pack.LONGEST_SECONDS)],
)
def test_commits_that_are_slow_come_rarely(commit_seconds, pause):
    """They take 2 % of the time, unless a kill would lose too much."""
    assert pack._pause_after(commit_seconds) == pause


def test_a_slow_commit_makes_the_next_one_wait(storage, monkeypatch):
    """Commits of 20 ms are 1 s apart, where 0.4 ms were 2 % of the time."""
    settle, commits = lane.Lane.settle, []

    def slowly(self, state, is_stopping, is_due):
        if is_due:
            commits.append(time.monotonic())
            time.sleep(0.02)
        settle(self, state, is_stopping, is_due)

    monkeypatch.setattr(lane.Lane, "settle", slowly)
    monkeypatch.setattr(pack, "COMMIT_SECONDS", 0.02)
    monkeypatch.setattr(pack, "CHEAP_SECONDS", 0.0004)
    run(storage, "a", {"env_steps": 2_000})
    assert 1 <= len(commits) <= 5


@pytest.mark.parametrize("kills", [2, pytest.param(30, marks=pytest.mark.faults)])
def test_a_process_that_is_killed_leaves_a_world_that_goes_on(storage, kills):
    """Signal 9 at random instants; in the end state, world and rows are the same."""
    stop = {"env_steps": 500 * kills}
    run(storage, "calm", stop)
    declare(storage, "a", TRAINER)
    generator, interrupted = random.Random(kills), 0
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", TRAIN, storage.root, str(500 * kills)],
            env=environment(),
        )
        before = newest(storage)
        while process.poll() is None and newest(storage) == before:
            time.sleep(0.01)
        time.sleep(generator.uniform(0, 0.1))
        interrupted += process.poll() is None
        process.kill()
        assert process.wait() in (0, -signal.SIGKILL)
    assert interrupted > kills / 2
    assert run(storage, "a", stop) == "done"
    assert_same(outcome_of(storage, "a"), outcome_of(storage, "calm"))


def newest(storage):
    """Names the last commit's state."""
    return max(pathlib.Path(storage.path(TRAINER, "a")).glob("state-*"), default=None)


def environment():
    here, tests = pathlib.Path(__file__).parent, pathlib.Path(__file__).parents[1]
    return os.environ | {
        "PYTHONPATH": f"{tests.parent}:{tests}:{here}",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # As this process compiles.
    }


def train(root, env_steps):
    """Trains the point in this process, with a commit after each chunk."""
    pack.COMMIT_SECONDS = 0.0
    with toy_points.importable():
        storage = files.open_storage(root)
        run_all(storage, {"a": {"env_steps": int(env_steps)}}, TRAINER)
