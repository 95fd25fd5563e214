"""Statistics over tasks equal rliable's, and the gain of tuning per task is by hand."""

import dataclasses
import itertools

import numpy as np
import pytest
import toy_tasks

from bmg_sweeps.analysis import intervals, profiles, results
from bmg_sweeps.analysis.readings import Trained
from bmg_sweeps.records import manifests, store
from bmg_sweeps.reporting import report, tables
from bmg_sweeps.sweep import choices, grid
from bmg_sweeps.sweep.point import Point

# Three runs of five tasks, and two of the same. The numbers below were computed by the
# code of rliable 1.2.0, rliable/metrics.py, and `run_score_deviation` of library.py.
SCORES = np.array(
    [
        [0.1, 1.4, 0.75, -0.2, 3.1],
        [0.3, 1.1, 0.5, 0.0, 2.7],
        [0.25, 0.9, 1.05, 0.4, 4.0],
    ]
)
OTHERS = np.array([[0.2, 1.1, 0.7, 0.1, 3.5], [0.3, 1.0, 0.6, 0.2, 2.0]])
RLIABLE = {
    "mean": 1.0900000000000003,
    "median": 0.7666666666666666,
    "interquartile_mean": 0.7388888888888889,
}
RLIABLE_GAP = {1.0: 0.4, 0.5: 0.1433333333333333}
RLIABLE_PROFILE = {0.0: 13 / 15, 0.25: 11 / 15, 0.5: 8 / 15, 1.0: 0.4, 2.0: 0.2}
RLIABLE_IMPROVEMENT = 0.5333333333333333


@pytest.mark.parametrize("statistic", RLIABLE)
def test_statistics_over_tasks_are_rliables(statistic):
    """`aggregate_mean`, `aggregate_median` and `aggregate_iqm`."""
    found = intervals.over_tasks(statistic, SCORES)
    assert found.estimate == pytest.approx(RLIABLE[statistic], abs=1e-14)
    assert found.low < found.estimate < found.high


def test_the_optimality_gap_is_rliables():
    """`aggregate_optimality_gap`, at two targets."""
    for target, expected in RLIABLE_GAP.items():
        found = profiles.optimality_gap(SCORES, target)
        assert found.estimate == pytest.approx(expected, abs=1e-14)
        assert found.low < found.estimate < found.high


def test_the_performance_profile_is_rliables():
    """`run_score_deviation`: a score that is equal to a threshold is not above it."""
    found = profiles.profile(SCORES, [*RLIABLE_PROFILE])
    expected = [*RLIABLE_PROFILE.values()]
    assert [one.estimate for one in found] == pytest.approx(expected, abs=1e-14)


def test_the_probability_of_improvement_is_rliables():
    """`probability_of_improvement`, with ties by Mann and Whitney's U."""
    found = intervals.probability_of_improvement(SCORES, OTHERS)
    assert found.estimate == pytest.approx(RLIABLE_IMPROVEMENT, abs=1e-14)


def test_the_bootstrap_resamples_runs_within_each_task():
    """Every possible draw of two runs of two tasks, each as likely, by hand.

    Of task x one run is above 1, of y both: of two draws of x, 0, 1 or 2 are above with
    ¼, ½, ¼, and the share is ½, ¾ or 1. A quarter is more than 2.5 %.
    """
    scores = np.array([[0.0, 2.0], [3.0, 5.0]])
    (found,) = profiles.profile(scores, [1.0])
    assert found == (0.75, 0.5, 1.0)
    opposed = np.array([[0.0, 3.0], [3.0, 0.0]])  # Whole runs have ½ each.
    assert profiles.profile(opposed, [1.0]) == [(0.5, 0.0, 1.0)]
    # Below 1 are 1 of x with 0, 1 or 2 draws: gaps of 0, ¼ and ½.
    assert profiles.optimality_gap(scores) == (0.25, 0.0, 0.5)


def test_a_task_whose_runs_are_alike_has_no_interval():
    """Resampled across tasks it would have one."""
    scores = np.array([[0.2, 2.0], [0.2, 2.0], [0.2, 2.0]])
    assert profiles.optimality_gap(scores) == pytest.approx((0.4, 0.4, 0.4))


def test_the_same_bits_twice_and_none_for_a_single_run():
    """A report is the same each time; one run has no spread."""
    assert profiles.optimality_gap(SCORES) == profiles.optimality_gap(SCORES)
    assert profiles.optimality_gap(SCORES[:1]) == pytest.approx(0.47)
    assert profiles.profile(SCORES[:1], [0.5]) == [0.6]


def test_sensitivity_is_what_tuning_per_task_gains():
    """Adkins et al. (2024). Two configurations, two seeds, two tasks.

    Means: 2 and 2.5 of the first, 5 and 1 of the second. One for all is the second, 3;
    for each task, 5 and 2.5: 3.75. Held out, seed 0 chooses by (1, 4) and (4, 0) the
    second for x, the first for y, and the first for all; seed 1 of these has 6 and 1,
    and 3 and 1: 3.5 − 2 = 1.5. Seed 1 chooses by (3, 1) and (6, 2) the second for all
    and each: no gain. The mean is 0.75.
    """
    scores = np.array([[[1, 4], [3, 1]], [[4, 0], [6, 2]]], dtype=float)
    found = profiles.sensitivity(scores)
    assert (found.for_all, found.per_task, found.gain) == (3.0, 3.75, 0.75)
    assert found.held_out == 0.75


def test_a_single_seed_has_no_sensitivity_held_out():
    """There is no other seed that could choose."""
    found = profiles.sensitivity(np.array([[[1.0, 3.0]], [[4.0, 0.0]]]))
    assert (found.gain, found.held_out) == (1.5, None)


