"""Points of the toy trainers: how tests declare them, and compare what they leave."""

import contextlib
import pathlib

import numpy as np

import trainers
from bmg_sweeps.records import leases, store
from bmg_sweeps.running import work_unit

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


def end_pulses():
    """Ends what would end with the process, had it died."""
    for pulse in leases.PULSES.values():
        pulse.end()
    leases.PULSES.clear()


def declare(storage, point_id, trainer=TRAINER, **values):
    """Declares a point; what is not said has a value that does no harm."""
    values = {"seed": 0, "rate": 0.1, "nan_at": 0, "width": 3} | values
    lines = [f"import trainers.{trainer}"]
    lines += [f"{trainer}.{name} = {value!r}" for name, value in values.items()]
    store.declare(storage, trainer, point_id, "\n".join(lines))
    return point_id


def run(storage, point_id, stop=STOP, **keywords):
    """Runs one point as a trial of its own; returns its status."""
    return run_all(storage, {point_id: stop}, **keywords)[point_id]


def read(storage, point_id, trainer=TRAINER):
    """Reads the record of a point."""
    return store.read(storage, trainer, point_id)


def run_all(storage, stops, trainer=TRAINER, **keywords):
    """Runs points as one trial; returns their statuses."""
    should_stop = keywords.pop("should_stop", lambda: False)
    task = work_unit.Task(trainer=trainer, stops=stops, **keywords)
    return work_unit.run(storage, task, should_stop)


def outcome(storage, point_id, trainer=TRAINER):
    """State and rows of a point; not how long they took."""
    record = read(storage, point_id, trainer)
    tables = [store.rows(storage, record, name) for name in store.TABLES]
    for table in tables:
        table.pop("training_seconds", None)
    rows, *evaluations = tables
    return store.state(storage, record), rows, *evaluations


def assert_same(first, second):
    """Compares two outcomes bit for bit."""
    assert first[1:] == second[1:]
    for a, b in zip(first[0], second[0], strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def is_same(first, second):
    """Compares two outcomes bit for bit."""
    return first[1:] == second[1:] and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(first[0], second[0], strict=True)
    )


def is_once(rows):
    """Whether each row of a whole run is there, and only once."""
    return rows["env_steps"] == STEPS and bool(np.all(np.isfinite(rows["reward"])))


def stop_after(chunks):
    """Returns a `should_stop` that says yes once a number of chunks have run."""
    left = iter([False] * (1 + chunks))  # Asked once before the first.
    return lambda: next(left, True)
