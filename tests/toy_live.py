"""A toy trainer that learns from a world outside JAX; for tests.

The world is a number on a line, in plain Python: where it goes is a function of a seed
and of the actions alone. So its log of actions is all that a checkpoint needs.
"""

import contextlib
import dataclasses
from typing import Annotated, NamedTuple

import gin
import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge, Gt

from bmg_sweeps.trainer.config import structure

STEPS = 10  # Of the world, in a call of `train`.


@jax.tree_util.register_dataclass
@gin.configurable("toy_live")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """What a policy of one number needs."""

    seed: int
    rate: Annotated[float, Gt(0)]
    nan_at: int  # Environment steps after which the policy is NaN; 0 is never.
    width: Annotated[int, Ge(1)] = structure()  # Past observations in a batch.


class State(NamedTuple):
    """The learner; the world saves itself."""

    bias: jax.Array  # [] log-odds of a step to the right.
    key: jax.Array  # Seeds the world, and does not change.
    env_steps: jax.Array


def init(config, key, source):
    """Begins undecided, before there is a world."""
    assert source is None
    return State(jnp.zeros(()), key, jnp.zeros((), jnp.int32))


def progress(config, state):
    """Counts steps of the world."""
    return {"env_steps": state.env_steps}


def act(config, state, observation, step):
    """Draws an action, 0 or 1; the draw depends on the step alone."""
    logit = state.bias - config.rate * observation
    uniform = jax.random.uniform(jax.random.fold_in(state.key, step))
    return (uniform < jax.nn.sigmoid(logit)).astype(jnp.uint8), logit


def train(config, state, source):
    """Follows the batch, with one row."""
    env_steps = state.env_steps + STEPS
    is_lost = (config.nan_at > 0) & (env_steps > config.nan_at)
    bias = state.bias + config.rate * jnp.mean(source["past"] - source["here"])
    bias = jnp.where(is_lost, jnp.nan, bias)
    rows = {"env_steps": env_steps, "reward": source["here"] + bias}
    return State(bias, state.key, env_steps), {k: v[None] for k, v in rows.items()}


class World:
    """A number on a line, pushed by noise and actions, and a ring of where it was."""

    def __init__(self, width):
        self.observes = jax.ShapeDtypeStruct((), jnp.float32)
        past = jax.ShapeDtypeStruct((width,), jnp.float32)
        self.delivers = {"past": past, "here": self.observes}
        self._seed, self._log = None, []
        self._here, self._ring = np.float32(0), []

    def read(self, act, state):
        """Acts, and samples the past."""
        if self._seed is None:
            self._seed = np.array(jax.random.key_data(state.key))
        for _ in range(STEPS):
            action, _ = act(self._here, len(self._log))
            self._step(int(action))
        (width,) = self.delivers["past"].shape
        drawn = self._generator(1).integers(len(self._ring), size=width)
        return {"past": np.float32(self._ring)[drawn], "here": self._here}

    def save(self):
        """Keeps the seed, the actions, a byte each, and where they have led to."""
        if self._seed is None:
            return []
        return [self._seed, np.array(self._log, np.uint8), self._here]

    def restore(self, arrays):
        """Acts again what was acted."""
        if not arrays:
            return
        self._seed, actions, here = arrays
        for action in actions.tolist():
            self._step(action)
        if self._here != here:
            raise ValueError(f"the actions lead to {self._here}; expected {here}")

    def _step(self, action):
        self._ring = [*self._ring, self._here][-20:]
        noise = self._generator(0).normal()
        self._here = np.float32(0.9 * self._here + 2 * action - 1 + noise)
        self._log.append(action)

    def _generator(self, purpose):
        """Randomness that depends on the seed and the step alone."""
        return np.random.default_rng([*self._seed.tolist(), len(self._log), purpose])


@contextlib.contextmanager
def open_source(structure):
    """Opens a world that has not begun."""
    yield World(structure.width)
