"""Rollouts and updates of the two-colors agent, against Eq. 4 worked out again here."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small_two_colors as small

from bmg_sweeps.core import networks
from bmg_sweeps.environments import two_colors
from trainers import _two_colors_agent as agent

TO_ROUNDING = {"rtol": 1e-5, "atol": 1e-6}
START = two_colors.State(*(jnp.int32(x) for x in (12, 3, 20, 0)))

collect = jax.jit(two_colors.collect, static_argnums=(2, 3))


def entropy_weight(recent_rewards):
    """An ε(t) in which every element of t counts differently."""
    return 0.3 + jnp.dot(jnp.arange(1.0, 11.0) ** 2 / 100, recent_rewards)


@jax.jit
def update(config, learner):
    return agent.update_rule(config, entropy_weight)(learner)


@functools.cache
def experienced_learner():
    """A learner after four updates: critic and t have left their initial values."""
    config = small.make_config()
    learner = jax.jit(agent.init)(config, jax.random.key(1))
    for _ in range(4):
        learner = update(config, learner)
    return learner


def critic(config):
    return networks.mlp(config.hidden_sizes, 1)


def returns_of(config, rewards, values):
    """G⁽ⁿ⁾_t by its definition; past the end of the rollout, from its last state."""
    returns = []
    for t in range(small.LENGTH):
        n = min(int(config.return_steps), small.LENGTH - t)
        discounted = [config.discount**i * rewards[t + i] for i in range(n)]
        returns.append(sum(discounted) + config.discount**n * values[t + n])
    return jnp.stack(returns)


def equation_4(config, params, constant_value, rollout, weight):
    """Eq. 4 with ρ = 1, over N; z̄ is an argument, so that no gradient is stopped."""
    log_pi = jax.nn.log_softmax(
        agent.policy_network(config).apply(params.policy, rollout.observations[:-1])
    )
    values, constant_values = (
        critic(config).apply(z, rollout.observations)[:, 0]
        for z in (params.value, constant_value)
    )
    returns = returns_of(config, rollout.rewards, constant_values)
    log_pi_of_actions = log_pi[jnp.arange(small.LENGTH), rollout.actions]
    policy_gradient = -jnp.sum(log_pi_of_actions * (returns - constant_values[:-1]))
    entropy = jnp.sum(jnp.exp(log_pi) * log_pi)
    temporal_difference = jnp.sum((returns - values[:-1]) ** 2) / 2
    loss = (
        config.policy_gradient_weight * policy_gradient
        + weight * entropy
        + config.value_weight * temporal_difference
    )
    return loss / small.LENGTH


def descended(config, params, weight, rollout):
    """One step of gradient descent on Eq. 4, as the paper's Algorithm 2 has it."""
    constant = jax.lax.stop_gradient(params.value)
    grads = jax.grad(equation_4, argnums=1)(config, params, constant, rollout, weight)
    return jax.tree.map(lambda x, g: x - config.learning_rate * g, params, grads)


def test_collect_returns_what_step_and_observe_say():
    """Algorithm 1: each state, reward and square follow from the last and the action.

    The rollout crosses a flip. Where a square was reached, its new cell must be one of
    the 23 that `step` can choose, found here with a uniform inside each one's interval.
    """
    start, length = two_colors.CYCLE_STEPS - 200, 400
    last, rollout, seen = collect(
        jax.random.key(0),
        START._replace(steps=start),
        lambda observation: (jnp.zeros(4), observation),
        length,
    )
    np.testing.assert_array_equal(seen, rollout.observations[:-1])
    coordinates = np.argmax(rollout.observations.reshape(-1, 3, 2, 5), axis=-1)
    blue, red, mover = (coordinates @ np.array([5, 1])).T
    chex.assert_trees_all_equal(
        last,
        two_colors.State(
            *(jnp.int32(x[-1]) for x in (mover, blue, red)), start + length
        ),
    )
    states = two_colors.State(
        *(jnp.int32(x[:-1]) for x in (mover, blue, red)), start + jnp.arange(length)
    )
    uniforms = (jnp.arange(23) + 0.5) / 23
    step_everywhere = jax.vmap(jax.vmap(two_colors.step, (None, None, 0)), (0, 0, None))
    every, outcomes = jax.jit(step_everywhere)(states, rollout.actions, uniforms)
    np.testing.assert_array_equal(rollout.rewards, outcomes.reward[:, 0])
    np.testing.assert_array_equal(rollout.collected, outcomes.collected[:, 0])
    assert {-1, 0, 1} == set(rollout.collected.tolist())
    agrees = (
        (every.agent == mover[1:, None])
        & (every.blue == blue[1:, None])
        & (every.red == red[1:, None])
    )
    expected = np.where(rollout.collected == 0, 23, 1)
    np.testing.assert_array_equal(agrees.sum(-1), expected)


