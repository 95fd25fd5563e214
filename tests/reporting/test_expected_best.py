"""The best of n is shown where methods had a choice, and unequal arms are told."""

import dataclasses

import msgspec
import numpy as np
import pytest
import toy_runs
from toy_runs import DIVERGED, FAILED

from bmg_sweeps.cli import viewing
from bmg_sweeps.records import manifests
from bmg_sweeps.reporting import (
    expected_best,
    expected_best_figures,
    page,
    report,
    tables,
)
from bmg_sweeps.sweep import choices
from bmg_sweeps.tracking import sweeps

# Of two and three seeds; the first of A is best without seed 1 or 2, and the second
# without seed 0: held out 1, 1 and 2, and the mean of all is 4.
A = [[9.0, 1.0, 2.0], [1.0, 8.0, 3.0]]
B = [[0.0, 1.0, 2.0]]


def load(rewards, hours=None, **keywords):
    runs = toy_runs.table(rewards)
    if hours:
        runs = [with_hours(run, hours) for run in runs]
    return toy_runs.load(toy_runs.sweep([*rewards], **keywords), runs)


def with_hours(run, hours, **provenance):
    """The run, where all of it took so many hours."""
    made = manifests.Provenance.of({"device": "cpu"} | provenance)
    manifest = msgspec.structs.replace(run.record.manifest, provenance=made)
    record = dataclasses.replace(run.record, manifest=manifest)
    rows = run.rows and run.rows | {"hours": [hours]}
    return dataclasses.replace(run, record=record, rows=rows)


def table(found):
    (made,) = expected_best.table(found)
    return made


def rows(found):
    made = table(found)
    return [
        dict(zip(made.names, row, strict=True))
        for row in tables.texts(made, is_exact=False)
    ]


def test_methods_stand_at_the_smallest_arm_and_at_all_they_have():
    """At n = 1 the mean of all runs, 4 and 1; at 2 what the best table has."""
    a, b, whole = rows(load({"A": A, "B": B}))
    assert (a["n"], a["method"], a["held out"][:2], a["plain"]) == (
        *("1, the smallest arm", "A", "4 "),
        "4",
    )
    assert (b["n"], b["method"], b["held out"], b["plain"]) == (
        *("1, the smallest arm", "B", "1 ± 1"),
        "1",
    )
    assert (whole["n"], whole["held out"], whole["plain"]) == (
        *("all", "1.33 ± 0.577"),
        "4",
    )
    assert "device hours" not in whole


def test_equal_arms_have_one_row_each_and_no_warning():
    found = load({"A": A, "B": A})
    assert [row["n"] for row in rows(found)] == ["2, of each method"] * 2
    assert expected_best.warnings(found) == []
    assert len(table(found).notes) == 1


def test_unequal_arms_are_told():
    """In the table and above the page; and that it describes random search."""
    found = load({"A": A, "B": B})
    (warning,) = expected_best.warnings(found)
    assert warning.startswith("Arms are unequal: A 2, B 1 configurations.")
    assert warning.endswith("at n = 1.")
    notes = table(found).notes
    assert notes[0] == warning
    assert "random search of this grid" in notes[1]
    assert "Dodge et al., 2019" in notes[1]
    assert page.page(found, "runs").count(warning) == 2  # Below the table, too.
    assert "Arms are unequal" not in page.page(load({"A": A, "B": A}), "runs")


def test_the_table_stands_beside_the_claims_of_a_sweep_with_a_choice():
    """And is named beforehand; else there is none."""
    for rewards, number in (({"A": A, "B": B}, 1), ({"A": A[:1], "B": B}, 0)):
        found = load(rewards)
        made = [t.key for t in report.make(found)]
        named = report.keys(found.chosen)
        for keys in (made, named):
            kinds = [key.kind for key in keys]
            assert kinds.count(tables.Kind.EXPECTED_BEST) == number
    assert expected_best.warnings(load({"A": A[:1], "B": B})) == []
    nothing = load({"A": [[FAILED], [FAILED]]})
    assert (table(nothing).rows, expected_best.warnings(nothing)) == ((), [])
    assert expected_best.panels(nothing) == []


def test_a_probability_stands_where_there_is_no_number():
    """1 of 3 folds; of the plain one, of two draws of one."""
    one, two = rows(load({"A": [[DIVERGED, 9, 9], [1, 2, 3]], "B": B}))[::2]
    assert (one["held out"], one["plain"]) == (
        "– (diverged in 50 %)",
        "– (diverged in 50 %)",
    )
    assert (two["held out"], two["plain"]) == ("– (diverged in 33 %)", "2")
    assert any(
        "`floor`" in n for n in table(load({"A": [[DIVERGED, 9], [1, 2]]})).notes
    )
    assert not any("`floor`" in note for note in table(load({"A": A})).notes)


def test_a_single_seed_has_no_number_that_is_held_out():
    (row,) = rows(load({"A": [[1.0], [2.0]]}))
    assert (row["held out"], row["plain"]) == ("–", "2")


def test_what_failed_by_its_machine_is_told():
    found = load({"A": [*A, [1, FAILED, 3]], "B": B})
    assert rows(found)[0]["drawn from"] == "2 / 3"
    assert any(note.startswith("A: 1 of 3 ") for note in table(found).notes)
    assert not any(note.startswith("B: ") for note in table(found).notes)


