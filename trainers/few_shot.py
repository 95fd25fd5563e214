"""Few-shot classification: an initialization that gradient descent adapts in K steps.

Three update kinds, in `_few_shot_updates`: `maml`, its first-order
approximation `fomaml`, and `bmg`, which matches the adapted learner to one that has
seen more of the task. `adapted` says which variables a task changes; with "head" all
three are ANIL.

Source: Flennerhag et al. (2022), Section 6, Appendix D, Algorithm 7; Finn et al.
(2017); Raghu et al. (2020). The original MAML's code settles what these leave open.

Differs from the papers, or goes beyond what they say:
- Losses are means over images. The original sums them over classes and divides by the
  number of shots, which is 5 times that in 5-way-5-shot; its inner rate of 0.01 is 0.05
  here, and its limit of ±10 on meta-gradients ±2.
- Meta-training has 5 query images per class, as Appendix D.2 says of task validation
  sets; the original MAML has 15.
- Batch normalization uses the statistics of the batch at hand, support and query
  images apart, in training and evaluation: the learner is transductive. Its offsets are
  meta-learned and not adapted ("weights"), as in the original; it has no scales. A bias
  before normalization has no effect, and is left out.
- The target's L − 1 steps have the rate α of adaptation, its last one has its own
  (`target_learning_rate`), by default the same. All of them use the task's query
  images, and so does the matching function.
- The scale of the meta-gradient's variance is not stated; see `core.diagnostics`.
"""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import chex
import gin
import haiku as hk
import jax
import jax.numpy as jnp
import optax
from annotated_types import Ge

from bmg_sweeps.core import diagnostics
from bmg_sweeps.tasks import data_sets, episodes
from bmg_sweeps.trainer import structures
from bmg_sweeps.trainer.config import require, require_unused, structure
from bmg_sweeps.trainer.ranges import Count, Decay, OneOf, Positive, Seed
from trainers import _few_shot_data, _few_shot_learner, _few_shot_updates


@jax.tree_util.register_dataclass
@gin.configurable("few_shot")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """Every value is bound in gin/few_shot.gin; none has a default."""

    seed: Seed
    learning_rate: Positive  # α, of adaptation, on the mean loss of the support images.
    target_learning_rate: Positive  # α of the target's gradient step.
    meta_learning_rate: Positive  # β.
    meta_adam_b1: Decay
    meta_adam_b2: Decay
    meta_adam_eps: Positive
    meta_gradient_clip: Positive  # Largest magnitude of an element.
    evaluation_interval: Count  # Meta-updates.
    data_set: Annotated[str, OneOf(data_sets.DATA_SETS)] = structure()
    num_ways: Annotated[int, Ge(2)] = structure()  # N, classes of a task.
    num_shots: Count = structure()  # Support images of a class.
    num_queries: Count = structure()  # Query images of a class, in meta-training.
    num_evaluation_queries: Count = structure()  # The same in evaluation.
    num_blocks: Count = structure()  # Each has a convolution and a pooling.
    num_filters: Count = structure()  # Each convolution has so many.
    convolution: Annotated[str, OneOf(_few_shot_learner.CONVOLUTIONS)] = structure()
    update_kind: Annotated[str, OneOf(_few_shot_updates.UPDATE_KINDS)] = structure()
    adapted: Annotated[str, OneOf(_few_shot_learner.ADAPTED)] = structure()
    inner_steps: Count = structure()  # K, of adaptation in meta-training.
    target_steps: Count = structure()  # L, from x⁽ᴷ⁾ to the target.
    target_bootstrap: Annotated[str, OneOf(_few_shot_updates.TARGET_BOOTSTRAPS)] = (
        structure()
    )
    matching_function: Annotated[str, OneOf(_few_shot_updates.MATCHING_FUNCTIONS)] = (
        structure()
    )
    meta_batch_size: Count = structure()  # M, tasks of a meta-update.
    evaluation_steps: Count = structure()  # Steps of adaptation in evaluation.
    num_evaluation_tasks: Count = structure()  # On each split.
    record_interval: Count = structure()  # Meta-updates that a row is the mean of.


class State(NamedTuple):
    """All that `update` reads; saving it is a checkpoint."""

    meta_params: hk.Params  # w: the initialization x⁽⁰⁾, and what is not adapted.
    meta_opt_state: optax.OptState
    meta_gradient: hk.Params  # Of the last meta-update.
    key: chex.PRNGKey  # Never changes; meta-updates fold their number in.
    meta_updates: jax.Array  # [] int32.
    sums: dict[str, jax.Array]  # Of each metric since the last row, [] each.
    row: dict[str, jax.Array]  # The last row, [] each.


