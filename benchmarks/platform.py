"""What everything but training costs: launching, committing, compiling again, looking.

    .venv/bin/python -m benchmarks.platform [PART …] [--points 1000]

prints a table with a row for each number. Parts, all of them unless named:

    nothing   a launch of points of the tests' toy trainer, which do next to nothing
    share     a smoke sweep of 60 points on glyphs: how much of a process's time, once
              its programs are compiled, is outside of `train`
    again     programs that a second process compiles for structures of a first one
    looking   `status` and `report` of ten times as many points, half as many
              configurations, and of a sixteenth and a quarter of them, with the slopes

Seconds are of the wall. CPU seconds are those of all processes that were started; they
tell more where other work runs beside. The records of `looking` are written without
training, and without waiting for the disk.
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time
from unittest import mock

import psutil

from benchmarks import timing
from bmg_sweeps import paths
from bmg_sweeps.launching import cluster
from bmg_sweeps.records import attempts, files, store
from bmg_sweeps.sweep import choices

sys.path.append(str(paths.ROOT / "tests"))

import toy_checkout

_STEPS = 20
_GLYPHS = "table_5"  # Of 4 structures at smoke, all on glyphs.
_SEEDS = "0-14"  # Of each structure: 60 points.
_GROWTH = (1, 4, 16)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(_PARTS))
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--count-with-seed", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count_with_seed is not None:
        _count(options.count_with_seed)
        return
    print("| what | result |\n| --- | --- |")
    for part in options.parts or _PARTS:
        with tempfile.TemporaryDirectory() as parent:
            folder = toy_checkout.make(f"{parent}/checkout")
            _PARTS[part](folder, options.points)


def _nothing(folder: pathlib.Path, points: int) -> None:
    name = toy_checkout.write_sweep(folder, _grid(points), _STEPS)
    records, started, seconds, cpu = _launch(folder, name)
    first = min(record.provenance.began for record in records)
    _say(f"launch of {points:,} points of nothing", f"{seconds:.0f} s")
    _say("the same, CPU seconds", f"{cpu:.0f} s")
    _say("from `launch` to the first update of nothing", f"{first - started:.1f} s")


def _share(folder: pathlib.Path, points: int) -> None:
    del points
    records, started, _, _ = _launch(folder, _GLYPHS, "--seeds", _SEEDS)
    first = min(record.provenance.began for record in records)
    _say("from `launch` to the first update on glyphs", f"{first - started:.0f} s")
    processes = collections.defaultdict(list)
    for record in records:
        processes[record.provenance.process].append(record)
    number, whole, train, evaluate = 0, 0.0, 0.0, 0.0
    for of_one in processes.values():
        of_one.sort(key=lambda record: record.provenance.began)
        for before, after in itertools.pairwise(of_one):
            if not after.provenance.compilations:
                number += 1
                whole += after.provenance.ended - before.provenance.ended
                train += 3600 * after.hours
                evaluate += after.provenance.evaluation_seconds
    _say("points on glyphs that found their programs", f"{number} of {len(records)}")
    outside, others = 1 - train / whole, 1 - (train + evaluate) / whole
    _say("of their time, outside of `train`", f"{outside:.1%}")
    _say("of their time, outside of `train` and `evaluate`", f"{others:.1%}")


def _again(folder: pathlib.Path, points: int) -> None:
    """Counts what two processes compile of the same structures, of different seeds."""
    del points
    environment = os.environ | cluster.worker_environment(cluster.Resources())
    environment["JAX_COMPILATION_CACHE_DIR"] = str(folder / "cache")
    for seed, name in enumerate(("first", "second")):
        child = [sys.executable, "-m", "benchmarks.platform"]
        done = subprocess.run(
            [*child, "--count-with-seed", str(seed)],
            env=environment,
            cwd=paths.ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        _say(f"programs that a {name} process compiles", done.stdout.strip())


def _count(seed: int) -> None:
    """Trains a point of each structure, and prints how many programs were compiled."""
    import jax

    from bmg_sweeps.running import work_unit

    events: collections.Counter[str] = collections.Counter()
    jax.monitoring.register_event_listener(lambda name, **_: events.update([name]))
    chosen = choices.choose(_GLYPHS, choices.Choice(seeds=(seed,)))
    stops = {p.id: {"meta_updates": 10} for p in chosen.points}
    with tempfile.TemporaryDirectory() as folder:
        storage = files.open_storage(folder)
        texts = ((p.trainer, p.id, p.gin_text()) for p in chosen.points)
        store.declare_all(storage, texts)
        task = work_unit.Task(trainer=chosen.sweep.trainer, stops=stops)
        statuses = work_unit.run(storage, task)
        assert set(statuses.values()) == {"done"}, statuses
    asked = events["/jax/compilation_cache/compile_requests_use_cache"]
    print(f"{asked - events['/jax/compilation_cache/cache_hits']} of {asked}")


def _looking(folder: pathlib.Path, points: int) -> None:
    sizes = [10 * points * part // _GROWTH[-1] for part in _GROWTH]
    names = {size: f"of_{size}" for size in sizes}
    for size, name in names.items():
        toy_checkout.write_sweep(folder, _grid(size), _STEPS, name)
    _forge(folder, names[sizes[-1]])
    for command in (["status"], ["report"], ["report", "--format", "html"]):
        (verb, *more), shown, cpus = command, " ".join(command), []
        for size, name in names.items():
            before, began = _cpu_of_children(), time.perf_counter()
            status, output = toy_checkout.run(folder, verb, name, *more)
            assert status == 0, output
            seconds = time.perf_counter() - began
            cpus.append(_cpu_of_children() - before)
            result = f"{seconds:.1f} s, {cpus[-1]:.1f} s of CPU"
            _say(f"`{shown}`, {size:,} points", result)
        slopes = timing.slopes(sizes, cpus)
        _say(f"`{shown}`, slopes of the logarithms", slopes)


def _grid(points: int) -> str:
    return f"product(rate=[i / 1e6 for i in range(1, {points // 2 + 1})], seed=(0, 1))"


def _launch(folder: pathlib.Path, name: str, *more: str) -> tuple:
    """Launches a sweep; returns records, begin, seconds and CPU seconds."""
    started, began, cpu = time.time(), time.perf_counter(), {}
    process = toy_checkout.popen(folder, "launch", name, "--wandb", "off", *more)
    while process.poll() is None:
        cpu |= _cpu_of(process.pid)
        time.sleep(0.5)
    seconds = time.perf_counter() - began
    assert process.returncode == 0, process.stdout.read()
    storage = files.open_storage(str(folder / "runs"))
    trainers = [t for t in storage.folders() if (folder / "gin" / f"{t}.gin").exists()]
    keys = [(t, i) for t in trainers for i in storage.folders(t)]
    records = [r for r in store.scan(storage, keys).values() if r.provenance.began]
    return records, started, seconds, sum(cpu.values())


def _cpu_of(pid: int) -> dict[int, float]:
    """CPU seconds so far of a process and all below it, by process."""
    found = {}
    try:
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            times = one.cpu_times()
            found[one.pid] = times.user + times.system
    except psutil.NoSuchProcess:
        pass  # Those that ended meanwhile keep what they had.
    return found


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _forge(folder: pathlib.Path, name: str) -> None:
    """Writes a record for each point of a sweep, as one of the toy would be."""
    process = toy_checkout.popen(folder, "show", name, "--json")
    shown = json.loads(process.communicate()[0])
    storage, luck = files.open_storage(str(folder / "runs")), random.Random(0)
    with mock.patch("os.fsync"):
        for p in shown["points"]:
            rewards = [luck.gauss(0, 1) for _ in range(6)]
            record = store.Record(shown["trainer"], p["id"])
            attempts.begin(storage, record).commit(
                progress={"env_steps": _STEPS, "hours": 0.001},
                rows={
                    "env_steps": [5, 10, 10, 15, 20, 20],
                    "reward": [round(r, 6) for r in rewards],
                    "training_seconds": [0.9, 1.8, 1.8, 2.7, 3.6, 3.6],
                },
                provenance={"revision": "0123456789ab", "device": "cpu", "threads": 1},
                release=True,
            )


def _say(what: str, result: str) -> None:
    print(f"| {what} | {result} |", flush=True)


_PARTS = {"nothing": _nothing, "share": _share, "again": _again, "looking": _looking}

if __name__ == "__main__":
    main()