def test_collect_acts_with_the_frequencies_of_the_softmax():
    """Algorithm 1, a ~ π(· | s): χ² of 20,000 actions below 3 + 5 √(2 · 3)."""
    probabilities = np.array([0.1, 0.2, 0.3, 0.4])
    logits = jnp.log(probabilities) + 2.0  # Logits are free up to a constant.
    _, rollout, _ = collect(jax.random.key(0), START, lambda _: (logits, ()), 20_000)
    counts, expected = np.bincount(rollout.actions, minlength=4), 20_000 * probabilities
    assert np.sum((counts - expected) ** 2 / expected) < 3 + 5 * np.sqrt(6)


def test_collect_acts_on_what_it_sees():
    """Algorithm 1, a_t ~ π(· | s_t): a policy that is sure says the action at s_t.

    Its logits are random in the observation, and far above Gumbel noise.
    """
    weights = 1e4 * jax.random.normal(jax.random.key(1), (30, 4))
    _, rollout, _ = collect(
        jax.random.key(2), START, lambda seen: (seen @ weights, ()), 100
    )
    assert len(set(rollout.actions.tolist())) > 1
    np.testing.assert_array_equal(
        rollout.actions, np.argmax(rollout.observations[:-1] @ weights, axis=-1)
    )


def test_an_empty_rollout_is_shaped_like_a_collected_one():
    """A scan carries the last rollout, so both have the same shapes and types."""
    collected = jax.eval_shape(
        lambda key: two_colors.collect(
            key, START, lambda _: (jnp.zeros(4), ()), small.LENGTH
        )[1],
        jax.random.key(0),
    )
    empty = two_colors.empty_rollout(small.LENGTH)
    chex.assert_trees_all_equal_shapes_and_dtypes(empty, collected)
    chex.assert_shape(
        empty.observations, (small.LENGTH + 1, two_colors.OBSERVATION_SIZE)
    )


@pytest.mark.parametrize("return_steps", [1, 3])
def test_an_update_descends_equation_4(return_steps):
    """Algorithm 2: x − α∇(ε_PG ℓ_PG + ε(t) ℓ_EN) and z − α∇ ε_TD ℓ_TD, averaged."""
    config = small.make_config(return_steps=return_steps)
    learner = experienced_learner()
    updated = update(config, learner)
    weight = entropy_weight(updated.recent_rewards)
    expected = jax.jit(descended)(config, learner.params, weight, updated.rollout)
    chex.assert_trees_all_close(updated.params, expected, **TO_ROUNDING)


def test_policy_loss_is_that_of_equation_4():
    """Eq. 4 without its ℓ_TD, at any policy: advantages are of the learner's critic."""
    config, learner = small.make_config(value_weight=0.0), experienced_learner()
    policy = jax.tree.map(lambda x: 1.5 * x + 0.1, learner.params.policy)
    actual = jax.jit(agent.policy_loss)(config, learner, policy, 0.2)
    expected = jax.jit(equation_4)(
        config,
        learner.params._replace(policy=policy),
        learner.params.value,
        learner.rollout,
        0.2,
    )
    chex.assert_trees_all_close(actual, expected, **TO_ROUNDING)


def test_an_update_acts_before_it_learns():
    """Algorithm 2: the rollout goes on from the world, and is of the policy before."""
    config, learner = small.make_config(), experienced_learner()
    # Logits far above Gumbel noise: their largest is the action.
    sure = jax.tree.map(lambda x: 1e4 * x, learner.params.policy)
    learner = learner._replace(params=learner.params._replace(policy=sure))
    updated = update(config, learner)
    observations = updated.rollout.observations
    logits = agent.policy_network(config).apply(sure, observations[:-1])
    np.testing.assert_array_equal(updated.rollout.actions, np.argmax(logits, axis=-1))
    for at, environment in ((0, learner.environment), (-1, updated.environment)):
        np.testing.assert_array_equal(observations[at], two_colors.observe(environment))
    assert updated.environment.steps == learner.environment.steps + small.LENGTH


def test_every_rollout_has_its_own_noise():
    """Style rule 9, a key is used once: a uniform policy acts differently each time."""
    config, learner = small.make_config(), experienced_learner()
    uniform = jax.tree.map(jnp.zeros_like, learner.params.policy)
    first, second = (
        update(config, x._replace(params=x.params._replace(policy=uniform)))
        for x in (learner, update(config, learner))
    )
    assert np.any(first.rollout.actions != second.rollout.actions)