def test_device_hours_are_those_of_so_many_configurations():
    """Half an hour for each of three runs: 1.5 of one configuration, and 3 of two."""
    found = load({"A": A, "B": B}, hours=0.5)
    assert [row["device hours"] for row in rows(found)] == ["1.50", "1.50", "3"]
    by_number, by_hours = expected_best.panels(found)
    assert [line.at for line in by_number.lines] == [[1, 2], [1]]
    assert [line.at for line in by_hours.lines] == [[1.5, 3], [1.5]]
    assert (by_number.mark, by_hours.mark) == (1, 1.5)
    (only,) = expected_best.panels(load({"A": A, "B": A}))
    assert only.mark is None


def test_hours_of_two_devices_are_told():
    runs = [
        with_hours(run, 1.0, device=device)
        for run, device in zip(
            toy_runs.table({"A": A}), ["cpu", "H100"] * 3, strict=True
        )
    ]
    found = toy_runs.load(toy_runs.sweep("A"), runs)
    assert table(found).notes[-1] == (
        "No device hours: hours on H100 and cpu cannot be compared."
    )
    assert len(expected_best.panels(found)) == 1


def test_with_tests_it_is_of_what_decides():
    sweep = toy_runs.sweep("A")
    rule = dataclasses.replace(sweep.select, test="test_reward")
    sweep = dataclasses.replace(sweep, select=rule)
    made = table(toy_runs.load(sweep, toy_runs.table({"A": A})))
    assert made.notes[1].startswith("Of reward: of what was not chosen, test_reward")


def test_the_figure_has_both_curves_and_a_band(drawn):
    """Held out with its band, the plain one dotted; gaps where there is no number."""
    found = load({"A": A, "B": [[DIVERGED, 5.0, 5.0], [4.0, 4.0, 4.0]]}, hours=2.0)
    expected_best_figures.draw(found, expected_best.panels(found))
    for axes, unit, of_b in zip(drawn[0].axes, (1, 6), (1, 5), strict=True):
        a, a_plain, b_plain, *_ = axes.get_lines()
        assert a.get_xdata() == pytest.approx([unit, 2 * unit])
        assert b_plain.get_xdata() == pytest.approx([of_b, 2 * of_b])
        assert a.get_ydata() == pytest.approx([4, 4 / 3])
        assert (a.get_linestyle(), a_plain.get_linestyle()) == ("-", ":")
        assert a_plain.get_ydata() == pytest.approx([4, 4])
        assert b_plain.get_ydata() == pytest.approx([np.nan, 4], nan_ok=True)
        assert len(axes.collections) == 1
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert labels == ["A", "B", expected_best_figures.PLAIN]
        assert axes.get_xscale() == "linear"


def test_one_configuration_is_a_mark_with_a_bar(drawn):
    """B has 0, 1 and 2: from 0 to 2."""
    found = load({"A": A, "B": B})
    expected_best_figures.draw(found, expected_best.panels(found))
    (axes,) = drawn[0].axes
    (bars,) = axes.containers
    (segment,) = bars.lines[2][0].get_segments()
    assert segment.tolist() == [[1, 0], [1, 2]]


def test_many_are_drawn_over_a_logarithm_with_a_mark(drawn):
    """20 and 3: up to 3 every method has as many."""
    values = np.random.default_rng(0).normal(size=(20, 3)).tolist()
    found = load({"A": values, "B": values[:3]})
    expected_best_figures.draw(found, expected_best.panels(found))
    (axes,) = drawn[0].axes
    assert axes.get_xscale() == "log"
    mark = axes.get_lines()[-1]
    assert list(mark.get_xdata()) == [3, 3]
    assert [t for t in axes.get_xticks() if 1 <= t <= 20] == [1, 2, 5, 10, 20]


def test_a_report_leaves_the_figure(storage):
    """Beside that of the curves; without a choice there is none."""
    assert viewing._draw(storage, load({"A": A})) == [
        "toy-mine.png",
        "toy-mine-expected-best.png",
    ]
    png = storage.read("reports", "toy-mine-expected-best.png")
    assert png.startswith(b"\x89PNG")
    assert viewing._draw(storage, load({"A": A[:1]})) == ["toy-mine.png"]


def test_the_run_of_a_sweep_has_all_of_it():
    """Over n, and over the hours of each method: None where it has no such amount."""
    found = load({"A": A, "B": B}, hours=0.5)
    number, hours = map(sweeps._drawn, expected_best.panels(found))
    stem = "expected_best/configurations"
    assert number[stem] == [1, 2]
    assert number[f"{stem}/A"] == pytest.approx([4, 4 / 3])
    assert number[f"{stem}/A_deviation"][1] == pytest.approx(3**-0.5)
    assert number[f"{stem}/A_plain"] == pytest.approx([4, 4])
    assert number[f"{stem}/B"] == [1, None]
    assert hours["expected_best/device_hours"] == [1.5, 3]
    assert hours["expected_best/device_hours/B_plain"] == [1, None]
    single = sweeps._drawn(expected_best.panels(load({"A": [[1.0], [2.0]]}))[0])
    assert [*single] == [stem, f"{stem}/A_plain"]


def test_the_names_in_a_run_are_known_beforehand():
    """For the panels of its workspace."""
    chosen = load({"A": A, "B": B}).chosen
    assert sweeps.names(chosen).expected == {
        f"expected_best/{over}": [f"expected_best/{over}/{m}" for m in "AB"]
        for over in ("configurations", "device_hours")
    }
    few = choices.Chosen("toy", chosen.sweep, chosen.points[:3], chosen.stop,
                         chosen.choice)  # fmt: skip
    assert sweeps.names(few).expected == {}
