"""Meta-learned and bootstrapped entropy weights, against Appendix B.2 by hand.

In double precision, where a finite difference in w is exact enough, and does not change
what the agent does.
"""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import small_two_colors as small
from jax import flatten_util

from trainers import _two_colors_agent as agent
from trainers import _two_colors_meta
from trainers import two_colors_actor_critic as trainer


def case(K, L, **values):
    name = "-".join([f"K{K}", f"L{L}", *values.values()])
    return pytest.param({"inner_steps": K, "target_steps": L} | values, id=name)


MG = [case(K, 1, update_kind="meta_gradient") for K in (1, 3)]
MG.append(case(3, 1, update_kind="meta_gradient", meta_objective="acting_policy"))
FIXED = case(3, 1, update_kind="fixed_entropy_weight")
LEARNED = {"target_weight": "meta_learned_weight"}
NEXT = {"target_rollout": "next_rollout"}
NORMALIZED = {"meta_input": "normalized_mean_rewards"}
BMG = [  # The kind of the .gin.
    case(1, 1),
    case(3, 3),
    case(1, 3, matching_function="reverse_policy_kl", **LEARNED, **NORMALIZED),
    case(2, 2, matching_function="symmetric_policy_kl", **LEARNED, **NEXT),
]


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64():
        yield


@jax.jit
def loss_and_gradient(config, learner, policy, weight):
    """ℓ_PG + ε ℓ_EN, with its ε_PG, on the learner's rollout; and its ∇_x."""
    return jax.value_and_grad(agent.policy_loss, argnums=2)(
        config, learner, policy, weight
    )


def meta_gradient(state):
    """The last one: Adam's first moment, at b1 = 0."""
    return state.meta_opt_state[0].mu


def assert_is_gradient(gradient, function, meta_params):
    """Compares slopes of a function of w along three random directions.

    Central differences with a step of 10⁻⁵ are off by the order of its square.
    """
    w, unflatten = flatten_util.ravel_pytree(meta_params)
    directions = np.random.default_rng(0).normal(size=(3, w.size))
    step = 1e-5
    slopes = [
        (function(unflatten(w + step * v)) - function(unflatten(w - step * v)))
        / (2 * step)
        for v in directions
    ]
    assert np.min(np.abs(slopes)) > 1e-6
    flat_gradient, _ = flatten_util.ravel_pytree(gradient)
    np.testing.assert_allclose(directions @ flat_gradient, slopes, rtol=1e-5)


def mean_loss(config, learner, meta_params):
    """B.2, "MG": 1/K Σ_k ℓ_PG(x⁽ᵏ⁾) + ε_meta ℓ_EN(x⁽ᵏ⁾), on τ_k with critic z⁽ᵏ⁾.

    The other reading has x⁽ᵏ⁻¹⁾ and z⁽ᵏ⁻¹⁾ on τ_k.
    """
    after = small.learners(config, meta_params, learner, config.inner_steps)
    params = [one.params for one in after]
    if config.meta_objective == "acting_policy":
        params = [learner.params, *params[:-1]]
    losses = [
        loss_and_gradient(
            small.plain(config),
            one._replace(params=x),
            x.policy,
            config.meta_entropy_weight,
        )[0]
        for one, x in zip(after, params, strict=True)
    ]
    return config.meta_objective_weight * np.mean(losses)


def divergence(config, target_logits, logits):
    """μ: Σ_a π_x̃ log π_x̃ / π_x, its reverse or their sum, the mean over states."""
    log_p, log_q = (np.asarray(jax.nn.log_softmax(x)) for x in (target_logits, logits))
    forward = np.mean(np.sum(np.exp(log_p) * (log_p - log_q), axis=-1))
    reverse = np.mean(np.sum(np.exp(log_q) * (log_q - log_p), axis=-1))
    divergences = {
        "policy_kl": forward,
        "reverse_policy_kl": reverse,
        "symmetric_policy_kl": forward + reverse,
    }
    return config.matching_weight * divergences[config.matching_function]


