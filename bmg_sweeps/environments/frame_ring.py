"""Stacks of frames, and a ring of trajectories whose frames are kept single.

An observation is the newest four frames of its episode. Kept as observations, a frame
would be there four times; so what is kept, sampled and sent to the device are single
frames, and both who acts and who learns stack them here.
"""

import itertools
import math
import zlib
from collections.abc import Sequence
from concurrent import futures
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

STACK = 4  # Frames of an observation.
_DISTANCE_BYTES = 4
COMPRESSION_LEVEL = 1  # Of zlib; higher ones are slower by more than they are smaller.


class Trajectories(NamedTuple):
    """T steps each; leading axes may be any.

    The last observation, s_T, is also s_0 of the same environment's next trajectory.
    """

    frames: np.ndarray  # [..., T + 4, H, W, C] uint8: the three before s_0, then s_t's.
    ages: np.ndarray  # [..., T + 1] int32: steps of the episode before s_0 … s_T.
    actions: np.ndarray  # [..., T] int32.
    rewards: np.ndarray  # [..., T] float32, raw.
    continues: np.ndarray  # [..., T] bool, False where nothing later counts.
    behavior_logits: np.ndarray  # [..., T, A] float32, of the policy that acted.


class Recent(NamedTuple):
    """What N environments show to who acts: single frames, which are not copied."""

    frames: tuple[np.ndarray, ...]  # The newest four, [N, H, W, C] uint8, oldest first.
    ages: np.ndarray  # [N] int32: steps of the episode so far.


def empty(
    axes: Sequence[int],
    length: int,
    frame_shape: Sequence[int],
    num_logits: int,
) -> Trajectories:
    """Makes room for trajectories; what is in it is not defined.

    Args:
        axes: leading ones.
        length: T, steps.
        frame_shape: [H, W, C].
        num_logits: A.
    """
    return Trajectories(
        frames=np.empty((*axes, length + STACK, *frame_shape), np.uint8),
        ages=np.empty((*axes, length + 1), np.int32),
        actions=np.empty((*axes, length), np.int32),
        rewards=np.empty((*axes, length), np.float32),
        continues=np.empty((*axes, length), np.bool_),
        behavior_logits=np.empty((*axes, length, num_logits), np.float32),
    )


def stacked(frames: jax.Array, ages: jax.Array) -> jax.Array:
    """Stacks the frames of trajectories to observations, the oldest of four first.

    Where an episode is younger than its stack, the missing frames are zeros, as ale-py
    has it.

    Args:
        frames: [..., T + 4, H, W, C] uint8.
        ages: [..., T + 1] int32 steps of the episode before each observation.

    Returns:
        [..., T + 1, H, W, 4 · C] uint8.

    Raises:
        AssertionError: there are not three frames more than observations.
    """
    num_observations = ages.shape[-1]
    time = frames.ndim - 4
    chex.assert_axis_dimension(frames, time, num_observations + STACK - 1)
    parts = []
    for first in range(STACK):
        part = jax.lax.slice_in_dim(frames, first, first + num_observations, axis=time)
        is_of_episode = ages >= STACK - 1 - first
        parts.append(part * is_of_episode[..., None, None, None].astype(part.dtype))
    return jnp.concatenate(parts, axis=-1)


def observed(recent: Recent) -> jax.Array:
    """Stacks the newest frames of N environments.

    Args:
        recent: of which those before the episode may be any.

    Returns:
        [N, H, W, 4 · C] uint8, what `stacked` gives.
    """
    frames = jnp.stack(recent.frames, axis=1)
    return stacked(frames, recent.ages[:, jnp.newaxis])[:, 0]


