"""Comparisons are of like with like, and say where a number is less than it seems."""

import dataclasses

import numpy as np
import pytest
import toy_runs
from scipy import stats

from bmg_sweeps.analysis import claims, results, selection
from bmg_sweeps.analysis.verdicts import Verdict
from bmg_sweeps.records import attempts, store
from bmg_sweeps.reporting import best_tables, improvement, published, report, tables
from bmg_sweeps.sweep import (
    Claim,
    Published,
    PublishedBest,
    Quantity,
    choices,
    task_display,
)

AB = toy_runs.sweep("AB")
PER_GAME = toy_runs.sweep("AB", over=("seed", "game"))


def on_games(rewards):
    """Points of rewards by method, configuration, game and seed."""
    return [
        toy_runs.trained(toy_runs.toy_point(kind, rate, seed, game=game), reward)
        for (kind, rate, game), by_seed in rewards.items()
        for seed, reward in enumerate(by_seed)
    ]


def selected(sweep, runs):
    """The rate of each method's best, and why the others are left out."""
    found = toy_runs.load(sweep, runs).first
    best = {s.method: s.configuration.values["rate"] for s in found.best}
    return best, {one.reason for one in found.left_out}


def decide(sweep, runs, **keywords):
    claim = Claim(text="A earns more", **({"more": "A", "less": "B"} | keywords))
    found = toy_runs.load(dataclasses.replace(sweep, claims=(claim,)), runs)
    (one,) = claims.decide(found)
    return one


def test_one_seed_is_no_rival_of_five():
    """The lucky one has 9, and the others 5 on average."""
    runs = toy_runs.table({"A": [[9], [3, 4, 5, 6, 7]]})
    best, reasons = selected(AB, runs)
    assert best == {"A": 1}
    assert reasons == {"no point of seed 1 and 3 more; the method has 5 of each"}


def test_methods_may_have_seeds_of_their_own():
    """Two of B are enough beside three of A; each has its own grid."""
    runs = toy_runs.table({"A": [[1, 2, 3]], "B": [[1, 2], [3, 4]]})
    assert selected(AB, runs) == ({"A": 0, "B": 1}, set())


def test_the_easy_game_alone_does_not_win():
    """Rate 1 was not run on the hard one."""
    runs = on_games({("A", 0, "easy"): (8, 9), ("A", 0, "hard"): (1, 2),
                     ("A", 1, "easy"): (9, 9)})  # fmt: skip
    best, reasons = selected(PER_GAME, runs)
    assert best == {"A": 0}
    assert reasons == {
        "no point of seed 0, game hard and 1 more; the method has 4 of each"
    }


def test_a_grid_with_a_hole_is_left_out():
    """Seed 1 was not run on one of two games: means of seeds are of other games."""
    runs = on_games({("A", 0, "x"): (0, 8), ("A", 0, "y"): (4,)})
    best, reasons = selected(PER_GAME, runs)
    assert best == {}
    assert reasons == {"no point of seed 1, game y; the method has 4 of each"}


def test_the_best_table_and_a_claim_have_one_mean():
    """On a whole grid they are the same number; where it has a hole there is none."""
    levels = {("A", 0, "x"): 5, ("A", 0, "y"): 9, ("B", 0, "x"): 1, ("B", 0, "y"): 2}
    whole = on_games({key: (level, level + 1) for key, level in levels.items()})
    for runs, expected in ((whole, [7.5, 2.0]), (whole[:3] + whole[4:], [2.0])):
        found = toy_runs.load(PER_GAME, runs)
        shown = [row[3].mean for row in best_tables.table(found, "env_steps").rows]
        assert shown == expected
        one = decide(PER_GAME, runs)
        read = [side.estimate(None).mean for side in (one.more, one.less) if side]
        assert read == (expected if len(expected) == 2 else [])


def test_methods_on_two_different_games_are_not_compared():
    """As many games are not the same games."""
    runs = on_games({("A", 0, "x"): range(5), ("B", 0, "y"): range(5)})
    (table,) = improvement.table(toy_runs.load(PER_GAME, runs), "env_steps")
    assert [row[1:] for row in table.rows] == [
        (None, "other tasks"),
        ("other tasks", None),
    ]
    one = decide(PER_GAME, runs)
    assert one.reason == "the two are of different values of game"


def record(storage, p, validations, tests):
    """Commits a point that was evaluated at 50 and 100 steps, and perhaps tested.

    A validation of None is one that was not finite.
    """
    axes = {"env_steps": [50, 100], "training_seconds": [1.0, 2.0]}
    attempts.begin(storage, store.read(storage, p.trainer, p.id)).commit(
        progress={"env_steps": 100},
        rows=axes,
        validation=axes | {"reward": validations},
        **({"test": axes | {"test_reward": tests}} if tests else {}),
        provenance={"revision": "abc", "device": "cpu", "threads": 1},
        release=True,
    )


