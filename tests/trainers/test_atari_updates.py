"""Meta-updates of Atari: what reduces to what, and which gradients reach where.

In double precision, so that rounding hides nothing. Nearly all of the time is that of
compiling: few programs, each for several tests.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import small_atari

from bmg_sweeps.core import mixed_mode
from trainers import _atari_agent, _atari_updates

STEP = 1e-4  # Of finite differences.
VALUES = {"unroll_length": 3}
KINDS = {
    "stacx": small_atari.STACX,
    **{
        name: small_atari.BMG | {"matching_function": name}
        for name in _atari_updates.MATCHING_FUNCTIONS
    },
}
COMMON = ("stacx", "policy_kl", "squared_euclidean")  # Others compile in slow tests.
EACH = [
    pytest.param(name, marks=() if name in COMMON else pytest.mark.slow)
    for name in KINDS
]
SQUARED = KINDS["squared_euclidean"]
# Each is looked at by several tests.
REPLAY_AND_NS = SQUARED | {
    "target_steps": 3,
    "target_last_step": "on_replay",
    "next_params": "recomputed",
}
LEARNED_AND_DB = SQUARED | {
    "target_last_step": "meta_learned",
    "next_params": "bootstrapped",
}


main = _atari_agent.main


@pytest.fixture(scope="module", autouse=True)
def _in_double_precision():
    with jax.enable_x64(True), pytest.MonkeyPatch.context() as patch:
        patch.setitem(_atari_agent.PRECISIONS, "float32", jnp.float64)
        yield


def make_config(**values):
    return small_atari.make_config(**VALUES | values)


def data(config):
    """What a meta-update reads, and the learner before it."""
    given, learner = small_atari.given(config), small_atari.start(config)

    def convert(leaf):
        is_float = jnp.issubdtype(leaf.dtype, jnp.floating)
        return leaf.astype(jnp.float64) if is_float else leaf

    return jax.tree.map(convert, (given, learner))


def update(config, given=None, learner=None):
    """One meta-update, compiled; a structure compiles once."""
    own_given, own_learner = data(config)
    kind = _atari_updates.UPDATE_KINDS[config.update_kind]
    return jax.jit(kind)(given or own_given, learner or own_learner)


@functools.cache
def updated(name):
    """The learner after one update of a kind."""
    return update(make_config(**KINDS[name]))[0]


def with_batches(given, **parts):
    return given._replace(batches=given.batches._replace(**parts))


@pytest.mark.parametrize("name", EACH[1:])
def test_agents_updates_are_the_same_bits_in_stacx_and_bmg(name):
    """They differ in the meta-objective only."""
    chex.assert_trees_all_equal(updated(name).agent, updated("stacx").agent)
    with pytest.raises(AssertionError):
        chex.assert_trees_all_equal(
            updated(name).meta_gradient, updated("stacx").meta_gradient
        )


def test_stacx_is_bmg_with_a_half_step_of_sgd_and_squared_distance():
    """Eq. 3: ũ = u − ½ ∇f and ‖ũ − u‖² have the gradient ∇f · ∂u/∂w."""
    values = SQUARED | {"target_optimizer": "sgd", "target_learning_rate": 0.5}
    bmg, _ = update(make_config(**values))
    chex.assert_trees_all_close(
        bmg.meta_gradient, updated("stacx").meta_gradient, rtol=1e-9
    )


def test_impala_is_the_main_task_at_the_objectives_values():
    """Of STACX whose other tasks weigh nothing, and whose main one decodes to p."""
    config = make_config(**small_atari.STACX)
    _, learner = data(config)
    impala = make_config(**small_atari.IMPALA)
    alone = _atari_updates.init(impala, main(learner.agent.params))
    share = config.entropy_weight / config.max_entropy_weight
    whole = jnp.full(3, 40.0)  # Of σ = 1 to rounding.
    learner = learner._replace(
        meta_params=_atari_agent.HyperParams(
            discount=whole,
            trace_decay=whole,
            leak=whole,
            policy_gradient_weight=jnp.array([40.0, -90.0, -90.0]),
            entropy_weight=jnp.array([jnp.log(share / (1 - share)), -90.0, -90.0]),
            value_weight=jnp.array([40.0, -90.0, -90.0]),
        )
    )
    stacx, _ = update(config, learner=learner)
    alone, _ = update(impala, learner=alone)
    for actual, expected in zip(both(alone), both(stacx), strict=True):
        chex.assert_trees_all_close(actual, main(expected), rtol=1e-6)


@pytest.fixture(scope="module")
def differences():
    """Of each kind, 18 central differences of what its meta-gradient is of."""
    given, learner = data(make_config(**small_atari.STACX))
    flat, unflatten = jax.flatten_util.ravel_pytree(learner.meta_params)

    @jax.jit
    def values(given, agent, after, points):
        moved = jax.vmap(lambda w: params_after_update(given, agent, unflatten(w)))
        return jax.vmap(fixed_objectives(given, after))(moved(points))

    steps, center = STEP * np.eye(flat.size), flat[np.newaxis]
    points = jnp.concatenate([center + steps, center - steps])
    found = values(given, learner.agent, updated("stacx"), points)
    return {
        name: (both[: flat.size] - both[flat.size :]) / (2 * STEP)
        for name, both in found.items()
    }


@pytest.mark.parametrize("name", EACH)
def test_meta_gradients_are_finite_differences_of_the_right_quantity(name, differences):
    """Of ⟨∇f(u¹), u¹(w)⟩ for STACX and μ(ũ, u¹(w)) for BMG, ∇f and ũ held fixed.

    f is a semi-gradient loss, whose own differences are something else.
    """
    actual = jax.flatten_util.ravel_pytree(updated(name).meta_gradient)[0]
    scale = np.max(np.abs(actual))
    assert scale > 0
    np.testing.assert_allclose(actual / scale, differences[name] / scale, atol=1e-6)
    assert np.all(actual != 0)  # Each of the 18 has a way to the agent.


def params_after_update(given, agent, meta_params):
    """u_0¹(w): features and the main task."""
    after, _ = _atari_updates._inner_loop(given, meta_params, agent)
    return main(after.params)


def objective_gradient(given, params):
    """∇f(u; p) of the main task, on the trajectories of the meta-objective."""
    hyper_params = jax.tree.map(jnp.atleast_1d, _atari_agent.objective(given.config))
    grads, _ = jax.grad(_atari_agent.loss, argnums=1, has_aux=True)(
        given.config, params, hyper_params, given.batches.meta, given.is_legal
    )
    return grads


def fixed_objectives(given, after):
    """What each kind's meta-gradient is of, as a function of u_0¹; written out."""
    config = given.config
    params = main(after.agent.params)
    grads = objective_gradient(given, params)
    target = stepped(given, params, grads, second_moments(after))
    scale = config.meta_loss_weight / config.loss_weight
    return lambda params: (
        distances(given, target, params)
        | {"stacx": scale * optax.tree.vdot(grads, params)}
    )


