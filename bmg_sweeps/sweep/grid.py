"""Sweeps as data: which points there are, how far they train, how the best is chosen.

A sweep file holds one `SWEEP = Sweep(…)`. Loading it imports neither JAX nor a trainer:
points are plain values, and trainers, metrics and matching functions go by their names.
"""

import dataclasses
import itertools
import math
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from bmg_sweeps import errors
from bmg_sweeps.sweep import display, task_display, validation
from bmg_sweeps.trainer.bindings import Values

MAX_POINTS = 100_000  # A scale has no more; the paper's largest grid has 7,250.


def product(**axes: Iterable[Any]) -> tuple[Values, ...]:
    """Combines every value of each axis with every value of the others.

    >>> product(target_steps=(1, 7), seed=range(2))[1]
    {'target_steps': 1, 'seed': 1}

    Args:
        **axes: values by field name; the last axis varies fastest.

    Returns:
        One dict for each combination. Results can be added, as arms of a grid.

    Raises:
        TypeError: an axis has no values to go through.
        ValueError: there are too many combinations.
    """
    columns = {name: _axis(name, values) for name, values in axes.items()}
    number = math.prod(map(len, columns.values()))
    validation.require(number <= MAX_POINTS, "number of points", number, _FEW_POINTS)
    return tuple(
        dict(zip(columns, values, strict=True))
        for values in itertools.product(*columns.values())
    )


def arm(values: Values, **axes: Iterable[Any]) -> tuple[Values, ...]:
    """Combines the values of a method with every combination of the axes.

    >>> arm({"update_kind": "bmg"}, target_steps=(1, 7))[1]
    {'update_kind': 'bmg', 'target_steps': 7}

    Args:
        values: values that all points of the arm have.
        **axes: values by field name, as for `product`.

    Returns:
        One dict for each combination.

    Raises:
        TypeError, ValueError: as `product`.
    """
    return tuple(values | point for point in product(**axes))


def arms(methods: Iterable[Values], **axes: Iterable[Any]) -> tuple[Values, ...]:
    """Combines the values of each of several methods with every one of the axes.

    >>> arms([{"update_kind": "maml"}, {"update_kind": "bmg"}], seed=range(2))[2]
    {'update_kind': 'bmg', 'seed': 0}

    Args:
        methods: values of each arm.
        **axes: values by field name, as for `product`.

    Returns:
        One dict for each method and combination; a method's are together.

    Raises:
        TypeError, ValueError: as `product`.
    """
    return tuple(point for values in methods for point in arm(values, **axes))


