"""The loop: a seed fixes everything, and neither kills nor neighbours change it."""

import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy_variants
from toy_points import STOP, assert_same, declare, outcome, run, run_all, stop_after

from bmg_sweeps.records import attempts, encoding, files, leases, manifests, store
from bmg_sweeps.running import check, lane, pack, programs, work_unit

pytestmark = pytest.mark.usefixtures("toy")


def test_a_point_trains_to_its_stop_rule_and_leaves_its_rows(storage):
    """Rows at every fifth step, each once, with the time that training took."""
    assert run(storage, declare(storage, "a")) == "done"
    rows = store.rows(storage, store.read(storage, "toy_trainer", "a"))
    assert rows["env_steps"] == list(range(5, 61, 5))
    assert rows["training_seconds"] == sorted(rows["training_seconds"])
    assert run(storage, "a") == "done"
    assert store.read(storage, "toy_trainer", "a").manifest.attempt == 1


def test_a_float32_is_written_with_its_own_digits_and_read_back_exactly(storage):
    """The rows hold the numbers themselves, not roundings of them."""
    run(storage, declare(storage, "a"))
    state, rows, *_ = outcome(storage, "a")
    assert np.float32(rows["reward"][-1]) == np.sum(state[0])


def test_a_seed_fixes_everything(storage):
    """Same seed, same bits; another seed, other rows."""
    for point_id, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(storage, declare(storage, point_id, seed=seed))
    assert_same(outcome(storage, "a"), outcome(storage, "b"))
    assert outcome(storage, "a")[1] != outcome(storage, "c")[1]


def test_no_point_leaves_anything_to_the_next(storage):
    """A, B, A in one process: the same numbers twice, and B's own between them."""
    for point_id, rate in (("a", 0.1), ("b", 2.0), ("c", 0.1)):
        run(storage, declare(storage, point_id, rate=rate))
    assert_same(outcome(storage, "a"), outcome(storage, "c"))
    a, b = outcome(storage, "a")[1]["reward"], outcome(storage, "b")[1]["reward"]
    np.testing.assert_allclose(b, np.multiply(a, 20), rtol=1e-5)


def test_a_trial_lists_no_folder_of_the_points_of_others(storage, monkeypatch):
    """Where there are ten thousand of them, that would take longer than the trial."""
    declare(storage, "a")
    monkeypatch.delattr(type(storage), "folders")
    assert run(storage, "a") == "done"


def test_a_field_that_is_not_bound_is_not_the_last_points(storage):
    """Gin's bindings are global; a text that forgets one must fail, not inherit it."""
    run(storage, declare(storage, "a"))
    text = store.gin_text(storage, "toy_trainer", "a").replace("toy_trainer.rate", "#")
    store.declare(storage, "toy_trainer", "b", text)
    assert run(storage, "b") == "failed"
    assert "rate" in store.read(storage, "toy_trainer", "b").failure.message


