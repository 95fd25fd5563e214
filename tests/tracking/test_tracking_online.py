"""Runs that go to a server: each row once there, and nothing lost when it goes away."""

import json
import os
import pathlib
import time

import pytest
import tracked
import wandb_server

from bmg_sweeps import tracking
from bmg_sweeps.records import files
from bmg_sweeps.tracking import exporting, memory, session, sweeps


@pytest.fixture(autouse=True)
def _machine(tmp_path, monkeypatch):
    tracked.plant(tmp_path, monkeypatch)


@pytest.fixture
def server(monkeypatch):
    with wandb_server.running() as server:
        monkeypatch.setenv("WANDB_BASE_URL", server.url)
        yield server


@pytest.fixture
def chosen():
    return tracked.figure_2()


def test_a_growing_record_has_each_row_once(storage, chosen, server):
    point = chosen.points[0]
    for number, evaluations in ((5, 0), (8, 1), (8, 2)):
        tracked.commit(storage, point, number, evaluations=evaluations)
        line = tracking.export(storage, [chosen], "auto", with_sweeps=False).line
        assert line == f"W&B: 1 online run at {server.url}/someone/bmg-sweeps"
    rows = server.rows(point.id)
    assert _axis(rows, "env_steps") == tracked.steps(8)
    assert _axis(rows, "validation/env_steps") == [25_000, 50_000]
    assert _axis(rows, "test/env_steps") == [25_000, 50_000]
    assert len(rows) == 12
    assert tracked.folders(storage) == []


def test_while_points_train_all_that_changes_goes_online(storage, chosen, server):
    running, over = chosen.points[:2]
    tracked.commit(storage, over, 5)
    tracked.commit(storage, running, 2, release=False)
    mode = None
    for _ in range(2):
        mode = exporting.update(storage, [chosen], "auto", mode)
        assert mode == "online"
    assert _axis(server.rows(running.id), "env_steps") == tracked.steps(2)
    assert _axis(server.rows(over.id), "env_steps") == tracked.steps(5)
    assert sweeps.run_id(storage, chosen) in server.runs


def test_a_run_that_was_deleted_there_is_made_whole(storage, chosen, server):
    point = chosen.points[0]
    tracked.commit(storage, point, 5)
    tracking.export(storage, [chosen], "online", with_sweeps=False)
    server.runs.clear()
    server.lines.clear()
    tracked.commit(storage, point, 8)
    tracking.export(storage, [chosen], "online", with_sweeps=False)
    assert _axis(server.rows(point.id), "env_steps") == tracked.steps(8)


@pytest.mark.parametrize("number", [5, 8], ids=["same rows", "more rows"])
def test_a_run_that_was_deleted_for_good_gets_another_id(
    storage, chosen, server, monkeypatch, number
):
    """The server refuses its id from then on; the next export knows the new one."""
    monkeypatch.setitem(session._SETTINGS, "init_timeout", 2.0)
    first, second = chosen.points[:2]
    for p in (first, second):
        tracked.commit(storage, p, 5)
    tracking.export(storage, [chosen], "online", with_sweeps=False)
    (before,) = server.ids(first.id)
    server.delete(first.id)
    for p in (first, second):
        tracked.commit(storage, p, number, gain=2.0)
    exported = tracking.export(storage, [chosen], "online", with_sweeps=False)
    assert exported.line.startswith("W&B: 2 online runs at ")
    assert server.ids(first.id) == [f"{before}-g2"]
    assert _axis(server.rows(first.id), "env_steps") == tracked.steps(number)
    began = time.monotonic()
    tracked.commit(storage, first, 9, gain=2.0)
    tracking.export(storage, [chosen], "online", with_sweeps=False)
    assert time.monotonic() - began < 2.0
    assert _axis(server.rows(first.id), "env_steps") == tracked.steps(9)


def test_runs_that_are_refused_do_not_end_the_others(
    storage, chosen, server, monkeypatch
):
    """Three in a row ended them all; each is told, and is tried again next time."""
    monkeypatch.setitem(session._SETTINGS, "init_timeout", 1.0)
    *refused, last = chosen.points[:4]
    for p in (*refused, last):
        tracked.commit(storage, p, 5)
    server.refused = {p.id: 400 for p in refused}
    line = tracking.export(storage, [chosen], "online", with_sweeps=False).line
    assert line.startswith("W&B: 1 online run at ")
    assert "; 3 runs not exported (" in line
    assert _axis(server.rows(last.id), "env_steps") == tracked.steps(5)
    server.refused = {}
    line = tracking.export(storage, [chosen], "online", with_sweeps=False).line
    assert line.startswith("W&B: 4 online runs at ")


