"""Packs: points that train together are as if alone, whatever becomes of the others."""

import types

import jax
import numpy as np
import pytest
from toy_points import STOP, assert_same, declare, outcome, run, run_all, stop_after

from bmg_sweeps.records import attempts, store
from bmg_sweeps.running import binding, lane, pack, programs

pytestmark = pytest.mark.usefixtures("toy")

POINTS = {
    "a": {"seed": 1},
    "b": {"seed": 2, "rate": 0.7},
    "c": {"seed": 3, "rate": 0.01},
}


def run_pack(storage, points=POINTS, stops=None, **keywords):
    """Declares points and runs them as one pack."""
    for point_id, values in points.items():
        declare(storage, point_id, **values)
    stops = dict.fromkeys(points, STOP) | (stops or {})
    return run_all(storage, stops, **{"pack": len(points)} | keywords)


def record(storage, point_id):
    return store.read(storage, "toy_trainer", point_id)


def test_a_pack_gives_each_point_the_numbers_it_gets_alone(storage):
    """To rounding: a program of another width may round otherwise."""
    assert run_pack(storage) == dict.fromkeys("abc", "done")
    for point_id, values in POINTS.items():
        run(storage, declare(storage, f"{point_id}-alone", **values))
        packed, alone = (
            outcome(storage, point_id),
            outcome(storage, f"{point_id}-alone"),
        )
        assert packed[1]["env_steps"] == alone[1]["env_steps"]
        np.testing.assert_allclose(
            packed[1]["reward"], alone[1]["reward"], rtol=1e-5, atol=1e-7
        )
        np.testing.assert_allclose(packed[0][0], alone[0][0], rtol=1e-5, atol=1e-7)
        assert record(storage, point_id).provenance.pack_width == 3


def test_a_pack_is_one_program(storage):
    """Three points, one compilation, noted with each."""
    run_pack(storage, {i: v | {"width": 11} for i, v in POINTS.items()})
    assert [record(storage, i).provenance.compilations for i in "abc"] == [1] * 3
    run_pack(storage, {i + "2": v | {"width": 11} for i, v in POINTS.items()})
    assert [record(storage, i + "2").provenance.compilations for i in "abc"] == [0] * 3


def test_a_point_that_turns_nan_leaves_the_others_numbers_untouched(storage):
    """Bitwise those of the same pack without the NaN."""
    run_pack(storage)
    lost = {f"{i}2": v for i, v in POINTS.items()}
    lost["b2"] = POINTS["b"] | {"nan_at": 25}
    statuses = run_pack(storage, lost)
    assert statuses == {"a2": "done", "b2": "diverged", "c2": "done"}
    for point_id in "ac":
        assert_same(outcome(storage, point_id), outcome(storage, f"{point_id}2"))
    assert "is not finite" in record(storage, "b2").failure.message
    assert record(storage, "b2").progress["env_steps"] == 20
    # Its second commit, after that of the beginning, is its last.
    assert "-000002." in record(storage, "b2").objects["state"].name


def test_a_point_that_raises_fails_alone(storage, toy):
    """A fault that can be told to be one point's costs the others nothing."""
    run_pack(storage)
    progress, asked = lane.Lane.progress, []

    def fail(lane, state):
        if lane.record.id == "b2":
            asked.append(1)
            if len(asked) % 5 == 0:
                raise RuntimeError("no luck")
        return progress(lane, state)

    lane.Lane.progress = fail
    try:
        statuses = run_pack(storage, {f"{i}2": v for i, v in POINTS.items()})
    finally:
        lane.Lane.progress = progress
    assert statuses == {"a2": "done", "b2": "failed", "c2": "done"}
    assert record(storage, "b2").failure.message == "no luck"
    for point_id in "ac":
        assert_same(outcome(storage, point_id), outcome(storage, f"{point_id}2"))


def test_a_point_with_a_bad_value_is_refused_alone(storage):
    """It is bound before the pack is made."""
    points = POINTS | {"b": {"rate": -1.0}}
    assert run_pack(storage, points) == {"a": "done", "b": "failed", "c": "done"}
    assert "rate = -1.0" in record(storage, "b").failure.message


