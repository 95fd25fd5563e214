"""The Q(λ) trainer of two-colors: its agent's step and both update kinds."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small_q_lambda as small

from bmg_sweeps.core import epsilon_greedy, networks
from bmg_sweeps.environments import two_colors
from trainers import _two_colors_meta, _two_colors_statistics
from trainers import _two_colors_q_agent as agent
from trainers import two_colors_q_lambda as trainer


def q(config, params, observations):
    """Appendix B.3, with the slope of the ReLUs below 0."""

    def activation(z):
        return jnp.where(z > 0, z, config.hidden_leak * z)

    network = networks.mlp(config.hidden_sizes, two_colors.NUM_ACTIONS, activation)
    return network.apply(params, observations)


def learned_epsilon(config, meta_params, recent_rewards):
    """Appendix B.3, ε_w(t): a network with a sigmoid output, Table 1."""
    network = networks.mlp(config.meta_hidden_sizes, 1)
    return 1 / (1 + jnp.exp(-network.apply(meta_params, recent_rewards)[..., 0]))


def averaged_adam(rate, b1, b2, eps, eps_root, decay):
    """A bias-corrected moving average, then Adam, written out for a list of arrays."""

    def direction(gradients):
        average = first = second = 0.0
        for t, gradient in enumerate(gradients, start=1):
            average = decay * average + (1 - decay) * gradient
            corrected = average / (1 - decay**t)
            first = b1 * first + (1 - b1) * corrected
            second = b2 * second + (1 - b2) * corrected**2
        root = np.sqrt(second / (1 - b2**t) + eps_root)
        return -rate * first / (1 - b1**t) / (root + eps)

    return direction


class Steps:
    """Three steps of the agent, with what it saw and did, to be done by hand."""

    def __init__(self, config):
        state = small.init(config, jax.random.key(3), None)
        self.learners, self.visited = [state.learner], []
        for _ in range(3):
            learner, visited = small.learner_after(
                config, jnp.array(0.5), self.learners[-1], 1
            )
            self.learners.append(learner)
            self.visited.append(visited)

    def observation(self, t):
        """What the agent saw before its step t."""
        return two_colors.observe(self.learners[t].environment)

    def reward(self, t):
        """Of the step from s_t."""
        return self.learners[t + 1].recent_rewards[-1]

    def action(self, t):
        """The one that leads from s_t to the agent's next cell and pays as much."""
        before, after = (self.learners[i].environment for i in (t, t + 1))
        for action in range(two_colors.NUM_ACTIONS):
            moved, _ = two_colors.step(before, jnp.array(action), jnp.array(0.0))
            if moved.agent == after.agent:
                return action
        raise AssertionError("no action leads there")