def test_two_storages_of_a_project_keep_to_their_own_runs(chosen, server, tmp_path):
    point = chosen.points[0]
    for name, number in (("one", 5), ("two", 8)):
        storage = files.open_storage(str(tmp_path / name))
        tracked.commit(storage, point, number)
        tracking.export(storage, [chosen], "online", with_sweeps=False)
    lengths = [len(server.lines[run_id]) for run_id in server.ids(point.id)]
    assert sorted(lengths) == [5, 8]


def test_a_run_that_earlier_code_has_made_keeps_its_id(storage, chosen, server):
    """It was named by its point alone, and nothing of its id was remembered."""
    point = chosen.points[0]
    tracked.commit(storage, point, 5)
    made = {"mode": "online", "digest": "other", "rows": {}, "tags": []}
    memory.remember(storage, point.id, made)
    tracking.export(storage, [chosen], "online", with_sweeps=False)
    assert server.ids(point.id) == [point.id]


def test_a_sweeps_run_has_its_tables_and_artifact(storage, chosen, server):
    for p in chosen.points[:2]:
        tracked.commit(storage, p, 40)
    line = tracking.export(storage, [chosen], "online").line
    assert line == f"W&B: 3 online runs at {server.url}/someone/bmg-sweeps"
    rows = server.rows(sweeps.run_id(storage, chosen))
    assert len([row for row in rows if "env_steps" in row]) == 10
    assert json.loads(server.files["best.json"])[-1]["mean"] == 39 * 1.5
    assert any(name.startswith("tables/best_env_steps") for name in server.files)


def test_offline_runs_are_uploaded_by_the_command_that_is_told(storage, chosen, server):
    """From the folder of runs, wherever it is by then."""
    for p in chosen.points[:2]:
        tracked.commit(storage, p, 40)
    tracking.export(storage, [chosen], "offline")
    moved = pathlib.Path("elsewhere").absolute()
    memory.folder(storage).rename(moved)
    os.chdir(moved)
    tracked.wandb("sync", ".")
    assert len(server.rows(chosen.points[0].id)) == 40
    run_id = sweeps.run_id(files.open_storage(storage.uri), chosen)
    found = [i for i in server.lines if i.startswith("sweep-figure_2-smoke-")]
    assert found != [run_id]  # Its identity has moved with it.
    assert len(server.rows(found[0])) == 13  # Budgets, two numbers n, and the tables.
    assert json.loads(server.files["best.json"])[-1]["mean"] == 39 * 1.5


def test_a_network_that_is_lost_midway_loses_nothing(
    storage, chosen, server, monkeypatch
):
    """The run that was being sent, and those after it, are offline and whole."""
    monkeypatch.setitem(session._SETTINGS, "init_timeout", 2.0)
    monkeypatch.setitem(session._SETTINGS, "finish_timeout", 2.0)
    first, second, third = chosen.points[:3]
    for p in (first, second, third):
        tracked.commit(storage, p, 5)
    server.dies_with = second.id
    began = time.monotonic()
    line = tracking.export(storage, [chosen], "auto", with_sweeps=False).line
    assert time.monotonic() - began < 15
    assert line.startswith("W&B: 1 online run at ")
    assert "; 2 offline runs; upload with: " in line
    assert "not exported" not in line
    assert tracked.folders(storage) == sorted([second.id, third.id])
    for p in (second, third):
        records = tracked.inspect(storage, p.id)
        rows = [one["item"] for one in tracked.of_type(records, "history")]
        assert _axis(rows, "env_steps") == tracked.steps(5)


def test_when_it_is_back_each_row_is_there_once(storage, chosen, server, monkeypatch):
    """The server may have received rows that nobody knows it has."""
    monkeypatch.setitem(session._SETTINGS, "init_timeout", 2.0)
    monkeypatch.setitem(session._SETTINGS, "finish_timeout", 2.0)
    first, second = chosen.points[:2]
    for number, dies_with in ((5, None), (7, second.id), (9, None)):
        for p in (first, second):
            tracked.commit(storage, p, number)
        server.dies_with, server.is_dead = dies_with, False
        line = tracking.export(storage, [chosen], "online", with_sweeps=False).line
        # Offline was not asked for.
        assert ("; 1 run not exported (" in line) == bool(dies_with)
    for p in (first, second):
        assert _axis(server.rows(p.id), "env_steps") == tracked.steps(9)


def _axis(rows, name):
    return [row[name] for row in rows if name in row]
