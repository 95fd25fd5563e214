"""The best configuration by validation, from made-up records."""

import math
import pathlib

import numpy as np
import pytest

from bmg_sweeps.analysis import readings, selection
from bmg_sweeps.records import attempts, manifests, store
from bmg_sweeps.sweep import choices, grid
from bmg_sweeps.sweep.point import Point

BUDGETS = (50, 100)
METHODS = {
    "A": grid.Method({"kind": "a"}, tuned={"rate": "rate"}),
    "B": grid.Method({"kind": "b"}, tuned={"rate": "rate"}),
}
FAILED = manifests.Failure("failed", 2, "ValueError", "no")
DIVERGED = manifests.Failure("diverged", 2, "ValueError", "no")


def sweep(mode="max", over=("seed",)):
    rule = grid.Select(metric="reward", mode=mode, budgets={"env_steps": 2}, over=over)
    return grid.Sweep(
        title="Toy", trainer="toy", scales={}, select=rule, methods=METHODS
    )


def toy_point(rate, seed=0, kind="a", **values):
    return Point("toy", {"kind": kind, "rate": rate, "seed": seed, **values})


def record(storage, p, rewards, env_steps=BUDGETS, progress=None, failure=None):
    """Commits a point's rows; it has trained to the last of them, or to `progress`."""
    store.declare(storage, p.trainer, p.id, "# No gin is read here.\n")
    attempts.begin(storage, store.read(storage, p.trainer, p.id)).commit(
        progress={"env_steps": env_steps[-1] if progress is None else progress},
        rows={"env_steps": list(env_steps), "reward": list(rewards)},
        state=[np.zeros(2)],
        failure=failure,
        release=True,
    )


def load(storage, *points, mode="max"):
    chosen = choices.Chosen("toy", sweep(mode), points, {"env_steps": BUDGETS[-1]})
    return readings.load(storage, chosen)


def select(storage, *points, mode="max"):
    return selection.select(
        sweep(mode), load(storage, *points, mode=mode), "env_steps", BUDGETS
    )


def at(found, budget):
    """Those of some scores or left-out configurations that are of one budget."""
    return [one for one in found if one.budget == budget]


@pytest.mark.parametrize(
    ("num_budgets", "stop", "expected"),
    [
        (1, 300, [300]),
        (3, 300, [100, 200, 300]),
        (4, 10, [2.5, 5, 7.5, 10]),
        (10, 10_000_000, [i * 1_000_000 for i in range(1, 11)]),
    ],
)
def test_budgets_divide_the_stop_rule(num_budgets, stop, expected):
    """Exactly, so that a published number meets the budget that it is for."""
    rule = grid.Select(metric="reward", mode="max", budgets={"env_steps": num_budgets})
    assert selection.budgets(rule, {"hours": 1, "env_steps": stop}) == {
        "env_steps": expected
    }


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (9, None),
        (10, 1.0),
        (19.5, 1.0),
        (20, None),
        (29, None),
        (30, 3.0),
        (99, 3.0),
        (40, 3.0),
    ],
)
def test_the_value_is_that_of_the_last_row_at_or_before_the_budget(amount, expected):
    """Never of a later one; nor of an earlier one where the last is not finite."""
    rows = {"env_steps": [10, 20, 30], "reward": [1.0, None, 3.0]}
    assert readings.value_at(rows, "env_steps", "reward", amount) == expected


@pytest.mark.parametrize("rows", [{}, {"env_steps": [10]}])
def test_without_a_row_or_the_column_there_is_no_value(rows):
    """A point that has not been run, and a trainer without the metric."""
    assert readings.value_at(rows, "env_steps", "reward", 10) is None


def test_a_score_is_the_mean_over_seeds_with_their_sample_deviation(storage):
    """Rewards 1, 2 and 6: mean 3, deviation √((2² + 1² + 3²) / (3 − 1)) = √7."""
    points = [toy_point(0.1, seed) for seed in range(3)]
    for p, reward in zip(points, (1, 2, 6), strict=True):
        record(storage, p, [0, reward])
    (score,) = at(select(storage, *points).scores, 100)
    assert score.estimate.mean == 3
    assert score.estimate.deviation == pytest.approx(math.sqrt(7))
    assert (score.method, score.budget, score.points) == ("A", 100, tuple(points))
    assert score.configuration == points[0].configuration()


def test_one_configuration_of_one_seed_is_the_best(storage):
    """Its deviation is unknown, not zero."""
    record(storage, toy_point(0.1), [1, 2])
    result = select(storage, toy_point(0.1))
    assert [(s.budget, s.estimate.mean, s.estimate.deviation) for s in result.best] == [
        (50, 1, None),
        (100, 2, None),
    ]
    assert result.scores == result.best
    assert result.left_out == ()


@pytest.mark.parametrize(("mode", "rate"), [("max", 0.2), ("min", 0.1)])
def test_the_best_has_the_highest_mean_or_the_lowest(storage, mode, rate):
    """Means 2 and 3, though the single best seed is of the other one."""
    for value, rewards in ((0.1, (-1, 5)), (0.2, (2, 4)), (0.3, (2.5, 2.5))):
        for seed, reward in enumerate(rewards):
            record(storage, toy_point(value, seed), [reward, reward])
    points = [toy_point(value, seed) for value in (0.1, 0.2, 0.3) for seed in (0, 1)]
    best = select(storage, *points, mode=mode).best
    assert [score.configuration.values["rate"] for score in best] == [rate, rate]


def test_every_budget_chooses_for_itself(storage):
    """The first learns fast, the second further."""
    record(storage, toy_point(0.1), [2, 3])
    record(storage, toy_point(0.2), [1, 4])
    result = select(storage, toy_point(0.1), toy_point(0.2))
    best = [
        (s.budget, s.configuration.values["rate"], s.estimate.mean) for s in result.best
    ]
    assert best == [(50, 0.1, 2), (100, 0.2, 4)]
    assert len(result.scores) == 4


