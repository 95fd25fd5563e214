"""Episodes: each class and image equally often, and never twice."""

import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps import errors
from bmg_sweeps.tasks import episodes

NUM_CLASSES, NUM_IMAGES = 7, 6
SIZES = {"num_ways": 3, "num_shots": 2, "num_queries": 1}
# Every pixel of an image is its number: class · 6 + image.
IMAGES = jnp.broadcast_to(
    jnp.arange(42, dtype=jnp.uint8).reshape(7, 6, 1, 1, 1), (7, 6, 4, 5, 2)
)


compiled_sample = jax.jit(episodes.sample, static_argnames=tuple(SIZES))


def keys(number, seed=0):
    return jax.random.split(jax.random.key(seed), number)


def draw(number, **sizes):
    """Draws episodes: numbers of the support images [E, N, S], of the queries."""
    sizes = SIZES | sizes
    drawn = jax.jit(jax.vmap(lambda key: episodes.sample(key, IMAGES, **sizes)))(
        keys(number)
    )
    support, query = (
        np.rint(np.asarray(images)[:, :, 0, 0, 0] * 255).astype(int)
        for images in (drawn.support_images, drawn.query_images)
    )
    shape = number, sizes["num_ways"], -1
    return support.reshape(shape), query.reshape(shape)


def assert_uniform(values, num_cells):
    """Σ (observed − expected)² / expected stays below its mean and five deviations."""
    counts = np.bincount(np.ravel(values), minlength=num_cells)
    assert len(counts) == num_cells
    expected = counts.sum() / num_cells
    freedom = num_cells - 1
    statistic = np.sum((counts - expected) ** 2 / expected)
    assert statistic < freedom + 5 * np.sqrt(2 * freedom)


