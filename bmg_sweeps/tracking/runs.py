"""Writes a W&B run, whatever it is of: rows on their own axes, tables, an artifact."""

import dataclasses
import os
import pathlib
import re
import shutil
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from bmg_sweeps import privacy
from bmg_sweeps.records import files, store
from bmg_sweeps.reporting import tables
from bmg_sweeps.reporting.tables import Table
from bmg_sweeps.tracking import memory, session


@dataclasses.dataclass(frozen=True, kw_only=True)
class Content:
    """What is in a run."""

    rows: Mapping[str, store.Rows]  # By the column that is their axis.
    summary: Mapping[str, Any]
    tables: Mapping[str, Table] = dataclasses.field(default_factory=dict)
    artifact: str | None = None  # Its name, where there is one.
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)  # Its texts.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """What W&B is told of a run, but for what is in it."""

    key: str  # What it is of, by which it is remembered.
    id: str  # W&B's.
    group: str
    job_type: str
    name: str
    notes: str
    tags: tuple[str, ...]
    config: Mapping[str, Any]
    is_running: bool  # Whether there will be more of it soon.
    is_failed: bool
    digest: str  # Changes whenever the run must.
    remembered: Mapping[str, Any]  # What the last export left.
    load: Callable[[], Content | None]  # None where there is nothing to show.

    @property
    def is_online(self) -> bool:
        """Whether it was online as it is now."""
        is_same = self.remembered.get("digest") == self.digest
        return is_same and self.remembered["mode"] == "online"

    def is_current(self, storage: files.Storage, mode: str) -> bool:
        """Whether nothing has changed; what is online need not be written offline."""
        if self.is_online:
            return True
        if self.remembered.get("digest") != self.digest or mode == "online":
            return False
        return (memory.folder(storage) / self.remembered["folder"]).is_dir()


def export(storage: files.Storage, run: Run, mode: str) -> Mapping[str, Any]:
    """Makes a run as its content is.

    Args:
        run: of a point or a sweep.
        mode: "online" or "offline".

    Returns:
        What is remembered of it: nothing where there is nothing to show.
    """
    if run.is_current(storage, mode):
        return run.remembered
    content = run.load()
    if content is None:
        return {}
    starts = _rows_online(run, content) if mode == "online" else {}
    if mode == "online":
        # Whatever happens from here on, the next export must not trust what is there.
        doubted = {"digest": None, "id": run.id}
        memory.remember(storage, run.key, dict(run.remembered) | doubted)
    kept = run.remembered.get("folder")
    try:
        made = _written(run, content, starts, mode, memory.folder(storage))
        kept = made.get("folder")
    finally:
        memory.remove_folders(storage, run.id, kept)
    made |= {"mode": mode, "digest": run.digest, "tags": run.tags}
    made["rows"] = {
        axis: {"number": len(rows[axis]), "digest": memory.digest(rows)}
        for axis, rows in content.rows.items()
    }
    memory.remember(storage, run.key, made)
    return made


def name_of(text: str) -> str:
    """Writes a text as W&B can sort, filter and draw by: "fixed ε" is fixed_epsilon.

    Args:
        text: such as a method or a title.

    Returns:
        Letters, digits and underscores.
    """
    spelled = re.sub(r"[^\x00-\x7f]", lambda m: _spelled(m[0]), text)
    return re.sub(r"\W+", "_", spelled, flags=re.ASCII).strip("_")


def _spelled(symbol: str) -> str:
    """Names a Greek letter or a sign, each as the last word of its Unicode name."""
    return f" {unicodedata.name(symbol, 'symbol').split()[-1].lower()} "


def _rows_online(run: Run, content: Content) -> dict[str, int]:
    """Counts the rows that the online run has; none where it must be overwritten."""
    known = run.remembered.get("rows", {})
    is_trusted = run.remembered.get("mode") == "online" and run.remembered["digest"]
    if not is_trusted or content.tables or not known.keys() <= content.rows.keys():
        return {}
    for axis, before in known.items():
        first = {k: v[: before["number"]] for k, v in content.rows[axis].items()}
        if memory.digest(first) != before["digest"]:
            return {}
    return {axis: before["number"] for axis, before in known.items()}


def _written(run: Run, content, starts, mode, parent) -> dict[str, Any]:
    """Writes a W&B run; where W&B refuses its id, under the next one.

    An id that was deleted there cannot be used again. W&B's client does not say so: it
    tries until its time is over.
    """
    try:
        return _write(run, content, starts, mode, parent) | {"id": run.id}
    except Exception as error:
        if mode != "online" or not session.is_reachable():
            raise
        again = dataclasses.replace(run, id=_next_id(run.id))
        try:
            return _write(again, content, {}, mode, parent) | {"id": again.id}
        except Exception:
            raise error from None


