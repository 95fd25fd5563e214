"""Tables of tasks, by hand: `toy_tasks` has the numbers."""

import csv
import dataclasses
import io

import pytest
import toy_tasks

from bmg_sweeps.analysis import results
from bmg_sweeps.records import attempts, store
from bmg_sweeps.reporting import figures, improvement, report, tables, task_tables
from bmg_sweeps.reporting.tables import Key, Kind
from bmg_sweeps.sweep import choices, display
from bmg_sweeps.tracking import runs

A_X, A_Y, A_Z = "20.000 ± 14.142", "60.000 ± 14.142", "5.000 ± 7.071"


def of_kind(results, kind):
    (table,) = [t for t in report.make(results) if t.key.kind == kind]
    return table


def rows(table):
    return tables.texts(table, is_exact=True)


def test_each_task_has_a_row_and_each_method_a_column(storage):
    """Raw scores; ½ of a human on z; x is a tie."""
    table = of_kind(toy_tasks.load(toy_tasks.record(storage)), "tasks")
    assert table.title == "score of each task at 100 env_steps"
    assert table.names == ("task", "A", "B")
    assert rows(table) == [
        ["x", A_X, "20.000 ± 0.000"],
        ["y", A_Y, "10.000 ± 0.000"],
        ["z", A_Z, "20.000 ± 0.000"],
        ["above human", "2 / 3", "2 / 3"],
        ["more than B", "1 / 3", "–"],
    ]
    assert "left out: this is scale mine" in table.notes[-1]


def test_tables_of_tasks_are_of_the_axis_that_there_is(storage):
    """With --stop hours=2/3600 alone, of a sweep that has steps and hours."""
    toy_tasks.record(storage)
    hours = 2 / 3600
    for p in toy_tasks.points():
        attempts.begin(storage, store.read(storage, p.trainer, p.id)).commit(
            progress={"env_steps": 100, "hours": hours}, release=True
        )
    select = dataclasses.replace(
        toy_tasks.SWEEP.select, budgets={"env_steps": 2, "hours": 2}
    )
    sweep = dataclasses.replace(toy_tasks.SWEEP, select=select)
    choice = choices.Choice(scale="paper", stop={"hours": hours})
    chosen = choices.Chosen("toy", sweep, toy_tasks.points(), {"hours": hours}, choice)
    found = results.load(storage, chosen)
    made = {table.key: table for table in report.make(found)}
    kinds = {key.kind for key in made}
    assert {Kind.TASKS, Kind.TASK_SUMMARY, Kind.TASK_PROFILE, Kind.CLAIMS} <= kinds
    assert made[Key(Kind.TASKS)].title == "score of each task at 0.00056 hours"
    assert set(report.keys(chosen)) <= made.keys()
    assert rows(made[Key(Kind.TASKS)])[0] == ["x", A_X, "20.000 ± 0.000"]
    assert figures.draw(found).startswith(b"\x89PNG")


def test_intervals_of_few_seeds_are_said_to_be_too_narrow(storage):
    made = toy_tasks.load(toy_tasks.record(storage))
    for kind in ("task_summary", "task_profile"):
        assert improvement.TOO_NARROW in " ".join(of_kind(made, kind).notes)


def test_methods_without_any_point_are_not_shown(storage):
    """Not in columns and rows, and not as methods that lack something."""
    toy_tasks.record(storage)
    kept = tuple(p for p in toy_tasks.points() if p.values["kind"] == "a")
    sweep = dataclasses.replace(toy_tasks.SWEEP, claims=())
    results = toy_tasks.load(storage, sweep, scale="paper", of=kept)
    table, summary = of_kind(results, "tasks"), of_kind(results, "task_summary")
    assert table.names == ("task", "A ours", "A published")
    assert rows(table)[-1][0] == "above human"  # No row of the baseline.
    assert [row[0] for row in rows(summary)] == ["A"]
    assert not [note for note in (*table.notes, *summary.notes) if "B " in note]


def test_published_scores_stand_beside_ours_at_their_scale(storage):
    """9 on z is more than B's published score, which there is none of."""
    results = toy_tasks.load(toy_tasks.record(storage), scale="paper")
    table = of_kind(results, "tasks")
    assert table.names == ("task", "A ours", "A published", "B ours", "B published")
    assert rows(table)[0] == ["x", A_X, "30", "20.000 ± 0.000", "–"]
    assert rows(table)[3] == ["above human", "2 / 3", "3 / 3", "2 / 3", "–"]
    assert rows(table)[4] == ["more than B", "1 / 3", "–", "–", "–"]
    assert table.notes[-1] == "Published: Somebody, Table 1."


