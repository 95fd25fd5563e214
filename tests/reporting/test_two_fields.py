"""Scores averaged over seeds and tasks: every table and figure, by hand.

Two seeds of two tasks. At the last budget, rewards of A are, by seed and task,

    seed 0: 1, 5 (mean 3)      seed 1: 3, 11 (mean 7)

so the mean is 5, and the deviation over seeds |7 − 3| / √2 = 2.828. Over all four runs
it would be 4.320. B has 1, 1 and 2, 2: 1.5 ± 0.707. Tests are ten times as large.
"""

import csv
import dataclasses
import io

import numpy as np
import pytest
from scipy import stats

from bmg_sweeps import errors
from bmg_sweeps.analysis import estimates, intervals, results, selection
from bmg_sweeps.records import attempts, store
from bmg_sweeps.reporting import (
    charts,
    comparison,
    figures,
    improvement,
    page,
    report,
    tables,
)
from bmg_sweeps.sweep import choices, display, grid
from bmg_sweeps.sweep.point import Point

STOP = {"env_steps": 100}
REWARDS = {  # At 50 and at 100, by method, seed and task.
    ("a", 0): {"x": (0, 1), "y": (2, 5)},
    ("a", 1): {"x": (4, 3), "y": (8, 11)},
    ("b", 0): {"x": (1, 1), "y": (1, 1)},
    ("b", 1): {"x": (2, 2), "y": (2, 2)},
}
SWEEP = grid.Sweep(
    title="Toy",
    trainer="toy",
    scales={},
    select=grid.Select(
        metric="reward", mode="max", budgets={"env_steps": 2}, over=("seed", "task")
    ),
    methods={
        "A": grid.Method({"kind": "a"}, tuned={}),
        "B": grid.Method({"kind": "b"}, tuned={}),
    },
    measures=(display.Measure(metric="reward", label="R"),),
    claims=(display.Claim(text="A earns more.", more="A", less="B"),),
)
TESTED = dataclasses.replace(
    SWEEP, select=dataclasses.replace(SWEEP.select, test="test_reward")
)
A, B = "5.000 ± 2.828", "1.500 ± 0.707"
RUNS = "2 seeds × 2 tasks"


def toy_point(kind, seed, task):
    return Point("toy", {"kind": kind, "seed": seed, "task": task})


def record(storage, p, rewards):
    """Commits a point that has trained to the end."""
    axes = {"env_steps": [50, 100], "training_seconds": [1.0, 2.0]}
    attempts.begin(storage, store.read(storage, p.trainer, p.id)).commit(
        progress=STOP,
        rows=axes | {"reward": list(rewards)},
        test=axes | {"test_reward": [10 * n for n in rewards]},
        provenance={"revision": "abc", "device": "cpu", "threads": 1},
        release=True,
    )


@pytest.fixture
def complete(storage):
    for (kind, seed), by_task in REWARDS.items():
        for task, rewards in by_task.items():
            record(storage, toy_point(kind, seed, task), rewards)
    return storage


def load(storage, sweep=SWEEP):
    points = tuple(toy_point(*key, task) for key in REWARDS for task in "xy")
    chosen = choices.Chosen("toy", sweep, points, STOP, choices.Choice(scale="mine"))
    return results.load(storage, chosen)


def rows_of(made, kind):
    (table,) = [table for table in made if table.key.kind == kind]
    return tables.texts(table, is_exact=True)


def test_tables_deviate_over_seeds_and_count_both(complete):
    made = report.make(load(complete))
    about = "scale mine; seeds 0–1; tasks x, y; trained to 100 env_steps; cpu"
    assert {table.about for table in made} == {about}
    assert rows_of(made, "best")[2:] == [
        ["100", "A", "", A, RUNS, "1 / 1"],
        ["100", "B", "", B, RUNS, "1 / 1"],
    ]
    for kind in ("scores", "measures"):
        assert [row[-1] for row in rows_of(made, kind)] == [A, B]
    how = "Mean over seeds, tasks ± standard deviation over seeds."
    notes = {t.key.kind: t.notes[0] for t in made if t.key.kind in ("best", "measures")}
    assert all(note.startswith(how) for note in notes.values())
    assert len(notes) == 2


