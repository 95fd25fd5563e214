"""Claims of a paper, decided by points: the numbers that are read, and the verdicts."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from bmg_sweeps import errors
from bmg_sweeps.analysis import (
    at_budget,
    claims,
    differences,
    planned,
    readings,
    results,
)
from bmg_sweeps.analysis.selection import Selection
from bmg_sweeps.analysis.verdicts import Verdict
from bmg_sweeps.records.attempts import begin
from bmg_sweeps.records.store import read
from bmg_sweeps.reporting import claim_table, report, tables
from bmg_sweeps.reporting.tables import Kind
from bmg_sweeps.sweep import Claim, Measure, Quantity, choices, grid
from bmg_sweeps.sweep.point import Point

SWEEP = grid.Sweep(
    title="Toy",
    trainer="toy",
    scales={},
    select=grid.Select(metric="reward", mode="max", budgets={"env_steps": 2}),
    methods={
        "A": grid.Method({"kind": "a"}, tuned={"rate": "rate"}),
        "B": grid.Method({"kind": "b"}, tuned={}),
        "C": grid.Method({"kind": "c"}, tuned={}),
    },
)
# Rewards and weights at 50 and at 100 steps, for each of three seeds.
REWARDS = {
    ("a", 0.1): ((1, 10), (2, 11), (3, 15)),
    ("a", 0.2): ((50, 2), (50, 3), (50, 4)),  # Best early, not at the end.
    ("b", 0.1): ((1, 1), (1, 2), (1, 3)),
}
WEIGHTS = ((0.5, 0.25), (0.5, 0.3), (0.5, 0.2))


@pytest.fixture
def complete(storage):
    """Records of two methods; of the third there are none."""
    for arm, by_seed in REWARDS.items():
        for seed, rewards in enumerate(by_seed):
            p = toy_point(arm, seed)
            begin(storage, read(storage, p.trainer, p.id)).commit(
                progress={"env_steps": 100},
                rows={
                    "env_steps": [50, 100],
                    "reward": list(rewards),
                    "weight": list(WEIGHTS[seed]),
                    "half": [x / 2 for x in WEIGHTS[seed]],
                    "training_seconds": [1.0, 2.0],
                },
                provenance={"revision": "abc", "device": "cpu"},
                release=True,
            )
    return storage


def toy_point(arm, seed):
    kind, rate = arm
    return Point("toy", {"kind": kind, "rate": rate, "seed": seed})


def decided(storage, more, less, seeds=3, select=SWEEP.select, **keywords):
    """The row of one claim."""
    claim = Claim(text="It is so.", more=more, less=less, **keywords)
    sweep = dataclasses.replace(SWEEP, claims=(claim,), select=select)
    made = tuple(toy_point(arm, s) for arm in REWARDS for s in range(seeds))
    choice = choices.Choice(scale="paper")
    chosen = choices.Chosen("toy", sweep, made, {"env_steps": 100}, choice)
    (table,) = claim_table.table(results.load(storage, chosen))
    (row,) = tables.texts(table, is_exact=False)
    return tuple(
        cell
        for name, cell in zip(table.names, row, strict=True)
        if not name.startswith("plain")
    )


def test_separate_runs_are_compared_by_welch(complete):
    """Means 12 and 2, deviations √7 and 1, the best of A being that at the end.

    A had a choice, and any two of its seeds choose the same: 1/3 + 1/2 for 1/3.
    """
    text, verdict, difference, more, less = decided(complete, "A", "B")
    assert text == "It is so."
    assert (more, less) == (f"A rate=0.1: 12 ± {7**0.5:.3g}; held out 12", "B: 2 ± 1")
    variances = 7 * 5 / 6, 1 / 3
    error = sum(variances) ** 0.5
    freedom = sum(variances) ** 2 / sum(v**2 / 2 for v in variances)
    half = stats.t.ppf(0.975, freedom) * error
    assert difference == f"10 [{10 - half:.3g}, {10 + half:.3g}]"
    assert verdict == "supported"


def test_the_other_way_round_it_is_contradicted(complete):
    row = decided(complete, "B", "A")
    assert row[1] == "contradicted"


def test_the_same_runs_are_compared_in_pairs(complete):
    """Rewards rise by 9, 9 and 12: 10 ± t √(3 · 5/6), with two freedoms."""
    row = decided(complete, "A", Quantity(method="A", metric="reward", at=50))
    half = stats.t.ppf(0.975, 2) * (3 * 5 / 6) ** 0.5
    assert row[4] == "A rate=0.1 reward at 50: 2 ± 1; held out 2"
    assert row[2] == f"10 [{10 - half:.3g}, {10 + half:.3g}]"
    assert row[1] == "supported"


def test_a_column_can_be_taken_off_and_rows_be_averaged(complete):
    """Weight − half = half: (0.25 + 0.125)/2, (0.25 + 0.15)/2, (0.25 + 0.1)/2."""
    row = decided(
        complete,
        Quantity(method="A", metric="weight", minus="half", last=100),
        "B",
    )
    assert row[3] == "A rate=0.1 weight − half over 100: 0.188 ± 0.0125; held out 0.188"


def test_where_there_are_tests_they_decide(complete):
    """Selected by validation, and compared by what was read afterwards."""
    select = dataclasses.replace(SWEEP.select, test="test_reward")
    for arm in REWARDS:
        for seed in range(3):
            p = toy_point(arm, seed)
            number = 7 + seed if arm[0] == "b" else 3 + seed
            begin(complete, read(complete, p.trainer, p.id)).commit(
                progress={"env_steps": 100},
                test={"env_steps": [100], "test_reward": [number],
                      "training_seconds": [2.0]},
                release=True,
            )  # fmt: skip
    row = decided(complete, "B", "A", select=select)
    sides = "B: 8 ± 1", "A rate=0.1: 4 ± 1; held out 4"
    assert row == ("It is so.", "supported", row[2], *sides)


def test_an_interval_around_zero_leaves_it_open(complete):
    """1, 2, 3 against 1, 1, 1: more by 1, with t of two freedoms 2.5 either way.

    It says how many fresh seeds it lacks: of few seeds, widely.
    """
    rewards = [Quantity(method=method, at=50) for method in "AB"]
    for sides in (rewards, rewards[::-1]):
        said = "open: 10 to 38 more seeds, a wide range"
        assert decided(complete, *sides)[1] == said


def test_that_two_are_equal_is_contradicted_by_either_sign(complete):
    for pair in (("A", "B"), ("B", "A")):
        assert decided(complete, *pair, are_equal=True)[1] == "contradicted"


def test_one_seed_decides_nothing(complete):
    row = decided(complete, "A", "B", seeds=1)
    assert row[1:3] == ("open: one seed has no interval", "–")


def test_what_was_not_run_is_said(complete):
    row = decided(complete, "A", "C")
    assert row[1] == "open: no point is of C"
    row = decided(complete, Quantity(method="A", metric="wait"), "B")
    assert row[1] == "open: A: wait is no column of its rows"


def test_where_nothing_can_be_selected_all_claims_are_open():
    claim = Claim(text="So.", more="A", less="B")
    sweep = dataclasses.replace(SWEEP, claims=(claim,))
    chosen = choices.Chosen("toy", sweep, (), {"env_steps": 100})
    selections = {"env_steps": Selection("env_steps", refused="So much.")}
    (decided,) = claims.decide(results.Results(chosen, (), selections))
    assert (decided.verdict, decided.reason) == (Verdict.OPEN, "So much.")


def test_an_empty_window_is_no_divergence(complete):
    """Rows are at 50 and 100: none is in the last 5 before 60, and no floor counts."""
    quantity = Quantity(method="A", at=60, last=5)
    select = dataclasses.replace(SWEEP.select, floor=-9)
    row = decided(complete, quantity, "B", select=select)
    assert row[1:3] == ("open: A: no row in the last 5 env_steps before 60", "–")
    p = toy_point(("b", 0.1), 0)
    one = readings.load_one(complete, p, read(complete, p.trainer, p.id))
    window = at_budget.read(one, "env_steps", 60, "reward", 5)
    assert window == at_budget.Missing(
        "no row in the last 5 env_steps before 60", is_divergence=False
    )
    early = at_budget.read(one, "env_steps", 40, "reward", 5)
    assert early == at_budget.Missing("no row before 40 env_steps")
    assert at_budget.read(one, "env_steps", 60, "reward", 11) == 1


def test_speeds_of_two_devices_are_not_compared(complete):
    """Rewards of the same runs are."""
    p = toy_point(("b", 0.1), 0)
    begin(complete, read(complete, p.trainer, p.id)).commit(
        progress={"env_steps": 100}, provenance={"device": "H100"}, release=True
    )
    speeds = [Quantity(method=m, metric="env_steps_per_second") for m in "AB"]
    reason = "env_steps_per_second on H100 and cpu cannot be compared"
    assert decided(complete, *speeds)[1:3] == (f"open: {reason}", "–")
    less = Quantity(method="B", metric="reward", minus="env_steps_per_second")
    assert decided(complete, "A", less)[1] == f"open: {reason}"
    assert decided(complete, "A", "B")[1] == "supported"


@pytest.mark.parametrize("metric", [None, "reward"])
def test_the_floor_counts_for_the_column_that_decides_by_its_name_too(metric):
    """For no other one, and not where something is taken off it."""
    rule = dataclasses.replace(SWEEP.select, floor=-4)
    quantity = Quantity(method="A", metric=metric)
    assert claims.is_deciding(rule, quantity)
    assert not claims.is_deciding(rule, Quantity(method="A", metric="weight"))
    assert not claims.is_deciding(
        rule, Quantity(method="A", metric="reward", minus="weight")
    )
    tested = dataclasses.replace(rule, test="test_reward")
    assert claims.is_deciding(tested, quantity) == (metric is None)
    assert claims.is_deciding(tested, Quantity(method="A", metric="test_reward"))


BY_BOTH = dataclasses.replace(SWEEP.select, budgets={"env_steps": 2, "hours": 2})


def by_hours(storage, *all_claims, **keywords):
    """The results of a sweep of two axes, with --stop hours=2/3600 alone."""
    sweep = dataclasses.replace(SWEEP, claims=all_claims, select=BY_BOTH, **keywords)
    made = tuple(toy_point(arm, s) for arm in REWARDS for s in range(3))
    stop = {"hours": 2 / 3600}
    choice = choices.Choice(scale="paper", stop=stop)
    for p in made:
        attempt = begin(storage, read(storage, p.trainer, p.id))
        attempt.commit(progress={"env_steps": 100, "hours": 2 / 3600}, release=True)
    return results.load(storage, choices.Chosen("toy", sweep, made, stop, choice))


def test_claims_are_of_the_axis_that_there_is(complete):
    """Hours alone are in the stop rule, and the numbers are those at the end."""
    claim = Claim(text="So.", more="A", less="B")
    early = Claim(text="Early.", more=Quantity(method="A", at=50), less="B")
    measure = Measure(metric="weight", label="w")
    found = by_hours(complete, claim, early, measures=(measure,))
    made = {table.key.kind: table for table in report.make(found)}
    assert {Kind.CLAIMS, Kind.MEASURES} <= made.keys()
    (first, second) = tables.texts(made[Kind.CLAIMS], is_exact=False)
    assert first[:2] == ["So.", "supported"]
    reason = "it names amounts of env_steps, and budgets are of hours"
    assert second[1] == f"open: {reason}"
    assert "at 0.00056 hours" in made[Kind.CLAIMS].notes[0]
    keys = {key.kind for key in report.keys(found.chosen)}
    assert {Kind.CLAIMS, Kind.MEASURES} <= keys


def test_a_plan_is_of_the_axis_that_there_is(complete):
    """Its claim has another name than by steps."""
    equal = Claim(text="So.", more="B", less=Quantity(method="B", metric="reward"))
    found = by_hours(complete, equal)
    plan = planned.make(complete, found, [2])
    assert (plan.axis, plan.stop) == ("hours", {"hours": 2 / 3600})
    steps = dataclasses.replace(found.chosen, stop={"env_steps": 100})
    assert planned.identify(steps).keys().isdisjoint(planned.identify(found.chosen))


def test_without_a_deviation_there_is_no_interval():
    equal = differences.mean([3.0, 3.0])
    assert differences.of_pairs(equal) == 3
    assert differences.of_means(equal, differences.mean([1.0, 1.0])) == 2


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Of 1,000 draws of three runs each, 95 % within three standard errors."""
    random = np.random.default_rng(0)
    hits = []
    for _ in range(1000):
        draws = (random.normal(1, 2, 3), random.normal(0, 1, 3))
        found = differences.of_means(*map(differences.mean, draws)).interval()
        hits.append(found.low < 1 < found.high)
    assert 0.93 < np.mean(hits) < 0.985


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"method": ""}, "method = ''"),
        ({"method": "A", "at": 0}, "at = 0: expected a number above 0"),
        ({"method": "A", "at": "1"}, "at = '1'"),
        ({"method": "A", "minus": "half"}, "minus = 'half': expected a metric to take"),
        ({"method": "A", "last": -1}, "last = -1"),
        ({"method": "A", "metric": 3}, "metric = 3"),
    ],
)
def test_a_quantity_that_makes_no_sense_is_refused(keywords, message):
    with pytest.raises(ValueError, match=message):
        Quantity(**keywords)


def test_a_claim_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="less = 3: expected Quantity"):
        Claim(text="So.", more="A", less=3)
    with pytest.raises(ValueError, match="claims = "):
        dataclasses.replace(SWEEP, claims=("So.",))


def test_a_claim_about_no_method_of_the_sweep_is_refused(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(ABOUT_NOTHING)
    with pytest.raises(
        errors.UserError, match="claims, method 'MB': expected one of: MG"
    ):
        choices.choose(str(path), choices.Choice())


ABOUT_NOTHING = """
from bmg_sweeps.sweep import Claim, Method, Scale, Select, Sweep

SWEEP = Sweep(
    title="Mine",
    trainer="two_colors_actor_critic",
    scales={"smoke": Scale(({"seed": 0},), stop={"env_steps": 10})},
    select=Select(metric="total_reward", mode="max", budgets={"env_steps": 1}),
    methods={"MG": Method({}, tuned={})},
    claims=(Claim(text="So.", more="MG", less="MB"),),
)
"""
