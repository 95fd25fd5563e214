"""Breakout: keep a ball in play with a paddle, and break the bricks above.

The paddle is one cell of the bottom row and moves one cell a step. The ball moves one
cell along a diagonal. Bricks fill the three rows below the top one; each pays +1 when
the ball breaks it. The episode ends when the ball reaches the bottom row without
meeting the paddle.

An episode begins with the paddle in column 4 and the ball in row 3, at the left wall
and moving right or at the right wall and moving left, each half of the times, and
downward. In a step the paddle moves first, then the ball. At a side wall the ball stays
in its column and turns sideways; at the top it stays in row 0 and turns down. A
ball that would enter a brick breaks it, keeps its row and turns. But a ball that met
a brick in its last step breaks none in this one: it passes through. At the bottom row,
a ball that comes from right above the paddle turns up, and one that would land on the
paddle turns up and back sideways; both keep their row. If no brick is left when the
ball reaches the bottom row, all bricks return.

Source: Young and Tian (2019), Section 2, and the behavior of their package.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from bmg_sweeps.environments.minatar import grid

NUM_ACTIONS = 3  # Stay, left, right: the reference's n, l, r.
NUM_CHANNELS = 4  # Paddle, ball, where the ball was, bricks.
NUM_UNIFORMS = 1

_LEFT, _RIGHT = 1, 2
_BRICK_ROWS = slice(1, 4)


class State(NamedTuple):
    """Where everything is."""

    paddle: jax.Array  # [] int32 column.
    row: jax.Array  # [] int32, of the ball; likewise the next five.
    column: jax.Array
    down: jax.Array  # [] int32: +1 if it falls, −1 if it rises.
    right: jax.Array  # [] int32: +1 if it moves right, −1 if left.
    last_row: jax.Array
    last_column: jax.Array
    bricks: jax.Array  # [3, 10] bool, rows 1 to 3 of the grid.
    is_striking: jax.Array  # [] bool: the ball met a brick in the last step.


def reset(uniforms: jax.Array) -> State:
    """Begins an episode.

    Args:
        uniforms: [1] in [0, 1): the side that the ball comes from.

    Returns:
        The first state.
    """
    from_left = uniforms[0] < 0.5
    row = jnp.int32(3)
    column = jnp.where(from_left, 0, grid.SIZE - 1).astype(jnp.int32)
    return State(
        paddle=jnp.int32(4),
        row=row,
        column=column,
        down=jnp.int32(1),
        right=jnp.where(from_left, 1, -1).astype(jnp.int32),
        last_row=row,
        last_column=column,
        bricks=jnp.ones((3, grid.SIZE), bool),
        is_striking=jnp.zeros((), bool),
    )


def step(
    state: State, action: jax.Array, uniforms: jax.Array
) -> tuple[State, jax.Array, jax.Array]:
    """Moves the paddle, then the ball.

    Args:
        state: before the step, of an episode that goes on.
        action: [] int, 0 … 2 for stay, left, right.
        uniforms: [1] in [0, 1), not used: only the beginning is random.

    Returns:
        The state after the step, the reward [] float32, whether the episode ended.
    """
    del uniforms
    move = (action == _RIGHT).astype(jnp.int32) - (action == _LEFT)
    paddle = grid.stay_inside(state.paddle + move)

    free_column = state.column + state.right
    column = grid.stay_inside(free_column)
    right = jnp.where(column == free_column, state.right, -state.right)

    free_row = state.row + state.down
    meets_top = free_row < 0
    met_brick = state.bricks & grid.cell(free_row, column)[_BRICK_ROWS]
    meets_brick = jnp.any(met_brick)
    breaks = meets_brick & ~state.is_striking
    meets_bottom = free_row == grid.SIZE - 1
    is_below = meets_bottom & (state.column == paddle)
    is_ahead = meets_bottom & (column == paddle) & ~is_below
    turns_back = breaks | is_below | is_ahead

    is_refilled = meets_bottom & ~jnp.any(state.bricks)
    after = State(
        paddle=paddle,
        row=jnp.where(turns_back, state.row, jnp.maximum(free_row, 0)),
        column=column,
        down=jnp.where(turns_back | meets_top, -state.down, state.down),
        right=jnp.where(is_ahead, -right, right),
        last_row=state.row,
        last_column=state.column,
        bricks=(state.bricks & ~(met_brick & breaks)) | is_refilled,
        is_striking=meets_brick,
    )
    return after, breaks.astype(jnp.float32), meets_bottom & ~(is_below | is_ahead)


def observe(state: State) -> jax.Array:
    """Draws the grid.

    Args:
        state: of one world.

    Returns:
        [10, 10, 4] bool: paddle, ball, where the ball was a step ago, bricks.
    """
    paddle = grid.cell(jnp.int32(grid.SIZE - 1), state.paddle)
    ball = grid.cell(state.row, state.column)
    trail = grid.cell(state.last_row, state.last_column)
    bricks = jnp.pad(state.bricks, ((1, grid.SIZE - 4), (0, 0)))
    return jnp.stack([paddle, ball, trail, bricks], axis=-1)
