"""The learner of few-shot classification: a network, and how a task adapts it."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import optax

from bmg_sweeps.core import convolutions, gradient_descent, networks
from bmg_sweeps.tasks import episodes

Labeled = tuple[jax.Array, jax.Array]
"""[B, H, W, C] images and [B] labels."""


class Learner(NamedTuple):
    """A network that has adapted to a task."""

    params: hk.Params  # x⁽ᵏ⁾, the variables that tasks change.
    context: hk.Params  # The others.


ADAPTED: dict[str, Callable[[str, str, Any], bool]] = {
    # As in the original MAML, where the offsets of normalization are only meta-learned.
    "weights": lambda module, name, value: name != "offset",
    "head": lambda module, name, value: module == "linear",  # ANIL.
    "everything": lambda module, name, value: True,
}
"""By name, which variables a task changes."""


def _by_platform() -> convolutions.Convolution:
    is_faster = convolutions.is_written_out_faster()
    return convolutions.written_out if is_faster else convolutions.plain


CONVOLUTIONS: dict[str, Callable[[], convolutions.Convolution]] = {
    "by_platform": _by_platform,
    "plain": lambda: convolutions.plain,
    "written_out": lambda: convolutions.written_out,
}
"""By name, the form of convolutions on this machine."""


def network(config: Any) -> hk.Transformed:
    """Builds the network of a config."""
    convolution = CONVOLUTIONS[config.convolution]()
    return networks.convolutional(
        config.num_ways, config.num_filters, convolution, config.num_blocks
    )


def adapt(
    config: Any,
    meta_params: hk.Params,
    support: Labeled,
    num_steps: int,
    descend: Callable[..., hk.Params] = gradient_descent.descend,
) -> Learner:
    """Adapts the initialization to a task, x⁽ᵏ⁾ = x⁽ᵏ⁻¹⁾ − α ∇f(x⁽ᵏ⁻¹⁾), x⁽⁰⁾ = w.

    Source: Finn et al. (2017), Section 3.1.

    Args:
        config: the point's values.
        meta_params: w.
        support: the task's images to learn from.
        num_steps: of adaptation.
        descend: a function of `gradient_descent`, which says how it is differentiated.

    Returns:
        The learner after the last step.

    Gradient: reaches `meta_params` as `descend` says.
    """
    is_adapted = ADAPTED[config.adapted]
    learner = Learner(*hk.data_structures.partition(is_adapted, meta_params))
    rate = config.learning_rate
    return descend_on(config, learner, support, rate, num_steps, descend)


def descend_on(
    config: Any,
    learner: Learner,
    data: Labeled,
    learning_rate: jax.Array,
    num_steps: int = 1,
    descend: Callable[..., hk.Params] = gradient_descent.descend,
) -> Learner:
    """Takes steps down the mean loss of some images, x ← x − η ∇f(x).

    Source: Finn et al. (2017), Section 3.1; Flennerhag et al. (2022), Section 6.

    Args:
        config: the point's values.
        learner: to go on from.
        data: the images.
        learning_rate: η, [].
        num_steps: to take.
        descend: a function of `gradient_descent`, which says how it is differentiated.

    Returns:
        The learner after the last step.

    Gradient: reaches `learner` as `descend` says.
    """
    objective = functools.partial(_loss, network(config).apply)
    params = descend(objective, *learner, data, learning_rate, num_steps)
    return learner._replace(params=params)


def loss(config: Any, learner: Learner, data: Labeled) -> jax.Array:
    """Returns the mean cross-entropy of labeled images, in nats, []."""
    return _loss(network(config).apply, *learner, data)


def logits(config: Any, learner: Learner, images: jax.Array) -> jax.Array:
    """Returns the unnormalized log-probabilities of each class, [B, N]."""
    return network(config).apply(hk.data_structures.merge(*learner), images)


def accuracy(config: Any, learner: Learner, data: Labeled) -> jax.Array:
    """Returns how many of the images it labels rightly, in percent, []."""
    images, labels = data
    predicted = jnp.argmax(logits(config, learner, images), axis=-1)
    return 100 * jnp.mean(predicted == labels)


def features(config: Any, params: hk.Params, images: jax.Array) -> jax.Array:
    """Returns what the last layer sees of images, [B, H]."""
    return networks.features(network(config), params, images)


def for_each_task(function: Callable[[jax.Array], Any], keys: jax.Array) -> Any:
    """Maps a function over tasks: one after the other on CPUs, else all at once.

    One task fills a CPU, and what it needs leaves room for the next in the caches.
    """
    if jax.default_backend() == "cpu":
        return jax.lax.map(function, keys)
    return jax.lax.map(function, keys, batch_size=MAX_TASKS)


def multiply_adds(config: Any, image_shape: tuple[int, int, int]) -> int:
    """Counts the multiplications of a meta-update's convolutions, about.

    Args:
        config: the point's values.
        image_shape: height, width, channels.

    Returns:
        For all tasks of a meta-batch: forward and backward passes of support and query
        images, and a Hessian-vector product in each of the K steps.
    """
    height, width, channels = image_shape
    forward = 0
    for _ in range(config.num_blocks):
        forward += height * width * 9 * channels * config.num_filters
        height, width, channels = height // 2, width // 2, config.num_filters
    support = config.num_ways * config.num_shots * config.inner_steps * 12
    query = config.num_ways * config.num_queries * 3 * (1 + config.target_steps)
    return config.meta_batch_size * (support + query) * forward


def support(episode: episodes.Episode) -> Labeled:
    """Returns the images to learn from."""
    return episode.support_images, episode.support_labels


def query(episode: episodes.Episode) -> Labeled:
    """Returns the images to be judged on: the task's validation set."""
    return episode.query_images, episode.query_labels


MAX_TASKS = 64  # Tasks that a GPU maps over at once; one takes some 100 MB.


def _loss(apply, params, context, data):
    images, labels = data
    outputs = apply(hk.data_structures.merge(params, context), images)
    losses = optax.softmax_cross_entropy_with_integer_labels(outputs, labels)
    return jnp.mean(losses)