def test_equal_configurations_gain_by_noise_and_not_when_held_out():
    """30 configurations, 3 seeds, 10 tasks, unit noise, 400 times.

    A task's best of 30 means is 2.04/√3 = 1.18 above their mean, and the best mean over
    ten tasks 2.04/√30 = 0.37: a gain of 0.81 where there is none.
    """
    generator = np.random.default_rng(0)
    found = [
        profiles.sensitivity(generator.normal(size=(30, 3, 10))) for _ in range(400)
    ]
    assert np.mean([one.gain for one in found]) == pytest.approx(0.81, abs=0.02)
    assert np.mean([one.held_out for one in found]) == pytest.approx(0.0, abs=0.05)


SWEEP = dataclasses.replace(
    toy_tasks.SWEEP,
    methods={
        "A": grid.Method({"kind": "a"}, tuned={"rate": "β"}),
        "B": grid.Method({"kind": "b"}, tuned={"rate": "β"}),
    },
    curves=(),
    claims=(),
)
# By rate, seed and task: the matrices of the test by hand.
BY_HAND = {0.1: {"x": (1, 3), "y": (4, 1)}, 0.2: {"x": (4, 6), "y": (0, 2)}}


def trained(kind, rate, seed, task, number, until=100):
    """A run whose scores are constant."""
    values = {"kind": kind, "rate": rate, "seed": seed, "task": task}
    p = Point("toy", values)
    rows = {"env_steps": [50, 100], "normalized": [number] * 2, "score": [number] * 2}
    manifest = manifests.Manifest(progress={"env_steps": until})
    return Trained(p, store.Record("toy", p.id, manifest), rows)


def load(members):
    points = tuple(one.point for one in members)
    choice = choices.Choice(scale="mine")
    chosen = choices.Chosen("toy", SWEEP, points, toy_tasks.STOP, choice)
    return results.without_tests(chosen, members)


def several():
    found = [
        trained("a", rate, seed, task, float(by_task[task][seed]))
        for rate, by_task in BY_HAND.items()
        for task, seed in itertools.product("xy", (0, 1))
    ]
    return found + [
        trained("b", 0.1, s, t, 2.0) for t, s in itertools.product("xy", (0, 1))
    ]


def tables_of(members):
    return {t.key.kind: t for t in report.make(load(members))}


def test_a_report_has_the_profile_and_the_sensitivity():
    """A's configurations by hand; B has one, and nothing to be tuned."""
    made = tables_of(several())
    table = made[tables.Kind.TASK_SENSITIVITY]
    assert table.title == "What tuning for each task gains at 100 env_steps"
    assert tables.texts(table, is_exact=True) == [
        ["A", "2 / 2", "3.000", "3.750", "+0.75", "+0.75"]
    ]
    assert table.notes[1:] == ("B is left out: it has one configuration.",)
    profile = made[tables.Kind.TASK_PROFILE]
    assert profile.names[:4] == (
        "method", "tasks", "optimality gap", "share of runs > 0"
    )  # fmt: skip
    rows = tables.texts(profile, is_exact=True)
    # The best of A has 4, 6 and 0, 2: a quarter of its runs is not above 0.
    assert rows[0][:2] == ["A", "2 / 2"]
    assert rows[0][2:4] == ["0.25 [0, 0.5]", "0.75 [0.50, 1.00]"]
    assert rows[1][2:4] == ["0 [0, 0]", "1.00 [1.00, 1.00]"]
    keys = report.keys(load(several()).chosen)
    assert {profile.key, table.key} <= {*keys}


def test_a_configuration_that_lacks_a_run_is_not_compared():
    """With one left, a method has no sensitivity; its row is not there."""
    members = [trained("a", 0.1, 0, "x", 1.0, until=50), *several()[1:]]
    table = tables_of(members)[tables.Kind.TASK_SENSITIVITY]
    assert table.rows == ()
    few = "A is left out: fewer than two of its 2 configurations are complete."
    assert table.notes[1] == few
    # A run that is no point; and a seed that only the other configuration has.
    lacking = [("a", 0.1, 1, "x")], [("a", 0.1, 1, task) for task in "xy"]
    for without in lacking:
        kept = [m for m in several() if (*m.point.values.values(),) not in without]
        assert tables_of(kept)[tables.Kind.TASK_SENSITIVITY].rows == ()


def test_a_method_may_have_seeds_and_tasks_of_its_own():
    """B has A's numbers on seeds 5 and 6, and a task fewer."""
    of_b = [
        trained("b", rate, 5 + seed, "x", float(by_task["x"][seed]))
        for rate, by_task in BY_HAND.items()
        for seed in (0, 1)
    ]
    of_a = [one for one in several() if one.point.values["kind"] == "a"]
    table = tables_of(of_a + of_b)[tables.Kind.TASK_SENSITIVITY]
    assert [row[0] for row in table.rows] == ["A", "B"]
    assert tables.texts(table, is_exact=True)[1][2:4] == ["5.000", "5.000"]
    assert table.notes[1:] == ("B has 1 of 2 tasks.",)


def test_without_several_configurations_there_is_no_sensitivity(storage):
    """And without tasks no profile either."""
    found = toy_tasks.load(toy_tasks.record(storage))
    kinds = {t.key.kind for t in report.make(found)}
    assert tables.Kind.TASK_PROFILE in kinds
    assert tables.Kind.TASK_SENSITIVITY not in kinds
    sweep = dataclasses.replace(toy_tasks.SWEEP, tasks=None, curves=(), claims=())
    kinds = {t.key.kind for t in report.make(toy_tasks.load(storage, sweep))}
    assert tables.Kind.TASK_PROFILE not in kinds