@pytest.mark.parametrize("values", [{}, {"adam_eps_root": 0.01, "hidden_leak": 0.3}])
def test_an_update_is_a_step_of_averaged_adam_on_what_the_trace_credits(values):
    """Appendix B.3 and Table 1: gradient EMA, then Adam, on every step.

    Two actions into a wall would be one and the same here; the seed has none.
    """
    config = small.make_config(**values)
    steps = Steps(config)
    gamma, decay = config.discount, config.trace_decay
    descend = averaged_adam(
        config.learning_rate,
        config.adam_b1,
        config.adam_b2,
        config.adam_eps,
        config.adam_eps_root,
        config.gradient_decay,
    )
    _, unravel = jax.flatten_util.ravel_pytree(steps.learners[0].params)

    @jax.jit
    def values(x, seen):
        return q(config, unravel(x), seen)

    slopes = jax.jit(jax.jacrev(values))
    trace, descended = 0.0, []
    for t in range(3):
        params, _ = jax.flatten_util.ravel_pytree(steps.learners[t].params)
        before, after = steps.observation(t), steps.observation(t + 1)
        action = steps.action(t)
        value = values(params, before)[action]
        best, best_after = (values(params, seen).max() for seen in (before, after))
        target = steps.reward(t) + gamma * best_after
        gradient = slopes(params, before)[action]
        trace *= gamma * decay
        descended.append(-((target - best) * trace + (target - value) * gradient))
        trace = trace + gradient
        expected = params + descend(descended)
        actual, _ = jax.flatten_util.ravel_pytree(steps.learners[t + 1].params)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
    actual, _ = jax.flatten_util.ravel_pytree(steps.learners[3].trace)
    np.testing.assert_allclose(actual, trace, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("epsilon", [0.4, 1.0])
def test_the_agent_explores_at_the_rate_that_it_is_given(epsilon):
    """B.3: the best action with probability 1 − ε + ε/4."""
    config = small.make_config(learning_rate=1e-9)
    state = small.init(config, jax.random.key(0), None)
    params, num_steps = state.learner.params, 4000
    _, visited = small.learner_after(
        config, jnp.array(epsilon), state.learner, num_steps
    )
    cells = visited.observations.reshape(-1, 6, 5).argmax(-1)  # Coordinates.
    best = q(config, params, visited.observations).argmax(-1)[:-1]
    moves = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])
    wanted = np.clip(cells[:-1, 4:] + moves[best], 0, 4)
    is_as_wanted = np.all(wanted == cells[1:, 4:], axis=-1)
    # A move into a wall looks the same whichever of two walls it is.
    is_clear = np.all((cells[:-1, 4:] > 0) & (cells[:-1, 4:] < 4), axis=-1)
    share, count = np.mean(is_as_wanted[is_clear]), np.sum(is_clear)
    expected = 1 - 0.75 * epsilon
    error = np.sqrt(expected * (1 - expected) / count)
    assert count > 100
    assert abs(share - expected) <= 4 * error


def test_without_exploration_the_best_action_is_taken():
    """B.3 with ε = 0, from the first states of forty worlds."""
    config = small.make_config(learning_rate=1e-9)
    for seed in range(40):
        learner = small.init(config, jax.random.key(seed), None).learner
        before = two_colors.observe(learner.environment)
        best = q(config, learner.params, before).argmax()
        after, _ = small.learner_after(config, jnp.array(0.0), learner, 1)
        expected, _ = two_colors.step(learner.environment, best, jnp.array(0.5))
        assert after.environment.agent == expected.agent


def test_the_input_of_the_meta_network_is_the_rewards_oldest_first():
    config = small.make_config()
    steps = Steps(config)
    rewards = [steps.reward(t) for t in range(3)]
    np.testing.assert_array_equal(steps.learners[3].recent_rewards, [0, 0, *rewards])
    np.testing.assert_array_equal(
        steps.visited[2].meta_inputs[0], [0, 0, 0, *rewards[:2]]
    )


def test_a_normalized_input_has_the_moments_of_all_rewards():
    """Luketina et al. (2022): also of those that are no longer in the input."""
    config = small.make_config(
        meta_input="normalized_recent_rewards", num_recent_rewards=100
    )
    learner, every = small.init(config, jax.random.key(0), None).learner, []
    for _ in range(3):
        learner, visited = small.learner_after(config, jnp.array(1.0), learner, 100)
        every.append(learner.recent_rewards)
        assert not np.isnan(visited.meta_inputs).any()
    *_, last = every
    assert np.std(every) > 0.1
    expected = np.tanh((last - np.mean(every)) / np.std(every))
    actual = agent.normalized_recent_rewards(learner)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_without_context_epsilon_is_one_number():
    """Luketina et al. (2022): whatever the rewards, in all of the states."""
    config = small.make_config(meta_input="no_rewards")
    state = small.start(config)
    assert np.any(state.learner.recent_rewards != 0)
    _, _, _, inputs = replayed(config, state)
    np.testing.assert_array_equal(inputs, 0)
    before = learned_epsilon(config, state.meta_params, inputs[0])
    after, _ = small.update(config, state)
    assert learned_epsilon(config, after.meta_params, inputs[0]) != before


