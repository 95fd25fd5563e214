"""Kills at random instants of a launch: no point is lost, no row comes twice.

A small sweep of the toy trainer, which commits five times a second, is launched again
and again; each launch but the last meets a fault. The records are then, bit for bit,
those of a launch in peace.
"""

import collections
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import time

import numpy as np
import psutil
import pytest
import ray_cluster
import toy_checkout

from bmg_sweeps.records import files, store

pytestmark = pytest.mark.faults

POINTS = "product(rate=(0.1, 0.2), width=(3, 4), seed=range(2))"
ENV_STEPS = 120_000
TALLY = collections.Counter()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The toy's checkout, and at the end the tally and what kills left behind."""
    before = set(pathlib.Path("/tmp").glob("bmg_ray_*"))
    folder = toy_checkout.make(tmp_path_factory.mktemp("faults") / "c", 0.2)
    toy_checkout.write_sweep(folder, POINTS, ENV_STEPS)
    yield folder
    for path in set(pathlib.Path("/tmp").glob("bmg_ray_*")) - before:
        shutil.rmtree(path, ignore_errors=True)
    kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(TALLY.items()))
    print(f"\nlaunch faults: {sum(TALLY.values())} injected ({kinds})")


def records(folder, storage):
    """Every point's status, state, and rows without the times."""
    there = (folder / storage / "toy_trainer").glob("*")
    keys = [("toy_trainer", path.name) for path in there]
    opened = files.open_storage(str(folder / storage))
    found = {}
    for i, record in store.scan(opened, keys, verify=True).items():
        rows = store.rows(opened, record)
        rows.pop("training_seconds", None)
        status = store.status(record, {"env_steps": ENV_STEPS})
        found[i] = status, store.state(opened, record), rows
    return found


@pytest.fixture(scope="module")
def undisturbed(checkout):
    """The records of a launch in peace."""
    status, output = toy_checkout.run(checkout, *launch("calm"))
    assert status == 0, output
    return records(checkout, "calm")


def launch(storage, *arguments):
    return ["launch", "toy", "--storage", storage, "--wandb", "off", *arguments]


