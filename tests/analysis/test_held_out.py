"""Numbers of seeds that did not choose: by hand, and in simulated sweeps.

A sweep that is simulated has configurations whose truth is known, and normal noise of
variance 1 from seed to seed. All of them start from one fixed seed.
"""

import numpy as np
import pytest
import toy_runs
from scipy import stats
from toy_runs import DIVERGED, FAILED

from bmg_sweeps.analysis import claims, differences, held_out, verdicts
from bmg_sweeps.analysis.verdicts import Verdict
from bmg_sweeps.sweep import Claim, Quantity

SWEEPS = 2_000
# Total reward in thousands of three seeds, as in results/two_colors.md.
FIXED = [[1055, 817, 1185], [1151, 1187, 1129]]
BMG = [
    [-329, -329, -389],  # K=1 L=1
    [1829, 1709, 1759],  # K=1 L=7
    [1907, 1744, 1500],  # K=3 L=7
    [1232, 468, 1654],  # K=7 L=2
    [1876, 1072, 1754],  # K=7 L=7
    [1860, 1637, 1784],  # K=7 L=9
]


def read(scores, choose):
    """What each seed has of the configuration that others have chosen."""
    return scores[choose(scores), np.arange(scores.shape[1])]


def decisive(scores):
    """What decides a claim: of one configuration what it has, else held-out numbers."""
    if len(scores) == 1:
        return differences.mean(scores[0])
    is_halves = scores.shape[1] >= held_out.MIN_HALVES
    choose = held_out.by_halves if is_halves else held_out.by_all_but_one
    return held_out.mean(read(scores, choose))


def holds(mean, truth=0.0):
    """Whether the 95 % interval of a mean holds a number."""
    found = differences.of_pairs(mean).interval()
    return found.low < truth < found.high


def test_each_seed_is_read_by_what_the_others_choose():
    """Without seed 0 the second is best, without seed 1 or 2 the first."""
    scores = np.array([[9.0, 1, 2], [1.0, 8, 3]])
    assert held_out.by_all_but_one(scores).tolist() == [1, 0, 0]
    assert read(scores, held_out.by_all_but_one).tolist() == [1, 1, 2]


def test_halves_choose_for_each_other():
    """Seeds 0 and 2 choose the first, and it is read on 1 and 3."""
    scores = np.array([[5.0, 0, 5, 1], [0, 6, 1, 6]])
    assert held_out.by_halves(scores).tolist() == [1, 0, 1, 0]


def test_what_diverged_on_the_seeds_that_choose_is_not_chosen():
    """Nor is anything chosen where all have."""
    nan = np.nan
    scores = np.array([[9.0, nan, 9], [1, 1, 1]])
    assert held_out.by_all_but_one(scores).tolist() == [1, 0, 1]
    scores = np.array([[9.0, nan, 9], [nan, 1, 1]])
    assert held_out.by_all_but_one(scores).tolist() == [1, 0, held_out.NONE]


@pytest.mark.parametrize(
    ("number", "factor"), [(2, 3 / 2), (3, 5 / 6), (4, 1 / 2), (10, 1 / 5)]
)
def test_the_variance_is_corrected(number, factor):
    """1/S + 1/(S − 1), from four seeds on 2/S."""
    values = np.arange(number, dtype=float)
    found = held_out.mean(values)
    assert found.variance == pytest.approx(factor * np.var(values, ddof=1))
    assert (found.estimate, found.freedom) == ((number - 1) / 2, number - 1)


def test_of_equal_configurations_the_plain_best_is_flattered_and_this_is_not():
    """30 of them with 3 seeds: plain is E max / √3 = 1.18 too high."""
    random = np.random.default_rng(0)
    plain, apart, corrected, without = [], [], [], []
    for _ in range(SWEEPS):
        scores = random.normal(size=(30, 3))
        values = read(scores, held_out.by_all_but_one)
        plain.append(scores.mean(axis=1).max())
        apart.append(values.mean())
        corrected.append(holds(held_out.mean(values)))
        without.append(holds(differences.mean(values)))
    assert 1.15 <= np.mean(plain) <= 1.20
    assert abs(np.mean(apart)) <= 0.05
    assert 0.94 <= np.mean(corrected) <= 0.98
    assert np.mean(without) <= 0.925


