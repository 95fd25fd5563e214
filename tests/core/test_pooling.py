"""Both forms of max-pooling are the same function, and choose the same of equals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.core import pooling


@pytest.mark.parametrize("size", [(6, 5), (5, 6), (1, 2), (7, 3)])
def test_written_out_pooling_is_the_plain_one_and_so_is_its_gradient(size):
    """Of even and odd sizes; whole numbers, so that most windows have equals."""
    random = np.random.default_rng(0)
    images = jnp.asarray(random.integers(-2, 2, (3, *size, 2)), jnp.float32)
    expected, plain = jax.vjp(pooling.plain, images)
    actual, written_out = jax.vjp(pooling.written_out, images)
    np.testing.assert_array_equal(actual, expected)
    cotangent = jnp.asarray(random.integers(1, 100, actual.shape), jnp.float32)
    np.testing.assert_array_equal(written_out(cotangent)[0], plain(cotangent)[0])