def distance_to_target(config, learner, meta_params):
    """B.2, "BMG": a function of w that keeps the target, and its states, of this w.

    x̃ = x⁽ᵀ⁾ − α ∇(ℓ_PG + ε ℓ_EN)(x⁽ᵀ⁾) with T = K + L − 1 and critic z⁽ᵀ⁾
    """
    K, L = config.inner_steps, config.target_steps
    latest = small.learners(config, meta_params, learner, K + L - 1)[-1]
    last = latest
    if config.target_rollout == "next_rollout":
        (last,) = small.learners(config, meta_params, latest, 1)
    weight = config.meta_entropy_weight
    if config.target_weight == "meta_learned_weight":
        t = agent.meta_input(config, last)
        weight = small.entropy_weight(config, meta_params)(t)
    x = latest.params.policy
    _, gradient = loss_and_gradient(
        small.plain(config), latest._replace(rollout=last.rollout), x, weight
    )
    target = jax.tree.map(lambda x, g: x - config.learning_rate * g, x, gradient)
    network, states = agent.policy_network(config), last.rollout.observations[:-1]

    def distance(meta_params):
        learner_k = small.learners(config, meta_params, learner, K)[-1]
        return divergence(
            config,
            network.apply(target, states),
            network.apply(learner_k.params.policy, states),
        )

    return distance


@pytest.mark.parametrize("values", MG)
def test_mg_differentiates_the_mean_loss_of_its_updates(values):
    """Eq. 1 and B.2, "MG": the meta-loss, and its gradient by finite differences."""
    config = small.make_config(**values, meta_objective_weight=3.0)
    state = small.start(config)
    loss = functools.partial(mean_loss, config, state.learner)
    after, metrics = small.update(config, state)
    np.testing.assert_allclose(metrics["meta_loss"], loss(state.meta_params))
    assert_is_gradient(meta_gradient(after), loss, state.meta_params)


@pytest.mark.parametrize("values", BMG)
def test_bmg_differentiates_the_distance_to_a_constant_target(values):
    """Eq. 2, Algorithm 3 and B.2, "BMG": the meta-loss, and its gradient likewise."""
    config = small.make_config(**values)
    state = small.start(config)
    distance = distance_to_target(config, state.learner, state.meta_params)
    after, metrics = small.update(config, small.prepared(config, state))
    np.testing.assert_allclose(metrics["meta_loss"], distance(state.meta_params))
    assert_is_gradient(meta_gradient(after), distance, state.meta_params)


@pytest.mark.parametrize("values", [*MG, *BMG])
def test_the_learner_goes_on_from_its_last_update(values):
    """Algorithm 3: u ← u⁽ᴷ⁺ᴸ⁻¹⁾, after (K + L − 1) N environment steps each time.

    Over two meta-updates, with the w that the first one left: what is pending in
    between is the rollout that by hand the second one begins with.
    """
    config = small.make_config(**values)
    state = small.start(config, experience=3)
    learner = state.learner
    state = small.prepared(config, state)
    used = config.inner_steps + config.target_steps - 1
    for number in (1, 2):
        learner = small.learners(config, state.meta_params, learner, used)[-1]
        state, metrics = small.update(config, state)
        chex.assert_trees_all_close(state.learner.params, learner.params, rtol=1e-9)
        chex.assert_trees_all_close(
            state.learner.statistics, learner.statistics, rtol=1e-9
        )
        progress = trainer.progress(config, state)
        assert progress["env_steps"] == (3 + number * used) * small.LENGTH
        assert progress["meta_updates"] == metrics["meta_updates"] == number
        if state.learner.pending is not None:
            (following,) = small.learners(config, state.meta_params, learner, 1)
            chex.assert_trees_all_equal(state.learner.rollout, following.rollout)


def test_a_meta_update_is_a_step_of_adam():
    """Table 1: w ← w − β m̂ / (√v̂ + ε), and at the first step m̂ = g and √v̂ = |g|."""
    config = small.make_config(**MG[0].values[0])
    state = small.start(config)
    after, metrics = small.update(config, state)
    gradient = meta_gradient(after)
    expected = jax.tree.map(
        lambda w, g: (
            w - config.meta_learning_rate * g / (abs(g) + config.meta_adam_eps)
        ),
        state.meta_params,
        gradient,
    )
    chex.assert_trees_all_close(after.meta_params, expected, rtol=1e-9)
    np.testing.assert_allclose(
        metrics["meta_gradient_norm"], optax.tree.norm(gradient), rtol=1e-9
    )


@pytest.mark.parametrize("values", [MG[0], *BMG[2:]])
def test_no_gradient_passes_through_the_target(values):
    """∇ℓ_EN = 0 at a uniform policy, so w has no influence on x⁽¹⁾, and only there.

    Later iterates, the target among them, depend on w, but as constants. Where K = 2
    the entropy counts in the second update, and the meta-gradient is not zero.
    """
    config = small.make_config(**values)
    state = small.with_uniform_policy(small.start(config))
    after, metrics = small.update(config, small.prepared(config, state))
    assert metrics["meta_loss"] != 0
    is_influenced = config.inner_steps > 1
    assert (optax.tree.norm(meta_gradient(after)) > 1e-15) == is_influenced


