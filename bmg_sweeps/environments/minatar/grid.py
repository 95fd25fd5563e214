"""The grid that all games are played on."""

import jax
import jax.numpy as jnp

SIZE = 10  # Cells along each side. Row 0 is the top, column 0 the left side.


def cell(row: jax.Array, column: jax.Array) -> jax.Array:
    """Marks one cell, or none if it lies outside.

    Args:
        row: [] int32.
        column: [] int32.

    Returns:
        [10, 10] bool, row first.
    """
    lines = jnp.arange(SIZE)
    return (lines == row)[:, jnp.newaxis] & (lines == column)[jnp.newaxis]


def stay_inside(position: jax.Array) -> jax.Array:
    """Stops a row or a column at the walls: into 0 … 9."""
    return jnp.clip(position, 0, SIZE - 1)


def in_lanes(values: jax.Array) -> jax.Array:
    """Lays values of rows 1 … 8 beside the grid; the top and bottom row get zeros.

    Args:
        values: [8] of any type.

    Returns:
        [10, 1], to be compared with columns.
    """
    return jnp.pad(values, 1)[:, jnp.newaxis]
