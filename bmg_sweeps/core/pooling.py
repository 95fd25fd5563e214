"""Max-pooling of 3×3 windows with strides of 2, in forms of other speed on CPUs.

XLA's own is fast forwards, but its derivative takes longer on CPUs than the convolution
before it: it looks for the largest number of each window again. Written out, the choice
of each window is made of comparisons, whose derivatives are choices.

Both take [B, H, W, C] images, to whose ends they add what is never the largest ("same"
padding), and give [B, ⌈H / 2⌉, ⌈W / 2⌉, C], the same bits. Their derivatives are the
same, too, to rounding: of equal numbers in a window, the first in reading order counts.
"""

import haiku as hk
import jax
import jax.numpy as jnp

_SIZE, _STRIDE = 3, 2
_WIDTH_THEN_HEIGHT = (2, 1)  # The other way, the first column would count.


def plain(images: jax.Array) -> jax.Array:
    """Pools with XLA's own operation, z[h, w] = max_ij x[2h+i, 2w+j].

    Args:
        images: [B, H, W, C] x.

    Returns:
        [B, ⌈H / 2⌉, ⌈W / 2⌉, C] z.

    Gradient: flows to the first of the largest numbers of each window.
    """
    window, strides = (_SIZE, _SIZE, 1), (_STRIDE, _STRIDE, 1)
    return hk.max_pool(images, window, strides, "SAME")


def written_out(images: jax.Array) -> jax.Array:
    """Pools as `plain` does, with a derivative that is fast on CPUs.

    Args:
        images: [B, H, W, C] x.

    Returns:
        [B, ⌈H / 2⌉, ⌈W / 2⌉, C] z.

    Gradient: flows to the first of the largest numbers of each window.
    """
    for axis in _WIDTH_THEN_HEIGHT:
        first, second, third = _windows(images, axis)
        larger = jnp.where(first >= second, first, second)
        images = jnp.where(larger >= third, larger, third)
    return images


def _windows(images: jax.Array, axis: int) -> list[jax.Array]:
    """The first number of each window along an axis, the second and the third."""
    length = images.shape[axis]
    count = -(-length // _STRIDE)
    reach = _STRIDE * (count - 1) + 1  # From the first window's number to the last's.
    missing = reach + _SIZE - 1 - length
    padding = [(0, 0, 0)] * images.ndim
    padding[axis] = (missing // 2, missing - missing // 2, 0)
    images = jax.lax.pad(images, jnp.array(-jnp.inf, images.dtype), padding)
    return [
        jax.lax.slice_in_dim(images, i, i + reach, _STRIDE, axis) for i in range(_SIZE)
    ]
