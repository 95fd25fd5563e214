"""3×3 convolutions, in forms that differ in what compilers make of their derivatives.

Convolutions are what few-shot networks spend their time on, and meta-gradients need
their derivatives of first and second order, for other weights in every task. XLA's own
are fast on accelerators. On CPUs the convolution is, too, but not its derivatives, and
inside of loops those are ten times slower still. There they are written out, as another
convolution and a matrix product; differentiating these forwards gives more of the same.

All take zeros around the image ("same" padding), strides of one, [B, H, W, C] images
and [3, 3, C, F] kernels, and give [B, H, W, F]; they agree to rounding.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator

import chex
import jax
import jax.numpy as jnp

Convolution = Callable[[jax.Array, jax.Array], jax.Array]
"""(images, kernel) ↦ their convolution."""


_PLATFORM: contextvars.ContextVar[str | None] = contextvars.ContextVar(
    "platform", default=None
)


@contextlib.contextmanager
def traced_for(platform: str) -> Iterator[None]:
    """Has programs traced as for another machine's "cpu" or "gpu", and not run.

    What they would need there is then known here.
    """
    token = _PLATFORM.set(platform)
    try:
        yield
    finally:
        _PLATFORM.reset(token)


def is_written_out_faster() -> bool:
    """Whether derivatives of `written_out` are faster on this machine: on CPUs."""
    return (_PLATFORM.get() or jax.default_backend()) == "cpu"


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


@jax.custom_vjp
def written_out(images: jax.Array, kernel: jax.Array) -> jax.Array:
    """Convolves as `plain` does, with a derivative that is fast on CPUs.

        ∂/∂x: the cotangent convolved with the kernel turned around
        ∂/∂k: Σ_bhw x[b, h+i−1, w+j−1] g[b, h, w], as one matrix product

    Args:
        images: [B, H, W, C] x.
        kernel: [3, 3, C, F] k.

    Returns:
        [B, H, W, F] z.

    Raises:
        AssertionError: the kernel does not fit the images.

    Gradient: flows through both; of higher order by forward- over reverse-mode
    differentiation, in which everything stays fast, or by reverse-mode throughout.
    """
    return plain(images, kernel)


def _forwards(images, kernel):
    return plain(images, kernel), (images, kernel)


def _backwards(residuals, cotangent):
    images, kernel = residuals
    turned = jnp.flip(kernel, (0, 1)).swapaxes(2, 3)
    return plain(cotangent, turned), _correlated(images, cotangent)


written_out.defvjp(_forwards, _backwards)


def _correlated(images, cotangent):
    """Σ_bhw x[b, h+i−1, w+j−1] g[b, h, w], [3, 3, C, F].

    With few channels all nine shifts are those of the images, as 9 C columns. With many
    the images are shifted along a row, as 3 C columns, and the cotangents across, as
    3 F: that has fewer numbers to write.
    """
    channels, filters = images.shape[-1], cotangent.shape[-1]
    if 9 * channels <= 3 * channels + 3 * filters:
        across = [_shifted(images, 1, i) for i in (1, 0, -1)]
        columns = [_shifted(x, 2, j) for x in across for j in (1, 0, -1)]
        return _product(columns, [cotangent]).reshape(3, 3, channels, filters)
    columns = [_shifted(images, 2, j) for j in (1, 0, -1)]
    others = [_shifted(cotangent, 1, i) for i in (-1, 0, 1)]
    product = _product(columns, others).reshape(3, channels, 3, filters)
    return product.transpose(2, 0, 1, 3)


def _product(left, right):
    """Aᵀ B of the matrices whose columns are the channels of arrays."""
    left, right = (jnp.concatenate(part, axis=-1) for part in (left, right))
    left, right = (part.reshape(-1, part.shape[-1]) for part in (left, right))
    return left.T @ right


def _shifted(array, axis, places):
    """Moves an array along an axis; zeros come in, what goes over the edge is lost."""
    padding = [(0, 0, 0)] * array.ndim
    padding[axis] = (places, -places, 0)
    return jax.lax.pad(array, jnp.zeros((), array.dtype), padding)


def _check(images, kernel):
    chex.assert_rank([images, kernel], 4)
    chex.assert_shape(kernel, (3, 3, images.shape[-1], None))