@jax.jit
def replayed(config, state):
    """The L steps of a meta-update again: who learned, and what the meta-loss is of."""

    def epsilon(recent_rewards):
        return learned_epsilon(config, state.meta_params, recent_rewards)

    learner, visited = agent.act_and_learn(
        config, epsilon, state.learner, config.target_steps
    )
    own, target = (
        q(config, params, visited.observations)
        for params in (state.learner.params, learner.params)
    )
    return learner, target, own, visited.meta_inputs


@pytest.mark.parametrize("matching_function", ["policy_kl", "value"])
def test_bmg_steps_on_the_distance_to_where_l_steps_led(matching_function):
    """B.3: w ← w + Adam(EMA(∇_w E_s μ(x̃, x))), x before and x̃ after L steps."""
    config = small.make_config(matching_function=matching_function)
    state = small.init(config, jax.random.key(5), None)
    descend = averaged_adam(
        config.meta_learning_rate,
        config.meta_adam_b1,
        config.meta_adam_b2,
        config.meta_adam_eps,
        0.0,
        config.meta_gradient_decay,
    )
    distance = getattr(epsilon_greedy, matching_function)
    _, unravel = jax.flatten_util.ravel_pytree(state.meta_params)

    @jax.jit
    @jax.value_and_grad
    def meta_loss(flat, target, own, recent_rewards):
        rates = learned_epsilon(config, unravel(flat), recent_rewards)
        return distance(target, own, rates)

    gradients = []
    for number in range(1, 4):
        learner, *matched = replayed(config, state)
        flat, _ = jax.flatten_util.ravel_pytree(state.meta_params)
        loss, gradient = meta_loss(flat, *matched)
        gradients.append(gradient)
        expected = flat + descend(gradients)
        state, metrics = small.update(config, state)
        actual, _ = jax.flatten_util.ravel_pytree(state.meta_params)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
        chex.assert_trees_all_close(state.learner.params, learner.params, rtol=1e-5)
        assert metrics["meta_loss"] == pytest.approx(float(loss), rel=1e-5)
        norm = float(jnp.linalg.norm(gradient))
        assert metrics["meta_gradient_norm"] == pytest.approx(norm, rel=1e-4)
        assert norm > 0
        assert metrics["meta_updates"] == number


def test_the_agent_acts_with_the_epsilon_of_w():
    """W with a large bias explores on every step; with a very negative one on none."""
    config = small.make_config()
    start = small.init(config, jax.random.key(0), None)
    last = list(start.meta_params)[-1]
    for bias in (-30.0, 30.0):
        biased = jax.tree.map(jnp.zeros_like, start.meta_params)
        biased[last]["b"] = jnp.array([bias])
        rate = jnp.array(float(bias > 0))
        state, expected = start, start.learner
        for _ in range(22):
            state, _ = small.update(config, state._replace(meta_params=biased))
            expected, _ = small.learner_after(
                config, rate, expected, int(config.target_steps)
            )
            assert state.learner.environment == expected.environment


def test_a_fixed_epsilon_needs_no_meta_learner():
    config = small.make_config(**small.FIXED)
    state = small.start(config, num_meta_updates=0)
    after, metrics = small.update(config, state)
    expected, _ = small.learner_after(config, config.epsilon, state.learner, 1)
    chex.assert_trees_all_close(after.learner.params, expected.params)
    chex.assert_trees_all_equal(after.meta_params, state.meta_params)
    assert metrics["meta_gradient_norm"] == 0


def test_an_update_is_the_same_with_and_without_jit():
    """Style rule 10: `update` gives the same numbers, to rounding."""
    config = small.make_config()
    state = small.start(config)
    expected, _ = small.update(config, state)
    actual, _ = trainer.update(config, state)
    for one, other in (
        (actual.meta_params, expected.meta_params),
        (actual.learner.params, expected.learner.params),
    ):
        chex.assert_trees_all_close(one, other, rtol=1e-4, atol=1e-6)