def test_of_many_seeds_halves_hold_the_truth_and_folds_of_one_do_not():
    """30 equal configurations with 10 seeds."""
    random = np.random.default_rng(0)
    halves, ones = [], []
    for _ in range(SWEEPS):
        scores = random.normal(size=(30, 10))
        halves.append(holds(decisive(scores)))
        values = read(scores, held_out.by_all_but_one)
        ones.append(holds(differences.mean(values, 1 / 10 + 1 / 9)))
    assert np.mean(halves) >= 0.95
    assert np.mean(ones) < 0.95


@pytest.mark.parametrize("num_seeds", [2, 3, 4, 10, 50])
@pytest.mark.parametrize(
    ("more", "less", "spread"), [(90, 5, 0), (90, 1, 0), (30, 30, 0.5)]
)
def test_claims_about_nothing_are_seldom_decided(more, less, spread, num_seeds):
    """Equal ones, of which one side has more; and two sides of the same true means."""
    random, wrong = np.random.default_rng(0), 0
    for _ in range(SWEEPS):
        truth = spread * random.normal(size=(more, 1))
        ours = truth + random.normal(size=(more, num_seeds))
        theirs = truth[:less] + random.normal(size=(less, num_seeds))
        found = differences.of_means(decisive(ours), decisive(theirs))
        wrong += verdicts.that_more(found).verdict != Verdict.OPEN
    assert wrong / SWEEPS <= 0.065