def check(config: Config) -> None:
    """Raises ValueError where fields contradict each other."""
    every = config.record_interval
    multiple = f"a multiple of record_interval = {every}"
    require(config, "evaluation_interval", lambda v: v % every == 0, multiple)
    if config.update_kind != _few_shot_updates.bmg.__name__:
        require_unused(config, _UNUSED_WITHOUT_TARGET, "there is no target")


def provenance(config: Config) -> dict[str, Any]:
    """Says what the numbers come from, beside the config.

    Args:
        config: the point's values.

    Returns:
        Checksum of the data set, and the form of convolutions on this machine.

    Raises:
        ValueError: there is no such data set here, it is not whole, or it does not have
            the images for a task.
    """
    data_set = _few_shot_data.load(config)
    return {
        "data_set": f"{data_set.name} {data_set.checksum}",
        "convolution": _few_shot_learner.CONVOLUTIONS[config.convolution]().__name__,
    }


@contextlib.contextmanager
def open_source(structure: structures.Structure) -> Iterator[_few_shot_data.Source]:
    """Puts the data set on the device, once in a process.

    Args:
        structure: names the data set, and says how large tasks are.

    Yields:
        Its images.

    Raises:
        ValueError: as `provenance`.
    """
    yield _few_shot_data.on_device(structure)


def progress(config: Config, state: State) -> dict[str, jax.Array]:
    """Counts the training so far: meta-updates."""
    del config
    return {"meta_updates": state.meta_updates}


def init(config: Config, key: chex.PRNGKey, source: _few_shot_data.Source) -> State:
    """Starts with a random initialization.

    Args:
        config: the point's values.
        key: the network's is split off; the rest is that of all tasks to come.
        source: says the shape of images.

    Returns:
        The state before the first meta-update.
    """
    network_key, key = jax.random.split(key)
    images = jnp.zeros((1, *source["train"].shape[2:]))
    meta_params = _few_shot_learner.network(config).init(network_key, images)
    zeros = {name: jnp.zeros(()) for name in METRICS}
    return State(
        meta_params=meta_params,
        meta_opt_state=_meta_optimizer(config).init(meta_params),
        meta_gradient=jax.tree.map(jnp.zeros_like, meta_params),
        key=key,
        meta_updates=jnp.zeros((), jnp.int32),
        sums=zeros,
        row={"meta_updates": jnp.zeros((), jnp.int32)} | zeros,
    )


def train(
    config: Config, state: State, source: _few_shot_data.Source
) -> tuple[State, dict[str, jax.Array]]:
    """Runs one chunk of meta-updates.

    Args:
        config: the point's values.
        state: to go on from.
        source: images by split.

    Returns:
        The state after the chunk, and [1] rows: the last whole interval's metrics, and
        those of `core.diagnostics` on one task, always the same.
    """
    state, _ = jax.lax.scan(
        lambda state, _: (update(config, state, source["train"]), None),
        state,
        length=chunk_length(config, source["train"].shape[2:]),
    )
    task = _few_shot_data.episode(
        config, jax.random.key(0), source["train"], config.num_queries
    )
    seen, _ = _few_shot_learner.query(task)
    features = _few_shot_learner.features(config, state.meta_params, seen)
    row = state.row | diagnostics.of_features(features)
    return state, {name: value[jnp.newaxis] for name, value in row.items()}


def evaluate(
    config: Config, state: State, source: _few_shot_data.Source, split: str
) -> dict[str, jax.Array]:
    """Adapts to tasks that were never trained on, the same for all points.

    Args:
        config: the point's values.
        state: to be judged.
        source: images by split.
        split: "validation" or "test".

    Returns:
        Mean `accuracy` on the query images, in percent, `accuracy_95`, half the width
        of its 95 % interval over tasks, and mean `loss`, in nats.
    """

    def of_task(key: chex.PRNGKey) -> tuple[jax.Array, jax.Array]:
        episode = _few_shot_data.episode(
            config, key, source[split], config.num_evaluation_queries
        )
        learner = _few_shot_learner.adapt(
            config,
            state.meta_params,
            _few_shot_learner.support(episode),
            config.evaluation_steps,
        )
        query = _few_shot_learner.query(episode)
        return (
            _few_shot_learner.accuracy(config, learner, query),
            _few_shot_learner.loss(config, learner, query),
        )

    keys = episodes.evaluation_keys(split, config.num_evaluation_tasks)
    accuracies, losses = _few_shot_learner.for_each_task(of_task, keys)
    error = jnp.std(accuracies) / math.sqrt(config.num_evaluation_tasks)
    return {
        "accuracy": jnp.mean(accuracies),
        "accuracy_95": 1.96 * error,
        "loss": jnp.mean(losses),
    }


