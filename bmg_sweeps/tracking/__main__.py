"""The process that follows a launch: `python -m bmg_sweeps.tracking`, a plan on stdin.

It exports what changes until its standard input ends, because the launch is over or
dead; then everything, and answers with a line for the terminal.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time

from bmg_sweeps.records import files
from bmg_sweeps.tracking import exporting, follow

_SHARE = 0.25  # Looking and exporting take at most this share of the time.


def main() -> None:
    """Follows the records of a plan, then exports them all."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(19)
    # What W&B prints must not be taken for an answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    plan = json.loads(sys.stdin.buffer.readline())
    plan["chosen"] = [follow.from_json(one) for one in plan["chosen"]]
    storage = files.open_storage(plan.pop("storage"))
    is_over = threading.Event()
    threading.Thread(target=_wait, args=(is_over,), daemon=True).start()
    _follow(storage, plan, plan.pop("poll_seconds"), is_over)

    def say(line: str) -> None:
        with contextlib.suppress(OSError):  # The launch may be dead.
            print(line, file=answers, flush=True)

    say(exporting.export(storage, **plan, tell=lambda: say(follow.ALIVE)).line)


def _follow(
    storage: files.Storage, plan: dict, least: float, is_over: threading.Event
) -> None:
    """Exports what has changed, again and again; trouble is left to the last export."""
    with contextlib.suppress(Exception):
        import wandb  # noqa: F401  # Takes 2 s, which are no measure of the pauses.
    former, pause = None, least
    while not is_over.wait(pause):
        began = time.monotonic()
        with contextlib.suppress(Exception):
            former = exporting.update(storage, former=former, **plan)
        pause = max(least, (time.monotonic() - began) / _SHARE)


def _wait(is_over: threading.Event) -> None:
    """Reads standard input to its end: after the plan, nothing comes but that."""
    with contextlib.suppress(OSError):
        sys.stdin.buffer.read()
    is_over.set()


if __name__ == "__main__":
    main()
