"""The expected best of n: by all draws there are, by another's code, and simulated."""

import dataclasses
import itertools
import math

import msgspec
import numpy as np
import pytest
import toy_runs
from opda import nonparametric
from toy_runs import DIVERGED, FAILED

from bmg_sweeps.analysis import held_out, results, tuning_curves
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.records import manifests

NONE = float("nan")
EXACT = {"rel": 1e-12, "abs": 1e-12}


def every(size):
    """All n, and what `shares` takes."""
    numbers = tuple(range(1, size + 1))
    return numbers, tuning_curves.below(size, numbers)


def by_all_draws(scores, counted, floor, number):
    """Draws each set of n configurations once: what each seed has of the best of it.

    Equal ones are drawn by lot; of a set that has diverged altogether it is the floor.
    """
    size, num_seeds = scores.shape
    totals = np.zeros(num_seeds)
    sets = [list(one) for one in itertools.combinations(range(size), number)]
    for drawn in sets:
        for seed in range(num_seeds):
            means = np.delete(scores, seed, axis=1).mean(axis=1)[drawn]
            if np.isnan(means).all():
                totals[seed] += floor
            else:
                best = np.flatnonzero(means == np.nanmax(means))
                totals[seed] += counted[drawn, seed][best].mean()
    return totals / len(sets)


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("num_seeds", [2, 3])
@pytest.mark.parametrize("kind", ["plain", "tied", "diverging"])
def test_it_is_the_mean_over_all_draws(size, num_seeds, kind):
    """Whole numbers from 0 to 2 have many ties; a quarter of runs diverges."""
    random = np.random.default_rng(size)
    scores = random.normal(size=(size, num_seeds))
    if kind == "tied":
        scores = random.integers(3, size=scores.shape).astype(float)
    if kind == "diverging":
        scores[random.random(scores.shape) < 0.25] = NONE
    counted = np.where(np.isnan(scores), -5.0, scores)
    numbers, parts = every(size)
    found = tuning_curves.held_out(scores, counted, -5.0, parts)
    for number, values in zip(numbers, found.values, strict=True):
        expected = by_all_draws(scores, counted, -5.0, number)
        assert values == pytest.approx(expected, **EXACT)
    assert not found.lost.any()


@pytest.mark.parametrize("size", range(1, 9))
def test_without_a_floor_it_says_how_probable_no_number_is(size):
    """As often as a draw leads to a run that diverged; then there is no number."""
    random = np.random.default_rng(size)
    scores = random.normal(size=(size, 3))
    scores[random.random(scores.shape) < 0.25] = NONE
    numbers, parts = every(size)
    found = tuning_curves.held_out(scores, scores, NONE, parts)
    is_lost = np.isnan(scores).astype(float)
    for number, values, lost in zip(numbers, *found, strict=True):
        expected = by_all_draws(scores, is_lost, 1.0, number)
        assert lost == pytest.approx(expected, **EXACT)
        assert np.array_equal(np.isnan(values), lost > 0)


def test_of_the_plain_one_it_is_so_where_all_that_is_drawn_may_have_diverged():
    """C(D, n) / C(N, n), with D = 2 of N = 5: 2/5, 1/10, and then never."""
    scores = np.arange(15.0).reshape(5, 3)
    scores[1, 0] = scores[4, 2] = NONE
    found = tuning_curves.plain(scores, NONE, every(5)[1])
    assert found.lost == pytest.approx([2 / 5, 1 / 10, 0, 0, 0], **EXACT)
    assert np.isnan(found.values).tolist() == [True, True, False, False, False]
    assert found.values[4] == scores[3].mean()
    floor = tuning_curves.plain(scores, -6.0, every(5)[1])
    means = [1.0, 7.0, 10.0, -6.0, -6.0]
    assert floor.values[0] == pytest.approx(np.mean(means), **EXACT)


@pytest.mark.parametrize("size", [1, 5, 90, 400])
def test_one_is_the_mean_of_all_runs_and_all_is_the_choice(size):
    """E₁ and E_N, of three and of ten seeds."""
    for num_seeds in (3, 10):
        scores = np.random.default_rng(size).normal(1e6, 1e5, size=(size, num_seeds))
        _, parts = every(size)
        values, lost = tuning_curves.held_out(scores, scores, NONE, parts)
        assert values[0].mean() == pytest.approx(scores.mean(), **EXACT)
        read = scores[held_out.by_all_but_one(scores), np.arange(num_seeds)]
        assert values[-1] == pytest.approx(read, **EXACT)
        plain = tuning_curves.plain(scores, NONE, parts).values
        assert plain[0] == pytest.approx(scores.mean(), **EXACT)
        assert plain[-1] == pytest.approx(scores.mean(axis=1).max(), **EXACT)
        assert not lost.any()


