"""Stacks equal ale-py's own; the ring keeps the newest trajectories."""

import sys
from concurrent import futures

import jax
import numpy as np
import pytest
from ale_py import vector_env

from bmg_sweeps.environments import frame_ring

LENGTH, HEIGHT, WIDTH = 4, 16, 12


@pytest.fixture
def pool():
    with futures.ThreadPoolExecutor(2) as threads:
        yield threads


def numbered(first, count, axes=None):
    """Trajectories all of whose numbers are their own, as far as a type has it."""
    axes = axes or (count,)
    batch = frame_ring.empty(axes, LENGTH, (HEIGHT, WIDTH, 1), 18)
    numbers = np.arange(first, first + count)
    for array in batch:
        array[...] = like(numbers, array)
    return batch


def like(numbers, array):
    """Fills an array's shape, and type, with one number a trajectory."""
    trailing = array.size // numbers.size if numbers.size else 0
    return np.repeat(numbers.astype(array.dtype), trailing).reshape(array.shape)


def filled(pool, capacity, *counts):
    ring = frame_ring.Ring(capacity, numbered(0, 0), pool)
    first = 0
    for count in counts:
        ring.add(numbered(first, count))
        first += count
    return ring


def raw_games(num_environments, stack, is_grayscale, game="freeway"):
    return vector_env.AtariVectorEnv(
        game,
        num_environments,
        max_num_frames_per_episode=28,
        img_height=HEIGHT,
        img_width=WIDTH,
        grayscale=is_grayscale,
        stack_num=stack,
        maxpool=False,
        reward_clipping=False,
        use_fire_reset=False,
        num_threads=1,
    )


@pytest.mark.parametrize("is_grayscale", [True, False])
def test_stacks_are_those_of_ale_py_across_ends_of_games(is_grayscale):
    """Both ways to stack; games end after 7 steps inside trajectories of 10.

    ale-py fills what an episode has not yet seen with zeros.
    """
    games = raw_games(2, 4, is_grayscale)
    rng = np.random.default_rng(0)
    stacks, _ = games.reset(seed=np.array([1, 2]))
    expected, ages = [stacks], [np.zeros(2, np.int32)]
    for t in range(17):
        stacks, *_, truncated, _ = games.step(rng.integers(0, 3, 2, np.int32))
        if truncated.any():
            stacks, _ = games.reset(
                seed=np.full(truncated.sum(), t), options={"reset_mask": truncated}
            )
        expected.append(stacks)
        ages.append(np.where(truncated, 0, ages[-1] + 1).astype(np.int32))
    # ale-py's are [T, N, 4, H, W(, C)].
    expected = np.stack(expected, axis=1).reshape(2, 18, 4, HEIGHT, WIDTH, -1)
    frames, ages = expected[:, :, -1], np.stack(ages, axis=1)
    expected = np.moveaxis(expected, 2, -2).reshape(2, 18, HEIGHT, WIDTH, -1)
    assert (ages == 0).sum() == 6

    # Seven steps on, so that a trajectory begins with what came before it.
    actual = jax.jit(frame_ring.stacked)(frames[:, 4:], ages[:, 7:])
    np.testing.assert_array_equal(actual, expected[:, 7:])
    for t in range(3, 18):
        newest = tuple(frames[:, s] for s in range(t - 3, t + 1))
        recent = frame_ring.Recent(newest, ages[:, t])
        np.testing.assert_array_equal(frame_ring.observed(recent), expected[:, t])


def test_the_ring_keeps_the_newest_in_order(pool):
    """Capacity 5: of 0 … 8, the first four are gone; leading axes count in order."""
    ring = filled(pool, 5, 3, 3)
    ring.add(numbered(6, 6, axes=(2, 3)))
    assert len(ring) == 5
    np.testing.assert_array_equal(ring.columns().actions[:, 0], [7, 8, 9, 10, 11])
    batch = numbered(0, 64, axes=(4, 16))
    ring.sample(np.random.default_rng(0), batch)
    assert set(batch.actions[..., 0].flat) == {7, 8, 9, 10, 11}
    for array in batch:  # All that was added together comes back together.
        np.testing.assert_array_equal(array, like(batch.actions[..., 0].ravel(), array))


def test_samples_are_uniform_with_replacement(pool):
    """Of 4,000 draws of 4, each has 1,000 with a standard deviation of 27."""
    ring = filled(pool, 10, 4)
    batch = numbered(0, 4_000)
    ring.sample(np.random.default_rng(0), batch)
    counts = np.bincount(batch.actions[:, 0], minlength=4)
    assert np.abs(counts - 1_000).max() < 5 * np.sqrt(4_000 * 0.25 * 0.75)


def test_samples_depend_on_what_is_there_and_not_on_its_place(pool):
    """A ring that has wrapped, and a new one with the same content."""
    wrapped, new = filled(pool, 5, 4, 4), filled(pool, 5)
    new.add(numbered(3, 5))
    batches = [numbered(0, 20), numbered(0, 20)]
    for ring, batch in zip([wrapped, new], batches, strict=True):
        ring.sample(np.random.default_rng(7), batch)
    jax.tree.map(np.testing.assert_array_equal, *batches)


def test_an_empty_ring_has_nothing_to_sample(pool):
    with pytest.raises(ValueError, match="ring: no trajectories"):
        filled(pool, 5).sample(np.random.default_rng(0), numbered(0, 1))


@pytest.mark.parametrize("shape", [(16, 12, 1), (16, 12, 3), (7, 6, 1), (3, 5, 1)])
@pytest.mark.parametrize("share", [0.0, 0.01, 1.0])
def test_packed_frames_come_back(shape, share):
    """Whatever share of pixels changes; in words of 8 bytes, of 2 and of 1."""
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (6, *shape), np.uint8)
    for index in range(1, 6):
        is_same = rng.random(shape) >= share
        frames[index] = np.where(is_same, frames[index - 1], frames[index])
    back = np.empty_like(frames)
    frame_ring.unpack(frame_ring.pack(frames), back)
    np.testing.assert_array_equal(back, frames)


def packed_bytes(ring):
    return sum(map(len, ring._frames))


def test_memory_is_that_of_the_capacity(pool):
    """However many are added; and frames are compressed."""
    ring = filled(pool, 5, 5)
    full = packed_bytes(ring)
    for _ in range(50):
        ring.add(numbered(0, 5))
        assert abs(packed_bytes(ring) - full) < 50
    assert full < numbered(0, 5).frames.nbytes / 20
    assert sum(sys.getsizeof(column) for column in ring.columns()[1:]) < 20_000
