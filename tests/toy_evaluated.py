"""The toy trainer with an evaluation, every so many steps; for tests.

It evaluates to its reward, on the test split negated, so that a mix-up shows.
"""

import dataclasses
from typing import Annotated

import gin
import jax
import jax.numpy as jnp
from annotated_types import Ge, Gt

from bmg_sweeps.trainer.config import structure
from trainers.toy_trainer import init, progress, train

__all__ = ["init", "progress", "train"]


@jax.tree_util.register_dataclass
@gin.configurable("toy_evaluated")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """The toy trainer's, and when to evaluate."""

    seed: int
    rate: Annotated[float, Gt(0)]
    nan_at: int
    evaluation_interval: Annotated[int, Ge(1)]  # Environment steps.
    width: int = structure()


def evaluate(config, state, source, split):
    """Sums the walk."""
    sign = 1 if split == "validation" else -1
    return {"reward": sign * jnp.sum(state.walk)}
