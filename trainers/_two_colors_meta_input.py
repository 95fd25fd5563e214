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
    """Counts one more number (Welford, 1962); None stays None."""
    if moments is None:
        return None
    count = moments.count + 1
    mean = moments.mean + (value - moments.mean) / count
    square = (value - moments.mean) * (value - mean)
    return Moments(count, mean, moments.variance + (square - moments.variance) / count)


def normalized(values: jax.Array, moments: Moments) -> jax.Array:
    """Returns tanh((r − m) / s), with mean m and deviation s of all numbers so far."""
    deviation = jnp.sqrt(moments.variance + _VARIANCE_FLOOR)
    return jnp.tanh((values - moments.mean) / deviation)
