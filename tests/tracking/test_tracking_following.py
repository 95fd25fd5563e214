"""Following a launch: exported as it goes, and a child process that may do anything."""

import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
import tracked

from bmg_sweeps import paths, tracking
from bmg_sweeps.records import store
from bmg_sweeps.tracking import exporting, follow, memory, sweeps


@pytest.fixture(autouse=True)
def _machine(tmp_path, monkeypatch):
    tracked.plant(tmp_path, monkeypatch)
    monkeypatch.setattr(follow, "POLL_SECONDS", 0.2)


@pytest.fixture
def chosen():
    return tracked.figure_2()


def test_a_point_is_written_when_it_is_over_and_all_of_them_at_the_end(storage, chosen):
    running, over, late = chosen.points[:3]
    with tracking.following(storage, [chosen], "offline") as follower:
        tracked.commit(storage, running, 2, release=False)
        tracked.commit(storage, over, 5)
        _wait_for(lambda: tracked.folders(storage) == [over.id])
        tracked.commit(storage, late, 3)
        _wait_for(lambda: len(tracked.folders(storage)) == 2)
        assert running.id not in tracked.folders(storage)
        line = follower.finish()
    assert line.startswith("W&B: 4 offline runs; upload with: ")
    ids = [running.id, over.id, late.id, sweeps.run_id(storage, chosen)]
    assert tracked.folders(storage) == sorted(ids)
    for p, number in ((running, 2), (over, 5), (late, 3)):
        assert _steps(storage, p) == tracked.steps(number)


def test_the_child_gives_way_to_the_points_and_survives_ctrl_c(storage, chosen):
    with tracking.following(storage, [chosen], "offline") as follower:
        tracked.commit(storage, chosen.points[0], 2)
        _wait_for(lambda: tracked.folders(storage))
        child = psutil.Process(follower._child.pid)
        assert child.nice() == 19
        assert os.getpgid(child.pid) != os.getpgid(0)  # Of which Ctrl-C tells all.
        child.send_signal(signal.SIGINT)
        assert follower.finish().startswith("W&B: 2 offline runs")
        assert follower._child.returncode == 0


def test_a_child_that_is_killed_costs_one_line_and_no_row(storage, chosen):
    """Killed while it writes: what it began is written whole the next time."""
    for p in chosen.points[:4]:
        tracked.commit(storage, p, 800)
    with tracking.following(storage, [chosen], "offline") as follower:
        _wait_for(lambda: len(tracked.folders(storage)) >= 2)
        follower._child.send_signal(signal.SIGKILL)
        line = follower.finish()
    assert line == (
        "W&B: the export ended early; make up for it with: python -m bmg_sweeps track "
        f"figure_2 --scale smoke --storage {storage.uri}"
    )
    remembered = os.listdir(storage.path("wandb", "exported"))
    assert len(remembered) < len(tracked.folders(storage))  # One was on its way.
    with tracking.following(storage, [chosen], "offline") as follower:
        assert follower.finish().startswith("W&B: 5 offline runs")
    points = chosen.points[:4]
    ids = [*(p.id for p in points), sweeps.run_id(storage, chosen)]
    assert tracked.folders(storage) == sorted(ids)
    for p in points:
        assert _steps(storage, p) == tracked.steps(800)


def test_a_child_that_hangs_is_not_waited_for(storage, chosen, monkeypatch):
    monkeypatch.setattr(follow, "SILENCE_SECONDS", 0.5)
    began = time.monotonic()
    with tracking.following(storage, [chosen], "offline") as follower:
        follower._child.send_signal(signal.SIGSTOP)
        line = follower.finish()
    assert line.startswith("W&B: the export does not answer; make up for it with: ")
    assert time.monotonic() - began < 5
    assert follower._child.returncode == -signal.SIGKILL


def test_a_launch_that_breaks_leaves_no_child(storage, chosen):
    with (
        contextlib.suppress(KeyboardInterrupt),
        tracking.following(storage, [chosen], "offline") as follower,
    ):
        raise KeyboardInterrupt
    assert follower._child.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise ImportError('broken')", "nothing exported (ImportError: broken)."),
        ("import os; os._exit(3)", "the export ended early; make up for it with: "),
    ],
)
def test_a_broken_wandb_costs_one_line(
    code, expected, storage, chosen, tmp_path, monkeypatch
):
    (tmp_path / "broken" / "wandb").mkdir(parents=True)
    (tmp_path / "broken" / "wandb" / "__init__.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    tracked.commit(storage, chosen.points[0], 2)
    with tracking.following(storage, [chosen], "offline") as follower:
        assert follower.finish().startswith(f"W&B: {expected}")


def test_a_launch_that_is_killed_is_exported_nevertheless(storage, chosen):
    first, second = chosen.points[:2]
    tracked.commit(storage, first, 2)
    code = """if True:
        import os, signal, sys, tracked
        from bmg_sweeps import tracking
        from bmg_sweeps.records import files
        tracking.follow.POLL_SECONDS = 0.2
        storage, chosen = files.open_storage(sys.argv[1]), tracked.figure_2()
        with tracking.following(storage, [chosen], "offline"):
            while not tracked.folders(storage):
                pass
            tracked.commit(storage, chosen.points[1], 3)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    places = os.pathsep.join([str(paths.ROOT), str(paths.ROOT / "tests")])
    killed = subprocess.run(
        [sys.executable, "-c", code, storage.uri],
        env=os.environ | {"PYTHONPATH": places},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    run_id = sweeps.run_id(storage, chosen)
    _wait_for(lambda: memory.remembered(storage, run_id))  # The last of all.
    _wait_for(lambda: not store.read(storage, "wandb", "lease").is_leased())
    assert _steps(storage, first) == tracked.steps(2)
    assert _steps(storage, second) == tracked.steps(3)


def test_two_at_once_write_each_run_once(storage, chosen):
    points = chosen.points[:4]
    with (
        tracking.following(storage, [chosen], "offline") as first,
        tracking.following(storage, [chosen], "offline") as second,
    ):
        for p in points:
            tracked.commit(storage, p, 200)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            lines = pool.map(lambda one: one.finish(), (first, second))
    assert [line.split(";")[0] for line in lines] == ["W&B: 5 offline runs"] * 2
    ids = [*(p.id for p in points), sweeps.run_id(storage, chosen)]
    assert tracked.folders(storage) == sorted(ids)


def test_only_one_process_exports_at_a_time(storage, chosen, monkeypatch):
    monkeypatch.setattr(exporting, "PATIENCE_SECONDS", 0.0)
    tracked.commit(storage, chosen.points[0], 2)
    with memory.lease(storage, 0.0, lambda: None):
        line = tracking.export(storage, [chosen], "offline").line
    assert line == "W&B: nothing exported (Busy: another process exports)."
    assert tracked.folders(storage) == []
    line = tracking.export(storage, [chosen], "offline").line
    assert line.startswith("W&B: 2 offline")


def test_off_starts_nothing(storage, chosen):
    before = psutil.Process().children()
    with tracking.following(storage, [chosen], "off") as follower:
        assert psutil.Process().children() == before
        assert follower.finish() == "W&B: off."


def _steps(storage, point):
    records = tracked.inspect(storage, point.id)
    rows = [one["item"] for one in tracked.of_type(records, "history")]
    return [row["env_steps"] for row in rows]


def _wait_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)
