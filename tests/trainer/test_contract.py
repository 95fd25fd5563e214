"""A trainer is resolved once: what its module lacks is named, or has a default."""

import types

import pytest

from bmg_sweeps import errors
from bmg_sweeps.trainer import contract

REQUIRED = ("Config", "init", "train", "progress")


def function(*arguments):
    """Stands for any of them."""


def module(**changed):
    """A module with what every trainer must have, but for some."""
    parts = dict.fromkeys(REQUIRED, function) | changed
    return types.SimpleNamespace(**{k: v for k, v in parts.items() if v is not None})


def test_what_a_module_leaves_out_has_a_default():
    """Nothing is refused, opened or evaluated, and nothing is said of provenance."""
    trainer = contract.resolve("mine", module())
    assert trainer.check("anything") is None
    with trainer.open_source("anything") as source:
        assert source is None
    assert trainer.provenance("anything") == {}
    assert trainer.evaluate is None
    assert trainer.train is function


@pytest.mark.parametrize("name", REQUIRED)
def test_what_a_module_must_have_is_named(name):
    with pytest.raises(errors.UserError) as error:
        contract.resolve("mine", module(**{name: None}))
    assert f"trainer mine: trainers/mine.py has no {name}; expected" in str(error.value)


@pytest.mark.parametrize("name", ["train", "check", "evaluate"])
def test_what_is_no_function_is_refused(name):
    with pytest.raises(errors.UserError, match=f"has no {name}; expected {name}"):
        contract.resolve("mine", module(**{name: 3}))