def zipped(**axes: Iterable[Any]) -> tuple[Values, ...]:
    """Pairs the values of the axes: the first with the first, and so on.

    >>> zipped(inner_steps=(1, 3), target_steps=(7, 5))
    ({'inner_steps': 1, 'target_steps': 7}, {'inner_steps': 3, 'target_steps': 5})

    Args:
        **axes: values by field name, the same number for each.

    Returns:
        One dict for each tuple of values.

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
    stop: Mapping[str, float]  # Amounts by axis of progress; all must be reached.
    # In place of the budgets of `select`, if any.
    budgets: Mapping[str, int | tuple[float, ...]] | None = None
    # Values that all points have which do not say another.
    values: Values = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ValueError where a value would not survive being written as gin."""
        validation.names("values", self.values)
        for field, value in self.values.items():
            validation.literal(field, value)
        rows = self.points
        validation.require(isinstance(rows, tuple | list), "points", rows, _ROWS)
        validation.require(
            len(rows) <= MAX_POINTS, "number of points", len(rows), _FEW_POINTS
        )
        validation.points(rows)
        validation.names("stop", self.stop)
        for axis, amount in self.stop.items():
            is_amount = validation.is_amount(amount)
            validation.require(is_amount, f"stop[{axis!r}]", amount, "a number above 0")
        if self.budgets is not None:
            validation.budgets(self.budgets)

    @property
    def rows(self) -> list[Values]:
        """What the sweep says of each point, with what it says of all."""
        return [{**self.values, **point} for point in self.points]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Select:
    """How the best configuration is chosen, at each of a number of budgets."""

    metric: str  # Column of the rows that decides.
    mode: str  # "max" or "min".
    # By axis of progress: n for the n-th parts of the stop rule, or the amounts. The
    # axis "hours" counts the time that is spent on training.
    budgets: Mapping[str, int | tuple[float, ...]]
    test: str | None = None  # Column that is read once the choice is made.
    over: tuple[str, ...] = ("seed",)  # Fields that a score is averaged over.
    # They are kept with the seed first, wherever it stands: it is told by its name.

    # What a run counts as that diverged where it was chosen by other seeds, in the unit
    # of the metric, or of the test. None says how often, and gives no number.
    floor: float | None = None
    # Whether the metric is a running sum, as a total reward is: it contains its past.
    is_sum: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError for an unknown mode, no budgets, or none that ascend."""
        if self.mode not in ("max", "min"):
            raise ValueError(f"mode must be 'max' or 'min', got {self.mode!r}")
        validation.text("metric", self.metric)
        if self.metric.startswith("test_"):
            raise ValueError(f"metric = {self.metric!r}: tests must not choose")
        if self.test is not None:
            validation.text("test", self.test)
        validation.budgets(self.budgets)
        if not self.over:
            raise ValueError("over must name at least one field, such as 'seed'")
        is_sequence = isinstance(self.over, tuple | list)
        validation.require(
            is_sequence, "over", self.over, "names of fields, such as ('seed',)"
        )
        for field in self.over:
            validation.text("over", field)
        validation.number_or_none("floor", self.floor)
        is_bool = isinstance(self.is_sum, bool)
        validation.require(is_bool, "is_sum", self.is_sum, "True or False")
        ordered = sorted(self.over, key=lambda field: field != "seed")  # It is stable.
        object.__setattr__(self, "over", tuple(ordered))

    @property
    def axis(self) -> str:
        """The first axis of the budgets, on which curves are drawn."""
        return next(iter(self.budgets))


@dataclasses.dataclass(frozen=True)
class Method:
    """An arm of the comparison: how its points are known, and what tunes it."""

    values: Values  # Values that all of its points have, and no other method's.
    tuned: Mapping[
        str, str | display.Symbol
    ]  # Fields that tell its configurations apart.

    def __post_init__(self) -> None:
        """Raises ValueError where a value is no literal, or `tuned` has no symbols."""
        validation.names("values", self.values)
        for field, value in self.values.items():
            validation.literal(field, value)
        display._check_symbols("tuned", self.tuned)

    @property
    def symbols(self) -> dict[str, display.Symbol]:
        """What its configurations are described by, by field."""
        return display.symbols_of(self.tuned)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """One table or figure: what is run, and what is shown of it."""

    title: str
    trainer: str  # Module in trainers/, and file in gin/.
    scales: Mapping[str, Scale]  # By name, such as "smoke".
    select: Select
    methods: Mapping[str, Method]
    curves: tuple[
        display.Curve | display.Best | task_display.Panel, ...
    ] = ()  # None is one of the metric that decides.
    measures: tuple[display.Measure, ...] = ()
    claims: tuple[display.Claim, ...] = ()
    # Fields that every table names beside its title, such as the data set.
    shown: Mapping[str, str | display.Symbol] = dataclasses.field(default_factory=dict)
    published: display.Published | None = None  # Numbers of others to compare with.
    tasks: task_display.Tasks | None = None  # None where there are only seeds.

    def __post_init__(self) -> None:
        """Raises ValueError where a part of it is not of its type."""
        for name in ("title", "trainer"):
            validation.text(name, getattr(self, name))
        validation.names("scales", self.scales)
        for name, scale in self.scales.items():
            validation.file_name("scales", name)
            is_scale = isinstance(scale, Scale)
            form = "Scale(points, stop={…})"
            validation.require(is_scale, f"scales[{name!r}]", scale, form)
        is_rule = isinstance(self.select, Select)
        validation.require(is_rule, "select", self.select, "Select(…)")
        validation.names("methods", self.methods)
        for name, method in self.methods.items():
            is_method = isinstance(method, Method)
            form = "Method(values, tuned={…})"
            validation.require(is_method, f"methods[{name!r}]", method, form)
        form = "Curve(…) or Best(…); TaskCurves(…) and such where there are tasks"
        kinds = (display.Curve, display.Best, *typing.get_args(task_display.Panel))
        validation.all_of("curves", self.curves, kinds, form)
        validation.all_of("measures", self.measures, display.Measure, "Measure(…)")
        validation.all_of("claims", self.claims, display.Claim, "Claim(…)")
        display._check_symbols("shown", self.shown)
        is_published = isinstance(self.published, display.Published | None)
        form = "Published(…)"
        validation.require(is_published, "published", self.published, form)
        is_tasks = isinstance(self.tasks, task_display.Tasks | None)
        validation.require(is_tasks, "tasks", self.tasks, "Tasks(…)")
        self._check_tasks()

    def _check_tasks(self) -> None:
        """Raises ValueError where tasks and the rule of selection do not agree."""
        rule, tasks = self.select, self.tasks
        if tasks is not None:
            is_second = tuple(rule.over)[1:] == (tasks.field,)
            form = (
                f"a seed and the field of the tasks, such as ('seed', '{tasks.field}')"
            )
            validation.require(is_second, "select.over", rule.over, form)
            form = "'max', as more of a task's score is better"
            validation.require(rule.mode == "max", "select.mode", rule.mode, form)
            return
        panels = (c for c in self.curves if isinstance(c, task_display.Panel))
        named = [("curves", type(panel).__name__) for panel in panels]
        named += [
            ("claims, over_tasks", c.over_tasks) for c in self.claims if c.over_tasks
        ]
        for part, what in named[:1]:
            form = "a sweep with tasks=Tasks(…) for it"
            validation.require(False, part, what, form)

    @property
    def by(self) -> tuple[str, ...]:
        """Fields by whose values the best are shown apart."""
        fields = [c.by for c in self.curves if isinstance(c, display.Best) and c.by]
        return tuple(dict.fromkeys(fields))


def with_methods(
    sweep: Sweep,
    methods: Mapping[str, Values],
    points: Mapping[str, tuple[Values, ...]],
    *,
    baseline: str,
    **changes: Any,
) -> Sweep:
    """Makes a sweep of other methods on the tasks of another, at its scales.

    Args:
        sweep: it has tasks; how it selects stays as it is.
        methods: values of each method, by name. A method is one configuration.
        points: by scale; all else of the scales stays as it is.
        baseline: the method that the others have to beat.
        **changes: other fields of the sweep, such as its title.

    Returns:
        The sweep. No published numbers stand beside it.
    """
    scales = {
        name: dataclasses.replace(scale, points=points[name])
        for name, scale in sweep.scales.items()
    }
    return dataclasses.replace(
        sweep,
        scales=scales,
        methods={name: Method(values, tuned={}) for name, values in methods.items()},
        tasks=dataclasses.replace(sweep.tasks, baseline=baseline),
        published=None,
        **changes,
    )


def method_of(sweep: Sweep, values: Values) -> str:
    """Names the method that a point belongs to.

    Args:
        sweep: it has the methods.
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
        sweep: it has the methods.
        values: all values of the configuration.

    Returns:
        Such as "K=7 L=2".
    """
    method = sweep.methods.get(method_of(sweep, values))
    symbols = method.symbols if method else display.symbols_of({f: f for f in values})
    return " ".join(
        f"{s.text}={s.shown(values[f])}"
        for f, s in symbols.items()
        if not s.is_silent(values[f])
    )


def name(sweep: Sweep, values: Values) -> str:
    """Names a configuration: its method, and what `describe` says of it.

    Args:
        sweep: it has the methods.
        values: all values of the configuration.

    Returns:
        Such as "BMG K=7 L=2"; the method alone where it has no other configuration.
    """
    return f"{method_of(sweep, values)} {describe(sweep, values)}".rstrip()


_ROWS = "dicts of values by field, such as product(…) makes"
_FEW_POINTS = f"at most {MAX_POINTS:,}"


def _axis(field: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Reads the values of an axis; a string, which would be its letters, is refused."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        shown = errors.shown(values)
        raise TypeError(f"{field} = {shown}: expected its values, such as ({shown},)")
    values = tuple(itertools.islice(values, MAX_POINTS + 1))
    validation.require(
        len(values) <= MAX_POINTS, field, values, f"{_FEW_POINTS} values"
    )
    return values


def _frozen(value: Any) -> Any:
    """Makes a tuple of a list: a sweep may have either, and points hold tuples."""
    return tuple(value) if isinstance(value, list) else value
