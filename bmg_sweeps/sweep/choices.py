"""A sweep's points under the command line's choices."""

import ast
import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bmg_sweeps import errors, formatting
from bmg_sweeps.sweep import display, grid, loading, task_display
from bmg_sweeps.sweep.point import Point, resolve_all
from bmg_sweeps.trainer import source

DEFAULT_SCALE = "smoke"
_ROUNDING = 1e-9  # Values that differ by less, relatively, are seldom meant as two.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choice:
    """What the command line says about a sweep's points."""

    scale: str | None = None  # None is "smoke", or the first of a sweep without it.
    where: Mapping[str, str] = dataclasses.field(default_factory=dict)
    gin: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    stop: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def arguments(self) -> list[str]:
        """Writes the choice as the arguments of a command line."""
        words = ["--scale", self.scale] if self.scale else []
        for field, value in self.where.items():
            words += ["--where", f"{field}={value}"]
        for binding in self.gin:
            words += ["--gin", binding]
        if self.seeds:
            words += ["--seeds", ",".join(map(str, self.seeds))]
        for axis, number in self.stop.items():
            words += ["--stop", formatting.amounts({axis: number})]
        return words


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A sweep at a scale: the points that are meant, and how far they train."""

    name: str
    sweep: grid.Sweep
    points: tuple[Point, ...]
    stop: Mapping[str, float]
    # The choice that led to these points; its scale is one of the sweep's.
    choice: Choice = Choice(scale=DEFAULT_SCALE)

    @functools.cached_property
    def methods(self) -> tuple[str, ...]:
        """The methods that have any point, in the sweep's order; "other" is last."""
        found = {grid.method_of(self.sweep, p.values) for p in self.points}
        return tuple(m for m in (*self.sweep.methods, "other") if m in found)

    @functools.cached_property
    def has_choice(self) -> bool:
        """Whether a method has several configurations."""
        over = self.sweep.select.over
        found = {p.configuration(over).id: p for p in self.points}
        methods = [grid.method_of(self.sweep, p.values) for p in found.values()]
        return len(set(methods)) < len(methods)


def choose(name: str, choice: Choice) -> Chosen:
    """Resolves a sweep's points under the command line's choices.

    Args:
        name: the sweep's name, or the path of its file.
        choice: scale, filters and replacements.

    Returns:
        Its points, each once, in the sweep's order.

    Raises:
        UserError: the sweep has no such scale, a field or axis is unknown, or nothing
            is left.
    """
    return _chosen(name, loading.load_sweep(name), choice)


class AllChosen(NamedTuple):
    """The sweeps of the checkout: each is in one of these."""

    chosen: list[Chosen]  # Those that have the scale.
    skipped: dict[str, grid.Sweep]  # Those that lack it, by name.
    broken: dict[str, errors.UserError]  # What is wrong with the others' files.


def choose_all(choice: Choice) -> AllChosen:
    """Resolves the sweeps of the checkout that have a scale.

    Args:
        choice: scale, filters and replacements, which hold for all of them.

    Returns:
        Them, and by name those that lack it, and those of which a file is broken.

    Raises:
        UserError: no sweep has the scale, the choice is at fault as in `choose`, or
            every file is broken.
    """
    choice = dataclasses.replace(choice, scale=choice.scale or DEFAULT_SCALE)
    sweeps, broken = _load_all()
    skipped = {n: one for n, one in sweeps.items() if choice.scale not in one.scales}
    chosen = []
    for name in (n for n in sweeps if n not in skipped):
        try:
            chosen.append(_chosen(name, sweeps[name], choice))
        except errors.UserError:
            problem = _problem(name, sweeps[name], choice)
            if problem is None:
                raise
            broken[name] = problem
    if broken and not chosen:
        raise next(iter(broken.values()))
    if not chosen:
        known = dict.fromkeys(scale for one in sweeps.values() for scale in one.scales)
        raise errors.UserError(
            f"--scale {choice.scale}: no sweep has it; "
            + errors.expected_one_of(choice.scale, known)
        )
    return AllChosen(chosen, skipped, broken)


