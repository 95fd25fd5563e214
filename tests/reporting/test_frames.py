"""Frames say what the CSV of a report says, are typed, and hold no test unasked."""

import dataclasses
import io
import math
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import test_paper_tables as toy
import toy_tasks

import bmg_sweeps
from bmg_sweeps import errors, paths
from bmg_sweeps.records import attempts, files, manifests, store
from bmg_sweeps.reporting import frames, report

BY_NAME = dataclasses.fields(frames.Frames)


def loaded(storage, found, **keywords):
    return frames.load(storage, found.chosen, **keywords)


def read_back(found):
    """The CSV of a report, with the types that a frame has."""
    text = report.comma_separated(found)
    return pd.read_csv(io.StringIO(text, newline=""))


def assert_equal(frame, expected):
    """Values bit for bit; what CSV cannot tell apart, "" and nothing, is the same."""
    assert [*frame.columns] == [*expected.columns]
    for name in frame:
        ours, theirs = frame[name], expected[name].reset_index(drop=True)
        if theirs.isna().all() or not pd.api.types.is_numeric_dtype(theirs):
            ours, theirs = (
                c.astype(object).fillna("").tolist() for c in (ours, theirs)
            )
            assert [str(v) for v in ours] == [str(v) for v in theirs], name
        else:
            np.testing.assert_array_equal(
                ours.to_numpy(float, na_value=math.nan), theirs.to_numpy(float)
            )


def test_scores_are_the_csv_of_a_report(storage):
    """Of a sweep with tests and published numbers, on two axes."""
    found = toy.recorded(storage)
    assert_equal(loaded(storage, found).scores, read_back(found))


def test_tasks_are_the_lines_of_tasks_in_the_csv(storage):
    """And `scores` are the others, which have no column of tasks."""
    found = toy_tasks.load(toy_tasks.record(storage), scale="paper")
    made, expected = loaded(storage, found), read_back(found)
    is_task = expected["task"].notna()
    assert_equal(made.tasks, expected[is_task])
    own = [n for n in expected if not n.startswith("task") or n == "tasks"]
    assert_equal(made.scores, expected.loc[~is_task, own])
    assert len(made.scores) == 4


def test_the_best_are_those_of_the_selection(storage):
    """One row for each axis, budget and method, with the test of what was chosen."""
    found = toy.recorded(storage)
    best = loaded(storage, found).best
    expected = [s for one in found.selections.values() for s in one.best]
    assert best["validation_accuracy"].tolist() == [s.estimate.mean for s in expected]
    assert best["test_accuracy"].tolist() == [s.test.mean for s in expected]
    assert best["method"].tolist() == [s.method for s in expected]


def test_no_test_of_what_was_not_chosen_is_there(storage):
    """Neither its number, nor a row of it, unless its column is asked for by name."""
    found = toy.recorded(storage)
    made = loaded(storage, found)
    others = made.scores[~made.scores["is_best"]]
    assert len(others)
    assert others["test_accuracy"].isna().all()
    assert "test_accuracy" not in made.rows
    assert set(made.rows["table"]) == {"training", "validation"}
    asked = loaded(storage, found, tests=["test_accuracy"]).rows
    rows = asked[asked["table"] == "test"]
    assert len(rows) == 2 * len(found.trained)
    assert (rows["test_accuracy"] == rows["validation_accuracy"]).sum() == 0
    first = rows[rows["point"] == found.trained[0].point.id]
    assert first["test_accuracy"].tolist() == [59.0, 60.0]  # One less than validation.


def test_a_test_that_nobody_has_is_refused(storage):
    """With the names of those that there are; validation is no test."""
    found = toy.recorded(storage)
    for name in ("test_acuracy", "validation_accuracy", "norm"):
        with pytest.raises(errors.UserError, match=rf"tests '{name}': .*test_accuracy"):
            loaded(storage, found, tests=[name])


