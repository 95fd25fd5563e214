"""Sweeps as data: which points there are, how far they train, how the best is chosen.

A sweep file holds one `SWEEP = Sweep(…)`. Loading it imports neither JAX nor a trainer:
points are plain values, and trainers, metrics and matching functions go by their names.
"""

import ast
import dataclasses
import itertools
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from bmg_sweeps import errors

SCALES = ("smoke", "lite", "paper")
MOST_POINTS = 100_000  # Of a sweep at a scale; the paper's largest grid has 7,250.
_MOST_BUDGETS = 1_000

Values = dict[str, Any]
"""Values by field name; the fields it does not name keep the trainer's gin values."""


def product(**axes: Iterable[Any]) -> tuple[Values, ...]:
    """Combines every value of each axis with every value of the others.

    >>> product(target_steps=(1, 7), seed=range(2))[1]
    {'target_steps': 1, 'seed': 1}

    Args:
        **axes: values by field name; the last axis varies fastest.

    Returns:
        One dict for each combination. Concatenate results to add arms to a grid.

    Raises:
        TypeError: an axis has no values to go through.
        ValueError: there are too many combinations.
    """
    columns = {name: _axis(name, values) for name, values in axes.items()}
    number = math.prod(map(len, columns.values()))
    _expect(number <= MOST_POINTS, "number of points", number, _FEW_POINTS)
    return tuple(
        dict(zip(columns, values, strict=True))
        for values in itertools.product(*columns.values())
    )


def zipped(**axes: Iterable[Any]) -> tuple[Values, ...]:
    """Pairs the values of the axes, the first of each with the first of the others.

    >>> zipped(inner_steps=(1, 3), target_steps=(7, 5))
    ({'inner_steps': 1, 'target_steps': 7}, {'inner_steps': 3, 'target_steps': 5})

    Args:
        **axes: values by field name, as many for each.

    Returns:
        One dict for each place.

    Raises:
        TypeError: an axis has no values to go through.
        ValueError: the axes differ in length, or are too long.
    """
    columns = {name: _axis(name, values) for name, values in axes.items()}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"zipped axes must have one length, got {lengths}")
    return tuple(
        dict(zip(columns, values, strict=True))
        for values in zip(*columns.values(), strict=True)
    )


