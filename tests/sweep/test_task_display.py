"""What a sweep says of its tasks is refused where it makes no sense, by name."""

import dataclasses

import pytest
import toy_tasks

from bmg_sweeps.sweep import display, task_display


def replaced(**parts):
    return dataclasses.replace(toy_tasks.SWEEP, **parts)


def rule(**parts):
    return dataclasses.replace(toy_tasks.SWEEP.select, **parts)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: dataclasses.replace(toy_tasks.TASKS, field=3), "field = 3: expected"),
        (lambda: dataclasses.replace(toy_tasks.TASKS, baseline=""), "baseline = ''"),
        (
            lambda: dataclasses.replace(toy_tasks.MEDIANS, statistic="mode"),
            "statistic = 'mode': expected one of: 'median', 'mean'",
        ),
        (
            lambda: dataclasses.replace(toy_tasks.SCORES, is_standardized=1),
            "is_standardized = 1: expected a bool",
        ),
        (lambda: dataclasses.replace(toy_tasks.PROFILE, label=""), "label = ''"),
        (
            lambda: dataclasses.replace(toy_tasks.PROFILE, methods="A"),
            "methods = 'A': expected a tuple of names",
        ),
        (
            lambda: dataclasses.replace(toy_tasks.CURVES, methods="A"),
            "methods = 'A': expected a tuple of names",
        ),
        (
            lambda: display.Claim(text="t", more="A", less="B", over_tasks="mode"),
            "over_tasks = 'mode': expected one of",
        ),
        (lambda: replaced(tasks="task"), r"tasks = 'task': expected Tasks\(…\)"),
        (
            lambda: replaced(select=rule(over=("seed",))),
            r"select.over = \('seed',\): expected a seed and the field of the tasks, "
            r"such as \('seed', 'task'\)",
        ),
        (
            lambda: replaced(select=rule(over=("seed", "game"))),
            r"select.over = \('seed', 'game'\)",
        ),
        (
            lambda: replaced(select=rule(mode="min")),
            "select.mode = 'min': expected 'max'",
        ),
        (
            lambda: replaced(tasks=None),
            r"curves = 'TaskSummary': expected a sweep with tasks=Tasks\(…\)",
        ),
        (
            lambda: replaced(tasks=None, curves=()),
            "claims, over_tasks = 'mean': expected a sweep with tasks",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(made, said):
    with pytest.raises(ValueError, match=said):
        made()


def test_panels_name_the_methods_that_they_show():
    assert task_display.methods_of(toy_tasks.DIFFERENCES) == ("A", "B")
    assert task_display.methods_of(toy_tasks.CURVES) == ()
