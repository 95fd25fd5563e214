"""The trained state of a point, as its trainer's own type: to evaluate it, or to plot.

A record keeps a state as arrays without names. The trainer's `init` gives them theirs.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax

from bmg_sweeps import errors
from bmg_sweeps.records import files, store
from bmg_sweeps.running import binding, numerics, pack, programs
from bmg_sweeps.trainer import contract


class Trained(NamedTuple):
    """A point as its last commit left it."""

    trainer: contract.Trainer
    config: Any  # The point's `Config`, arrays in the data fields.
    state: Any  # What the trainer's `init` returns and its `train` advances.
    progress: Mapping[str, float]  # Amounts by axis.


def load(storage: files.Storage, trainer: str, point_id: str) -> Trained:
    """Loads what a point has been trained to.

    Args:
        storage: where its record is.
        trainer: of the point.
        point_id: all of it, as `show` prints it.

    Returns:
        The point, on JAX's default device. A world outside JAX is not restored.

    Raises:
        UserError: the point has not trained, or its state is that of other code.
        Damaged: the state is not as it was written.
    """
    record = store.read(storage, trainer, point_id)
    arrays = store.state(storage, record)
    if arrays is None:
        raise errors.UserError(
            f"point {errors.shown(point_id)} of {trainer}: expected one that has "
            f"trained, it has no state"
        )
    numerics.fix()
    made, config = binding.bind(trainer, store.gin_text(storage, trainer, point_id))
    config = pack.as_arrays(config)
    with made.source(config) as source:
        initial = contract.handed(source).to_init
        shapes = jax.eval_shape(made.init, config, jax.random.key(0), initial)
    # What a live source has saved comes after the state.
    state = programs.unflatten(arrays[: len(jax.tree.leaves(shapes))], shapes)
    if state is None:
        raise errors.UserError(
            f"point {point_id}: its state does not fit this code; expected that of "
            f"revision {record.provenance.revision}"
        )
    return Trained(made, config, state, record.progress)
