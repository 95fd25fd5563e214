"""The part of a config that all points of a compiled program share."""

import dataclasses
import inspect
from typing import Any

from bmg_sweeps import errors


@dataclasses.dataclass(frozen=True)
class Structure:
    """The static fields of a `Config`, and what it computes of them.

    Points of one structure have equal ones. Reading a data field raises `UserError`.
    """

    _trainer: str
    _type: type
    _values: tuple[tuple[str, Any], ...]

    def __getattr__(self, name: str) -> Any:
        """Reads a static field, or a property that reads static fields only."""
        if name.startswith("__"):  # Python asks for some that are not there.
            raise AttributeError(name)
        values = dict(self._values)
        if name in values:
            return values[name]
        if name in _fields(self._type):
            raise errors.UserError(
                f"trainer {self._trainer}: open_source reads {name}; expected fields "
                f"declared with structure() only, as points of a pack share one source"
            )
        return inspect.getattr_static(self._type, name).__get__(self)


def of(trainer: str, config: Any) -> Structure:
    """Takes the structure of a config.

    Args:
        trainer: whose `Config` it is, for messages.
        config: of any point of the structure.

    Returns:
        Its static fields.
    """
    static = [f.name for f in _fields(type(config)).values() if _is_static(f)]
    values = tuple((name, getattr(config, name)) for name in static)
    return Structure(trainer, type(config), values)


def _fields(type_: type) -> dict[str, dataclasses.Field]:
    return {field.name: field for field in dataclasses.fields(type_)}


def _is_static(field: dataclasses.Field) -> bool:
    return field.metadata.get("static", False)
