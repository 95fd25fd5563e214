"""Agreement of budgets: by hand, in simulated sweeps, and as a report shows it."""

import itertools
import json

import numpy as np
import pytest
import toy_runs

from bmg_sweeps.analysis import agreement, readings, results
from bmg_sweeps.records import manifests, store
from bmg_sweeps.reporting import agreement_lines, figures, latex, report, tables
from bmg_sweeps.sweep import choices, grid
from bmg_sweeps.tracking import runs as tracked

BUDGETS = (10, 20, 30)


def trained(kind, rate, seed, rewards):
    """A point that has a row at each budget, as far as there are rewards."""
    p = toy_runs.toy_point(kind, rate, seed)
    amounts = [*BUDGETS[: len(rewards)]]
    manifest = manifests.Manifest(progress={"env_steps": amounts[-1]})
    rows = {"env_steps": amounts, "reward": [*rewards]}
    return readings.Trained(p, store.Record("toy", p.id, manifest), rows)


def load(runs, mode="max", is_sum=False, budgets=BUDGETS):
    rule = grid.Select(
        metric="reward", mode=mode, budgets={"env_steps": budgets}, is_sum=is_sum
    )
    sweep = grid.Sweep(
        title="Toy",
        trainer="toy",
        scales={},
        select=rule,
        methods={m: grid.Method({"kind": m}, tuned={"rate": "rate"}) for m in "AB"},
    )
    points = tuple(one.point for one in runs)
    choice = choices.Choice(scale="mine")
    chosen = choices.Chosen("toy", sweep, points, {"env_steps": BUDGETS[-1]}, choice)
    return results.without_tests(chosen, runs)


def several(rewards, kind="A"):
    """Points of rewards by configuration, seed and budget."""
    return [
        trained(kind, rate, seed, of_seed)
        for rate, by_seed in enumerate(rewards)
        for seed, of_seed in enumerate(by_seed)
    ]


def by_pairs(early, late):
    """τ_b by its definition: signs of all pairs."""
    pairs = [
        (np.sign(early[i] - early[j]), np.sign(late[i] - late[j]))
        for i, j in itertools.combinations(range(len(early)), 2)
    ]
    x, y = np.array(pairs).T
    return (x * y).sum() / np.sqrt((x**2).sum() * (y**2).sum())


@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_it_is_that_of_the_definition_with_all_seeds_and_without_each(seeds):
    """With ties, as rewards are whole numbers."""
    random = np.random.default_rng(0)
    early, late = random.integers(0, 4, size=(2, 9, seeds)).astype(float)
    found = agreement.correlation(early, late)
    assert found.tau == pytest.approx(by_pairs(early.mean(1), late.mean(1)))
    left = range(seeds) if seeds > 1 else ()
    without = [
        by_pairs(*(np.delete(of, s, 1).mean(1) for of in (early, late))) for s in left
    ]
    assert found.without == pytest.approx(without)


def test_of_few_configurations_or_equal_ones_nothing_is_said():
    numbers = np.arange(10.0).reshape(5, 2)
    assert agreement.correlation(numbers, numbers).tau == pytest.approx(1)
    assert agreement.correlation(numbers, -numbers).tau == pytest.approx(-1)
    assert agreement.correlation(numbers[:4], numbers[:4]) is None
    assert agreement.correlation(numbers * 0, numbers) is None
    # Without seed 0 all are equal: there is no number of that one.
    one = np.stack([np.arange(5.0), np.ones(5)], axis=1)
    assert agreement.correlation(one, numbers).without == pytest.approx((1,))


def test_each_budget_is_compared_with_the_last():
    """At 10 the other way round, at 20 but for the first two; the best is of rank 5."""
    rewards = [[(10 - i, i + (i == 0) * 1.5, i)] for i in range(5)]
    early, middle = agreement.of_axis(load(several(rewards)), "env_steps")
    assert (early.budget, middle.budget, early.last) == (10, 20, 30)
    assert (early.scores.tau, middle.scores.tau) == pytest.approx((-1, 0.8))
    assert (early.rank, middle.rank) == (5, 1)
    assert {(one.num_configurations, one.num_ranked) for one in (early, middle)} == {
        (5, 5)
    }
    assert early.increments is None


@pytest.mark.parametrize("mode", ["max", "min"])
def test_the_rank_is_of_what_is_best_by_the_sweeps_rule(mode):
    """The lowest is the best at the last where less is better, and is second at 10."""
    sign = 1 if mode == "max" else -1
    rewards = [[(sign * x, 0, sign * y)] for x, y in ((2, 5), (3, 1), (0, 2), (1, 3))]
    early, _ = agreement.of_axis(load(several(rewards), mode), "env_steps")
    assert (early.rank, early.num_ranked, early.scores) == (2, 4, None)


def test_of_a_running_sum_increments_are_compared_too():
    """Increments of i = 0…4, then of 0, then of 0.99 (4 − i): the sums keep one order.

    What is added at the last has the opposite order of what was added at first.
    """
    rewards = [[(i, i, i + 0.99 * (4 - i))] for i in range(5)]
    found = agreement.of_axis(load(several(rewards), is_sum=True), "env_steps")
    assert [one.scores.tau for one in found] == pytest.approx([1, 1])
    early, middle = found
    assert early.increments.tau == pytest.approx(-1)
    assert middle.increments is None  # All are 0.