def test_the_mean_reward_of_a_rollout_counts_before_its_update():
    """B.2: t holds the mean rewards of recent rollouts, oldest first, this one too."""
    config, learner = small.make_config(), experienced_learner()
    updated = update(config, learner)
    expected = [*learner.recent_rewards[1:], np.mean(updated.rollout.rewards)]
    np.testing.assert_allclose(updated.recent_rewards, expected, rtol=1e-6)
    measured = (
        updated.statistics.since_row["entropy_weight"]
        - learner.statistics.since_row["entropy_weight"]
    )
    np.testing.assert_allclose(
        measured, entropy_weight(updated.recent_rewards), **TO_ROUNDING
    )


@pytest.mark.parametrize("is_pending", [False, True])
def test_a_normalized_input_has_the_moments_of_all_rollouts(is_pending):
    """Luketina et al. (2022): tanh((r̄ − m) / s), here after more rollouts than in t."""
    config = small.make_config(
        meta_input="normalized_mean_rewards", num_recent_rollouts=10
    )
    learner = jax.jit(agent.init)(config, jax.random.key(1))
    rewards = []
    for _ in range(13):
        before, learner = learner, update(config, learner)
        rewards.append(np.mean(learner.rollout.rewards))
    if is_pending:
        learner = small.look_ahead(config, before)
    normalized = np.tanh((np.array(rewards) - np.mean(rewards)) / np.std(rewards))
    assert np.std(normalized) > 0.3
    actual = agent.meta_input(config, learner)
    np.testing.assert_allclose(actual, normalized[-10:], rtol=1e-4, atol=1e-5)
    if not is_pending:
        total = learner.statistics.since_row["entropy_weight"]
        measured = total - before.statistics.since_row["entropy_weight"]
        np.testing.assert_allclose(measured, entropy_weight(actual), rtol=1e-4)


def test_what_a_rollout_saw_and_paid_is_constant_and_the_rest_is_not():
    """`update_rule`, "Gradient": the vector-Jacobian product of one step of Eq. 4.

    By hand the rollout is an argument and z̄ a constant: ∂x′/∂x = 1 − α∇²f, and so on
    for z and ε.
    """
    config, learner = small.make_config(), experienced_learner()
    weight = jnp.float32(0.4)
    cotangent = jax.tree.map(jnp.cos, learner.params)  # Any vector.

    @jax.jit
    def pulled_back(params, weight):
        def updated(params, weight):
            updated = agent.update_rule(config, lambda _: weight)(
                learner._replace(params=params)
            )
            return updated.params, updated.rollout

        _, pull_back, rollout = jax.vjp(updated, params, weight, has_aux=True)
        _, pull_back_by_hand = jax.vjp(
            lambda params, weight: descended(config, params, weight, rollout),
            params,
            weight,
        )
        return pull_back(cotangent), pull_back_by_hand(cotangent)

    actual, expected = pulled_back(learner.params, weight)
    chex.assert_trees_all_close(actual, expected, **TO_ROUNDING)


def test_statistics_carry_no_derivative():
    """What is only recorded has no gradient, in the parameters or in ε."""
    config, learner = small.make_config(), experienced_learner()

    @jax.jit
    @jax.grad
    def gradient(inputs):
        params, weight = inputs
        updated = agent.update_rule(config, lambda _: weight)(
            learner._replace(params=params)
        )
        return sum(jax.tree.leaves(updated.statistics.since_row))

    gradients = gradient((learner.params, jnp.float32(0.4)))
    chex.assert_trees_all_equal(gradients, jax.tree.map(jnp.zeros_like, gradients))


def test_a_pending_update_is_an_update():
    """B.2: a target's gradients are shared with the next update, which is unchanged."""
    config, learner = small.make_config(), experienced_learner()
    waiting = small.look_ahead(config, learner)
    chex.assert_trees_all_equal(waiting.params, learner.params)
    actual = jax.jit(
        lambda config, learner: agent.update_pending(config, entropy_weight, learner)
    )(config, waiting)
    expected = update(config, learner)
    actual, expected = (
        x._replace(key=jax.random.key_data(x.key)) for x in (actual, expected)
    )
    chex.assert_trees_all_close(actual, expected, **TO_ROUNDING)


def test_a_pending_rollout_is_not_counted():
    """Progress counts the environment steps that updates have used, N each."""
    config, learner = small.make_config(), experienced_learner()
    assert agent.env_steps(config, learner) == 4 * small.LENGTH
    waiting = small.look_ahead(config, learner)
    assert waiting.environment.steps == 5 * small.LENGTH
    assert agent.env_steps(config, waiting) == 4 * small.LENGTH
