"""Meta-updates of Atari: what reduces to what, and which gradients reach where."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import small_atari

from bmg_sweeps.core import mixed_mode
from trainers import _atari_agent, _atari_updates

KINDS = {
    "stacx": small_atari.STACX,
    **{
        name: small_atari.BMG | {"matching_function": name}
        for name in _atari_updates.MATCHING_FUNCTIONS
    },
}


def update(config, given=None, learner=None):
    """One meta-update, compiled."""
    given = given or small_atari.given(config)
    learner = learner or small_atari.start(config)
    kind = _atari_updates.UPDATE_KINDS[config.update_kind]
    return jax.jit(kind)(given, learner)


def meta_gradient(config, **parts):
    return update(config, **parts)[0].meta_gradient


@pytest.fixture(scope="module")
def stacx():
    """What one update of STACX leads to."""
    return update(small_atari.make_config(**small_atari.STACX))[0]


@pytest.mark.parametrize("name", _atari_updates.MATCHING_FUNCTIONS)
def test_agents_updates_are_the_same_bits_in_stacx_and_bmg(stacx, name):
    """They differ in the meta-objective only."""
    bmg, _ = update(small_atari.make_config(**KINDS[name]))
    chex.assert_trees_all_equal(bmg.agent, stacx.agent)
    with pytest.raises(AssertionError):
        chex.assert_trees_all_equal(bmg.meta_gradient, stacx.meta_gradient)


def test_stacx_is_bmg_with_a_half_step_of_sgd_and_squared_distance(stacx):
    """Eq. 3: ũ = u − ½ ∇f and ‖ũ − u‖² have the gradient ∇f · ∂u/∂w."""
    bmg = meta_gradient(
        small_atari.make_config(
            **KINDS["squared_euclidean"],
            target_optimizer="sgd",
            target_learning_rate=0.5,
        )
    )
    chex.assert_trees_all_close(bmg, stacx.meta_gradient, rtol=1e-4, atol=1e-6)


def test_impala_is_the_main_task_at_the_objectives_values():
    """Of STACX without auxiliary tasks, whose meta-parameters decode to p."""
    impala, _ = update(small_atari.make_config(**small_atari.IMPALA))
    config = small_atari.make_config(**small_atari.STACX, num_auxiliary_tasks=0)
    learner = small_atari.start(config)
    large = _atari_agent.HyperParams(*[jnp.full(1, 20.0)] * 6)  # Of σ = 1 to rounding.
    share = config.entropy_weight / config.max_entropy_weight
    learner = learner._replace(
        meta_params=large._replace(entropy_weight=jnp.log(share / (1 - share))[None])
    )
    stacx, _ = update(config, learner=learner)
    chex.assert_trees_all_close(impala.agent, stacx.agent, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_meta_gradients_are_finite_differences_of_the_right_quantity(name):
    """Of ⟨∇f(u¹), u¹(w)⟩ for STACX and μ(ũ, u¹(w)) for BMG, ∇f and ũ held fixed.

    f is a semi-gradient loss, whose own differences are something else. In float64.
    """
    with jax.enable_x64(True), pytest.MonkeyPatch.context() as patch:
        patch.setitem(_atari_agent.PRECISIONS, "float32", jnp.float64)
        config = small_atari.make_config(**KINDS[name])
        given, learner = as_float64(
            small_atari.given(config), small_atari.start(config)
        )
        actual = meta_gradient(config, given=given, learner=learner)
        params_of = jax.jit(lambda w: params_after_update(given, learner, w))
        objective = fixed_objective(
            name, given, learner, params_of(learner.meta_params)
        )
        objective = jax.jit(objective)
        flat, unflatten = jax.flatten_util.ravel_pytree(learner.meta_params)

        def at(i, step):
            return objective(params_of(unflatten(flat.at[i].add(step))))

        expected = [(at(i, 1e-4) - at(i, -1e-4)) / 2e-4 for i in range(flat.size)]
        actual = np.asarray(jax.flatten_util.ravel_pytree(actual)[0])
    scale = np.max(np.abs(actual))
    assert scale > 0
    np.testing.assert_allclose(actual / scale, np.array(expected) / scale, atol=1e-5)
    assert np.all(actual != 0)  # Each of the 18 has a way to the agent.


def params_after_update(given, learner, meta_params):
    """u_0¹(w): features and the main task."""
    learner = learner._replace(meta_params=meta_params)
    after, _ = _atari_updates.stacx(given, learner)
    return _atari_agent.main(after.agent.params)


def fixed_objective(name, given, learner, params):
    """What a kind's meta-gradient is of, as a function of u_0¹; written out."""
    config, batch = given.config, given.batches.meta
    hyper_params = jax.tree.map(jnp.atleast_1d, _atari_agent.objective(config))
    grads, _ = jax.grad(_atari_agent.loss, argnums=1, has_aux=True)(
        config, params, hyper_params, batch, given.is_legal
    )
    if name == "stacx":
        scale = config.meta_loss_weight / config.loss_weight
        return lambda params: scale * optax.tree.vdot(grads, params)
    after, _ = _atari_updates.stacx(given, learner)
    target = stepped(given, params, grads, second_moments(after))

    def outputs(params):
        states = batch.observations[:-1]
        logits, values = _atari_agent.apply(config, params, states, given.is_legal)
        return jax.nn.log_softmax(logits), values

    def divergences(params):
        (log_p, v), (log_q, u) = outputs(target), outputs(params)
        return {
            "policy_kl": jnp.sum(jnp.exp(log_p) * (log_p - log_q), -1),
            "reverse": jnp.sum(jnp.exp(log_q) * (log_q - log_p), -1),
            "value": (v - u) ** 2,
        }

    def objective(params):
        means = {n: jnp.mean(d) for n, d in divergences(params).items()}
        weight = config.meta_loss_weight
        difference = jax.tree.map(jnp.subtract, target, params)
        return {
            "policy_kl": weight * means["policy_kl"],
            "symmetric_policy_kl": weight * (means["policy_kl"] + means["reverse"]),
            "value": weight * means["value"],
            "policy_and_value": weight
            * (means["policy_kl"] + config.value_matching_weight * means["value"]),
            "squared_euclidean": optax.tree.norm(difference, squared=True),
        }[name]

    return objective


