"""Asterix: collect gold and evade enemies, all of which cross the screen ever faster.

The player walks one cell a step in four directions, in the eight rows between the top
and the bottom one. In each of these rows there is at most one thing, gold or an enemy,
that crosses from one side to the other. The player who meets gold takes it, for +1. The
episode ends when the player meets an enemy.

At first a thing appears every tenth step and all move one cell every fifth. A new thing
comes from the left or the right side, equally likely, is gold one time in three, and
takes one of the empty rows, equally likely; if none is empty it does not come. After
102 steps, and then every 102, the game gets faster: the steps between two arrivals
are one fewer, down to 1, and at every second time the steps between two moves as well,
down to 1.

A step goes in this order: a thing appears, the player walks, things are met, all things
move, things are met again. A thing that walks out of the screen is gone.

Source: Young and Tian (2019), Section 2, and the behavior of their package.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from bmg_sweeps.environments.minatar import grid

NUM_ACTIONS = 5  # Stay, left, up, right, down: the reference's n, l, u, r, d.
NUM_CHANNELS = 4  # Player, enemies, the cells behind the things, gold.
NUM_UNIFORMS = 1

_LEFT, _UP, _RIGHT, _DOWN = 1, 2, 3, 4
_NUM_ROWS = 8
_ARRIVAL_INTERVAL, _MOVE_INTERVAL = 10, 5  # Steps, before the game gets faster.
_RAMP_INTERVAL = 100
_NUM_KINDS = 6  # Two sides times three, of which one is gold.


class State(NamedTuple):
    """Where everything is, and the steps until something happens."""

    row: jax.Array  # [] int32, of the player.
    column: jax.Array  # [] int32, of the player.
    columns: jax.Array  # [8] int32, of the things in rows 1 … 8.
    is_there: jax.Array  # [8] bool: there is a thing in this row.
    directions: jax.Array  # [8] int32: +1 if the thing moves right, −1 if left.
    is_gold: jax.Array  # [8] bool.
    arrival_interval: jax.Array  # [] int32 steps between two arrivals.
    move_interval: jax.Array  # [] int32 steps between two moves.
    until_arrival: jax.Array  # [] int32 steps; likewise the next two.
    until_move: jax.Array
    until_ramp: jax.Array
    ramps: jax.Array  # [] int32: how often the game got faster.


def reset(uniforms: jax.Array) -> State:
    """Begins an episode.

    Args:
        uniforms: [1] in [0, 1), not used: every episode begins alike.

    Returns:
        The first state.
    """
    del uniforms
    return State(
        row=jnp.int32(5),
        column=jnp.int32(5),
        columns=jnp.zeros(_NUM_ROWS, jnp.int32),
        is_there=jnp.zeros(_NUM_ROWS, bool),
        directions=jnp.ones(_NUM_ROWS, jnp.int32),
        is_gold=jnp.zeros(_NUM_ROWS, bool),
        arrival_interval=jnp.int32(_ARRIVAL_INTERVAL),
        move_interval=jnp.int32(_MOVE_INTERVAL),
        until_arrival=jnp.int32(_ARRIVAL_INTERVAL),
        until_move=jnp.int32(_MOVE_INTERVAL),
        until_ramp=jnp.int32(_RAMP_INTERVAL),
        ramps=jnp.int32(0),
    )


def step(
    state: State, action: jax.Array, uniforms: jax.Array
) -> tuple[State, jax.Array, jax.Array]:
    """Lets a thing appear, moves the player, then all things.

    Args:
        state: before the step, of an episode that goes on.
        action: [] int, 0 … 4 for stay, left, up, right, down.
        uniforms: [1] in [0, 1): what appears, and where.

    Returns:
        The state after the step, the reward [] float32, whether the episode ended.
    """
    arrives = state.until_arrival == 0
    state = _with_arrival(state, uniforms[0], arrives)
    right = (action == _RIGHT).astype(jnp.int32) - (action == _LEFT)
    down = (action == _DOWN).astype(jnp.int32) - (action == _UP)
    column = grid.stay_inside(state.column + right)
    row = jnp.clip(state.row + down, 1, _NUM_ROWS)

    is_beside = jnp.arange(1, _NUM_ROWS + 1) == row
    met_first = state.is_there & is_beside & (state.columns == column)
    is_there = state.is_there & ~(met_first & state.is_gold)
    moves = state.until_move == 0
    columns = state.columns + state.directions * moves
    met_then = is_there & is_beside & (columns == column) & moves
    is_there &= ~(met_then & state.is_gold)
    is_there &= (columns >= 0) & (columns < grid.SIZE)
    met = met_first | met_then

    until_arrival = jnp.where(arrives, state.arrival_interval, state.until_arrival)
    until_move = jnp.where(moves, state.move_interval, state.until_move)
    after = state._replace(
        row=row,
        column=column,
        columns=columns,
        is_there=is_there,
        until_arrival=until_arrival - 1,
        until_move=until_move - 1,
    )
    reward = jnp.sum(met & state.is_gold, dtype=jnp.float32)
    return _with_ramp(after), reward, jnp.any(met & ~state.is_gold)


def observe(state: State) -> jax.Array:
    """Draws the grid.

    Args:
        state: of one world.

    Returns:
        [10, 10, 4] bool: the player, enemies, the cell behind each thing, gold.
    """
    lines = jnp.arange(grid.SIZE)[jnp.newaxis]
    is_there = grid.in_lanes(state.is_there)
    is_gold = grid.in_lanes(state.is_gold)
    things = is_there & (lines == grid.in_lanes(state.columns))
    behind = is_there & (lines == grid.in_lanes(state.columns - state.directions))
    player = grid.cell(state.row, state.column)
    return jnp.stack([player, things & ~is_gold, behind, things & is_gold], axis=-1)


def _with_arrival(state: State, uniform: jax.Array, arrives: jax.Array) -> State:
    """Puts a thing into an empty row; its kind and its row come from one uniform."""
    kind = (uniform * _NUM_KINDS).astype(jnp.int32)
    from_left, is_gold = kind % 2 == 0, kind // 2 == 0
    is_empty = ~state.is_there
    # What the kind leaves of the uniform is uniform again: it counts empty rows.
    rest = uniform * _NUM_KINDS - kind
    place = (rest * jnp.sum(is_empty)).astype(jnp.int32) + 1
    is_new = is_empty & (jnp.cumsum(is_empty) == place) & arrives
    return state._replace(
        columns=jnp.where(
            is_new, jnp.where(from_left, 0, grid.SIZE - 1), state.columns
        ),
        is_there=state.is_there | is_new,
        directions=jnp.where(is_new, jnp.where(from_left, 1, -1), state.directions),
        is_gold=jnp.where(is_new, is_gold, state.is_gold),
    )


def _with_ramp(state: State) -> State:
    """Makes the game faster when it is time, until arrivals and moves are at 1."""
    can_ramp = (state.arrival_interval > 1) | (state.move_interval > 1)
    ramps = can_ramp & (state.until_ramp < 0)
    speeds_moves = ramps & (state.ramps % 2 == 1)
    until_ramp = jnp.where(ramps, _RAMP_INTERVAL, state.until_ramp - can_ramp)
    return state._replace(
        arrival_interval=jnp.maximum(state.arrival_interval - ramps, 1),
        move_interval=jnp.maximum(state.move_interval - speeds_moves, 1),
        until_ramp=until_ramp,
        ramps=state.ramps + ramps,
    )
