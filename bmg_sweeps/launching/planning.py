"""What a launch would run: a sweep's points, minus what their records already hold."""

import ast
import dataclasses
import hashlib
import itertools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from bmg_sweeps import errors, paper, paths
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep import point as points_module
from bmg_sweeps.sweep.point import Point

SCALES = grid.SCALES


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choice:
    """What the command line says about a sweep's points."""

    scale: str = "smoke"
    where: Mapping[str, str] = dataclasses.field(default_factory=dict)
    gin: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    stop: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def arguments(self) -> list[str]:
        """Writes the choice as the arguments of a command line."""
        words = ["--scale", self.scale]
        for field, value in self.where.items():
            words += ["--where", f"{field}={value}"]
        for binding in self.gin:
            words += ["--gin", binding]
        if self.seeds:
            words += ["--seeds", ",".join(map(str, self.seeds))]
        for axis, number in self.stop.items():
            words += ["--stop", amounts({axis: number})]
        return words


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A sweep at a scale: the points that are meant, and how far they train."""

    name: str
    sweep: grid.Sweep
    points: tuple[Point, ...]
    stop: Mapping[str, float]
    choice: Choice = Choice()  # That led to these points.


def amounts(by_axis: Mapping[str, float]) -> str:
    """Writes amounts as they can be typed, such as "env_steps=2_000_000"."""
    return ", ".join(f"{axis}={amount(n)}" for axis, n in by_axis.items()) or "–"


def amount(number: float) -> str:
    """Writes one amount, whole numbers with underscores."""
    return f"{int(number):_}" if number == int(number) else f"{number:.12g}"


def choose(name: str, choice: Choice) -> Chosen:
    """Resolves a sweep's points under the command line's choices.

    Args:
        name: of a sweep, or the path of its file.
        choice: scale, filters and replacements.

    Returns:
        Its points, each once, in the sweep's order.

    Raises:
        UserError: the sweep has no such scale, a field or axis is unknown, or nothing
            is left.
    """
    sweep = paths.load_sweep(name)
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
                f"--stop {axis}: expected one of the axes " + ", ".join(sorted(axes))
            )
    trainer = sweep.trainer
    points = [points_module.resolve(trainer, v, choice.gin) for v in scale.points]
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


def _filtered(
    name: str, trainer: str, points: list[Point], choice: Choice
) -> list[Point]:
    """Keeps the points that have the values of `--where`."""
    declared = points_module.fields(trainer)
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
    """Gives every configuration each of some seeds, in place of its own."""
    if "seed" not in points_module.fields(trainer):
        raise errors.UserError(
            f"--seeds: expected a trainer with the field seed, {trainer} has none"
        )
    configurations = {p.configuration().id: p for p in points}.values()
    number = len(configurations) * len(seeds)
    if number > grid.MOST_POINTS:
        raise errors.UserError(
            f"--seeds: {len(configurations):,} configurations and {len(seeds):,} seeds "
            f"are {number:,} points; expected at most {grid.MOST_POINTS:,}"
        )
    return [
        Point(p.trainer, p.values | {"seed": seed})
        for p in configurations
        for seed in seeds
    ]


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
    declared = points_module.fields(sweep.trainer)
    named = [("select.over", field) for field in sweep.select.over]
    named += [("shown", field) for field in sweep.shown]
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
        if isinstance(curve, grid.Best) and curve.axis not in sweep.select.budgets:
            raise errors.UserError(
                f"sweep {name}, curves, axis {curve.axis!r}: "
                + errors.expected_one_of(curve.axis, sweep.select.budgets)
            )
    quantities = [q for claim in sweep.claims for q in (claim.more, claim.less)]
    named = [("claims", q.method) for q in quantities]
    for curve in sweep.curves:
        if isinstance(curve, grid.Curve):
            named += [("curves", method) for method in curve.methods or ()]
    for part, method in named:
        if method not in sweep.methods:
            raise errors.UserError(
                f"sweep {name}, {part}, method {method!r}: "
                + errors.expected_one_of(method, sweep.methods)
            )
    known = [*paper.ANCHORS, *paper.MEASURED]
    if sweep.anchors is not None and sweep.anchors not in known:
        raise errors.UserError(
            f"sweep {name}, anchors = {sweep.anchors!r}: "
            + errors.expected_one_of(sweep.anchors, known)
        )


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is to be run, for how long, and where the other points stand."""

    stops: Mapping[str, Mapping[str, float]]  # Stop rule by point id.
    points: tuple[Point, ...]  # All of them, each once.
    statuses: Mapping[str, str]  # By point id.
    to_run: tuple[Point, ...]  # Ordered by structure.
    records: Mapping[str, store.Record]  # By point id, as they were read.
    code: str  # Fingerprint of the code that asked.

    @property
    def num_partial(self) -> int:
        """How many of the missing points go on from a checkpoint."""
        missing = [i for i, status in self.statuses.items() if status == "missing"]
        return sum(bool(self.records[i].progress) for i in missing)

    def counts(self) -> dict[str, int]:
        """Counts the points by status."""
        counts: dict[str, int] = {}
        for status in self.statuses.values():
            counts[status] = counts.get(status, 0) + 1
        return counts


