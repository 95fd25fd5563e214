"""Successive halving from records: by hand, in simulated sweeps, and as a table."""

import dataclasses
import functools
import json

import numpy as np
import pytest
import toy_runs

from bmg_sweeps.analysis import (
    agreement,
    backtest,
    differences,
    held_out,
    readings,
    results,
)
from bmg_sweeps.analysis.selection import Rungs
from bmg_sweeps.records import manifests, store
from bmg_sweeps.reporting import backtest_table, tables
from bmg_sweeps.sweep import choices, grid

SWEEPS = 2_000
HALF = Rungs("env_steps", (10,), 2)
NAN = np.nan


def trained(rate, seed, rewards, hours=(1.0, 3.0, 4.0), width=1, device="cpu"):
    """A point with rows at 10, 20 and 30, as far as it has rewards."""
    p = toy_runs.toy_point("A", rate, seed)
    amounts = [10, 20, 30][: len(rewards)]
    rows = {
        "env_steps": amounts,
        "reward": [*rewards],
        "hours": [*hours[: len(amounts)]],
    }
    is_short = len(amounts) < 3
    failure = manifests.Failure("diverged", 1, "ValueError", "no") if is_short else None
    provenance = manifests.Provenance.of({"device": device, "pack_width": width})
    manifest = manifests.Manifest(
        progress={"env_steps": amounts[-1]}, failure=failure, provenance=provenance
    )
    return readings.Trained(p, store.Record("toy", p.id, manifest), rows)


def load(runs, mode="max", test=None, floor=None):
    rule = grid.Select(
        metric="reward", mode=mode, budgets={"env_steps": (30,)}, test=test, floor=floor
    )
    sweep = grid.Sweep(
        title="Toy",
        trainer="toy",
        scales={},
        select=rule,
        methods={"A": grid.Method({"kind": "A"}, tuned={"rate": "rate"})},
    )
    points = tuple(one.point for one in runs)
    choice = choices.Choice(scale="mine")
    chosen = choices.Chosen("toy", sweep, points, {"env_steps": 30}, choice)
    return results.without_tests(chosen, runs)


def several(rewards, **keywords):
    """Points of rewards by configuration, seed and amount."""
    return [
        trained(rate, seed, of_seed, **keywords)
        for rate, by_seed in enumerate(rewards)
        for seed, of_seed in enumerate(by_seed)
    ]


def run(loaded, rungs=HALF, tests=None):
    (found,) = backtest.run(loaded, rungs, tests or (lambda _: {}))
    return found


def test_a_part_is_kept_at_each_rung_and_at_least_one():
    """Seven, a third of them, and one; what diverged goes first."""
    early = np.array([3.0, 9, 5, 1, NAN, 0, 2])
    late = np.array([1.0, 2, 9, 9, 9, 9, 9])
    scores = np.stack([early, late, late], axis=-1)[:, np.newaxis]
    kept = [one.tolist() for one in backtest.survivors(scores, 3)]
    assert kept == [[*range(7)], [1, 2], [2]]
    assert backtest.choose(scores, 3) == 2
    # Without a second rung the first two are left, of which 2 is better at the end.
    assert backtest.choose(scores[..., [0, 2]], 3) == 2
    assert backtest.choose(scores[..., [0, 2]], 7) == 1
    # Of those that are equal at the end the first is chosen, not the earlier best.
    assert backtest.choose(np.array([[[1.0, 5]], [[2, 5]], [[0, 9]], [[0, 9]]]), 2) == 0


def test_of_what_diverged_after_a_rung_nothing_is_chosen():
    scores = np.array([[[9.0, NAN]], [[1, 1]]])
    assert backtest.choose(scores, 2) == held_out.NONE
    assert backtest.choose(scores, 1) == 1


@pytest.mark.parametrize("num_seeds", [3, 10])
def test_of_equal_configurations_the_plain_regret_flatters_and_this_does_not(num_seeds):
    """30 of them, a third kept, early and late correlate by 0.5."""
    random, plain, apart, held = np.random.default_rng(0), [], [], []
    halving = functools.partial(backtest.choose, keep_one_in=3)
    is_few = num_seeds < held_out.MIN_HALVES
    decisive = held_out.by_all_but_one if is_few else held_out.by_halves
    for _ in range(SWEEPS):
        early, other = random.normal(size=(2, 30, num_seeds))
        late = 0.5 * early + 0.75**0.5 * other
        scores = np.stack([early, late], axis=-1)
        means = late.mean(axis=1)
        plain.append(means.max() - means[halving(scores)])
        seeds = np.arange(num_seeds)

        def regrets(by, scores=scores, late=late, seeds=seeds):
            full, halved = by(late), by(scores, halving)
            return late[full, seeds] - late[halved, seeds]

        apart.append(regrets(held_out.by_all_but_one).mean())
        found = differences.of_pairs(held_out.mean(regrets(decisive)))
        is_wide = isinstance(found, differences.Difference)
        between = found.interval() if is_wide else (0, found, found)
        held.append(between[1] <= 0 <= between[2])
    if is_few:
        assert np.mean(plain) == pytest.approx(0.06, abs=0.01)
    assert np.mean(plain) > 0.03
    assert abs(np.mean(apart)) <= 0.02
    assert np.mean(held) >= 0.94


