"""MinAtar's worlds: episodes, sticky actions, new beginnings, packed observations."""

import functools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.environments.minatar import asterix, breakout, freeway, worlds

NAMES = sorted(worlds.GAMES)
NUM_WORLDS = 4
NUM_STEPS = 2_600  # More than an episode of Freeway.
STICKY_PROBABILITY = 0.1


class Play(NamedTuple):
    """What worlds went through; the first axes are steps and worlds."""

    before: worlds.World
    actions: jax.Array
    keys: jax.Array
    after: worlds.World
    observations: jax.Array
    rewards: jax.Array
    ends: jax.Array


@functools.cache
def random_play(name):
    """Worlds side by side, each with keys of its own."""
    game = worlds.GAMES[name]
    key, action_key = jax.random.split(jax.random.key(0))
    keys = jax.random.split(key, (NUM_STEPS + 1, NUM_WORLDS))
    shape = (NUM_STEPS, NUM_WORLDS)
    actions = jax.random.randint(action_key, shape, 0, game.NUM_ACTIONS)
    act = jax.vmap(functools.partial(worlds.act, game), in_axes=(0, 0, None, 0))

    def step(before, inputs):
        action, key = inputs
        after, reward, is_over = act(before, action, STICKY_PROBABILITY, key)
        observation = jax.vmap(functools.partial(worlds.observe, game))(after)
        return after, Play(before, *inputs, after, observation, reward, is_over)

    start = jax.vmap(functools.partial(worlds.start, game))(keys[0])
    return jax.jit(functools.partial(jax.lax.scan, step))(start, (actions, keys[1:]))[1]


@functools.cache
def compiled_act(name):
    """A step of one world."""
    return jax.jit(functools.partial(worlds.act, worlds.GAMES[name]))


@pytest.mark.parametrize("name", NAMES)
def test_observations_and_rewards_are_what_a_game_says(name):
    """Bool cells, of which each channel has some; float32 rewards, never negative."""
    play = random_play(name)
    channels = worlds.GAMES[name].NUM_CHANNELS
    chex.assert_shape(play.observations, (NUM_STEPS, NUM_WORLDS, 10, 10, channels))
    chex.assert_type([play.observations, play.rewards, play.ends], [bool, float, bool])
    assert np.all(np.asarray(play.observations).any(axis=(0, 1, 2, 3)))
    assert np.asarray(play.rewards).min() == 0
    assert np.asarray(play.rewards).max() >= 1


