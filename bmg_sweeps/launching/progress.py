"""How a launch is going: a live table, or plain lines where there is no terminal."""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence

import rich.console
import rich.live
import rich.table
import rich.text

from bmg_sweeps import formatting
from bmg_sweeps.analysis import estimates, readings, selection
from bmg_sweeps.launching import planning
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.sweep.point import Point

_STATUSES = ("done", "running", "missing", "failed", "diverged")
_LINE_SECONDS = 10.0  # Plain lines are at least so far apart.


@contextlib.contextmanager
def watch(
    storage: files.Storage,
    plan: planning.Plan,
    chosen: Sequence[Chosen],
    console: rich.console.Console,
) -> Iterator[None]:
    """Shows the points of a plan while the context is open.

    Args:
        storage: where the records are.
        plan: what is being run.
        chosen: its sweeps; the best so far of each is shown.
        console: where it is shown.

    Yields:
        Nothing.
    """
    over = threading.Event()
    view = _View(storage, plan, chosen)
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
    """What was last read of the records. Points that are over are not read again."""

    def __init__(self, storage, plan: planning.Plan, chosen) -> None:
        self._storage = storage
        self._plan = plan
        elsewhere = [p for p in plan.points if plan.statuses[p.id] == "running"]
        self._points = [*plan.to_run, *elsewhere]
        self._statuses = dict(plan.statuses) | {p.id: "missing" for p in plan.to_run}
        self._fractions: dict[str, float] = {}
        self._leaders = [_Leader(storage, one, plan) for one in chosen]
        self._look()
        self._trained_before = sum(self._fractions.values())
        self._began = time.monotonic()

    def draw_live(self, console: rich.console.Console, over: threading.Event) -> None:
        with rich.live.Live(self._table(), console=console, transient=False) as live:
            while not over.wait(self._pause()):
                self._look()
                live.update(self._table())
            self._look()
            live.update(self._table())

    def print_lines(self, console: rich.console.Console, over: threading.Event) -> None:
        said: list[str] = []
        while True:
            is_over = over.wait(max(_LINE_SECONDS, self._pause()))
            self._look()
            counts = ", ".join(f"{value} {name}" for name, value in self._cells())
            lines = [counts, *self._best()]
            for line in (line for line in lines if line not in said):
                console.print(line, highlight=False, markup=False, soft_wrap=True)
            said = lines
            if is_over:
                return

    def _pause(self) -> float:
        """Returns seconds until the next look, most of which are spent on nothing."""
        return max(1.0, 20 * self._read_seconds)

    def _look(self) -> None:
        """Reads what is new; where storage refuses, what was read last stands."""
        began = time.monotonic()
        with contextlib.suppress(files.StorageError):
            self._read()
        self._read_seconds = time.monotonic() - began

    def _read(self) -> None:
        open_ = self._open()
        records = store.scan(self._storage, [(p.trainer, p.id) for p in open_])
        for p in open_:
            record, stop = records[p.id], self._plan.stops[p.id]
            status = store.status(record, stop, self._plan.codes[p.trainer])
            if status in ("failed", "diverged") and record == self._plan.records[p.id]:
                status = "missing"  # It is tried again, and that has not begun.
            self._statuses[p.id] = status
            self._fractions[p.id] = min(
                (min(1.0, record.progress.get(a, 0) / n) for a, n in stop.items()),
                default=0.0,
            )
        for leader in self._leaders:
            leader.read(records)

    def _cells(self) -> list[tuple[str, str]]:
        counts = dict.fromkeys(_STATUSES, 0)
        for status in self._statuses.values():
            counts[status] += 1
        cells = [(name, str(counts[name])) for name in _STATUSES]
        hours = (time.monotonic() - self._began) / 3600
        # Points that go on from a checkpoint count with what this launch adds.
        trained = sum(self._fractions.values())
        rate = (trained - self._trained_before) / hours
        left = sum(1 - self._fractions.get(p.id, 0.0) for p in self._open())
        if rate > 0:
            cells.append(("points per hour", f"{rate:.0f}"))
        if rate > 0 and left > 0:
            cells.append(("left", formatting.duration(3600 * left / rate)))
        return cells

    def _open(self) -> list[Point]:
        """Returns the points that are not over."""
        return [
            p for p in self._points if self._statuses[p.id] in ("missing", "running")
        ]

    def _best(self) -> list[str]:
        lines = {one.name: one.line for one in self._leaders if one.line}
        if len(self._leaders) == 1:
            return [*lines.values()]
        return [f"{name}: {line}" for name, line in lines.items()]

    def _table(self) -> rich.table.Table:
        cells = self._cells()
        has_begun = sum(self._fractions.values()) > self._trained_before
        is_waiting = self._open() and not has_begun
        caption = "starting Ray, compiling" if is_waiting else "\n".join(self._best())
        table = rich.table.Table(caption=rich.text.Text(caption))
        for name, _ in cells:
            table.add_column(name, justify="right")
        table.add_row(*(value for _, value in cells))
        return table


class _Leader:
    """The best configuration so far of one sweep.

    For each point it keeps the metric at the budgets and not the rows. It reads rows
    only when a point has passed another budget.
    """

    def __init__(self, storage, chosen: Chosen, plan: planning.Plan) -> None:
        self.name = chosen.name
        self.line = ""
        self._storage = storage
        self._chosen = chosen
        self._axis = chosen.sweep.select.axis
        self._budgets: list[float] = []
        if self._axis in chosen.stop:
            amounts = selection.budgets(chosen.sweep.select, chosen.stop)
            self._budgets = amounts[self._axis]
        self._trained = {
            p.id: readings.Trained(p, store.Record(p.trainer, p.id), {})
            for p in chosen.points
        }
        self.read({i: plan.records[i] for i in self._trained})

    def read(self, records: dict[str, store.Record]) -> None:
        """Takes in what has been committed since."""
        moved = [
            (i, record)
            for i, record in records.items()
            if i in self._trained
            and self._passed(record) > self._passed(self._trained[i].record)
        ]
        for i, record in moved:
            self._trained[i] = self._reduced(self._trained[i].point, record)
        if moved:
            self.line = self._describe()

    def _passed(self, record: store.Record) -> int:
        reached = record.progress.get(self._axis, 0)
        return sum(reached >= budget for budget in self._budgets)

    def _reduced(self, point, record: store.Record) -> readings.Trained:
        metric = self._chosen.sweep.select.metric
        one = readings.load_one(self._storage, point, record)
        table = one.table(metric)
        passed = self._budgets[: self._passed(record)]
        values = [
            readings.value_at(table, self._axis, metric, budget) for budget in passed
        ]
        return readings.Trained(point, one.record, {self._axis: passed, metric: values})

    def _describe(self) -> str:
        sweep = self._chosen.sweep
        trained = list(self._trained.values())
        for budget in reversed(self._budgets):
            result = selection.select(sweep, trained, self._axis, [budget])
            if result.best:
                sign = 1 if sweep.select.mode == "max" else -1
                best = max(result.best, key=lambda s: sign * s.estimate.mean)
                return (
                    f"best at {formatting.shown_amount(budget)} {self._axis}: "
                    f"{grid.name(sweep, best.configuration.values)}, "
                    f"{sweep.select.metric} {estimates.short(best.estimate)}"
                )
        return ""
