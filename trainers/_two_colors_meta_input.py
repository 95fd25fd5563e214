"""Rewards as the meta-networks of two-colors see them, on one scale.

Source: Luketina et al. (2022), "reward context": normalized by statistics of the whole
life so far, and squashed.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

_VARIANCE_FLOOR = 1e-8  # There is none before the second number.


class Moments(NamedTuple):
    """Of all numbers so far."""

    count: jax.Array  # [] int32.
    mean: jax.Array  # [].
    variance: jax.Array  # [].


def no_moments() -> Moments:
    """Returns those of no numbers."""
    return Moments(jnp.zeros((), jnp.int32), jnp.zeros(()), jnp.zeros(()))


def accumulate(moments: Moments | None, value: jax.Array) -> Moments | None:
    """Counts one more number.

    Source: Welford (1962), "Note on a Method for Calculating Corrected Sums of Squares
    and Products".

    Args:
        moments: of the numbers before; None where nothing is counted.
        value: [] the number.

    Returns:
        Moments of all of them, the variance with divisor n; or None.
    """
    if moments is None:
        return None
    count = moments.count + 1
    mean = moments.mean + (value - moments.mean) / count
    square = (value - moments.mean) * (value - mean)
    return Moments(count, mean, moments.variance + (square - moments.variance) / count)


def normalized(values: jax.Array, moments: Moments) -> jax.Array:
    """Brings rewards to one scale, tanh((r − m) / s).

    Source: Luketina et al. (2022), "reward context".

    Args:
        values: r, [H].
        moments: whose mean is m, and whose root of the variance is s.

    Returns:
        [H] in (−1, 1).

    Gradient: flows through all of them.
    """
    deviation = jnp.sqrt(moments.variance + _VARIANCE_FLOOR)
    return jnp.tanh((values - moments.mean) / deviation)