def second_moments(learner):
    """ν of RMSProp after an update, of features and the main task."""
    moments = [
        leaf
        for leaf in jax.tree.leaves(learner.agent.opt_state, is_leaf=is_params)
        if is_params(leaf)
    ]
    return _atari_agent.main(moments[0])


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


def as_float64(*trees):
    def convert(leaf):
        is_float = jnp.issubdtype(leaf.dtype, jnp.floating)
        return leaf.astype(jnp.float64) if is_float else leaf

    return jax.tree.map(convert, trees)


@pytest.mark.parametrize("values", [KINDS["stacx"], KINDS["policy_and_value"]])
def test_two_updates_are_differentiated_through(values):
    """K = 2: the derivative of the derivative is the one of plain reverse mode."""
    config = small_atari.make_config(**values, inner_steps=2)
    given, learner = small_atari.given(config), small_atari.start(config)
    forwards = meta_gradient(config, given=given, learner=learner)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mixed_mode, "value_and_gradient", plain_value_and_gradient)
        backwards = meta_gradient(config, given=given, learner=learner)
    chex.assert_trees_all_close(forwards, backwards, rtol=1e-3, atol=1e-6)


def plain_value_and_gradient(loss, *arguments):
    return jax.value_and_grad(loss, has_aux=True)(*arguments)


def test_with_k_of_two_the_agent_makes_the_first_update_on_replay():
    """And the second one on τ: it ends where two meta-updates of K = 1 do."""
    config = small_atari.make_config(**small_atari.IMPALA, inner_steps=2)
    given, learner = small_atari.given(config), small_atari.start(config)
    twice, _ = update(config, given=given, learner=learner)
    for batch in (
        jax.tree.map(lambda x: x[0], given.batches.inner),
        given.batches.main,
    ):
        batches = given.batches._replace(main=batch, inner=None)
        learner, _ = update(
            config, given=given._replace(batches=batches), learner=learner
        )
    chex.assert_trees_all_close(twice.agent, learner.agent, rtol=1e-5, atol=1e-7)


