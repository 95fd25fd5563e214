"""Which points a launch traces before it begins, and what it asks of sweeps."""

import dataclasses
import subprocess
import sys

import checked_here
import pytest
import small_atari
import small_two_colors

from bmg_sweeps import errors
from bmg_sweeps.launching import checking
from bmg_sweeps.sweep import choices, grid
from bmg_sweeps.sweep.point import Point, resolve
from bmg_sweeps.trainer import source

FIELDS = {
    "kind": source.Field("str", is_structure=True),
    "game": source.Field("str", is_structure=True),
    "steps": source.Field("int", is_structure=True),
    "sizes": source.Field("tuple[int, ...]", is_structure=True),
    "seed": source.Field("int", is_structure=False),
}


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """A trainer whose fields are known, and no others."""
    found = source.fields
    monkeypatch.setattr(
        source, "fields", lambda name: FIELDS if name == "toy" else found(name)
    )


def examples(rows, *over):
    return checking.examples(rows, "toy", over)


def test_examples_have_every_name_and_are_few():
    """Numbers do not count: the points that differ in them run the same lines."""
    rows = [
        {"kind": "a", "seed": 1},
        {"kind": "a", "seed": 2},
        {"kind": "b", "seed": 1},
        {"kind": "a", "rollout": "last"},
        {"kind": "b", "rollout": "last"},
    ]
    assert examples(rows) == [0, 2, 3]
    assert examples([{"steps": 1}, {"steps": 1}]) == [0]
    assert examples([]) == []


def test_of_examples_the_largest_are_chosen():
    """By the numbers that shape a program; their memory is then known."""
    rows = [
        {"kind": kind, "steps": steps, "seed": 9 - steps}
        for kind in "ab"
        for steps in (1, 4, 2)
    ]
    assert examples(rows) == [1, 4]
    widths = [{"kind": "a", "steps": 4, "sizes": (w, w)} for w in (1, 3, 2)]
    assert examples([{"kind": "a", "steps": 8, "sizes": (1,)}, *widths]) == [2]


def test_one_game_is_an_example_of_all_that_scores_are_averaged_over():
    """57 games with 7 kinds are 7 examples, and not 399, or 63."""
    rows = [
        {"kind": kind, "game": f"game {i}", "seed": seed}
        for kind in "abcdefg"
        for i in range(57)
        for seed in range(3)
    ]
    assert len(examples(rows, "seed", "game")) == 7
    assert len(examples(rows, "seed")) == 63


def test_sweeps_that_average_over_the_same_have_examples_in_common():
    """A sweep of few games that does not has one of each; so has each trainer."""
    points = [Point("toy", {"game": game, "seed": 0}, FIELDS) for game in "abcd"]
    points.append(Point("two_colors_q_lambda", {"seed": 0}, FIELDS))

    def sweep(points, *over):
        select = grid.Select(metric="a", mode="max", budgets={"b": 1}, over=over)
        one = dataclasses.replace(SWEEP, select=select)
        return choices.Chosen("mine", one, tuple(points), {})

    all_games = sweep(points[:4], "seed", "game")
    some_games = sweep(points[1:3], "seed")
    assert checking._examples(points, [all_games]) == [0, 4]
    assert checking._examples(points, [all_games, all_games]) == [0, 4]
    assert checking._examples(points, [all_games, some_games]) == [0, 1, 2, 4]
    assert checking._examples(points, [some_games, all_games]) == [0, 1, 2, 4]
    assert checking._examples(points, []) == [0, 1, 2, 3, 4]


SWEEP = grid.Sweep(
    title="Toy",
    trainer="toy",
    scales={},
    select=grid.Select(metric="reward", mode="max", budgets={"env_steps": 1}),
    methods={},
)


def test_a_check_says_what_memory_points_need(monkeypatch):
    """Those of the largest structure of each kind, in bytes."""
    checked_here.patch(monkeypatch)
    values = small_two_colors.VALUES | {"inner_steps": 1}
    points = [
        resolve("two_colors_actor_critic", values | {"target_steps": steps})
        for steps in (1, 3)
    ]
    found = checking.check(points)
    assert list(found) == [points[1].structure]
    assert 20_000 < found[points[1].structure] < 1_000_000
    assert checking.check([]) == {}


@pytest.mark.parametrize("where", [{}, {"update_kind": "fixed_entropy_weight"}])
def test_the_columns_of_a_sweep_are_looked_up_in_all_of_its_kinds(where):
    """Also of those that are not about to run: some may have columns of their own."""
    chosen = choices.choose("figure_2", choices.Choice(scale="paper", where=where))
    asked = checking._names(chosen)
    assert len(asked["examples"]) == 3
    assert ("select.metric", "total_reward") in asked["columns"]
    assert ("curves, metric", "entropy_weight") in asked["columns"]
    assert ("stop", "env_steps") in asked["axes"]


def test_the_examples_of_a_sweep_are_of_its_scale():
    """Not of the trainer's own values, which may be a hundred times as large."""
    chosen = choices.choose("figure_14", choices.Choice(scale="lite"))
    for text in checking._names(chosen)["examples"]:
        assert "atari.channels = ()" in text


def test_memory_is_that_of_the_device_that_points_will_run_on(monkeypatch):
    """On CPUs convolutions are written out, which takes more of it."""
    checked_here.patch(monkeypatch)
    point = resolve("atari", small_atari.PONG | small_atari.IMPALA)
    of_cpu, of_gpu = (
        checking.check([point], platform=platform)[point.structure]
        for platform in ("cpu", "gpu")
    )
    assert of_gpu < 0.9 * of_cpu


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import os; os.kill(os.getpid(), 9)", "was killed, most likely because mem"),
        ("import sys; sys.exit(3)", "status 3, expected 0"),
        ("raise SystemExit('no JAX')", "no JAX"),
    ],
)
def test_a_check_that_dies_is_told(monkeypatch, script, said):
    """Memory may run out in it before it does in a trial."""
    run = subprocess.run

    def dying(_, **words):
        return run([sys.executable, "-c", script], **words)

    monkeypatch.setattr(subprocess, "run", dying)
    points = [Point("toy", {"seed": 0}, {"seed": FIELDS["seed"]})]
    with pytest.raises(errors.UserError, match=f"cannot be checked: .*{said}"):
        checking.check(points, lets_fail=True)
