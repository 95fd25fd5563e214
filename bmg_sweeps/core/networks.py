"""Networks, as haiku transforms without state or randomness."""

from collections.abc import Callable, Sequence

import haiku as hk
import jax
import jax.numpy as jnp


def mlp(
    hidden_sizes: Sequence[int],
    output_size: int,
    activation: Callable[[jax.Array], jax.Array] = jax.nn.relu,
) -> hk.Transformed:
    """Builds a feed-forward network with a linear last layer.

    Args:
        hidden_sizes: units of each hidden layer.
        output_size: units of the last layer.
        activation: applied after every hidden layer.

    Returns:
        A pair of pure functions: `init(key, inputs)` and `apply(params, inputs)`, with
        inputs [..., D] and outputs [..., output_size]. Weights start as haiku's
        default, a normal of deviation 1/√fan_in cut at two deviations; biases at 0.
    """
    return hk.without_apply_rng(
        hk.transform(
            lambda inputs: hk.nets.MLP(
                [*hidden_sizes, output_size], activation=activation
            )(inputs)
        )
    )


def convolutional(
    num_outputs: int,
    num_filters: int,
    convolution: Callable[[jax.Array, jax.Array], jax.Array],
    num_blocks: int,
) -> hk.Transformed:
    """Builds the standard network of few-shot classification.

    Blocks of a 3×3 convolution, batch normalization with the statistics of the batch at
    hand, a ReLU and 2×2 max-pooling, then a linear layer. Pooling is done before
    normalization, which gives the same: what follows it is increasing in every channel.
    Normalization has a learned offset and no scale, as in the original MAML; where that
    has a bias before normalization, which takes it off again, here is none.

    Source: Vinyals et al. (2016), Section 4.1; details of Finn et al. (2017), code.

    Args:
        num_outputs: units of the last layer.
        num_filters: of each convolution.
        convolution: a function of `convolutions`.
        num_blocks: each halves the height and width of the image, rounding down.

    Returns:
        A pair of pure functions: `init(key, images)` and `apply(params, images)`, with
        images [B, H, W, C] and outputs [B, num_outputs]. Weights start uniform, of
        variance 2 / (fan_in + fan_out); offsets and biases at 0. The modules are
        "block_0", … with "w" and "offset", and "linear" with "w" and "b".
    """
    glorot = hk.initializers.VarianceScaling(1.0, "fan_avg", "uniform")

    def forward(images: jax.Array) -> jax.Array:
        features = images
        for i in range(num_blocks):
            shape = (3, 3, features.shape[-1], num_filters)
            with hk.experimental.name_scope(f"block_{i}"):
                dtype = features.dtype
                kernel = hk.get_parameter("w", shape, dtype, glorot)
                offset = hk.get_parameter("offset", (num_filters,), dtype, jnp.zeros)
            features = convolution(features, kernel)
            features = _normalized_and_pooled(features)
            features = jax.nn.relu(features + offset.reshape(1, 1, 1, -1))
        flat = features.reshape(features.shape[0], -1)
        return hk.Linear(num_outputs, w_init=glorot)(flat)

    return hk.without_apply_rng(hk.transform(forward))


_VARIANCE_FLOOR = 1e-3  # Default of the original's `tf.contrib.layers.batch_norm`.


def _normalized_and_pooled(features: jax.Array) -> jax.Array:
    """The largest of each 2×2 window of (z − mean) / √(variance + ε).

    The variance is that around a constant, less the mean's distance from it: the same
    function, with the same derivatives, but without a way through the mean that adds
    nothing to them.
    """
    axes = (0, 1, 2)
    center = jax.lax.stop_gradient(jnp.mean(features, axes, keepdims=True))
    centered = features - center
    mean = jnp.mean(centered, axes, keepdims=True)
    variance = jnp.mean(centered**2, axes, keepdims=True) - mean**2
    return (_pooled(features) - center - mean) * jax.lax.rsqrt(
        variance + _VARIANCE_FLOOR
    )


def _pooled(features: jax.Array) -> jax.Array:
    """Maxima of 2×2 windows; what is left over at an edge is dropped."""
    batch, height, width, channels = features.shape
    height, width = height // 2, width // 2
    windows = features[:, : 2 * height, : 2 * width]
    windows = windows.reshape(batch, height, 2, width, 2, channels)
    return jnp.max(windows, axis=(2, 4))
