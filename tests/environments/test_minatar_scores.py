"""MinAtar's table of scores."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.environments.minatar import scores, worlds

NUM_WORLDS = 400


def test_every_game_has_its_scores():
    """The published agent is better than random play."""
    assert scores.SCORES.keys() == worlds.GAMES.keys()
    for score in scores.SCORES.values():
        assert score.published > score.random > 0


# Steps after which hardly an episode of random play goes on; Freeway's always does.
@pytest.mark.parametrize(
    ("name", "num_steps"),
    [("asterix", 400), ("breakout", 200), ("space_invaders", 300), ("freeway", 2501)],
)
def test_random_play_earns_what_the_table_says(name, num_steps):
    """The mean of 400 first episodes lies within five standard errors."""
    game = worlds.GAMES[name]
    act = jax.vmap(functools.partial(worlds.act, game), in_axes=(0, 0, None, 0))

    def step(carry, key):
        world, score, goes_on = carry
        action_key, key = jax.random.split(key)
        action = jax.random.randint(action_key, (NUM_WORLDS,), 0, game.NUM_ACTIONS)
        keys = jax.random.split(key, NUM_WORLDS)
        world, reward, is_over = act(world, action, 0.1, keys)
        return (world, score + reward * goes_on, goes_on & ~is_over), None

    @jax.jit
    def play(key):
        start_key, key = jax.random.split(key)
        start_keys = jax.random.split(start_key, NUM_WORLDS)
        start = jax.vmap(functools.partial(worlds.start, game))(start_keys)
        carry = start, jnp.zeros(NUM_WORLDS), jnp.ones(NUM_WORLDS, bool)
        return jax.lax.scan(step, carry, jax.random.split(key, num_steps))[0][1:]

    score, goes_on = map(np.asarray, play(jax.random.key(2)))
    assert goes_on.mean() < 0.01
    error = score.std(ddof=1) / np.sqrt(NUM_WORLDS)
    assert abs(score.mean() - scores.SCORES[name].random) < 5 * error
