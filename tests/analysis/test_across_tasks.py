"""Statistics over tasks, by hand: `toy_tasks` has the numbers."""

import numpy as np
import pytest
import toy_tasks

from bmg_sweeps.analysis import across_tasks, claims, intervals, verdicts
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.analysis.verdicts import Verdict
from bmg_sweeps.sweep.display import Quantity
from bmg_sweeps.sweep.point import Point

A = np.array([[1, 5, 0], [3, 7, 1]], dtype=float)
B = np.array([[2, 1, 2], [2, 1, 2]], dtype=float)


def test_the_median_is_that_of_means_over_seeds():
    """Of 2, 6 and ½ it is 2.

    A resampled pair of seeds has x at 1, 2 or 3 with ¼, ½ and ¼; y is above it, and z
    is not, whatever they are: the interval is 1 to 3.
    """
    assert intervals.over_tasks("median", A) == (2, 1, 3)


def test_the_mean_has_the_interval_of_its_quantiles():
    """(2 + 6 + ½) / 3.

    The sum is 6 with 1/64 and 6.5 with 2/64, so that 2.5 % lie at 6.5; and at 10.5.
    """
    found = intervals.over_tasks("mean", A)
    assert found == pytest.approx((8.5 / 3, 6.5 / 3, 10.5 / 3))


def test_the_interquartile_mean_is_of_all_runs():
    """Of 0, 1, 1, 3, 5, 7 the middle four: 10 / 4; as the table of methods has it."""
    found = intervals.over_tasks("interquartile_mean", A)
    assert found.estimate == 2.5
    assert found == intervals.interquartile_mean(A)
    assert 0.5 < found.low < 2.5 < found.high < 5


def test_the_interquartile_mean_cuts_a_quarter_off_each_end():
    """Of eight scores the two lowest and highest: (2 + 10 + 20 + 30) / 4."""
    scores = np.array([[0, 2, 20, 90], [1, 10, 30, 100]], dtype=float)
    assert intervals.over_tasks("interquartile_mean", scores).estimate == 15.5


def test_resampling_is_the_same_each_time():
    scores = np.random.default_rng(1).normal(size=(3, 7))
    assert intervals.over_tasks("median", scores) == intervals.over_tasks(
        "median", scores
    )


def test_a_single_seed_has_no_interval():
    assert intervals.over_tasks("median", A[:1]) == 1
    assert intervals.over_tasks("mean", A[:1]) == 2


def test_a_single_task_is_its_mean():
    assert intervals.over_tasks("median", A[:, :1]) == (2, 1, 3)


def test_methods_are_read_by_task_and_seed(storage):
    a, b = across_tasks.read(toy_tasks.load(toy_tasks.record(storage)))
    assert (a.method, a.seeds, a.tasks) == ("A", (0, 1), ("x", "y", "z"))
    np.testing.assert_array_equal(a.normalized, A)
    np.testing.assert_array_equal(a.scores, 10 * A)
    np.testing.assert_array_equal(b.normalized, B)
    assert a.missing == {}
    assert a.means() == {"x": 2, "y": 6, "z": 0.5}


def test_a_win_is_more_and_no_tie(storage):
    """On x both have 2; A has more on y, and B on z."""
    a, b = across_tasks.read(toy_tasks.load(toy_tasks.record(storage)))
    assert across_tasks.wins(a, b) == (1, 3)
    assert across_tasks.wins(b, a) == (1, 3)


def test_a_task_without_one_of_its_seeds_is_missing(storage):
    """The method's only configuration is shown all the same, without it."""
    toy_tasks.record(storage, without=[("a", 1, "z")])
    a, b = across_tasks.read(toy_tasks.load(storage))
    assert a.tasks == ("x", "y")
    assert a.missing == {"z": "seed 1: not run"}
    np.testing.assert_array_equal(a.normalized, A[:, :2])
    assert across_tasks.wins(a, b) == (1, 2)


def test_a_task_that_only_others_have_is_missing(storage):
    """The grid has no point of B on z."""
    kept = toy_tasks.points(without=[("b", 0, "z"), ("b", 1, "z")])
    toy_tasks.record(storage)
    _, b = across_tasks.read(toy_tasks.load(storage, of=kept))
    assert b.tasks == ("x", "y")
    assert b.missing == {"z": "no point of seed 0"}