def _load_all() -> tuple[dict[str, grid.Sweep], dict[str, errors.UserError]]:
    """Loads the sweeps of the checkout; says what is wrong with the broken ones."""
    sweeps, broken = {}, {}
    for name in loading.sweep_names():
        try:
            sweeps[name] = loading.load_sweep(name)
        except errors.UserError as error:
            broken[name] = error
    return sweeps, broken


def _problem(name: str, sweep: grid.Sweep, choice: Choice) -> errors.UserError | None:
    """Says what is wrong with a sweep at a scale, whatever else is chosen."""
    try:
        _chosen(name, sweep, Choice(scale=choice.scale))
    except errors.UserError as error:
        return error
    return None


def _chosen(name: str, sweep: grid.Sweep, choice: Choice) -> Chosen:
    choice = dataclasses.replace(choice, scale=choice.scale or _default_scale(sweep))
    if choice.scale not in sweep.scales:
        known = ", ".join(sweep.scales) or "none"
        raise errors.UserError(f"--scale {choice.scale}: sweep {name} has {known}")
    scale = sweep.scales[choice.scale]
    _check_scale(name, choice.scale, scale)
    if scale.budgets is not None:
        rule = dataclasses.replace(sweep.select, budgets=scale.budgets)
        sweep = dataclasses.replace(sweep, select=rule)
    _check_names(name, sweep, scale)
    axes = {*scale.stop, *sweep.select.budgets, "hours"}
    for axis in choice.stop:
        if axis not in axes:
            raise errors.UserError(
                f"--stop {formatting.amounts({axis: choice.stop[axis]})}: expected one "
                f"of the axes {', '.join(sorted(axes))}"
            )
    trainer = sweep.trainer
    points = resolve_all(trainer, scale.rows, choice.gin)
    points = _filtered(name, trainer, points, choice)
    if choice.seeds:
        points = _seeded(trainer, points, choice.seeds)
    return Chosen(
        name=name,
        sweep=sweep,
        points=tuple({p.id: p for p in points}.values()),
        stop=choice.stop or scale.stop,
        choice=choice,
    )


def _default_scale(sweep: grid.Sweep) -> str:
    """Returns the scale that is meant where none is named."""
    if DEFAULT_SCALE in sweep.scales:
        return DEFAULT_SCALE
    return next(iter(sweep.scales), DEFAULT_SCALE)


def _filtered(
    name: str, trainer: str, points: list[Point], choice: Choice
) -> list[Point]:
    """Keeps the points that have the values of --where."""
    declared = source.fields(trainer)
    for field, text in choice.where.items():
        if field not in declared:
            raise errors.UserError(
                f"--where {field}={text}: no such field; "
                + errors.expected_one_of(field, declared)
            )
        there = {p.values[field]: None for p in points}
        points = [p for p in points if _matches(p.values[field], text)]
        if not points:
            raise errors.UserError(
                f"sweep {name}: no point is left of scale {choice.scale} with --where "
                f"{field}={text}; expected one of: {', '.join(map(repr, there))}"
            )
    return points


def _seeded(trainer: str, points: list[Point], seeds: Sequence[int]) -> list[Point]:
    """Gives every configuration these seeds, in place of its own."""
    if "seed" not in source.fields(trainer):
        raise errors.UserError(
            f"--seeds: expected a trainer with the field seed, {trainer} has none"
        )
    configurations = {p.configuration().id: p for p in points}.values()
    number = len(configurations) * len(seeds)
    if number > grid.MAX_POINTS:
        raise errors.UserError(
            f"--seeds: {len(configurations):,} configurations and {len(seeds):,} seeds "
            f"are {number:,} points; expected at most {grid.MAX_POINTS:,}"
        )
    return [p.replaced(seed=seed) for p in configurations for seed in seeds]


def _check_scale(name: str, scale_name: str, scale: grid.Scale) -> None:
    """Refuses a scale at which there is nothing to do."""
    for part, value in (("points", scale.points), ("stop", scale.stop)):
        if not value:
            raise errors.UserError(
                f"sweep {name}, scales[{scale_name!r}].{part} = {value!r}: expected at "
                f"least one"
            )