def test_a_pack_that_does_not_fit_is_taken_apart(storage, monkeypatch):
    """Out of memory is nobody's fault: each goes on alone, from where it was."""
    advance, chunks = pack.Pack._advance, iter(range(3))

    def run_out(self):
        if self._programs.width > 1 and next(chunks, None) is None:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")
        advance(self)

    monkeypatch.setattr(pack, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(pack.Pack, "_advance", run_out)
    assert run_pack(storage) == dict.fromkeys("abc", "done")
    for point_id in POINTS:
        found = record(storage, point_id)
        assert "RESOURCE_EXHAUSTED" in found.provenance.left_pack
        assert found.provenance.pack_width == 1
        assert found.failure is None
        assert outcome(storage, point_id)[1]["env_steps"] == list(range(5, 61, 5))


def test_a_point_that_is_alone_too_big_fails(storage, monkeypatch):
    """What does not fit alone either is recorded with its reason."""

    def run_out(self):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")

    monkeypatch.setattr(pack.Pack, "_advance", run_out)
    assert run_pack(storage) == dict.fromkeys("abc", "failed")
    assert "RESOURCE_EXHAUSTED" in record(storage, "a").failure.message


@pytest.mark.parametrize("left", ["abc", "ac", "b"])
def test_a_pack_goes_on_to_the_same_bits_with_whoever_is_left(storage, left):
    """The width that made a checkpoint is kept, and filled up where points are over."""
    run_pack(storage)
    again = {f"{i}2": v for i, v in POINTS.items()}
    assert set(run_pack(storage, again, should_stop=stop_after(3)).values()) == {
        "missing"
    }
    stops = {f"{i}2": STOP for i in left}
    assert set(run_all(storage, stops, pack=1).values()) == {"done"}
    for point_id in left:
        assert_same(outcome(storage, point_id), outcome(storage, f"{point_id}2"))
        assert record(storage, f"{point_id}2").provenance.pack_width == 3


def test_each_point_of_a_pack_has_its_own_stop_rule(storage):
    """Those that are over are committed there; the others go on."""
    stops = {"a": {"env_steps": 20}, "b": {"env_steps": 60}, "c": {"env_steps": 40}}
    assert run_pack(storage, stops=stops) == dict.fromkeys("abc", "done")
    reached = {i: record(storage, i).progress["env_steps"] for i in POINTS}
    assert reached == {"a": 20, "b": 60, "c": 40}
    assert outcome(storage, "a")[1]["env_steps"][-1] == 20


def test_a_point_that_another_process_holds_does_not_keep_the_others(storage):
    """It is left out of the pack."""
    for point_id, values in POINTS.items():
        declare(storage, point_id, **values)
    attempts.begin(storage, record(storage, "b"))
    assert run_pack(storage) == {"a": "done", "b": "busy", "c": "done"}


def test_points_beyond_the_width_train_in_the_next_pack(storage):
    """Three points, two at a time."""
    assert run_pack(storage, pack=2) == dict.fromkeys("abc", "done")
    widths = [record(storage, i).provenance.pack_width for i in "abc"]
    assert widths == [2, 2, 1]


@pytest.mark.parametrize(
    ("limit", "in_use", "expected"),
    [(1000, 0, 8), (1000, 500, 3), (1000, 950, 1), (0, 0, 1), (10**6, 0, 8000)],
)
def test_a_pack_fills_most_of_the_memory_that_is_free(limit, in_use, expected):
    """0.8 of the limit, less what is in use, in points of 100 bytes; 1 at least."""
    statistics = {"bytes_limit": limit, "bytes_in_use": in_use}
    device = types.SimpleNamespace(memory_stats=lambda: statistics)
    single = types.SimpleNamespace(num_bytes=100)
    assert programs.fitting_width(single, device) == expected


def test_without_a_width_the_device_decides(storage, monkeypatch):
    """As on a GPU: the program of one point is measured, and two fit."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(programs, "fitting_width", lambda single, device: 2)
    assert run_pack(storage, pack=None) == dict.fromkeys("abc", "done")
    widths = [record(storage, i).provenance.pack_width for i in "abc"]
    assert widths == [2, 2, 1]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [({1: 1.0, 2: 1.2}, [2, 2, 1]), ({1: 1.0, 2: 2.0}, [1, 1, 1])],
)
def test_a_cpu_trains_as_many_as_are_fastest(storage, monkeypatch, seconds, expected):
    """Two in 1.2 times the seconds of one are; in twice its seconds they are not.

    A trial tries the widths out once, and not for each of its packs.
    """
    tried = []

    def chunk_seconds(_, configs, __):
        tried.append(len(configs))
        return seconds[len(configs)]

    monkeypatch.setattr(programs, "_chunk_seconds", chunk_seconds)
    assert run_pack(storage, pack=None) == dict.fromkeys("abc", "done")
    assert [record(storage, i).provenance.pack_width for i in "abc"] == expected
    assert tried == [1, 2]


@pytest.mark.parametrize(("most", "expected"), [(1, 1), (3, 2), (4, 4), (100, 4)])
def test_widths_are_tried_out_until_one_is_no_faster(monkeypatch, most, expected):
    """Powers of 2, up to what is there; 8 take twice the seconds of 4."""
    seconds = {1: 1.0, 2: 1.1, 4: 1.5, 8: 3.0}
    monkeypatch.setattr(
        programs, "_chunk_seconds", lambda _, configs, __: seconds[len(configs)]
    )
    assert programs.fastest_width(None, None, None, most) == expected


def test_the_second_chunk_of_a_pack_is_timed(storage, monkeypatch):
    """A real one, of nothing that is recorded; each look at the clock is twice as late.

    So no other two looks are as far apart.
    """
    looks = [1.0]

    def clock():
        looks.append(2 * looks[-1])
        return looks[-1]

    declare(storage, "a")
    text = store.gin_text(storage, "toy_trainer", "a")
    trainer, config = binding.bind("toy_trainer", text)
    monkeypatch.setattr(programs, "time", types.SimpleNamespace(perf_counter=clock))
    seconds = programs._chunk_seconds(trainer, [pack.as_arrays(config)] * 2, None)
    assert seconds == looks[-1] - looks[-2]
    assert not record(storage, "a").progress


def test_the_compiler_counts_the_bytes_of_a_point(storage):
    """At least those of its state: a walk of 1,000 float32."""
    declare(storage, "a", width=1000)
    trainer, config = binding.bind(
        "toy_trainer", store.gin_text(storage, "toy_trainer", "a")
    )
    single, _ = programs.compiled(trainer, [pack.as_arrays(config)], None)
    assert 4_000 <= single.num_bytes < 1_000_000
    run(storage, "a")
    assert record(storage, "a").provenance.program_bytes == single.num_bytes


def test_a_state_that_is_overwritten_counts_once(storage):
    """It is donated: beside it and what is temporary there are the rows alone."""
    declare(storage, "a", width=10_000)
    trainer, config = binding.bind(
        "toy_trainer", store.gin_text(storage, "toy_trainer", "a")
    )
    single, _ = programs.compiled(trainer, [pack.as_arrays(config)], None)
    temporary = single.train.memory_analysis().temp_size_in_bytes
    assert 40_000 <= single.num_bytes - temporary < 41_000
