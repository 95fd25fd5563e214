"""3×3 convolutions, in forms that differ in what compilers make of them.

Convolutions are what few-shot networks spend their time on, and meta-gradients need
their derivatives of first and second order, for other weights in every task. XLA's own
convolution is fast on accelerators. On CPUs it is fast only forwards: the derivatives
are not, and inside of loops they are ten times slower still. There a convolution is
written as matrix products whose derivatives, of every order, are matrix products again.

All take zeros around the image ("same" padding), strides of one, [B, H, W, C] images
and [3, 3, C, F] kernels, and give [B, H, W, F]; they agree to rounding.
"""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp

Convolution = Callable[[jax.Array, jax.Array], jax.Array]
"""(images, kernel) ↦ their convolution."""


def plain(images: jax.Array, kernel: jax.Array) -> jax.Array:
    """Convolves with XLA's own operation, z[h, w] = Σ_ij x[h+i−1, w+j−1] k[i, j].

    Args:
        images: [B, H, W, C] x.
        kernel: [3, 3, C, F] k.

    Returns:
        [B, H, W, F] z.

    Raises:
        AssertionError: the kernel does not fit the images.

    Gradient: flows through both.
    """
    _check(images, kernel)
    return jax.lax.conv_general_dilated(
        images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def matrix_products(images: jax.Array, kernel: jax.Array) -> jax.Array:
    """Convolves by one matrix product, z[h, w] = Σ_ij x[h+i−1, w+j−1] k[i, j].

    With few channels the nine pixels that a kernel sees are laid side by side, as 9 C
    columns. With many, only the three of a row are, as 3 C columns; the product has
    3 F, one for each row of the kernel, and these are shifted and added. The form with
    fewer numbers to write is taken.

    Args:
        images: [B, H, W, C] x.
        kernel: [3, 3, C, F] k.

    Returns:
        [B, H, W, F] z.

    Raises:
        AssertionError: the kernel does not fit the images.

    Gradient: flows through both.
    """
    _check(images, kernel)
    channels, filters = kernel.shape[-2:]
    if 9 * channels <= 3 * channels + 3 * filters:
        return _by_patches(images, kernel)
    return _by_rows(images, kernel)


def _by_patches(images, kernel):
    rows = [_shifted(images, 1, i) for i in (1, 0, -1)]
    patches = [_shifted(row, 2, j) for row in rows for j in (1, 0, -1)]
    return jnp.concatenate(patches, axis=-1) @ kernel.reshape(-1, kernel.shape[-1])


def _by_rows(images, kernel):
    channels, filters = kernel.shape[-2:]
    rows = jnp.concatenate([_shifted(images, 2, j) for j in (1, 0, -1)], axis=-1)
    matrix = kernel.transpose(1, 2, 0, 3).reshape(3 * channels, 3 * filters)
    products = (rows @ matrix).reshape(*images.shape[:-1], 3, filters)
    return sum(_shifted(products[..., i, :], 1, 1 - i) for i in range(3))


def _shifted(array, axis, places):
    """Moves an array along an axis; zeros come in, what goes over the edge is lost."""
    padding = [(0, 0, 0)] * array.ndim
    padding[axis] = (places, -places, 0)
    return jax.lax.pad(array, jnp.zeros((), array.dtype), padding)


def _check(images, kernel):
    chex.assert_rank([images, kernel], 4)
    chex.assert_shape(kernel, (3, 3, images.shape[-1], None))