def _check_names(name: str, sweep: grid.Sweep, scale: grid.Scale) -> None:
    """Refuses a sweep that names a field, an axis or numbers that are not there."""
    declared = source.fields(sweep.trainer)
    named = [("select.over", field) for field in sweep.select.over]
    named += [("shown", field) for field in sweep.shown]
    if sweep.published is not None:
        named += [("published.values", field) for field in sweep.published.values]
    named += [("curves", field) for field in sweep.by]
    for title, method in sweep.methods.items():
        fields = (*method.values, *method.tuned)
        named += [(f"methods[{title!r}]", field) for field in fields]
        for field in method.tuned:
            if field in sweep.select.over:
                raise errors.UserError(
                    f"sweep {name}, methods[{title!r}].tuned: {field!r} is in "
                    f"select.over; expected fields that scores are not averaged over"
                )
    for where, field in named:
        if field not in declared:
            raise errors.UserError(
                f"sweep {name}, {where}: {sweep.trainer} has no field {field!r}; "
                + errors.expected_one_of(field, declared)
            )
    for axis, parts in sweep.select.budgets.items():
        if isinstance(parts, int) and axis not in scale.stop:
            raise errors.UserError(
                f"sweep {name}, select.budgets[{axis!r}]: expected an axis of the stop "
                f"rule, {', '.join(scale.stop)}; or amounts"
            )
    for curve in sweep.curves:
        if isinstance(curve, display.Best) and curve.axis not in sweep.select.budgets:
            raise errors.UserError(
                f"sweep {name}, curves, axis {curve.axis!r}: "
                + errors.expected_one_of(curve.axis, sweep.select.budgets)
            )
    for part, method_name in _named_methods(sweep):
        if method_name not in sweep.methods:
            raise errors.UserError(
                f"sweep {name}, {part}, method {method_name!r}: "
                + errors.expected_one_of(method_name, sweep.methods)
            )


def _named_methods(sweep: grid.Sweep) -> list[tuple[str, str]]:
    """Lists the methods that a sweep names, each after the part that does."""
    quantities = [q for claim in sweep.claims for q in claim.quantities]
    named = [("claims", q.method) for q in quantities]
    for curve in sweep.curves:
        if isinstance(curve, display.Curve):
            named += [("curves", method) for method in curve.methods or ()]
        elif isinstance(curve, task_display.Panel):
            named += [("curves", method) for method in task_display.methods_of(curve)]
    if sweep.tasks is not None and sweep.tasks.baseline is not None:
        named.append(("tasks.baseline", sweep.tasks.baseline))
    return named


def twins(chosen: Chosen) -> list[str]:
    """Finds values that may be meant as one: 0.3 and 0.1 + 0.2 are two points."""
    found = []
    for field in chosen.points[0].values:
        values = {p.values[field] for p in chosen.points}
        numbers = sorted(v for v in values if isinstance(v, float))
        for less, more in itertools.pairwise(numbers):
            if math.isclose(less, more, rel_tol=_ROUNDING):
                found.append(
                    f"{chosen.name}: {field} = {less!r} and {more!r} are two values; "
                    f"is one of them a rounding of the other?"
                )
    return found


def ids_of_all_scales(chosen: Chosen) -> set[str]:
    """Returns the ids of a sweep's points, at whichever scale."""
    sweep = chosen.sweep
    rows = [row for scale in sweep.scales.values() for row in scale.rows]
    return {p.id for p in resolve_all(sweep.trainer, rows, chosen.choice.gin)}


def longest(*stops: Mapping[str, float]) -> dict[str, float]:
    """Joins stop rules: the largest amount of each axis."""
    joined: dict[str, float] = {}
    for stop in stops:
        for axis, wanted in stop.items():
            joined[axis] = max(wanted, joined.get(axis, 0))
    return joined


def stops_of(chosen: Sequence[Chosen]) -> dict[str, dict[str, float]]:
    """Says by id how far the points train: those that sweeps share, the longest way."""
    stops: dict[str, dict[str, float]] = {}
    for one in chosen:
        for p in one.points:
            stops[p.id] = longest(stops.get(p.id, {}), one.stop)
    return stops


def _matches(value: Any, text: str) -> bool:
    """Whether text of --where means a value, however it is written: 3e-4 is 0.0003."""
    try:
        wanted = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):  # TypeError: a list as a key.
        wanted = text
    if isinstance(wanted, list):
        wanted = tuple(wanted)
    return text == value or (
        wanted == value and isinstance(wanted, bool) == (isinstance(value, bool))
    )
