"""A point's gin text, bound to the `Config` of its trainer."""

import importlib
import types
from typing import Any

import gin

from bmg_sweeps.trainer import bindings


def bind(trainer: str, gin_text: str) -> tuple[types.ModuleType, Any]:
    """Makes a point's `Config` from its gin text, and nothing of the last point's.

    Args:
        trainer: name of a module in trainers/.
        gin_text: binds every field of its `Config`, and nothing else.

    Returns:
        The trainer's module and the checked config.

    Raises:
        ValueError: a binding is unknown or no literal, or the trainer's `check` refuses
            a value.
    """
    gin.clear_config()
    # Not by gin, which imports whatever a text names, and reads the files it includes.
    values = bindings.parse_bindings(trainer, gin_text)
    module = importlib.import_module(f"trainers.{trainer}")
    for name, value in values.items():
        gin.bind_parameter(f"{trainer}.{name}", value)
    config = module.Config()
    module.check(config)
    return module, config