def test_published_scores_of_another_budget_are_not_shown(storage):
    numbers = toy_tasks.SWEEP.published
    (one,) = numbers.tasks
    other = dataclasses.replace(one, budget=200)
    published = dataclasses.replace(numbers, tasks=(other,), summaries=())
    sweep = dataclasses.replace(toy_tasks.SWEEP, published=published)
    results = toy_tasks.load(toy_tasks.record(storage), sweep, scale="paper")
    assert of_kind(results, "tasks").names == ("task", "A", "B")
    assert task_tables.published_summaries(results.chosen) == []


def test_the_summary_has_statistics_and_wins(storage):
    table = of_kind(toy_tasks.load(toy_tasks.record(storage)), "task_summary")
    assert table.title == "normalized over tasks at 100 env_steps"
    (a, b) = rows(table)
    assert table.names == (
        *("method", "selected", "tasks", "median", "mean", "interquartile mean"),
        *("above human", "more than A", "more than B"),
    )
    assert a[:5] == ["A", "", "3 / 3", "2 [1, 3]", "2.83 [2.17, 3.5]"]
    assert a[5].startswith("2.5 [")
    assert a[6:] == ["2 / 3", "–", "1 / 3"]
    assert b[3:] == [
        "2 [2, 2]", "1.67 [1.67, 1.67]", "1.75 [1.75, 1.75]", "2 / 3", "1 / 3", "–"
    ]  # fmt: skip
    assert not [note for note in table.notes if "lacks" in note]


def test_published_statistics_are_computed_of_the_same_tasks(storage):
    """Of 3, 4 and 9: 4, 16 / 3 and, with no quarter of three cut off, 16 / 3."""
    results = toy_tasks.load(toy_tasks.record(storage), scale="paper")
    table = of_kind(results, "task_summary")
    assert table.names[-3:] == (
        "published median", "published mean", "published interquartile mean"
    )  # fmt: skip
    assert [row[-3:] for row in rows(table)] == [["4", "5.33", "5.33"], ["–"] * 3]
    assert table.notes[-1] == (
        "Text states a median of 5 for A; the published scores of each task give 4."
    )


def test_what_is_published_over_tasks_has_a_table(storage):
    results = toy_tasks.load(toy_tasks.record(storage), scale="paper")
    assert rows(of_kind(results, "task_published")) == [
        ["A", "4", "5.33", "5.33", "3 / 3", "Somebody, Table 1"],
        ["A", "5", "–", "–", "–", "Text"],
        ["C", "8", "–", "9.5", "–", "Others"],
    ]


def test_a_missing_task_is_named_and_changes_what_a_median_is_over(storage):
    """Without z the median of 2 and 6 is 4, and so is the published one's 3.5."""
    toy_tasks.record(storage, without=[("a", 1, "z")])
    results = toy_tasks.load(storage, scale="paper")
    table = of_kind(results, "task_summary")
    (a, b) = rows(table)
    assert a[2:4] == ["2 / 3", "4 [3, 5]"]
    assert a[-3:] == ["3.5", "3.5", "3.5"]
    assert a[6:9] == ["2 / 2", "–", "1 / 2"]
    assert b[2] == "3 / 3"
    all_notes = [note for made in report.make(results) for note in made.notes]
    (note,) = [note for note in all_notes if "lacks" in note]
    assert note == (
        "A lacks 1 of 3 tasks: z (z: seed 1: not run). Statistics over the others "
        "do not compare with those over all."
    )
    assert rows(of_kind(results, "tasks"))[2] == ["z", "–", "90", "20.000 ± 0.000", "–"]


def test_single_seeds_have_no_intervals(storage):
    toy_tasks.record(storage, seeds=(0,))
    kept = tuple(p for p in toy_tasks.points() if p.values["seed"] == 0)
    results = toy_tasks.load(storage, of=kept)
    a, _ = rows(of_kind(results, "task_summary"))
    assert a[3:5] == ["1", "2"]
    assert rows(of_kind(results, "tasks"))[0] == ["x", "10.000", "20.000"]


def test_nothing_trained_is_no_statistic(storage):
    results = toy_tasks.load(storage)
    assert rows(of_kind(results, "task_summary")) == []
    assert rows(of_kind(results, "tasks"))[0] == ["x", "–", "–"]


