"""A thousand points that do nothing, and ten thousand that are only planned.

    .venv/bin/python -m benchmarks.scale [POINTS] [--wandb offline]

launches a grid of the tests' toy trainer in a copy of the checkout, and prints how long
that and the commands on its records take, how the memory of the driver and of a worker
grows from a fifth of the points on, and how large a record is.
"""

import argparse
import statistics
import sys
import tempfile
import time

import psutil

from bmg_sweeps import paths
from bmg_sweeps.records import files, store

sys.path.append(str(paths.ROOT / "tests"))

import toy_checkout

_STEPS = 20
_TEN_TIMES = "ten_times"


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("points", nargs="?", type=int, default=1000)
    parser.add_argument("--wandb", default="off", choices=("off", "offline"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        folder = toy_checkout.make(f"{parent}/checkout")
        toy_checkout.write_sweep(folder, _grid(options.points), _STEPS)
        toy_checkout.write_sweep(folder, _grid(10 * options.points), _STEPS, _TEN_TIMES)
        print("| what | result |\n| --- | --- |")
        _launch(folder, options)
        _commands(folder, options.points)
        _sizes(folder)


def _grid(points: int) -> str:
    return f"product(rate=[i / 1e6 for i in range(1, {points // 2 + 1})], seed=(0, 1))"


def _launch(folder, options) -> None:
    began = time.perf_counter()
    process = toy_checkout.popen(folder, "launch", "toy", "--wandb", options.wandb)
    trained = folder / "runs" / "toy_trainer"
    samples = []
    while process.poll() is None:
        number = len(list(trained.glob("*/rows-*"))) if trained.exists() else 0
        samples.append((number, *_memory(process)))
        time.sleep(1)
    seconds = time.perf_counter() - began
    _say(f"launch of {options.points} points, W&B {options.wandb}", f"{seconds:.0f} s")
    later = [s for s in samples if s[0] > options.points / 5 and s[2] > 0]
    first, last = later[0], later[-1]
    number = last[0] - first[0]
    _say("driver's growth a point", f"{(last[1] - first[1]) / number / 1e3:.0f} kB")
    _say("a worker's growth a point", f"{(last[2] - first[2]) / number / 1e3:.0f} kB")
    _say(
        "driver and worker at the end",
        f"{last[1] / 1e6:.0f} and {last[2] / 1e6:.0f} MB",
    )


def _memory(process) -> tuple[int, float]:
    """Resident bytes of the driver, and of its workers' mean."""
    try:
        driver = psutil.Process(process.pid)
        workers = [
            child.memory_info().rss
            for child in driver.children(recursive=True)
            if "ray::ImplicitFunc" in " ".join(child.cmdline())
        ]
        return driver.memory_info().rss, statistics.fmean(workers or [0])
    except psutil.NoSuchProcess:
        return 0, 0.0


def _commands(folder, points: int) -> None:
    of_some = (["status"], ["report"], ["report", "--format", "html"])
    of_some = [[first, "toy", *rest] for first, *rest in of_some]
    of_many = (["show"], ["status"], ["launch", "--dry-run"])
    of_many = [[first, _TEN_TIMES, *rest] for first, *rest in of_many]
    for number, commands in ((points, of_some), (10 * points, of_many)):
        for command in commands:
            began = time.perf_counter()
            status, output = toy_checkout.run(folder, *command)
            seconds = time.perf_counter() - began
            assert status == 0, output
            shown = " ".join(command).replace(_TEN_TIMES, "toy")
            _say(f"`{shown}`, {number} points", f"{seconds:.1f} s")


def _sizes(folder) -> None:
    """Bytes of a record without its state, and on disk."""
    storage = files.open_storage(str(folder / "runs"))
    without, whole = [], []
    for point_id in store.scan(storage, _keys(folder)):
        sizes = storage.sizes("toy_trainer", point_id)
        whole.append(sum(sizes.values()))
        without.append(sum(n for name, n in sizes.items() if "state" not in name))
    _say("a record without its state", f"{statistics.median(without) / 1e3:.1f} kB")
    _say("a record", f"{statistics.median(whole) / 1e3:.1f} kB")


def _keys(folder) -> list[tuple[str, str]]:
    there = (folder / "runs" / "toy_trainer").iterdir()
    return [("toy_trainer", path.name) for path in there]


def _say(what: str, result: str) -> None:
    print(f"| {what} | {result} |", flush=True)


if __name__ == "__main__":
    main()