def distances(given, target, params):
    """μ(ũ, u) of each matching function, written out."""
    config, states = given.config, given.batches.meta.observations[:-1]

    def outputs(params):
        logits, values = _atari_agent.apply(config, params, states, given.is_legal)
        return jax.nn.log_softmax(logits), values

    (log_p, v), (log_q, u) = outputs(target), outputs(params)
    forward = jnp.mean(jnp.sum(jnp.exp(log_p) * (log_p - log_q), -1))
    reverse = jnp.mean(jnp.sum(jnp.exp(log_q) * (log_q - log_p), -1))
    values = jnp.mean((v - u) ** 2)
    difference = jax.tree.map(jnp.subtract, target, params)
    weight = config.meta_loss_weight
    return {
        "policy_kl": weight * forward,
        "symmetric_policy_kl": weight * (forward + reverse),
        "value": weight * values,
        "policy_and_value": weight * (forward + config.value_matching_weight * values),
        "squared_euclidean": optax.tree.norm(difference, squared=True),
    }


def test_matching_functions_are_what_their_names_say():
    """All of them, at any two agents."""
    given, learner = data(make_config())
    params = main(learner.agent.params)
    target = jax.tree.map(lambda x: x + 0.1 * jnp.cos(7 * x), params)

    @jax.jit
    def both(given, target, params):
        functions = _atari_updates.MATCHING_FUNCTIONS
        actual = {name: f(given, target, params) for name, f in functions.items()}
        return actual, distances(given, target, params)

    actual, expected = both(given, target, params)
    chex.assert_trees_all_close(actual, expected, rtol=1e-9)
    assert min(actual.values()) > 0
    assert len(set(map(float, actual.values()))) == 5


