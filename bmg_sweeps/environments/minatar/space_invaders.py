"""Space Invaders: shoot the aliens that march down, and evade their bullets.

The cannon is one cell of the bottom row. It moves one cell a step, or fires, at most
once in five steps. Its bullets rise one cell a step, those of the aliens fall one. A
bullet of the cannon that meets an alien removes it, itself too, and pays +1. The
episode ends when a bullet or an alien reaches the cannon, or when the aliens turn
while one of them is in the bottom row.

A wave is four rows of six aliens, at the top, in columns 2 to 7. The aliens march one
cell at a time, to the left at first. Where one stands at the wall ahead, all step down
instead and turn. They wait between two marches: as many steps as aliens are left, but
at most 12. Every tenth step one alien fires: the lowest in the column nearest to the
cannon, the left one of two equally near. When the last alien is gone, the next wave
stands at the top at once, marches in the direction of the last, and its longest wait is
one step shorter, down to 6.

A step goes in this order: the cannon acts, its bullets rise, the aliens' bullets
fall, the aliens march, one fires, aliens are hit. Nothing is random.

Source: Young and Tian (2019), Section 2, and the behavior of their package.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from bmg_sweeps.environments.minatar import grid

NUM_ACTIONS = 4  # Stay, left, right, fire: the reference's n, l, r, f.
NUM_CHANNELS = 6  # Cannon, aliens, those moving left, right, own bullets, theirs.
NUM_UNIFORMS = 0

_LEFT, _RIGHT, _FIRE = 1, 2, 3
_SHOT_INTERVAL = 5  # Steps between two shots of the cannon.
_ALIEN_SHOT_INTERVAL = 10
_LONGEST_WAIT, _SHORTEST_WAIT = 12, 6  # Steps between marches: first and last wave.
_BOTTOM = grid.SIZE - 1


class State(NamedTuple):
    """Where everything is, and the steps until something may happen."""

    cannon: jax.Array  # [] int32 column.
    aliens: jax.Array  # [10, 10] bool.
    direction: jax.Array  # [] int32: +1 if the aliens march right, −1 if left.
    bullets: jax.Array  # [10, 10] bool, of the cannon.
    alien_bullets: jax.Array  # [10, 10] bool.
    longest_wait: jax.Array  # [] int32 steps between two marches of this wave.
    until_shot: jax.Array  # [] int32 steps; likewise the next two.
    until_march: jax.Array
    until_alien_shot: jax.Array


def reset(uniforms: jax.Array) -> State:
    """Begins an episode.

    Args:
        uniforms: [0], as nothing is random.

    Returns:
        The first state.
    """
    del uniforms
    nothing = jnp.zeros((grid.SIZE, grid.SIZE), bool)
    return State(
        cannon=jnp.int32(5),
        aliens=_wave(),
        direction=jnp.int32(-1),
        bullets=nothing,
        alien_bullets=nothing,
        longest_wait=jnp.int32(_LONGEST_WAIT),
        until_shot=jnp.int32(0),
        until_march=jnp.int32(_LONGEST_WAIT),
        until_alien_shot=jnp.int32(_ALIEN_SHOT_INTERVAL),
    )


def step(
    state: State, action: jax.Array, uniforms: jax.Array
) -> tuple[State, jax.Array, jax.Array]:
    """Acts, moves all bullets, marches the aliens, lets one fire, counts hits.

    Args:
        state: before the step, of an episode that goes on.
        action: [] int, 0 … 3 for stay, left, right, fire.
        uniforms: [0], as nothing is random.

    Returns:
        The state after the step, the reward [] float32, whether the episode ended.
    """
    del uniforms
    move = (action == _RIGHT).astype(jnp.int32) - (action == _LEFT)
    cannon = grid.stay_inside(state.cannon + move)
    at_cannon = grid.cell(jnp.int32(_BOTTOM), cannon)
    fires = (action == _FIRE) & (state.until_shot == 0)
    bullets = _shift(state.bullets | (at_cannon & fires), rows=-1)
    alien_bullets = _shift(state.alien_bullets, rows=1)
    is_over = jnp.any(at_cannon & (alien_bullets | state.aliens))

    marches = state.until_march == 0
    marched, direction, is_landed = _march(state.aliens, state.direction)
    wait = jnp.minimum(jnp.sum(state.aliens, dtype=jnp.int32), state.longest_wait)
    aliens = jnp.where(marches, marched, state.aliens)
    is_over |= marches & (is_landed | jnp.any(at_cannon & aliens))

    alien_fires = state.until_alien_shot == 0
    alien_bullets |= _nearest_alien(aliens, cannon) & alien_fires

    hits = aliens & bullets
    aliens &= ~hits
    is_cleared = ~jnp.any(aliens)
    until_shot = jnp.where(fires, _SHOT_INTERVAL, state.until_shot)
    until_march = jnp.where(marches, wait, state.until_march)
    until_alien_shot = jnp.where(
        alien_fires, _ALIEN_SHOT_INTERVAL, state.until_alien_shot
    )
    after = State(
        cannon=cannon,
        aliens=jnp.where(is_cleared, _wave(), aliens),
        direction=jnp.where(marches, direction, state.direction),
        bullets=bullets & ~hits,
        alien_bullets=alien_bullets,
        longest_wait=jnp.maximum(state.longest_wait - is_cleared, _SHORTEST_WAIT),
        until_shot=jnp.maximum(until_shot - 1, 0),
        until_march=until_march - 1,
        until_alien_shot=until_alien_shot - 1,
    )
    return after, jnp.sum(hits, dtype=jnp.float32), is_over


def observe(state: State) -> jax.Array:
    """Draws the grid.

    Args:
        state: of one world.

    Returns:
        [10, 10, 6] bool: cannon, aliens, aliens if they march left, aliens if they
        march right, bullets of the cannon, bullets of the aliens.
    """
    channels = [
        grid.cell(jnp.int32(_BOTTOM), state.cannon),
        state.aliens,
        state.aliens & (state.direction < 0),
        state.aliens & (state.direction > 0),
        state.bullets,
        state.alien_bullets,
    ]
    return jnp.stack(channels, axis=-1)


def _wave() -> jax.Array:
    return jnp.zeros((grid.SIZE, grid.SIZE), bool).at[:4, 2:8].set(True)


def _shift(cells: jax.Array, rows: int) -> jax.Array:
    """Moves cells down by one row, or up; what leaves the grid is gone."""
    entering = jnp.zeros((1, grid.SIZE), bool)
    if rows > 0:
        return jnp.concatenate([entering, cells[:-1]])
    return jnp.concatenate([cells[1:], entering])


def _march(
    aliens: jax.Array, direction: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Moves all aliens sideways, or down where one is at the wall ahead.

    Returns:
        The aliens, their new direction, and whether they turned with one at the bottom.
    """
    at_wall = jnp.where(direction > 0, aliens[:, -1], aliens[:, 0])
    turns = jnp.any(at_wall)
    # No alien is at the wall ahead of those that move sideways: none crosses it. Those
    # that step down from the bottom row appear at the top; the episode ends with that.
    sideways = jnp.where(
        direction > 0, jnp.roll(aliens, 1, axis=1), jnp.roll(aliens, -1, axis=1)
    )
    marched = jnp.where(turns, jnp.roll(aliens, 1, axis=0), sideways)
    is_landed = turns & jnp.any(aliens[_BOTTOM])
    return marched, jnp.where(turns, -direction, direction), is_landed


def _nearest_alien(aliens: jax.Array, cannon: jax.Array) -> jax.Array:
    """Marks the lowest alien of the column nearest to the cannon: [10, 10] bool."""
    lines = jnp.arange(grid.SIZE)
    # The order of the columns: by distance, then from the left.
    order = jnp.abs(lines - cannon) * grid.SIZE + lines
    last = grid.SIZE**2
    column = jnp.argmin(jnp.where(jnp.any(aliens, axis=0), order, last))
    is_in_column = jnp.any(aliens & (lines == column)[jnp.newaxis], axis=1)
    return grid.cell(jnp.max(jnp.where(is_in_column, lines, -1)), column)