def test_a_point_of_a_known_structure_compiles_nothing(storage, monkeypatch):
    """By JAX's own count, from the second point of a structure on."""
    monkeypatch.setattr(programs, "_COMPILED", {})  # Those of other tests may go.
    compilations = []

    def listen(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            compilations.append(duration)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        run(storage, declare(storage, "a", width=9))
        assert compilations
        compilations.clear()
        run(storage, declare(storage, "b", width=9, rate=0.7, seed=3))
        assert not compilations
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def test_points_of_one_structure_compile_once(storage):
    """Rates, seeds and flags are data; only the width is another program."""
    for point_id, values in {
        "a": {"width": 7},
        "b": {"width": 7, "rate": 0.5, "seed": 9},
        "c": {"width": 7, "nan_at": 1000},
        "d": {"width": 8},
    }.items():
        run(storage, declare(storage, point_id, **values))
    records = [store.read(storage, "toy_trainer", i) for i in "abcd"]
    assert [r.provenance.compilations for r in records] == [1, 0, 0, 1]


@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_a_stopped_point_goes_on_to_the_same_bits(storage, chunks):
    """Commit, leave, come back: nothing tells it from an undisturbed run."""
    run(storage, declare(storage, "a"))
    declare(storage, "b")
    assert run(storage, "b", should_stop=stop_after(chunks)) == "missing"
    assert outcome(storage, "b")[1].get("env_steps", []) == list(
        range(5, 10 * chunks + 1, 5)
    )
    assert run(storage, "b") == "done"
    assert_same(outcome(storage, "a"), outcome(storage, "b"))


def test_a_kill_between_commits_loses_only_the_work_since(storage, monkeypatch):
    """A process that dies without a word: the next attempt ends with the same bits."""
    run(storage, declare(storage, "a"))
    declare(storage, "b")
    monkeypatch.setattr(pack, "COMMIT_SECONDS", 0.0)
    chunks = iter(range(5))  # Asked before the attempt, and after 0 … 3 chunks.

    def die():
        if next(chunks, None) is None:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        run(storage, "b", should_stop=die)
    monkeypatch.setattr(leases, "has_ended", lambda lease: True)
    assert store.read(storage, "toy_trainer", "b").progress["env_steps"] == 30
    assert run(storage, "b") == "done"
    assert_same(outcome(storage, "a"), outcome(storage, "b"))


def test_columns_that_come_and_go_leave_rows_whole(storage, toy, monkeypatch):
    """Of code that was changed in between: None stands where a column is not."""
    run(storage, declare(storage, "a"), stop={"env_steps": 20})
    train = toy.train

    def renamed(config, state, source):
        state, rows = train(config, state, source)
        rows["loss"] = rows.pop("reward")
        return state, rows

    monkeypatch.setattr(toy, "train", renamed)
    programs._COMPILED.clear()
    try:
        assert run(storage, "a", stop={"env_steps": 40}) == "done"
    finally:
        programs._COMPILED.clear()
    rows = store.rows(storage, store.read(storage, "toy_trainer", "a"))
    assert rows["env_steps"] == list(range(5, 41, 5))
    assert rows["reward"][4:] == rows["loss"][:4] == [None] * 4
    assert None not in rows["reward"][:4] + rows["loss"][4:]
    assert {len(column) for column in rows.values()} == {8}


def test_a_longer_stop_rule_continues_the_record(storage):
    """20 steps and then 60 are the same as 60."""
    run(storage, declare(storage, "a"))
    declare(storage, "b")
    run(storage, "b", {"env_steps": 20})
    run(storage, "b")
    assert_same(outcome(storage, "a"), outcome(storage, "b"))


def test_a_point_that_raises_is_tried_again_from_its_checkpoint(storage, toy):
    """One exception costs one try; the numbers are those of a calm run."""
    run(storage, declare(storage, "a"))
    toy.FAILURES.append(RuntimeError("lost the node"))
    assert run(storage, declare(storage, "b")) == "done"
    assert store.read(storage, "toy_trainer", "b").failure is None
    assert_same(outcome(storage, "a"), outcome(storage, "b"))


def test_a_point_that_keeps_raising_fails_with_its_reason(storage, toy):
    """Type, first line and last frames; further launches leave it alone."""
    toy.FAILURES += [RuntimeError("no luck\nsecond line")] * store.TRIES
    assert run(storage, declare(storage, "a")) == "failed"
    failure = store.read(storage, "toy_trainer", "a").failure
    assert (failure.type, failure.message) == ("RuntimeError", "no luck")
    assert "toy_trainer.py" in failure.frames[-1]
    assert "/" not in "".join(failure.frames)
    assert run(storage, "a") == "failed"
    assert run(storage, "a", retry=True) == "done"


def test_a_point_that_fails_keeps_what_it_had_reached(storage, toy, monkeypatch):
    """Its rows count up to there: the progress is that of the last commit."""
    advance, chunks = lane.Lane.advance, iter(range(2))

    def fail_on_the_third_chunk(lane, *arguments):
        if next(chunks, None) is None:
            raise RuntimeError("late")
        advance(lane, *arguments)

    monkeypatch.setattr(pack, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(lane.Lane, "advance", fail_on_the_third_chunk)
    assert run(storage, declare(storage, "a")) == "failed"
    record = store.read(storage, "toy_trainer", "a")
    assert record.progress["env_steps"] == 20
    assert outcome(storage, "a")[1]["env_steps"][-1] == 20


def test_a_point_that_fails_does_not_disturb_the_next(storage, toy):
    """Its neighbour in the process trains as if alone."""
    run(storage, declare(storage, "a"))
    toy.FAILURES += [MemoryError()] * store.TRIES
    run(storage, declare(storage, "b"))
    run(storage, declare(storage, "c"))
    assert_same(outcome(storage, "a"), outcome(storage, "c"))


def test_a_point_that_turns_nan_is_a_result(storage):
    """It is recorded with the step and what was lost, and is not tried again."""
    launch = {"code": "abc"}
    declare(storage, "a", nan_at=20)
    assert run(storage, "a", launch=launch) == "diverged"
    record = store.read(storage, "toy_trainer", "a")
    assert "reward is not finite" in record.failure.message
    assert outcome(storage, "a")[1]["reward"][-1] is None
    assert run(storage, "a", launch=launch) == "diverged"
    assert store.read(storage, "toy_trainer", "a").manifest.attempt == 1
    assert run(storage, "a", launch={"code": "other"}) == "diverged"
    assert store.read(storage, "toy_trainer", "a").manifest.attempt == 2


def test_a_point_that_turns_nan_in_its_last_chunk_is_not_done(storage):
    """The chunk that lost it does not count: 50 of 60 steps, and no score beyond."""
    assert run(storage, declare(storage, "a", nan_at=55)) == "diverged"
    record = store.read(storage, "toy_trainer", "a")
    assert record.progress["env_steps"] == 50
    assert store.status(record, STOP) == "diverged"


def test_a_launch_that_was_stopped_begins_nothing(storage):
    """Trials that were still waiting leave no record, and no attempt."""
    assert run(storage, declare(storage, "a"), should_stop=lambda: True) == "missing"
    assert store.read(storage, "toy_trainer", "a").manifest == manifests.EMPTY


def test_folders_in_a_message_stay_on_the_machine(storage, toy):
    """A record names the file that was missing, not where its user keeps it."""
    toy.FAILURES += [FileNotFoundError("no '/home/me/data/x.npz'")] * store.TRIES
    run(storage, declare(storage, "a"))
    failure = store.read(storage, "toy_trainer", "a").failure
    assert failure.message == "no 'x.npz'"


def test_a_truncated_checkpoint_restarts_its_point(storage):
    """Damage costs the work, not the point; the record says that it happened."""
    run(storage, declare(storage, "a"))
    run(storage, declare(storage, "b"), {"env_steps": 20})
    path = next(pathlib.Path(storage.path("toy_trainer", "b")).glob("state-*"))
    path.write_bytes(path.read_bytes()[:100])
    assert run(storage, "b") == "done"
    restarted = store.read(storage, "toy_trainer", "b").provenance.restarted
    assert path.name in restarted
    assert_same(outcome(storage, "a"), outcome(storage, "b"))


def commit_misfit(storage, point_id):
    """Commits a state that no toy has: four numbers where it has three."""
    record = store.read(storage, "toy_trainer", point_id)
    attempts.begin(storage, record).commit(
        progress={"env_steps": 20},
        state=[np.zeros(4, np.float32), np.zeros(2, np.uint32), np.int32(20)],
        rows={"env_steps": [20], "training_seconds": [1.0]},
        provenance={"revision": "0123456789ab", "code": "4567"},
        release=True,
    )


def test_a_checkpoint_of_other_code_is_not_lost_without_a_word(storage):
    """Arrays that do not fit the state are not forced into it, nor thrown away."""
    run(storage, declare(storage, "a"))
    commit_misfit(storage, declare(storage, "b"))
    kept = store.read(storage, "toy_trainer", "b").objects
    for retry in (False, False):
        assert run(storage, "b", retry=retry) == "failed"
    record = store.read(storage, "toy_trainer", "b")
    assert record.failure.message == (
        "the checkpoint does not fit this code, but that of revision 0123456789ab, "
        "kept as .code/4567.zip; --retry begins anew, and loses what there is"
    )
    assert record.objects == kept
    assert store.state(storage, record)[0].shape == (4,)
    assert run(storage, "b", retry=True) == "done"
    assert (
        "does not fit" in store.read(storage, "toy_trainer", "b").provenance.restarted
    )
    assert_same(outcome(storage, "a"), outcome(storage, "b"))


def test_a_retry_of_other_points_loses_no_checkpoint_that_does_not_fit(storage):
    """It is told first; only a launch after that begins anew."""
    commit_misfit(storage, declare(storage, "b"))
    assert run(storage, "b", retry=True) == "failed"
    assert run(storage, "b", retry=True) == "done"


def test_a_process_keeps_few_programs(storage, monkeypatch):
    """Of hundreds of structures all would not fit; the one used last goes last."""
    monkeypatch.setattr(programs, "_COMPILED", {})
    monkeypatch.setattr(programs, "MAX_PROGRAMS", 2)
    kept, compilations = [], []
    for i, width in enumerate((1, 2, 1, 3, 1, 2)):
        assert run(storage, declare(storage, f"p{i}", width=width)) == "done"
        kept.append(len(programs._COMPILED))
        provenance = store.read(storage, "toy_trainer", f"p{i}").provenance
        compilations.append(provenance.compilations)
    assert kept == [1, 2, 2, 2, 2, 2]
    assert compilations == [1, 1, 0, 1, 0, 1]
    assert_same(outcome(storage, "p0"), outcome(storage, "p4"))


FLAG = "--xla_cpu_enable_fast_math=true"
FOLDER = "--xla_gpu_cuda_data_dir=/usr/local/cuda"  # A record keeps no folders.


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("", FLAG, f"XLA_FLAGS='{FLAG}': expected '', as it was trained so far"),
        (FLAG, "", f"XLA_FLAGS='': expected '{FLAG}', as it was trained so far"),
        (FLAG, FLAG, None),
        (FOLDER, FOLDER, None),
        ("", "--xla_dump_to=somewhere", None),
    ],
)
def test_a_record_goes_on_under_the_flags_that_it_began_with(
    storage, monkeypatch, before, after, said
):
    """They may change the numbers, and a row does not say under which it was made."""
    declare(storage, "a")
    monkeypatch.setenv("XLA_FLAGS", before)
    run(storage, "a", {"env_steps": 20})
    monkeypatch.setenv("XLA_FLAGS", after)
    assert run(storage, "a") == ("failed" if said else "done")
    record = store.read(storage, "toy_trainer", "a")
    assert (record.failure is not None) == (said is not None)
    if said:
        assert said in record.failure.message
        assert record.progress["env_steps"] == 20
        monkeypatch.setenv("XLA_FLAGS", before)
        assert run(storage, "a", retry=True) == "done"
        assert store.read(storage, "toy_trainer", "a").provenance.restarted is None


