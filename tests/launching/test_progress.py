"""What a launch shows of itself, from made-up records."""

import io
import threading

import numpy as np
import pytest
import rich.console

from bmg_sweeps.analysis import readings
from bmg_sweeps.launching import planning, progress
from bmg_sweeps.records import attempts, files, manifests, store
from bmg_sweeps.sweep import choices, grid
from bmg_sweeps.sweep.point import Point

SWEEP = grid.Sweep(
    title="Toy",
    trainer="toy",
    scales={},
    select=grid.Select(metric="reward", mode="max", budgets={"env_steps": 2}),
    methods={
        "A [b]": grid.Method({"kind": "a"}, tuned={"rate": "r"}),
        "B": grid.Method({"kind": "b"}, tuned={"rate": "r"}),
    },
)
STOP = {"env_steps": 100}
POINTS = tuple(
    Point("toy", {"kind": kind, "rate": 0.5, "seed": seed})
    for kind in "ab"
    for seed in (0, 1)
)


def commit(storage, p, env_steps, rewards, failure=None):
    attempts.begin(storage, store.read(storage, "toy", p.id)).commit(
        progress={"env_steps": env_steps[-1], "hours": 0.5},
        rows={"env_steps": env_steps, "reward": rewards},
        state=[np.zeros(2)],
        failure=failure,
        release=True,
    )


def view(storage):
    shown, plan, (chosen,) = view_of(storage, "toy")
    return shown, plan, chosen


def view_of(storage, *names):
    chosen = [choices.Chosen(name, SWEEP, POINTS, STOP) for name in names]
    plan = planning.plan(storage, chosen)
    return progress._View(storage, plan, chosen), plan, chosen


def test_points_are_counted_by_where_they_stand(storage):
    """One is done, one halfway, one has failed, one has not begun."""
    shown, *_ = view(storage)
    commit(storage, POINTS[0], [50, 100], [1, 2])
    commit(storage, POINTS[1], [50], [1])
    failure = manifests.Failure("failed", tries=2, type="E")
    commit(storage, POINTS[2], [50], [1], failure)
    shown._read()
    cells = dict(shown._cells())
    counts = {name: cells[name] for name in progress._STATUSES}
    assert counts == {
        "done": "1", "running": "0", "missing": "2", "failed": "1", "diverged": "0"
    }  # fmt: skip
    assert {"points per hour", "left"} <= cells.keys()


def test_nothing_is_left_once_all_points_are_over(storage):
    """Also where some have failed, which will not be trained to their end."""
    shown, *_ = view(storage)
    failure = manifests.Failure("failed", tries=2, type="E")
    commit(storage, POINTS[0], [50], [1], failure)
    for p in POINTS[1:]:
        commit(storage, p, [50, 100], [1, 2])
    shown._read()
    cells = dict(shown._cells())
    assert (cells["done"], cells["failed"]) == ("3", "1")
    assert "points per hour" in cells
    assert "left" not in cells


def test_a_point_that_is_tried_again_is_missing_until_it_begins(storage):
    """Its record says that it has failed, from before; then it is done after all."""
    failure = manifests.Failure("failed", tries=2, type="E")
    commit(storage, POINTS[0], [50], [1], failure)
    chosen = choices.Chosen("toy", SWEEP, POINTS, STOP)
    plan = planning.plan(storage, [chosen], retry=True)
    shown = progress._View(storage, plan, [chosen])
    assert dict(shown._cells())["missing"] == "4"
    commit(storage, POINTS[0], [50, 100], [1, 2])
    shown._read()
    cells = dict(shown._cells())
    assert (cells["done"], cells["failed"], cells["missing"]) == ("1", "0", "3")


def test_a_point_that_runs_elsewhere_is_running(storage):
    """Also while it commits nothing."""
    attempts.begin(storage, store.read(storage, "toy", POINTS[0].id))
    shown, *_ = view(storage)
    cells = dict(shown._cells())
    assert (cells["running"], cells["missing"]) == ("1", "3")


