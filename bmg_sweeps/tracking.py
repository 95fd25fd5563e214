"""Records → W&B runs: one for each point that has rows, after a launch or any time.

The record is the truth and the run a copy of it. What has been copied is remembered in
the storage, `wandb/exported/<point id>.json`, so that a second export copies only what
changed: offline, the point's folder is written anew in place of the former one; online,
the run is resumed and given the rows that it lacks. Delete these files to have
everything copied again.

A run holds what the record holds and nothing of the machine: no code, requirements,
console output, command line, environment, host or user name, paths or git state. W&B's
own logs name some of them; they are deleted. W&B is imported only where it is used,
because that takes 2 s.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bmg_sweeps import errors, files, grid, paths, planning, store
from bmg_sweeps.planning import Chosen
from bmg_sweeps.point import Point

PROJECT = "bmg-sweeps"  # Unless the user's W&B settings name another.
TRIES = 3  # Points in a row that may fail before the others are not tried.

_NETWORK_SECONDS = 5.0
_ONLINE_SECONDS = 60.0  # For a run to begin, and for its upload to end.
# Of the user's W&B environment, what says who they are to which server, and how to
# reach it. The rest is about other runs: ids, names, notes, folders, resuming.
_KEPT = ("API_KEY", "IDENTITY_TOKEN_FILE", "CREDENTIALS_FILE", "CONFIG_DIR", "MODE")
_KEPT += ("BASE_URL", "APP_URL", "ENTITY", "PROJECT", "INSECURE_DISABLE_SSL")
_SETTINGS = {
    "console": "off",
    "disable_code": True,
    "disable_git": True,
    "disable_job_creation": True,
    "docker": "",
    "email": "",
    "finish_timeout": _ONLINE_SECONDS,
    "finish_timeout_raises": True,
    "host": "",
    "init_timeout": _ONLINE_SECONDS,
    "label_disable": True,
    "program": "",
    "quiet": True,
    "sagemaker_disable": True,
    "save_code": False,
    "silent": True,
    "symlink": False,
    "use_dot_wandb": False,
    "username": "",
    "x_disable_machine_info": True,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_save_requirements": False,
}


def export(storage: files.Storage, chosen: Sequence[Chosen], mode: str) -> str:
    """Makes the W&B runs of all points that have rows, or brings them up to date.

    Args:
        storage: of the records.
        chosen: the sweeps; a point that several use is one run, tagged with each.
        mode: "auto", "online", "offline" or "off".

    Returns:
        One line for the terminal: how many runs are where, how to upload those that are
        offline, how many points failed and why the first did. W&B's troubles are told
        here and never raised.
    """
    if mode == "off":
        return "W&B: off."
    runs = _runs(storage, chosen)
    if not runs:
        return "W&B: no point has rows yet."
    try:
        with _session():
            mode = choose_mode(mode)
            if mode == "off":
                return "W&B: off, by your W&B settings."
            outcomes = _export_all(storage, runs, mode)
    except Exception as error:
        return f"W&B: nothing exported ({errors.described(error)})."
    return _closing_line(storage, len(runs), outcomes)


def choose_mode(mode: str) -> str:
    """Decides what "auto" means here and now.

    Args:
        mode: as `export` takes it.

    Returns:
        The same, unless it is "auto": then what the user's W&B settings say, if they
        are not for online; else "online" with a login and a network, "offline" without.
    """
    if mode != "auto":
        return mode
    import wandb

    settings = wandb.setup().settings
    if settings.mode == "disabled":
        return "off"
    if settings.mode in ("offline", "dryrun"):
        return "offline"
    is_online = _has_login(settings.base_url) and _is_reachable(settings.base_url)
    return "online" if is_online else "offline"


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Run:
    """What W&B is told of a point, but for its rows."""

    point: Point
    configuration: str  # Its id.
    method: str
    record: store.Record
    remembered: Mapping[str, Any]  # Of the last export.
    axis: str
    name: str
    notes: str
    tags: tuple[str, ...]
    status: str
    failure: str | None

    @property
    def digest(self) -> str:
        """Changes whenever the run must."""
        rows = self.record.manifest["rows"]["sha256"]
        return _digest([rows, self.tags, self.status, self.failure])


def _runs(storage: files.Storage, chosen: Sequence[Chosen]) -> list[_Run]:
    """Describes the run of each point that may have rows, in the sweeps' order."""
    uses: dict[str, list[Chosen]] = {}
    for one in chosen:
        for point in one.points:
            uses.setdefault(point.id, []).append(one)
    points = {point.id: point for one in chosen for point in one.points}
    records = {i: store.read(storage, p.trainer, i) for i, p in points.items()}
    return [
        _describe(storage, points[i], record, uses[i])
        for i, record in records.items()
        if record.manifest.get("rows") and not record.damage
    ]


