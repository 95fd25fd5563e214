"""The toy trainer with a source, which its walk drifts along; for tests."""

import contextlib
import dataclasses

import gin
import jax
import jax.numpy as jnp

from bmg_sweeps.trainer.config import structure
from trainers import toy_trainer
from trainers.toy_trainer import init, progress

__all__ = ["init", "progress"]


@jax.tree_util.register_dataclass
@gin.configurable("toy_sourced")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """The toy trainer's, and what the source is made of."""

    seed: int
    rate: float
    nan_at: int
    width: int = structure()
    slope: int = structure()

    @property
    def shape(self):
        """What is computed of static fields is static, too."""
        return (self.width,)


@contextlib.contextmanager
def open_source(structure):
    """Opens a slope."""
    yield {"drift": jnp.full(structure.shape, float(structure.slope))}


def train(config, state, source):
    """Walks like the toy trainer, and down the slope."""
    state, rows = toy_trainer.train(config, state, None)
    walk = state.walk + source["drift"]
    return state._replace(walk=walk), rows | {"drift": rows["reward"] + walk[0]}
