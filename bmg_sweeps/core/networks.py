"""Networks, as haiku transforms without state or randomness."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from bmg_sweeps.core import convolutions, pooling


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


def features(network: hk.Transformed, params: hk.Params, inputs: jax.Array) -> Any:
    """Returns what the last linear layer of a network is given.

    Args:
        network: one of this module's that ends with a linear layer.
        params: those of the network.
        inputs: as its `apply` takes them.

    Returns:
        [..., H].

    Gradient: flows through params and inputs.
    """
    given: list[Any] = []

    def intercept(next_function, args, kwargs, context):
        is_call = context.method_name == "__call__"
        if isinstance(context.module, hk.Linear) and is_call:
            given.append(args[0])
        return next_function(*args, **kwargs)

    with hk.intercept_methods(intercept):
        network.apply(params, inputs)
    return given[-1]


def heads(
    num_heads: int, hidden_sizes: Sequence[int], output_size: int
) -> hk.Transformed:
    """Builds independent networks of one shape, `mlp`, computed together.

    Args:
        num_heads: H.
        hidden_sizes: units of each hidden layer.
        output_size: O, units of the last layer.

    Returns:
        A pair of pure functions: `init(key, features)` gives the parameters of `mlp`
        with [H, ...] in each leaf, and `apply(params, features)` maps features [..., D]
        to outputs [..., H, O]. A slice of the parameters makes for as many heads.
    """
    network = mlp(hidden_sizes, output_size)

    def init(key, features):
        return jax.vmap(network.init, (0, None))(
            jax.random.split(key, num_heads), features
        )

    def apply(params, features):
        return jax.vmap(network.apply, (0, None), -2)(params, features)

    return hk.Transformed(init, apply)


def residual(
    channels: Sequence[int],
    num_blocks: int,
    feature_size: int,
    dtype: DTypeLike,
    is_rematerialized: bool,
    is_written_out: bool,
) -> hk.Transformed:
    """Builds the deep network of IMPALA, without its recurrent core and heads.

    A section has a 3×3 convolution, 3×3 max-pooling with strides of 2, and residual
    blocks x + c₂(relu(c₁(relu(x)))) of two 3×3 convolutions. Zeros surround images. A
    linear layer with a ReLU before and behind makes the features.

    Source: Espeholt et al. (2018), Fig. 3; sizes in Flennerhag et al. (2022), Table 2.

    Args:
        channels: of each section, which halves height and width, rounding up.
        num_blocks: residual blocks in each section.
        feature_size: units of the linear layer.
        dtype: to compute in, such as bfloat16; parameters and outputs are float32, or
            what is wider.
        is_rematerialized: whether derivatives compute the insides of each section
            again, and keep only what is between sections. The numbers are the same.
        is_written_out: whether convolutions and pooling are in the forms whose
            derivatives are fast on CPUs. The numbers are the same, to rounding.

    Returns:
        A pair of pure functions: `init(key, images)` and `apply(params, images)`, with
        images [..., H, W, C] of about unit scale and features [..., feature_size].
        Weights start as haiku's default, as those of `mlp`; biases at 0.
    """
    stored = jnp.promote_types(dtype, jnp.float32)

    def forward(images: jax.Array) -> jax.Array:
        leading, shape = images.shape[:-3], images.shape[-3:]
        features = images.reshape(-1, *shape).astype(dtype)
        for i, num_channels in enumerate(channels):
            section = functools.partial(
                _section,
                num_channels=num_channels,
                num_blocks=num_blocks,
                form="written_out" if is_written_out else "plain",
            )
            section = hk.remat(section) if is_rematerialized else section
            with hk.experimental.name_scope(f"section_{i}"):
                features = section(features)
        flat = jax.nn.relu(features).reshape(features.shape[0], -1)
        features = jax.nn.relu(hk.Linear(feature_size)(flat))
        return features.reshape(*leading, feature_size).astype(stored)

    def mixed_precision(images: jax.Array) -> jax.Array:
        def create(next_creator, shape, _, init, context):
            del context
            return next_creator(shape, stored, init)

        def get(next_getter, value, context):
            del context
            return next_getter(value.astype(dtype))

        with hk.custom_creator(create), hk.custom_getter(get):
            return forward(images)

    return hk.without_apply_rng(hk.transform(mixed_precision))


def _section(
    features: jax.Array, num_channels: int, num_blocks: int, form: str
) -> jax.Array:
    """One section of `residual`."""
    convolve = functools.partial(
        _convolved, num_channels=num_channels, convolution=getattr(convolutions, form)
    )
    features = getattr(pooling, form)(convolve(features, name="conv"))
    for i in range(num_blocks):
        inner = features
        for j in range(2):
            inner = convolve(jax.nn.relu(inner), name=f"block_{i}_conv_{j}")
        features += inner
    return features


def _convolved(
    features: jax.Array,
    num_channels: int,
    convolution: convolutions.Convolution,
    name: str,
) -> jax.Array:
    """A convolution with biases, whose weights start as those of `hk.Conv2D`."""
    shape = (3, 3, features.shape[-1], num_channels)
    initializer = hk.initializers.TruncatedNormal(1 / math.sqrt(math.prod(shape[:-1])))
    with hk.experimental.name_scope(name):
        kernel = hk.get_parameter("w", shape, features.dtype, initializer)
        biases = hk.get_parameter("b", shape[-1:], features.dtype, jnp.zeros)
    return convolution(features, kernel) + biases.reshape(1, 1, 1, -1)


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