def test_the_targets_first_steps_have_replay_of_their_own():
    """L = 3: ũ is what two agents' updates and one step on the objective lead to."""
    config = small_atari.make_config(**KINDS["squared_euclidean"], target_steps=3)
    given, learner = small_atari.given(config), small_atari.start(config)
    after, metrics = update(config, given=given, learner=learner)
    further = after
    for i in range(2):
        batch = jax.tree.map(lambda x, i=i: x[i], given.batches.target)
        batches = given.batches._replace(main=batch, target=None)
        one = small_atari.make_config(**small_atari.STACX)
        step = given._replace(config=one, batches=batches)
        further, _ = update(
            one, given=step, learner=further._replace(meta_params=learner.meta_params)
        )
    params = _atari_agent.main(further.agent.params)
    hyper_params = jax.tree.map(jnp.atleast_1d, _atari_agent.objective(config))
    grads, _ = jax.grad(_atari_agent.loss, argnums=1, has_aux=True)(
        config, params, hyper_params, given.batches.meta, given.is_legal
    )
    target = stepped(given, params, grads, second_moments(further))
    distance = jax.tree.map(jnp.subtract, target, _atari_agent.main(after.agent.params))
    np.testing.assert_allclose(
        metrics["meta_loss"], optax.tree.norm(distance, squared=True), rtol=1e-3
    )


@pytest.mark.parametrize(
    ("last_step", "sees_online"),
    [("on_all", True), ("on_replay", False), ("meta_learned", True)],
)
def test_the_last_step_sees_what_its_name_says(last_step, sees_online):
    """Other rewards in the online trajectories of the meta-objective move the target."""
    values = KINDS["squared_euclidean"] | {"target_last_step": last_step}
    config = small_atari.make_config(**values)
    given = small_atari.given(config)
    meta = given.batches.meta
    other = meta._replace(r_t=meta.r_t.at[:, 0].add(0.5))
    losses = [
        update(
            config, given=given._replace(batches=given.batches._replace(meta=batch))
        )[1]["meta_loss"]
        for batch in (meta, other)
    ]
    assert (losses[0] != losses[1]) == sees_online


@pytest.mark.parametrize(
    ("last_step", "sees_objective"), [("on_all", True), ("meta_learned", False)]
)
def test_the_meta_learned_last_step_does_not_see_the_objective(
    last_step, sees_objective
):
    """Another α of p moves the default target, and not that of "w"."""
    values = KINDS["squared_euclidean"] | {"target_last_step": last_step}
    losses = [
        update(small_atari.make_config(**values, leak=leak))[1]["meta_loss"]
        for leak in (1.0, 0.5)
    ]
    assert (losses[0] != losses[1]) == sees_objective


@pytest.mark.parametrize("name", ["stacx", "policy_kl"])
def test_more_replay_in_the_meta_objective_leaves_the_agents_update_alone(name):
    """ "R" with L = 1: the meta-gradient is another, the agent's bits are not."""
    config = small_atari.make_config(**KINDS[name], meta_replay=9)
    given = small_atari.given(config)
    assert given.batches.meta.is_online.tolist() == [True] * 2 + [False] * 9
    more, _ = update(config, given=given)
    fewer = small_atari.make_config(**KINDS[name])
    batches = given.batches._replace(meta=given.batches.main)
    few, _ = update(fewer, given=given._replace(config=fewer, batches=batches))
    chex.assert_trees_all_equal(more.agent, few.agent)
    with pytest.raises(AssertionError):
        chex.assert_trees_all_equal(more.meta_gradient, few.meta_gradient)


def test_what_the_agent_goes_on_from():
    """NS: the update made again under the new w. DB: the target."""
    default, ns, db = (
        update(small_atari.make_config(**KINDS["policy_kl"], next_params=name))[0]
        for name in ("learned", "recomputed", "bootstrapped")
    )
    chex.assert_trees_all_equal(default.meta_params, ns.meta_params, db.meta_params)
    start = small_atari.start(small_atari.make_config(**KINDS["policy_kl"]))
    again, _ = update(
        small_atari.make_config(**small_atari.STACX),
        learner=start._replace(meta_params=default.meta_params),
    )
    chex.assert_trees_all_equal(ns.agent, again.agent)
    heads = jax.tree.map(
        lambda a, b: bool(jnp.all(a[1:] == b[1:])),
        *(
            {k: v for k, v in one.agent.params.items() if k != "torso"}
            for one in (default, db)
        ),
    )
    assert all(jax.tree.leaves(heads))
    main = jax.tree.map(
        lambda a, b: bool(jnp.all(a == b)),
        _atari_agent.main(default.agent.params)["torso"],
        _atari_agent.main(db.agent.params)["torso"],
    )
    assert not any(jax.tree.leaves(main))