def test_by_the_seeds_that_chose_such_claims_are_often_decided():
    """90 against 1, three seeds: what the report said before."""
    random, wrong = np.random.default_rng(0), 0
    for _ in range(SWEEPS // 4):
        ours = random.normal(size=(90, 3))
        sides = ours[ours.mean(axis=1).argmax()], random.normal(size=3)
        found = differences.of_means(*map(differences.mean, sides))
        wrong += verdicts.that_more(found).verdict != Verdict.OPEN
    assert wrong / (SWEEPS // 4) > 0.15


def test_what_is_chosen_diverges_as_often_as_it_does_in_truth():
    """Each run with 0.2; of what is complete on all seeds none ever has."""
    random, diverged = np.random.default_rng(0), []
    for _ in range(SWEEPS):
        scores = random.normal(size=(30, 3))
        scores[random.random(scores.shape) < 0.2] = np.nan
        chosen = held_out.by_all_but_one(scores)
        assert held_out.NONE not in chosen
        diverged += np.isnan(read(scores, held_out.by_all_but_one)).tolist()
    assert 0.18 <= np.mean(diverged) <= 0.22


def test_the_set_that_is_like_the_best_holds_the_best():
    """Each of 30 equal ones is the best; of others that with the highest truth."""
    random = np.random.default_rng(0)
    for truth in (np.zeros((30, 1)), np.linspace(0, -2, 30)[:, np.newaxis]):
        held = [
            0 in held_out.alike(truth + random.normal(size=(30, 3))).places
            for _ in range(SWEEPS)
        ]
        assert np.mean(held) >= 0.94


@pytest.mark.parametrize(("number", "freedom"), [(30, 60), (2, 2), (90, 810), (5, 10)])
def test_the_separation_is_that_of_draws(number, freedom):
    """How far the best of the others lies above one of equal ones; of two, t.

    With 30 and three seeds it is 2.82.
    """
    random, parts = np.random.default_rng(0), []
    for _ in range(20):
        means = random.normal(size=(5_000, number))
        scale = np.sqrt(random.chisquare(freedom, size=5_000) / freedom)
        parts.append((means[:, 1:].max(axis=1) - means[:, 0]) / scale / 2**0.5)
    expected = np.quantile(np.concatenate(parts), 0.95)
    found = held_out.separation(number, freedom)
    assert found == pytest.approx(expected, rel=0.02)
    if number == 2:
        assert found == pytest.approx(stats.t.ppf(0.95, freedom), abs=0.001)


def test_the_set_is_cut_at_so_many_standard_errors():
    """Variances 1, so d √(2/3) below the best mean of 10 configurations."""
    noise = np.array([-1.0, 0, 1])
    width = held_out.separation(10, 20) * (2 / 3) ** 0.5
    means = np.array([0, -width + 0.01, -width - 0.01, *[-20] * 7])
    found = held_out.alike(means[:, np.newaxis] + noise)
    assert found == ((0, 1), False)


def test_variances_that_differ_much_make_it_rough():
    """One of nine is eleven times the others'."""
    noise = np.array([-1.0, 0, 1])
    scale = np.array([1.0] * 8 + [11**0.5])[:, np.newaxis]
    assert held_out.alike(scale * noise).is_rough
    assert not held_out.alike(0.9 * scale.clip(max=3) * noise).is_rough
    assert held_out.alike(np.ones((3, 3))) is None


def decide(rewards, *sides, **keywords):
    """The claim that the first method is more than the second."""
    more, less = sides or "AB"
    claim = Claim(text="So", more=more, less=less)
    sweep = toy_runs.sweep("AB", claims=(claim,), **keywords)
    found = toy_runs.load(sweep, toy_runs.table(rewards))
    (one,) = claims.decide(found)
    return one


def apart(rewards, sweep=None):
    """What is held out of each method."""
    runs = rewards if isinstance(rewards, list) else toy_runs.table(rewards)
    found = toy_runs.load(sweep or toy_runs.sweep("AB"), runs).first
    return {method: one for (_, method), one in found.held_out.items()}


def test_the_number_of_our_own_table():
    """Folds choose K=1 L=7, K=7 L=9 and K=3 L=7: 1829, 1637 and 1500.

    The claim is 500 [-124, 1123] by them, where it was 610 [484, 736].
    """
    found = apart({"A": BMG, "B": FIXED})
    assert {m: round(one.estimate.mean) for m, one in found.items()} == {
        "A": 1655,
        "B": 1156,
    }
    one = decide({"A": BMG, "B": FIXED})
    assert one.verdict == Verdict.OPEN
    assert [round(n) for n in one.difference] == [500, -124, 1123]
    assert one.plain.verdict == Verdict.SUPPORTED
    assert [round(n) for n in one.plain.difference] == [610, 484, 736]
    assert (round(one.more.held_out), round(one.less.held_out)) == (1655, 1156)


def test_it_is_the_same_to_the_last_bit_each_time():
    first, second = (decide({"A": BMG, "B": FIXED}) for _ in range(2))
    assert first.difference == second.difference
    held_out.separation.cache_clear()
    before = apart({"A": BMG})["A"]
    held_out.separation.cache_clear()
    assert apart({"A": BMG})["A"] == before


@pytest.mark.parametrize("order", [1, -1])
def test_of_equal_ones_a_fold_chooses_that_of_the_smaller_id(order):
    """As the plain choice does, whatever the order of the points."""
    runs = toy_runs.table({"A": [[1, 2, 3]] * 4})[::order]
    found = toy_runs.load(toy_runs.sweep("A"), runs).first
    (one,) = found.held_out.values()
    ids = {p.configuration().id for p in one.points}
    assert ids == {found.best[0].configuration.id}


def test_less_is_better_where_the_sweep_says_so():
    """Without seed 0 the second is lower, without seed 1 the first."""
    rewards = {"A": [[1, 7], [9, 2]]}
    found = apart(rewards, toy_runs.sweep("A", mode="min"))["A"]
    assert found.estimate.mean == (9 + 7) / 2


def test_one_seed_holds_nothing_out():
    assert apart({"A": [[1], [2]]}) == {}


def test_what_diverged_on_the_seed_that_is_read_has_no_number():
    """Seeds 1 and 2 choose what diverged on 0; the claim is open, and says so."""
    rewards = {"A": [[DIVERGED, 9, 9], [1, 2, 3]], "B": [[0, 1, 2]]}
    found = apart(rewards)["A"]
    assert (found.estimate, found.reason) == (None, "diverged in 1 of 3 folds")
    one = decide(rewards)
    assert (one.verdict, one.reason) == (Verdict.OPEN, "A: diverged in 1 of 3 folds")
    assert one.plain.difference.estimate == 1


def test_a_floor_is_what_a_diverged_run_counts():
    """-5 for seed 0; seeds 1 and 2 are read of the other one: 2 and 3."""
    rewards = {"A": [[DIVERGED, 9, 9], [1, 2, 3]], "B": [[0, 1, 2]]}
    assert apart(rewards, toy_runs.sweep("AB", floor=-5))["A"].estimate.mean == 0
    one = decide(rewards, floor=-5)
    assert one.more.apart == {0: -5, 1: 2, 2: 3}
    assert one.difference.estimate == pytest.approx(-1)


@pytest.mark.parametrize("floor", ["0", float("nan"), True])
def test_a_floor_is_a_number(floor):
    with pytest.raises(ValueError, match=r"floor = .*: expected a finite number"):
        toy_runs.sweep("A", floor=floor)


def test_what_failed_by_its_machine_is_in_no_fold():
    """Of it nothing is known: the other one is what is chosen, of one."""
    for reward in (FAILED, None):
        runs = toy_runs.table({"A": [[9, 9, FAILED], [1, 2, 3]]})
        kept = runs if reward else runs[:2] + runs[3:]
        found = apart(kept)["A"]
        assert (found.estimate.mean, found.num_configurations) == (2, 1)


def test_a_number_that_is_not_finite_is_a_divergence():
    found = apart({"A": [[None, 9, 9], [1, 2, 3]]})["A"]
    assert found.reason == "diverged in 1 of 3 folds"


def test_tasks_are_read_together():
    """A seed is held out on both games: seed 1 chooses rate 1, and seed 0 rate 0."""
    levels = {(0, "x"): (1, 9), (0, "y"): (3, 9), (1, "x"): (5, 1), (1, "y"): (5, 3)}
    runs = [
        toy_runs.trained(toy_runs.toy_point("A", 1 - rate, seed, game=game), reward)
        for (seed, game), rewards in levels.items()
        for rate, reward in enumerate(rewards)
    ]
    found = apart(runs, toy_runs.sweep("A", over=("seed", "game")))["A"]
    assert found.estimate.mean == ((1 + 3) / 2 + (1 + 3) / 2) / 2
    assert {len(points) for points in found.by_all_but_one.values()} == {2}


def test_methods_of_one_configuration_are_compared_as_before():
    """By Welch, without a plain verdict beside it."""
    one = decide({"A": [[1, 2, 3]], "B": [[4, 6, 8]]})
    found = stats.ttest_ind([1, 2, 3], [4, 6, 8], equal_var=False)
    assert one.difference[1:] == pytest.approx(tuple(found.confidence_interval(0.95)))
    assert one.plain is None
    assert (one.more.held_out, one.less.held_out) == (None, None)


def test_from_four_seeds_on_halves_decide():
    """A: halves choose 1, 0, 1, 0 and read 0, 0, 1, 1; B has one configuration.

    Without seed 2 alone the first would be chosen, which has 5 there.
    """
    one = decide({"A": [[20, 0, 5, 1], [0, 6, 1, 6]], "B": [[0, 1, 0, 1]]})
    assert one.more.apart == {0: 0, 1: 0, 2: 1, 3: 1}
    variances = np.array([2 / 4, 1 / 4]) / 3
    error, freedom = variances.sum() ** 0.5, variances.sum() ** 2
    freedom /= (variances**2 / 3).sum()
    half = stats.t.ppf(0.975, freedom) * error
    assert one.difference == pytest.approx((0, -half, half), abs=1e-12)


def test_two_quantities_of_the_same_runs_are_compared_in_pairs():
    """Folds choose by the reward, and each reads reward − other of its seed."""
    rewards = {"A": [[9, 1, 2], [1, 8, 3]]}
    runs = [
        toy_runs.trained(
            one.point, one.rows["reward"][0], other=10.0 * one.point.values["seed"]
        )
        for one in toy_runs.table(rewards)
    ]
    claim = Claim(text="So", more="A", less=Quantity(method="A", metric="other"))
    found = toy_runs.load(toy_runs.sweep("A", claims=(claim,)), runs)
    (one,) = claims.decide(found)
    pairs = np.array([1.0, 1 - 10, 2 - 20])
    half = stats.t.ppf(0.975, 2) * (np.var(pairs, ddof=1) * 5 / 6) ** 0.5
    middle = pairs.mean()
    assert one.difference == pytest.approx((middle, middle - half, middle + half))


@pytest.mark.slow
def test_reports_of_claims_about_nothing_are_seldom_wrong():
    """Through all that a report does: 30 against 1, equal, three seeds."""
    random, wrong, number = np.random.default_rng(0), 0, 400
    for _ in range(number):
        rewards = {"A": random.normal(size=(30, 3)), "B": random.normal(size=(1, 3))}
        wrong += decide({m: x.tolist() for m, x in rewards.items()}).verdict != "open"
    assert wrong / number <= 0.065