def test_rows_are_all_rows_of_all_points(storage):
    """Two tables below each other; a column that a table lacks is NaN there."""
    found = toy.recorded(storage)
    rows = loaded(storage, found).rows
    for one in found.trained:
        mine = rows[rows["point"] == one.point.id]
        for word, table in (("training", one.rows), ("validation", one.validation)):
            part = mine[mine["table"] == word]
            for name, values in table.items():
                assert part[name].tolist() == values
            assert part.drop(columns=["point", "table", *table]).isna().all(axis=None)


def test_runs_say_what_each_point_is_and_where_it_ran(storage):
    """A column for each field; and one that has another column's name is told apart."""
    point = toy.toy_point(toy.B1, 0, device="mine")
    toy.record(storage, point, (60.0, 61.0), began=86_400.0, packages={"jax": "1"})
    chosen = dataclasses.replace(
        toy.recorded(storage).chosen,
        points=(point, toy.toy_point(toy.M1, 7, device="mine")),
    )
    runs = frames.load(storage, chosen).runs
    first, second = runs.to_dict("records")
    assert first["point"] == point.id
    assert (first["method"], first["configuration"]) == ("B", "β=0.001 K=1")
    assert (first["status"], second["status"]) == ("done", "missing")
    assert (first["meta_updates"], first["hours"], second["hours"]) == (100, 2.0, 0.0)
    assert (first["device"], first["toy.device"]) == ("cpu", "mine")
    assert first["began"] == pd.Timestamp("1970-01-02", tz="UTC")
    assert (first["rate"], first["seed"], second["seed"]) == (0.001, 0, 7)
    assert pd.isna(second["ended"])
    assert pd.isna(second["pack_width"])


def test_what_went_wrong_stands_beside_the_run(storage):
    """A number that is not finite is NaN, and its column one of numbers."""
    found = toy.recorded(storage)
    one = found.trained[0]
    rows = {
        "meta_updates": [40, 50],
        "norm": [1.0, None],
        "training_seconds": [1.0, 2.0],
    }
    attempts.begin(storage, store.read(storage, "toy", one.point.id)).commit(
        progress={"meta_updates": 50, "hours": 1},
        rows=rows,
        failure=manifests.Failure("diverged", 1, "NonFinite", "norm is NaN"),
        release=True,
    )
    made = loaded(storage, found)
    run = made.runs.iloc[0]
    assert (run["status"], run["problem"]) == ("diverged", "norm is NaN")
    assert made.runs["problem"][1:].isna().all()
    norms = made.rows[made.rows["point"] == one.point.id]["norm"].tolist()
    assert norms[0] == 1.0
    assert math.isnan(norms[1])


def test_columns_have_types(storage):
    """Counts are whole, also where one is missing; words are categories."""
    made = loaded(storage, toy.recorded(storage))
    runs = made.runs.dtypes.astype(str)
    assert runs["method"] == runs["status"] == "category"
    assert runs["seed"] == runs["meta_updates"] == runs["pack_width"] == "int64"
    assert (runs["rate"], runs["kind"]) == ("float64", "str")
    assert runs["began"].endswith("UTC]")
    rows = made.rows.dtypes.astype(str)
    assert (rows["meta_updates"], rows["hours"]) == ("int64", "float64")
    assert rows["norm"] == "Int64"  # The toy's are whole, and evaluations have none.
    scores = made.scores.dtypes.astype(str)
    assert (scores["is_best"], scores["points"]) == ("bool", "int64")
    assert (scores["budget"], scores["test_accuracy"]) == ("float64", "float64")
    tasks = loaded(storage, toy_tasks.load(toy_tasks.record(storage), scale="paper"))
    assert str(tasks.tasks["task_score_published"].dtype) == "Int64"  # B has none.


