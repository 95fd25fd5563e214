"""Checks of what a sweep's file declares; each raises ValueError, in one line."""

import ast
import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from bmg_sweeps import errors

MAX_BUDGETS = 1_000


def require(holds: bool, name: str, value: Any, expected: str) -> None:
    """Raises ValueError with the value and what was expected, where that is not met."""
    if not holds:
        raise ValueError(f"{name} = {errors.shown(value)}: expected {expected}")


def text(name: str, value: Any) -> None:
    """Requires text of one line that is not blank."""
    is_text = isinstance(value, str) and value.isprintable() and value.strip() != ""
    require(is_text, name, value, "text of one line")


def file_name(name: str, value: Any) -> None:
    """Requires text that can be part of a file's name."""
    is_name = re.fullmatch(r"\w[\w.+-]*", value) is not None
    require(is_name, name, value, "a name of letters, digits, '.', '+', '-' and '_'")


def names(name: str, value: Any) -> None:
    """Requires a dict whose keys are names."""
    require(isinstance(value, Mapping), name, value, "a dict by name")
    for key in value:
        require(isinstance(key, str), f"{name}, key", key, "a name")


def all_of(name: str, value: Any, types: type | tuple[type, ...], form: str) -> None:
    """Requires a tuple or a list whose items have one of some types."""
    is_sequence = isinstance(value, tuple | list) and all(
        isinstance(one, types) for one in value
    )
    require(is_sequence, name, value, f"a tuple of {form}")


def is_amount(value: Any) -> bool:
    """Whether a value is a number that training can go up to."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value <= sys.float_info.max


def amount_or_none(name: str, value: Any) -> None:
    """Requires a number above 0, or None."""
    require(value is None or is_amount(value), name, value, "a number above 0")


def number_or_none(name: str, value: Any) -> None:
    """Requires a finite number, or None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_finite = is_number and math.isfinite(value)
    require(value is None or is_finite, name, value, "a finite number")


def budgets(value: Any) -> None:
    """Requires, for each axis, a number of parts or ascending amounts."""
    names("budgets", value)
    if not value:
        raise ValueError("budgets must name at least one axis of progress")
    for axis, parts in value.items():
        if not _are_budgets(parts):
            raise ValueError(
                f"budgets[{axis!r}] = {errors.shown(parts)}: expected how many "
                f"parts the stop rule is divided into, or ascending amounts above "
                f"0; at most {MAX_BUDGETS:,}"
            )


def points(rows: Sequence[Mapping[str, Any]]) -> None:
    """Requires dicts of literals by field.

    Points of a grid share their values, so each value is looked at once.
    """
    checked: dict[int, Any] = {}  # By identity; kept, so that no other takes its place.
    for values in rows:
        names("a point", values)
        for field, value in values.items():
            if id(value) not in checked:
                literal(field, value)
                checked[id(value)] = value


def literal(field: str, value: Any) -> None:
    """Requires a value that gin reads back as it is."""
    is_small = type(value) is int and value.bit_length() < 64
    if is_small or type(value) in (str, bool):
        return  # Almost all are; grids have tens of thousands.
    try:
        same = ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        same = False
    if not same:
        raise ValueError(
            f"{field} = {errors.shown(value)}: a value must be a Python literal "
            f"(number, string, bool or tuple), got {type(value).__name__}"
        )


def _are_budgets(parts: Any) -> bool:
    if isinstance(parts, int):
        return 1 <= parts <= MAX_BUDGETS and not isinstance(parts, bool)
    is_sequence = isinstance(parts, tuple | list) and 0 < len(parts) <= MAX_BUDGETS
    return (
        is_sequence and all(map(is_amount, parts)) and list(parts) == sorted(set(parts))
    )
