"""Few-shot classification with tiny images and networks, for its tests."""

import jax
import jax.numpy as jnp
import numpy as np

from bmg_sweeps.running import binding
from bmg_sweeps.sweep import point

SIZE = 8
VALUES = {
    "data_set": "glyphs",  # Not looked at: `source` is.
    "num_ways": 3,
    "num_shots": 2,
    "num_queries": 2,
    "num_evaluation_queries": 3,
    "num_blocks": 1,
    "num_filters": 4,
    "convolution": "plain",  # Compiles faster; the other form has tests of its own.
    "meta_batch_size": 2,
    "evaluation_steps": 3,
    "num_evaluation_tasks": 5,
    "evaluation_interval": 4,
    "record_interval": 2,
}
BMG = {"update_kind": "bmg", "inner_steps": 2, "target_steps": 3}


def make_config(**values):
    """The values of the .gin, but for some."""
    gin_text = point.resolve("few_shot", VALUES | values).gin_text()
    _, config = binding.bind("few_shot", gin_text)
    return jax.tree.map(jnp.asarray, config)


def source(num_classes=6, num_images=8, noise=40):
    """Images of a class are its pattern, and noise."""
    random = np.random.default_rng(0)

    def split():
        patterns = random.integers(0, 256, (num_classes, 1, SIZE, SIZE, 1))
        noises = random.normal(0, noise, (num_classes, num_images, SIZE, SIZE, 1))
        return jnp.asarray(np.clip(patterns + noises, 0, 255).astype(np.uint8))

    return {name: split() for name in ("train", "validation", "test")}
