"""`rerun`: the best configurations once more, on seeds they were not chosen on."""

import re

from bmg_sweeps import __main__
from bmg_sweeps.records import files
from bmg_sweeps.sweep import choices


def command(*words):
    words = (*words, "mine.py", "--storage", "runs", "--wandb", "off")
    return __main__.main(words)


def points():
    return files.open_storage("runs").folders("toy_trainer")


def test_rerun_compares_the_best_with_itself_on_fresh_seeds(toy_here, capsys):
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


def test_seeds_of_the_selection_are_refused(toy_here, capsys):
    """They would say nothing new; nothing is run."""
    assert command("launch") == 0
    old = points()
    assert command("rerun", "--seeds", "1-2") == 2
    error = capsys.readouterr().err
    assert error == (
        "error: --seeds: seed 1 was used in the selection; expected fresh ones\n"
    )
    assert points() == old
