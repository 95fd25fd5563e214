"""A copy of the checkout that has the toy trainer, for launches through a real Ray.

Workers get trainers/ of the checkout that the command runs in, and nothing of tests/.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np

from bmg_sweeps import paths
from bmg_sweeps.records import files, store

SWEEP = """
from bmg_sweeps.sweep import Method, Scale, Select, Sweep, product

SWEEP = Sweep(
    title="Toy",
    trainer="toy_trainer",
    scales={{"smoke": Scale({points}, stop={{"env_steps": {env_steps}}})}},
    select=Select(metric="reward", mode="max", budgets={{"env_steps": 2}}),
    methods={{"all": Method({{}}, tuned={{"rate": "rate"}})}},
)
"""
GIN = """
toy_trainer.seed = 0
toy_trainer.rate = 0.1
toy_trainer.nan_at = 0
toy_trainer.width = 3
"""


def make(folder, commit_seconds=30.0):
    """Copies what commands need into a folder, and adds the toy.

    Args:
        folder: to be made.
        commit_seconds: instead of the real ones, so that short runs commit often.

    Returns:
        The folder.
    """
    folder = pathlib.Path(folder)
    # What Python has compiled stays valid; what it is about to write does not stay.
    ignored = shutil.ignore_patterns("*.pyc.*")
    for name in ("bmg_sweeps", "trainers", "gin", "sweeps"):
        shutil.copytree(paths.ROOT / name, folder / name, ignore=ignored)
    shutil.copy(pathlib.Path(__file__).parent / "toy_trainer.py", folder / "trainers")
    (folder / "gin" / "toy_trainer.gin").write_text(GIN)
    path = folder / "bmg_sweeps" / "running" / "pack.py"
    text, new = path.read_text(), f"COMMIT_SECONDS = {commit_seconds}"
    assert "COMMIT_SECONDS = 30.0" in text
    path.write_text(text.replace("COMMIT_SECONDS = 30.0", new))
    return folder


def enter(folder, toy, monkeypatch, points):
    """Makes a folder the checkout of this process, with a sweep of the toy, mine.py.

    Args:
        folder: where the process goes.
        toy: the trainer's module.
        monkeypatch: undoes it after the test.
        points: Python text.
    """
    (folder / "gin").mkdir()
    (folder / "gin" / "toy_trainer.gin").write_text(GIN)
    (folder / "mine.py").write_text(SWEEP.format(points=points, env_steps=60))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(paths, "TRAINERS", pathlib.Path(toy.__file__).parent)
    monkeypatch.setattr(paths, "GIN", folder / "gin")


def write_sweep(folder, points, env_steps, name="toy"):
    """Writes a sweep of toy points; `points` is Python text."""
    path = pathlib.Path(folder) / "sweeps" / f"{name}.py"
    path.write_text(SWEEP.format(points=points, env_steps=env_steps))
    return name


def records(storage, trainer, env_steps):
    """Every point's status, state, and rows without the times."""
    keys = [(trainer, path.name) for path in (storage / trainer).glob("*")]
    opened = files.open_storage(str(storage))
    found = {}
    for i, record in store.scan(opened, keys, verify=True).items():
        rows = store.rows(opened, record)
        rows.pop("training_seconds", None)
        status = store.status(record, {"env_steps": env_steps})
        found[i] = status, store.state(opened, record), rows
    return found


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


def popen(folder, *arguments, **keywords):
    """Starts a command as a user types it, with a home and caches of its own."""
    environment = os.environ | {"HOME": str(folder), "COLUMNS": "200"}
    environment.pop("XDG_CACHE_HOME", None)
    return subprocess.Popen(
        [sys.executable, "-m", "bmg_sweeps", *arguments],
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **keywords,
    )


def run(folder, *arguments, timeout=300):
    """Runs a command to its end; returns its status and output."""
    process = popen(folder, *arguments)
    output, _ = process.communicate(timeout=timeout)
    assert "Traceback" not in output, output
    return process.returncode, output
