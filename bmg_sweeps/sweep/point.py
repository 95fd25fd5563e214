"""Points: full assignments of a trainer's `Config`, resolved without importing it.

The trainer's source says which fields there are, of which type, and which shape the
program; its .gin says their values; a sweep says what varies. All three are read as
text, so that planning needs no JAX and a broken trainer cannot break a report.
"""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from bmg_sweeps import errors
from bmg_sweeps.trainer import bindings, source
from bmg_sweeps.trainer.bindings import Values


@dataclasses.dataclass(frozen=True)
class Point:
    """A trainer and a value for each field of its `Config`, in the fields' order.

    `resolve` makes points; what it read of the trainer is in them, so that a point does
    not change with the trainer's file.
    """

    trainer: str
    values: Values
    fields: Mapping[str, source.Field] = dataclasses.field(
        default_factory=dict, repr=False, compare=False
    )

    @functools.cached_property
    def id(self) -> str:
        """Short hash of trainer and values; the name of the record.

        A field that was added later does not count where it has the value that points
        had before.
        """
        values = {k: v for k, v in self.values.items() if not self._is_old(k, v)}
        text = json.dumps([self.trainer, values], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @functools.cached_property
    def _configurations(self) -> dict[tuple[str, ...], "Point"]:
        """What `configuration` has made: a report asks for it a dozen times."""
        return {}

    @property
    def structure(self) -> tuple[Any, ...]:
        """The values that shape the compiled program.

        One program serves all points of one structure.
        """
        static = [k for k, field in self.fields.items() if field.is_structure]
        return (self.trainer, *(self.values[k] for k in static))

    def configuration(self, over: Iterable[str] = ("seed",)) -> "Point":
        """Leaves out the fields that a score is averaged over.

        Args:
            over: names of those fields.

        Returns:
            A point without them: the unit of selection.
        """
        over = tuple(over)
        if over not in self._configurations:
            values = {k: v for k, v in self.values.items() if k not in over}
            self._configurations[over] = dataclasses.replace(self, values=values)
        return self._configurations[over]

    def replaced(self, **values: Any) -> "Point":
        """Gives some fields other values, which are of the fields' types."""
        return dataclasses.replace(self, values=self.values | values)

    def gin_text(self) -> str:
        """Writes gin text that binds every field, and needs no other file."""
        lines = [f"# Point {self.id}.", "", f"import trainers.{self.trainer}", ""]
        lines += [f"{self.trainer}.{k} = {v!r}" for k, v in self.values.items()]
        return "\n".join(lines) + "\n"

    def _is_old(self, name: str, value: Any) -> bool:
        was = self.fields[name].was if name in self.fields else None
        return was is not None and value == was


def resolve(
    trainer: str, values: Mapping[str, Any], typed: tuple[str, ...] = ()
) -> Point:
    """Fills a point's values up with the trainer's gin values.

    Args:
        trainer: name of a module in trainers/.
        values: what a sweep says of the point.
        typed: gin lines of the command line, which hold before both.

    Returns:
        The point, each value cast to its field's type: 0 and 0.0 are one point.

    Raises:
        UserError: there is no such trainer, a field is unknown or unbound, or a value
            is of the wrong type, be it a default that the point replaces.
    """
    return resolve_all(trainer, [values], typed)[0]


def resolve_all(
    trainer: str, points: Iterable[Mapping[str, Any]], typed: tuple[str, ...] = ()
) -> list[Point]:
    """Resolves points as `resolve` does, and looks at the trainer's files only once."""
    fields, bound = source.fields(trainer), source.gin_values(trainer)
    stronger = bindings.typed(trainer, typed)
    common = _cast(trainer, fields, bound | stronger)
    resolved = []
    for values in points:
        own = {name: v for name, v in values.items() if name not in stronger}
        found = common | _cast(trainer, fields, own)
        resolved.append(Point(trainer, _ordered(trainer, fields, found), fields))
    return resolved


def _cast(
    trainer: str, fields: Mapping[str, source.Field], values: Values
) -> dict[str, Any]:
    """Casts values to the types of their fields."""
    for name in values:
        if name not in fields:
            raise errors.UserError(
                f"{trainer}.{name}: no such field; "
                + errors.expected_one_of(name, fields)
            )
    return {
        name: source.cast(f"{trainer}.{name}", fields[name].type, value)
        for name, value in values.items()
    }


def _ordered(trainer: str, fields: Iterable[str], values: Values) -> dict[str, Any]:
    """Sorts values as the fields are; each must have one."""
    for name in fields:
        if name not in values:
            raise errors.UserError(
                f"{trainer}.{name}: bound in no gin file; expected a line in "
                f"gin/{trainer}.gin"
            )
    return {name: values[name] for name in fields}
