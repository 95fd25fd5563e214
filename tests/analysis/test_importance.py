"""Shares of variance equal closed forms and a sum over all parts, and sum to 1."""

import itertools

import numpy as np
import pytest
import toy_tasks

from bmg_sweeps.analysis import importance, results
from bmg_sweeps.analysis.readings import Trained
from bmg_sweeps.records import manifests, store
from bmg_sweeps.reporting import report, tables
from bmg_sweeps.sweep import choices, grid
from bmg_sweeps.sweep.point import Point


def by_all_parts(numbers):
    """E[f_U²] of every part U, by the definition: each less all that it contains."""
    axes, effects = range(numbers.ndim), {}
    for size in range(numbers.ndim + 1):
        for part in itertools.combinations(axes, size):
            others = tuple(axis for axis in axes if axis not in part)
            effect = numbers.mean(others, keepdims=True)
            for smaller, known in effects.items():
                if set(smaller) < set(part):
                    effect = effect - known
            effects[part] = effect
    return {part: float((effect**2).mean()) for part, effect in effects.items()}


def test_two_fields_and_the_seed_have_the_shares_of_their_effects():
    """Y = a + 2b + 3ab + 4s for a, b, s of −1 and 1, with 5as between field and seed.

    Products of such signs are orthogonal, and the mean square of each is 1: the
    variance is 1 + 4 + 9 + 16 + 25 = 55.
    """
    a, b, s = np.meshgrid([-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0], indexing="ij")
    found = importance.shares(a + 2 * b + 3 * a * b + 4 * s + 5 * a * s, ["a", "b"])
    assert [*found] == ["a", "b", "a × b", importance.SEED, importance.WITH_SEED]
    expected = [n / 55 for n in (1, 4, 9, 16, 25)]
    assert [*found.values()] == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("shape", [(2, 3), (4, 2, 3), (3, 2, 4, 5), (2, 2, 2, 3, 2)])
def test_shares_are_those_of_the_definition_and_sum_to_1(shape):
    """The parts that are not fields or pairs are summed up as the names say."""
    numbers = np.random.default_rng(0).normal(size=shape) + 1e3
    fields, seed = [*"abcd"][: len(shape) - 1], len(shape) - 1
    found = importance.shares(numbers, fields)
    parts = by_all_parts(numbers)
    parts.pop(())
    total = sum(parts.values())
    expected = dict.fromkeys(found, 0.0)
    for part, square in parts.items():
        names = [fields[i] for i in part if i != seed]
        if seed in part:
            name = importance.WITH_SEED if names else importance.SEED
        else:
            name = " × ".join(names) if len(names) < 3 else importance.REST
        expected[name] += square / total
    assert found == pytest.approx(expected, abs=1e-9)
    assert sum(found.values()) == pytest.approx(1)


def test_one_seed_has_no_share():
    """All is explained by the fields."""
    numbers = np.random.default_rng(0).normal(size=(3, 4, 1))
    found = importance.shares(numbers, ["a", "b"])
    assert [*found] == ["a", "b", "a × b"]
    assert sum(found.values()) == pytest.approx(1)


@pytest.mark.parametrize("number", [0.0, 0.1, 1e100, -7.0])
def test_where_nothing_varies_there_are_no_shares(number):
    """And no division by zero."""
    assert importance.shares(np.full((3, 2, 2), number), ["a", "b"]) == {}


METHODS = {
    "A": grid.Method({"kind": "a"}, tuned={"rate": "β", "steps": "K"}),
    "B": grid.Method({"kind": "b"}, tuned={"rate": "β"}),
}
SWEEP = grid.Sweep(
    title="Toy",
    trainer="toy",
    scales={},
    select=grid.Select(metric="reward", mode="max", budgets={"env_steps": 2}),
    methods=METHODS,
)


def trained(kind, rate, steps, seed, until=100):
    """Rewards rate + steps · seed at 50, and ten times the rate more at 100."""
    p = Point("toy", {"kind": kind, "rate": rate, "steps": steps, "seed": seed})
    early = rate + steps * seed
    rows = {"env_steps": [50, 100], "reward": [early, early + 10 * rate]}
    manifest = manifests.Manifest(progress={"env_steps": until})
    return Trained(p, store.Record("toy", p.id, manifest), rows)


def load(members, sweep=SWEEP):
    points = tuple(one.point for one in members)
    choice = choices.Choice(scale="mine")
    chosen = choices.Chosen("toy", sweep, points, {"env_steps": 100}, choice)
    return results.without_tests(chosen, members)


def full(rates=(0.1, 0.3), steps=(7, 1)):
    every = itertools.product(rates, steps, (0, 1))
    return [trained("a", *of) for of in every] + [trained("b", 0.1, 1, 0)]


