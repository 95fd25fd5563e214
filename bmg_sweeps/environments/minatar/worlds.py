"""Worlds to act in: a game whose actions may stick, episode after episode.

An action sticks with some probability: the last one is repeated in its place. The
reference's default is 0.1. When an episode ends the next one begins in the same step:
the observation after it is the first of the new episode. The last action lives on
through that, as it does in the reference.

A game is one of the modules in `GAMES`. All functions are of a single world; `vmap`
over worlds, actions and keys makes many.
"""

import functools
from types import ModuleType
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from bmg_sweeps.environments.minatar import (
    asterix,
    breakout,
    freeway,
    grid,
    space_invaders,
)

GAMES = {
    "asterix": asterix,
    "breakout": breakout,
    "freeway": freeway,
    "space_invaders": space_invaders,
}


class World(NamedTuple):
    """All that a world's future depends on, but for keys and actions."""

    state: chex.ArrayTree  # The game's own.
    last_action: jax.Array  # [] int32: what was done in the last step.


def start(game: ModuleType, key: chex.PRNGKey) -> World:
    """Begins the first episode.

    Args:
        game: one of `GAMES`.
        key: consumed here.

    Returns:
        A world in which the last action was none, 0.
    """
    state = game.reset(jax.random.uniform(key, (game.NUM_UNIFORMS,)))
    return World(state, jnp.zeros((), jnp.int32))


def act(
    game: ModuleType,
    world: World,
    action: jax.Array,
    sticky_probability: jax.typing.ArrayLike,
    key: chex.PRNGKey,
) -> tuple[World, jax.Array, jax.Array]:
    """Takes one step; if the episode ends, begins the next.

    Args:
        game: one of `GAMES`.
        world: before the step.
        action: [] int, below the game's `NUM_ACTIONS`.
        sticky_probability: [] of repeating the last action instead.
        key: consumed here, by one draw.

    Returns:
        The world after the step, the reward [] float32, and whether an episode ended
        [] bool: then the world is at the start of the next.
    """
    uniforms = jax.random.uniform(key, (1 + game.NUM_UNIFORMS,))
    is_repeated = uniforms[0] < sticky_probability
    done = jnp.where(is_repeated, world.last_action, action).astype(jnp.int32)
    state, reward, is_game_over = game.step(world.state, done, uniforms[1:])
    # The same numbers serve both: of two states made from them only one is kept, and
    # no game whose beginning is random ends by chance.
    fresh = game.reset(uniforms[1:])
    state = jax.tree.map(lambda x, y: jnp.where(is_game_over, x, y), fresh, state)
    return World(state, done), reward, is_game_over


def observe(game: ModuleType, world: World) -> jax.Array:
    """Draws the grid.

    Args:
        game: one of `GAMES`.

    Returns:
        [10, 10, C] bool, C the game's `NUM_CHANNELS`.
    """
    return game.observe(world.state)


def packed(observation: jax.Array) -> jax.Array:
    """Packs eight cells into a byte, for storage.

    Args:
        observation: [10, 10, C] bool.

    Returns:
        [⌈100 C / 8⌉] uint8; the last byte is filled up with zeros.
    """
    bits = observation.reshape(-1).astype(jnp.uint8)
    bits = jnp.pad(bits, (0, -bits.size % 8)).reshape(-1, 8)
    # As `jnp.packbits` does, which is slower on a CPU: it sums over the short axis.
    return functools.reduce(jnp.bitwise_or, (bits[:, i] << (7 - i) for i in range(8)))


def unpacked(bits: jax.Array, game: ModuleType) -> jax.Array:
    """Gives back what `packed` packed, flat, as a network takes it.

    Args:
        bits: [⌈100 C / 8⌉] uint8.
        game: the one that was observed, one of `GAMES`.

    Returns:
        [100 C] float32, 0 or 1: row by row, cell by cell, channel by channel.
    """
    size = grid.SIZE**2 * game.NUM_CHANNELS
    return jnp.unpackbits(bits, count=size).astype(jnp.float32)