def test_every_method_has_its_best(storage):
    """In the sweep's order, and what belongs to no method last."""
    kinds = (("c", 0.1, 1), ("b", 0.1, 2), ("b", 0.2, 3), ("a", 0.1, 4))
    for kind, rate, reward in kinds:
        record(storage, toy_point(rate, kind=kind), [0, reward])
    points = [toy_point(rate, kind=kind) for kind, rate, _ in kinds]
    best = at(select(storage, *points).best, 100)
    assert [(s.method, s.estimate.mean) for s in best] == [
        ("A", 4),
        ("B", 3),
        ("other", 1),
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_ties_go_to_the_smaller_id(storage, order):
    """Whatever the order of the points, and of their seeds."""
    points = [toy_point(rate, seed) for rate in (0.1, 0.2, 0.3) for seed in (0, 1)]
    for p in points:
        record(storage, p, [1, 2])
    best = at(select(storage, *points[::order]).best, 100)
    expected = min(p.configuration().id for p in points)
    assert [score.configuration.id for score in best] == [expected]


@pytest.mark.parametrize(
    ("rewards", "keywords", "reason"),
    [
        ([9, 9], {"progress": 0, "failure": FAILED}, "failed (ValueError: no)"),
        ([9, 9], {"progress": 99, "failure": DIVERGED}, "diverged (no)"),
        ([9, 9], {"progress": 99}, "trained to 99 env_steps"),
        ([9, None], {}, "reward is not finite"),
        (None, {}, "not run"),
    ],
    ids=["failed", "diverged", "partial", "NaN", "missing"],
)
def test_an_incomplete_configuration_is_listed_and_never_chosen(
    storage, rewards, keywords, reason
):
    """Its first seed has by far the best reward, and its second one is incomplete."""
    top, (low, other) = ([toy_point(r, s) for s in (0, 1)] for r in (0.1, 0.2))
    record(storage, top[0], [99, 99])
    if rewards:
        record(storage, top[1], rewards, **keywords)
    for p in (low, other):
        record(storage, p, [0, 1])
    result = select(storage, *top, low, other)
    (left_out,) = at(result.left_out, 100)
    assert left_out.reason == f"seed 1: {reason}"
    assert left_out.configuration == top[0].configuration()
    assert left_out.method == "A"
    assert [s.configuration for s in at(result.scores, 100)] == [low.configuration()]
    assert [s.configuration for s in at(result.best, 100)] == [low.configuration()]


@pytest.mark.parametrize("mode", ["max", "min"])
def test_what_is_not_finite_is_behind_everything(storage, mode):
    """Whichever way the best is looked for."""
    record(storage, toy_point(0.1), [None, None])
    record(storage, toy_point(0.2), [-1e30 if mode == "max" else 1e30] * 2)
    result = select(storage, toy_point(0.1), toy_point(0.2), mode=mode)
    assert [s.configuration.values["rate"] for s in result.best] == [0.2, 0.2]


@pytest.mark.parametrize("failure", [FAILED, DIVERGED, None])
def test_a_point_counts_at_the_budgets_that_it_has_passed(storage, failure):
    """It ended at step 60: what it had at 50 is as good as any."""
    record(storage, toy_point(0.1), [9, 9], (50, 60), failure=failure)
    record(storage, toy_point(0.2), [1, 1])
    result = select(storage, toy_point(0.1), toy_point(0.2))
    best = [(s.budget, s.configuration.values["rate"]) for s in result.best]
    assert best == [(50, 0.1), (100, 0.2)]
    assert [(o.budget, o.configuration.values["rate"]) for o in result.left_out] == [
        (100, 0.1)
    ]


def test_where_nothing_is_complete_there_is_no_best(storage):
    """Nothing has been run."""
    result = select(storage, toy_point(0.1), toy_point(0.2))
    assert (result.scores, result.best, len(result.left_out)) == ((), (), 4)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip(path):
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize(
    ("part", "harm"),
    [
        ("rows", cut),
        ("rows", flip),
        ("rows", pathlib.Path.unlink),
        ("state", cut),
        ("state", pathlib.Path.unlink),
    ],
)
def test_a_damaged_record_is_listed_and_left_out(storage, part, harm):
    """Cut short, changed in one bit, or gone: no number of it is believed."""
    points = toy_point(0.1), toy_point(0.2)
    record(storage, points[0], [9, 9])
    record(storage, points[1], [1, 1])
    (path,) = pathlib.Path(storage.path("toy", points[0].id)).glob(f"{part}-*")
    harm(path)
    assert [one.rows == {} for one in load(storage, *points)] == [True, False]
    result = select(storage, *points)
    assert [s.configuration.values["rate"] for s in result.best] == [0.2, 0.2]
    reasons = [one.reason for one in result.left_out]
    start = f"seed 0: damaged record ({path.name}: "
    assert [reason.startswith(start) for reason in reasons] == [True, True]


def test_a_score_is_averaged_over_every_field_that_the_rule_names(storage):
    """Over seeds and tasks: (1 + 2 + 3 + 6) / 4 = 3."""
    points = [toy_point(0.1, s, task=task) for s in (0, 1) for task in ("x", "y")]
    for p, reward in zip(points, (1, 2, 3, 6), strict=True):
        record(storage, p, [0, reward])
    trained = load(storage, *points)
    (score,) = selection.select(
        sweep(over=("seed", "task")), trained, "env_steps", [100]
    ).scores
    assert (score.estimate.mean, len(score.points)) == (3, 4)
    assert score.configuration.values == {"kind": "a", "rate": 0.1}
