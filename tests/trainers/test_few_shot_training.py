"""Training and evaluation of few-shot classification, and the trainer's contract."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import paper_values
import psutil
import pytest
import small_few_shot as small

from bmg_sweeps.core import gradient_descent
from bmg_sweeps.running import binding
from bmg_sweeps.sweep import point
from bmg_sweeps.tasks import data_sets
from trainers import _few_shot_updates as updates
from trainers import few_shot as trainer

SOURCE = small.source()
update = jax.jit(lambda config, state: trainer.update(config, state, SOURCE["train"]))


@functools.partial(jax.jit, static_argnames="split")
def evaluate(config, state, split="test"):
    return trainer.evaluate(config, state, SOURCE, split)


def start(config, seed=0):
    return trainer.init(config, jax.random.key(seed), SOURCE)


def assert_same(left, right):
    for x, y in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_array_equal(x, y)


def test_a_seed_fixes_everything_and_another_changes_it():
    config = small.make_config()
    first, again, other = (update(config, start(config, s)) for s in (0, 0, 1))
    assert_same(first, again)
    weights = [s.meta_params["linear"]["w"] for s in (first, other)]
    assert not np.array_equal(*weights)


def test_each_meta_update_has_tasks_of_its_own(monkeypatch):
    """Keys depend on the seed and the number of the meta-update, and nothing else."""
    config = small.make_config()
    state = start(config)
    later = state._replace(meta_updates=jnp.int32(7))
    unlike = [update(config, s).meta_gradient["linear"]["w"] for s in (state, later)]
    assert not np.array_equal(*unlike)
    trained = functools.reduce(lambda s, _: update(config, s), range(7), state)
    back = later._replace(meta_params=trained.meta_params)
    assert_same(
        update(config, trained).meta_gradient, update(config, back).meta_gradient
    )


def test_rows_are_means_over_the_interval():
    """`record_interval` is 2: the row after 3 is that of 1 and 2."""
    config = small.make_config()
    every = small.make_config(record_interval=1, evaluation_interval=1)
    state = whole = start(config)
    single = []
    for _ in range(3):
        state, whole = update(every, state), update(config, whole)
        single.append(state.row)
    assert whole.row["meta_updates"] == 2
    for name in trainer.METRICS:
        mean = (single[0][name] + single[1][name]) / 2
        assert float(whole.row[name]) == pytest.approx(float(mean), rel=1e-5), name
    assert start(config).row["meta_updates"] == 0  # No row before the first.


def test_a_chunk_is_so_many_meta_updates(monkeypatch):
    """`train` is `update` in a loop, of a divisor of the interval."""
    config = small.make_config()
    monkeypatch.setattr(trainer, "_CHUNK_SECONDS", 1e9)
    longer = small.make_config(record_interval=4)
    assert trainer.chunk_length(longer, (16, 16, 1)) == 4
    assert trainer.chunk_length(config, (16, 16, 1)) == 2
    state, rows = jax.jit(trainer.train)(config, start(config), SOURCE)
    assert int(state.meta_updates) == 2
    assert rows["meta_updates"].tolist() == [2]
    by_hand = functools.reduce(lambda s, _: update(config, s), range(2), start(config))
    np.testing.assert_allclose(
        state.meta_params["linear"]["w"], by_hand.meta_params["linear"]["w"], atol=1e-4
    )
    monkeypatch.setattr(trainer, "_CHUNK_SECONDS", 1e-9)
    assert trainer.chunk_length(longer, (84, 84, 3)) == 1


def test_the_step_is_adams_on_the_clipped_mean():
    """The step is −β Adam(clip(1/M Σ_i g_i)); metrics are of the mean, unclipped."""
    # With a small ε, Adam's first step has one size whatever is clipped.
    config = small.make_config(meta_gradient_clip=1e-2, meta_adam_eps=1.0)
    state = start(config)
    after = update(config, state)
    clipped = jax.tree.map(lambda g: jnp.clip(g, -1e-2, 1e-2), after.meta_gradient)
    adam = optax.adam(1e-3, b1=0.9, b2=0.999, eps=1.0)
    steps, _ = adam.update(clipped, adam.init(state.meta_params))
    expected = optax.apply_updates(state.meta_params, steps)
    for x, y in zip(
        jax.tree.leaves(after.meta_params), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-7)
    norm = float(after.sums["meta_gradient_norm"])
    assert norm == pytest.approx(float(optax.tree.norm(after.meta_gradient)), rel=1e-5)
    assert norm > 1e-2


def test_evaluation_is_on_the_same_tasks_for_every_point():
    """Another seed changes nothing for the same parameters; another split does."""
    config = small.make_config()
    state = start(config)
    result = evaluate(config, state)
    other = dataclasses.replace(config, seed=jnp.array(5))
    assert_same(result, evaluate(other, state._replace(key=jax.random.key(9))))
    assert 0 <= float(result["accuracy"]) <= 100
    on_validation = evaluate(config, state, split="validation")
    assert float(on_validation["loss"]) != float(result["loss"])


def test_evaluation_builds_no_meta_gradient(monkeypatch):
    """The recursion that differentiates adaptation is never traced."""
    config = small.make_config()

    def refuse(*arguments):
        raise AssertionError("differentiated")

    monkeypatch.setattr(gradient_descent, "_dot", refuse)
    state = start(config)
    jax.eval_shape(lambda c, s: trainer.evaluate(c, s, SOURCE, "test"), config, state)
    with pytest.raises(AssertionError, match="differentiated"):
        jax.eval_shape(
            lambda c, s: trainer.update(c, s, SOURCE["train"]), config, state
        )


def test_memory_is_flat_over_two_hundred_meta_updates():
    config = small.make_config()
    state = functools.reduce(lambda s, _: update(config, s), range(20), start(config))
    process, arrays = psutil.Process(), len(jax.live_arrays())
    before = process.memory_info().rss
    for _ in range(200):
        state = jax.block_until_ready(update(config, state))
    assert len(jax.live_arrays()) <= arrays + len(jax.tree.leaves(state))
    assert process.memory_info().rss - before < 20 * 2**20


@pytest.mark.parametrize(
    "values",
    [{}, small.BMG],
    ids=["MAML", "BMG"],
)
def test_it_learns(values):
    """From chance, a third, to most of the images of classes never trained on."""
    # One block is too few to learn in so few meta-updates.
    config = small.make_config(num_blocks=2, meta_learning_rate=1e-2, **values)
    state = start(config)
    for _ in range(100):
        state = update(config, state)
    before, after = (float(evaluate(config, s)["loss"]) for s in (start(config), state))
    assert after < 0.6 * before


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"target_steps": 2}, "target_steps = 2: expected 1, where there is no target"),
        ({"matching_function": "squared_euclidean"}, "expected 'policy_kl', where"),
        ({"target_bootstrap": "update_rule"}, "expected 'objective_step', where"),
        ({"evaluation_interval": 3}, "evaluation_interval = 3: expected a multiple of"),
    ],
)
def test_fields_that_contradict_each_other_are_refused(values, problem):
    with pytest.raises(ValueError, match=problem):
        small.make_config(**values)


def test_a_task_larger_than_the_data_is_refused():
    """Twenty glyphs a class; the split that has too few is named."""
    config = small.make_config(num_shots=15, num_queries=6)
    with pytest.raises(ValueError, match=r"glyphs, train: num_shots \+ num_queries"):
        trainer.provenance(config)


def test_a_data_set_that_is_not_there_is_refused(monkeypatch):
    """Never a stand-in in its place."""
    monkeypatch.delenv("BMG_SWEEPS_DATA", raising=False)
    config = small.make_config(data_set="mini_imagenet")
    with pytest.raises(ValueError, match="--data DIR"):
        trainer.provenance(config)
    with pytest.raises(ValueError, match="--data DIR"), trainer.open_source(config):
        pass


def test_provenance_names_the_data_by_its_checksum():
    config = small.make_config()
    checksum = data_sets.load("glyphs", None).checksum
    assert trainer.provenance(config) == {
        "data_set": f"glyphs {checksum}",
        "convolution": "plain",
    }


def test_the_papers_values_are_those_of_the_gin_file():
    gin_text = point.resolve("few_shot", {}).gin_text()
    _, config = binding.bind("few_shot", gin_text)
    for field, value in paper_values.FEW_SHOT.items():
        assert getattr(config, field) == value, field


def test_every_update_kind_and_matching_function_keeps_the_state():
    """A meta-update of each has the shapes and types that it started with."""
    kinds = [{"update_kind": kind} for kind in updates.UPDATE_KINDS]
    kinds += [small.BMG | {"matching_function": m} for m in updates.MATCHING_FUNCTIONS]
    for values in kinds:
        config = small.make_config(**values)
        state = start(config)
        after = jax.eval_shape(
            lambda c, s: trainer.update(c, s, SOURCE["train"]), config, state
        )
        assert jax.tree.map(jnp.shape, after) == jax.tree.map(jnp.shape, state), values