def test_a_method_is_analyzed_at_each_budget():
    """Of A, with rates ±0.1 about their mean, K ±3 and seeds ±½ about theirs.

    At 50, y = rate + K s = rate + (4 ± 3)(½ ± ½): variances 0.01 of the rate, (3/2)² of
    K, (4/2)² of the seed, and (3/2)² of both; at 100 the rate counts eleven times. B
    has one configuration, and nothing to be analyzed.
    """
    early, late = importance.of_axis(load(full()), "env_steps")
    assert (early.method, early.axis, early.budget) == ("A", "env_steps", 50)
    assert (late.method, late.budget) == ("A", 100)
    for one, rate in ((early, 0.01), (late, 0.01 * 121)):
        parts = {"β": rate, "K": 2.25, "β × K": 0.0}
        parts |= {importance.SEED: 4.0, importance.WITH_SEED: 2.25}
        total = sum(parts.values())
        expected = {name: part / total for name, part in parts.items()}
        assert one.shares == pytest.approx(expected, abs=1e-12)
        assert not one.reason


def test_marginals_are_means_over_all_else_for_each_seed():
    """K = 1 and 7, in order: the mean rate is 0.2, and K counts with seed 1 alone."""
    early, _ = importance.of_axis(load(full()), "env_steps")
    assert [one.value for one in early.marginals["steps"]] == [1, 7]
    one, seven = early.marginals["steps"]
    assert one.by_seed == pytest.approx((0.2, 1.2))
    assert seven.by_seed == pytest.approx((0.2, 7.2))
    assert (one.mean, seven.mean) == pytest.approx((0.7, 3.7))
    assert [m.mean for m in early.marginals["rate"]] == pytest.approx([2.1, 2.3])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m[2:], "a partial grid: 3 of 4 combinations are in it"),
        (
            lambda m: [trained("a", 0.1, 7, 0, until=50), *m[1:]],
            "a partial grid: 3 of 4 are complete there",
        ),
        (lambda m: m[1:], "a partial grid: 3 of 4 are complete there"),
        (
            lambda m: [trained("a", 0.0, k, 0) for k in (1, 7)],
            "all scores are the same",
        ),
    ],
)
def test_a_grid_with_gaps_has_no_shares_and_says_so(change, reason):
    """Whatever it lacks: a combination, a run that has not trained, or a seed."""
    *_, last = importance.of_axis(load(change(full())), "env_steps")
    assert (last.shares, last.reason) == ({}, reason)


def test_a_field_that_is_tied_to_a_tuned_one_is_left_out():
    """As a second rate that always equals the first; two that are tuned both stay."""
    rates = [{"rate": r, "second": 2 * r, "steps": k} for r in (1, 3) for k in (1, 7)]
    full = {"rate": [1, 3], "steps": [1, 7]}
    assert importance.varied(rates, ["rate", "steps"]) == full
    both = ["rate", "second", "steps"]
    assert importance.varied(rates, both) == full | {"second": [2, 6]}
    other = [*rates, {"rate": 1, "second": 4, "steps": 1}]  # Once it tells more.
    assert importance.varied(other, ["rate", "steps"]) == full | {"second": [2, 4, 6]}
    alike = [*rates, {"rate": 5, "second": 6, "steps": 1}]  # Once it tells less.
    assert [*importance.varied(alike, ["rate", "steps"])] == ["rate", "second", "steps"]


def test_tasks_are_averaged_before_the_seeds(storage):
    """Method A of both kinds: one configuration for each, 17/6 and 5/3 on average."""
    methods = {"A": grid.Method({}, tuned={"kind": "kind"})}
    sweep = grid.Sweep(
        title="Toy",
        trainer="toy",
        scales={},
        select=toy_tasks.SWEEP.select,
        methods=methods,
    )
    found = toy_tasks.load(toy_tasks.record(storage), sweep)
    *_, last = importance.of_axis(found, "env_steps")
    # Seeds 0 and 1 of a: 6/3 and 11/3; of b: 5/3 twice.
    a, b = last.marginals["kind"]
    assert a.by_seed == pytest.approx((2, 11 / 3))
    assert b.by_seed == pytest.approx((5 / 3, 5 / 3))


def test_the_report_has_a_row_for_each_part_and_says_what_lacks():
    """In percent, a column for each budget; it is named whatever the records hold."""
    members = [trained("a", 0.1, 7, 0, until=50), *full()[1:]]
    loaded = load(members)
    (table,) = [t for t in report.make(loaded) if t.key.kind == tables.Kind.IMPORTANCE]
    assert table.key in report.keys(loaded.chosen)
    assert table.names == ("method", "part", "50", "100")
    rows = tables.texts(table, is_exact=True)
    assert rows[1] == ["A", "K", "26.4%", "–"]  # 2.25 of 8.51.
    assert [row[1] for row in rows][-2:] == [importance.SEED, importance.WITH_SEED]
    assert table.notes[-1] == (
        "A has no shares at 1 of 2 budgets. At 100: a partial grid: 3 of 4 are "
        "complete there."
    )


def test_without_a_grid_there_is_no_table():
    """Where each method has one configuration, whatever its seeds."""
    loaded = load([trained("a", 0.1, 1, 0), trained("a", 0.1, 1, 1)])
    assert tables.Kind.IMPORTANCE not in {t.key.kind for t in report.make(loaded)}
    assert not [k for k in report.keys(loaded.chosen) if k.kind == "importance"]