class Ring:
    """The newest trajectories, first in, first out; their frames are packed.

    All but the frames has its place from the start, so memory grows with the
    frames alone, until the ring is full.
    """

    def __init__(self, capacity: int, form: Trajectories, pool: futures.Executor):
        """Makes an empty ring.

        Args:
            capacity: trajectories that it holds.
            form: an example with one leading axis, for shapes and types.
            pool: of threads, which pack and unpack.
        """
        self.capacity = capacity
        self._frames: list[bytes | None] = [None] * capacity
        self._columns = [
            np.empty((capacity, *array.shape[1:]), array.dtype) for array in form[1:]
        ]
        self._added = 0
        self._pool = pool

    def __len__(self) -> int:
        return min(self._added, self.capacity)

    def add(self, trajectories: Trajectories) -> None:
        """Adds trajectories, any leading axes, in order; the oldest make room."""
        order = [*np.ndindex(trajectories.actions.shape[:-1])]
        packed = self._pool.map(pack, [trajectories.frames[index] for index in order])
        for index, frames in zip(order, packed, strict=True):
            place = self._added % self.capacity
            self._frames[place] = frames
            for column, array in zip(self._columns, trajectories[1:], strict=True):
                column[place] = array[index]
            self._added += 1

    def sample(self, generator: np.random.Generator, batch: Trajectories) -> None:
        """Fills a batch with trajectories, drawn uniformly with replacement.

        What is drawn depends on the generator and on how old each trajectory is, not on
        its place in the ring.

        Args:
            generator: consumed here.
            batch: written to; any leading axes, all of which are drawn independently.

        Raises:
            ValueError: the ring is empty.
        """
        if not self._added:
            raise ValueError("ring: no trajectories; expected at least 1 to sample")
        axes = batch.actions.shape[:-1]
        drawn = generator.integers(len(self), size=math.prod(axes))
        places = (self._oldest() + drawn) % self.capacity
        for column, array in zip(self._columns, batch[1:], strict=True):
            array[...] = column[places].reshape(array.shape)

        packed = [self._frames[place] for place in places]
        targets = [batch.frames[index] for index in np.ndindex(axes)]
        for _ in self._pool.map(unpack, packed, targets):
            pass  # Only to be told of errors.

    def columns(self) -> Trajectories:
        """Returns what it holds but the frames, which are None; the oldest first."""
        places = (self._oldest() + np.arange(len(self))) % self.capacity
        return Trajectories(None, *(column[places] for column in self._columns))

    def _oldest(self) -> int:
        return self._added % self.capacity if self._added > self.capacity else 0


def pack(frames: np.ndarray) -> bytes:
    """Compresses the frames of a trajectory, most of which are like the one before.

    Only words that differ from those of the frame before are kept, and where they are:
    zlib alone takes six times as long and as many bytes or more.

    Args:
        frames: [F, H, W, C] uint8, contiguous.

    Returns:
        What `unpack` makes the same frames of.
    """
    words = _words(frames)
    changed = np.flatnonzero(words[1:] != words[:-1])
    distances = np.diff(changed, prepend=0).astype(np.uint32)
    parts = [words[0], distances, words[1:].ravel()[changed]]
    return zlib.compress(b"".join(part.tobytes() for part in parts), COMPRESSION_LEVEL)


def unpack(data: bytes, frames: np.ndarray) -> None:
    """Writes packed frames into an array of the shape that they had."""
    words = _words(frames)
    num_words = words.shape[1]
    data = zlib.decompress(data)
    words[0] = np.frombuffer(data, words.dtype, count=num_words)
    rest = data[words[0].nbytes :]
    count = len(rest) // (_DISTANCE_BYTES + words.itemsize)
    changed = np.cumsum(np.frombuffer(rest, np.uint32, count=count))
    values = np.frombuffer(rest[_DISTANCE_BYTES * count :], words.dtype)
    bounds = np.searchsorted(changed, np.arange(len(words)) * num_words)
    for index, (first, end) in enumerate(itertools.pairwise(bounds)):
        words[index + 1] = words[index]
        words[index + 1, changed[first:end] - index * num_words] = values[first:end]


def _words(frames: np.ndarray) -> np.ndarray:
    """Views frames [F, H, W, C] as [F, words], of as many bytes as divide a frame."""
    pixels = np.reshape(frames, (len(frames), -1), copy=False)
    return pixels.view(f"u{math.gcd(pixels.shape[1], 8)}")