def load_tested(storage, rewards, **keywords):
    """Results of a sweep with tests: rewards are (validations, tests) by method."""
    rule = dataclasses.replace(AB.select, test="test_reward")
    sweep = dataclasses.replace(AB, select=rule, **keywords)
    points = []
    for kind, by_seed in rewards.items():
        for seed, (validations, tests) in enumerate(by_seed):
            points.append(toy_runs.toy_point(kind, 0, seed))
            record(storage, points[-1], validations, tests)
    stop, choice = {"env_steps": 100}, choices.Choice(scale="paper")
    chosen = choices.Chosen("toy", sweep, tuple(points), stop, choice)
    return results.load(storage, chosen)


def test_an_earlier_time_is_read_from_tests_where_the_end_is(storage):
    """Tests fall by 4, 5 and 6 while validations rise: they fell."""
    runs = [([1, 9], [20 + s, 16]) for s in range(3)]
    earlier = Quantity(method="A", at=50)
    claim = Claim(text="It falls", more=earlier, less="A")
    (one,) = claims.decide(load_tested(storage, {"A": runs}, claims=(claim,)))
    assert (one.more.by_seed, one.less.by_seed) == (
        {0: 20, 1: 21, 2: 22},
        {0: 16, 1: 16, 2: 16},
    )
    assert one.verdict == Verdict.SUPPORTED


def test_no_spread_between_seeds_decides_nothing():
    """Three seeds that are equal to the last digit say nothing of a fourth."""
    runs = toy_runs.table({"A": [[0.0002] * 3], "B": [[0.0001] * 3]})
    one = decide(AB, runs)
    assert (one.verdict, one.reason) == (Verdict.OPEN, "no spread between seeds")
    assert one.difference == pytest.approx(0.0001)


def test_differences_that_vary_by_rounding_do_not_vary():
    """Of runs around a million, rounding is 1e-10: more than nothing beside 1e-4."""
    runs = [
        toy_runs.trained(toy_runs.toy_point("A", 0, s), x + 1e-4, other=x)
        for s, x in enumerate((1e6, 2e6 / 3, 3e6 / 7))
    ]
    one = decide(AB, runs, less=Quantity(method="A", metric="other"))
    assert (one.verdict, one.reason) == (Verdict.OPEN, "no spread between seeds")


def test_equal_needs_a_margin():
    """A is more by 0.1, by Welch ± 0.45 at 95 % and ± 0.35 at 90 %."""
    runs = toy_runs.table({"A": [[1.0, 1.2, 1.4]], "B": [[0.9, 1.1, 1.3]]})
    error = np.sqrt(2 * 0.04 / 3)
    half = {c: error * stats.t.ppf((1 + c) / 2, 4) for c in (0.9, 0.95)}
    one = decide(AB, runs, are_equal=True)
    assert (one.verdict, one.reason) == (
        Verdict.OPEN,
        "equal_within = None: no margin says how much is equal",
    )
    assert one.difference == pytest.approx((0.1, 0.1 - half[0.95], 0.1 + half[0.95]))
    within = 0.1 + half[0.9]
    verdicts = [
        decide(AB, runs, equal_within=n).verdict
        for n in (within + 0.001, within - 0.001)
    ]
    assert verdicts == [Verdict.SUPPORTED, Verdict.OPEN]


def test_what_differs_by_more_than_the_margin_is_not_equal():
    """A is more by 10, ± 0.45 at 95 %."""
    runs = toy_runs.table({"A": [[11.0, 11.2, 11.4]], "B": [[1.0, 1.2, 1.4]]})
    half = np.sqrt(2 * 0.04 / 3) * stats.t.ppf(0.975, 4)
    for sides in (("A", "B"), ("B", "A")):
        keywords = dict(zip(("more", "less"), sides, strict=True))
        found = [
            decide(AB, runs, equal_within=10 - half + n, **keywords).verdict
            for n in (-0.001, 0.001)
        ]
        assert found == [Verdict.CONTRADICTED, Verdict.OPEN]
    assert decide(AB, runs, are_equal=True).verdict == Verdict.CONTRADICTED


def test_a_margin_is_a_number_above_zero():
    with pytest.raises(ValueError, match="equal_within = 0: expected a number above 0"):
        Claim(text="So", more="A", less="B", equal_within=0)


def test_few_runs_have_no_probability_of_improvement():
    """With four it is left out; with five it is there."""
    for number, names in ((4, ("method", "interquartile mean")),
                          (5, ("method", "interquartile mean",
                               "P(better than A)", "P(better than B)"))):  # fmt: skip
        runs = toy_runs.table({"A": [range(number)], "B": [range(number)]})
        (table,) = improvement.table(toy_runs.load(AB, runs), "env_steps")
        assert table.names == names