def _describe(storage, point, record, uses) -> _Run:
    """The first sweep that uses a point decides on its name, notes, method and axis."""
    name, sweep = uses[0].name, uses[0].sweep
    if os.path.isabs(name):
        name = os.path.basename(name)  # The rest tells of the machine.
    configuration = point.configuration(sweep.select.over)
    method = grid.method_of(sweep, point.values)
    over = " ".join(f"{f}={point.values[f]}" for f in sweep.select.over)
    stop = planning.longest(*(one.stop for one in uses))
    stems = {pathlib.Path(one.name).stem[:64] for one in uses}
    remembered = _remembered(storage, point.id)
    return _Run(
        point=point,
        configuration=configuration.id,
        method=method,
        record=record,
        remembered=remembered,
        axis=sweep.select.axis,
        name=f"{method}: {grid.describe(sweep, configuration.values)} {over}"[:128],
        notes="python -m bmg_sweeps "
        + shlex.join(["run", name, "--point", point.id, *uses[0].choice.arguments()]),
        tags=tuple(sorted(stems | set(remembered.get("tags", ())))),
        status=store.status(record, stop),
        failure=_failure(record),
    )


def _failure(record: store.Record) -> str | None:
    """Says why the last attempt ended early, without the name of the user's home."""
    if not record.failure:
        return None
    text = "{kind}: {type}: {message}".format(**record.failure)
    return text.replace(str(pathlib.Path.home()), "~")


def _export_all(storage, runs, mode) -> list[Mapping[str, Any] | Exception]:
    """Exports one run after the other, until too many in a row fail."""
    outcomes: list[Mapping[str, Any] | Exception] = []
    for run in runs:
        try:
            outcomes.append(_export(storage, run, mode))
        except Exception as error:
            outcomes.append(error)
        last = outcomes[-TRIES:]
        if len(last) == TRIES and all(isinstance(one, Exception) for one in last):
            break
    return outcomes


def _export(storage: files.Storage, run: _Run, mode: str) -> Mapping[str, Any]:
    """Makes one run as its record is; returns what is remembered of it, if any."""
    folder = _folder(storage)
    if _is_current(run, mode, folder):
        return run.remembered
    rows = store.rows(storage, run.record)
    number = len(next(iter(rows.values()), ()))
    if not number:
        return {}
    start = _rows_online(run, rows) if mode == "online" else 0
    kept = run.remembered.get("folder")
    try:
        made = _write(run, rows, range(start, number), mode, folder.parent)
        kept = made.get("folder")
    finally:
        _remove_folders(folder, run.point.id, kept)
    made |= {"mode": mode, "rows": number, "rows_digest": _digest(rows)}
    made |= {"digest": run.digest, "tags": run.tags}
    storage.replace(json.dumps(made, indent=1).encode(), *_memory(run.point.id))
    return made


