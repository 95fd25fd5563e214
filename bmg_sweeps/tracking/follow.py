"""Exports the records while a launch makes them, from a process of its own.

W&B has threads, a service process, an environment and crashes, none of which shall
reach the launch. So a child process follows the records, at low priority, and the
launch does no more than start it and, when all is done, ask for the last export by
closing its standard input. A child that dies or hangs costs some seconds at the end;
`track` makes up for it, because all is in the records.
"""

import contextlib
import dataclasses
import json
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from bmg_sweeps import paths
from bmg_sweeps.records import files
from bmg_sweeps.sweep import choices, loading
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.sweep.point import resolve

POLL_SECONDS = 15.0  # Between two looks at the records, at least.
SILENCE_SECONDS = (
    90.0  # A child that is asked to end speaks more often; an online run takes less.
)
ALIVE = "."  # What the child says while it works on the last export.

_END_SECONDS = 5.0  # For a child that has answered.


class Follower:
    """The child process, as the launch sees it."""

    def __init__(self, child: subprocess.Popen, plan: bytes, command: str) -> None:
        """Use `following`."""
        self._child = child
        self._command = command
        self._is_over = threading.Event()
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._speak, args=(plan,), daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()

    def finish(self) -> str:
        """Asks for the last export, and waits for it.

        Returns:
            One line for the terminal, as that of `export`.
        """
        self._is_over.set()
        while True:
            try:
                answer = self._answers.get(timeout=SILENCE_SECONDS)
            except queue.Empty:
                return self._trouble("does not answer")
            if not answer:
                return self._trouble("ended early")
            if answer.strip() != ALIVE:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(_END_SECONDS)
                return answer.strip()

    def kill(self) -> None:
        """Ends the child, if it has not ended, and W&B's own process with it."""
        self._is_over.set()
        with contextlib.suppress(OSError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()

    def _trouble(self, what: str) -> str:
        return f"W&B: the export {what}; make up for it with: {self._command}"

    def _speak(self, plan: bytes) -> None:
        """Says what to follow, and by the end of the stream, that it is over."""
        with contextlib.suppress(OSError), self._child.stdin as stream:
            stream.buffer.write(plan)
            stream.flush()
            self._is_over.wait()

    def _listen(self) -> None:
        """Passes lines on; an empty one says that there will be none."""
        for line in self._child.stdout:
            self._answers.put(line)
        self._answers.put("")


class _Nobody:
    """What follows where W&B is off."""

    def finish(self) -> str:
        return "W&B: off."


@contextlib.contextmanager
def following(
    storage: files.Storage,
    chosen: Sequence[Chosen],
    mode: str,
    *,
    with_sweeps: bool = True,
) -> Iterator[Follower | _Nobody]:
    """Exports while the context is open.

    Args:
        chosen: the sweeps.
        mode: "auto", "online", "offline" or "off".
        with_sweeps: whether each sweep has a run, too.

    Yields:
        What ends it with a line for the terminal: call `finish` before leaving.
    """
    words = ["track", *(one.name for one in chosen), *chosen[0].choice.arguments()]
    words += ["--storage", storage.uri]
    command = "python -m bmg_sweeps " + shlex.join(words)
    plan = {"storage": storage.uri, "mode": mode}
    plan["chosen"] = [_as_json(one) for one in chosen]
    plan |= {"with_sweeps": with_sweeps, "poll_seconds": POLL_SECONDS}
    if mode == "off":
        yield _Nobody()
        return
    follower = Follower(_start(), json.dumps(plan).encode() + b"\n", command)
    try:
        yield follower
    finally:
        follower.kill()


def _as_json(one: Chosen) -> dict[str, Any]:
    """Writes what `from_json` reads: the sweep by its name, the points by value."""
    points = [[p.trainer, p.values] for p in one.points]
    choice = dataclasses.asdict(one.choice)
    return {"name": one.name, "points": points, "stop": one.stop, "choice": choice}


def from_json(data: dict[str, Any]) -> Chosen:
    """Rebuilds a chosen sweep in the child process."""
    choice = data["choice"]
    return Chosen(
        name=data["name"],
        sweep=loading.load_sweep(data["name"]),
        points=tuple(resolve(t, v) for t, v in data["points"]),
        stop=data["stop"],
        choice=choices.Choice(
            **choice | {key: tuple(choice[key]) for key in ("gin", "seeds")}
        ),
    )


def _start() -> subprocess.Popen:
    """Starts the child, out of reach of the terminal's Ctrl-C."""
    path = os.pathsep.join([str(paths.ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "bmg_sweeps.tracking"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        env=os.environ | {"PYTHONPATH": path.rstrip(os.pathsep)},
        start_new_session=True,
    )