@pytest.mark.parametrize("values", BMG)
def test_a_learner_at_its_target_has_a_zero_meta_gradient(values):
    """With α = 0 nothing moves: x̃ = x⁽ᴷ⁾, where the gradient must be 0, not NaN."""
    config = dataclasses.replace(
        small.make_config(**values), learning_rate=jnp.asarray(0.0)
    )
    state = small.start(config, experience=0)
    after, metrics = small.update(config, small.prepared(config, state))
    np.testing.assert_allclose(metrics["meta_loss"], 0, atol=1e-15)
    zeros = jax.tree.map(jnp.zeros_like, state.meta_params)
    chex.assert_trees_all_close(meta_gradient(after), zeros, atol=1e-15)


@pytest.mark.parametrize("values", [*MG, *BMG])
def test_a_constant_entropy_weight_is_a_fixed_one(values):
    """With w held at zero weights ε_w(t) = σ(bias), and the agent is the baseline."""
    config = small.make_config(**values)
    state = small.start(config)
    bias = 0.7
    *_, last = state.meta_params
    meta_params = jax.tree.map(jnp.zeros_like, state.meta_params)
    meta_params[last]["b"] += bias
    fixed = dataclasses.replace(
        small.plain(config),
        entropy_weight=1 / (1 + jnp.exp(-jnp.asarray(bias))),
        inner_steps=3,
    )
    # Three times K + L − 1 updates, and K + L − 1 times three.
    fixed_state, state = state, small.prepared(config, state)
    for _ in range(3):
        state, _ = small.update(config, state._replace(meta_params=meta_params))
    for _ in range(config.inner_steps + config.target_steps - 1):
        fixed_state, _ = small.update(fixed, fixed_state)
    chex.assert_trees_all_close(
        state.learner.params, fixed_state.learner.params, rtol=1e-9
    )


@pytest.mark.parametrize(
    "values",
    [
        FIXED,
        MG[1],
        pytest.param(*MG[2].values, id=MG[2].id, marks=pytest.mark.slow),
    ],
)
def test_points_trained_together_are_points_trained_alone(values, monkeypatch):
    """Style rule 5: `vmap` over a stacked `Config`; test_contracts has BMG.

    A chunk of 16 meta-updates, for which rounding does not change an action.
    """
    configs = [
        small.make_config(
            seed=seed, learning_rate=rate, meta_learning_rate=rate / 10, **values
        )
        for seed, rate in ((0, 0.1), (1, 0.2), (2, 0.4))
    ]
    updates = configs[0].inner_steps + configs[0].target_steps - 1
    monkeypatch.setattr(
        _two_colors_meta, "CHUNK_ENV_STEPS", 16 * updates * small.LENGTH
    )

    @jax.jit
    @jax.vmap
    def trained_together(config):
        state = trainer.init(config, jax.random.key(config.seed), None)
        learner = small.settle(config, state.meta_params, state.learner)
        return trainer.train(config, state._replace(learner=learner), None)[0]

    def trained_alone(config):
        state = small.start(config, seed=int(config.seed), experience=0)
        state = small.prepared(config, state)
        for _ in range(16):
            state, _ = small.update(config, state)
        return state

    actual = trained_together(jax.tree.map(lambda *x: jnp.stack(x), *configs))
    expected = jax.tree.map(lambda *x: jnp.stack(x), *map(trained_alone, configs))
    assert_trees_all_close(actual, expected)


def test_an_update_is_the_same_with_and_without_jit():
    """Style rule 10: `update` gives the same numbers, to rounding."""
    config = small.make_config(**MG[0].values[0])
    state = small.start(config)
    assert_trees_all_close(trainer.update(config, state), small.update(config, state))


def assert_trees_all_close(actual, expected):
    """To rounding in double precision, keys included."""

    def comparable(x):
        is_key = jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
        return jax.random.key_data(x) if is_key else x

    actual, expected = (jax.tree.map(comparable, x) for x in (actual, expected))
    chex.assert_trees_all_close(actual, expected, rtol=1e-8, atol=1e-10)


def test_a_key_says_everything():
    """Style rule 9: the same key gives the same bits, another one another agent."""
    config = small.make_config(**FIXED.values[0])
    first, same, other = (small.start(config, seed).learner for seed in (0, 0, 1))
    chex.assert_trees_all_equal(first.params, same.params)
    chex.assert_trees_all_equal(first.rollout, same.rollout)
    assert optax.tree.norm(first.params) != optax.tree.norm(other.params)
    assert np.any(first.rollout.observations != other.rollout.observations)