def _write(run: _Run, rows, places, mode, parent) -> dict[str, Any]:
    """Writes rows to a W&B run; returns the folder or the address that it has."""
    import wandb

    marks = {"configuration": run.configuration, "method": run.method}
    with wandb.init(
        mode=mode,
        dir=parent if mode == "offline" else None,  # None is the session's.
        project=wandb.setup().settings.project or PROJECT,
        id=run.point.id,
        group=run.configuration,
        job_type=run.point.trainer,
        name=run.name,
        notes=run.notes,
        tags=run.tags,
        config=run.point.values | marks,
        reinit="create_new",
        resume="allow" if places.start else None,  # None overwrites a run of this id.
        # Halves an offline run: no summary with every row, only the one below.
        settings={"x_server_side_derived_summary": mode == "offline"},
    ) as opened:
        opened.define_metric(run.axis)
        opened.define_metric("*", step_metric=run.axis)
        for i in places:
            row = {name: column[i] for name, column in rows.items()}
            opened.log({k: value for k, value in row.items() if value is not None})
        # Left to itself, W&B shows the last number of a column that ends in none.
        summary = {name: column[-1] for name, column in rows.items()}
        summary |= {"status": run.status, "failure": run.failure or ""}
        opened.summary.update(summary)
        opened.finish(exit_code=int(run.status in ("failed", "diverged")))
    folder = pathlib.Path(opened.settings.sync_dir)
    if mode == "online":
        shutil.rmtree(folder, ignore_errors=True)
        return {"url": opened.settings.project_url}
    for name in ("files", "logs", "tmp"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return {"folder": folder.name}


def _is_current(run: _Run, mode: str, folder: pathlib.Path) -> bool:
    """Whether nothing has changed; what is online need not be written offline."""
    if run.remembered.get("digest") != run.digest:
        return False
    if run.remembered["mode"] == "online":
        return True
    return mode == "offline" and (folder / run.remembered["folder"]).is_dir()


def _rows_online(run: _Run, rows: store.Rows) -> int:
    """Counts the rows that the online run has; 0 where it must be overwritten."""
    if run.remembered.get("mode") != "online":
        return 0
    number = run.remembered["rows"]
    before = {name: column[:number] for name, column in rows.items()}
    return number if _digest(before) == run.remembered["rows_digest"] else 0


def _folder(storage: files.Storage) -> pathlib.Path:
    """The folder of offline runs: W&B reads and writes only local ones."""
    if storage.is_local:
        return pathlib.Path(storage.root, "wandb")
    return paths.cache() / _digest(storage.uri)[:12] / "wandb"


def _remove_folders(folder: pathlib.Path, point_id: str, kept: str | None) -> None:
    for path in folder.glob(f"offline-run-*-{point_id}*"):
        if path.name != kept:
            shutil.rmtree(path)


def _memory(point_id: str) -> tuple[str, ...]:
    return "wandb", "exported", f"{point_id}.json"


def _remembered(storage: files.Storage, point_id: str) -> Mapping[str, Any]:
    try:
        return json.loads(storage.read(*_memory(point_id)))
    except (FileNotFoundError, ValueError):
        return {}


def _closing_line(storage, number, outcomes) -> str:
    """Says where the runs are, and what went wrong."""
    runs = [one for one in outcomes if one and not isinstance(one, Exception)]
    problems = [one for one in outcomes if isinstance(one, Exception)]
    online = [one for one in runs if one["mode"] == "online"]
    parts = []
    if online:
        parts.append(f"{_count(len(online), 'online run')} at {online[-1]['url']}")
    if len(runs) > len(online):
        folder = _as_typed(_folder(storage))
        count = _count(len(runs) - len(online), "offline run")
        parts.append(f"{count} in {folder}; upload with: wandb sync {folder}")
    if problems:
        count = _count(number - len(outcomes) + len(problems), "point")
        parts.append(f"{count} not exported ({errors.described(problems[0])})")
    return "W&B: " + ("; ".join(parts) or "no point has rows yet.")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _as_typed(folder: pathlib.Path) -> str:
    """Writes a folder as an argument, relative to where the user is if below it."""
    here = pathlib.Path.cwd()
    path = folder.relative_to(here) if folder.is_relative_to(here) else folder
    return shlex.quote(str(path))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _has_login(base_url: str) -> bool:
    """Whether W&B finds credentials: in the environment, .netrc or its settings."""
    from wandb.sdk.lib import wbauth

    try:
        credentials = wbauth.authenticate_session(
            host=base_url, source="export", prompt=False, update_session=False
        )
    except Exception:  # Credentials of a wrong form do not log anyone in.
        return False
    return credentials is not None


def _is_reachable(base_url: str) -> bool:
    """Whether the server answers, if only with an error; through the user's proxy."""
    try:
        urllib.request.urlopen(base_url, timeout=_NETWORK_SECONDS).close()
    except urllib.error.HTTPError:
        return True
    except Exception:
        return False
    return True


@contextlib.contextmanager
def _session() -> Iterator[None]:
    """Opens W&B with this module's settings, and closes it without a trace.

    W&B reads its environment once, when it starts its service process; so both last as
    long as the export, and neither a program around it nor the next export sees them.
    """
    before = {k: v for k, v in os.environ.items() if k.startswith("WANDB_")}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        ours = {k: before[k] for k in (f"WANDB_{n}" for n in _KEPT) if k in before}
        ours |= {f"WANDB_{n}_DIR": scratch for n in ("CACHE", "DATA", "ARTIFACT")}
        ours |= {"WANDB_DIR": scratch, "WANDB_SILENT": "true", "WANDB_HOST": ""}
        ours |= {"WANDB_DISABLE_GIT": "true", "WANDB_ERROR_REPORTING": "false"}
        try:
            _replace_environment(ours)
            import wandb

            wandb.teardown()  # Settings of a program around it would hold.
            wandb.setup(settings=wandb.Settings(**_SETTINGS))
            yield
        finally:
            with contextlib.suppress(Exception, SystemExit):
                wandb.teardown()
            _replace_environment(before)


def _replace_environment(variables: Mapping[str, str]) -> None:
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        del os.environ[name]
    os.environ.update(variables)
