"""An unfinished edit of one file leaves the commands over all other sweeps as usual."""

import json

import pytest

from bmg_sweeps import __main__, paths
from bmg_sweeps.launching import checking

TRAINER = """
class Config:
    seed: int
    rate: float
"""
SWEEP = """
from bmg_sweeps.sweep import Method, Scale, Select, Sweep, product

SWEEP = Sweep(
    title="Toy",
    trainer="{trainer}",
    scales={{"smoke": Scale(product(seed=(0, 1)), stop={{"env_steps": 10}})}},
    select=Select(metric="reward", mode="max", budgets={{"env_steps": 1}}),
    methods={{"all": Method({{}}, tuned={{}})}},
)
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Four sweeps: one that is whole, two of a broken trainer, and a broken file."""
    for name in ("whole", "edited"):
        (tmp_path / f"{name}.gin").write_text(f"{name}.seed = 0\n{name}.rate = 0.1\n")
    trainers, sweeps = tmp_path / "trainers", tmp_path / "sweeps"
    trainers.mkdir()
    sweeps.mkdir()
    (trainers / "whole.py").write_text(TRAINER)
    (trainers / "edited.py").write_text(TRAINER + "    depth: (\n")
    for name in ("whole", "edited", "edited_too"):
        trainer = name.removesuffix("_too")
        (sweeps / f"{name}.py").write_text(SWEEP.format(trainer=trainer))
    (sweeps / "typed.py").write_text("SWEEP = Sweep(\n")
    monkeypatch.setattr(paths, "GIN", tmp_path)
    monkeypatch.setattr(paths, "TRAINERS", trainers)
    monkeypatch.setattr(paths, "SWEEPS", sweeps)
    monkeypatch.setattr(checking, "check", lambda *_, **__: {})
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(checkout, capsys):
    """Runs a command on an empty storage; gives its status, output and errors."""

    def run_(*arguments):
        status = __main__.main([*arguments, "--storage", "runs"])
        return status, *capsys.readouterr()

    return run_


def lines(checkout):
    return [
        f"Skipped typed: sweep file {checkout}/sweeps/typed.py, line 1: "
        "'(' was never closed",
        f"Skipped edited, edited_too: trainer file {checkout}/trainers/edited.py, "
        "line 5: '(' was never closed",
    ]


@pytest.mark.parametrize(
    "words",
    [["list"], ["status"], ["report", "all"], ["track", "all", "--wandb", "off"]],
    ids=" ".join,
)
def test_what_is_broken_is_named_and_the_rest_is_there(words, run, checkout):
    """One line for each cause, apart from the answer."""
    status, _, errors = run(*words)
    assert (status, errors.splitlines()) == (0, lines(checkout))


def test_the_other_sweeps_are_listed_and_reported(run, checkout):
    """As if the broken ones were not there."""
    assert run("list")[1].splitlines()[2:] == ["whole  Toy    whole    2       0"]
    assert "whole: 2 points: 2 missing" in run("status")[1]
    run("report", "all")
    pages = {path.stem for path in (checkout / "runs" / "reports").glob("*.html")}
    assert pages == {"index", "whole-smoke"}


@pytest.mark.parametrize("command", ["list", "status"])
def test_json_is_valid_beside_broken_files(command, run):
    """The lines about them are none of it."""
    found = json.loads(run(command, "--json")[1])
    assert [one["name"] for one in found["sweeps"]] == ["whole"]


def test_a_launch_of_all_is_refused(run, checkout):
    """Who trains all for hours shall not find afterwards that some were left out."""
    status, output, errors = run("launch", "all", "--dry-run")
    assert (status, output) == (2, "")
    assert errors == lines(checkout)[0].replace("Skipped typed", "error") + "\n"
    assert run("launch", "whole", "--dry-run")[0] == 0


def test_a_mistake_in_an_option_still_ends_the_command(run):
    """It is none of a file, and would be told of each sweep."""
    status, output, errors = run("status", "--where", "raet=0.1")
    assert (status, output) == (2, "")
    assert errors == "error: --where raet=0.1: no such field; did you mean rate?\n"


def test_where_nothing_is_whole_the_first_mistake_is_the_error(run, checkout):
    """There is nothing to be listed."""
    (checkout / "sweeps" / "whole.py").unlink()
    status, output, errors = run("list")
    assert (status, output) == (2, "")
    assert errors == lines(checkout)[0].replace("Skipped typed", "error") + "\n"
