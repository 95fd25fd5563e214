"""A trainer gets one more field: points from before it are found, and go on."""

import importlib
import pathlib
import sys

import gin
import numpy as np
import pytest
import toy_checkout
from toy_points import assert_same, outcome, run

import trainers
from bmg_sweeps import paths
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import point
from bmg_sweeps.trainer import config, source

NAME = "toy_grown"
FIELD = "    rate: Annotated[float, Gt(0)]\n"
REWARD = "jnp.sum(state.walk)}"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A copy of the toy under another name, as trainers/ and gin/."""
    monkeypatch.setattr(paths, "TRAINERS", tmp_path)
    monkeypatch.setattr(paths, "GIN", tmp_path)
    trainers.__path__.append(str(tmp_path))
    with gin.config.interactive_mode():  # Two versions of one trainer in one process.
        write(tmp_path)
        yield tmp_path
    trainers.__path__.remove(str(tmp_path))
    sys.modules.pop(f"trainers.{NAME}", None)


def write(folder, added=""):
    """Writes the trainer, with a field that adds a bonus to rewards if it is given."""
    source = pathlib.Path(toy_checkout.__file__).with_name("toy_trainer.py").read_text()
    source = source.replace("toy_trainer", NAME)
    text = toy_checkout.GIN.replace("toy_trainer", NAME)
    if added:
        source = source.replace(
            "config import structure", "config import data, structure"
        )
        source = source.replace(FIELD, f"{FIELD}    bonus: {added}\n", 1)
        source = source.replace(REWARD, f"{REWARD[:-1]} + config.bonus}}", 1)
        text += f"{NAME}.bonus = 0.0\n"
    (folder / f"{NAME}.py").write_text(source)
    (folder / f"{NAME}.gin").write_text(text)
    sys.modules.pop(f"trainers.{NAME}", None)
    importlib.invalidate_caches()


def train(storage, stop, **values):
    """Trains a point as a launch does; returns its id."""
    p = point.resolve(NAME, values)
    store.declare(storage, NAME, p.id, p.gin_text())
    assert run(storage, p.id, {"env_steps": stop}, trainer=NAME) == "done"
    return p.id


@pytest.mark.parametrize("added", ["float = data(was=0)", "float = data(was=0.0)"])
def test_an_old_record_goes_on_under_a_trainer_with_one_more_field(
    checkout, storage, tmp_path, added
):
    """Its old text lacks the field; its end is bitwise that of an undisturbed run."""
    undisturbed = files.open_storage(str(tmp_path / "undisturbed"))
    old = train(undisturbed, 60)
    assert train(storage, 30) == old
    assert "bonus" not in store.gin_text(storage, NAME, old)
    write(checkout, added)
    assert train(storage, 60) == old
    assert "bonus = 0.0" in store.gin_text(storage, NAME, old)
    assert store.read(storage, NAME, old).manifest.attempt == 2
    assert_same(outcome(storage, old, NAME), outcome(undisturbed, old, NAME))


def test_another_value_of_the_field_begins_a_record_of_its_own(checkout, storage):
    """And its rewards are others: the field is not idle."""
    old = train(storage, 30)
    write(checkout, "float = data(was=0.0)")
    other = train(storage, 30, bonus=1.0)
    assert other != old
    rewards = [outcome(storage, i, NAME)[1]["reward"] for i in (old, other)]
    np.testing.assert_allclose(rewards[1], np.add(rewards[0], 1), rtol=1e-5)


def test_a_field_that_says_nothing_of_old_records_orphans_them(checkout, storage):
    """What `was` is for."""
    old = train(storage, 30)
    write(checkout, "float")
    assert point.resolve(NAME, {}).id != old


def test_old_values_are_read_from_the_source_as_they_are_declared(checkout):
    """By planning, which imports no trainer, and by the dataclass."""
    write(checkout, "float = data(was=0.5)")
    module = importlib.import_module(f"trainers.{NAME}")
    declared = module.Config.__dataclass_fields__["bonus"].metadata
    assert source.fields(NAME)["bonus"].was == declared["was"] == 0.5
    assert not declared.get("static", False)
    assert config.structure(was=3).metadata == {"static": True, "was": 3}
