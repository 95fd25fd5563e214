"""What a sweep shows: panels of a figure, measures, claims, and symbols of fields."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from bmg_sweeps import formatting
from bmg_sweeps.sweep import task_display, validation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Curve:
    """One panel of a figure: a column of the rows over the axis of the budgets.

    With a second column, it is the range between the two.
    """

    title: str
    metric: str
    label: str  # Label of the vertical axis, with its unit.
    to: str | None = None  # Column at the other end of a range.
    methods: tuple[str, ...] | None = None  # Methods that are shown; None is all.
    until: float | None = None  # End of the shown range; None is the stop rule.
    last: float | None = None  # Length of the shown range; None starts at zero.

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no text, and ranges without a length."""
        for name in ("title", "metric", "label"):
            validation.text(name, getattr(self, name))
        if self.to is not None:
            validation.text("to", self.to)
        validation.all_of("methods", self.methods or (), str, "names of methods")
        for name in ("until", "last"):
            validation.amount_or_none(name, getattr(self, name))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Best:
    """One panel of a figure: what the selected configurations attain, by method.

    It shows them at each budget of an axis; or, for each value of a field, at the last.
    """

    title: str
    label: str  # Label of the vertical axis, with its unit.
    axis: str  # Axis of the budgets.
    by: str | None = None  # A field such as "inner_steps"; None is by budget.

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no text."""
        for name in ("title", "label", "axis"):
            validation.text(name, getattr(self, name))
        if self.by is not None:
            validation.text("by", self.by)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measure:
    """A column of the rows that is shown for every configuration, at the last budget.

    The name of an axis and "_per_second" make a column, too: the amount divided by the
    training seconds. So does "peak_memory_gib": the device memory that a point's
    compiled training needs, as the compiler counts it.
    """

    metric: str
    label: str
    last: float | None = None  # Training whose rows are averaged; None is one row.

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no text, or a range of no length."""
        for name in ("metric", "label"):
            validation.text(name, getattr(self, name))
        validation.amount_or_none("last", self.last)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number of each run of a method's selected configuration.

    It is a column or a difference of two. The configuration is the one selected at the
    last budget, also where the number is of an earlier one.
    """

    method: str  # Key of `Sweep.methods`.
    metric: str | None = None  # Column; None is the one that decides, or its test.
    minus: str | None = None  # Column that is taken off it.
    at: float | None = None  # Amount of the first axis; None is the last budget.
    last: float | None = None  # Training whose rows are averaged; None is one row.

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no text, and for no amounts."""
        validation.text("method", self.method)
        for name in ("metric", "minus"):
            if getattr(self, name) is not None:
                validation.text(name, getattr(self, name))
        has_columns = self.minus is None or self.metric is not None
        validation.require(has_columns, "minus", self.minus, "a metric to take it off")
        for name in ("at", "last"):
            validation.amount_or_none(name, getattr(self, name))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """What a paper says, as a comparison that our own points can decide.

    The name of a method stands for `Quantity(method=name)`, what it attains.
    """

    text: str  # One sentence.
    more: Quantity | str
    less: Quantity | str
    are_equal: bool = False  # Whether it says that the two do not differ.
    # A difference that still counts as none, in the unit of what is compared. It makes
    # a claim that two are equal one that can be supported.
    equal_within: float | None = None
    # Statistic over tasks that is compared: "median", "mean" or "interquartile_mean";
    # None compares the means of seeds.
    over_tasks: str | None = None

    def __post_init__(self) -> None:
        """Raises ValueError where a part of it is not of its type."""
        validation.text("text", self.text)
        for name in ("more", "less"):
            value = getattr(self, name)
            if isinstance(value, str):
                validation.text("method", value)
            is_side = isinstance(value, Quantity | str)
            form = "Quantity(…) or a method's name"
            validation.require(is_side, name, value, form)
        is_bool = isinstance(self.are_equal, bool)
        validation.require(is_bool, "are_equal", self.are_equal, "a bool")
        validation.amount_or_none("equal_within", self.equal_within)
        if self.over_tasks is not None:
            task_display.check_statistic("over_tasks", self.over_tasks)

    @property
    def quantities(self) -> tuple[Quantity, Quantity]:
        """What is said to be more, and what to be less."""
        return _quantity(self.more), _quantity(self.less)


