"""W&B runs: all that the record holds, each row once, and nothing of the machine.

Offline runs are read back with W&B's own reader. Nothing here needs a network.
"""

import dataclasses
import functools
import http.server
import json
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import threading
import types

import pytest
import tracked

from bmg_sweeps import __main__, paths, tracking
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import grid
from bmg_sweeps.tracking import memory, session

export = functools.partial(tracking.export, with_sweeps=False)


@pytest.fixture(autouse=True)
def _machine(tmp_path, monkeypatch):
    tracked.plant(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Three points of figure 2, done, diverged and failed, exported offline once."""
    folder = tmp_path_factory.mktemp("exported")
    with pytest.MonkeyPatch.context() as monkeypatch:
        home = tracked.plant(folder, monkeypatch)
        storage = files.open_storage(str(home / "runs"))
        chosen = tracked.figure_2()
        done, diverged, failed = chosen.points[:3]
        tracked.commit(storage, done, 30, progress=400_000, evaluations=4)
        tracked.commit(
            storage, diverged, 5, gap=True, failure=tracked.failure("diverged", "why")
        )
        tracked.commit(
            storage, failed, 4, failure=tracked.failure("failed", f"no file {home}/x")
        )
        line = export(storage, [chosen], "offline").line
    runs = {p.id: tracked.inspect(storage, p.id) for p in (done, diverged, failed)}
    return types.SimpleNamespace(
        storage=storage,
        points=(done, diverged, failed),
        runs=runs,
        line=line,
        home=home,
    )


def test_every_point_with_rows_is_one_run_and_no_other_is(exported):
    assert tracked.folders(exported.storage) == sorted(exported.runs)


def test_a_run_has_the_rows_of_its_record_each_once(exported):
    for point in exported.points:
        record = store.read(exported.storage, point.trainer, point.id)
        history = tracked.of_type(exported.runs[point.id], "history")
        read = 0
        for table, prefix in (
            ("rows", ""),
            ("validation", "validation/"),
            ("test", "test/"),
        ):
            rows = store.rows(exported.storage, record, table)
            ours = [
                one["item"] for one in history if f"{prefix}env_steps" in one["item"]
            ]
            for name, column in rows.items():
                key = prefix + name.removeprefix(f"{table}_")
                assert [item.get(key) for item in ours] == column
            names = {prefix + name.removeprefix(f"{table}_") for name in rows}
            for item in ours:
                assert {k for k in item if not k.startswith("_")} <= names
            read += len(ours)
        assert read == len(history)
    assert read < len(tracked.of_type(exported.runs[exported.points[0].id], "history"))


def test_a_missing_number_is_absent_and_never_nan(exported):
    diverged = exported.runs[exported.points[1].id]
    history = tracked.of_type(diverged, "history")
    has_reward = ["total_reward" in one["item"] for one in history]
    assert has_reward == [True, True, False, True, False]
    assert tracked.summary(diverged)["total_reward"] is None
    assert "nan" not in json.dumps(diverged).lower()


def test_a_run_is_described_by_its_point(exported):
    point = exported.points[0]
    (run,) = tracked.of_type(exported.runs[point.id], "run")
    config = dict(run["config"]["update"])
    assert config.pop("_wandb") == {}
    assert config.pop("method") == "fixed"
    assert config.pop("configuration") == point.configuration().id
    assert config == json.loads(json.dumps(point.values))
    identity = memory.identity(exported.storage)
    assert run["run_id"] == f"{point.id}-{identity[:6]}"
    assert run["run_group"] == point.configuration().id
    assert run["job_type"] == "two_colors_actor_critic"
    assert run["tags"] == ["figure_2", "figure_2-smoke"]
    described = grid.describe(tracked.figure_2().sweep, point.configuration().values)
    assert run["display_name"] == f"fixed {described} seed=0"
    assert (
        run["notes"]
        == f"python -m bmg_sweeps run figure_2 --point {point.id} --scale smoke"
    )


def test_every_metric_is_drawn_over_an_axis_of_its_own_table(exported):
    for i, records in enumerate(exported.runs.values()):
        metrics = tracked.of_type(records, "metric")
        assert not any("glob_name" in one for one in metrics)
        axes = {one["name"]: one.get("step_metric") for one in metrics}
        expected = {"env_steps": None}
        expected |= dict.fromkeys(("total_reward", "training_seconds"), "env_steps")
        for split in () if i else ("validation", "test"):
            axis = f"{split}/env_steps"
            names = (f"{split}/reward", f"{split}/training_seconds")
            expected |= {axis: None} | dict.fromkeys(names, axis)
        assert axes == expected


def test_the_summary_says_where_the_point_stands_and_why(exported):
    done, diverged, failed = (
        tracked.summary(exported.runs[p.id]) for p in exported.points
    )
    assert (done["status"], done["failure"]) == ("done", "")
    assert done["total_reward"] == 43.5
    assert (diverged["status"], diverged["failure"]) == (
        "diverged",
        "diverged: Type: why",
    )
    assert (failed["status"], failed["failure"]) == (
        "failed",
        "failed: Type: no file ~/x",
    )
    ends = [tracked.of_type(exported.runs[p.id], "exit")[0] for p in exported.points]
    assert [one.get("exit_code", 0) for one in ends] == [0, 1, 1]


def test_nothing_of_the_machine_is_in_the_files(exported):
    folder = pathlib.Path(exported.storage.root, "wandb")
    tracked.assert_nothing_of_the_machine(folder, exported.home)
    text = json.dumps(exported.runs)
    assert not re.search(rf"\b{re.escape(socket.gethostname())}\b", text)
    kinds = {
        next(k for k in one if k not in ("num", "type"))
        for one in tracked.everything(exported)
    }
    expected = {"header", "run", "telemetry", "metric", "summary", "history", "exit"}
    assert kinds == expected
    names = {path.name for path in folder.rglob("*") if path.is_file()}
    ids = [point.id for point in exported.points]
    suffix = memory.identity(exported.storage)[:6]
    runs = {f"run-{i}-{suffix}.wandb" for i in ids} | {f"{i}.json" for i in ids}
    assert names == runs | {"manifest-0001.json", "identity"}  # Of the lease.


def test_nothing_is_written_outside_the_storage(exported):
    assert os.listdir(exported.home) == ["runs"]
    assert os.listdir(exported.home.parent / "planted_cwd") == []


def test_the_closing_line_has_the_command_that_uploads(exported):
    folder = f"{exported.storage.root}/wandb"
    start = "W&B: 3 offline runs; upload with: "
    assert exported.line.startswith(start)
    cd, sync = exported.line.removeprefix(start).strip("()").split(" && ")
    assert shlex.split(cd) == ["cd", folder]
    os.chdir(folder)
    words = shlex.split(sync)
    assert words[0] == "wandb"
    assert "Would sync 3 run(s)" in tracked.wandb(*words[1:], "--dry-run")


def test_wandb_leet_inspect_reads_the_same(exported):
    point = exported.points[0]
    (folder,) = pathlib.Path(exported.storage.root, "wandb").glob(f"*-{point.id}-*")
    lines = tracked.wandb("leet", "inspect", str(folder), "--json").splitlines()
    assert [json.loads(line) for line in lines] == exported.runs[point.id]


def test_a_second_export_changes_nothing(exported, monkeypatch):
    monkeypatch.setenv("HOME", str(exported.home))
    before = tracked.contents(exported.storage)
    line = export(exported.storage, [tracked.figure_2()], "offline").line
    assert line == exported.line
    assert tracked.contents(exported.storage) == before


def test_a_grown_record_replaces_its_run(storage, chosen):
    first, other = chosen.points[:2]
    tracked.commit(storage, first, 5)
    tracked.commit(storage, other, 5)
    export(storage, [chosen], "offline")
    before = tracked.contents(storage)
    tracked.commit(storage, first, 8)
    export(storage, [chosen], "offline")
    assert tracked.folders(storage) == sorted([first.id, other.id])
    history = tracked.of_type(tracked.inspect(storage, first.id), "history")
    assert [one["item"]["env_steps"] for one in history] == tracked.steps(8)
    after = tracked.contents(storage)
    assert {k: v for k, v in after.items() if other.id in str(k)} == {
        k: v for k, v in before.items() if other.id in str(k)
    }


def test_a_deleted_run_is_made_again(storage, chosen):
    tracked.commit(storage, chosen.points[0], 3)
    export(storage, [chosen], "offline")
    (folder,) = pathlib.Path(storage.root, "wandb").glob("offline-run-*")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    export(storage, [chosen], "offline")
    history = tracked.of_type(tracked.inspect(storage, chosen.points[0].id), "history")
    assert [one["item"]["env_steps"] for one in history] == tracked.steps(3)


def test_a_shared_point_is_one_run_with_the_tag_of_each_sweep(storage, chosen):
    point = chosen.points[0]
    tracked.commit(storage, point, 3, progress=500_000)
    other = dataclasses.replace(
        chosen, name="/planted/absolute/mine.py", stop={"env_steps": 1_000_000}
    )
    export(storage, [other], "offline")
    (run,) = tracked.of_type(tracked.inspect(storage, point.id), "run")
    assert run["tags"] == ["mine", "mine-smoke"]
    assert (
        run["notes"]
        == f"python -m bmg_sweeps run mine.py --point {point.id} --scale smoke"
    )
    export(storage, [chosen], "offline")
    records = tracked.inspect(storage, point.id)
    tags = ["figure_2", "figure_2-smoke", "mine", "mine-smoke"]
    assert tracked.of_type(records, "run")[0]["tags"] == tags
    assert tracked.summary(records)["status"] == "done"
    export(storage, [chosen, other], "offline")
    assert tracked.summary(tracked.inspect(storage, point.id))["status"] == "missing"
    assert tracked.folders(storage) == [point.id]


def test_off_writes_nothing(storage, chosen):
    tracked.commit(storage, chosen.points[0], 3)
    assert export(storage, [chosen], "off").line == "W&B: off."
    assert not pathlib.Path(storage.root, "wandb").exists()


def test_without_rows_nothing_is_written(storage, chosen):
    assert "no point has rows" in export(storage, [chosen], "offline").line
    tracked.commit(storage, chosen.points[0], 0)
    assert "no point has rows" in export(storage, [chosen], "offline").line
    assert {path.name for path in tracked.contents(storage)} <= {"identity"}


def test_trouble_of_wandb_is_a_closing_line(storage, chosen, monkeypatch):
    """Counted by its kind; what fails of one run does not end the others."""
    import wandb

    tries = []

    def init(**_):
        tries.append(None)
        if len(tries) == 2:
            raise wandb.errors.UsageError("another kind")
        raise wandb.errors.CommError("the first line\nthe second")

    for point in chosen.points:
        tracked.commit(storage, point, 3)
    monkeypatch.setattr(wandb, "init", init)
    before = dict(os.environ)
    line = export(storage, [chosen], "offline").line
    number = len(chosen.points)
    assert line == (
        f"W&B: {number - 1} runs not exported (CommError: the first line); 1 run not "
        f"exported (UsageError: another kind)"
    )
    assert len(tries) == number
    assert dict(os.environ) == before
    monkeypatch.setattr(wandb, "setup", init)
    line = export(storage, [chosen], "offline").line
    assert line == "W&B: nothing exported (CommError: the first line)."


@pytest.mark.parametrize(("mode", "status"), [("online", 1), ("auto", 1), ("off", 0)])
def test_track_that_exports_nothing_does_not_succeed(
    storage, chosen, monkeypatch, capsys, mode, status
):
    import wandb

    def init(**_):
        raise wandb.errors.CommError("nobody answers")

    command = ["track", "figure_2", "--wandb", mode, "--storage", storage.uri]
    assert __main__.main(command) == 0  # There is nothing to export yet.
    tracked.commit(storage, chosen.points[0], 3)
    monkeypatch.setattr(wandb, "init", init)
    monkeypatch.setattr(session, "is_reachable", lambda: mode == "auto")
    capsys.readouterr()
    assert __main__.main(command) == status
    output = capsys.readouterr().out
    assert output.count("\n") == 1
    assert ("not exported (CommError: nobody answers)" in output) == bool(status)


def test_trouble_halfway_leaves_the_former_run(storage, chosen, monkeypatch):
    import wandb

    log = wandb.Run.log

    def fail_at_the_end(run, row):
        if row["env_steps"] > tracked.steps(5)[-1]:
            raise OSError("the disk is full")
        log(run, row)

    first, other = chosen.points[:2]
    for point in (first, other):
        tracked.commit(storage, point, 5)
    export(storage, [chosen], "offline")
    before = tracked.contents(storage)
    tracked.commit(storage, first, 6)
    monkeypatch.setattr(wandb.Run, "log", fail_at_the_end)
    line = export(storage, [chosen], "offline").line
    assert line.startswith("W&B: 1 offline run; upload with: ")
    assert line.endswith("; 1 run not exported (OSError: the disk is full)")
    assert tracked.contents(storage) == before


def test_a_damaged_record_is_told(storage, chosen):
    point = chosen.points[0]
    tracked.commit(storage, point, 3)
    (path,) = pathlib.Path(storage.path(point.trainer, point.id)).glob("rows-*")
    path.write_bytes(b"x" * path.stat().st_size)
    line = export(storage, [chosen], "offline").line
    assert line.startswith("W&B: 1 run not exported (Damaged: rows-")


def test_online_a_grown_record_is_resumed_with_its_new_rows(
    storage, chosen, monkeypatch
):
    import wandb

    made = []
    monkeypatch.setattr(
        wandb, "init", lambda **k: made.append(tracked.Fake(k)) or made[-1]
    )
    point = chosen.points[0]
    tracked.commit(storage, point, 5)
    line = export(storage, [chosen], "online").line
    assert line == "W&B: 1 online run at https://server/someone/bmg-sweeps"
    tracked.commit(storage, point, 8)
    for mode in ("online", "online", "offline"):  # Online, it need not be offline.
        assert export(storage, [chosen], mode).line == line
    tracked.commit(storage, point, 8, gap=True)
    export(storage, [chosen], "online")
    steps = tracked.steps(8)
    assert [[row["env_steps"] for row in one.rows] for one in made] == [
        steps[:5],
        steps[5:],
        steps,
    ]
    assert [one.keywords["resume"] for one in made] == [None, "allow", None]
    assert {one.keywords["mode"] for one in made} == {"online"}


def test_a_run_that_went_online_is_not_left_offline(storage, chosen, monkeypatch):
    import wandb

    point = chosen.points[0]
    tracked.commit(storage, point, 5)
    export(storage, [chosen], "offline")
    assert tracked.folders(storage) == [point.id]
    made = []
    monkeypatch.setattr(
        wandb, "init", lambda **k: made.append(tracked.Fake(k)) or made[-1]
    )
    export(storage, [chosen], "online")
    assert tracked.folders(storage) == []
    assert len(made[0].rows) == 5
    assert made[0].keywords["resume"] is None


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "offline"),
        (
            {"WANDB_API_KEY": tracked.KEY, "WANDB_BASE_URL": tracked.UNREACHABLE},
            "offline",
        ),
        ({"WANDB_API_KEY": tracked.KEY}, "online"),
        ({"WANDB_API_KEY": "too short"}, "offline"),
        ({"WANDB_API_KEY": tracked.KEY, "WANDB_MODE": "offline"}, "offline"),
        ({"WANDB_API_KEY": tracked.KEY, "WANDB_MODE": "disabled"}, "off"),
    ],
)
def test_auto_is_online_only_with_a_login_and_a_network(
    variables, expected, server, monkeypatch
):
    monkeypatch.delenv("WANDB_API_KEY")
    monkeypatch.setenv("WANDB_BASE_URL", server)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with session.opened():
        assert session.choose_mode("auto") == expected
        assert session.choose_mode("online") == "online"


def test_auto_finds_the_login_of_wandb_login(server, monkeypatch):
    netrc = pathlib.Path.home() / ".netrc"
    host = server.removeprefix("http://")
    netrc.write_text(f"machine {host}\n  login user\n  password {tracked.KEY}\n")
    netrc.chmod(0o600)
    monkeypatch.delenv("WANDB_API_KEY")
    monkeypatch.setenv("WANDB_BASE_URL", server)
    with session.opened():
        assert session.choose_mode("auto") == "online"


def test_a_run_of_another_program_is_not_taken_from_the_environment(
    storage, chosen, monkeypatch
):
    for name in ("RUN_ID", "NAME", "NOTES", "RUN_GROUP", "RESUME", "TAGS", "SWEEP_ID"):
        monkeypatch.setenv(f"WANDB_{name}", "planted")
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    point = chosen.points[0]
    tracked.commit(storage, point, 1)
    export(storage, [chosen], "offline")
    (run,) = tracked.of_type(tracked.inspect(storage, point.id), "run")
    assert "planted" not in json.dumps(run)
    assert run["project"] == "mine"
    assert os.environ["WANDB_RUN_ID"] == "planted"


def test_other_storages_keep_offline_runs_in_the_users_cache(chosen):
    storage = files.open_storage("memory://tracking")
    point = chosen.points[0]
    tracked.commit(storage, point, 3)
    line = export(storage, [chosen], "offline").line
    (folder,) = pathlib.Path.home().glob(".cache/bmg_sweeps/*/wandb")
    assert str(folder) in line
    run_id = f"{point.id}-{memory.identity(storage)[:6]}"
    assert [p.name for p in folder.glob("*/*")] == [f"run-{run_id}.wandb"]
    assert storage.sizes("wandb", "exported").keys() == {f"{point.id}.json"}


def test_importing_it_loads_neither_wandb_nor_jax():
    code = "import sys, bmg_sweeps.tracking; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=paths.ROOT, capture_output=True, text=True
    ).stdout.split()
    assert "bmg_sweeps.tracking" in loaded
    assert not {"wandb", "jax", "trainers"} & set(loaded)


@pytest.fixture
def chosen():
    """Figure 2 at its smallest."""
    return tracked.figure_2()


@pytest.fixture
def server():
    """A server that answers anything with an error."""
    handler = type("Handler", (http.server.BaseHTTPRequestHandler,), {})
    handler.log_message = lambda *_: None
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