def test_of_several_incomplete_configurations_none_is_shown(storage):
    """There was no choice among them."""
    a = dataclasses.replace(toy_tasks.SWEEP.methods["A"], values={})
    sweep = dataclasses.replace(toy_tasks.SWEEP, methods={"A": a}, curves=(), claims=())
    sweep = dataclasses.replace(
        sweep, tasks=dataclasses.replace(toy_tasks.TASKS, baseline=None)
    )
    missing = [(kind, 1, "z") for kind in "ab"]
    results = toy_tasks.load(toy_tasks.record(storage, without=missing), sweep)
    table = of_kind(results, "task_summary")
    assert table.rows == ()
    assert "A has no complete configuration." in table.notes


def test_the_keys_are_those_of_the_tables(storage):
    """In the report's order, with and without published numbers."""
    for scale in ("paper", "mine"):
        results = toy_tasks.load(toy_tasks.record(storage), scale=scale)
        made = [t.key for t in report.make(results)]
        compared = tables.Key(tables.Kind.IMPROVEMENT, "env_steps")
        assert [key for key in made if key != compared] == report.keys(results.chosen)
        assert (tables.Key(tables.Kind.TASK_PUBLISHED) in made) == (scale == "paper")


def test_many_tasks_are_not_all_named_beside_a_title(storage):
    results = toy_tasks.load(toy_tasks.record(storage))
    assert "tasks x, y, z;" in report.context(results)
    many = tuple(toy_tasks.toy_point("a", 0, f"t{i}") for i in range(7))
    results = toy_tasks.load(storage, of=many)
    assert "tasks t0 … t6 (7);" in report.context(results)


def test_csv_has_a_line_for_each_task(storage):
    results = toy_tasks.load(toy_tasks.record(storage), scale="paper")
    text = io.StringIO(report.comma_separated(results), newline="")
    found = list(csv.DictReader(text))
    assert len(found) == 2 * 2 * (1 + 3)  # Budgets, methods, all tasks and each.
    whole, x, *_ = [r for r in found if (r["method"], r["budget"]) == ("A", "100.0")]
    assert (whole["task"], whole["task_score"], whole["points"]) == ("", "", "6")
    assert (x["task"], x["normalized"], x["points"], x["tasks"]) == (
        "x", "2.0", "2", "1"
    )  # fmt: skip
    assert float(x["task_score"]) == 20
    assert float(x["task_score_deviation"]) == pytest.approx(200**0.5)
    assert (x["task_score_published"], x["is_best"]) == ("30", "True")


def test_a_sweep_without_tasks_has_no_such_tables_and_columns(storage):
    sweep = dataclasses.replace(toy_tasks.SWEEP, tasks=None, curves=(), claims=())
    results = toy_tasks.load(toy_tasks.record(storage), sweep, scale="paper")
    kinds = {table.key.kind for table in report.make(results)}
    assert not {kind for kind in kinds if kind.startswith("task")}
    header = report.comma_separated(results).splitlines()[0]
    assert header.endswith("tasks,is_best")


def test_wandb_has_a_number_without_an_interval_once(storage):
    results = toy_tasks.load(toy_tasks.record(storage), scale="paper")
    table = runs._as_wandb(of_kind(results, "task_published"))
    assert table.columns[:4] == ["method", "median", "median low", "median high"]
    assert table.data[0][:4] == ["A", 4.0, None, None]


def test_a_claims_sides_say_what_is_compared(storage):
    table = of_kind(toy_tasks.load(toy_tasks.record(storage)), "claims")
    mean, median, seeds = rows(table)
    assert mean[1:3] == seeds[1:3]
    assert mean[1].startswith("open: ")
    assert mean[2] == "1.17 [-9.42, 11.8]"
    assert median[3:] == [
        "A median over tasks: 2 ± 1.41",
        "B median over tasks: 2 ± 0",
    ]
    assert seeds[3] == "A: 2.83 ± 1.18"
    assert "statistic over tasks is worked out for each seed" in table.notes[2]


def test_published_parts_are_checked():
    with pytest.raises(ValueError, match=r"tasks = .*: expected a tuple of Published"):
        display.Published(tasks=(3,))
    with pytest.raises(ValueError, match=r"summaries = .*PublishedSummary"):
        display.Published(summaries=(3,))