def test_the_shell_does_not_decide_the_precision(storage):
    """Nor which numbers a seed draws: the bits are those of a plain environment."""
    run(storage, declare(storage, "a"))
    shell = {
        "JAX_ENABLE_X64": "1",
        "JAX_DEFAULT_PRNG_IMPL": "rbg",
        "JAX_THREEFRY_PARTITIONABLE": "0",
        "JAX_RANDOM_SEED_OFFSET": "7",
    }
    code = (
        "import sys, toy_points; from bmg_sweeps.records import files;"
        "storage = files.open_storage(sys.argv[1]);"
        "trainers = toy_points.importable(); trainers.__enter__();"
        "toy_points.run(storage, toy_points.declare(storage, 'b'))"
    )
    tests = pathlib.Path(__file__).parents[1]
    path = f"{tests.parent}:{tests}"
    environment = os.environ | shell | {"PYTHONPATH": path}
    environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # As this process compiles.
    subprocess.run(
        [sys.executable, "-c", code, storage.root], env=environment, check=True
    )
    assert_same(outcome(storage, "a"), outcome(storage, "b"))


def test_a_point_that_another_process_holds_is_left_alone(storage):
    """Busy is not a failure."""
    declare(storage, "a")
    attempts.begin(storage, store.read(storage, "toy_trainer", "a"))
    assert run(storage, "a") == "busy"


