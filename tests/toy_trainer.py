"""A trainer of nothing, in milliseconds, that can fail in every way; for tests.

Tests put this folder on the path of the package `trainers`, which makes the module
`trainers.toy_trainer`.
"""

import dataclasses
from typing import Annotated, NamedTuple

import gin
import jax
import jax.numpy as jnp
from annotated_types import Ge, Gt

from bmg_sweeps.trainer.config import structure

FAILURES = []  # Exceptions that the next chunks raise, one each.


@jax.tree_util.register_dataclass
@gin.configurable("toy_trainer")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """What a random walk needs."""

    seed: int
    rate: Annotated[float, Gt(0)]
    nan_at: int  # Environment steps after which the walk is NaN; 0 is never.
    width: Annotated[int, Ge(1)] = structure()


class State(NamedTuple):
    """A checkpoint, with a key and an integer in it."""

    walk: jax.Array
    key: jax.Array
    env_steps: jax.Array


def init(config, key, source):
    """Starts at zero."""
    return State(jnp.zeros(config.width), key, jnp.zeros((), jnp.int32))


def progress(config, state):
    """Counts steps; raises what a test has asked for."""
    if FAILURES and state.env_steps > 0:
        raise FAILURES.pop(0)
    return {"env_steps": state.env_steps}


def train(config, state, source):
    """Walks ten steps, with a row after every fifth."""

    def step(state, _):
        key, noise_key = jax.random.split(state.key)
        walk = state.walk + config.rate * jax.random.normal(noise_key, (config.width,))
        env_steps = state.env_steps + 1
        is_lost = (config.nan_at > 0) & (env_steps > config.nan_at)
        state = State(jnp.where(is_lost, jnp.nan, walk), key, env_steps)
        return state, {"env_steps": env_steps, "reward": jnp.sum(state.walk)}

    state, rows = jax.lax.scan(step, state, length=10)
    return state, jax.tree.map(lambda column: column[jnp.array([4, 9, 9])], rows)