def test_games_that_are_not_normalized_have_no_interquartile_mean():
    """Of Pong's 21 and Breakout's 700 the middle half is the one or the other."""
    games = {(kind, 0, game): range(5) for kind in "AB" for game in "xy"}
    (table,) = improvement.table(toy_runs.load(PER_GAME, on_games(games)), "env_steps")
    assert table.names == ("method", "P(better than A)", "P(better than B)")


def test_tests_of_the_runs_that_were_chosen_are_flattered_too(storage):
    found = load_tested(storage, {"A": [([1, 2], [1, 2])]})
    assert "same runs: there, too, the best of many looks" in best_tables.how(found)
    runs = toy_runs.load(AB, toy_runs.table({"A": [[1]]}))
    assert "the best of many looks better than it is" in best_tables.how(runs)


def test_of_ten_claims_about_nothing_few_reports_have_a_wrong_one(monkeypatch):
    """Ten methods against ten others, all equal: 300 reports of three seeds.

    Each by itself, some claim of a report is wrong in 30 % of them.
    """
    monkeypatch.setattr(claims, "_lacking", lambda *_: None)  # It takes a while.
    random, wrong, alone = np.random.default_rng(0), 0, 0
    for _ in range(300):
        draws = random.normal(size=(20, 3)).tolist()
        names = [f"m{i}" for i in range(20)]
        all_claims = tuple(
            Claim(text=more, more=more, less=less)
            for more, less in zip(names[::2], names[1::2], strict=True)
        )
        runs = toy_runs.table({n: [d] for n, d in zip(names, draws, strict=True)})
        found = toy_runs.load(toy_runs.sweep(names, claims=all_claims), runs)
        words = {one.verdict for one in claims.decide(found)}
        wrong += bool(words & {Verdict.SUPPORTED, Verdict.CONTRADICTED})
        alone += bool(words - {Verdict.OPEN})
    assert wrong / 300 <= 0.07
    assert alone / 300 > 0.2


def test_the_last_of_the_parts_is_the_stop_rule_itself():
    """0.1 * 3 / 3 is 0.10000000000000002, which no run reaches."""
    rule = dataclasses.replace(AB.select, budgets={"hours": 3})
    assert selection.budgets(rule, {"hours": 0.1})["hours"][-1] == 0.1


def test_a_row_far_before_its_budget_is_told():
    """At 90 the row at 50 is read; at 52 it is near enough."""
    runs = [toy_runs.trained(toy_runs.toy_point("A", 0, 0), 1.0)]
    rows = {"env_steps": [50, 100], "reward": [1.0, 2.0]}
    runs = [dataclasses.replace(runs[0], rows=rows)]
    rule = dataclasses.replace(AB.select, budgets={"env_steps": (52, 90, 100)})
    sweep = dataclasses.replace(AB, select=rule)
    table = report.make(toy_runs.load(sweep, runs))[0]
    told = [note for note in table.notes if "far before" in note]
    assert told == ["A at 90 env_steps: read at 50, far before the budget."]


@pytest.mark.parametrize("over", [("game", "seed"), ["seed", "game"]])
def test_the_seed_is_told_by_its_name(over):
    """Wherever it stands: means of seeds are 2 and 6, and of games 3 and 5."""
    runs = on_games({("A", 0, "x"): (1, 5), ("A", 0, "y"): (3, 7)})
    found = toy_runs.load(toy_runs.sweep("A", over=over), runs)
    assert found.sweep.select.over == ("seed", "game")
    assert found.first.best[0].estimate.deviation == pytest.approx(4 / 2**0.5)


def test_a_method_with_a_missing_test_is_named(storage):
    """In the table of methods, and in that of the best."""
    runs = [([1, 2], [1, 2])] * 2
    rewards = {"A": runs, "B": runs, "C": [*runs[:1], ([1, 2], None)]}
    methods = toy_runs.sweep("ABC").methods
    found = load_tested(storage, rewards, methods=methods)
    (table,) = improvement.table(found, "env_steps")
    assert [row[0] for row in table.rows] == ["A", "B"]
    assert "C is left out: not every seed has test_reward." in table.notes
    notes = best_tables.table(found, "env_steps").notes
    assert "C at 100 env_steps: not every seed has test_reward." in notes


ELSEWHERE = PublishedBest(
    method="A", budget=100, mean=5.0, deviation=2.0, seeds=10, source="Somebody"
)