def second_moments(learner):
    """ν of RMSProp after an update, of features and the main task."""
    return main(all_second_moments(learner))


def all_second_moments(learner):
    """The same of all tasks."""
    leaves = jax.tree.leaves(learner.agent.opt_state, is_leaf=is_params)
    return next(leaf for leaf in leaves if is_params(leaf))


def is_params(tree):
    return isinstance(tree, dict) and "torso" in tree


def stepped(given, params, grads, moments):
    """One step of RMSProp with ε inside the root, after the clip; written out."""
    config = given.config
    norm = optax.tree.norm(grads)
    grads = jax.tree.map(
        lambda g: g * jnp.minimum(1, config.gradient_clip / norm), grads
    )
    decay = config.rmsprop_decay
    moments = jax.tree.map(lambda v, g: decay * v + (1 - decay) * g**2, moments, grads)
    return jax.tree.map(
        lambda x, g, v: x - given.learning_rate * g / jnp.sqrt(v + config.rmsprop_eps),
        *(params, grads, moments),
    )


@pytest.mark.slow
@pytest.mark.parametrize("values", [KINDS["stacx"], KINDS["policy_and_value"]])
def test_two_updates_are_differentiated_through(values):
    """K = 2: the derivative of the derivative is the one of plain reverse mode."""
    config = make_config(**values, inner_steps=2)
    given, learner = data(config)
    kind = _atari_updates.UPDATE_KINDS[config.update_kind]
    forwards, _ = update(config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mixed_mode, "value_and_gradient", plain_value_and_gradient)
        # Another function, for JAX has a program of `kind` already.
        backwards, _ = jax.jit(lambda *both: kind(*both))(given, learner)
    chex.assert_trees_all_close(
        forwards.meta_gradient, backwards.meta_gradient, rtol=1e-7
    )


def plain_value_and_gradient(loss, *arguments):
    return jax.value_and_grad(loss, has_aux=True)(*arguments)