@pytest.mark.parametrize(
    ("owner", "is_only", "expected"),
    [
        ("launch abc", True, "done"),
        ("launch abc", False, "busy"),
        ("launch def", True, "busy"),
    ],
)
def test_a_trial_takes_over_from_its_launchs_own(
    storage, monkeypatch, owner, is_only, expected
):
    """It takes the place of one that died on a machine of which it sees nothing."""
    declare(storage, "a")
    record = store.read(storage, "toy_trainer", "a")
    attempts.begin(storage, record, owner)
    monkeypatch.setattr(leases, "has_ended", lambda lease: False)
    task = work_unit.Task(
        trainer="toy_trainer",
        stops={"a": STOP},
        is_only=is_only,
        launch={"launch": "abc"},
    )
    assert work_unit.run(storage, task) == {"a": expected}


def test_a_read_that_is_refused_is_tried_again(storage, monkeypatch):
    """The point would else be left out of the whole launch."""
    declare(storage, "a")
    read_all, refusals = store.read_all, iter([files.StorageError("no answer")])

    def refusing(*arguments, **words):
        for error in refusals:
            raise error
        return read_all(*arguments, **words)

    monkeypatch.setattr(store, "read_all", refusing)
    assert run(storage, "a") == "done"


def test_an_axis_that_the_trainer_does_not_count_is_named(storage):
    """A stop rule that could never be met is an error, not a run without end."""
    declare(storage, "a")
    assert run(storage, "a", {"frames": 10}) == "failed"
    message = store.read(storage, "toy_trainer", "a").failure.message
    assert message == "stop rule frames: expected one of the axes env_steps, hours"