@pytest.mark.parametrize("name", NAMES)
def test_an_episode_ends_and_the_next_begins_in_the_same_step(name):
    """A world's state is its game's next, or after an end its game's first."""
    game, play = worlds.GAMES[name], random_play(name)
    assert np.all(np.asarray(play.ends).any(axis=0))

    @jax.jit
    @functools.partial(jax.vmap, in_axes=0)
    @functools.partial(jax.vmap, in_axes=0)
    def follow(before, key, done):
        uniforms = jax.random.uniform(key, (1 + game.NUM_UNIFORMS,))[1:]
        return game.step(before.state, done, uniforms), game.reset(uniforms)

    (following, rewards, ends), first = follow(
        play.before, play.keys, play.after.last_action
    )
    chex.assert_trees_all_equal((rewards, ends), (play.rewards, play.ends))
    ends = np.asarray(ends)
    for expected, is_it in [(first, ends), (following, ~ends)]:
        expected, actual = jax.tree.map(
            lambda x, is_it=is_it: np.asarray(x)[is_it], (expected, play.after.state)
        )
        chex.assert_trees_all_equal(actual, expected, strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_an_action_sticks_as_often_as_told(name):
    """What is done is what was asked, or what was done before; across ends, too."""
    play = random_play(name)
    asked, done = np.asarray(play.actions), np.asarray(play.after.last_action)
    before = np.asarray(play.before.last_action)
    np.testing.assert_array_equal(before[1:], done[:-1])
    np.testing.assert_array_equal(before[0], 0)
    assert np.all((done == asked) | (done == before))
    sticks = (done == before)[asked != before]
    error = np.sqrt(STICKY_PROBABILITY * (1 - STICKY_PROBABILITY) / sticks.size)
    assert abs(sticks.mean() - STICKY_PROBABILITY) < 5 * error < 0.03


@pytest.mark.parametrize(("probability", "expected"), [(0.0, 2), (1.0, 0)])
def test_an_action_never_or_always_sticks(probability, expected):
    """At 0 the new action is done, whatever the draw; at 1 the first one, none."""
    world = worlds.start(worlds.GAMES["breakout"], jax.random.key(0))
    act = jax.vmap(compiled_act("breakout"), in_axes=(None, None, None, 0))
    keys = jax.random.split(jax.random.key(1), 1_000)
    world, _, _ = act(world, jnp.int32(2), probability, keys)
    np.testing.assert_array_equal(world.last_action, expected)


def assert_alone_is_as_beside_others(name, act):
    """Compares steps of one world with what became of it in `random_play`."""
    play = random_play(name)
    step_numbers = [0, *np.flatnonzero(play.ends[:, 0])[:1], NUM_STEPS - 1]
    for i in step_numbers:
        beside = jax.tree.map(lambda x, i=i: x[i, 0], play)
        alone = act(beside.before, beside.actions, STICKY_PROBABILITY, beside.keys)
        expected = beside.after, beside.rewards, beside.ends
        chex.assert_trees_all_equal(alone, expected, strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_world_alone_is_as_beside_others(name):
    """Purity: steps of one world, without vmap, from keys and actions alone."""
    assert_alone_is_as_beside_others(name, compiled_act(name))


@pytest.mark.parametrize(
    "name",
    [n if n == "breakout" else pytest.param(n, marks=pytest.mark.slow) for n in NAMES],
)
def test_a_world_is_the_same_without_jit(name):
    """Purity, where each operation runs by itself."""

    def act(*arguments):
        with jax.disable_jit():
            return worlds.act(worlds.GAMES[name], *arguments)

    assert_alone_is_as_beside_others(name, act)


@pytest.mark.parametrize("name", NAMES)
def test_packed_observations_unpack_to_what_was_seen(name):
    """A bit a cell: 50, 88 and 75 bytes for 4, 7 and 6 channels."""
    game, play = worlds.GAMES[name], random_play(name)
    observations = play.observations[:, 0]
    bits = jax.jit(jax.vmap(worlds.packed))(observations)
    chex.assert_shape(bits, (NUM_STEPS, -(-100 * game.NUM_CHANNELS // 8)))
    chex.assert_type(bits, jnp.uint8)
    np.testing.assert_array_equal(
        bits, np.packbits(np.asarray(observations).reshape(NUM_STEPS, -1), axis=1)
    )
    unpacked = jax.jit(jax.vmap(functools.partial(worlds.unpacked, game=game)))(bits)
    chex.assert_type(unpacked, jnp.float32)
    np.testing.assert_array_equal(unpacked, observations.reshape(NUM_STEPS, -1))


def middles(number):
    """[number] equally spaced uniforms, each in the middle of its part."""
    return (jnp.arange(number) + 0.5) / number


def test_the_ball_comes_from_each_side_equally_often():
    states = jax.jit(jax.vmap(breakout.reset))(middles(100)[:, jnp.newaxis])
    sides = np.stack([states.column, states.right], axis=-1)
    assert np.all(sides == [[0, 1]] * 50 + [[9, -1]] * 50)


def test_cars_have_ten_equally_likely_speeds_and_directions():
    """Each of them, and each pair of two cars that share a uniform."""
    uniforms = jnp.tile(middles(10_000)[:, jnp.newaxis], 2)
    state = jax.jit(jax.vmap(freeway.reset))(uniforms)
    assert set(np.unique(state.waits)) == {1, 2, 3, 4, 5}
    assert set(np.unique(state.directions)) == {-1, 1}
    choices = np.asarray(state.waits * state.directions)
    for car in range(8):
        assert np.all(np.unique(choices[:, car], return_counts=True)[1] == 1_000)
    four = np.unique(choices[:, :4], axis=0, return_counts=True)[1]
    assert four.size == 10_000


asterix_steps = jax.jit(jax.vmap(asterix.step, in_axes=(None, None, 0)))


@pytest.mark.parametrize("full", [[], [1, 2, 4, 5, 8], range(1, 9)])
def test_things_come_from_both_sides_are_gold_and_take_empty_rows_by_chance(full):
    """A half from the left, a third is gold, each empty row equally often."""
    is_full = np.isin(np.arange(1, 9), full)
    num_empty = 8 - len(full)
    state = asterix.reset(jnp.zeros(1))
    state = state._replace(
        is_there=jnp.array(is_full), columns=jnp.full(8, 3), until_arrival=jnp.int32(0)
    )
    number = 6 * 24 * 100
    uniforms = middles(number)[:, jnp.newaxis]
    after, _, _ = asterix_steps(state, jnp.int32(0), uniforms)
    comes = np.asarray(after.is_there) & ~is_full
    assert np.all(comes.sum(axis=1) == min(num_empty, 1))
    assert np.all(comes.sum(axis=0)[~is_full] == number // max(num_empty, 1))
    if num_empty:
        left = np.asarray(after.directions)[comes] == 1
        gold = np.asarray(after.is_gold)[comes]
        np.testing.assert_array_equal(
            np.asarray(after.columns)[comes], np.where(left, 0, 9)
        )
        assert left.sum() == number / 2
        assert gold.sum() == number / 3
        assert (left & gold).sum() == number / 6
