"""Sweeps as data: which points there are, how far they train, how the best is chosen.

A sweep file holds one `SWEEP = Sweep(…)`. Loading it imports neither JAX nor a trainer:
points are plain values, and trainers, metrics and matching functions go by their names.
"""

import ast
import dataclasses
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

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
    """
    return tuple(
        dict(zip(axes, values, strict=True))
        for values in itertools.product(*axes.values())
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
        ValueError: the axes differ in length.
    """
    columns = {name: tuple(values) for name, values in axes.items()}
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
        for values in self.points:
            for field, value in values.items():
                _check_literal(field, value)


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
        if self.metric.startswith("test_"):
            raise ValueError(f"metric = {self.metric!r}: tests must not choose")
        if not self.budgets:
            raise ValueError("budgets must name at least one axis of progress")
        if not self.over:
            raise ValueError("over must name at least one field, such as 'seed'")
        for axis, parts in self.budgets.items():
            if not _are_budgets(parts):
                raise ValueError(
                    f"budgets[{axis!r}] = {parts!r}: expected how many parts the stop "
                    f"rule is divided into, or ascending amounts above 0"
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


@dataclasses.dataclass(frozen=True)
class Method:
    """An arm of the comparison: how its points are known, and what tunes it."""

    values: Values  # That all of its points have, and no other method's.
    tuned: Mapping[str, str]  # Fields that tell its configurations apart → symbols.

    def __post_init__(self) -> None:
        """Raises ValueError where `tuned` has no symbols."""
        if not isinstance(self.tuned, Mapping):
            raise ValueError(
                f"tuned = {self.tuned!r}: expected a symbol for each field, such as "
                f"{{'inner_steps': 'K'}}"
            )


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
    tuned = method.tuned if method else {field: field for field in values}
    return " ".join(f"{symbol}={_short(values[f])}" for f, symbol in tuned.items())


def _are_budgets(parts: Any) -> bool:
    if isinstance(parts, int):
        return parts >= 1 and not isinstance(parts, bool)
    is_row = isinstance(parts, tuple | list) and len(parts) > 0
    return (
        is_row
        and all(isinstance(n, int | float) and n > 0 for n in parts)
        and list(parts) == sorted(set(parts))
    )


def _frozen(value: Any) -> Any:
    """Points hold tuples where a sweep may have written lists."""
    return tuple(value) if isinstance(value, list) else value


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _check_literal(field: str, value: Any) -> None:
    if type(value) in (str, bool, int):
        return  # Almost all are; grids have tens of thousands.
    try:
        same = ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError):
        same = False
    if not same:
        raise ValueError(
            f"{field} = {value!r}: a value must be a Python literal (number, string, "
            f"bool or tuple), got {type(value).__name__}"
        )
