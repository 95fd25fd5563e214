"""What a point has been trained to comes back as its trainer's own type."""

import jax
import numpy as np
import pytest
import toy_points

from bmg_sweeps import errors
from bmg_sweeps.records import store
from bmg_sweeps.running import trained

pytestmark = pytest.mark.usefixtures("toy")


def test_a_state_has_the_names_that_its_trainer_gives(storage, toy):
    """Bit for bit what was committed, and at that amount of training."""
    toy_points.run(storage, toy_points.declare(storage, "a", seed=3))
    point = trained.load(storage, "toy_trainer", "a")
    assert isinstance(point.state, toy.State)
    assert point.progress["env_steps"] == 60
    assert int(point.config.seed) == 3
    arrays = store.state(storage, store.read(storage, "toy_trainer", "a"))
    key_data = jax.random.key_data(point.state.key)
    for array in (point.state.walk, key_data):
        assert any(np.array_equal(array, one) for one in arrays)
    advanced, _ = point.trainer.train(point.config, point.state, None)
    assert int(advanced.env_steps) == 70


def test_of_a_world_outside_of_jax_the_state_alone_is_loaded(storage):
    """Its arrays come after those of the state."""
    toy_points.run(
        storage, toy_points.declare(storage, "a", "toy_live"), trainer="toy_live"
    )
    point = trained.load(storage, "toy_live", "a")
    assert point.progress["env_steps"] == 60


def test_a_point_that_has_not_trained_is_refused(storage):
    toy_points.declare(storage, "a")
    with pytest.raises(errors.UserError, match="'a' of toy_trainer: expected one that"):
        trained.load(storage, "toy_trainer", "a")


def test_a_state_of_other_code_is_refused(storage):
    """As where a field was added to the trainer's state."""
    toy_points.run(storage, toy_points.declare(storage, "a", width=3))
    text = store.gin_text(storage, "toy_trainer", "a")
    store.declare(storage, "toy_trainer", "a", text.replace("width = 3", "width = 4"))
    with pytest.raises(errors.UserError, match="does not fit this code; expected that"):
        trained.load(storage, "toy_trainer", "a")