def test_a_stop_rule_holds_on_each_of_its_axes(storage):
    """Sixty steps are done in no time; a second of training takes many more."""
    stop = {"env_steps": 60, "hours": 0.2 / 3600}
    assert run(storage, declare(storage, "a"), stop) == "done"
    progress = store.read(storage, "toy_trainer", "a").progress
    assert progress["env_steps"] > 60
    assert progress["hours"] >= 0.2 / 3600


@pytest.mark.parametrize("kind", ["threefry2x32", "rbg", "unsafe_rbg"])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_typed_keys_survive_a_checkpoint(kind, shape):
    """A key is stored as its data and comes back as a key of its kind."""
    key = jax.random.split(jax.random.key(7, impl=kind), shape)
    state = {"key": key, "x": np.float32([1, 2])}
    back = saved_and_read(state)
    assert back["key"].dtype == key.dtype
    np.testing.assert_array_equal(
        jax.random.key_data(back["key"]), jax.random.key_data(key)
    )


TYPES = ["bfloat16", "float8_e4m3fn", "int4", "float16", "bool", "uint8", "int32"]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_every_type_survives_a_checkpoint(name, shape):
    """Those that NumPy does not have itself, too."""
    leaf = jnp.ones(shape, name) * 3
    back = saved_and_read({"leaf": leaf})["leaf"]
    assert (back.dtype, back.shape) == (leaf.dtype, shape)
    assert bool(jnp.all(back == leaf))


def test_a_checkpoint_of_untyped_bytes_is_read():
    """Older code wrote bfloat16 so."""
    leaf = jnp.ones(3, "bfloat16")
    arrays = encoding.unpack_arrays(encoding.pack_arrays([np.asarray(leaf)]))
    assert arrays[0].dtype == "V2"
    assert bool(jnp.all(programs.unflatten(arrays, leaf) == leaf))


def test_a_checkpoint_of_another_type_does_not_fit():
    """Whatever its bits are, float16 is not bfloat16."""
    shapes = jax.eval_shape(lambda: jnp.zeros(3, "bfloat16"))
    assert programs.unflatten([np.zeros(3, "float16")], shapes) is None
    assert programs.unflatten([np.zeros(3, "float32")], shapes) is None


def saved_and_read(state):
    """A state that went through the bytes of a file."""
    shapes = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, state))
    data = encoding.pack_arrays(programs.flatten(state))
    return programs.unflatten(encoding.unpack_arrays(data), shapes)


def test_truth_values_are_written_as_numbers(storage, tmp_path):
    """1 and 0, in rows as in evaluations."""
    change = ('"reward": jnp.sum(state.walk)}', '"is_odd": env_steps % 2 == 1}')
    with toy_variants.importable(tmp_path, "toy_odd", change) as name:
        request = {"points": [(name, toy_variants.gin_text(name))], "stops": [{}]}
        answer = check.answer(request | {"examples": [0], "sweeps": []})
        assert answer["problem"] is None
        declare(storage, "a", name)
        assert run_all(storage, {"a": {"env_steps": 20}}, name) == {"a": "done"}
    rows = store.rows(storage, store.read(storage, "toy_odd", "a"))
    assert (rows["env_steps"], rows["is_odd"]) == ([5, 10, 15, 20], [1, 0, 1, 0])