def test_points_of_a_fixed_epsilon_trained_together_are_points_alone(monkeypatch):
    """Style rule 5: `vmap` over a stacked `Config`; test_contracts has BMG."""
    monkeypatch.setattr(_two_colors_meta, "CHUNK_ENV_STEPS", 30)
    with jax.enable_x64():
        configs = [
            small.make_config(
                seed=seed, learning_rate=rate, epsilon=10 * rate, **small.FIXED
            )
            for seed, rate in ((0, 0.01), (1, 0.02), (2, 0.04))
        ]

        def trained(config):
            state = trainer.init(config, jax.random.key(config.seed), None)
            state, _ = trainer.train(config, state, None)
            return state.learner.params, state.meta_params

        together = jax.jit(jax.vmap(trained))(
            jax.tree.map(lambda *x: jnp.stack(x), *configs)
        )
        alone = jax.jit(trained)
        expected = jax.tree.map(lambda *x: jnp.stack(x), *map(alone, configs))
        chex.assert_trees_all_close(together, expected, rtol=1e-6)


def test_rows_are_at_exact_steps_whatever_l(monkeypatch):
    """L = 7 divides no budget; rewards are counted to the step all the same."""
    monkeypatch.setattr(_two_colors_statistics, "RECORD_EVERY", 100)
    monkeypatch.setattr(_two_colors_meta, "CHUNK_ENV_STEPS", 200)
    config = small.make_config(target_steps=7)
    state = small.init(config, jax.random.key(0), None)
    train = jax.jit(trainer.train, static_argnums=2)
    columns = []
    for _ in range(2):
        state, rows = train(config, state, None)
        columns.append(rows)
    steps, rates = (
        np.concatenate([rows[name] for rows in columns])
        for name in ("env_steps", "reward_per_step")
    )
    rewards = dict(zip(steps.tolist(), rates.tolist(), strict=True))
    assert sorted(rewards) == [100, 200, 300]
    assert state.learner.environment.steps == 2 * (200 // 7) * 7
    last = {name: rows[-1] for name, rows in columns[-1].items()}
    assert 0 < last["epsilon"] < 1
    assert last["total_reward"] == pytest.approx(100 * sum(rewards.values()), rel=1e-3)


def test_progress_counts_steps_and_meta_updates():
    config = small.make_config()
    state = small.start(config, num_meta_updates=4)
    counted = trainer.progress(config, state)
    assert counted == {"env_steps": 12, "meta_updates": 4}


@pytest.mark.parametrize("values", [{}, {"target_steps": 1}])
def test_fields_without_effect_must_have_their_value(values):
    """So that no two points run the same."""
    with pytest.raises(ValueError, match="where there is no target"):
        small.make_config(
            update_kind="fixed_epsilon", matching_function="value", **values
        )
    with pytest.raises(ValueError, match=r"^meta_input = 'no_rewards': expected 'rec"):
        small.make_config(meta_input="no_rewards", **small.FIXED)


@pytest.mark.usefixtures("optimized")
def test_it_learns_in_the_first_cycle():
    """BMG: to collect the good square, and from ε = ½ to explore less."""
    values = {
        "hidden_sizes": (64,),
        "learning_rate": 3e-4,
        "adam_b1": 0.9,
        "adam_b2": 0.999,
        "adam_eps": 1e-4,
        "gradient_decay": 0.9,
        "discount": 0.95,
        "trace_decay": 0.7,
        "meta_learning_rate": 1e-3,
        "target_steps": 16,
    }
    train = jax.jit(trainer.train, static_argnums=2)
    config = small.make_config(**values)
    state = small.init(config, jax.random.key(0), None)
    for _ in range(3):
        state, rows = train(config, state, None)
    assert rows["reward_per_step"][-1] > 0.1
    assert rows["epsilon"][-1] < 0.2