def update(config: Config, state: State, images: jax.Array) -> State:
    """Makes one meta-update, w ← w − β Adam(1/M Σ_i ∇_w of the i-th task's meta-loss).

    Args:
        config: the point's values.
        state: before it.
        images: [C, n, H, W, channels] uint8, to draw tasks from.

    Returns:
        The state after it.
    """

    def of_task(key: chex.PRNGKey) -> tuple[jax.Array, jax.Array, hk.Params]:
        episode = _few_shot_data.episode(config, key, images, config.num_queries)
        meta_loss = functools.partial(
            _few_shot_updates.UPDATE_KINDS[config.update_kind], config
        )
        (loss, learner), gradient = jax.value_and_grad(meta_loss, has_aux=True)(
            state.meta_params, episode
        )
        accuracy = _few_shot_learner.accuracy(
            config, learner, _few_shot_learner.query(episode)
        )
        return loss, accuracy, gradient

    key = jax.random.fold_in(state.key, state.meta_updates)
    losses, accuracies, gradients = _few_shot_learner.for_each_task(
        of_task, jax.random.split(key, config.meta_batch_size)
    )
    gradient = jax.tree.map(lambda g: jnp.mean(g, axis=0), gradients)
    updates, meta_opt_state = _meta_optimizer(config).update(
        gradient, state.meta_opt_state
    )
    norm, variance = optax.tree.norm(gradient), diagnostics.variance(gradients)
    metrics = {
        "meta_loss": jnp.mean(losses),
        "query_accuracy": jnp.mean(accuracies),
        "meta_gradient_norm": norm,
        "cosine_similarity": diagnostics.cosine_similarity(
            gradient, state.meta_gradient
        ),
        "meta_gradient_variance": variance,
        "norm_to_variance": diagnostics.norm_to_variance(norm, variance),
    }
    state = state._replace(
        meta_params=optax.apply_updates(state.meta_params, updates),
        meta_opt_state=meta_opt_state,
        meta_gradient=gradient,
        meta_updates=state.meta_updates + 1,
    )
    return _recorded(config, state, metrics)


def chunk_length(config: Config, image_shape: tuple[int, int, int]) -> int:
    """Chooses how many meta-updates one call of `train` makes, some seconds' worth.

    Args:
        config: the point's values.
        image_shape: height, width, channels.

    Returns:
        A divisor of `record_interval`, so that chunks end where rows and evaluations
        are due.
    """
    seconds = (
        _few_shot_learner.multiply_adds(config, image_shape)
        / _multiply_adds_per_second()
    )
    most = max(1, int(_CHUNK_SECONDS / seconds))
    every = config.record_interval
    return max(n for n in range(1, every + 1) if every % n == 0 and n <= most)


METRICS = (
    "meta_loss",
    "query_accuracy",
    "meta_gradient_norm",
    "cosine_similarity",
    "meta_gradient_variance",
    "norm_to_variance",
)


def _recorded(config: Config, state: State, metrics: dict[str, jax.Array]) -> State:
    """Adds a meta-update's metrics up; at the end of an interval they make a row."""
    sums = jax.tree.map(jnp.add, state.sums, metrics)
    is_due = state.meta_updates % config.record_interval == 0
    means = jax.tree.map(lambda total: total / config.record_interval, sums)
    row = {"meta_updates": state.meta_updates} | means
    return state._replace(
        sums=jax.tree.map(lambda total: jnp.where(is_due, 0.0, total), sums),
        row=jax.tree.map(functools.partial(jnp.where, is_due), row, state.row),
    )


def _meta_optimizer(config):
    return optax.chain(
        optax.clip(config.meta_gradient_clip),
        optax.adam(
            config.meta_learning_rate,
            b1=config.meta_adam_b1,
            b2=config.meta_adam_b2,
            eps=config.meta_adam_eps,
        ),
    )


_CHUNK_SECONDS = 2.0


def _multiply_adds_per_second():
    """Of these convolutions: two cores of a small server, or an accelerator."""
    return 2e10 if jax.default_backend() == "cpu" else 2e12


_UNUSED_WITHOUT_TARGET = {
    "target_steps": 1,
    "target_bootstrap": "objective_step",
    "matching_function": "policy_kl",
}
