"""Points of the toy trainer, for tests of what may befall a record."""

import contextlib
import pathlib

import numpy as np

import trainers
from bmg_sweeps import files, store, work_unit

TRAINER = "toy_trainer"
STOP = {"env_steps": 60}  # Six chunks of ten steps, with two rows each.
STEPS = list(range(5, 61, 5))


@contextlib.contextmanager
def importable():
    """Puts this folder on the path of the package `trainers`."""
    trainers.__path__.append(str(pathlib.Path(__file__).parent))
    try:
        yield
    finally:
        trainers.__path__.pop()


def declare(storage: files.Storage, point_id: str, seed: int = 0) -> str:
    values = {"seed": seed, "rate": 0.1, "nan_at": 0, "width": 3}
    lines = ["import trainers.toy_trainer"]
    lines += [f"toy_trainer.{name} = {value!r}" for name, value in values.items()]
    store.declare(storage, TRAINER, point_id, "\n".join(lines))
    return point_id


def run(storage: files.Storage, point_id: str, should_stop=lambda: False) -> str:
    task = work_unit.Task(trainer=TRAINER, stops={point_id: STOP})
    return work_unit.run(storage, task, should_stop)[point_id]


def stop_after(chunks: int):
    """Returns a `should_stop` that says yes once a number of chunks have run."""
    left = iter([False] * (1 + chunks))  # Asked once before the first.
    return lambda: next(left, True)


def read(storage: files.Storage, point_id: str) -> store.Record:
    return store.read(storage, TRAINER, point_id)


def outcome(storage: files.Storage, point_id: str) -> tuple:
    """State and rows of a point; not how long they took."""
    record = read(storage, point_id)
    rows = store.rows(storage, record)
    rows.pop("training_seconds", None)
    return store.state(storage, record), rows


def is_same(first: tuple, second: tuple) -> bool:
    """Compares two outcomes bit for bit."""
    return first[1] == second[1] and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(first[0], second[0], strict=True)
    )


def is_once(rows: store.Rows) -> bool:
    """Whether each row of a whole run is there, and only once."""
    return rows["env_steps"] == STEPS and bool(np.all(np.isfinite(rows["reward"])))