def test_frames_say_their_units_and_what_they_are_of(storage):
    """By the labels of the sweep's panels and measures, and by the names of times."""
    found = toy.recorded(storage)
    made = loaded(storage, found)
    for field in BY_NAME:
        attrs = getattr(made, field.name).attrs
        assert (attrs["sweep"], attrs["scale"]) == ("toy", "paper")
        # Decisions are of the seeds of plans; there are none.
        is_of_plans = field.name == "decisions"
        assert attrs["about"] == ("" if is_of_plans else report.context(found))
    units = made.rows.attrs["units"]
    assert units["norm"] == "ρ"
    assert (units["hours"], units["training_seconds"]) == ("h", "s")
    assert units["meta_updates_per_second"] == "speed"  # The sweep's own word.
    assert units["meta_updates"] == "meta_updates"
    assert set(units) <= {*made.rows.columns}


def test_claims_are_those_of_the_report(storage):
    """Of seeds, means 17/6 and 5/3: two of them decide nothing."""
    found = toy_tasks.load(toy_tasks.record(storage))
    made = loaded(storage, found).claims
    assert made["claim"].tolist() == [c.text for c in found.sweep.claims]
    means = made.iloc[0]
    assert (means["more"], means["less"]) == ("A", "B")
    assert means["difference"] == pytest.approx(17 / 6 - 5 / 3)
    assert means["low"] < means["difference"] < means["high"]
    assert (means["more_mean"], means["less_mean"]) == pytest.approx((17 / 6, 5 / 3))
    assert means["verdict"] == "open"


def test_without_a_record_the_frames_have_their_columns(tmp_path):
    """Nothing is selected, every claim is open, and the types are those of numbers."""
    made = bmg_sweeps.load("figure_2", storage=str(tmp_path))
    assert set(made.runs["status"]) == {"missing"}
    assert len(made.rows) == len(made.scores) == len(made.best) == len(made.tasks) == 0
    types = made.scores.dtypes.astype(str)
    assert (types["total_reward"], types["is_best"]) == ("float64", "bool")
    assert set(made.claims["verdict"]) == {"open"}
    assert made.claims["difference"].isna().all()
    assert len(made.decisions) == 0
    decisions = made.decisions.dtypes.astype(str)
    assert (decisions["plan"], decisions["level"]) == ("str", "float64")


def test_a_sweep_is_chosen_as_on_the_command_line(tmp_path):
    """By scale, values, seeds and stop rule; a value need not be text."""
    made = bmg_sweeps.load(
        "figure_2",
        scale="lite",
        storage=str(tmp_path),
        where={"inner_steps": 1},
        seeds=range(10, 12),
        stop={"env_steps": 1000},
    )
    assert set(made.runs["seed"]) == {10, 11}
    assert set(made.runs["inner_steps"]) == {1}
    assert made.runs.attrs["scale"] == "lite"
    with pytest.raises(errors.UserError, match="did you mean figure_2"):
        bmg_sweeps.load("figure_22", storage=str(tmp_path))
    with pytest.raises(TypeError, match="sede"):
        bmg_sweeps.load("figure_2", storage=str(tmp_path), sede=(1,))


def test_importing_the_package_costs_nothing_and_loading_needs_no_jax(tmp_path):
    """Neither a trainer, Ray, W&B nor what draws."""
    slow = ["jax", "ray", "wandb", "matplotlib", "plotly", "trainers"]
    code = f"""if True:
        import sys
        before = set(sys.modules)
        import bmg_sweeps
        new = {{m.partition(".")[0] for m in set(sys.modules) - before}}
        assert not new & {{"numpy", "pandas", "scipy", "click", "msgspec"}}, new
        bmg_sweeps.load("figure_2", storage={str(tmp_path)!r})
        assert not set({slow}) & set(sys.modules), set({slow}) & set(sys.modules)
    """
    path = {"PYTHONPATH": str(paths.ROOT), "PATH": os.environ["PATH"]}
    subprocess.run([sys.executable, "-c", code], env=path, check=True, timeout=60)
    assert files.open_storage(str(tmp_path)).folders("two_colors_actor_critic") == set()
