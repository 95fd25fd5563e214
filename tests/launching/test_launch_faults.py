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

import bad_weather
import psutil
import pytest
import ray_cluster
import toy_checkout

from bmg_sweeps.records import files, store

pytestmark = [pytest.mark.faults, pytest.mark.timeout(2_400)]

POINTS = "product(rate=(0.1, 0.2), width=(3, 4), seed=range(2))"
ENV_STEPS = 500_000  # Training that outlasts five faults.
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
    return toy_checkout.records(folder / storage, "toy_trainer", ENV_STEPS)


@pytest.fixture(scope="module")
def undisturbed(checkout):
    """The records of a launch in peace."""
    status, output = toy_checkout.run(checkout, *launch("calm"), timeout=1_200)
    assert status == 0, output
    return records(checkout, "calm")


def launch(storage, *arguments):
    return ["launch", "toy", "--storage", storage, "--wandb", "off", *arguments]


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


def hear_of_hang_ups():
    """Also where these tests run under `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


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
        process = toy_checkout.popen(
            checkout,
            *launch(storage),
            start_new_session=True,
            preexec_fn=hear_of_hang_ups,
        )
        wait_for_training(checkout, storage, process)
        time.sleep(generator.uniform(0, 2))
        assert process.poll() is None, process.stdout.read()
        KINDS[kind](process)
        TALLY[kind] += 1
        began = time.monotonic()
        output, _ = process.communicate(timeout=1_200)
        if kind.startswith("SIG"):
            assert "the same command goes on from here" in output
            assert time.monotonic() - began < 45, kind
    status, output = toy_checkout.run(checkout, *launch(storage))
    assert status == 0, output
    toy_checkout.assert_undisturbed(records(checkout, storage), undisturbed)


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
    toy_checkout.assert_undisturbed(records(checkout, "machines"), undisturbed)


@pytest.mark.parametrize("seed", range(4))
def test_a_launch_by_rungs_that_is_killed_chooses_as_one_in_peace(
    checkout, undisturbed, seed
):
    """Five kills each: the same records, and the same choice as it is printed."""
    generator = random.Random(seed)
    storage = f"rungs-{seed}"
    for _ in range(5):
        process = toy_checkout.popen(checkout, *launch(storage, "--promising-first"))
        wait_for_training(checkout, storage, process)
        time.sleep(generator.uniform(0, 2))
        assert process.poll() is None, process.stdout.read()
        kind = generator.choice(["kill -9 of the driver", "kill -9 of all of Ray"])
        KINDS[kind](process)
        TALLY[f"{kind}, by rungs"] += 1
        process.communicate(timeout=1_200)
    status, output = toy_checkout.run(
        checkout, *launch(storage, "--promising-first"), timeout=600
    )
    assert status == 0, output
    toy_checkout.assert_undisturbed(records(checkout, storage), undisturbed)
    choices = [
        toy_checkout.run(checkout, "best", "toy", "--storage", name)
        for name in (storage, "calm")
    ]
    assert choices[0] == choices[1]
    assert choices[0][0] == 0


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
    toy_checkout.assert_undisturbed(records(checkout, storage), undisturbed)


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
    outputs = [process.communicate(timeout=1_200)[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), outputs
    if seed:
        assert re.search(r"\d of them run under launch [0-9a-f]{8}", outputs[1])
    toy_checkout.assert_undisturbed(records(checkout, storage), undisturbed)
    opened = files.open_storage(str(checkout / storage))
    for i in undisturbed:
        assert store.read(opened, "toy_trainer", i).manifest.attempt == 1


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A checkout whose evaluations last longer than a holder may stand still."""
    folder = toy_checkout.make(tmp_path_factory.mktemp("slow") / "c", 0.2)
    toy_checkout.write_sweep(folder, POINTS, ENV_STEPS)
    path = folder / "bmg_sweeps" / "records" / "leases.py"
    text = path.read_text().replace("BEAT_SECONDS = 10.0", "BEAT_SECONDS = 0.5")
    path.write_text(text.replace("LOST_SECONDS = 60.0", f"LOST_SECONDS = {LOST}"))
    path = folder / "trainers" / "toy_trainer.py"
    path.write_text(path.read_text() + SLOW)
    return folder


LOST = 5.0
SLOW = f"""

_progress = progress


def progress(config, state):
    import time

    is_traced = isinstance(state.env_steps, jax.core.Tracer)
    if not is_traced and state.env_steps == {ENV_STEPS // 2}:
        time.sleep({2 * LOST})
    return _progress(config, state)
"""


