"""The live source of Atari goes on from what it saved, bitwise, in a new process."""

import contextlib
import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.environments import atari, frame_ring
from trainers import _atari_emulators


class State(NamedTuple):
    """What the source looks at of a trainer's state."""

    key: jax.Array


STATE = State(jax.random.key(3))
# Two rounds fill the ring, which then wraps in the middle of a round. Episodes have 7
# steps at most, or else end by themselves.
SMALL = _atari_emulators.Settings(
    atari.Settings(
        game="breakout",
        num_environments=4,
        frame_height=32,
        frame_width=24,
        is_grayscale=True,
    ),
    unroll_length=5,
    num_online=2,
    num_replay_samples=3,
    replay_capacity=10,
)
SHORT = SMALL._replace(
    emulators=dataclasses.replace(SMALL.emulators, max_episode_frames=28)
)


@jax.jit
def act(observations, step):
    """Any policy that depends on all that it sees, and on the step."""
    sums = jnp.sum(observations.astype(jnp.uint32), axis=(1, 2, 3)) + step
    actions = (sums % 4).astype(jnp.int32)
    return actions, jax.random.normal(jax.random.key(sums[0]), (len(actions), 18))


@contextlib.contextmanager
def played(settings, num_rounds):
    with _atari_emulators.opened(settings) as games:
        yield games, [games.read(act, STATE) for _ in range(num_rounds)]


def assert_same(actual, expected):
    jax.tree.map(np.testing.assert_array_equal, actual, expected)


@pytest.mark.parametrize("num_rounds", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("settings", [SMALL, SHORT], ids=["long", "short"])
def test_what_is_restored_goes_on_as_if_undisturbed(settings, num_rounds):
    """With an empty ring, a full one and one that wraps; and what it saves next."""
    with (
        played(settings, num_rounds) as (undisturbed, _),
        _atari_emulators.opened(settings) as restored,
    ):
        restored.restore(undisturbed.save())
        for _ in range(3):
            assert_same(restored.save(), undisturbed.save())
            assert_same(restored.read(act, STATE), undisturbed.read(act, STATE))
