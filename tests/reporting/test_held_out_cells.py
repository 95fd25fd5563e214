"""Tables, figures and commands say how sure a choice is, and where nobody can say."""

import csv
import io
import json

import pytest
import toy_runs
from toy_runs import DIVERGED

from bmg_sweeps.analysis import selection
from bmg_sweeps.cli import answers
from bmg_sweeps.reporting import (
    best_tables,
    claim_table,
    curves,
    figures,
    held_out_cells,
    report,
    tables,
)
from bmg_sweeps.sweep import Best, Claim
from bmg_sweeps.tracking import sweeps

# Without seed 0 the second is best, without 1 or 2 the first: 1, 1 and 2 are read. The
# first has 4 on average and the second 4 as well.
A = [[9.0, 1.0, 2.0], [1.0, 8.0, 3.0]]
B = [[0.0, 1.0, 2.0]]


def load(rewards, methods="AB", **keywords):
    sweep = toy_runs.sweep(methods, **keywords)
    return toy_runs.load(sweep, toy_runs.table(rewards))


def best_rows(found):
    table = best_tables.table(found, "env_steps")
    head, rows = table.names, tables.texts(table, is_exact=True)
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_beside_the_best_stands_what_is_held_out():
    """A: 4/3 where the plain one has 4; B had no choice, and has what it has."""
    a, b = best_rows(load({"A": A, "B": B}))
    assert (a["reward"][:5], a["held out"]) == ("4.000", "1.333 ± 0.577")
    assert a["like the best"] == "2 / 2"
    assert (b["held out"], b["like the best"]) == ("1.000 ± 1.000", "–")


def test_without_a_choice_there_is_nothing_to_say():
    table = best_tables.table(load({"A": A[:1], "B": B}), "env_steps")
    assert not {"held out", "like the best"} & {*table.names}
    assert len(table.notes) == 1


def test_one_seed_is_told():
    """There was a choice, and nothing that it could be read on."""
    found = load({"A": [[1.0], [2.0]]})
    table = best_tables.table(found, "env_steps")
    assert "held out" not in table.names
    assert "One seed holds nothing out" in table.notes[1]


def test_a_divergence_stands_in_place_of_the_number():
    (row,) = best_rows(load({"A": [[DIVERGED, 9.0, 9.0], [1.0, 2.0, 3.0]]}))
    assert row["held out"] == "diverged in 1 of 3 folds"


def test_variances_that_differ_make_it_rough():
    rewards = [[n, n + 0.1, n - 0.1] for n in (5.0, 5.1, 5.2)] + [[0.0, 5.0, 10.0]]
    (row,) = best_rows(load({"A": rewards}))
    assert row["like the best"] == "4 / 4, rough"


def test_every_configuration_says_whether_it_is_like_the_best():
    """A third one of 100 less is not."""
    found = load({"A": [*A, [-96.0, -95.0, -97.0]], "B": B})
    (table,) = [t for t in report.make(found) if t.key.kind == "scores"]
    assert table.names[-1] == "like the best"
    assert [row[-1] for row in table.rows] == ["yes", "yes", None, None]
    lines = csv.DictReader(io.StringIO(report.comma_separated(found), newline=""))
    shown = [
        (line["held_out"][:5], line["held_out_deviation"][:5], line["like_best"])
        for line in lines
    ]
    best = next(i for i, row in enumerate(shown[:2]) if row[0])
    assert shown[best] == ("1.333", "0.577", "True")
    assert shown[1 - best] == ("", "", "True")
    assert shown[2:] == [("", "", "False"), ("1.0", "1.0", "")]


def test_a_claims_table_has_the_plain_verdict_beside():
    """Only where there was a choice."""
    claim = Claim(text="So", more="A", less="B")
    (table,) = claim_table.table(load({"A": A, "B": B}, claims=(claim,)))
    assert table.names[3:5] == ("plain verdict", "plain difference")
    (row,) = tables.texts(table, is_exact=False)
    assert row[1] == "open: 991 to over 1,000 more seeds, a wide range"
    assert row[2].startswith("0.333 [")
    assert row[3:5] == ["open", row[4]]
    assert row[4].startswith("3 [")
    assert row[5].endswith("; held out 1.33")
    assert any("Nadeau and Bengio, 2003" in note for note in table.notes)
    (table,) = claim_table.table(load({"A": A[:1], "B": B}, claims=(claim,)))
    assert "plain verdict" not in table.names
    assert not any("held out" in note for note in table.notes)


def test_figures_show_it(drawn):
    """In the legend of curves, and hollow in a panel of the best."""
    figures.draw(load({"A": A, "B": B}))
    (panel,) = drawn[0].axes
    labels = [line.get_label() for line in panel.get_lines()]
    assert labels[0].endswith("3 seeds, held out 1.33")
    assert labels[1].endswith("3 seeds")
    best = Best(title="Best", label="reward", axis="env_steps")
    found = load({"A": A, "B": B}, curves=(best,))
    figures.draw(found)
    lines = {line.get_label(): line for line in drawn[1].axes[0].get_lines()}
    assert lines["A, held out"].get_ydata() == pytest.approx([4 / 3])
    assert lines["A, held out"].get_fillstyle() == "none"
    assert "B, held out" not in lines
    a, b = curves.attained(found, best)
    assert (a.held_out, b.held_out) == ([pytest.approx(4 / 3)], [None])


def test_the_command_best_says_it():
    found = load({"A": A, "B": B})
    a, b = found.first.best
    lines = answers.how_sure(found.sweep, found.first.apart(a))
    assert lines[0] == "Held out, of 2 configurations: 1.33333."
    assert lines[1] in (
        "Not told apart from the best: rate=0; rate=1.",
        "Not told apart from the best: rate=1; rate=0.",
    )
    assert answers.how_sure(found.sweep, found.first.apart(b)) == []
    assert answers.how_sure(found.sweep, None) == []
    written = selection.as_json(found.sweep, found.first, a)["held_out"]
    assert (written["mean"], written["configurations"]) == (pytest.approx(4 / 3), 2)
    assert {one["rate"] for one in written["like_the_best"]} == {0, 1}
    assert json.dumps(written)
    diverged = load({"A": [[DIVERGED, 9.0, 9.0], [1.0, 2.0, 3.0]]})
    apart = diverged.first.apart(diverged.first.best[0])
    line, *_ = answers.how_sure(diverged.sweep, apart)
    assert line == "Held out, of 2 configurations: diverged in 1 of 3 folds."


def test_the_run_of_a_sweep_has_it():
    """Where there was a choice."""
    rows = sweeps._best(load({"A": A, "B": B}).first)
    assert rows["best/env_steps/A_held_out"] == pytest.approx([4 / 3])
    assert "best/env_steps/B_held_out" not in rows


def test_the_cells_of_a_single_seed_are_empty():
    """Beside another method that has several."""
    a, b = best_rows(load({"A": A, "B": [[1.0], [2.0]]}))
    assert a["held out"] == "1.333 ± 0.577"
    assert (b["held out"], b["like the best"]) == ("–", "–")
    assert held_out_cells.number(None) is None
