"""Exports what has changed of some sweeps, and says in one line what came of it."""

import collections
import pathlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bmg_sweeps import errors, formatting
from bmg_sweeps.records import files
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.tracking import memory, points, runs, session, sweeps
from bmg_sweeps.tracking.runs import Run

PATIENCE_SECONDS = 90.0  # With another process that exports; a lost one takes 60.

_Outcome = Mapping[str, Any] | Exception


class Exported(NamedTuple):
    """What came of an export."""

    line: str  # For the terminal.
    has_failed: bool  # Whether a run that there should be was not written.


def export(
    storage: files.Storage,
    chosen: Sequence[Chosen],
    mode: str,
    *,
    with_sweeps: bool = True,
    tell: Callable[[], None] = lambda: None,
) -> Exported:
    """Makes the W&B runs of all points that have rows, or brings them up to date.

    Args:
        chosen: the sweeps; a point that several use is one run, tagged with each.
        mode: "auto", "online", "offline" or "off".
        with_sweeps: whether each sweep has a run, too.
        tell: is called whenever a run is written, or another process waited for.

    Returns:
        A line that says how many runs are where, how to upload those that are offline,
        how many failed and why the first did; and whether any did. W&B's troubles are
        told here and never raised.
    """
    if mode == "off":
        return Exported("W&B: off.", False)
    try:
        made = find(storage, chosen, with_sweeps)
        if not made:
            return Exported("W&B: no point has rows yet.", False)
        with session.opened():
            chosen_mode = session.choose_mode(mode)
            if chosen_mode == "off":
                return Exported("W&B: off, by your W&B settings.", False)
            with memory.lease(storage, PATIENCE_SECONDS, tell) as prolong:
                outcomes = write(storage, made, (mode, chosen_mode), prolong, tell)
    except Exception as error:
        line = f"W&B: nothing exported ({errors.described(error)})."
        return Exported(line, True)
    has_failed = any(isinstance(one, Exception) for one in outcomes)
    return Exported(_closing_line(storage, len(made), outcomes), has_failed)


def update(
    storage: files.Storage,
    chosen: Sequence[Chosen],
    mode: str,
    former: str | None,
    *,
    with_sweeps: bool = True,
) -> str | None:
    """Exports what has changed while points train, as far as anybody may look at it.

    Online that is all. Offline it is each point that is over, once; the sweeps' own
    runs are left to the end.

    Args:
        chosen: the sweeps.
        mode: as `export` takes it.
        former: what the last call returned.
        with_sweeps: whether each sweep has a run, too.

    Returns:
        The mode that W&B was last opened in, or None.
    """
    if former == "off":
        return former
    made = [run for run in find(storage, chosen, with_sweeps) if not run.is_online]
    if former == "offline":
        made = _final(storage, made)
    if not made:
        return former
    with session.opened():
        now = session.choose_mode(mode)
        if now == "offline":
            made = _final(storage, made)
        if made and now != "off":
            with memory.lease(storage, 0.0, lambda: None) as prolong:
                write(storage, made, (mode, now), prolong, lambda: None)
    return now


def find(storage, chosen: Sequence[Chosen], with_sweeps: bool) -> list[Run]:
    """Describes all runs, points before sweeps."""
    records = points.read(storage, chosen)
    made = points.runs(storage, chosen, records)
    if with_sweeps and made:
        described = [sweeps.describe(storage, one, records) for one in chosen]
        made += [run for run in described if run]
    return made


def write(
    storage: files.Storage,
    made: Sequence[Run],
    modes: tuple[str, str],
    prolong: Callable[[], None],
    tell: Callable[[], None],
) -> list[_Outcome]:
    """Exports one run after the other; what fails of one does not end the others.

    Args:
        made: the runs.
        modes: what was asked for, and what it means now. Where the network is lost on
            the way, "auto" goes on offline.
        prolong: renews the lease.
        tell: is called after each run.

    Returns:
        What is remembered of each run, or why it failed; shorter where the server is
        lost.
    """
    asked, mode = modes
    outcomes: list[_Outcome] = []
    for run in made:
        prolong()
        outcome = _try(storage, run, mode)
        if isinstance(outcome, Exception) and mode == "online":
            is_lost = not session.is_reachable()
            if is_lost and asked == "auto":
                mode = "offline"
                outcome = _try(storage, run, mode)
            elif is_lost:
                return [*outcomes, outcome]
        outcomes.append(outcome)
        tell()
    return outcomes


def _try(storage: files.Storage, run: Run, mode: str) -> _Outcome:
    try:
        return runs.export(storage, run, mode)
    except Exception as error:
        return error


def _final(storage: files.Storage, made: Sequence[Run]) -> list[Run]:
    """Leaves out what is going to change, and what is offline as it is."""
    return [
        run
        for run in made
        if not run.is_running
        and run.job_type != sweeps.JOB_TYPE
        and not run.is_current(storage, "offline")
    ]


def _closing_line(storage, number: int, outcomes: Sequence[_Outcome]) -> str:
    """Says where the runs are, and what went wrong."""
    made = [one for one in outcomes if one and not isinstance(one, Exception)]
    problems = [one for one in outcomes if isinstance(one, Exception)]
    online = [one for one in made if one["mode"] == "online"]
    parts = []
    if online:
        count = formatting.counted(len(online), "online run")
        parts.append(f"{count} at {online[-1]['url']}")
    if len(made) > len(online):
        folder = _as_typed(memory.folder(storage))
        count = formatting.counted(len(made) - len(online), "offline run")
        parts.append(f"{count}; upload with: (cd {folder} && wandb sync .)")
    kinds = collections.Counter(errors.described(problem) for problem in problems)
    for kind, times in kinds.items():
        left = number - len(outcomes) if kind == errors.described(problems[-1]) else 0
        count = formatting.counted(times + left, "run")
        parts.append(f"{count} not exported ({kind})")
    return "W&B: " + ("; ".join(parts) or "no point has rows yet.")


def _as_typed(folder: pathlib.Path) -> str:
    """Writes a folder as an argument, relative to where the user is if below it."""
    here = pathlib.Path.cwd()
    path = folder.relative_to(here) if folder.is_relative_to(here) else folder
    return shlex.quote(str(path))
