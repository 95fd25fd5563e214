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

from bmg_sweeps import files, grid, paths, planning, store, tracking

KEY = "d00df00d" * 5  # Of the form of an API key.
SECRET = "planted-secret-value"
HOST = "planted-host-name"
ARGUMENT = "--planted-argument"
UNREACHABLE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _machine(tmp_path, monkeypatch):
    _plant(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Three points of figure 2, done, diverged and failed, exported offline once."""
    folder = tmp_path_factory.mktemp("exported")
    with pytest.MonkeyPatch.context() as monkeypatch:
        home = _plant(folder, monkeypatch)
        storage = files.open_storage(str(home / "runs"))
        chosen = _chosen()
        done, diverged, failed = chosen.points[:3]
        _commit(storage, done, 30, progress=400_000)
        _commit(storage, diverged, 5, gap=True, failure=_failure("diverged", "why"))
        _commit(storage, failed, 4, failure=_failure("failed", f"no file {home}/x"))
        line = tracking.export(storage, [chosen], "offline")
    runs = {p.id: _inspect(storage, p) for p in (done, diverged, failed)}
    return types.SimpleNamespace(
        storage=storage,
        points=(done, diverged, failed),
        runs=runs,
        line=line,
        home=home,
    )


def test_every_point_with_rows_is_one_run_and_no_other_is(exported):
    assert _folders(exported.storage) == sorted(exported.runs)


def test_a_run_has_the_rows_of_its_record_each_once(exported):
    for point in exported.points:
        record = store.read(exported.storage, point.trainer, point.id)
        rows = store.rows(exported.storage, record)
        history = _of_type(exported.runs[point.id], "history")
        for name, column in rows.items():
            assert [one["item"].get(name) for one in history] == column


def test_a_missing_number_is_absent_and_never_nan(exported):
    diverged = exported.runs[exported.points[1].id]
    history = _of_type(diverged, "history")
    has_reward = ["total_reward" in one["item"] for one in history]
    assert has_reward == [True, True, False, True, False]
    assert _summary(diverged)["total_reward"] is None
    assert "nan" not in json.dumps(diverged).lower()


def test_a_run_is_described_by_its_point(exported):
    point = exported.points[0]
    (run,) = _of_type(exported.runs[point.id], "run")
    config = dict(run["config"]["update"])
    assert config.pop("_wandb") == {}
    assert config.pop("method") == "fixed ε"
    assert config.pop("configuration") == point.configuration().id
    assert config == json.loads(json.dumps(point.values))
    assert run["run_id"] == point.id
    assert run["run_group"] == point.configuration().id
    assert run["job_type"] == "two_colors_actor_critic"
    assert run["tags"] == ["figure_2"]
    described = grid.describe(_chosen().sweep, point.configuration().values)
    assert run["display_name"] == f"fixed ε: {described} seed=0"
    assert (
        run["notes"]
        == f"python -m bmg_sweeps run figure_2 --point {point.id} --scale smoke"
    )


def test_every_metric_is_drawn_over_the_sweeps_own_axis(exported):
    for records in exported.runs.values():
        metrics = _of_type(records, "metric")
        assert metrics[0]["name"] == "env_steps"
        assert (metrics[1]["glob_name"], metrics[1]["step_metric"]) == (
            "*",
            "env_steps",
        )


def test_the_summary_says_where_the_point_stands_and_why(exported):
    done, diverged, failed = (_summary(exported.runs[p.id]) for p in exported.points)
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
    ends = [_of_type(exported.runs[p.id], "exit")[0] for p in exported.points]
    assert [one.get("exit_code", 0) for one in ends] == [0, 1, 1]


def test_nothing_of_the_machine_is_in_the_files(exported):
    files = list(pathlib.Path(exported.storage.root, "wandb").rglob("*"))
    for path in files:
        data = path.read_bytes() if path.is_file() else b""
        planted = (KEY, SECRET, HOST, ARGUMENT, str(exported.home), "planted_cwd")
        for text in (*planted, str(paths.ROOT), str(pathlib.Path.home()), "runs/wandb"):
            assert text.encode() not in data, f"{text} in {path}"
    text = json.dumps(exported.runs)
    assert not re.search(rf"\b{re.escape(socket.gethostname())}\b", text)
    kinds = {next(k for k in one if k not in ("num", "type")) for one in _all(exported)}
    expected = {"header", "run", "telemetry", "metric", "summary", "history", "exit"}
    assert kinds == expected
    names = {path.name for path in files if path.is_file()}
    ids = [point.id for point in exported.points]
    assert names == {f"run-{i}.wandb" for i in ids} | {f"{i}.json" for i in ids}


def test_nothing_is_written_outside_the_storage(exported):
    assert os.listdir(exported.home) == ["runs"]
    assert os.listdir(exported.home.parent / "planted_cwd") == []


def test_the_closing_line_has_the_command_that_uploads(exported):
    folder = f"{exported.storage.root}/wandb"
    start = f"W&B: 3 offline runs in {folder}; upload with: "
    assert exported.line.startswith(start)
    command = shlex.split(exported.line.removeprefix(start))
    assert command[0] == "wandb"
    assert "Would sync 3 run(s)" in _wandb(*command[1:], "--dry-run")


def test_wandb_leet_inspect_reads_the_same(exported):
    point = exported.points[0]
    (folder,) = pathlib.Path(exported.storage.root, "wandb").glob(f"*-{point.id}")
    lines = _wandb("leet", "inspect", str(folder), "--json").splitlines()
    assert [json.loads(line) for line in lines] == exported.runs[point.id]


def test_a_second_export_changes_nothing(exported, monkeypatch):
    monkeypatch.setenv("HOME", str(exported.home))
    before = _contents(exported.storage)
    line = tracking.export(exported.storage, [_chosen()], "offline")
    assert line == exported.line
    assert _contents(exported.storage) == before


def test_a_grown_record_replaces_its_run(storage, chosen):
    first, other = chosen.points[:2]
    _commit(storage, first, 5)
    _commit(storage, other, 5)
    tracking.export(storage, [chosen], "offline")
    before = _contents(storage)
    _commit(storage, first, 8)
    tracking.export(storage, [chosen], "offline")
    assert _folders(storage) == sorted([first.id, other.id])
    history = _of_type(_inspect(storage, first), "history")
    assert [one["item"]["env_steps"] for one in history] == _steps(8)
    after = _contents(storage)
    assert {k: v for k, v in after.items() if other.id in str(k)} == {
        k: v for k, v in before.items() if other.id in str(k)
    }


def test_a_deleted_run_is_made_again(storage, chosen):
    _commit(storage, chosen.points[0], 3)
    tracking.export(storage, [chosen], "offline")
    (folder,) = pathlib.Path(storage.root, "wandb").glob("offline-run-*")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    tracking.export(storage, [chosen], "offline")
    history = _of_type(_inspect(storage, chosen.points[0]), "history")
    assert [one["item"]["env_steps"] for one in history] == _steps(3)


def test_a_shared_point_is_one_run_with_the_tag_of_each_sweep(storage, chosen):
    point = chosen.points[0]
    _commit(storage, point, 3, progress=500_000)
    other = dataclasses.replace(
        chosen, name="/planted/absolute/mine.py", stop={"env_steps": 1_000_000}
    )
    tracking.export(storage, [other], "offline")
    (run,) = _of_type(_inspect(storage, point), "run")
    assert run["tags"] == ["mine"]
    assert (
        run["notes"]
        == f"python -m bmg_sweeps run mine.py --point {point.id} --scale smoke"
    )
    tracking.export(storage, [chosen], "offline")
    records = _inspect(storage, point)
    assert _of_type(records, "run")[0]["tags"] == ["figure_2", "mine"]
    assert _summary(records)["status"] == "done"
    tracking.export(storage, [chosen, other], "offline")
    assert _summary(_inspect(storage, point))["status"] == "missing"
    assert _folders(storage) == [point.id]


def test_off_writes_nothing(storage, chosen):
    _commit(storage, chosen.points[0], 3)
    assert tracking.export(storage, [chosen], "off") == "W&B: off."
    assert not pathlib.Path(storage.root, "wandb").exists()


def test_without_rows_nothing_is_written(storage, chosen):
    assert "no point has rows" in tracking.export(storage, [chosen], "offline")
    _commit(storage, chosen.points[0], 0)
    assert "no point has rows" in tracking.export(storage, [chosen], "offline")
    assert not list(pathlib.Path(storage.root).glob("wandb/*"))


def test_trouble_of_wandb_is_a_closing_line(storage, chosen, monkeypatch):
    import wandb

    tries = []

    def init(**_):
        tries.append(None)
        raise wandb.errors.CommError("the first line\nthe second")

    for point in chosen.points:
        _commit(storage, point, 3)
    monkeypatch.setattr(wandb, "init", init)
    before = dict(os.environ)
    line = tracking.export(storage, [chosen], "offline")
    number = len(chosen.points)
    assert line == f"W&B: {number} points not exported (CommError: the first line)"
    assert len(tries) == tracking.TRIES < number
    assert dict(os.environ) == before
    monkeypatch.setattr(wandb, "setup", init)
    line = tracking.export(storage, [chosen], "offline")
    assert line == "W&B: nothing exported (CommError: the first line)."


def test_trouble_halfway_leaves_the_former_run(storage, chosen, monkeypatch):
    import wandb

    log = wandb.Run.log

    def fail_at_the_end(run, row):
        if row["env_steps"] > _steps(5)[-1]:
            raise OSError("the disk is full")
        log(run, row)

    first, other = chosen.points[:2]
    for point in (first, other):
        _commit(storage, point, 5)
    tracking.export(storage, [chosen], "offline")
    before = _contents(storage)
    _commit(storage, first, 6)
    monkeypatch.setattr(wandb.Run, "log", fail_at_the_end)
    line = tracking.export(storage, [chosen], "offline")
    assert line.startswith("W&B: 1 offline run in ")
    assert line.endswith("; 1 point not exported (OSError: the disk is full)")
    assert _contents(storage) == before


def test_a_damaged_record_is_told(storage, chosen):
    point = chosen.points[0]
    _commit(storage, point, 3)
    (path,) = pathlib.Path(storage.path(point.trainer, point.id)).glob("rows-*")
    path.write_bytes(b"x" * path.stat().st_size)
    line = tracking.export(storage, [chosen], "offline")
    assert line.startswith("W&B: 1 point not exported (Damaged: rows-")


def test_online_a_grown_record_is_resumed_with_its_new_rows(
    storage, chosen, monkeypatch
):
    import wandb

    made = []
    monkeypatch.setattr(wandb, "init", lambda **k: made.append(_Fake(k)) or made[-1])
    point = chosen.points[0]
    _commit(storage, point, 5)
    line = tracking.export(storage, [chosen], "online")
    assert line == "W&B: 1 online run at https://server/someone/bmg-sweeps"
    _commit(storage, point, 8)
    for mode in ("online", "online", "offline"):  # Online, it need not be offline.
        assert tracking.export(storage, [chosen], mode) == line
    _commit(storage, point, 8, gap=True)
    tracking.export(storage, [chosen], "online")
    steps = _steps(8)
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
    _commit(storage, point, 5)
    tracking.export(storage, [chosen], "offline")
    assert _folders(storage) == [point.id]
    made = []
    monkeypatch.setattr(wandb, "init", lambda **k: made.append(_Fake(k)) or made[-1])
    tracking.export(storage, [chosen], "online")
    assert _folders(storage) == []
    assert len(made[0].rows) == 5
    assert made[0].keywords["resume"] is None


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "offline"),
        ({"WANDB_API_KEY": KEY, "WANDB_BASE_URL": UNREACHABLE}, "offline"),
        ({"WANDB_API_KEY": KEY}, "online"),
        ({"WANDB_API_KEY": "too short"}, "offline"),
        ({"WANDB_API_KEY": KEY, "WANDB_MODE": "offline"}, "offline"),
        ({"WANDB_API_KEY": KEY, "WANDB_MODE": "disabled"}, "off"),
    ],
)
def test_auto_is_online_only_with_a_login_and_a_network(
    variables, expected, server, monkeypatch
):
    monkeypatch.delenv("WANDB_API_KEY")
    monkeypatch.setenv("WANDB_BASE_URL", server)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with tracking._session():
        assert tracking.choose_mode("auto") == expected
        assert tracking.choose_mode("online") == "online"


def test_auto_finds_the_login_of_wandb_login(server, monkeypatch):
    netrc = pathlib.Path.home() / ".netrc"
    host = server.removeprefix("http://")
    netrc.write_text(f"machine {host}\n  login user\n  password {KEY}\n")
    netrc.chmod(0o600)
    monkeypatch.delenv("WANDB_API_KEY")
    monkeypatch.setenv("WANDB_BASE_URL", server)
    with tracking._session():
        assert tracking.choose_mode("auto") == "online"


def test_a_run_of_another_program_is_not_taken_from_the_environment(
    storage, chosen, monkeypatch
):
    for name in ("RUN_ID", "NAME", "NOTES", "RUN_GROUP", "RESUME", "TAGS", "SWEEP_ID"):
        monkeypatch.setenv(f"WANDB_{name}", "planted")
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    point = chosen.points[0]
    _commit(storage, point, 1)
    tracking.export(storage, [chosen], "offline")
    (run,) = _of_type(_inspect(storage, point), "run")
    assert "planted" not in json.dumps(run)
    assert run["project"] == "mine"
    assert os.environ["WANDB_RUN_ID"] == "planted"


def test_other_storages_keep_offline_runs_in_the_users_cache(chosen):
    storage = files.open_storage("memory://tracking")
    point = chosen.points[0]
    _commit(storage, point, 3)
    line = tracking.export(storage, [chosen], "offline")
    (folder,) = pathlib.Path.home().glob(".cache/bmg_sweeps/*/wandb")
    assert str(folder) in line
    assert [p.name for p in folder.glob("*/*")] == [f"run-{point.id}.wandb"]
    assert storage.sizes("wandb", "exported").keys() == {f"{point.id}.json"}


def test_importing_it_loads_neither_wandb_nor_jax():
    code = "import sys, bmg_sweeps.tracking; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=paths.ROOT, capture_output=True, text=True
    ).stdout.split()
    assert "bmg_sweeps.tracking" in loaded
    assert not {"wandb", "jax", "trainers"} & set(loaded)


@pytest.fixture
def storage(tmp_path):
    """An empty one."""
    return files.open_storage(str(tmp_path / "runs"))


@pytest.fixture
def chosen():
    """Figure 2 at its smallest."""
    return _chosen()


@pytest.fixture
def server():
    """A server that answers anything with an error."""
    handler = type("Handler", (http.server.BaseHTTPRequestHandler,), {})
    handler.log_message = lambda *_: None
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Fake:
    """An online run without a server."""

    def __init__(self, keywords):
        self.keywords = keywords
        self.rows = []
        self.summary = {}
        self.log = self.rows.append
        url = "https://server/someone/bmg-sweeps"
        self.settings = types.SimpleNamespace(sync_dir="/none", project_url=url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def define_metric(self, *_, **__):
        pass

    def finish(self, exit_code):
        pass


def _plant(folder, monkeypatch):
    """Makes a machine that would be recognized: home, folder, host, secrets."""
    home, here = folder / "planted_home", folder / "planted_cwd"
    home.mkdir()
    here.mkdir()
    for name in [name for name in os.environ if name.startswith(("WANDB_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NETRC", str(home / ".netrc"))
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    monkeypatch.setenv("WANDB_BASE_URL", UNREACHABLE)
    monkeypatch.setenv("MY_SECRET", SECRET)
    monkeypatch.setattr(socket, "gethostname", lambda: HOST)
    monkeypatch.setattr(sys, "argv", [sys.argv[0], ARGUMENT])
    monkeypatch.chdir(here)
    return home


@functools.cache
def _chosen():
    return planning.choose("figure_2", planning.Choice(scale="smoke"))


def _failure(kind, message):
    return {
        "kind": kind,
        "type": "Type",
        "message": message,
        "frames": [],
        "tries": store.TRIES,
    }


def _steps(number):
    return [10_000 * (i + 1) for i in range(number)]


def _commit(storage, point, number, *, gap=False, failure=None, progress=None):
    """Makes a record of so many rows; with a gap, rewards 2 and the last are none."""
    rewards = [1.5 * i for i in range(number)]
    if gap:
        rewards[2] = rewards[-1] = None
    rows = {"env_steps": _steps(number), "total_reward": rewards}
    record = store.read(storage, point.trainer, point.id)
    store.begin(storage, record).commit(
        progress={"env_steps": progress or 10_000 * number},
        rows=rows | {"training_seconds": [0.1 * i for i in range(number)]},
        provenance={},
        failure=failure,
        release=True,
    )


def _folders(storage):
    folders = pathlib.Path(storage.root, "wandb").glob("offline-run-*")
    return sorted(path.name.split("-")[3] for path in folders)


def _contents(storage):
    files = pathlib.Path(storage.root, "wandb").rglob("*")
    return {p: (p.is_file() and p.read_bytes(), p.stat().st_mtime_ns) for p in files}


def _wandb(*arguments):
    """Runs W&B's command line, away from the storage."""
    command = pathlib.Path(sys.executable).with_name("wandb")
    done = subprocess.run(
        [command, *arguments],
        env=os.environ | {"WANDB_DIR": os.getcwd(), "WANDB_ERROR_REPORTING": "false"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def _inspect(storage, point):
    """Reads a run as `wandb leet inspect` does, without its 2 s of imports."""
    import wandb.util

    (file,) = pathlib.Path(storage.root, "wandb").glob(f"*/run-{point.id}.wandb")
    command = [wandb.util.get_core_path(), "leet", "inspect", "--no-observability"]
    command += ["--json", "--run-file", file, file.parent.parent]
    done = subprocess.run(command, capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _all(exported):
    return [record for records in exported.runs.values() for record in records]


def _of_type(records, kind):
    return [record[kind] for record in records if record["type"] == kind]


def _summary(records):
    summary = {}
    for one in _of_type(records, "summary"):
        summary |= one["update"]
    return summary
