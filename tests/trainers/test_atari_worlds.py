"""Where Atari's agents act: what is seen, kept, sampled, and learned from when."""

import collections
import dataclasses
import hashlib
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small_atari

from bmg_sweeps.environments.minatar import breakout
from trainers import _atari_agent, _atari_updates, _atari_worlds, atari

N, LENGTH, NUM_ONLINE, CAPACITY, SAMPLES = 4, 5, 2, 6, 150
UPDATES = N // NUM_ONLINE
ROUNDS = 9
WEIGHTS = np.arange(1, 401, dtype=np.float32).reshape(10, 10, 4)


def act(observations, uniforms):
    """Any actions; the logits say what was seen, what was drawn and what was done."""
    actions = jnp.floor(uniforms * 3).astype(jnp.int32)
    seen = jnp.sum(observations * WEIGHTS[None], axis=(1, 2, 3))
    return actions, jnp.stack([seen, uniforms, actions.astype(jnp.float32)], axis=-1)


@pytest.fixture(scope="module")
def rounds():
    """Rounds of Breakout, in a ring that wraps in the middle of the second."""
    config = small_atari.make_config(
        num_environments=N,
        unroll_length=LENGTH,
        num_online=NUM_ONLINE,
        replay_capacity=SAMPLES,
        num_replay=2,
        meta_replay=SAMPLES,
        record_interval=UPDATES,
    )
    # More samples than there are, so that few rounds show how they are drawn.
    config = dataclasses.replace(config, replay_capacity=CAPACITY)
    world = _atari_worlds.of(config.game)

    @jax.jit
    def play(state, key):
        state, played = world.play(config, state, act, key, None)
        seen = jax.vmap(lambda stored: world.trajectories(config, stored))
        recent = world.recent_observations(config, state, None)
        return state, played, seen(played.trajectories), recent

    state = jax.jit(world.start)(config, jax.random.key(5))
    found = []
    for i in range(ROUNDS):
        state, *seen = play(state, jax.random.key(i))
        found.append(jax.tree.map(np.asarray, tuple(seen)))
    return found


def online(array):
    """[U, T, M, …] of a round to [T, N, …] of those that are new, in order."""
    return np.concatenate(list(array[:, :, :NUM_ONLINE]), axis=1)


def sampled(array):
    """[U, T, M, …] of a round to [T, U · samples, …] of those from the replay."""
    return np.concatenate(list(array[:, :, NUM_ONLINE:]), axis=1)


def test_each_new_trajectory_is_online_once_and_in_order(rounds):
    """As their rewards and ends of games say, which are those of the round."""
    for played, trajectories, _ in rounds:
        np.testing.assert_array_equal(online(trajectories.r_t), played.rewards)
        np.testing.assert_array_equal(
            online(trajectories.continues_t), ~played.is_game_over
        )
        expected = [True] * NUM_ONLINE + [False] * SAMPLES
        np.testing.assert_array_equal(trajectories.is_online, [expected] * UPDATES)


def test_logits_are_those_by_which_was_acted(rounds):
    """On the observation at their own step, and with the action that came of them."""
    for _, trajectories, _ in rounds:
        seen, uniforms, actions = np.moveaxis(trajectories.behavior_logits_t, -1, 0)
        expected = np.sum(
            trajectories.observations[:, :-1] * WEIGHTS, axis=(-3, -2, -1)
        )
        np.testing.assert_array_equal(seen, expected)
        np.testing.assert_array_equal(actions, trajectories.a_t)
        np.testing.assert_array_equal(np.floor(uniforms * 3), trajectories.a_t)


def test_trajectories_go_on_where_the_last_ended(rounds):
    """The last observation of one is the first of the next, in each world."""
    for (_, before, _), (_, after, _) in itertools.pairwise(rounds):
        np.testing.assert_array_equal(
            online(before.observations)[-1], online(after.observations)[0]
        )


def test_games_end_where_the_next_begins(rounds):
    """Breakout's own: a reward is a brick less, and the next state is no first one."""
    starts = [
        np.asarray(breakout.observe(breakout.reset(jnp.array([u])))) for u in (0.0, 0.9)
    ]
    num_ends = 0
    for played, trajectories, _ in rounds:
        observations = online(trajectories.observations)
        bricks = observations[..., 3].sum((-2, -1))
        for t, n in np.ndindex(LENGTH, N):
            is_start = any((observations[t + 1, n] == start).all() for start in starts)
            assert is_start == played.is_game_over[t, n]
            if not is_start:
                assert bricks[t, n] - bricks[t + 1, n] == played.rewards[t, n]
            num_ends += is_start
    assert num_ends > 3
    assert any(played.rewards.any() for played, *_ in rounds)


