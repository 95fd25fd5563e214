"""How a launch is going: a live table, or plain lines where there is no terminal."""

import contextlib
import threading
import time
from collections.abc import Iterator

import rich.console
import rich.live
import rich.table

from bmg_sweeps import files, planning, store

_STATUSES = ("done", "running", "missing", "failed", "diverged")


@contextlib.contextmanager
def watch(
    storage: files.Storage, plan: planning.Plan, console: rich.console.Console
) -> Iterator[None]:
    """Shows the points of a plan while the context is open.

    Args:
        storage: of the records.
        plan: what is being run.
        console: where to.

    Yields:
        Nothing.
    """
    over = threading.Event()
    view = _View(storage, plan)
    thread = threading.Thread(
        target=view.draw_live if console.is_terminal else view.print_lines,
        args=(console, over),
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class _View:
    """What was last read of the records; those that are over are not read again."""

    def __init__(self, storage: files.Storage, plan: planning.Plan) -> None:
        self._storage = storage
        self._plan = plan
        elsewhere = [p for p in plan.points if plan.statuses[p.id] == "running"]
        self._points = [*plan.to_run, *elsewhere]
        self._statuses = dict(plan.statuses) | {p.id: "missing" for p in plan.to_run}
        self._fractions: dict[str, float] = {}
        self._read()
        self._trained_before = sum(self._fractions.values())
        self._began = time.monotonic()

    def draw_live(self, console: rich.console.Console, over: threading.Event) -> None:
        with rich.live.Live(self._table(), console=console, transient=False) as live:
            while not over.wait(self._pause()):
                self._read()
                live.update(self._table())
            self._read()
            live.update(self._table())

    def print_lines(self, console: rich.console.Console, over: threading.Event) -> None:
        said = None
        while True:
            is_over = over.wait(max(10.0, self._pause()))
            self._read()
            line = ", ".join(f"{value} {name}" for name, value in self._cells())
            if line != said:
                console.print(line, highlight=False, soft_wrap=True)
            said = line
            if is_over:
                return

    def _pause(self) -> float:
        """Seconds to the next look: looking at thousands of records takes some."""
        return max(1.0, 20 * self._read_seconds)

    def _read(self) -> None:
        began = time.monotonic()
        for p in self._points:
            if self._statuses[p.id] in ("missing", "running"):
                record = store.read(self._storage, p.trainer, p.id)
                stop = self._plan.stops[p.id]
                self._statuses[p.id] = store.status(record, stop, self._plan.code)
                self._fractions[p.id] = min(
                    (min(1.0, record.progress.get(a, 0) / n) for a, n in stop.items()),
                    default=0.0,
                )
        self._read_seconds = time.monotonic() - began

    def _cells(self) -> list[tuple[str, str]]:
        counts = dict.fromkeys(_STATUSES, 0)
        for status in self._statuses.values():
            counts[status] += 1
        cells = [(name, str(counts[name])) for name in _STATUSES]
        hours = (time.monotonic() - self._began) / 3600
        # Points that go on from a checkpoint count with what this launch adds.
        trained = sum(self._fractions.values())
        rate = (trained - self._trained_before) / hours
        if rate > 0:
            left = (len(self._points) - trained) / rate
            cells.append(("points per hour", f"{rate:.0f}"))
            cells.append(("left", _duration(left)))
        return cells

    def _table(self) -> rich.table.Table:
        cells = self._cells()
        has_ended = "left" in dict(cells)
        caption = None if has_ended else "starting Ray, then compiling"
        table = rich.table.Table(caption=caption)
        for name, _ in cells:
            table.add_column(name, justify="right")
        table.add_row(*(value for _, value in cells))
        return table


def _duration(hours: float) -> str:
    minutes = round(hours * 60)
    return (
        f"{minutes // 60} h {minutes % 60:02d} min"
        if minutes >= 60
        else f"{minutes} min"
    )