@dataclasses.dataclass(frozen=True)
class Scale:
    """A size of the sweep: its points, and how far each is trained."""

    points: tuple[Values, ...]
    stop: Mapping[str, float]  # Amount by axis of progress; all must be reached.

    def __post_init__(self) -> None:
        """Raises ValueError where a value would not survive being written as gin."""
        rows = self.points
        _expect(isinstance(rows, tuple | list), "points", rows, _ROWS)
        _expect(len(rows) <= MOST_POINTS, "number of points", len(rows), _FEW_POINTS)
        for values in rows:
            _check_names("a point", values)
            for field, value in values.items():
                _check_literal(field, value)
        _check_names("stop", self.stop)
        for axis, amount in self.stop.items():
            _expect(_is_amount(amount), f"stop[{axis!r}]", amount, "a number above 0")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Select:
    """How the best configuration is chosen, at each of a number of budgets."""

    metric: str  # Column of the rows that decides.
    mode: str  # "max" or "min".
    budgets: Mapping[str, int | tuple[float, ...]]  # By axis of progress: n for 1/n …
    # n/n of the stop rule, or the amounts. "hours" are those spent on training.
    test: str | None = None  # Column that is read once the choice is made.
    over: tuple[str, ...] = ("seed",)  # Fields that a score is averaged over.

    def __post_init__(self) -> None:
        """Raises ValueError for an unknown mode, no budgets, or none that ascend."""
        if self.mode not in ("max", "min"):
            raise ValueError(f"mode must be 'max' or 'min', got {self.mode!r}")
        _check_text("metric", self.metric)
        if self.metric.startswith("test_"):
            raise ValueError(f"metric = {self.metric!r}: tests must not choose")
        if self.test is not None:
            _check_text("test", self.test)
        _check_names("budgets", self.budgets)
        if not self.budgets:
            raise ValueError("budgets must name at least one axis of progress")
        if not self.over:
            raise ValueError("over must name at least one field, such as 'seed'")
        is_row = isinstance(self.over, tuple | list)
        _expect(is_row, "over", self.over, "names of fields, such as ('seed',)")
        for field in self.over:
            _check_text("over", field)
        for axis, parts in self.budgets.items():
            if not _are_budgets(parts):
                raise ValueError(
                    f"budgets[{axis!r}] = {errors.shown(parts)}: expected how many "
                    f"parts the stop rule is divided into, or ascending amounts above "
                    f"0; at most {_MOST_BUDGETS:,}"
                )

    @property
    def axis(self) -> str:
        """The first axis of the budgets, on which curves are drawn."""
        return next(iter(self.budgets))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Curve:
    """One panel of a figure: a column of the rows over the axis of the budgets."""

    title: str
    metric: str
    label: str  # Of the vertical axis, with its unit.
    until: float | None = None  # End of the shown range; None is the stop rule.
    last: float | None = None  # Length of the shown range; None starts at zero.

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no text, and ranges without a length."""
        for name in ("title", "metric", "label"):
            _check_text(name, getattr(self, name))
        for name in ("until", "last"):
            value = getattr(self, name)
            _expect(value is None or _is_amount(value), name, value, "a number above 0")


@dataclasses.dataclass(frozen=True)
class Symbol:
    """How a field is shown where its values have names of their own in the paper.

    >>> Symbol("FOMAML", {"maml": "False", "fomaml": "True"}).shown("fomaml")
    'True'
    """

    text: str
    labels: Mapping[Any, str] = dataclasses.field(default_factory=dict)  # By value.

    def __post_init__(self) -> None:
        """Raises ValueError for what is no text."""
        _check_text("symbol", self.text)
        _expect(isinstance(self.labels, Mapping), "labels", self.labels, _LABELS)
        for value, label in self.labels.items():
            _check_text(f"labels[{value!r}]", label)

    def shown(self, value: Any) -> str:
        """Writes a value: its label, or else itself."""
        return self.labels.get(value, _short(value))


@dataclasses.dataclass(frozen=True)
class Method:
    """An arm of the comparison: how its points are known, and what tunes it."""

    values: Values  # That all of its points have, and no other method's.
    tuned: Mapping[str, str | Symbol]  # Fields that tell its configurations apart.

    def __post_init__(self) -> None:
        """Raises ValueError where a value is no literal, or `tuned` has no symbols."""
        _check_names("values", self.values)
        for field, value in self.values.items():
            _check_literal(field, value)
        _check_symbols("tuned", self.tuned)

    @property
    def symbols(self) -> dict[str, Symbol]:
        """What its configurations are described by, by field."""
        return _symbols(self.tuned)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """One table or figure: what is run, and what is shown of it."""

    title: str
    trainer: str  # Module in trainers/, and file in gin/.
    scales: Mapping[str, Scale]  # "smoke", "lite" and "paper".
    select: Select
    methods: Mapping[str, Method]
    curves: tuple[Curve, ...] = ()  # None is one of the metric that decides.
    anchors: str | None = None  # Name in `paper` of published numbers to compare with.

    def __post_init__(self) -> None:
        """Raises ValueError where a part of it is not of its type."""
        for name in ("title", "trainer"):
            _check_text(name, getattr(self, name))
        _check_names("scales", self.scales)
        for name, scale in self.scales.items():
            _expect(name in SCALES, "scales", name, f"names from {', '.join(SCALES)}")
            is_scale = isinstance(scale, Scale)
            _expect(is_scale, f"scales[{name!r}]", scale, "Scale(points, stop={…})")
        _expect(isinstance(self.select, Select), "select", self.select, "Select(…)")
        _check_names("methods", self.methods)
        for name, method in self.methods.items():
            is_method = isinstance(method, Method)
            _expect(
                is_method, f"methods[{name!r}]", method, "Method(values, tuned={…})"
            )
        are_curves = isinstance(self.curves, tuple | list) and all(
            isinstance(curve, Curve) for curve in self.curves
        )
        _expect(are_curves, "curves", self.curves, "a tuple of Curve(…)")
        if self.anchors is not None:
            _check_text("anchors", self.anchors)


def method_of(sweep: Sweep, values: Values) -> str:
    """Names the method that a point belongs to.

    Args:
        sweep: whose methods are meant.
        values: all values of the point.

    Returns:
        A key of `sweep.methods`: the first whose values the point has; or "other".
    """
    for name, method in sweep.methods.items():
        if all(values.get(f) == _frozen(v) for f, v in method.values.items()):
            return name
    return "other"


def describe(sweep: Sweep, values: Values) -> str:
    """Writes what tells a configuration apart from others of its method.

    Args:
        sweep: whose methods are meant.
        values: all values of the configuration.

    Returns:
        Such as "K=7 L=2".
    """
    method = sweep.methods.get(method_of(sweep, values))
    symbols = method.symbols if method else _symbols({field: field for field in values})
    return " ".join(f"{s.text}={s.shown(values[f])}" for f, s in symbols.items())


_LABELS = "what is shown, by value, such as {'fomaml': 'True'}"
_ROWS = "dicts of values by field, such as product(…) makes"
_FEW_POINTS = f"at most {MOST_POINTS:,}"


def _expect(holds: bool, name: str, value: Any, expected: str) -> None:
    if not holds:
        raise ValueError(f"{name} = {errors.shown(value)}: expected {expected}")


def _check_text(name: str, value: Any) -> None:
    is_text = isinstance(value, str) and value.isprintable() and value.strip() != ""
    _expect(is_text, name, value, "text of one line")


def _check_names(name: str, value: Any) -> None:
    _expect(isinstance(value, Mapping), name, value, "a dict by name")
    for key in value:
        _expect(isinstance(key, str), f"{name}, key", key, "a name")


def _check_symbols(name: str, value: Any) -> None:
    is_dict = isinstance(value, Mapping)
    _expect(is_dict, name, value, "a symbol by field, such as {'inner_steps': 'K'}")
    _check_names(name, value)
    for field, symbol in value.items():
        if not isinstance(symbol, Symbol):
            _check_text(f"{name}[{field!r}]", symbol)


def _symbols(tuned: Mapping[str, str | Symbol]) -> dict[str, Symbol]:
    return {f: s if isinstance(s, Symbol) else Symbol(s) for f, s in tuned.items()}


def _axis(field: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Reads the values of an axis; a string would be taken for its letters."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        shown = errors.shown(values)
        raise TypeError(f"{field} = {shown}: expected its values, such as ({shown},)")
    values = tuple(itertools.islice(values, MOST_POINTS + 1))
    _expect(len(values) <= MOST_POINTS, field, values, f"{_FEW_POINTS} values")
    return values


def _is_amount(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value <= sys.float_info.max


def _are_budgets(parts: Any) -> bool:
    if isinstance(parts, int):
        return 1 <= parts <= _MOST_BUDGETS and not isinstance(parts, bool)
    is_row = isinstance(parts, tuple | list) and 0 < len(parts) <= _MOST_BUDGETS
    return is_row and all(map(_is_amount, parts)) and list(parts) == sorted(set(parts))


def _frozen(value: Any) -> Any:
    """Points hold tuples where a sweep may have written lists."""
    return tuple(value) if isinstance(value, list) else value


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _check_literal(field: str, value: Any) -> None:
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
