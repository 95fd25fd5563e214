"""What a sweep shows of many tasks, such as games: their columns, and panels of them.

A sweep has tasks where its scores are averaged over a field beside the seed, and its
`tasks` name that field. Each task has scores in a unit of its own, and the same on one
scale that all tasks have.
"""

import dataclasses

from bmg_sweeps.sweep import validation

STATISTICS = ("median", "mean", "interquartile_mean")
_STATISTIC = "one of: " + ", ".join(map(repr, STATISTICS))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tasks:
    """The field of the tasks, and the columns of their scores. More is better."""

    field: str  # Such as "game"; in `Select.over`, after the seed.
    score: str  # Column in the task's own unit.
    normalized: str  # The same on one scale: 1 is the reference.
    reference: str = "human"  # What has 1, in a word.
    baseline: str | None = None  # Key of `Sweep.methods` that the others have to beat.

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no text."""
        for name in ("field", "score", "normalized", "reference"):
            validation.text(name, getattr(self, name))
        if self.baseline is not None:
            validation.text("baseline", self.baseline)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskCurves:
    """A figure of small panels, one a task: a column of all methods over training."""

    title: str
    metric: str
    methods: tuple[str, ...] | None = None  # Methods that are shown; None is all.

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no text."""
        _check_texts(self, "title", "metric")
        _check_methods(self.methods)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskSummary:
    """One panel of a figure: a statistic over tasks, by method, over training."""

    title: str
    label: str  # Label of the vertical axis, with its unit.
    statistic: str = "median"  # Or "mean", or "interquartile_mean".
    methods: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no text, and no such statistic."""
        _check_texts(self, "title", "label")
        _check_methods(self.methods)
        check_statistic("statistic", self.statistic)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskDifferences:
    """A figure of bars, one a task, sorted: normalized scores, one method's less."""

    title: str
    label: str
    more: str  # Keys of `Sweep.methods`.
    less: str

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no text."""
        _check_texts(self, "title", "label", "more", "less")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskDistribution:
    """A figure of boxes, one a method: normalized scores of all runs on all tasks."""

    title: str
    label: str
    # Whether each task's scores are less their mean, and by their deviation, over the
    # runs of the methods that are shown.
    is_standardized: bool = False
    methods: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no text."""
        _check_texts(self, "title", "label")
        _check_methods(self.methods)
        is_bool = isinstance(self.is_standardized, bool)
        form = "a bool"
        validation.require(is_bool, "is_standardized", self.is_standardized, form)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskProfile:
    """A figure of lines, one a method: the share of all runs above each score τ."""

    title: str
    label: str  # What τ is: the scale of normalized scores.
    methods: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no text."""
        _check_texts(self, "title", "label")
        _check_methods(self.methods)


# Each is an image of its own.
Figure = TaskCurves | TaskDifferences | TaskDistribution | TaskProfile
Panel = Figure | TaskSummary


def methods_of(panel: Panel) -> tuple[str, ...]:
    """Names the methods that a panel asks for; () where it shows all."""
    if isinstance(panel, TaskDifferences):
        return panel.more, panel.less
    return panel.methods or ()


def check_statistic(name: str, value: object) -> None:
    """Requires the name of a statistic over tasks."""
    validation.require(value in STATISTICS, name, value, _STATISTIC)


def _check_texts(panel: Panel, *names: str) -> None:
    for name in names:
        validation.text(name, getattr(panel, name))


def _check_methods(methods: object) -> None:
    validation.all_of("methods", methods or (), str, "names of methods")
