"""The images that few-shot classification trains on, and the tasks drawn from them."""

import functools
from typing import Any

import chex
import jax

from bmg_sweeps.tasks import data_sets, episodes

Source = dict[str, jax.Array]
"""[C, n, H, W, channels] uint8 images, by split."""


def load(config: Any) -> data_sets.DataSet:
    """Loads the data set of a config, and checks that it has the images for its tasks.

    Args:
        config: the point's values.

    Returns:
        The data set, in the user's folder or embedded.

    Raises:
        ValueError: there is none, it is not whole, or has too few classes or images.
    """
    data_set = _load(config.data_set, data_sets.user_folder())
    for split, part in data_set.splits.items():
        is_training = split == "train"
        try:
            episodes.check(
                part.images.shape,
                num_ways=config.num_ways,
                num_shots=config.num_shots,
                num_queries=(
                    config.num_queries if is_training else config.num_evaluation_queries
                ),
            )
        except ValueError as error:
            raise ValueError(f"{config.data_set}, {split}: {error}") from error
    return data_set


def on_device(config: Any) -> Source:
    """Puts the images of all splits on the device, once in a process."""
    load(config)
    return _on_device(config.data_set, data_sets.user_folder())


def episode(
    config: Any, key: chex.PRNGKey, images: jax.Array, num_queries: int
) -> episodes.Episode:
    """Draws a task of a config's size; see `episodes.sample`."""
    return episodes.sample(
        key,
        images,
        num_ways=config.num_ways,
        num_shots=config.num_shots,
        num_queries=num_queries,
    )


@functools.lru_cache(maxsize=1)
def _load(name, folder):
    return data_sets.load(name, folder)


@functools.lru_cache(maxsize=1)
def _on_device(name, folder):
    # On a CPU the device's memory is the mapped file's own: nothing is copied.
    return {
        split: jax.device_put(part.images)
        for split, part in _load(name, folder).splits.items()
    }
