"""A report leaves its figures in the storage: one file, and one of each of tasks."""

import dataclasses
import re

import pytest
import toy_tasks

from bmg_sweeps.cli import viewing
from bmg_sweeps.records import plans
from bmg_sweeps.sweep import choices


def test_figures_of_tasks_are_files_of_their_own(storage):
    loaded = toy_tasks.load(toy_tasks.record(storage))
    expected = [
        "toy-mine.png",
        "toy-mine-1-task-differences.png",
        "toy-mine-2-task-distribution.png",
        "toy-mine-3-task-profile.png",
        "toy-mine-4-task-curves.png",
    ]
    assert viewing._draw(storage, loaded) == expected
    for name in expected:
        assert storage.read("reports", name).startswith(b"\x89PNG")


def test_a_sweep_without_tasks_has_one_file(storage):
    sweep = dataclasses.replace(toy_tasks.SWEEP, tasks=None, curves=(), claims=())
    loaded = toy_tasks.load(toy_tasks.record(storage), sweep)
    assert viewing._draw(storage, loaded) == ["toy-mine.png"]


def test_comma_separated_values_need_no_plan(storage, monkeypatch, capsys):
    """A plan that cannot be read has no part in them."""

    def read(*_):
        raise plans.DamagedPlan("damaged")

    loaded = toy_tasks.load(toy_tasks.record(storage))
    monkeypatch.setattr(viewing.choices, "choose", lambda *_: loaded.chosen)
    monkeypatch.setattr(viewing.results, "load", lambda *_: loaded)
    monkeypatch.setattr(viewing, "_by_fresh", read)
    arguments = ["toy", "--scale", "mine", "--storage", storage.uri, "--format", "csv"]
    viewing.report_.main(arguments, standalone_mode=False)
    assert capsys.readouterr().out.startswith("method,configuration,")


def test_figures_are_drawn_whoever_stops_reading_the_tables(storage, monkeypatch):
    """As `head` does, after its first lines."""

    def stop_reading(*_):
        raise BrokenPipeError

    loaded = toy_tasks.load(toy_tasks.record(storage))
    monkeypatch.setattr(viewing.choices, "choose", lambda *_: loaded.chosen)
    monkeypatch.setattr(viewing.results, "load", lambda *_: loaded)
    monkeypatch.setattr(viewing.answers, "print_tables", stop_reading)
    arguments = ["toy", "--scale", "mine", "--storage", storage.uri]
    with pytest.raises(BrokenPipeError):
        viewing.report_.main(arguments, standalone_mode=False)
    assert storage.exists("reports", "toy-mine.png")


def test_reports_of_other_choices_do_not_overwrite_each_other():
    """A part has a hash of what was chosen, which is the same each time."""

    def name(**words):
        return viewing._report_name(choices.choose("figure_3", choices.Choice(**words)))

    plain, *parts = [
        name(),
        name(seeds=(0, 1)),
        name(seeds=(0,)),
        name(seeds=(0,), stop={"env_steps": 100.0}),
    ]
    assert plain == "figure_3-smoke"
    assert len({*parts}) == 3
    assert all(re.fullmatch(r"figure_3-smoke-part-[0-9a-f]{6}", one) for one in parts)
    assert name(seeds=(0, 1)) == parts[0]