def _next_id(run_id: str) -> str:
    """Names the next generation of a run: abc, abc-g2, abc-g3."""
    match = re.fullmatch(r"(.*)-g(\d+)", run_id)
    return f"{match[1]}-g{int(match[2]) + 1}" if match else f"{run_id}-g2"


def _write(run: Run, content, starts, mode, parent) -> dict[str, Any]:
    """Writes a W&B run; returns the folder or the address that it has."""
    import wandb

    has_only_rows = not content.tables
    with wandb.init(
        mode=mode,
        dir=parent.parent if mode == "offline" else None,  # None is the session's.
        project=session.project(),
        id=run.id,
        group=run.group,
        job_type=run.job_type,
        name=run.name,
        notes=run.notes,
        tags=run.tags,
        config=dict(run.config),
        reinit="create_new",
        resume="allow" if starts else None,  # None overwrites a run of this id.
        # Halves an offline run: no summary with every row, only the one below.
        settings={"x_server_side_derived_summary": has_only_rows and mode == "offline"},
    ) as opened:
        for axis, rows in content.rows.items():
            # Where the run was deleted there is nothing to resume.
            _log(opened, axis, rows, starts.get(axis, 0) if opened.resumed else 0)
        folder = pathlib.Path(opened.settings.sync_dir)
        if not has_only_rows:
            _log_tables(opened, content, folder if mode == "offline" else None)
        opened.summary.update(dict(content.summary))
        opened.finish(exit_code=int(run.is_failed))
    if mode == "online":
        shutil.rmtree(folder, ignore_errors=True)
        return {"url": opened.settings.project_url}
    for name in ("logs", "tmp", *(("files",) if has_only_rows else ())):
        shutil.rmtree(folder / name, ignore_errors=True)
    return {"folder": folder.name}


def _log(opened: Any, axis: str, rows: store.Rows, start: int) -> None:
    """Logs rows from one on, each metric drawn over their axis.

    Every metric is named: which of two patterns that fit one holds, W&B does not say.
    """
    opened.define_metric(axis)
    for name in rows:
        if name != axis:
            opened.define_metric(name, step_metric=axis)
    for i in range(start, len(rows[axis])):
        row = {name: column[i] for name, column in rows.items()}
        opened.log({k: value for k, value in row.items() if value is not None})


def _log_tables(opened: Any, content: Content, folder: pathlib.Path | None) -> None:
    """Logs tables and an artifact; offline, with their files in the run's own folder.

    W&B would name these files with their whole path, in which the user's name and
    machine may be. Relative ones are found by `wandb sync .` in the folder of runs,
    also when that was moved.
    """
    import wandb

    def log_artifact(artifact: Any) -> Any:
        for entry in artifact.manifest.entries.values():
            entry.local_path = os.path.relpath(entry.local_path, folder.parent)
        return type(opened).log_artifact(opened, artifact)

    with session.staging(str(folder) if folder else os.environ["WANDB_DATA_DIR"]):
        if folder:
            opened.log_artifact = log_artifact  # W&B logs tables by it, too.
        opened.log({k: _as_wandb(table) for k, table in content.tables.items()})
        if content.artifact:
            artifact = wandb.Artifact(content.artifact, type="configurations")
            for name, text in content.files.items():
                with artifact.new_file(name, encoding="utf-8") as file:
                    file.write(text)
            opened.log_artifact(artifact)


def _as_wandb(table: Table) -> Any:
    """Makes a W&B table, of numbers where cells are numbers.

    An estimate is two columns, and an interval three. A text such as a reason, or a
    number that has no interval, stands in the first of them.
    """
    import wandb

    columns, cells = [], []
    for i, (name, column) in enumerate(zip(table.names, table.columns, strict=True)):
        for suffix, part in _PARTS.get(column.kind, {"": ""}).items():
            columns.append(name + suffix)
            cells.append([_part(column, row[i], part) for row in table.rows])
    data = [list(row) for row in zip(*cells, strict=True)]
    return wandb.Table(columns=columns, data=data, allow_mixed_types=True)


_ESTIMATE = {"": "mean", " ±": "deviation"}
_INTERVAL = {"": "estimate", " low": "low", " high": "high"}
_PARTS = {
    "estimate": _ESTIMATE,
    "printed": _ESTIMATE,
    "interval": _INTERVAL,
    "correlation": _INTERVAL,
    "probability": _INTERVAL,
}  # By the kind of a column: attributes of its cells, by what their columns end in.


def _part(column: tables.Column, cell: tables.Cell, name: str) -> float | str | None:
    """A number, or a text without the name of the user's home."""
    if cell is None or isinstance(cell, str | int | float):
        is_first = name in ("", "mean", "estimate")
        found = privacy.scrubbed(cell) if isinstance(cell, str) else cell
        return found if is_first else None
    return getattr(cell, name) if name else tables.written(column, cell, True)