def test_samples_are_the_newest_trajectories_and_all_of_them(rounds):
    """4 in the first round; then the 6 newest: two of the round before, and the new."""
    history = []
    for _, trajectories, _ in rounds:
        keys = trajectories.behavior_logits_t[..., 1]  # Uniforms: no two are the same.
        history += [tuple(column) for column in online(keys).T]
        drawn = [tuple(column) for column in sampled(keys).T]
        assert set(drawn) == set(history[-CAPACITY:])
    assert len(set(history)) == ROUNDS * N


def test_features_are_measured_on_all_of_the_replay(rounds):
    """24 trajectories: 6 times each of the 4 of the first round, then 4 times 6."""
    history = []
    for _, trajectories, recent in rounds:
        history += list(np.moveaxis(online(trajectories.observations), 1, 0))
        newest = [one.tobytes() for one in history[-CAPACITY:]]
        measured = np.moveaxis(recent.reshape(LENGTH + 1, -1, *recent.shape[1:]), 1, 0)
        times = collections.Counter(one.tobytes() for one in measured)
        assert set(times) == set(newest)
        assert times.total() == 24
        assert all(times[one] % (24 // len(newest)) == 0 for one in times)


def test_features_on_emulators_are_measured_on_as_many_states_whatever_k_and_l():
    """Two new trajectories and three from the replay, of six states each."""
    agents = (
        {"inner_steps": 1, "target_steps": 1, "meta_replay": 3},
        {"inner_steps": 2, "target_steps": 3, "meta_replay": 5},
    )
    measured = []
    for values in agents:
        config = small_atari.make_config(**small_atari.PONG | values)
        with atari.open_source(config) as source:
            shapes = source.delivers
        names = np.arange(shapes["frames"].shape[1], dtype=np.uint8)
        arrays = {
            name: np.ones(part.shape, part.dtype) for name, part in shapes.items()
        }
        arrays["frames"] = arrays["frames"] * names.reshape(-1, 1, 1, 1, 1)
        measure = _atari_worlds.of("pong").recent_observations
        measured.append(np.asarray(measure(config, None, arrays)))
    assert measured[0].shape == (5 * 6, 24, 20, 4)
    assert set(np.unique(measured[0])) == {0, 1, 2, 3, 4}
    np.testing.assert_array_equal(*measured)


def test_samples_are_uniform(rounds):
    """Of 2,400 draws in 8 rounds, each place of 6 has 400, σ = 18."""
    counts, history = np.zeros(CAPACITY), []
    for _, trajectories, _ in rounds:
        keys = trajectories.behavior_logits_t[..., 1]
        history += [tuple(column) for column in online(keys).T]
        if len(history) > N:
            drawn = [tuple(column) for column in sampled(keys).T]
            counts += [drawn.count(one) for one in history[-CAPACITY:]]
    expected = (ROUNDS - 1) * UPDATES * SAMPLES / CAPACITY
    deviation = np.sqrt(expected * (1 - 1 / CAPACITY))
    assert np.abs(counts - expected).max() < 4 * deviation


def test_what_is_sampled_is_a_whole_trajectory(rounds):
    """Observations, actions, rewards and logits that belong together."""
    known = {}
    for _, trajectories, _ in rounds:
        for part in (online, sampled):
            arrays = [part(array) for array in trajectories[:-1]]
            for i in range(arrays[0].shape[1]):
                key = tuple(arrays[-1][:, i, 1])
                columns = [array[:, i] for array in arrays]
                for a, b in zip(columns, known.setdefault(key, columns), strict=True):
                    np.testing.assert_array_equal(a, b)


def test_batches_are_dealt_out_in_order():
    """K = 3, L = 4, and a meta-objective that sees more replay."""
    config = small_atari.make_config(
        inner_steps=3, target_steps=4, num_online=2, num_replay=3, meta_replay=5
    )
    number = config.num_online + _atari_worlds.num_samples(config)
    assert number == 2 + 5 + (2 + 3) * 3
    trajectories = small_atari.trajectories(config, number)
    names = jnp.arange(number)
    trajectories = trajectories._replace(a_t=jnp.tile(names, (5, 1)))
    batches = atari.batches_of(config, trajectories)
    for part, expected in (
        (batches.main, [0, 1, 2, 3, 4]),
        (batches.meta, [0, 1, 2, 3, 4, 5, 6]),
        (batches.inner, [[7, 8, 9], [10, 11, 12]]),
        (batches.target, [[13, 14, 15], [16, 17, 18], [19, 20, 21]]),
    ):
        np.testing.assert_array_equal(part.a_t[..., 0, :], expected)
        np.testing.assert_array_equal(part.is_online, np.array(expected) < 2)
        np.testing.assert_array_equal(
            part.behavior_logits_t[..., 0, :, 0],
            trajectories.behavior_logits_t[0, np.array(expected), 0],
        )


def test_updates_without_batches_of_their_own_have_none():
    """K = L = 1."""
    config = small_atari.make_config()
    number = config.num_online + _atari_worlds.num_samples(config)
    batches = atari.batches_of(config, small_atari.trajectories(config, number))
    assert batches.inner is None
    assert batches.target is None


def test_only_the_first_update_of_a_round_is_on_policy(monkeypatch):
    """With 3 updates a round the lags are 0, 1 and 2, as rows say; and so it is."""

    def watched(given, learner):
        batch = given.batches.main
        logits = _atari_agent.apply(
            given.config,
            learner.agent.params,
            batch.observations[:-1],
            given.is_legal,
        ).logits[:, :NUM_ONLINE, 0]
        behavior = batch.behavior_logits_t[:, :NUM_ONLINE]
        is_on_policy = jnp.max(jnp.abs(logits - behavior)) < 1e-5
        metrics = dict.fromkeys(
            ("policy_gradient_loss", "value_loss", "relevant", "gradient_norm"),
            jnp.float32(0),
        ) | {"entropy": is_on_policy.astype(jnp.float32)}
        params = jax.tree.map(lambda leaf: 1.5 * leaf, learner.agent.params)
        agent = learner.agent._replace(params=params)
        return learner._replace(agent=agent), metrics

    monkeypatch.setitem(_atari_updates.UPDATE_KINDS, "impala", watched)
    config = small_atari.make_config(
        **small_atari.IMPALA, num_environments=6, num_online=2, record_interval=6
    )
    state = jax.jit(atari.init, static_argnums=2)(config, jax.random.key(0), None)
    state, row = jax.jit(atari.train, static_argnums=2)(config, state, None)
    np.testing.assert_allclose(row["entropy"], 1 / 3, rtol=1e-6)
    np.testing.assert_allclose(row["policy_lag"], 1, rtol=1e-6)
    assert row["updates"] == 6
    assert row["frames"] == 6 * 2 * 5


def test_real_games_share_one_program():
    """Six actions or eighteen: which a game has is data."""

    def program(game):
        config = small_atari.make_config(
            **small_atari.PONG | small_atari.IMPALA | {"game": game}
        )
        with atari.open_source(config) as source:
            delivers = source.delivers
        state = jax.eval_shape(
            lambda config, key: atari.init(config, key, None),
            *(config, jax.random.key(0)),
        )
        text = jax.jit(atari.train).lower(config, state, delivers).as_text()
        return hashlib.sha256(text.encode()).hexdigest()

    assert program("pong") == program("boxing")


@pytest.mark.parametrize(
    ("game", "num_legal", "random", "reference"),
    [("pong", 6, -20.7, 14.6), ("boxing", 18, 0.1, 12.1)],
)
def test_a_game_knows_its_actions_and_its_scores(game, num_legal, random, reference):
    """Of random play and of a human."""
    found = _atari_worlds.of(game).game(game)
    assert found.is_legal.tolist() == [True] * num_legal + [False] * (18 - num_legal)
    np.testing.assert_allclose([found.random, found.reference], [random, reference])


def test_frames_are_four_a_step_on_atari_and_one_on_minatar():
    """Two trajectories of five steps an update."""
    config = small_atari.make_config()
    for game, frames in (("minatar_breakout", 30), ("pong", 120)):
        here = dataclasses.replace(config, game=game)
        assert atari._frames(here, 3) == frames
