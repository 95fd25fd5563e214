"""Grids are data: every combination, each value a literal that gin can read back."""

import dataclasses
import math

import numpy as np
import pytest

from bmg_sweeps.sweep import display, grid, task_display

FAST = {"kind": "fast"}
SWEEP = grid.Sweep(
    title="Toy",
    trainer="toy",
    scales={},
    select=grid.Select(metric="reward", mode="max", budgets={"env_steps": 1}),
    methods={
        "fast, two steps": grid.Method(
            FAST | {"steps": 2}, tuned={"rate": "α", "sizes": "N"}
        ),
        "fast": grid.Method(FAST, tuned={"steps": "steps"}),
        "labeled": grid.Method(
            {"kind": "labeled"},
            tuned={
                "match": display.Symbol("μ", {"kl": "1", "none": None}),
                "steps": display.Symbol("K"),
            },
        ),
    },
)


def test_a_product_has_every_combination_and_its_last_axis_varies_fastest():
    """2 · 3 points; any iterable is an axis."""
    assert grid.product(steps=(1, 7), seed=range(3)) == (
        {"steps": 1, "seed": 0},
        {"steps": 1, "seed": 1},
        {"steps": 1, "seed": 2},
        {"steps": 7, "seed": 0},
        {"steps": 7, "seed": 1},
        {"steps": 7, "seed": 2},
    )


def test_a_product_with_an_empty_axis_is_empty():
    """0 · 2 points."""
    assert grid.product(steps=(), seed=range(2)) == ()


def test_zipped_pairs_the_values_by_place():
    """As many points as each axis is long; iterators are read once."""
    assert grid.zipped(steps=iter((1, 3)), target=(7, 5)) == (
        {"steps": 1, "target": 7},
        {"steps": 3, "target": 5},
    )


def test_zipped_axes_of_unequal_length_are_refused():
    """The message says how long each is."""
    with pytest.raises(ValueError, match=r"one length, got \{'steps': 2, 'seed': 3\}"):
        grid.zipped(steps=(1, 7), seed=range(3))


def test_arms_are_added_by_concatenation():
    """An arm may leave a field to gin that another one sets."""
    arms = grid.product(steps=(1,), seed=(0,)) + grid.zipped(seed=(0, 1))
    assert arms == ({"steps": 1, "seed": 0}, {"seed": 0}, {"seed": 1})
    assert grid.Scale(arms, stop={"env_steps": 1}).points == arms


@pytest.mark.parametrize("value", [0, -1, 3e-4, True, "it's", (), (1, (2, 3)), [1, 2]])
def test_literals_are_values(value):
    """Whatever gin reads back as it was, with its type."""
    assert grid.Scale(({"rate": value},), stop={}).points == ({"rate": value},)


@pytest.mark.parametrize(
    "value",
    [
        np.float64(0.1),
        np.int64(1),
        np.array([1, 2]),
        math.inf,
        -math.inf,
        math.nan,
        (1, math.inf),
        (np.float64(0.1),),
        range(3),
        pytest.param(object(), id="object"),
        len,
    ],
    ids=repr,
)
def test_other_values_are_refused_by_field_value_and_type(value):
    """What they look like in Python is not what gin would read."""
    points = ({"seed": 0}, {"seed": 1, "rate": value})
    with pytest.raises(ValueError, match="must be a Python literal") as error:
        grid.Scale(points, stop={})
    assert str(error.value).startswith(f"rate = {value!r}: ")
    assert str(error.value).endswith(f"got {type(value).__name__}")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mode", "maximum"),
        ("mode", "MAX"),
        ("metric", "test_accuracy"),
        ("over", ()),
        ("budgets", {}),
        *(("budgets", {"env_steps": n}) for n in (0, -1, True, "10", 2.5)),
        *(("budgets", {"env_steps": n}) for n in ((), (2, 1), (1, 1), (0, 1), ("a",))),
    ],
)
def test_a_selection_rule_that_makes_no_sense_is_refused(field, value):
    """The message names the field, and what was given for it."""
    rule = {"metric": "reward", "mode": "max", "budgets": {"env_steps": 1}}
    with pytest.raises(ValueError, match=f"^{field}") as error:
        grid.Select(**rule | {field: value})
    given = value.get("env_steps", "at least one") if field == "budgets" else value
    assert str(given) in str(error.value) or field == "over"


@pytest.mark.parametrize(
    ("values", "method", "description"),
    [
        # Has the values of both methods: the first one counts.
        ({"kind": "fast", "steps": 2, "rate": 0.00003, "sizes": (8, 8)},
         "fast, two steps", "α=3e-05 N=(8, 8)"),
        ({"kind": "fast", "steps": 2, "rate": 2.0, "sizes": ()},
         "fast, two steps", "α=2 N=()"),
        ({"kind": "fast", "steps": 3, "rate": 0.1}, "fast", "steps=3"),
        # Labels stand for the values that have one.
        ({"kind": "labeled", "match": "kl", "steps": 3}, "labeled", "μ=1 K=3"),
        ({"kind": "labeled", "match": "l2", "steps": 3}, "labeled", "μ=l2 K=3"),
        # A field that says nothing at a value is left out.
        ({"kind": "labeled", "match": "none", "steps": 3}, "labeled", "K=3"),
        # Without a method there is nothing that tells it apart but all of it.
        ({"kind": "slow", "steps": 2}, "other", "kind=slow steps=2"),
        ({"steps": 2}, "other", "steps=2"),
    ],
)  # fmt: skip
def test_a_method_is_known_by_its_values_and_described_by_what_tunes_it(
    values, method, description
):
    """The first method whose values a point has is its own; else it is "other"."""
    assert grid.method_of(SWEEP, values) == method
    assert grid.describe(SWEEP, values) == description


def test_an_arm_has_its_values_in_every_combination():
    """In the order of `product`; the axes win over a value of the same name."""
    made = grid.arm({"kind": "a", "rate": 1}, rate=(2, 3), seed=range(2))
    expected = [(rate, seed) for rate in (2, 3) for seed in range(2)]
    assert made == tuple({"kind": "a", "rate": r, "seed": s} for r, s in expected)


def test_a_sweep_of_other_methods_has_their_points_and_all_else_of_the_first():
    """But what is published of the first, which is about its own methods."""
    tasks = task_display.Tasks(field="game", score="s", normalized="n", baseline="a")
    select = grid.Select(
        metric="n", mode="max", budgets={"x": 1}, over=("seed", "game")
    )
    first = grid.Sweep(
        title="first",
        trainer="any",
        scales={"smoke": grid.Scale(({"k": 1},), {"x": 5}, values={"size": 3})},
        select=select,
        methods={"a": grid.Method({"k": 1}, tuned={})},
        tasks=tasks,
        published=display.Published(),
    )
    points = {"smoke": ({"k": 2}, {"k": 3})}
    methods = {"b": {"k": 2}, "c": {"k": 3}}
    other = grid.with_methods(first, methods, points, baseline="b", title="other")
    assert (other.title, other.published, other.select) == ("other", None, select)
    expected = grid.Scale(points["smoke"], {"x": 5}, values={"size": 3})
    assert other.scales == {"smoke": expected}
    assert {name: m.values for name, m in other.methods.items()} == methods
    assert other.tasks == dataclasses.replace(tasks, baseline="b")
