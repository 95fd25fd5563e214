"""Launches through a real Ray: what is missing is run, once, and kills cost nothing.

A small sweep of the real trainer, with tiny networks, is launched on one storage in
peace and on another with a kill and a stop in between. Ray's start dominates, so the
tests of this module share a few launches.
"""

import contextlib
import ipaddress
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from typing import NamedTuple

import numpy as np
import psutil
import pytest

from bmg_sweeps import __main__, paths
from bmg_sweeps.launching import checking, cluster, planning, trials
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import choices

SWEEP = '''
"""A small sweep for tests."""

from bmg_sweeps.sweep import Method, Scale, Select, Sweep, product

TINY = {
    "update_kind": ("fixed_entropy_weight",), "inner_steps": (1,), "target_steps": (1,),
    "hidden_sizes": ((8,),), "meta_hidden_sizes": ((4,),),
}
POINTS = product(**TINY, entropy_weight=WEIGHTS, seed=range(2))
SWEEP = Sweep(
    title="Tiny",
    trainer="two_colors_actor_critic",
    scales={"smoke": Scale(POINTS, stop={"env_steps": 300_000})},
    select=Select(metric="total_reward", mode="max", budgets={"env_steps": 3}),
    methods={"all": Method({}, tuned={"entropy_weight": "entropy_weight"})},
)
'''
WEIGHTS = (0.1, 0.2, 0.3, 0.4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("launch")


def write_sweep(folder, weights):
    path = folder / f"tiny_{len(weights)}.py"
    path.write_text(SWEEP.replace("WEIGHTS", repr(weights)))
    return str(path)


def command(folder, *arguments):
    """A command as a user types it, with a home and caches of its own."""
    environment = os.environ | {"HOME": str(folder), "COLUMNS": "200"}
    environment.pop("XDG_CACHE_HOME", None)
    return {
        "args": [sys.executable, "-m", "bmg_sweeps", *arguments],
        "env": environment,
        "cwd": paths.ROOT,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
    }


def launch(folder, sweep, storage, *arguments):
    done = subprocess.run(
        timeout=300,
        check=False,
        **command(folder, "launch", sweep, "--storage", storage, *arguments),
    )
    assert "Traceback" not in done.stdout, done.stdout
    return done


def records(sweep, storage):
    """Every point's record, and its state and rows without the times."""
    chosen = choices.choose(sweep, choices.Choice())
    storage = files.open_storage(storage)
    found = {}
    for point in chosen.points:
        record = store.read(storage, point.trainer, point.id)
        rows = store.rows(storage, record)
        rows.pop("training_seconds", None)
        found[point.id] = record, store.state(storage, record), rows
    return found


def counts(sweep, storage):
    chosen = choices.choose(sweep, choices.Choice())
    return planning.plan(files.open_storage(storage), [chosen]).counts()


@pytest.fixture(scope="module")
def undisturbed(folder):
    """The sweep, launched once, in peace: file, storage and output."""
    sweep, storage = write_sweep(folder, WEIGHTS), str(folder / "undisturbed")
    done = launch(folder, sweep, storage, "--wandb", "offline")
    assert done.returncode == 0, done.stdout
    return sweep, storage, done.stdout


def test_a_launch_runs_every_point_to_the_stop_rule(undisturbed):
    """Eight points are done, with rows up to the step that was asked for."""
    sweep, storage, output = undisturbed
    assert counts(sweep, storage) == {"done": 8}
    for _, _, rows in records(sweep, storage).values():
        assert rows["env_steps"][-1] >= 300_000
    assert "8 done" in output
    assert "W&B: 9 offline runs" in output  # One for each point, and one of the sweep.


def test_points_of_one_structure_compile_once_in_a_process(undisturbed):
    """As many compilations as there were actors, not as there are points."""
    sweep, storage, _ = undisturbed
    found = [record.provenance for record, _, _ in records(sweep, storage).values()]
    processes = {provenance.process for provenance in found}
    assert sum(provenance.compilations for provenance in found) == len(processes)
    if os.cpu_count() >= len(found):
        pytest.skip("a process for each point has nothing to compile twice")
    assert len(processes) <= os.cpu_count() < len(found)


def test_a_launch_leaves_records_and_no_logs_of_ray(undisturbed):
    """No result.json, progress.csv, event file or copy of a result fills the disk."""
    _, storage, _ = undisturbed
    left = {p for p in pathlib.Path(storage).rglob("*") if p.is_file()}
    left = {p.relative_to(storage) for p in left if "wandb" not in p.parts}
    (sources,) = {path for path in left if path.parts[0] == ".code"}
    left.remove(sources)
    names = "manifest-[0-9]+.json|point.gin|(rows|state)-[0-9]+-[0-9]+.(json.gz|npz)"
    assert len(left) == 8 * 4
    assert all(re.fullmatch(names, path.name) for path in left), left


@pytest.fixture
def here(folder, monkeypatch, capsys):
    """Runs a command in this process, where nothing can be trained or checked."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(trials, "run", lambda *_, **__: pytest.fail("trained"))
    monkeypatch.setattr(cluster, "import_ahead", lambda _: pytest.fail("imported Ray"))
    monkeypatch.setattr(checking, "check", lambda points, *_: {})

    def run(*arguments):
        assert __main__.main(arguments) == 0
        return capsys.readouterr().out

    return run


def test_a_second_launch_runs_nothing(undisturbed, here):
    """It says so, starts no Ray, and leaves every record as it was."""
    sweep, storage, _ = undisturbed
    before = {i: r.manifest for i, (r, _, _) in records(sweep, storage).items()}
    output = here("launch", sweep, "--storage", storage, "--wandb", "off")
    after = {i: r.manifest for i, (r, _, _) in records(sweep, storage).items()}
    assert "0 to run" in output
    assert before == after


def test_a_wider_grid_runs_only_the_new_points(undisturbed, folder, here):
    """A weight more is two points more; the plan says so before anything runs."""
    _, storage, _ = undisturbed
    wider = write_sweep(folder, (*WEIGHTS, 0.5))
    output = here("launch", wider, "--storage", storage, "--dry-run")
    assert "10 points: 8 done, 2 missing; 2 to run" in output


def test_a_longer_stop_rule_continues_every_point(undisturbed, here):
    """Done at 300,000 steps is missing at 400,000."""
    sweep, storage, _ = undisturbed
    words = ("--storage", storage, "--dry-run", "--stop", "env_steps=400_000")
    output = here("launch", sweep, *words)
    assert "8 points: 8 missing (8 partly trained); 8 to run" in output


class Disturbed(NamedTuple):
    """A sweep that was killed, stopped and finished, and what its Ray had open."""

    storage: str
    said: str  # By the launch that was stopped.
    counts: dict  # Of its points after that.
    ray_folder: pathlib.Path
    mode: int  # Of the folder, while Ray ran.
    listening: list[str]  # Addresses of all sockets that listened then.


@pytest.fixture(scope="module")
def disturbed(undisturbed, folder):
    """Kill −9 the driver, launch; SIGTERM it, and train on without Ray."""
    sweep, storage = undisturbed[0], str(folder / "disturbed")
    driver = begin(folder, sweep, storage)
    driver.kill()
    driver.communicate(timeout=120)
    # The workers of a killed driver may live long enough to finish their points.
    while "running" in counts(sweep, storage):
        time.sleep(0.5)
    driver = begin(folder, sweep, storage)
    ray_folder, listening = folder_of_ray(driver), addresses(driver)
    mode = ray_folder.stat().st_mode & 0o777
    driver.terminate()
    said, _ = driver.communicate(timeout=120)
    after = counts(sweep, storage)
    finish(folder, sweep, storage)
    return Disturbed(storage, said, after, ray_folder, mode, listening)


def begin(folder, sweep, storage):
    """Launches; returns the driver once it has finished a point, and goes on."""
    chosen = choices.choose(sweep, choices.Choice())
    opened = files.open_storage(storage)

    def num_done():
        return planning.plan(opened, [chosen]).counts().get("done", 0)

    before = num_done()
    arguments = ("launch", sweep, "--storage", storage, "--wandb", "off")
    process = subprocess.Popen(**command(folder, *arguments))
    deadline = time.monotonic() + 200
    while num_done() <= before and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.3)
    assert process.poll() is None, process.stdout.read()
    return process


FINISH = """
import json, sys
from bmg_sweeps.records import files
from bmg_sweeps.running import work_unit

storage, trainer, stops = json.load(sys.stdin)
task = work_unit.Task(trainer=trainer, stops=stops)
statuses = work_unit.run(files.open_storage(storage), task)
assert {*statuses.values()} == {"done"}, statuses
"""


def finish(folder, sweep, storage):
    """Trains what launches have left in one process, as a worker of theirs does."""
    chosen = choices.choose(sweep, choices.Choice())
    told = storage, chosen.sweep.trainer, choices.stops_of([chosen])
    environment = command(folder)["env"]
    environment |= cluster.worker_environment(cluster.Resources())
    environment["JAX_COMPILATION_CACHE_DIR"] = str(folder / ".cache" / "bmg_sweeps")
    subprocess.run(
        [sys.executable, "-c", FINISH],
        input=json.dumps(told),
        env=environment,
        cwd=paths.ROOT,
        text=True,
        timeout=300,
        check=True,
    )


def folder_of_ray(driver):
    """The folder that the processes of a launch's Ray are told of."""
    children = psutil.Process(driver.pid).children(recursive=True)
    words = " ".join(word for child in children for word in child.cmdline())
    pattern = rf"{cluster._short()}/bmg_ray_\w+"
    (found,) = map(pathlib.Path, set(re.findall(pattern, words)))
    return found


def addresses(driver):
    """Where the processes that a launch has started listen."""
    found = []
    for child in psutil.Process(driver.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found += child.net_connections(kind="inet")
    return [one.laddr.ip for one in found if one.status == "LISTEN"]


def test_kills_and_stops_leave_the_numbers_of_an_undisturbed_launch(
    undisturbed, disturbed
):
    """Bitwise the same records, after a kill and a stop."""
    sweep, calm, _ = undisturbed
    assert "Stopped; the same command goes on from here." in disturbed.said
    assert "running" not in disturbed.counts
    expected, actual = records(sweep, calm), records(sweep, disturbed.storage)
    assert expected.keys() == actual.keys()
    for point_id, (_, state, rows) in expected.items():
        assert actual[point_id][2] == rows
        for a, b in zip(actual[point_id][1], state, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


def test_a_ray_of_our_own_is_this_machines_and_this_users(disturbed, folder):
    """Every socket of the launch listens on loopback, and its folder is closed."""
    assert disturbed.mode == 0o700
    assert len(disturbed.listening) > 3
    for ip in disturbed.listening:
        address = ipaddress.ip_address(ip)
        address = getattr(address, "ipv4_mapped", None) or address
        assert address.is_loopback, disturbed.listening
    assert not disturbed.ray_folder.exists()
    assert not (folder / ".ray").exists()  # The home of these launches.
