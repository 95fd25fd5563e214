"""Evaluation: on both splits, when it is due, in tables and on a clock of its own."""

import time

import pytest
from toy_points import STOP, assert_same, declare, outcome, run_all, stop_after

from bmg_sweeps.records import store
from bmg_sweeps.running import lane, pack

pytestmark = pytest.mark.usefixtures("toy")

TRAINER = "toy_evaluated"


def run(storage, point_id, stop=STOP, interval=20, width=3, **keywords):
    declare(storage, point_id, TRAINER, evaluation_interval=interval, width=width)
    return run_all(storage, {point_id: stop}, TRAINER, **keywords)[point_id]


def record(storage, point_id):
    return store.read(storage, TRAINER, point_id)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [(20, [20, 40, 60]), (10, [10, 20, 30, 40, 50, 60]), (25, [30, 50]), (100, [])],
)
def test_a_point_is_evaluated_after_each_interval(storage, interval, expected):
    """At the end of the chunk of ten steps in which another multiple is passed."""
    assert run(storage, "a", interval=interval) == "done"
    _, rows, validation, test = outcome(storage, "a", TRAINER)
    assert rows["env_steps"] == list(range(5, 61, 5))
    assert validation.get("env_steps", []) == expected
    assert test.get("env_steps", []) == expected


@pytest.mark.parametrize("interval", [5, 7, 9])
def test_no_evaluation_is_left_out_silently(storage, interval):
    """A chunk is ten steps: sooner or later one passes two multiples."""
    assert run(storage, "a", interval=interval) == "failed"
    assert record(storage, "a").failure.message == (
        f"evaluation_interval = {interval}: expected at least 10, the env_steps of one "
        f"chunk"
    )


def test_a_point_of_a_pack_that_leaves_out_evaluations_fails_alone(storage):
    for point_id, interval in (("a", 20), ("b", 5)):
        declare(storage, point_id, TRAINER, evaluation_interval=interval)
    statuses = run_all(storage, {"a": STOP, "b": STOP}, TRAINER, pack=2)
    assert statuses == {"a": "done", "b": "failed"}


def test_the_splits_have_columns_and_tables_of_their_own(storage):
    """The toy's reward, and its negative: test numbers are in no table but theirs."""
    run(storage, "a")
    _, rows, validation, test = outcome(storage, "a", TRAINER)
    assert set(validation) == {"env_steps", "validation_reward"}
    assert set(test) == {"env_steps", "test_reward"}
    rewards = dict(zip(rows["env_steps"], rows["reward"], strict=True))
    assert validation["validation_reward"] == [rewards[n] for n in (20, 40, 60)]
    assert test["test_reward"] == [-rewards[n] for n in (20, 40, 60)]


@pytest.mark.parametrize("chunks", [1, 2, 3, 5])
def test_a_stopped_point_is_evaluated_at_the_same_steps(storage, chunks):
    """Whether it stops just before an evaluation, or just after."""
    run(storage, "a")
    assert run(storage, "b", should_stop=stop_after(chunks)) == "missing"
    assert run(storage, "b") == "done"
    assert_same(outcome(storage, "a", TRAINER), outcome(storage, "b", TRAINER))


def test_points_of_a_pack_are_evaluated_each_at_its_own_steps(storage):
    """One goes on from 30 steps, in a pack with its like at other intervals."""
    for point_id, interval in (("a", 20), ("b", 30)):
        declare(storage, point_id, TRAINER, seed=1, evaluation_interval=interval)
    statuses = run_all(storage, {"a": STOP, "b": STOP}, TRAINER, pack=2)
    assert statuses == {"a": "done", "b": "done"}
    a, b = outcome(storage, "a", TRAINER), outcome(storage, "b", TRAINER)
    assert a[2]["env_steps"] == [20, 40, 60]
    assert b[2]["env_steps"] == [30, 60]
    assert a[2]["validation_reward"][-1] == b[2]["validation_reward"][-1]


def test_training_time_has_neither_evaluation_nor_compilation_in_it(
    storage, monkeypatch
):
    """Both take a second here and training milliseconds; they are noted apart."""
    run(storage, "warm", width=13)
    evaluate = pack.Pack._evaluate

    def slowly(self):
        programs = self._programs.evaluate
        slow = {split: _slow(program) for split, program in programs.items()}
        object.__setattr__(self._programs, "evaluate", slow)
        try:
            evaluate(self)
        finally:
            object.__setattr__(self._programs, "evaluate", programs)

    monkeypatch.setattr(pack.Pack, "_evaluate", slowly)
    run(storage, "a", width=13)
    found = record(storage, "a")
    assert found.provenance.evaluation_seconds >= 6 * 0.2
    assert found.hours * 3600 < 0.2
    assert found.provenance.compile_seconds < 0.2
    assert record(storage, "warm").provenance.compile_seconds > 0.05
    seconds = store.rows(storage, found, "validation")["training_seconds"]
    assert seconds[-1] == pytest.approx(found.hours * 3600, abs=1e-3)


def _slow(program):
    def evaluate(*arguments):
        time.sleep(0.2)
        return program(*arguments)

    return evaluate


def test_the_seconds_of_earlier_attempts_count(storage, monkeypatch):
    """Two splits of a second each, once by 30 steps and three times by 60."""
    add = lane.Lane.add_evaluation

    def add_a_second(lane, state, split, metrics, seconds):
        add(lane, state, split, metrics, 1.0)

    monkeypatch.setattr(lane.Lane, "add_evaluation", add_a_second)
    run(storage, "a", should_stop=stop_after(3))
    assert record(storage, "a").provenance.evaluation_seconds == 2
    run(storage, "a")
    assert record(storage, "a").provenance.evaluation_seconds == 6


def test_a_diverged_point_is_not_evaluated(storage):
    """There is no validation of what was lost."""
    declare(storage, "a", TRAINER, evaluation_interval=10, nan_at=25)
    assert run_all(storage, {"a": STOP}, TRAINER) == {"a": "diverged"}
    assert outcome(storage, "a", TRAINER)[2]["env_steps"] == [10, 20]


def test_an_evaluation_that_raises_is_the_points_failure(storage, monkeypatch):
    """With its reason, like any other."""

    def fail(self, *arguments):
        raise RuntimeError("no data")

    monkeypatch.setattr(lane.Lane, "add_evaluation", fail)
    assert run(storage, "a") == "failed"
    assert record(storage, "a").failure.message == "no data"