def test_an_episode_has_the_shapes_that_it_says():
    """N·S support and N·Q query images in 0 … 1, next to each other by label."""
    episode = compiled_sample(keys(1)[0], IMAGES, **SIZES)
    chex.assert_shape(episode.support_images, (6, 4, 5, 2))
    chex.assert_shape(episode.query_images, (3, 4, 5, 2))
    chex.assert_type(list(episode), [jnp.float32, jnp.int32, jnp.float32, jnp.int32])
    np.testing.assert_array_equal(episode.support_labels, [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(episode.query_labels, [0, 1, 2])
    white = compiled_sample(keys(1)[0], jnp.full_like(IMAGES, 255), **SIZES)
    np.testing.assert_array_equal(white.query_images, 1.0)


def test_images_of_a_label_are_of_one_class_and_no_image_is_drawn_twice():
    """In 1,000 episodes, support and query together; also if all images are drawn."""
    for sizes in ({}, {"num_shots": 4, "num_queries": 2}, {"num_ways": 7}):
        drawn = np.concatenate(draw(1_000, **sizes), axis=2)  # [E, N, S + Q].
        classes = drawn // NUM_IMAGES
        assert np.all(classes == classes[:, :, :1])
        for episode, own in zip(drawn, classes[:, :, 0], strict=True):
            assert len(set(own)) == len(own)
            assert len(set(episode.flat)) == episode.size


def test_every_class_gets_every_label_equally_often():
    """14,000 episodes: 2,000 expected of each class under each label."""
    support, _ = draw(14_000)
    for label in range(3):
        assert_uniform(support[:, label, 0] // NUM_IMAGES, NUM_CLASSES)


def test_labels_are_assigned_at_random_also_where_all_classes_are_drawn():
    """With N = C only the order is random, and all pairs of classes come up."""
    support, _ = draw(14_000, num_ways=NUM_CLASSES)
    first, second = (support[:, label, 0] // NUM_IMAGES for label in (0, 1))
    assert_uniform(first, NUM_CLASSES)
    rank = second - (second > first)  # Among the six that are left.
    assert_uniform(first * 6 + rank, 42)


def test_every_image_is_support_and_query_equally_often():
    """14,000 episodes: 1,000 queries expected of each image, twice that of support."""
    support, query = draw(14_000)
    assert_uniform(query, 42)
    for shot in range(2):
        assert_uniform(support[:, :, shot], 42)


def test_images_of_a_class_are_drawn_apart_from_its_own_and_from_other_classes():
    """Pairs of draws are uniform: no key serves twice."""
    support, query = draw(14_000)
    places = support % NUM_IMAGES
    assert_uniform(places[:, 0, 0] * 6 + places[:, 1, 0], 36)
    classes = support[:, 0, 0] // NUM_IMAGES
    assert_uniform(classes * 6 + places[:, 0, 0], 42)
    first, second = places[:, 0, 0], query[:, 0, 0] % NUM_IMAGES
    assert_uniform(first * 5 + second - (second > first), 30)


def test_a_key_decides_the_episode():
    """The same again for the same key, another one for another."""
    first, again, other = (
        compiled_sample(key, IMAGES, **SIZES)
        for key in (keys(1)[0], keys(1)[0], keys(1, seed=1)[0])
    )
    chex.assert_trees_all_equal(first, again)
    assert np.any(first.support_images != other.support_images)


def test_an_episode_is_the_same_under_jit_and_vmap():
    """Purity: 4 at once, or one at a time without jit."""
    together = jax.jit(jax.vmap(lambda key: episodes.sample(key, IMAGES, **SIZES)))(
        keys(4)
    )
    for i, key in enumerate(keys(4)):
        with jax.disable_jit():
            alone = episodes.sample(key, IMAGES, **SIZES)
        own = jax.tree.map(lambda x, i=i: x[i], together)
        chex.assert_trees_all_equal(alone.support_labels, own.support_labels)
        chex.assert_trees_all_equal(alone.query_labels, own.query_labels)
        chex.assert_trees_all_close(alone, own, rtol=1e-6)


def test_no_number_is_drawn_for_an_image_of_another_class():
    """Nothing in the program is as large as the images are many, but they."""
    images = jnp.zeros((101, 211, 2, 2, 1), jnp.uint8)
    program = str(
        jax.make_jaxpr(lambda k: episodes.sample(k, images, **SIZES))(keys(1)[0])
    )
    shapes = re.findall(r"[a-z]\d*\[([\d,]+)\]", program)
    sizes = {np.prod([int(length) for length in shape.split(",")]) for shape in shapes}
    assert 101 in sizes  # One number a class,
    assert 3 * 211 in sizes  # and one an image of each chosen class.
    assert max(sizes - {images.size}) <= 3 * 211


def test_evaluation_tasks_are_fixed_by_split():
    """The first of a longer list are those of a shorter; no split shares any."""
    words = {
        split: np.asarray(jax.random.key_data(episodes.evaluation_keys(split, 600)))
        for split in ("train", "validation", "test")
    }
    shorter = jax.random.key_data(episodes.evaluation_keys("test", 10))
    np.testing.assert_array_equal(shorter, words["test"][:10])
    assert len({tuple(row) for rows in words.values() for row in rows}) == 1_800
    # Another number here, and results are of other tasks than those recorded before.
    assert words["validation"][0].tolist() == [346279018, 360566543]
    assert words["test"][599].tolist() == [246980546, 4013432436]


def test_an_unknown_split_has_no_tasks():
    """It says which there are."""
    with pytest.raises(ValueError, match="split 'val': expected one of: train"):
        episodes.evaluation_keys("val", 1)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"num_ways": 8}, "num_ways = 8: expected at most 7, its classes"),
        (
            {"num_shots": 4, "num_queries": 3},
            "num_shots + num_queries = 4 + 3: expected at most 6, "
            "the images of a class",
        ),
        ({"num_ways": 0}, "num_ways = 0: expected at least 1"),
        ({"num_shots": 0}, "num_shots = 0: expected at least 1"),
        ({"num_queries": -1}, "num_queries = -1: expected at least 1"),
    ],
)
def test_more_than_a_split_has_is_one_line(sizes, message):
    """Of `check`, and of `sample` for who has not checked."""
    for function in (
        lambda **kw: episodes.check(IMAGES.shape, **kw),
        lambda **kw: episodes.sample(keys(1)[0], IMAGES, **kw),
    ):
        with pytest.raises(errors.UserError) as caught:
            function(**SIZES | sizes)
        assert str(caught.value) == message


def test_images_of_another_type_or_rank_are_refused():
    """Of floats, one could not say whether 255 is white."""
    for images in (IMAGES.astype(jnp.float32), IMAGES[..., 0]):
        with pytest.raises(AssertionError):
            episodes.sample(keys(1)[0], images, **SIZES)
