"""Freeway: bring a chicken across eight lanes of cars, as often as time allows.

The chicken walks up and down in column 4, at most one cell in three steps, from the
bottom row. Each of the eight rows between the top and the bottom one holds a car that
drives left or right and, at the end of its row, comes back at the other side. A car
moves one cell and then waits as many steps as its speed says, 1 to 5. Reaching the
top row pays +1, brings the chicken back to the bottom, and gives all cars new random
speeds and directions; they stay where they are. A car that stands on the chicken,
before it moves or after, brings it back to the bottom. The episode ends after 2,501
steps.

An episode begins with all cars in column 0, each with one of the five speeds and one
of the two directions, equally likely, as ever after. The chicken cannot move in the
first three steps.

Source: Young and Tian (2019), Section 2, and the behavior of their package. Their
text says that an episode lasts 2,500 frames; the package ends it a step later.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from bmg_sweeps.environments.minatar import grid

NUM_ACTIONS = 3  # Stay, up, down: the reference's n, u, d.
NUM_CHANNELS = 7  # Chicken, cars, and where the cars of each of five speeds came from.
NUM_UNIFORMS = 2

_UP, _DOWN = 1, 2
_COLUMN = 4  # Where the chicken walks.
_BOTTOM = grid.SIZE - 1
_NUM_CARS = 8
_NUM_SPEEDS = 5
_WALK_INTERVAL = 3  # Steps between two moves of the chicken.
_LAST_STEP = 2500  # Counted from 0.


class State(NamedTuple):
    """Where everything is, and the steps until something may happen."""

    chicken: jax.Array  # [] int32 row.
    cars: jax.Array  # [8] int32 column of the car in row 1 … 8.
    waits: jax.Array  # [8] int32: steps that a car waits between two moves.
    directions: jax.Array  # [8] int32: +1 if a car drives right, −1 if left.
    until_drive: jax.Array  # [8] int32 steps; likewise the next two.
    until_walk: jax.Array  # [].
    until_end: jax.Array  # [].


def reset(uniforms: jax.Array) -> State:
    """Begins an episode.

    Args:
        uniforms: [2] in [0, 1): speeds and directions of four cars each.

    Returns:
        The first state.
    """
    waits, directions = _random_cars(uniforms)
    return State(
        chicken=jnp.int32(_BOTTOM),
        cars=jnp.zeros(_NUM_CARS, jnp.int32),
        waits=waits,
        directions=directions,
        until_drive=waits,
        until_walk=jnp.int32(_WALK_INTERVAL),
        until_end=jnp.int32(_LAST_STEP),
    )


def step(
    state: State, action: jax.Array, uniforms: jax.Array
) -> tuple[State, jax.Array, jax.Array]:
    """Moves the chicken, then the cars.

    Args:
        state: before the step, of an episode that goes on.
        action: [] int, 0 … 2 for stay, up, down.
        uniforms: [2] in [0, 1): the cars' new speeds, if the chicken arrives.

    Returns:
        The state after the step, the reward [] float32, whether the episode ended.
    """
    walks = (state.until_walk == 0) & ((action == _UP) | (action == _DOWN))
    until_walk = jnp.where(walks, _WALK_INTERVAL, state.until_walk)
    move = jnp.where(action == _UP, -1, 1) * walks
    chicken = grid.stay_inside(state.chicken + move)
    arrives = chicken == 0
    chicken = jnp.where(arrives, _BOTTOM, chicken)

    random_waits, random_directions = _random_cars(uniforms)
    waits = jnp.where(arrives, random_waits, state.waits)
    directions = jnp.where(arrives, random_directions, state.directions)
    until_drive = jnp.where(arrives, waits, state.until_drive)
    drives = until_drive == 0
    cars = (state.cars + directions * drives) % grid.SIZE

    is_in_lane = jnp.arange(1, _NUM_CARS + 1) == chicken
    is_hit = jnp.any(is_in_lane & ((state.cars == _COLUMN) | (cars == _COLUMN)))
    after = State(
        chicken=jnp.where(is_hit, _BOTTOM, chicken),
        cars=cars,
        waits=waits,
        directions=directions,
        until_drive=jnp.where(drives, waits, until_drive - 1),
        until_walk=jnp.maximum(until_walk - 1, 0),
        until_end=state.until_end - 1,
    )
    return after, arrives.astype(jnp.float32), after.until_end < 0


def observe(state: State) -> jax.Array:
    """Draws the grid.

    Args:
        state: of one world.

    Returns:
        [10, 10, 7] bool: the chicken; the cars; for speeds 1 … 5, the cell behind each
        car of that speed.
    """
    lines = jnp.arange(grid.SIZE)[jnp.newaxis]
    waits = grid.in_lanes(state.waits)  # 0 in the two rows without a car.
    cars = (waits > 0) & (lines == grid.in_lanes(state.cars))
    behind = lines == grid.in_lanes((state.cars - state.directions) % grid.SIZE)
    trails = [behind & (waits == speed) for speed in range(1, _NUM_SPEEDS + 1)]
    chicken = grid.cell(state.chicken, jnp.int32(_COLUMN))
    return jnp.stack([chicken, cars, *trails], axis=-1)


def _random_cars(uniforms: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Draws waits and directions, [8] each, from four digits of each uniform.

    A digit of a uniform is one of ten equally likely numbers, as is a car's choice.
    """
    powers = jnp.array([[1, 10, 100, 1000]])
    digits = (uniforms * 10_000).astype(jnp.int32)[:, jnp.newaxis] // powers % 10
    choices = digits.reshape(_NUM_CARS)
    waits = choices % _NUM_SPEEDS + 1
    return waits, jnp.where(choices < _NUM_SPEEDS, -1, 1).astype(jnp.int32)