def test_a_claim_is_decided_by_the_means_of_seeds(complete):
    """3, 7 against 1, 2, by Welch: 3.5 ± t √(8/2 + 0.5/2)."""
    (row,) = rows_of(report.make(load(complete)), "claims")
    _, verdict, difference, more, less = row
    freedom = (4 + 0.25) ** 2 / (4**2 + 0.25**2)
    half = stats.t.ppf(0.975, freedom) * (4 + 0.25) ** 0.5
    assert difference == f"3.5 [{3.5 - half:.3g}, {3.5 + half:.3g}]"
    said = "open: 8 to 66 more seeds, a wide range"
    assert (verdict, more, less) == (said, "A: 5 ± 2.83", "B: 1.5 ± 0.707")


def test_a_claim_about_other_tasks_is_open(complete):
    """A was trained on both and B on one: their means are of different things."""
    chosen = load(complete).chosen
    kept = [p for p in chosen.points if (*p.values.values(),)[::2] != ("b", "y")]
    chosen = dataclasses.replace(chosen, points=tuple(kept))
    (row,) = rows_of(report.make(results.load(complete, chosen)), "claims")
    reason = "the two are of different values of task"
    assert row[1:3] == [f"open: {reason}", "–"]


def test_methods_are_compared_on_each_task(complete):
    """On x, seeds of A win 1 of 4 and tie 1, 3 beating both: (½ + 0 + 1 + 1) / 4.

    On y, 5 and 11 beat all. P = (0.625 + 1) / 2. Two seeds are too few for a table.
    """
    found = load(complete)
    a, b = (
        estimates.matrix(("seed", "task"), s.points, s.values)
        for s in found.first.best[2:]
    )
    assert intervals.probability_of_improvement(a, b).estimate == 0.8125
    assert improvement.table(found, "env_steps") == []


def test_csv_counts_points_seeds_and_tasks(complete):
    text = io.StringIO(report.comma_separated(load(complete)), newline="")
    *_, last = csv.DictReader(text)
    assert [last[k] for k in ("points", "seeds", "tasks")] == ["4", "2", "2"]
    assert float(last["deviation"]) == pytest.approx(0.5**0.5)


def test_the_figure_averages_tasks_before_seeds(complete, drawn):
    """At 50, A's seeds have 1 and 6: 3.5 ± 3.536; at 100 3 and 7."""
    figures.draw(load(complete))
    line, _ = drawn[0].axes[0].get_lines()
    assert line.get_label() == f"A, {RUNS}"
    assert line.get_ydata() == pytest.approx([3.5, 5])
    band = drawn[0].axes[0].collections[0].get_paths()[0].vertices
    half = np.array([5, 4]) / 2**0.5
    for x, mean, spread in zip((50, 100), (3.5, 5), half, strict=True):
        edges = band[band[:, 0] == x, 1]
        assert (edges.min(), edges.max()) == pytest.approx(
            (mean - spread, mean + spread)
        )


def test_the_pages_charts_are_of_the_same_numbers(complete):
    data = charts.data(load(complete))
    assert {one["seeds"] for one in data["configurations"]} == {RUNS}
    _, means, deviations = data["axes"][0]["panels"][0]["lines"][0]
    assert means == [3.5, 5]
    assert deviations == pytest.approx([3.54, 2.83])


def test_a_seed_without_one_of_its_tasks_is_not_drawn(complete):
    """Its mean would be that of other tasks: 1 and 5 are left, whose mean is 3."""
    found = load(complete)
    trained = list(found.trained)
    trained[3] = dataclasses.replace(trained[3], rows={})
    data = charts.data(dataclasses.replace(found, trained=tuple(trained)))
    assert data["configurations"][0]["seeds"] == f"1 of {RUNS}"
    assert data["axes"][0]["panels"][0]["lines"][0][1:] == [[1, 3]]