# Mean total reward in thousands of BMG at 1, 2, 5 and 10M steps, as in
# results/two_colors.md.
BMG = [
    [-19, -49, -159, -349],  # K=1 L=1
    [4, 185, 814, 1766],  # K=1 L=7
    [9, 197, 810, 1717],  # K=3 L=7
    [97, 258, 752, 1118],  # K=7 L=2
    [42, 226, 822, 1567],  # K=7 L=7
    [32, 214, 797, 1760],  # K=7 L=9
]


def test_our_own_table_would_have_been_halved_wrongly():
    """The best at the end is fifth at first, and what is kept has 1,567 at the end."""
    scores = np.array(BMG, float)[:, np.newaxis]
    taus = [agreement.correlation(scores[..., i], scores[..., 3]).tau for i in range(3)]
    assert taus == pytest.approx([-0.2, -0.2, 7 / 15])
    assert [sorted(-scores[:, 0, i]).index(-scores[1, 0, i]) for i in (0, 1)] == [4, 4]
    assert backtest.choose(scores[..., [0, 3]], 3) == 4


# By seed, at 10, 20 and 30. At 10 the second is best of all; at 30 the first, but on
# seed 2, where it is the worst.
REWARDS = [
    [(1, 0, 9), (1, 0, 8), (1, 0, 2)],
    [(3, 0, 5), (3, 0, 5), (3, 0, 4)],
    [(2, 0, 0), (2, 0, 0), (2, 0, 7)],
]


def test_regret_is_of_the_choice_in_full_by_the_seeds_that_choose_and_by_others():
    """Means at 30 are 6⅓, 4⅔ and 2⅓; halving keeps the second alone.

    In full, any two seeds choose the first: 1 and 2 by 5 to 4½, 0 and 2 by 5½ to 4½,
    and 0 and 1 by 8½ to 5.
    """
    loaded = load(several(REWARDS))
    found = run(loaded)
    rates = [p.values["rate"] for p in (found.in_full, found.by_halving)]
    assert (rates, found.kept) == ([0, 1], (3, 1))
    assert found.plain_regret == pytest.approx(19 / 3 - 14 / 3)
    regrets = [9 - 5, 8 - 5, 2 - 4]
    assert found.regret == pytest.approx(np.mean(regrets))
    expected = differences.of_pairs(held_out.mean(regrets)).interval()
    assert found.interval == pytest.approx(expected)
    assert found.reason == ""


def test_less_is_better_where_the_sweep_says_so():
    """The same with all signs turned round."""
    turned = [[tuple(-x for x in run) for run in runs] for runs in REWARDS]
    found, before = run(load(several(turned), mode="min")), run(load(several(REWARDS)))
    assert found.regret == pytest.approx(before.regret)
    assert found.plain_regret == pytest.approx(before.plain_regret)


def test_from_four_seeds_on_halves_have_the_interval():
    """The number is of folds of one, the interval's middle of halves."""
    random = np.random.default_rng(1)
    found = run(load(several(random.normal(size=(9, 6, 3)).tolist())), HALF)
    assert found.interval.low < found.interval.estimate < found.interval.high
    assert found.interval.estimate != pytest.approx(found.regret)


def test_one_seed_holds_nothing_out():
    found = run(load(several([runs[:1] for runs in REWARDS])))
    assert (found.regret, found.interval) == (None, None)
    assert found.reason == "one seed holds nothing out"
    assert found.plain_regret == 9 - 5


def test_tests_are_read_of_what_a_fold_chose_and_of_nothing_else():
    """The regret is of tests, 10 times the validation; the third is never read."""
    runs, asked = several(REWARDS), set()
    by_id = {one.point.id: one for one in runs}

    def tests(point_id):
        asked.add(by_id[point_id].point.values["rate"])
        rows = by_id[point_id].rows
        return {"env_steps": rows["env_steps"], "t": [10 * x for x in rows["reward"]]}

    found = run(load(runs, test="t"), tests=tests)
    assert found.regret == pytest.approx(10 * run(load(runs)).regret)
    assert found.plain_regret == pytest.approx(19 / 3 - 14 / 3)
    assert 2 not in asked