def test_a_claim_compares_the_statistic_of_each_seed(storage):
    """Medians of A's seeds are 1 and 3, B's are 2: by t of one degree of freedom.

    The error is √(2 / 2), and t is 12.7. Means of seeds, 2 and 11/3 with 5/3, are what
    a claim without a statistic compares: the verdict is the same.
    """
    results = toy_tasks.load(toy_tasks.record(storage))
    mean, median, seeds = claims.decide(results)
    assert (mean.verdict, median.verdict) == (Verdict.OPEN, Verdict.OPEN)
    assert median.difference == pytest.approx((0, -12.706, 12.706), abs=1e-3)
    assert mean.difference == seeds.difference
    assert mean.difference.estimate == pytest.approx(3.5 / 3)
    assert mean.difference.low < 0


@pytest.mark.parametrize("statistic", ["median", "mean", "interquartile_mean"])
def test_a_claim_about_nothing_is_seldom_decided_by_two_seeds(statistic):
    """In 2.5 to 5 % of 1,000; a bootstrap decides one of three of a single task."""
    generator = np.random.default_rng(0)
    decided = 0
    for _ in range(1000):
        sides = [_reading(f"{i}", generator.normal(size=(2, 1))) for i in range(2)]
        found = claims._difference(statistic, *sides)
        decided += verdicts.that_more(found).verdict.is_decided
    assert decided <= 50


def test_two_columns_of_the_same_runs_are_compared_in_pairs():
    """Medians of seeds are 1, 5, 9 and 0, 4, 7: differences 1, 1, 2, as by hand."""
    one = np.array([[0, 1, 9], [4, 5, 9], [8, 9, 9]], dtype=float)
    other = np.array([[0, 0, 5], [4, 4, 5], [7, 7, 9]], dtype=float)
    found = claims._difference("median", _reading("a", one), _reading("a", other))
    low = 4 / 3 - 4.3027 / 3  # Deviation √⅓, error ⅓, two degrees of freedom.
    assert found.interval() == pytest.approx((4 / 3, low, 8 / 3 - low), abs=1e-4)


def test_a_readings_estimate_is_of_the_statistic_of_each_seed(storage):
    """Medians of A's seeds are 1 and 3, their interquartile means 2 and 11 / 3."""
    results = toy_tasks.load(toy_tasks.record(storage))
    _, median, seeds = claims.decide(results)
    found = median.more.estimate("median")
    assert (found.mean, found.deviation) == pytest.approx((2, 2**0.5))
    found = median.more.estimate("interquartile_mean")
    assert (found.mean, found.deviation) == pytest.approx((17 / 6, (5 / 3) / 2**0.5))
    found = seeds.more.estimate(None)
    assert (found.mean, found.deviation) == pytest.approx((17 / 6, (5 / 3) / 2**0.5))


@pytest.mark.parametrize("statistic", ["median", "mean", "interquartile_mean"])
def test_the_difference_is_that_of_both_estimates(storage, statistic):
    """Also where the statistic is not linear, so that a table does not puzzle."""
    results = toy_tasks.load(toy_tasks.record(storage))
    one = claims.decide(results)[0]
    sides = [side.estimate(statistic).mean for side in (one.more, one.less)]
    found = claims._difference(statistic, one.more, one.less)
    assert found.estimate == pytest.approx(sides[0] - sides[1])


def _reading(method, numbers):
    """A reading of [N, M] numbers, of the seeds 0 … N − 1."""
    seeds = range(len(numbers))
    points = tuple(Point(method, {"seed": seed}) for seed in seeds)
    score = Score(method, points[0], "n", 1.0, points, (), Estimate(0.0, None), 1.0)
    means = dict(zip(seeds, numbers.mean(axis=1).tolist(), strict=True))
    return claims.Reading(Quantity(method=method), score, means, numbers)


def test_a_claim_of_single_seeds_is_open(storage):
    toy_tasks.record(storage, seeds=(0,))
    kept = tuple(p for p in toy_tasks.points() if p.values["seed"] == 0)
    for decided in claims.decide(toy_tasks.load(storage, of=kept)):
        assert decided.reason == "one seed has no interval"