def test_the_best_so_far_is_of_the_furthest_budget_that_any_has_completed(storage):
    """A is complete at 50, then B at 100, where A's second seed is not yet."""
    shown, *_ = view(storage)
    assert shown._best() == []
    for p in POINTS[:2]:
        commit(storage, p, [50], [7])
    shown._read()
    assert shown._best() == ["best at 50 env_steps: A [b] r=0.5, reward 7 ± 0"]
    for p in (POINTS[0], *POINTS[2:]):
        commit(storage, p, [50, 100], [1, 3])
    shown._read()
    assert shown._best() == ["best at 100 env_steps: B r=0.5, reward 3 ± 0"]


def test_what_was_recorded_before_the_launch_counts(storage):
    """The best of an earlier launch is shown from the start."""
    for p in POINTS[2:]:
        commit(storage, p, [50, 100], [1, 3])
    shown, *_ = view(storage)
    assert shown._best() == ["best at 100 env_steps: B r=0.5, reward 3 ± 0"]


def test_rows_are_read_only_when_another_budget_is_passed(storage, monkeypatch):
    """Looking again and again at a thousand points must cost little."""
    shown, *_ = view(storage)
    loaded = []
    load_one = readings.load_one
    monkeypatch.setattr(
        readings, "load_one", lambda *a: loaded.append(a[1].id) or load_one(*a)
    )
    commit(storage, POINTS[0], [10, 49], [1, 2])
    shown._read()
    assert loaded == []
    commit(storage, POINTS[0], [10, 49, 60], [1, 2, 3])
    shown._read()
    shown._read()
    assert loaded == [POINTS[0].id]


def test_of_several_sweeps_each_best_has_a_name(storage):
    for p in POINTS[2:]:
        commit(storage, p, [50, 100], [1, 3])
    shown, *_ = view_of(storage, "toy", "other")
    best = "best at 100 env_steps: B r=0.5, reward 3 ± 0"
    assert shown._best() == [f"toy: {best}", f"other: {best}"]


def test_a_pipe_sees_only_what_is_new(storage, monkeypatch):
    """Of ten sweeps the best of one changes while the points count on."""
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    monkeypatch.setattr(progress._View, "_pause", lambda shown: 0.0)
    for p in POINTS[:2]:
        commit(storage, p, [50, 100], [1, 3])
    shown, *_ = view_of(storage, "toy", "other")
    looks = iter(POINTS[2:])
    over = threading.Event()

    def read():
        p = next(looks, None)
        commit(storage, p, [50], [1]) if p else over.set()
        progress._View._read(shown)

    monkeypatch.setattr(shown, "_read", read)
    console = rich.console.Console(file=io.StringIO(), width=120, _environ={})
    shown.print_lines(console, over)
    output = console.file.getvalue()
    assert output.count("toy: best") == output.count("other: best") == 1
    assert output.count("2 done") > 1


def test_a_storage_that_refuses_leaves_what_was_seen(storage, monkeypatch):
    """And no traceback: the next look may be answered again."""
    commit(storage, POINTS[0], [50, 100], [1, 2])
    shown, *_ = view(storage)
    scan = store.scan

    def refuse(*_):
        raise files.StorageError("no answer")

    monkeypatch.setattr(store, "scan", refuse)
    shown._look()
    assert dict(shown._cells())["done"] == "1"
    monkeypatch.setattr(store, "scan", scan)
    commit(storage, POINTS[1], [50, 100], [1, 2])
    shown._look()
    assert dict(shown._cells())["done"] == "2"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_sees_a_table_and_a_pipe_sees_lines(storage, is_terminal):
    """Both with counts and the best, and names taken literally."""
    _, plan, chosen = view(storage)
    console = rich.console.Console(
        file=io.StringIO(), force_terminal=is_terminal, width=120, _environ={}
    )
    with progress.watch(storage, plan, [chosen], console):
        for p in POINTS[:2]:
            commit(storage, p, [50, 100], [1, 3])
    output = console.file.getvalue()
    assert "A [b] r=0.5, reward 3 ± 0" in output
    assert ("\x1b[" in output) == is_terminal
    assert ("2 done" in output) == (not is_terminal)