@pytest.mark.parametrize("size", [1, 5, 90])
def test_the_plain_one_is_that_of_opda(size):
    """Lourie et al. (2024); and of two equal seeds the one that is held out, too."""
    values = np.random.default_rng(size).normal(size=size).round(1)  # Some are equal.
    numbers, parts = every(size)
    expected = nonparametric.EmpiricalDistribution(values).u_tuning_curve(numbers)
    scores = np.stack([values, values], axis=1)
    plain = tuning_curves.plain(scores, NONE, parts).values
    assert plain == pytest.approx(expected, rel=1e-9, abs=1e-12)
    apart = tuning_curves.held_out(scores, scores, NONE, parts).values
    assert apart[:, 0] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_of_equal_configurations_the_plain_one_is_flattered_and_this_is_not():
    """90 of them, n = 5, three seeds: E max of 5 normals is 1.163, and 1.163/√3 = 0.67.

    So an arm of 90 is not ahead of one of five at n = 5.
    """
    random = np.random.default_rng(0)
    parts = tuning_curves.below(90, (5,))
    plain, apart = [], []
    for _ in range(2_000):
        scores = random.normal(size=(90, 3))
        plain.append(tuning_curves.plain(scores, NONE, parts).values[0])
        apart.append(
            tuning_curves.held_out(scores, scores, NONE, parts).values[0].mean()
        )
    assert np.mean(plain) == pytest.approx(0.67, abs=0.01)
    assert abs(np.mean(apart)) <= 0.02


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_draws_are_counted_by_binomial_coefficients(size):
    """C(i, n) / C(N, n), in whole numbers until the end; 0 where n > i."""
    numbers = sorted({1, size // 3 or 1, size})
    expected = [
        [math.comb(i, n) / math.comb(size, n) for i in range(size + 1)] for n in numbers
    ]
    found = tuning_curves.below(size, numbers)
    assert found == pytest.approx(np.array(expected), rel=1e-11, abs=1e-300)


def test_shares_are_those_of_the_formula_and_equal_ones_share():
    """Two of four: C(i − 1, 1) / 6, which is 0, 1, 2 and 3 sixths."""
    parts = tuning_curves.below(4, (2,))
    shares = tuning_curves.shares(np.array([3.0, 9, 1, 5]), parts)
    assert shares[0] * 6 == pytest.approx([1, 3, 0, 2])
    shares = tuning_curves.shares(np.array([3.0, 5, 1, 5]), parts)
    assert shares[0] * 6 == pytest.approx([1, 2.5, 0, 2.5])


def make(rewards, stop=toy_runs.BUDGET, **keywords):
    """The curves of a toy sweep."""
    runs = rewards if isinstance(rewards, list) else toy_runs.table(rewards)
    return tuning_curves.make(
        toy_runs.load(toy_runs.sweep("AB", **keywords), runs, stop)
    )


def test_arms_are_compared_at_what_the_smallest_has():
    """A has 4 configurations with 3 seeds, and B two, with what the report has."""
    random = np.random.default_rng(0)
    rewards = {
        "A": random.normal(size=(4, 3)).tolist(),
        "B": random.normal(size=(2, 3)).tolist(),
    }
    found = make(rewards)
    assert (found.smallest, found.are_equal) == (2, False)
    assert (found.axis, found.budget) == ("env_steps", toy_runs.BUDGET)
    a, b = found.arms
    assert (a.method, a.size, a.numbers) == ("A", 4, (1, 2, 3, 4))
    loaded = toy_runs.load(toy_runs.sweep("AB"), toy_runs.table(rewards)).first
    for arm, best in zip(found.arms, loaded.best, strict=True):
        whole = loaded.apart(best).estimate
        assert dataclasses.astuple(arm.held_out_at(arm.size)) == pytest.approx(
            dataclasses.astuple(whole), **EXACT
        )
        assert arm.plain_at(arm.size).mean == pytest.approx(best.estimate.mean)
    assert make({"A": rewards["A"], "B": rewards["A"]}).are_equal
    assert b.held_out_at(1).mean == pytest.approx(np.mean(rewards["B"]))


def test_less_is_better_where_the_sweep_says_so():
    """Without seed 0 the second is lower, without seed 1 the first; a floor is high."""
    found = make({"A": [[1, 7], [9, 2]]}, mode="min").arms[0]
    assert found.held_out_at(2).mean == (9 + 7) / 2
    assert found.plain_at(2) == Estimate(4, None)
    found = make({"A": [[1, DIVERGED], [9, 2]]}, mode="min", floor=50).arms[0]
    assert found.held_out_at(1).mean == (50 + 50 + 9 + 2) / 4
    # Seed 1 is read of the first, and it diverged; seed 0 of the second.
    assert found.held_out_at(2).mean == (9 + 50) / 2


def test_without_a_floor_a_probability_stands_for_the_number():
    """Seeds 1 and 2 choose what diverged on 0: 1/3 as in "1 of 3 folds".

    Of one, half: the first is never chosen by seeds that it diverged on.
    """
    (arm,) = make({"A": [[DIVERGED, 9, 9], [1, 2, 3]]}).arms
    assert arm.held_out_at(2) == pytest.approx(1 / 3)
    assert arm.held_out_at(1) == pytest.approx(1 / 2)
    assert arm.plain_at(1) == pytest.approx(1 / 2)
    assert arm.plain_at(2).mean == 2


def test_a_floor_of_tests_is_in_their_unit_and_not_used():
    """The curve is of the metric that decides; its unit may be another one."""
    rewards = {"A": [[DIVERGED, 9, 9], [1, 2, 3]]}
    sweep = toy_runs.sweep("A", floor=-5)
    rule = dataclasses.replace(sweep.select, test="test_reward")
    for of, is_number in (
        (sweep, True),
        (dataclasses.replace(sweep, select=rule), False),
    ):
        (arm,) = tuning_curves.make(toy_runs.load(of, toy_runs.table(rewards))).arms
        assert isinstance(arm.held_out_at(2), Estimate) == is_number


def test_what_failed_by_its_machine_is_not_drawn():
    """Of three, two; what was never run is counted, too."""
    (arm,) = make({"A": [[9, 9, FAILED], [1, 2, 3], [4, 5, 6]]}).arms
    assert (arm.size, arm.num_lacking) == (2, 1)
    assert arm.held_out_at(2).mean == 5
    (arm,) = make({"A": [[9, 9, DIVERGED], [1, 2, 3], [4, 5, 6]]}).arms
    assert (arm.size, arm.num_lacking) == (3, 0)


def test_one_seed_has_the_plain_one_alone():
    (arm,) = make({"A": [[1], [2]]}).arms
    assert arm.held_out is None
    assert arm.held_out_at(1) is None
    assert arm.plain_at(1) == Estimate(1.5, None)


def test_tasks_of_a_seed_are_one_number():
    """A task that diverged is at the floor, as a fold reads it."""
    levels = {(0, "x"): (1, 9), (0, "y"): (DIVERGED, 9), (1, "x"): (5, 1),
              (1, "y"): (5, 3)}  # fmt: skip
    runs = [
        toy_runs.trained(toy_runs.toy_point("A", rate, seed, game=game), reward)
        for (seed, game), rewards in levels.items()
        for rate, reward in enumerate(rewards)
    ]
    (arm,) = make(runs, over=("seed", "game"), floor=-3).arms
    # Seed 1 chooses the first, seed 0 the second: (1 − 3)/2 and (1 + 3)/2.
    assert arm.held_out_at(2).mean == (-1 + 2) / 2


def test_without_a_choice_there_are_none():
    assert make({"A": [[1, 2]], "B": [[3, 4]]}) is None
    assert make({"A": [[FAILED, 2], [1, FAILED]]}) is None


def timed(hours, widths=1, devices=("cpu",)):
    """Runs of A with two configurations and two seeds, each with its hours."""
    runs = []
    for i, one in enumerate(toy_runs.table({"A": [[1, 2], [3, 4]]})):
        provenance = manifests.Provenance.of(
            {"pack_width": widths, "device": devices[i % len(devices)]}
        )
        manifest = msgspec.structs.replace(one.record.manifest, provenance=provenance)
        record = dataclasses.replace(one.record, manifest=manifest)
        rows = one.rows if hours is None else one.rows | {"hours": [hours * (i + 1)]}
        runs.append(dataclasses.replace(one, record=record, rows=rows))
    return runs


def test_hours_are_those_of_all_runs_of_a_configuration():
    """1, 2, 3 and 4 hours of four runs: 5 of a configuration. In a pack, their part."""
    assert make(timed(1.0)).arms[0].hours == 5
    assert make(timed(1.0, widths=2)).arms[0].hours == 2.5
    assert make(timed(None)).arms[0].hours is None


def test_hours_of_a_run_that_diverged_at_once_are_what_it_took():
    """Half an hour, beside 1, 2 and 3 of the others."""
    runs = timed(1.0)
    failure = manifests.Failure(DIVERGED, 2, "ValueError", "no")
    manifest = msgspec.structs.replace(
        runs[3].record.manifest, failure=failure, progress={"hours": 0.5}
    )
    record = dataclasses.replace(runs[3].record, manifest=manifest)
    runs[3] = dataclasses.replace(runs[3], record=record, rows={})
    assert make(runs).arms[0].hours == (1 + 2 + 3 + 0.5) / 2


def test_hours_of_two_devices_are_not_compared():
    found = make(timed(1.0, devices=("cpu", "H100")))
    assert found.arms[0].hours is None
    assert found.without_hours == "hours on H100 and cpu cannot be compared"


def test_a_large_grid_has_some_of_all_numbers():
    """From 1 to 1,000 by equal factors, with what the smallest arm has."""
    rewards = {"A": [[i] for i in range(1_000)], "B": [[0]] * 333}
    a, b = make(rewards).arms
    assert {1, 2, 333, 1_000} <= {*a.numbers}
    assert len(a.numbers) <= tuning_curves.MAX_NUMBERS + 1
    assert (b.numbers[-1], b.plain_at(333).mean) == (333, 0)
    # E max of n of 0, …, N − 1 is n (N + 1)/(n + 1) − 1.
    expected = [n * 1_001 / (n + 1) - 1 for n in a.numbers]
    assert a.plain.values == pytest.approx(expected, rel=1e-9)


def test_it_is_at_the_last_budget_that_any_has_reached():
    """Trained to 100 of 200, where there are two budgets; and of 50 and 100 to both."""
    sweep = toy_runs.sweep("A")
    rule = dataclasses.replace(sweep.select, budgets={"env_steps": 2})
    of = dataclasses.replace(sweep, select=rule)
    loaded = toy_runs.load(of, toy_runs.table({"A": [[1, 2], [3, 4]]}), stop=200)
    assert tuning_curves.make(loaded).budget == 100
    runs = [
        dataclasses.replace(one, rows={"env_steps": [50, 100], "reward": [0, reward]})
        for one, reward in zip(
            toy_runs.table({"A": [[1, 2], [3, 4]]}), [1, 2, 3, 4], strict=True
        )
    ]
    found = tuning_curves.make(toy_runs.load(of, runs))
    assert (found.budget, found.arms[0].plain_at(2).mean) == (100, 3.5)
    none = results.Results(loaded.chosen, (), {"env_steps": loaded.first})
    none = dataclasses.replace(
        none,
        selections={
            "env_steps": dataclasses.replace(loaded.first, candidates={}, scores=())
        },
    )
    assert tuning_curves.make(none) is None


def test_a_configuration_that_has_diverged_does_not_move_it_on():
    """Two have trained to 100 of 200, and a third diverged at 50, so it "has" 200."""
    sweep = toy_runs.sweep("A", floor=-5)
    rule = dataclasses.replace(sweep.select, budgets={"env_steps": 2})
    of = dataclasses.replace(sweep, select=rule)
    runs = toy_runs.table({"A": [[1, 2], [3, 4], [DIVERGED, DIVERGED]]})
    found = tuning_curves.make(toy_runs.load(of, runs, stop=200))
    assert (found.budget, found.arms[0].size) == (100, 3)


def test_where_all_have_diverged_it_is_at_the_last_budget():
    runs = toy_runs.table({"A": [[DIVERGED, DIVERGED], [DIVERGED, DIVERGED]]})
    found = tuning_curves.make(toy_runs.load(toy_runs.sweep("A", floor=-5), runs))
    assert (found.budget, found.arms[0].plain_at(2).mean) == (toy_runs.BUDGET, -5)
