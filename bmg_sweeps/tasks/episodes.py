"""Episodes: few-shot tasks drawn from the classes of a split.

An episode is N classes, labeled 0 … N − 1 at random, with S support images of each to
learn from and Q query images of each, disjoint from them, to be judged on.

Source: Finn et al. (2017), Section 5.2; Flennerhag et al. (2022), Section 6.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from bmg_sweeps import errors
from bmg_sweeps.tasks import sources

_EVALUATION_SEED = 0  # Never a point's own: all are evaluated on the same tasks.


class Episode(NamedTuple):
    """One task. Images of a class are next to each other, classes ordered by label."""

    support_images: jax.Array  # [N·S, H, W, channels] float32 in 0 … 1.
    support_labels: jax.Array  # [N·S] int32.
    query_images: jax.Array  # [N·Q, H, W, channels] float32 in 0 … 1.
    query_labels: jax.Array  # [N·Q] int32.


def sample(
    key: chex.PRNGKey,
    images: jax.Array,
    *,
    num_ways: int,
    num_shots: int,
    num_queries: int,
) -> Episode:
    """Draws N classes and S + Q images of each, all without replacement.

    Args:
        key: consumed here.
        images: [C, n, H, W, channels] uint8, of a split.
        num_ways: N, classes; at most C.
        num_shots: S, support images of a class.
        num_queries: Q, query images of a class; S + Q is at most n.

    Returns:
        The episode. A class's label is its place in the order that classes were drawn
        in, so the assignment is random, too.

    Raises:
        AssertionError: the images are not uint8, or not of rank 5.
        ValueError: more classes or images are asked for than there are.

    Gradient: none.
    """
    chex.assert_rank(images, 5)
    chex.assert_type(images, jnp.uint8)
    check(images.shape, num_ways=num_ways, num_shots=num_shots, num_queries=num_queries)
    class_key, image_key = jax.random.split(key)
    num_classes, num_images = images.shape[:2]
    classes = jax.random.choice(class_key, num_classes, (num_ways,), replace=False)

    def choose(key: chex.PRNGKey) -> jax.Array:
        chosen = (num_shots + num_queries,)
        return jax.random.choice(key, num_images, chosen, replace=False)

    members = jax.vmap(choose)(jax.random.split(image_key, num_ways))  # [N, S + Q].
    drawn = images[classes[:, None], members].astype(jnp.float32) / 255
    labels = jnp.arange(num_ways, dtype=jnp.int32)
    return Episode(
        drawn[:, :num_shots].reshape(-1, *images.shape[2:]),
        jnp.repeat(labels, num_shots),
        drawn[:, num_shots:].reshape(-1, *images.shape[2:]),
        jnp.repeat(labels, num_queries),
    )


def evaluation_keys(split: str, num_tasks: int) -> chex.PRNGKey:
    """Returns the keys of the tasks that a split is evaluated on.

    They are the same for every point, whatever its seed, and the first of a longer list
    are those of a shorter one.

    Args:
        split: "train", "validation" or "test".
        num_tasks: how many.

    Returns:
        [num_tasks] keys, each for one `sample`.

    Raises:
        ValueError: there is no such split.
    """
    if split not in sources.SPLITS:
        expected = errors.expected_one_of(split, sources.SPLITS)
        raise ValueError(f"split {split!r}: {expected}")
    key = jax.random.key(_EVALUATION_SEED)
    split_key = jax.random.fold_in(key, sources.SPLITS.index(split))
    return jax.vmap(jax.random.fold_in, (None, 0))(split_key, np.arange(num_tasks))


def check(
    shape: tuple[int, ...], *, num_ways: int, num_shots: int, num_queries: int
) -> None:
    """Checks that a split has the classes and images of an episode.

    Args:
        shape: [C, n, …] of the split's images.
        num_ways: N, classes.
        num_shots: S, support images of a class.
        num_queries: Q, query images of a class.

    Raises:
        UserError: it has not. One line names the field, its value, and what fits.
    """
    num_classes, num_images = shape[:2]
    sizes = {"num_ways": num_ways, "num_shots": num_shots, "num_queries": num_queries}
    for name, value in sizes.items():
        if value < 1:
            raise errors.UserError(f"{name} = {value}: expected at least 1")
    if num_ways > num_classes:
        raise errors.UserError(
            f"num_ways = {num_ways}: expected at most {num_classes}, its classes"
        )
    if num_shots + num_queries > num_images:
        raise errors.UserError(
            f"num_shots + num_queries = {num_shots} + {num_queries}: expected at most "
            f"{num_images}, the images of a class"
        )
