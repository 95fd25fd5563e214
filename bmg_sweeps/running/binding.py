"""A trainer by its name, and a point's gin text bound to the trainer's `Config`."""

import importlib
import sys
from typing import Any

import gin

from bmg_sweeps import paths
from bmg_sweeps.trainer import bindings, contract, ranges


def load(name: str) -> contract.Trainer:
    """Imports a trainer.

    Args:
        name: of a module in trainers/.

    Returns:
        The trainer, of the functions that its module has now. It is the checkout's,
        whatever else is called trainers where a command is given.

    Raises:
        UserError: the module lacks a part of the contract.
    """
    if "trainers" not in sys.modules:
        sys.path.insert(0, str(paths.ROOT))
    return contract.resolve(name, importlib.import_module(f"trainers.{name}"))


def bind(name: str, gin_text: str) -> tuple[contract.Trainer, Any]:
    """Makes a point's `Config` from its gin text, and nothing of the last point's.

    Gin's runtime binds nothing that the literals of the text do not say already: the
    config is `Config(**literals)`. It is there so that `Config()` works wherever a
    trainer is used with gin alone.

    Args:
        name: of a module in trainers/.
        gin_text: binds every field of its `Config`, and nothing else.

    Returns:
        The trainer and the checked config.

    Raises:
        ValueError: a binding is unknown or no literal, or a value is refused: by its
            field's range, or by the trainer's `check`.
    """
    gin.clear_config()
    # Not by gin, which imports whatever a text names, and reads the files it includes.
    values = bindings.parse_bindings(name, gin_text)
    trainer = load(name)
    for field, value in values.items():
        gin.bind_parameter(f"{name}.{field}", value)
    config = trainer.Config()
    ranges.check(config)
    trainer.check(config)
    return trainer, config
