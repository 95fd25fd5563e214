"""What values a field of a trainer's `Config` may have, as its annotation says.

    learning_rate: Positive
    num_ways: Annotated[int, Ge(2)] = structure()
    update_kind: Annotated[str, OneOf(lambda: UPDATE_KINDS)] = structure()

Bounds are those of the package annotated-types; the common ranges have names. What
several fields say together is for the trainer's own `check`.
"""

import dataclasses
import functools
import typing
from collections.abc import Callable, Collection, Iterable
from typing import Annotated, Any

import annotated_types
from annotated_types import Ge, Gt, Interval, Le, Lt

from bmg_sweeps import errors


@dataclasses.dataclass(frozen=True)
class OneOf:
    """Marks a field that names what is run."""

    choices: Collection[str] | Callable[[], Collection[str]]  # Called, if made later.

    def names(self) -> list[str]:
        """Returns the names that the field may have."""
        return list(self.choices() if callable(self.choices) else self.choices)


@dataclasses.dataclass(frozen=True)
class Each:
    """Marks a field of several values, each of which has a bound."""

    bound: Ge | Gt | Le | Lt


@dataclasses.dataclass(frozen=True)
class DivisorOf:
    """Marks a field of integers that divide a number."""

    number: int


Seed = Annotated[int, Interval(ge=0, lt=2**31)]
Count = Annotated[int, Ge(1)]
Sizes = Annotated[tuple[int, ...], Each(Ge(1))]
Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
Fraction = Annotated[float, Interval(ge=0, le=1)]
Decay = Annotated[float, Interval(ge=0, lt=1)]
_INTEGERS = (Ge(-(2**31)), Lt(2**31))  # What a compiled program takes.
Marker = Ge | Gt | Le | Lt | OneOf | Each | DivisorOf


def check(config: Any) -> None:
    """Checks every field of a config by its own annotation.

    Args:
        config: the point's values, as plain Python.

    Raises:
        ValueError: a value is out of its range; names field, value and what was
            expected.
        TypeError: an annotation has a bound that is not checked here.
    """
    config_type: Any = type(config)
    for field, markers in of(config_type).items():
        value = getattr(config, field)
        implied = _INTEGERS if isinstance(value, int) else ()
        for marker in (*markers, *implied):
            if not _holds(marker, value):
                said = markers if marker in markers else (*markers, *implied)
                expected = _expected(said, marker, value)
                raise ValueError(f"{field} = {value!r}: {expected}")


@functools.cache
def of(config_type: type) -> dict[str, tuple[Marker, ...]]:
    """Reads the markers of each field, in the order in which they are written.

    Args:
        config_type: a `Config`.

    Returns:
        Markers by field; an interval is its two bounds.

    Raises:
        TypeError: as `check`.
    """
    hints = typing.get_type_hints(config_type, include_extras=True)
    names = [field.name for field in dataclasses.fields(config_type)]
    return {
        name: tuple(_markers(name, getattr(hints[name], "__metadata__", ())))
        for name in names
    }


def _markers(field: str, metadata: Iterable[Any]) -> Iterable[Marker]:
    for marker in metadata:
        if isinstance(marker, annotated_types.GroupedMetadata):
            yield from _markers(field, marker)
        elif isinstance(marker, Marker):
            yield marker
        elif isinstance(marker, annotated_types.BaseMetadata):
            known = ", ".join(kind.__name__ for kind in typing.get_args(Marker))
            raise TypeError(f"{field}: {marker} is not checked; expected {known}")


def _holds(marker: Marker, value: Any) -> bool:
    """Whether a value is as one marker says."""
    match marker:
        case Gt(bound):
            return value > bound
        case Ge(bound):
            return value >= bound
        case Lt(bound):
            return value < bound
        case Le(bound):
            return value <= bound
        case Each(bound):
            return all(_holds(bound, one) for one in value)
        case DivisorOf(number):
            return value > 0 and number % value == 0
        case OneOf():
            return value in marker.names()


def _expected(markers: Iterable[Marker], broken: Marker, value: Any) -> str:
    """Says in words what a marker asks for; a bound together with its other end."""
    match broken:
        case Each(bound):
            return f"expected {_range('sizes', [bound])}"
        case DivisorOf(number):
            return f"expected a divisor of {number}"
        case OneOf():
            return errors.expected_one_of(value, broken.names())
    noun = "an integer" if isinstance(value, int) else "a number"
    bounds = [m for m in markers if isinstance(m, Ge | Gt | Le | Lt)]
    return f"expected {_range(noun, bounds)}"


def _range(noun: str, bounds: list[Ge | Gt | Le | Lt]) -> str:
    """Writes bounds: a number above 0, an integer in [1, 100]."""
    lower = [bound for bound in bounds if isinstance(bound, Ge | Gt)]
    upper = [bound for bound in bounds if isinstance(bound, Le | Lt)]
    if lower and upper:
        left, right = "[("[isinstance(lower[0], Gt)], "])"[isinstance(upper[0], Lt)]
        ends = f"{_number(_amount(lower[0]))}, {_number(_amount(upper[0]))}"
        return f"{noun} in {left}{ends}{right}"
    words = {Ge: "of at least", Gt: "above", Le: "of at most", Lt: "below"}
    return f"{noun} {words[type(bounds[0])]} {_number(_amount(bounds[0]))}"


def _amount(bound: Ge | Gt | Le | Lt) -> Any:
    return next(iter(dataclasses.asdict(bound).values()))


def _number(amount: Any) -> str:
    """Writes a bound: 0.5, 10000 and 2³¹."""
    exponent = int(amount).bit_length() - 1
    if exponent >= 20 and abs(amount) == 1 << exponent:
        return ("−2" if amount < 0 else "2") + str(exponent).translate(
            str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
        )
    return str(amount)
