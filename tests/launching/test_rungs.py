"""Rungs: how far points train first, and who goes on from there."""

import dataclasses

import pytest
import toy_runs

from bmg_sweeps.launching import rungs
from bmg_sweeps.records import attempts, files, store
from bmg_sweeps.sweep import choices

STOP = {"env_steps": 100}
# By method and configuration, the scores of two seeds.
SCORES = {"A": [[1, 2], [7, 8], [4, 5]], "B": [[3, 3], [9, 1]]}


@pytest.fixture
def storage(tmp_path):
    return files.open_storage(str(tmp_path))


def chosen(stop=STOP, mode="max", scores=SCORES):
    """A sweep of the configurations of the scores."""
    points = [one.point for one in toy_runs.table(scores)]
    return choices.Chosen("toy", toy_runs.sweep("AB", mode), tuple(points), stop)


def record(storage, scores=SCORES, left_out=()):
    """Records that each point has its score at 50 steps, and something else at 100."""
    for one in toy_runs.table(scores):
        if one.point.id in left_out:
            continue
        rows = {"env_steps": [50, 100], "reward": [one.rows["reward"][0], 0.0]}
        store.declare(storage, "toy", one.point.id, "")
        _commit(storage, one.point.id, rows)


def _commit(storage, point_id, rows):
    attempt = attempts.begin(storage, store.read(storage, "toy", point_id))
    attempt.commit(progress={"env_steps": 100}, state=[], rows=rows, release=True)


def by_values(ranks, one):
    """Ranks by method, configuration and seed."""
    return {
        (p.values["kind"], p.values["rate"], p.values["seed"]): ranks[p.id]
        for p in one.points
        if p.id in ranks
    }


def test_a_rung_is_a_part_of_every_amount():
    """Whole numbers are rounded up, so that no rung is before its first step."""
    one = rungs.at(chosen({"env_steps": 1001, "hours": 0.5}), 1 / 8)
    assert one.stop == {"env_steps": 126, "hours": 0.0625}
    assert rungs.at(one, 1.0) == one
    assert rungs.PARTS[-1] == 1.0
    assert list(rungs.PARTS) == sorted(set(rungs.PARTS))


def test_configurations_stand_in_their_method_by_what_the_rung_shows(storage):
    """By the mean over seeds at half of the stop rule, where rows go on to its end."""
    record(storage)
    half = rungs.at(chosen(), 0.5)
    assert by_values(rungs.ranks(storage, [half]), half) == {
        **{("A", 1, seed): 0 for seed in (0, 1)},
        **{("A", 2, seed): 1 for seed in (0, 1)},
        **{("A", 0, seed): 2 for seed in (0, 1)},
        **{("B", 1, seed): 0 for seed in (0, 1)},
        **{("B", 0, seed): 1 for seed in (0, 1)},
    }


def test_less_is_better_where_the_sweep_says_so(storage):
    """With mode "min" the order is the other way round."""
    record(storage)
    half = rungs.at(chosen(mode="min"), 0.5)
    found = by_values(rungs.ranks(storage, [half]), half)
    assert [found["A", rate, 0] for rate in range(3)] == [0, 2, 1]


def test_a_configuration_that_lacks_a_run_has_no_rank(storage):
    """It goes after those that have one."""
    half = rungs.at(chosen(), 0.5)
    record(storage, left_out={half.points[2].id})  # Of A, the best one's first seed.
    ranks = rungs.ranks(storage, [half])
    found = by_values(ranks, half)
    assert ("A", 1, 1) not in found
    assert found["A", 2, 0] == 0
    assert rungs.best_rank([half.points[3].id], ranks) > max(ranks.values())


def test_a_point_of_two_sweeps_has_its_better_rank(storage):
    """In a sweep of its configuration alone it is the first."""
    record(storage)
    half = rungs.at(chosen(), 0.5)
    alone = choices.Chosen("alone", half.sweep, half.points[:2], half.stop)
    found = by_values(rungs.ranks(storage, [half, alone]), half)
    assert found["A", 0, 0] == found["A", 1, 0] == 0
    assert found["A", 2, 0] == 1
    assert by_values(rungs.ranks(storage, [alone, half]), half) == found


def test_where_the_rule_counts_something_else_that_orders_them(storage):
    """Budgets of hours, a stop rule of steps: they stand at the steps of the rung."""
    record(storage)
    half = rungs.at(chosen(), 0.5)
    rule = dataclasses.replace(half.sweep.select, budgets={"hours": (1.0,)})
    sweep = dataclasses.replace(half.sweep, select=rule)
    found = rungs.ranks(storage, [dataclasses.replace(half, sweep=sweep)])
    assert found == rungs.ranks(storage, [half])
