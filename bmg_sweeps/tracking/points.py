"""The W&B run of a point: its rows, validations and tests, and where it stands."""

import functools
import os
import pathlib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from bmg_sweeps import privacy
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import choices, grid
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.sweep.point import Point
from bmg_sweeps.tracking import memory
from bmg_sweeps.tracking.runs import Content, Run


def read(storage: files.Storage, chosen: Sequence[Chosen]) -> dict[str, store.Record]:
    """Reads the records of all points of some sweeps, by point id."""
    keys = {p.id: p.trainer for one in chosen for p in one.points}
    return store.scan(storage, [(trainer, i) for i, trainer in keys.items()])


def runs(
    storage: files.Storage,
    chosen: Sequence[Chosen],
    records: Mapping[str, store.Record],
) -> list[Run]:
    """Describes the run of each point that may have rows, in the sweeps' order.

    Args:
        chosen: the sweeps; a point that several use is one run, tagged with each.
        records: of their points.

    Returns:
        Runs, each of which loads its rows only when it is written.
    """
    uses: dict[str, list[Chosen]] = {}
    points: dict[str, Point] = {}
    for one in chosen:
        for p in one.points:
            points[p.id] = p
            uses.setdefault(p.id, []).append(one)
    return [
        _describe(storage, points[i], records[i], uses[i])
        for i in uses
        if "rows" in records[i].objects and not records[i].damage
    ]


def axis_of(sweep: grid.Sweep) -> str:
    """Names the column that a sweep's curves are drawn over."""
    axis = sweep.select.axis
    return "training_seconds" if axis == "hours" else axis


def key(column: str) -> str:
    """Names a column as a run does: validation_loss is validation/loss."""
    for split in store.SPLITS:
        if column.startswith(f"{split}_"):
            return f"{split}/{column.removeprefix(f'{split}_')}"
    return column


def shown_name(one: Chosen) -> str:
    """Names a sweep as it can be typed, without a path that tells of the machine."""
    return os.path.basename(one.name) if os.path.isabs(one.name) else one.name


def stem(one: Chosen) -> str:
    """Names a sweep as tags and groups do."""
    return pathlib.Path(one.name).stem[
        :50
    ]  # A tag has at most 64 characters, scale included.


def tags_of(one: Chosen) -> tuple[str, str]:
    """Tags what belongs to a sweep: with its name, and with its name and scale."""
    return stem(one), f"{stem(one)}-{one.choice.scale}"


def _run_id(storage: files.Storage, point: Point, known: Mapping[str, Any]) -> str:
    """Names the run of a point in a storage; older code named it by the point alone."""
    if known:
        return known.get("id", point.id)
    return f"{point.id}-{memory.identity(storage)[:6]}"


def _describe(storage, point, record, uses) -> Run:
    """The first sweep that uses a point decides on its name, notes, method and axis."""
    first, sweep = uses[0], uses[0].sweep
    configuration = point.configuration(sweep.select.over)
    method = grid.method_of(sweep, point.values)
    over = " ".join(f"{f}={point.values[f]}" for f in sweep.select.over)
    status = store.status(record, choices.longest(*(one.stop for one in uses)))
    known = memory.remembered(storage, point.id)
    tags = {tag for one in uses for tag in tags_of(one)} | set(known.get("tags", ()))
    is_failed = status in ("failed", "diverged")
    end = {"status": status, "failure": _failure(record), "failed": int(is_failed)}
    written = [record.objects.get(table) for table in store.TABLES]
    hashes = [table and table.sha256 for table in written]
    words = ["run", shown_name(first), "--point", point.id, *first.choice.arguments()]
    return Run(
        key=point.id,
        id=_run_id(storage, point, known),
        group=configuration.id,
        job_type=point.trainer,
        name=f"{grid.name(sweep, configuration.values)} {over}"[:128],
        notes="python -m bmg_sweeps " + shlex.join(words),
        tags=tuple(sorted(tags)),
        config=point.values | {"configuration": configuration.id, "method": method},
        is_running=status == "running",
        is_failed=is_failed,
        digest=memory.digest([hashes, sorted(tags), end]),
        remembered=known,
        load=functools.partial(_load, storage, record, axis_of(sweep), end),
    )


def _load(storage, record, axis: str, end: Mapping[str, Any]) -> Content | None:
    """Reads all rows; validations and tests under names of their own."""
    rows = store.rows(storage, record)
    if not any(rows.values()):
        return None
    by_axis = {axis: rows}
    for split in store.SPLITS:
        table = store.rows(storage, record, split)
        if any(table.values()):
            by_axis[f"{split}/{axis}"] = {
                f"{split}/{name.removeprefix(f'{split}_')}": column
                for name, column in table.items()
            }
    # Left to itself, W&B shows the last number of a column that ends in none.
    columns = {k: v for table in by_axis.values() for k, v in table.items()}
    summary = {name: column[-1] for name, column in columns.items()}
    return Content(rows=by_axis, summary=summary | end)


def _failure(record: store.Record) -> str:
    """Says why the last attempt ended early, without the name of the user's home."""
    failure = record.failure
    if not failure:
        return ""
    return privacy.scrubbed(f"{failure.kind}: {failure.type}: {failure.message}")
