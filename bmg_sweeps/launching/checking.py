"""Checks of every point of a plan, and of what sweeps name, before Ray starts."""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bmg_sweeps import errors, paths
from bmg_sweeps.sweep import choices, display, grid, point
from bmg_sweeps.trainer import source


def check(
    points: Sequence[point.Point],
    chosen: Sequence[choices.Chosen] = (),
    data: str | None = None,
    pack: int | None = None,
    platform: str = "cpu",
    lets_fail: bool = False,
) -> dict[tuple, int]:
    """Holds points, their trainers and sweeps to what they must be, in a child process.

    Every point is checked, and a few are traced as examples of their trainers: those
    that are largest, so that their memory is known.

    Args:
        points: that are about to be run.
        chosen: their sweeps, whose axes and columns are looked up in the trainers.
        data: folder of data sets; None is what the environment names.
        pack: how many of them are to train together; None is not said.
        platform: "cpu" or "gpu", that they will run on: some programs differ.
        lets_fail: whether a trainer that fails in tracing is let through, so that
            a debugger can stop where it does.

    Returns:
        Bytes that a point is estimated to need, by structure: of the examples.

    Raises:
        UserError: a point has a value that its trainer refuses, a trainer breaks its
            contract, or a sweep names a column or an axis that its trainer lacks.
    """
    if not points:
        return {}
    stops = choices.stops_of(chosen)
    request = {
        "platform": platform,
        "points": [(p.trainer, p.gin_text()) for p in points],
        "stops": [stops.get(p.id, {}) for p in points],
        "examples": [] if lets_fail else _examples(points, chosen),
        "pack": pack,
        "sweeps": [_names(one) for one in chosen],
    }
    child = subprocess.run(
        [sys.executable, "-m", "bmg_sweeps.running.check"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=paths.ROOT,
        env=_environment(data),
        check=False,
    )
    if child.returncode != 0:
        lines = child.stderr.strip().splitlines() or [_ended(child.returncode)]
        raise errors.UserError(f"the points cannot be checked: {lines[-1]}")
    found = json.loads(child.stdout)
    if found["problem"]:
        i, problem = found["problem"]
        where = "" if i is None else f"point {points[i].id}: "
        raise errors.UserError(where + problem)
    return {points[i].structure: num_bytes for i, num_bytes in found["memory"]}


def _ended(returncode: int) -> str:
    """Says how a process ended that said nothing."""
    if returncode != -signal.SIGKILL:
        return f"their process ended with status {returncode}, expected 0"
    return "their process was killed, most likely because memory ran out"


def _environment(data: str | None) -> dict[str, str]:
    """Returns what the child process gets: this one's, but for what must differ."""
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    environment.pop("PYTHONOPTIMIZE", None)  # Libraries of trainers read docstrings.
    return environment | ({paths.DATA_VARIABLE: data} if data else {})


def _examples(
    points: Sequence[point.Point], chosen: Sequence[choices.Chosen]
) -> list[int]:
    """Chooses examples among the points of several trainers and sweeps.

    Sweeps that average over the same fields have them in common.
    """
    places = {p.id: i for i, p in enumerate(points)}
    groups: dict[tuple[str, ...], set[int]] = {}
    for one in chosen:
        group = (one.sweep.trainer, *sorted(one.sweep.select.over))
        members = {places[p.id] for p in one.points if p.id in places}
        groups.setdefault(group, set()).update(members)
    for i in {*places.values()}.difference(*groups.values()):
        groups.setdefault((points[i].trainer,), set()).add(i)
    found: dict[int, None] = {}
    for (trainer, *over), members in groups.items():
        indices = sorted(members)
        rows = [points[i].values for i in indices]
        found |= {indices[i]: None for i in examples(rows, trainer, over)}
    return sorted(found)


def examples(
    rows: Sequence[Mapping[str, Any]], trainer: str, over: Collection[str]
) -> list[int]:
    """Chooses examples that have every name of what is run: update kinds and the like.

    Tracing one of each structure would take minutes where there are a hundred of them,
    and those that differ in numbers only run the same lines. So do those that differ in
    a field that scores are averaged over, such as one of 57 games. Rows with large
    numbers in the fields of the structure are chosen before others: they need most
    memory.

    Args:
        rows: values of points by field.
        trainer: whose points they are.
        over: fields that scores are averaged over.

    Returns:
        The indices of the rows with a name in them that none before has.
    """
    fields = source.fields(trainer)
    static = {name for name, field in fields.items() if field.is_structure}
    seen: set[tuple[str, str]] = set()
    indices = []
    for i in sorted(range(len(rows)), key=lambda i: -_size(rows[i], static)):
        named = {(k, v) for k, v in rows[i].items() if isinstance(v, str)}
        names = {(k, v) for k, v in named if k not in over}
        if not indices or names - seen:
            indices.append(i)
            seen |= names
    return indices


def _size(values: Mapping[str, Any], static: Collection[str]) -> int:
    """Multiplies the numbers that shape a program."""
    shapes = [v for k, v in values.items() if k in static]
    sizes = [max(v, default=1) if isinstance(v, tuple) else v for v in shapes]
    return math.prod(max(1, size) for size in sizes if isinstance(size, int))


def _names(one: choices.Chosen) -> dict[str, Any]:
    """Lists the axes and columns that a sweep names, and examples that may have them.

    The examples are of all of the sweep's points, whichever of them are about to run.
    """
    sweep, trainer = one.sweep, one.sweep.trainer
    rows = sweep.scales[one.choice.scale].rows
    resolved = [
        point.resolve(trainer, rows[i], one.choice.gin).gin_text()
        for i in examples(rows, trainer, sweep.select.over)
    ]
    axes = [("stop", axis) for axis in one.stop]
    axes += [("select.budgets", axis) for axis in sweep.select.budgets]
    return {
        "name": one.name,
        "trainer": trainer,
        "examples": resolved,
        "axes": axes,
        "columns": _columns(sweep),
    }


def _columns(sweep: grid.Sweep) -> list[tuple[str, str]]:
    """Lists the columns that a sweep names, and where it does."""
    rule = sweep.select
    columns = [("select.metric", rule.metric), ("select.test", rule.test)]
    for curve in sweep.curves:
        if isinstance(curve, display.Curve):
            columns += [("curves, metric", curve.metric), ("curves, to", curve.to)]
    columns += [("measures", measure.metric) for measure in sweep.measures]
    for claim in sweep.claims:
        for quantity in claim.quantities:
            columns.append(("claims, metric", quantity.metric))
            columns.append(("claims, minus", quantity.minus))
    return [(where, column) for where, column in columns if column is not None]
