"""How a trainer's `Config` says which of its fields shape the program.

A `Config` is a frozen dataclass registered as a pytree. Its plain fields (rates,
weights, discounts, the seed) are data: leaves that one compiled program takes as
arguments, and that `vmap` can stack. Fields declared with `structure` (numbers of
steps, names of functions, layer sizes) are part of the tree's structure: each distinct
combination compiles once.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any


def structure(*, was: Any = None) -> Any:
    """Declares a field static: its value shapes the compiled program.

    Args:
        was: as for `data`.

    Returns:
        A dataclass field that `jax.tree_util.register_dataclass` keeps out of the
        leaves. Its values must be hashable.
    """
    return dataclasses.field(metadata={"static": True, "was": was})


def data(*, was: Any) -> Any:
    """Declares a plain field that a trainer did not always have.

    Args:
        was: a literal: the value that all points had, in effect, before there was the
            field. Points of this value keep their ids, and so their records.

    Returns:
        A dataclass field.
    """
    return dataclasses.field(metadata={"was": was})


def require(
    config: Any, field: str, holds: Callable[[Any], bool], expected: str
) -> None:
    """Checks a field by the others; trainers call it in `check`.

    What a field's own range is stands on its line, as `ranges` says.

    Args:
        config: the point's values, as plain Python.
        field: that is looked at.
        holds: what its value must satisfy.
        expected: the same in words.

    Raises:
        ValueError: it does not; names field, value and what was expected.
    """
    value = getattr(config, field)
    if not holds(value):
        raise ValueError(f"{field} = {value!r}: expected {expected}")


def require_unused(config: Any, unused: Mapping[str, Any], where: str) -> None:
    """Checks fields without effect, so that no two points run the same.

    Args:
        config: the point's values, as plain Python.
        unused: of each such field, the value that it must have.
        where: when they are without effect.

    Raises:
        ValueError: a field has another value; as `require`.
    """
    for field, value in unused.items():
        expected = f"{value!r}, where {where}"
        require(config, field, lambda v, unused=value: v == unused, expected)