def _quantity(side: Quantity | str) -> Quantity:
    return Quantity(method=side) if isinstance(side, str) else side


@dataclasses.dataclass(frozen=True)
class Symbol:
    """How a field is shown where its values have names of their own in the paper.

    >>> Symbol("FOMAML", {"maml": "False", "fomaml": "True"}).shown("fomaml")
    'True'
    """

    text: str
    # By value; None where the field says nothing, and a description leaves it out.
    labels: Mapping[Any, str | None] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ValueError for what is no text."""
        validation.text("symbol", self.text)
        validation.require(
            isinstance(self.labels, Mapping), "labels", self.labels, _LABELS
        )
        for value, label in self.labels.items():
            if label is not None:
                validation.text(f"labels[{value!r}]", label)

    def shown(self, value: Any) -> str:
        """Writes a value: its label, or else itself."""
        label = self.labels.get(value)
        return formatting.short(value) if label is None else label

    def is_silent(self, value: Any) -> bool:
        """Whether the field says nothing at a value."""
        return value in self.labels and self.labels[value] is None


def symbols_of(fields: Mapping[str, str | Symbol]) -> dict[str, Symbol]:
    """Makes symbols of those that are plain text, by field."""
    return {f: s if isinstance(s, Symbol) else Symbol(s) for f, s in fields.items()}


_LABELS = "what is shown, by value, such as {'fomaml': 'True'}"


def _check_symbols(name: str, value: Any) -> None:
    is_dict = isinstance(value, Mapping)
    validation.require(
        is_dict, name, value, "a symbol by field, such as {'inner_steps': 'K'}"
    )
    validation.names(name, value)
    for field, symbol in value.items():
        if not isinstance(symbol, Symbol):
            validation.text(f"{name}[{field!r}]", symbol)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PublishedBest:
    """A published number of what was selected at a budget, to stand beside ours."""

    method: str  # As named in the sweep.
    budget: float
    mean: float
    deviation: float | None = None  # Over seeds.
    source: str
    seeds: int | None = None  # How many the mean is over, where that is known.
    axis: str = "env_steps"  # Axis of the budget.
    selected: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # By symbol.


@dataclasses.dataclass(frozen=True, kw_only=True)
class PublishedMeasure:
    """A published number of one configuration, whatever was selected."""

    method: str  # As named in the sweep.
    configuration: Mapping[str, Any]  # Values by symbol.
    metric: str  # Column of the rows.
    mean: float
    deviation: float | None = None  # Over seeds.
    source: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class PublishedTasks:
    """Published scores of one method on many tasks, to stand beside ours."""

    method: str  # As named in the sweep.
    axis: str  # Axis of the budget.
    budget: float
    scores: Mapping[Any, float]  # By task, in its own unit.
    normalized: Mapping[Any, float]  # The same on one scale.
    source: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class PublishedSummary:
    """Published statistics over tasks of one method, whether the sweep has it or not.

    They are of normalized scores.
    """

    method: str
    axis: str  # Axis of the budget.
    budget: float
    median: float | None = None
    mean: float | None = None
    interquartile_mean: float | None = None
    source: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Published:
    """Published numbers that stand beside a sweep's own, where the two compare.

    They compare at one scale, and where all points have some values.
    """

    best: tuple[PublishedBest, ...] = ()
    measures: tuple[PublishedMeasure, ...] = ()
    tasks: tuple[PublishedTasks, ...] = ()
    summaries: tuple[PublishedSummary, ...] = ()
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # By field.
    scale: str = "paper"

    def __post_init__(self) -> None:
        """Raises ValueError where a part of it is not of its type."""
        validation.all_of("best", self.best, PublishedBest, "PublishedBest(…)")
        form = "PublishedMeasure(…)"
        validation.all_of("measures", self.measures, PublishedMeasure, form)
        validation.all_of("tasks", self.tasks, PublishedTasks, "PublishedTasks(…)")
        form = "PublishedSummary(…)"
        validation.all_of("summaries", self.summaries, PublishedSummary, form)
        validation.names("values", self.values)
        validation.text("scale", self.scale)
