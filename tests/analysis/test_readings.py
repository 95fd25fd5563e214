"""Rows that are read while their point is in work, from made-up records."""

import pytest

from bmg_sweeps.analysis import readings
from bmg_sweeps.records import attempts, store
from bmg_sweeps.sweep import choices, grid
from bmg_sweeps.sweep.point import Point

POINT = Point("toy", {"rate": 0.1, "seed": 0})
KEY = (POINT.trainer, POINT.id)


@pytest.fixture
def attempt(storage):
    store.declare(storage, *KEY, "# No gin is read here.\n")
    return attempts.begin(storage, store.read(storage, *KEY))


def commit(attempt, *numbers):
    """Commits a row at each of some amounts; in all tables they are the same."""
    for number in numbers:
        table = {"env_steps": list(range(1, number + 1)), "reward": [0.5] * number}
        attempt.commit(
            progress={"env_steps": number}, rows=table, validation=table, test=table
        )


def chosen():
    rule = grid.Select(metric="reward", mode="max", budgets={"env_steps": 1})
    sweep = grid.Sweep(title="Toy", trainer="toy", scales={}, select=rule, methods={})
    return choices.Chosen("toy", sweep, (POINT,), {"env_steps": 9})


def test_a_point_that_commits_while_a_sweep_is_read_is_read_anew(
    storage, attempt, monkeypatch
):
    """A scan of many points takes longer than the objects of a commit are kept."""
    commit(attempt, 1)
    scan = store.scan

    def slow_scan(*arguments):
        records = scan(*arguments)
        commit(attempt, 2, 3)
        return records

    monkeypatch.setattr(store, "scan", slow_scan)
    (one,) = readings.load(storage, chosen())
    assert one.record.damage is None
    assert one.record.progress == {"env_steps": 3}
    assert one.rows["env_steps"] == one.validation["env_steps"] == [1, 2, 3]


def test_rows_and_validations_are_of_one_commit(storage, attempt, monkeypatch):
    """Those of the record that is returned, wherever commits fall between reads."""
    commit(attempt, 1)
    rows, later = store.rows, iter([2, 3])

    def slow_rows(storage, record, table):
        found = rows(storage, record, table)
        commit(attempt, *later)
        return found

    monkeypatch.setattr(store, "rows", slow_rows)
    one = readings.load_one(storage, POINT, store.read(storage, *KEY))
    assert one.record.progress == {"env_steps": 3}
    assert one.rows["env_steps"] == one.validation["env_steps"] == [1, 2, 3]


def test_tests_of_a_point_that_has_committed_since_are_read_anew(storage, attempt):
    """They go on from those that the record had."""
    commit(attempt, 1)
    record = store.read(storage, *KEY)
    commit(attempt, 2, 3)
    assert readings.tests(storage, record)["env_steps"] == [1, 2, 3]


def test_a_point_whose_objects_were_altered_stays_damaged(storage, attempt):
    """Its manifest stays as it is, so nothing newer is there to be read."""
    commit(attempt, 1)
    record = store.read(storage, *KEY)
    for part in ("rows", "test"):
        name = record.objects[part].name
        data = storage.read(*KEY, name)
        storage.replace(b"x" * len(data), *KEY, name)
    one = readings.load_one(storage, POINT, record)
    assert "not the bytes that were written" in one.record.damage
    assert (one.rows, one.validation) == ({}, {})
    assert readings.tests(storage, record) == {}


def test_reading_ends_where_a_point_never_stands_still(storage, attempt, monkeypatch):
    """Then it counts as damaged, with the object that was missing last."""
    commit(attempt, 1)
    read, later = store.read, iter(range(2, 1000))

    def overtaken_read(*arguments):
        record = read(*arguments)
        commit(attempt, next(later), next(later))
        return record

    monkeypatch.setattr(store, "read", overtaken_read)
    one = readings.load_one(storage, POINT, overtaken_read(storage, *KEY))
    assert "no such file" in one.record.damage
    assert next(later) < 100


def test_a_column_of_both_tables_is_read_from_training():
    """Times are in validations as well, of which there are fewer."""
    rows = {"env_steps": [1, 2, 3], "hours": [0.1, 0.2, 0.3], "reward": [5, 6, 7]}
    validation = {"env_steps": [2], "hours": [0.2], "validation_reward": [4]}
    one = readings.Trained(POINT, store.Record(*KEY), rows, validation)
    assert one.table("hours") is rows
    assert one.table("reward") is rows
    assert one.table("validation_reward") is validation
