"""The toy trainer with an evaluation, every so many steps; for tests.

It evaluates to its reward, on the test split negated, so that a mix-up shows.
"""

import dataclasses

import gin
import jax
import jax.numpy as jnp

from bmg_sweeps.trainer.config import structure
from trainers import toy_trainer
from trainers.toy_trainer import init, progress, train

__all__ = ["init", "progress", "train"]


@jax.tree_util.register_dataclass
@gin.configurable("toy_evaluated")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """The toy trainer's, and when to evaluate."""

    seed: int
    rate: float
    nan_at: int
    evaluation_interval: int  # Environment steps.
    width: int = structure()


def check(config):
    """Refuses what the toy trainer refuses."""
    toy_trainer.check(config)


def evaluate(config, state, source, split):
    """Sums the walk."""
    sign = 1 if split == "validation" else -1
    return {"reward": sign * jnp.sum(state.walk)}