def test_the_page_names_both_fields(complete):
    text = page.page(load(complete), "runs")
    assert "<dt>seeds</dt><dd>0–1 (2)</dd>" in text
    assert "<dt>tasks</dt><dd>x, y (2)</dd>" in text


def test_fresh_seeds_run_on_all_tasks(complete):
    """One configuration with two seeds on two tasks is four points."""
    found = load(complete)
    *_, a, _ = found.first.best
    fresh = selection.on_fresh_seeds(found.chosen, [a], (7, 8))
    values = [(p.values["kind"], p.values["seed"], p.values["task"]) for p in fresh]
    assert sorted(values) == [("a", seed, task) for seed in (7, 8) for task in "xy"]


def test_a_seed_that_was_used_is_not_fresh(complete):
    """Whichever configuration had it: A has seed 0 alone here, and B has both."""
    found = load(complete)
    *_, a, _ = found.first.best
    chosen = found.chosen
    kept = [p for p in chosen.points if (*p.values.values(),)[:2] != ("a", 1)]
    chosen = dataclasses.replace(chosen, points=tuple(kept))
    a = dataclasses.replace(a, points=tuple(kept[:2]))
    with pytest.raises(errors.UserError, match="--seeds: seed 1 was used in the sel"):
        selection.on_fresh_seeds(chosen, [a], (7, 1))


def test_without_a_seed_nothing_can_be_fresh(complete):
    found = load(complete)
    rule = dataclasses.replace(SWEEP.select, over=("task",))
    sweep = dataclasses.replace(SWEEP, select=rule)
    chosen = dataclasses.replace(found.chosen, sweep=sweep)
    with pytest.raises(errors.UserError, match="toy has 'task'"):
        selection.on_fresh_seeds(chosen, found.first.best, (7,))


@pytest.mark.parametrize("sweep", [SWEEP, TESTED], ids=["validation", "test"])
def test_the_comparison_is_of_tests_where_there_are_any(complete, sweep):
    """Seed 7 has 4 and 8, tests 40 and 80; B was not run on task y."""
    chosen, budgets = load(complete, sweep).chosen, {"env_steps": [100]}
    before = results.load(complete, chosen, budgets)
    fresh = selection.on_fresh_seeds(chosen, before.first.best, (7,))
    by_key = {(p.values["kind"], p.values["task"]): p for p in fresh}
    for key, reward in {("a", "x"): 4, ("a", "y"): 8, ("b", "x"): 1}.items():
        record(complete, by_key[key], (reward, reward))
    again = dataclasses.replace(chosen, points=fresh)
    after = results.load(complete, again, budgets)
    table = comparison.table(before, after)
    reason = "seed 7, task y: not run"
    if sweep is SWEEP:
        assert table.title == "reward at 100 env_steps"
        assert tables.texts(table, is_exact=True) == [
            ["A", "", A, RUNS, "6.000", "1 seed × 2 tasks"],
            ["B", "", B, RUNS, reason, "–"],
        ]
    else:
        assert table.title == "test_reward at 100 env_steps"
        assert table.names == (
            *("method", "selected", "then", "validation", "seeds"),
            *("on fresh seeds", "validation", "seeds"),
        )
        assert [row[2:] for row in tables.texts(table, is_exact=True)] == [
            ["50.000 ± 28.284", A, RUNS, "60.000", "6.000", "1 seed × 2 tasks"],
            ["15.000 ± 7.071", B, RUNS, reason, "–", "–"],
        ]


def test_a_sentence_compares_no_test_with_a_validation(complete):
    """B's tests are missing; A's mean is 50, B's validation would be 1.5."""
    chosen = load(complete, TESTED).chosen
    found = results.load(complete, chosen, {"env_steps": [100]})
    first, second = found.first.best
    untested = dataclasses.replace(
        second, test=None, test_values=(None,) * len(second.points)
    )
    selected = dataclasses.replace(found.first, best=(first, untested))
    lacking = dataclasses.replace(found, selections={"env_steps": selected})
    expected = "A has test_reward 50 on fresh seeds, and had 50 before."
    assert comparison.sentence(found, lacking) == expected
