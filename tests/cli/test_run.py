"""`run --point`: one point in this process, for whoever looks for a mistake."""

import os
import subprocess
import sys
import traceback

import pytest
import toy_checkout

from bmg_sweeps import __main__, paths
from bmg_sweeps.cli import answers
from bmg_sweeps.launching import checking
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import choices
from bmg_sweeps.tasks import data_sets


@pytest.fixture
def here(tmp_path, monkeypatch, toy):
    """A folder with a sweep of the toy, whose points need not be checked."""
    toy_checkout.enter(tmp_path, toy, monkeypatch, "product(seed=(0, 1))")
    monkeypatch.setattr(checking, "check", lambda *_, **__: {})
    return tmp_path


def point():
    return choices.choose("mine.py", choices.Choice()).points[0]


def run(*more):
    arguments = ["run", "mine.py", "--point", point().id, "--storage", "runs", *more]
    return __main__.main(arguments)


def read():
    return store.read(files.open_storage("runs"), "toy_trainer", point().id)


def test_an_exception_goes_through_with_its_traceback(here, toy, capsys):
    """Once, not tried again; the failure is in the record by then."""
    toy.FAILURES += [RuntimeError("first"), RuntimeError("second")]
    with pytest.raises(RuntimeError, match="first") as caught:
        run()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert any(frame.filename == toy.__file__ for frame in frames)
    assert "error:" not in capsys.readouterr().err
    assert answers.failure(read()).startswith("failed: RuntimeError: first (toy_")
    assert store.status(read(), {"env_steps": 60}) == "missing"  # A try is left.


def test_a_point_that_has_failed_runs_when_it_is_named(here, toy, capsys):
    """Whatever its tries are: naming it is asking."""
    for _ in range(store.TRIES):
        toy.FAILURES.append(RuntimeError("no"))
        with pytest.raises(RuntimeError, match="no"):
            run()
    assert store.status(read(), {"env_steps": 60}) == "failed"
    assert run() == 0
    assert "done, trained to env_steps=60" in capsys.readouterr().out


def test_a_point_that_is_done_says_so(here, capsys):
    """And is not trained again; a longer stop rule is another matter."""
    assert run() == 0
    before = read().manifest
    capsys.readouterr()
    assert run() == 0
    expected = f"point {point().id}: done already, trained to env_steps=60\n"
    assert capsys.readouterr().out == expected
    assert read().manifest == before
    assert run("--stop", "env_steps=80") == 0
    assert "done, trained to env_steps=80" in capsys.readouterr().out


def test_a_mistake_of_the_users_is_one_line_here_too(here, capsys):
    """A traceback of it would show nothing of theirs."""
    assert run("--where", "seed=7") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_folder_of_data_sets_is_handed_on(here, toy, monkeypatch):
    """To the check and to the trainer, and not by way of this environment."""
    monkeypatch.delenv(paths.DATA_VARIABLE, raising=False)
    (here / "data").mkdir()
    asked, checked, init = [], [], toy.init
    monkeypatch.setattr(checking, "check", lambda *_, data, **__: checked.append(data))
    monkeypatch.setattr("bmg_sweeps.running.programs._COMPILED", {})

    def noting(*arguments):
        asked.append(data_sets.user_folder())
        return init(*arguments)

    monkeypatch.setattr(toy, "init", noting)
    assert run("--data", "data") == 0
    assert {*asked, *checked} == {str(here / "data")}
    assert data_sets.user_folder() is None
    assert paths.DATA_VARIABLE not in os.environ


def test_a_debugger_stops_where_it_was_raised(tmp_path):
    """Post mortem, under `python -m pdb -m bmg_sweeps run`."""
    checkout = toy_checkout.make(tmp_path / "checkout")
    with (checkout / "trainers" / "toy_trainer.py").open("a") as trainer:
        trainer.write("\n\ndef progress(config, state):\n    clue = 6 * 7\n    1 / 0\n")
    name = toy_checkout.write_sweep(checkout, "product(seed=(0,))", 20)
    words = ["-m", "pdb", "-m", "bmg_sweeps", "run", name, "--point", ""]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=checkout,
        env=os.environ | {"HOME": str(checkout)},
        input="continue\np 'clue', clue\nquit\n",
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert "ZeroDivisionError" in done.stdout + done.stderr
    assert "post mortem" in done.stdout
    assert "('clue', 42)" in done.stdout