def test_a_point_whose_evaluation_outlasts_a_lease_is_not_taken_over(
    slow, undisturbed, monkeypatch, tmp_path
):
    """It was, from each other for ever, where a lease was renewed by commits alone."""
    first = toy_checkout.popen(slow, *launch("slow"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    second = toy_checkout.popen(slow, *launch("slow"))
    TALLY["evaluation that outlasts a lease"] += len(undisturbed)
    outputs = [process.communicate(timeout=1_200)[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), outputs
    toy_checkout.assert_undisturbed(records(slow, "slow"), undisturbed)
    opened = files.open_storage(str(slow / "slow"))
    for i in undisturbed:
        assert store.read(opened, "toy_trainer", i).manifest.attempt == 1


@pytest.mark.parametrize("seed", range(3))
def test_launches_in_bad_weather_end_as_if_in_peace(
    slow, undisturbed, monkeypatch, tmp_path, seed
):
    """Clocks of two machines jump by days, and the storage refuses for seconds."""
    generator = random.Random(seed)
    storage = f"weather-{seed}"
    processes, weathers, refusals = [], [], 0
    with monkeypatch.context() as patch:
        for name in ("one", "other"):
            weathers.append(bad_weather.Weather(tmp_path / name, slow / storage))
            (tmp_path / f"{name}_tmp").mkdir()
            patch.setenv("TMPDIR", str(tmp_path / f"{name}_tmp"))
            for variable, value in weathers[-1].environment.items():
                patch.setenv(variable, value)
            processes.append(toy_checkout.popen(slow, *launch(storage)))
    wait_for_training(slow, storage, processes[0])
    while any(process.poll() is None for process in processes):
        time.sleep(generator.uniform(0.5, 3))
        weather = generator.choice(weathers)
        if generator.random() < 0.6:
            weather.move_clock(generator.uniform(-1, 1) * 86_400)
            TALLY["clock moved"] += 1
        else:
            weather.refuse()
            time.sleep(generator.uniform(0.2, 0.6 * LOST))
            weather.allow()
            TALLY["storage that refuses for a while"] += 1
            refusals += 1
    outputs = [process.communicate()[0] for process in processes]
    assert not any("Traceback" in output for output in outputs), outputs
    status, output = toy_checkout.run(slow, *launch(storage))
    assert status == 0, output
    toy_checkout.assert_undisturbed(records(slow, storage), undisturbed)
    opened = files.open_storage(str(slow / storage))
    tries = [store.read(opened, "toy_trainer", i).manifest.attempt for i in undisturbed]
    assert sum(tries) <= len(tries) + 4 * refusals, tries


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
            output, _ = process.communicate(timeout=1_200)
        assert process.returncode == 0, output
        toy_checkout.assert_undisturbed(records(checkout, storage), undisturbed)


@pytest.mark.parametrize("env_steps", [20_000, 20])
def test_a_point_that_kills_its_process_again_and_again_has_failed(checkout, env_steps):
    """As one that needs more memory than there is: the others are done.

    Also short ones, which share a trial with it.
    """
    path = checkout / "trainers" / "toy_trainer.py"
    text = path.read_text()
    path.write_text(text if DEADLY in text else text + DEADLY)
    parts = (
        "(0.1,), seed=range(10)",
        "(1000.0,), seed=(0, 1)",
        "(0.2,), seed=range(28)",
    )
    points = " + ".join(f"product(rate={part})" for part in parts)
    toy_checkout.write_sweep(checkout, points, env_steps, name="deadly")
    arguments = ["deadly", "--storage", f"deadly-{env_steps}"]
    status, output = toy_checkout.run(checkout, "launch", *arguments, "--wandb", "off")
    assert status == 1, output
    TALLY["process killed by its own point"] += 2 * 3
    _, output = toy_checkout.run(checkout, "status", *arguments)
    assert "40 points: 38 done, 2 failed" in output
    assert output.count("failed: Died: ") == 2
    _, output = toy_checkout.run(checkout, "launch", *arguments, "--wandb", "off")
    assert "0 to run" in output


DEADLY = """

_progress = progress


def progress(config, state):
    import os

    is_traced = isinstance(state.env_steps, jax.core.Tracer)
    if not is_traced and config.rate > 100 and state.env_steps > 0:
        os.kill(os.getpid(), 9)
    return _progress(config, state)
"""