def assert_undisturbed(found, expected):
    """No point lost, each row once, and every bit of the states."""
    assert found.keys() == expected.keys()
    for i, (status, state, rows) in expected.items():
        assert found[i][0] == status == "done"
        assert found[i][2] == rows
        steps = rows["env_steps"]
        assert steps == sorted(set(steps))
        for a, b in zip(found[i][1], state, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


def wait_for_training(folder, storage, process, seconds=90):
    """Waits until a launch has begun to train, or is over."""
    flag = folder / storage / "toy_trainer"
    deadline = time.monotonic() + seconds
    seen = commits(flag)
    while process.poll() is None and time.monotonic() < deadline:
        if commits(flag) - seen:
            return
        time.sleep(0.05)


def commits(folder):
    return {path.name for path in folder.glob("*/state-*")}


def descendants(process):
    return psutil.Process(process.pid).children(recursive=True)


def workers(process):
    """The processes that train points."""
    found = []
    for child in descendants(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "ray::ImplicitFunc" in " ".join(child.cmdline()):
                found.append(child)
    return found


def kill_driver(process):
    process.kill()


def kill_all_of_ray(process):
    for child in [*descendants(process), psutil.Process(process.pid)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


def terminate(process):
    process.send_signal(signal.SIGTERM)


def terminate_the_group(process):
    """As `timeout` and Slurm do: Ray gets it, too."""
    os.killpg(process.pid, signal.SIGTERM)


def hang_up(process):
    """As a terminal that closes does."""
    os.killpg(process.pid, signal.SIGHUP)


KINDS = {
    "SIGTERM to the process group": terminate_the_group,
    "SIGHUP to the process group": hang_up,
    "kill -9 of the driver": kill_driver,
    "kill -9 of all of Ray": kill_all_of_ray,
    "SIGTERM": terminate,
}


@pytest.mark.parametrize("seed", range(5))
def test_launches_that_are_killed_end_as_if_in_peace(checkout, undisturbed, seed):
    """Each kind of fault, in an order of its own, and a launch after each."""
    generator = random.Random(seed)
    storage, kinds = f"killed-{seed}", list(KINDS)
    generator.shuffle(kinds)
    for kind in kinds:
        process = toy_checkout.popen(checkout, *launch(storage), start_new_session=True)
        wait_for_training(checkout, storage, process)
        time.sleep(generator.uniform(0, 2))
        assert process.poll() is None, process.stdout.read()
        KINDS[kind](process)
        TALLY[kind] += 1
        began = time.monotonic()
        output, _ = process.communicate(timeout=200)
        if kind.startswith("SIG"):
            assert "the same command goes on from here" in output
            assert time.monotonic() - began < 45, kind
    status, output = toy_checkout.run(checkout, *launch(storage))
    assert status == 0, output
    assert_undisturbed(records(checkout, storage), undisturbed)


def test_points_of_a_lost_machine_are_taken_over(checkout, undisturbed, monkeypatch):
    """The other one finds no lock of it, and waits until its pulse stands still."""
    elsewhere = checkout.parent / "elsewhere"
    elsewhere.mkdir()
    with monkeypatch.context() as patch:
        patch.setenv("TMPDIR", str(elsewhere))
        process = toy_checkout.popen(checkout, *launch("machines"))
        wait_for_training(checkout, "machines", process)
        kill_all_of_ray(process)
        process.communicate(timeout=60)
    TALLY["a machine is lost"] += 1
    status, output = toy_checkout.run(checkout, *launch("machines"))
    assert status == 0, output
    assert "this launch waits for them" in output
    assert_undisturbed(records(checkout, "machines"), undisturbed)


@pytest.mark.parametrize("seed", range(2))
def test_a_launch_outlives_its_workers(checkout, undisturbed, seed):
    """Ray starts another process, and the point goes on from its last commit."""
    generator = random.Random(seed)
    storage = f"workers-{seed}"
    process = toy_checkout.popen(checkout, *launch(storage))
    for _ in range(2):
        wait_for_training(checkout, storage, process)
        time.sleep(generator.uniform(0, 2))
        generator.choice(workers(process)).kill()
        TALLY["kill -9 of a worker"] += 1
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert_undisturbed(records(checkout, storage), undisturbed)


@pytest.mark.parametrize(("seed", "machines"), [(0, 1), (1, 1), (2, 2)])
def test_two_launches_at_once_share_the_work(
    checkout, undisturbed, monkeypatch, tmp_path, seed, machines
):
    """Each point is trained once, and the later launch says by whom."""
    generator = random.Random(seed)
    storage = f"both-{seed}"
    first = toy_checkout.popen(checkout, *launch(storage))
    if seed:
        wait_for_training(checkout, storage, first)
        time.sleep(generator.uniform(0, 2))
    if machines > 1:  # Neither finds the other's locks.
        monkeypatch.setenv("TMPDIR", str(tmp_path))
    second = toy_checkout.popen(checkout, *launch(storage))
    TALLY[f"two launches at once, on {machines} machines"] += 1
    outputs = [process.communicate(timeout=400)[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), outputs
    if seed:
        assert re.search(r"\d of them run under launch [0-9a-f]{8}", outputs[1])
    assert_undisturbed(records(checkout, storage), undisturbed)
    opened = files.open_storage(str(checkout / storage))
    for i in undisturbed:
        assert store.read(opened, "toy_trainer", i).manifest.attempt == 1


def test_a_launch_outlives_its_nodes(checkout, undisturbed, monkeypatch):
    """A node of a cluster is killed while its points train; the other goes on."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    for seed in range(2):
        storage = f"nodes-{seed}"
        with ray_cluster.running() as (address, kill_a_node):
            process = toy_checkout.popen(
                checkout, *launch(storage), "--address", address
            )
            wait_for_training(checkout, storage, process)
            time.sleep(random.Random(seed).uniform(0, 5))
            kill_a_node()
            TALLY["kill -9 of a node"] += 1
            output, _ = process.communicate(timeout=400)
        assert process.returncode == 0, output
        assert_undisturbed(records(checkout, storage), undisturbed)


def test_a_point_that_kills_its_process_again_and_again_has_failed(checkout):
    """As one that needs more memory than there is: the others are done."""
    path = checkout / "trainers" / "toy_trainer.py"
    path.write_text(path.read_text() + DEADLY)
    points = "product(rate=(0.1, 1000.0), seed=range(2))"
    toy_checkout.write_sweep(checkout, points, 20_000, name="deadly")
    arguments = ["deadly", "--storage", "deadly"]
    status, output = toy_checkout.run(checkout, "launch", *arguments, "--wandb", "off")
    assert status == 1
    TALLY["process killed by its own point"] += 2 * 3
    _, output = toy_checkout.run(checkout, "status", *arguments)
    assert "4 points: 2 done, 2 failed" in output
    assert output.count("failed: Died: ") == 2
    _, output = toy_checkout.run(checkout, "launch", *arguments, "--wandb", "off")
    assert "0 to run" in output


DEADLY = """

_progress = progress


def progress(config, state):
    import os

    if config.rate > 100 and state.env_steps > 0:
        os.kill(os.getpid(), 9)
    return _progress(config, state)
"""