def test_sums_of_what_is_unrelated_agree_and_their_increments_do_not():
    """30 equal configurations whose two increments are independent, 3 seeds."""
    random = np.random.default_rng(0)
    sums, increments = [], []
    for _ in range(200):
        added = random.normal(size=(2, 30, 3))
        sums.append(agreement.correlation(added[0], added.sum(0)).tau)
        increments.append(agreement.correlation(*added).tau)
    assert np.mean(sums) == pytest.approx(0.5, abs=0.02)  # 2/π asin(1/√2).
    assert np.mean(increments) == pytest.approx(0, abs=0.02)


def test_what_did_not_reach_a_budget_is_not_ranked_there():
    """Of seven, one stops after 20: six are compared, and at 20 seven are ranked."""
    runs = several([[(i, i, i), (i, i, i)] for i in range(6)])
    runs += [trained("A", 9, seed, (99, 99)) for seed in range(2)]
    for one in agreement.of_axis(load(runs), "env_steps"):
        assert (one.num_configurations, one.rank, one.num_ranked) == (6, 2, 7)
        assert one.scores.tau == pytest.approx(1)


def test_a_method_that_has_not_reached_the_last_is_compared_with_its_own_last():
    """And one of a single configuration is not there."""
    runs = several([[(i, i)] for i in range(5)])
    runs += several([[(1, 2, 3)]], "B")
    (one,) = agreement.of_axis(load(runs), "env_steps")
    assert (one.method, one.budget, one.last) == ("A", 10, 20)


def of_kind(loaded):
    return [t for t in report.make(loaded) if t.key.kind == tables.Kind.AGREEMENT]


@pytest.mark.parametrize("is_sum", [True, False])
def test_the_report_has_a_row_for_each_method_and_budget(is_sum):
    """In all forms; without one seed the order is another."""
    rewards = [[(i, i, 2 * i), (-2 * i, i, 3 * i)] for i in range(5)]
    loaded = load(several(rewards), is_sum=is_sum)
    (table,) = of_kind(loaded)
    assert table.key in report.keys(loaded.chosen)
    more = ("τ_b of increments",) if is_sum else ()
    last = ("configurations", "τ_b", *more, "rank of the final best")
    assert table.names == ("method", "env_steps", "the last", *last)
    early, middle = tables.texts(table, is_exact=True)
    between = ["-1.00 [-1.00, 1.00]"]
    again = ["-1.00 [-1.00, 1.00]"] if is_sum else []
    assert early == ["A", "10", "30", "5", *between, *again, "5 / 5"]
    assert middle[4] == "1.00 [1.00, 1.00]"
    assert ("running sum" in " ".join(table.notes)) == is_sum
    cell = json.loads(json.dumps(tables.as_json(table)))["rows"][0][4]
    assert cell == pytest.approx({"estimate": -1, "low": -1, "high": 1})
    assert "-1.00 [-1.00, 1.00]" in tables.markdown([table])
    assert "configurations" in latex.write([table])
    columns = tracked._as_wandb(table).columns
    assert columns[4:7] == ["τ_b", "τ_b low", "τ_b high"]


def test_without_a_choice_or_a_budget_before_the_last_there_is_no_table():
    one = several([[(1, 2, 3), (1, 2, 3)]])
    for loaded in (load(one), load(several([[(1, 2, 3)]] * 6), budgets=(30,))):
        assert of_kind(loaded) == []
        assert tables.Kind.AGREEMENT not in {k.kind for k in report.keys(loaded.chosen)}


@pytest.mark.parametrize("value", [1, "yes", None])
def test_whether_it_is_a_sum_is_true_or_false(value):
    with pytest.raises(ValueError, match=r"is_sum = .*: expected True or False"):
        grid.Select(metric="reward", mode="max", budgets={"x": 1}, is_sum=value)


def test_the_figure_has_a_panel_where_there_is_anything_to_be_drawn(drawn):
    """After the sweep's own: a line over budgets, with a dot for each seed."""
    rewards = [[(i, i, 2 * i), (i, i, 3 * i)] for i in range(5)]
    figures.draw(load(several(rewards), is_sum=True))
    figures.draw(load(several(rewards[:4])))
    own, panel = drawn[0].axes
    assert own.get_ylabel() == "reward"
    assert panel.get_ylabel() == agreement_lines.LABEL
    lines = {line.get_label(): line for line in panel.get_lines()}
    assert lines["A"].get_xdata().tolist() == [10, 20]
    assert lines["A"].get_ydata() == pytest.approx([1, 1])
    assert lines["A, increments"].get_xdata().tolist() == [10]
    assert lines["A, increments"].get_fillstyle() == "none"
    assert [len(line.get_xdata()) for line in panel.get_lines()] == [2, 4, 1, 2]
    assert len(drawn[1].axes) == 1
