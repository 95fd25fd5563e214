"""Both forms of max-pooling are the same function, and choose the same of equals."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.core import pooling


@functools.partial(jax.jit, static_argnums=0)
def pooled(form, images, cotangent):
    """What comes out, and what goes back."""
    outputs, back = jax.vjp(form, images)
    return outputs, *back(cotangent)


@pytest.mark.parametrize("size", [(6, 5), (5, 6), (1, 2), (7, 3)])
def test_written_out_pooling_is_the_plain_one_and_so_is_its_gradient(size):
    """Of even and odd sizes; whole numbers, so that most windows have equals."""
    random = np.random.default_rng(0)
    images = jnp.asarray(random.integers(-2, 2, (3, *size, 2)), jnp.float32)
    half = [-(-length // 2) for length in size]
    cotangent = jnp.asarray(random.integers(1, 100, (3, *half, 2)), jnp.float32)
    expected = pooled(pooling.plain, images, cotangent)
    actual = pooled(pooling.written_out, images, cotangent)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)