def test_a_difference_to_a_published_mean_has_an_interval(storage):
    """Ours is 4 ± 1 of 3 seeds: by Welch, -1 ± t √(1/3 + 4/10)."""
    found = load_tested(
        storage,
        {"A": [([1, 1], [1, x]) for x in (3, 4, 5)]},
        published=Published(best=(ELSEWHERE,)),
    )
    table = best_tables.table(found, "env_steps")
    delta = table.rows[-1][-1]
    by_scipy = stats.ttest_ind_from_stats(4, 1, 3, 5, 2, 10, equal_var=False)
    error = -1 / by_scipy.statistic
    freedom = (1 / 3 + 0.4) ** 2 / ((1 / 3) ** 2 / 2 + 0.4**2 / 9)
    half = error * stats.t.ppf(0.975, freedom)
    assert delta == pytest.approx((-1, -1 - half, -1 + half))
    shown = tables.texts(table, is_exact=True)[-1][-1]
    assert shown.startswith("-1 [-3.01, +1.01]")


def test_a_published_test_is_not_compared_with_a_validation(storage):
    """Without all tests of ours there is no difference."""
    rewards = {"A": [([1, 2], [1, 2]), ([1, 2], None)]}
    found = load_tested(storage, rewards, published=Published(best=(ELSEWHERE,)))
    assert best_tables.table(found, "env_steps").rows[-1][-1] is None
    score = found.first.best[-1]
    without = dataclasses.replace(ELSEWHERE, seeds=None)
    plain = dataclasses.replace(score, test=score.estimate)
    assert published.difference(found.chosen, score, without) is None
    assert published.difference(found.chosen, plain, without) == -3


def test_a_fold_chooses_by_validation_and_reads_the_test_of_its_seed(storage):
    """Rate 0 is chosen for seeds 1 and 2, and rate 1 for seed 0: tests 40, 1 and 2.

    The plain choice has tests 0, 1 and 2, and no others are read but the fold's.
    """
    validations = {0: (9, 1, 2), 1: (1, 8, 3)}
    points = {}
    for rate, by_seed in validations.items():
        for seed, validation in enumerate(by_seed):
            p = toy_runs.toy_point("A", rate, seed)
            points[rate, seed] = p
            record(storage, p, [0, validation], [0, 40 * rate + seed])
    rule = dataclasses.replace(AB.select, test="test_reward")
    chosen = choices.Chosen(
        "toy",
        dataclasses.replace(AB, select=rule),
        tuple(points.values()),
        {"env_steps": 100},
    )
    (apart,) = results.load(storage, chosen).first.held_out.values()
    assert apart.estimate.mean == (40 + 1 + 2) / 3
    read = {points[1, 0].id, points[0, 1].id, points[0, 2].id}
    assert apart.test_rows.keys() == read


def test_what_diverged_counts_as_the_floor_in_place_of_its_test(storage):
    """Whatever test it left: seeds 1 and 2 choose it, and seed 0 has -5."""
    points = []
    for rate, by_seed in {0: (None, 9, 9), 1: (1, 2, 3)}.items():
        for seed, validation in enumerate(by_seed):
            points.append(toy_runs.toy_point("A", rate, seed))
            record(storage, points[-1], [0, validation], [0, 10 * rate + seed])
    rule = dataclasses.replace(AB.select, test="test_reward", floor=-5)
    sweep = dataclasses.replace(AB, select=rule)
    chosen = choices.Chosen("toy", sweep, tuple(points), {"env_steps": 100})
    (apart,) = results.load(storage, chosen).first.held_out.values()
    assert apart.estimate.mean == (-5 + 11 + 12) / 3


def test_a_missing_test_leaves_nothing_to_be_held_out(storage):
    """One of the runs that a fold reads has none."""
    found = load_tested(storage, {"A": [([1, 2], [1, 2]), ([1, 2], None)]})
    (apart,) = found.first.held_out.values()
    assert (apart.estimate, apart.reason) == (None, "not every seed has test_reward")


def test_where_there_was_a_choice_a_statistic_over_tasks_is_that_of_each_seed():
    """A has two configurations; medians of its seeds are 2 and 5, of B's 1 and 2."""
    levels = {("A", 0): [(1, 4), (2, 5), (9, 9)], ("A", 1): [(-1, -1)] * 3,
              ("B", 0): [(1, 1), (1, 2), (7, 8)]}  # fmt: skip
    runs = on_games(
        {
            (*key, game): by_seed
            for key, games in levels.items()
            for game, by_seed in zip("xyz", games, strict=True)
        }
    )
    tasks = task_display.Tasks(field="game", score="reward", normalized="reward")
    sweep = dataclasses.replace(PER_GAME, tasks=tasks)
    one = decide(sweep, runs, over_tasks="median")
    assert one.more.apart == {0: 2, 1: 5}
    variances = 9 / 2 * 3 / 2, 1 / 2 / 2
    error, freedom = sum(variances) ** 0.5, sum(variances) ** 2
    half = error * stats.t.ppf(0.975, freedom / sum(v**2 for v in variances))
    assert one.difference == pytest.approx((2, 2 - half, 2 + half))
    assert one.plain.difference.estimate == 3.5 - 1.5  # Means of medians.