def plan(
    storage: files.Storage,
    chosen: Sequence[Chosen],
    retry: bool = False,
    whole: bool = False,
) -> Plan:
    """Subtracts what is recorded from what is wanted.

    Args:
        storage: of the records.
        chosen: sweeps; they may share points, which train as far as the longest asks.
        retry: whether failed and diverged points are wanted again.
        whole: whether records are read whole, so that altered ones are missing.

    Returns:
        The plan.
    """
    points: dict[str, Point] = {}
    stops: dict[str, Mapping[str, float]] = {}
    for one in chosen:
        for p in one.points:
            points[p.id] = p
            stops[p.id] = longest(stops.get(p.id, {}), one.stop)
    keys = [(p.trainer, p.id) for p in points.values()]
    records = store.scan(storage, keys, whole)
    code = code_fingerprint()
    statuses = {i: store.status(records[i], stops[i], code) for i in points}
    wanted = {"missing"} | ({"failed", "diverged"} if retry else set())
    by_structure: dict[tuple, list[Point]] = {}
    for i, p in points.items():
        if statuses[i] in wanted:
            by_structure.setdefault(points_module.structure(p), []).append(p)
    to_run = tuple(itertools.chain.from_iterable(by_structure.values()))
    return Plan(stops, tuple(points.values()), statuses, to_run, records, code)


def hours_to_run(plan: Plan) -> float | None:
    """Estimates what the points to run will take, by what their like have taken.

    Args:
        plan: with the records of all points.

    Returns:
        Hours of training, summed over points; None where nothing has been trained.
    """
    rates: dict[tuple, list[float]] = {}  # Hours for one unit of the stop rule.
    for p in plan.points:
        axis = next(iter(plan.stops[p.id]), None)
        record = plan.records[p.id]
        if axis and record.hours and record.progress.get(axis):
            rate = record.hours / record.progress[axis]
            rates.setdefault(points_module.structure(p), []).append(rate)
    if not rates:
        return None
    everywhere = statistics.median(itertools.chain.from_iterable(rates.values()))
    total = 0.0
    for p in plan.to_run:
        axis, amount = next(iter(plan.stops[p.id].items()))
        known = rates.get(points_module.structure(p))
        rate = statistics.median(known) if known else everywhere
        total += rate * max(0.0, amount - plan.records[p.id].progress.get(axis, 0))
    return total


def longest(*stops: Mapping[str, float]) -> dict[str, float]:
    """Joins stop rules: on each axis, the furthest that any of them asks."""
    joined: dict[str, float] = {}
    for stop in stops:
        for axis, wanted in stop.items():
            joined[axis] = max(wanted, joined.get(axis, 0))
    return joined


def check(points: Sequence[Point]) -> None:
    """Imports the trainers and checks every point, in a child process.

    Args:
        points: that are about to be run.

    Raises:
        UserError: a point has a value that its trainer refuses, or a trainer is broken.
    """
    if not points:
        return
    texts = [(p.trainer, points_module.gin_text(p)) for p in points]
    child = subprocess.run(
        [sys.executable, "-m", "bmg_sweeps.running.work_unit"],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        cwd=paths.ROOT,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        check=False,
    )
    if child.returncode != 0:
        lines = child.stderr.strip().splitlines() or ["no message"]
        raise errors.UserError(f"the points cannot be checked: {lines[-1]}")
    found = json.loads(child.stdout)
    if found:
        i, problem = found
        raise errors.UserError(f"point {points[i].id}: {problem}")


def code_fingerprint() -> str:
    """Hashes the sources that decide a point's numbers; their form, not their history.

    Returns:
        A short hash of trainers/ and of the parts of bmg_sweeps/ that they use.
    """
    folders = (paths.TRAINERS, *(paths.ROOT / "bmg_sweeps" / d for d in _NUMERIC))
    digest = hashlib.sha256()
    for path in sorted(p for folder in folders for p in folder.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def provenance() -> dict[str, str]:
    """Names the code that runs: its commit, "+dirty" where files differ, and its hash.

    Returns:
        `revision` for the reader, and `code`, the fingerprint.
    """
    try:
        revision = _git("rev-parse", "--short=12", "HEAD")
        revision += "+dirty" if _git("status", "--porcelain") else ""
    except (OSError, subprocess.CalledProcessError):
        revision = "unknown"
    return {"revision": revision, "code": code_fingerprint()}


_NUMERIC = ("core", "environments", "tasks")


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(paths.ROOT), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def _matches(value: Any, text: str) -> bool:
    """Whether a filter's text means a value, however it is written: 3e-4 is 0.0003."""
    try:
        wanted = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        wanted = text
    if isinstance(wanted, list):
        wanted = tuple(wanted)
    return text == value or (
        wanted == value and isinstance(wanted, bool) == (isinstance(value, bool))
    )
