"""Both forms of a convolution are the same function, derivatives included."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.core import convolutions


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def images_and_kernel(channels, filters=4, size=(3, 6, 5)):
    image_key, kernel_key = jax.random.split(jax.random.key(0))
    shape = (3, 3, channels, filters)
    images = jax.random.normal(image_key, (*size, channels), jnp.float64)
    return images, jax.random.normal(kernel_key, shape, jnp.float64)


@pytest.mark.parametrize("form", ["plain", "written_out"])
def test_a_convolution_is_a_sum_over_nine_neighbors(form):
    """z[h, w] = Σ_ij x[h+i−1, w+j−1] k[i, j], with zeros outside; in loops."""
    images, kernel = (np.asarray(a) for a in images_and_kernel(channels=2))
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    batch, height, width, _ = images.shape
    expected = np.zeros((batch, height, width, kernel.shape[-1]))
    for h in range(height):
        for w in range(width):
            window = padded[:, h : h + 3, w : w + 3]
            expected[:, h, w] = np.einsum("bijc,ijcf->bf", window, kernel)
    actual = getattr(convolutions, form)(jnp.asarray(images), jnp.asarray(kernel))
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("channels", [1, 2, 7])
def test_written_out_derivatives_are_those_of_the_convolution(channels):
    """First and second order, with few channels (1, 2) and with many (7)."""
    images, kernel = images_and_kernel(channels)

    def loss(convolution, images, kernel):
        return jnp.sum(jnp.sin(convolution(images, kernel)))

    @functools.partial(jax.jit, static_argnums=0)
    def derivatives(convolution, images, kernel):
        def gradients(images, kernel):
            return jax.grad(loss, (1, 2))(convolution, images, kernel)

        tangents = jnp.cos(images), jnp.cos(kernel)
        forwards = jax.jvp(gradients, (images, kernel), tangents)
        return forwards, jax.vjp(gradients, images, kernel)[1](tangents)

    actual = derivatives(convolutions.written_out, images, kernel)
    expected = derivatives(convolutions.plain, images, kernel)
    for left, right in zip(
        jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-12)


def test_a_kernel_that_does_not_fit_is_refused():
    images, kernel = images_and_kernel(channels=2)
    for form in (convolutions.plain, convolutions.written_out):
        with pytest.raises(AssertionError):
            form(images[..., :1], kernel)