def test_with_k_of_two_the_agent_makes_the_first_update_on_replay():
    """And the second one on τ: it ends where two meta-updates of K = 1 do."""
    config = make_config(**small_atari.IMPALA, inner_steps=2)
    given, learner = data(config)
    twice, _ = update(config)
    one = make_config(**small_atari.IMPALA)
    of_replay = jax.tree.map(lambda x: x[0], given.batches.inner)
    for batch in (of_replay, given.batches.main):
        batches = with_batches(given, main=batch, inner=None)
        learner, _ = update(one, batches._replace(config=one), learner)
    chex.assert_trees_all_close(twice.agent, learner.agent, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_the_targets_first_steps_have_replay_of_their_own():
    """L = 3: ũ is what two agents' updates and one step on the objective lead to.

    The step is on the replay trajectories.
    """
    config, plain = make_config(**REPLAY_AND_NS), make_config(**small_atari.STACX)
    given, learner = data(config)
    _, metrics = update(config)
    main_batches = [given.batches.main]
    main_batches += [
        jax.tree.map(lambda x, i=i: x[i], given.batches.target) for i in (0, 1)
    ]
    learners = [learner]
    for batch in main_batches:
        step = with_batches(given, main=batch, target=None)._replace(config=plain)
        before = learners[-1]._replace(meta_params=learner.meta_params)
        learners.append(jax.jit(_atari_updates.stacx)(step, before)[0])
    _, after, _, last = learners
    replay = jax.tree.map(
        lambda x: x[..., 2:] if x.ndim == 1 else x[:, 2:], given.batches.meta
    )

    @jax.jit
    def distance(given, after, last):
        params = main(last.agent.params)
        grads = objective_gradient(given, params)
        target = stepped(given, params, grads, second_moments(last))
        difference = jax.tree.map(jnp.subtract, target, main(after.agent.params))
        return optax.tree.norm(difference, squared=True)

    expected = distance(with_batches(given, meta=replay), after, last)
    np.testing.assert_allclose(metrics["meta_loss"], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("values", "sees_online"),
    [
        (SQUARED, True),
        pytest.param(REPLAY_AND_NS, False, marks=pytest.mark.slow),
        (LEARNED_AND_DB, True),
    ],
    ids=["on_all", "on_replay", "meta_learned"],
)
def test_the_last_step_sees_what_its_name_says(values, sees_online):
    """Other online rewards in the meta-objective move the target, or do not."""
    config = make_config(**values)
    given, _ = data(config)
    meta = given.batches.meta
    other = meta._replace(r_t=meta.r_t.at[:, 0].add(0.5))
    losses = [
        update(config, with_batches(given, meta=batch))[1]["meta_loss"]
        for batch in (meta, other)
    ]
    assert (losses[0] != losses[1]) == sees_online


@pytest.mark.parametrize(
    ("values", "sees_objective"),
    [(SQUARED, True), (LEARNED_AND_DB, False)],
    ids=["on_all", "meta_learned"],
)
def test_the_meta_learned_last_step_does_not_see_the_objective(values, sees_objective):
    """Another α of p moves the default target, and not that of "w"."""
    losses = [
        update(make_config(**values, leak=leak))[1]["meta_loss"] for leak in (1.0, 0.5)
    ]
    assert (losses[0] != losses[1]) == sees_objective


@pytest.mark.slow
def test_more_replay_in_the_meta_objective_leaves_the_agents_update_alone():
    """As "R" has it with L = 1: another meta-gradient, the same bits of the agent."""
    config = make_config(**KINDS["policy_kl"], meta_replay=9)
    given, _ = data(config)
    assert given.batches.meta.is_online.tolist() == [True] * 2 + [False] * 9
    more, _ = update(config)
    fewer = make_config(**KINDS["policy_kl"])
    fewer_given = with_batches(given, meta=given.batches.main)._replace(config=fewer)
    few, _ = update(fewer, fewer_given)
    chex.assert_trees_all_equal(more.agent, few.agent)
    with pytest.raises(AssertionError):
        chex.assert_trees_all_equal(more.meta_gradient, few.meta_gradient)


@pytest.mark.slow
def test_the_agent_may_go_on_from_its_update_made_again():
    """NS: under the new w, from where it was."""
    config, plain = make_config(**REPLAY_AND_NS), make_config(**small_atari.STACX)
    given, start = data(config)
    ns, _ = update(config)
    step = with_batches(given, target=None)._replace(config=plain)
    for meta_params, is_same in ((start.meta_params, False), (ns.meta_params, True)):
        learner = start._replace(meta_params=meta_params)
        again, _ = jax.jit(_atari_updates.stacx)(step, learner)
        pairs = zip(both(ns), both(again), strict=True)
        assert all(is_close(*pair) for pair in pairs) == is_same


def test_the_agent_may_go_on_from_the_target():
    """DB: features and main task are twice updated under w; other heads once."""
    db, _ = update(make_config(**LEARNED_AND_DB))
    config = make_config(**small_atari.STACX)
    _, start = data(config)
    once = updated("stacx")
    twice, _ = update(config, learner=once._replace(meta_params=start.meta_params))
    for actual, first, second in zip(
        *(both(learner) for learner in (db, once, twice)), strict=True
    ):
        chex.assert_trees_all_close(main(actual), main(second), rtol=1e-9)
        chex.assert_trees_all_close(others(actual), others(first), rtol=1e-9)


def is_close(left, right):
    close = jax.tree.map(lambda a, b: jnp.allclose(a, b, 1e-6, 1e-9), left, right)
    return all(map(bool, jax.tree.leaves(close)))


def both(learner):
    """Parameters, and second moments, of all tasks."""
    return learner.agent.params, all_second_moments(learner)


def others(params):
    """Those of the auxiliary tasks."""
    return _atari_agent.with_heads(params, lambda leaf: leaf[1:]) | {"torso": ()}
