"""`rerun`: the best configurations once more, on seeds they were not chosen on."""

import pathlib
import re

import pytest
import toy_checkout

from bmg_sweeps import __main__, paths
from bmg_sweeps.launching import checking, trials
from bmg_sweeps.records import files, store
from bmg_sweeps.running import work_unit
from bmg_sweeps.sweep import choices


@pytest.fixture
def here(tmp_path, monkeypatch, toy):
    """A folder with a sweep of the toy, whose points train in this process."""
    (tmp_path / "gin").mkdir()
    (tmp_path / "gin" / "toy_trainer.gin").write_text(toy_checkout.GIN)
    points = "product(rate=(0.1, 0.2), seed=(0, 1))"
    (tmp_path / "mine.py").write_text(
        toy_checkout.SWEEP.format(points=points, env_steps=60)
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(paths, "TRAINERS", pathlib.Path(toy.__file__).parent)
    monkeypatch.setattr(paths, "GIN", tmp_path / "gin")
    monkeypatch.setattr(checking, "check", lambda *_, **__: {})
    monkeypatch.setattr(trials, "run", train_here)
    return tmp_path


def train_here(storage, plan, resources, **_):
    """Runs a plan without Ray."""
    for p in plan.to_run:
        store.declare(storage, p.trainer, p.id, p.gin_text())
    stops = {p.id: plan.stops[p.id] for p in plan.to_run}
    work_unit.run(storage, work_unit.Task(trainer="toy_trainer", stops=stops))
    return trials.Outcome(False, ())


def command(*words):
    words = (*words, "mine.py", "--storage", "runs", "--wandb", "off")
    return __main__.main(words)


def points():
    return files.open_storage("runs").folders("toy_trainer")


def test_rerun_compares_the_best_with_itself_on_fresh_seeds(here, capsys):
    """The configuration that `best` names, on two seeds that it was not chosen on."""
    assert command("launch") == 0
    old = points()
    capsys.readouterr()
    words = ("rerun", "--budget", "env_steps=30", "--seeds", "10-11")
    assert command(*words) == 0
    output = capsys.readouterr().out
    assert "2 points: 2 missing; 2 to run" in output
    (rate,) = re.findall(r"all +rate=(0.\d) .* 2  .* 2 *$", output, re.M)
    choice = choices.Choice(where={"rate": rate}, seeds=(10, 11))
    expected = {p.id for p in choices.choose("mine.py", choice).points}
    assert points() - old == expected


def test_seeds_of_the_selection_are_refused(here, capsys):
    """They would say nothing new; nothing is run."""
    assert command("launch") == 0
    old = points()
    assert command("rerun", "--seeds", "1-2") == 2
    error = capsys.readouterr().err
    assert error == (
        "error: --seeds: seed 1 was used in the selection; expected fresh ones\n"
    )
    assert points() == old