def test_what_diverged_on_the_seed_that_is_read_has_no_regret_but_a_floor():
    """The second diverges on seed 0 after 10, where seeds 1 and 2 have kept it."""
    rewards = [REWARDS[0], [(3, 0), *REWARDS[1][1:]], REWARDS[2]]
    found = run(load(several(rewards)))
    assert (found.regret, found.plain_regret) == (None, None)
    assert found.reason.startswith("diverged in ")
    assert found.by_halving is None
    # Halving on other seeds keeps it, too: with seed 0, nothing is left to be chosen.
    rewards = [*rewards, [(0, 0, -9)] * 3]
    floored = run(load(several(rewards), floor=-4), Rungs("env_steps", (10,), 2))
    assert floored.regret is not None


def test_hours_are_those_up_to_where_each_stops():
    """Of six, three stop at 10 after 1 of 4 hours, two at 20 after 3, and one ends."""
    rewards = [[(i, i, i)] * 2 for i in range(6)]
    rungs = Rungs("env_steps", (10, 20), 2)
    share = (3 * 1 + 2 * 3 + 4) / (6 * 4)
    for width in (1, 4):
        found = run(load(several(rewards, width=width)), rungs)
        assert found.kept == (6, 3, 1)
        assert found.share_of_hours == pytest.approx(share)
    # Four in packs of 4, whose hours count a quarter.
    packed = several(rewards[:4], width=4)
    packed += [trained(rate, s, (rate,) * 3) for rate in (4, 5) for s in range(2)]
    part = (3 * 1 / 4 + 1 * 3 / 4 + 3 + 4) / (4 * 4 / 4 + 2 * 4)
    assert run(load(packed), rungs).share_of_hours == pytest.approx(part)
    devices = several(rewards[:3]) + [
        trained(rate, seed, (rate,) * 3, device="gpu")
        for rate in (3, 4)
        for seed in (0, 1)
    ]
    assert run(load(devices), rungs).share_of_hours is None
    without = several(rewards)
    for one in without:
        del one.rows["hours"]
    assert run(load(without), rungs).share_of_hours is None


def test_hours_are_those_of_training_also_between_two_evaluations():
    """At 20 they are 3, though the last evaluation was at 10 after 1."""
    runs = [
        dataclasses.replace(
            trained(rate, seed, (rate,) * 3),
            validation={"env_steps": [10, 30], "reward": [rate] * 2, "hours": [1, 4]},
        )
        for rate in range(6)
        for seed in (0, 1)
    ]
    found = run(load(runs), Rungs("env_steps", (10, 20), 2))
    assert found.share_of_hours == pytest.approx((3 * 1 + 2 * 3 + 4) / (6 * 4))


def test_hours_before_the_first_row_are_not_known():
    """They are not 0: an evaluation there took some training."""
    runs = several(REWARDS)
    late = [
        dataclasses.replace(
            one,
            rows={"env_steps": [20, 30], "hours": [3.0, 4.0]},
            validation={name: one.rows[name] for name in ("env_steps", "reward")},
        )
        for one in runs
    ]
    assert run(load(late)).regret == run(load(runs)).regret
    assert run(load(late)).share_of_hours is None


def test_what_has_not_reached_the_end_is_no_candidate():
    """Nor is a method of one configuration backtested."""
    runs = several(REWARDS)
    lacking = [one for one in runs if one.point.values["rate"] != 2]
    lacking.append(trained(2, 0, REWARDS[2][0]))
    assert run(load(lacking)).kept == (2, 1)
    assert backtest.run(load(lacking[:3]), HALF, lambda _: {}) == []


def test_the_table_has_a_row_for_each_method_and_names_the_others():
    loaded = load(several(REWARDS))
    table = backtest_table.table(loaded, HALF, lambda _: {})
    assert table.title.startswith("Successive halving at 10 env_steps, one of 2 kept")
    (row,) = tables.texts(table, is_exact=True)
    assert row[:5] == ["A", "3 → 1", "rate=0", "rate=1", "1.67"]
    assert row[-1] == "50.0%"  # (1 + 4 + 1) of 12 hours.
    assert row[6].startswith(row[5] + " [")
    assert json.dumps(tables.as_json(table))
    alone = load(several(REWARDS[:1]))
    table = backtest_table.table(alone, HALF, lambda _: {})
    assert (table.rows, table.notes[-1]) == ((), "Without a choice there: A.")
    (row,) = backtest_table.table(
        load(several([runs[:1] for runs in REWARDS])), HALF, lambda _: {}
    ).rows
    assert row[5:7] == ("one seed holds nothing out",) * 2
