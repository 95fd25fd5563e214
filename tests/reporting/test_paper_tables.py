"""Tables and panels in the paper's own form, beside its numbers where these compare."""

import csv
import dataclasses
import io

import pytest
import rich.console

from bmg_sweeps import formatting
from bmg_sweeps.analysis import estimates, intervals, results
from bmg_sweeps.records import attempts, store
from bmg_sweeps.reporting import charts, figures, report, tables
from bmg_sweeps.sweep import choices, display, grid
from bmg_sweeps.sweep.point import Point
from bmg_sweeps.tracking import runs

SOURCE = "Somebody, Table 7"
VALUES = {"data": "real"}
STOP = {"meta_updates": 100, "hours": 2}
FIRST = {"one": "False", "two": "True"}
# B at both budgets and one that we have not, M at the last one.
_B, _M = {"β": 1e-3, "K": 1}, {"β": 1e-4, "K": 5, "FO": True}
PUBLISHED = display.Published(
    best=tuple(
        display.PublishedBest(
            method=method,
            budget=budget,
            mean=mean,
            source=SOURCE,
            axis="meta_updates",
            selected=selected,
        )
        for method, budget, mean, selected in (
            ("B", 50, 61.4, _B),
            ("B", 100, 62.5, _B | {"K": 5}),
            ("M", 100, 61.25, _M),
            ("B", 150, 63.0, _B),
        )
    ),
    measures=tuple(
        display.PublishedMeasure(
            method=method,
            configuration=configuration,
            metric="norm",
            mean=mean,
            deviation=deviation,
            source=SOURCE,
        )
        for method, configuration, mean, deviation in (
            ("B", {"β": 1e-3, "K": 5}, 0.59, 0.03),
            ("M", {"K": 1, "FO": False}, 0.0002, 5e-6),
        )
    ),
    values=VALUES,
)
SWEEP = grid.Sweep(
    title="Toy",
    trainer="toy",
    scales={},
    select=grid.Select(
        metric="validation_accuracy",
        mode="max",
        budgets={"meta_updates": 2, "hours": 2},
        test="test_accuracy",
    ),
    methods={
        "B": grid.Method({"kind": "b"}, tuned={"rate": "β", "steps": "K"}),
        "M": grid.Method(
            {}, tuned={"rate": "β", "steps": "K", "kind": display.Symbol("FO", FIRST)}
        ),
    },
    curves=(
        display.Best(title="By data", label="accuracy", axis="meta_updates"),
        display.Best(title="By K", label="accuracy", axis="meta_updates", by="steps"),
    ),
    measures=(
        display.Measure(metric="norm", label="ρ", last=60),
        display.Measure(metric="meta_updates_per_second", label="speed"),
    ),
    shown={"data": "data"},
    published=PUBLISHED,
)
B1, B5, M1 = ("b", 1e-3, 1), ("b", 1e-3, 5), ("one", 1e-4, 1)
ACCURACIES = {B1: (60.0, 61.0), B5: (50.0, 63.0), M1: (55.0, 58.0)}
TWO = estimates.Estimate(2_000.0, 1.0)
COLUMNS = [
    "meta_updates",
    *("B β", "B K", "B validation", "B test", "B held out"),
    *("B published β", "B published K", "B published test", "B published Δ"),
    *("M β", "M K", "M FO", "M validation", "M test", "M held out"),
    *("M published β", "M published K", "M published FO"),
    *("M published test", "M published Δ"),
]


def toy_point(arm, seed, **values):
    kind, rate, steps = arm
    shown = {"kind": kind, "rate": rate, "steps": steps} | VALUES | values
    return Point("toy", shown | {"seed": seed})


def record(storage, p, accuracies, norms=(9.0, 1.0, 2.0), **provenance):
    """Commits a point: rows at 40, 50 and 100 meta-updates, evaluated at the last two.

    An hour is 50 meta-updates.
    """
    axes = {"meta_updates": [50, 100], "training_seconds": [3600.0, 7200.0]}
    rows = {"meta_updates": [40, 50, 100], "training_seconds": [2880.0, 3600.0, 7200.0]}
    store.declare(storage, p.trainer, p.id, "# No gin is read here.\n")
    attempts.begin(storage, store.read(storage, p.trainer, p.id)).commit(
        progress={"meta_updates": 100, "hours": 2},
        rows=rows | {"norm": list(norms)},
        validation=axes | {"validation_accuracy": list(accuracies)},
        test=axes | {"test_accuracy": [a - 1 for a in accuracies]},
        provenance={"device": "cpu", "pack_width": 1} | provenance,
        release=True,
    )


def recorded(storage, sweep=SWEEP, choice=None, **values):
    """Three configurations with two seeds, the second of them better by 0.5."""
    points = []
    for arm, accuracies in ACCURACIES.items():
        for seed in (0, 1):
            points.append(toy_point(arm, seed, **values))
            better = [a + seed / 2 for a in accuracies]
            record(storage, points[-1], better, norms=(9, 1 + seed, 2 + 2 * seed))
    choice = choices.Choice(**{"scale": "paper"} | (choice or {}))
    chosen = choices.Chosen("toy", sweep, tuple(points), STOP, choice)
    return results.load(storage, chosen)


def test_a_value_that_says_nothing_has_an_empty_cell(storage):
    """FO of M, and only our own cell: what is published is as it was printed."""
    silent = {"kind": display.Symbol("FO", dict.fromkeys(FIRST))}
    m = grid.Method({}, tuned={"rate": "β", "steps": "K"} | silent)
    sweep = dataclasses.replace(SWEEP, methods=SWEEP.methods | {"M": m})
    table, *_ = report.make(recorded(storage, sweep))
    place = [f"{c.group} {c.name}" for c in table.columns].index("M FO")
    assert {row[place] for row in table.rows} == {None}


def of_kind(made, kind, axis=""):
    """The table of a kind, and of an axis where there is one for each."""
    (table,) = [t for t in made if t.key[:2] == (kind, axis)]
    return table


def exact(table):
    """Its rows, with numbers in full."""
    return tables.texts(table, is_exact=True)


def test_methods_stand_side_by_side_with_what_is_published(storage):
    """A row a budget: ours and the paper's values by symbol, accuracies and Δ.

    At 50 the best B has K = 1: seeds 60 and 60.5, tests one lower; 0.5 / √2 = 0.354.
    59.25 − 61.4 = −2.15; at 100: K = 5 and 62.25 − 62.5; M: 57.25 − 61.25.
    """
    table = of_kind(report.make(recorded(storage)), "best", "meta_updates")
    assert list(table.names) == COLUMNS
    assert exact(table) == [
        [
            *("50", "0.001", "1", "60.250 ± 0.354", *["59.250 ± 0.354"] * 2),
            *("0.001", "1", "61.4", "-2.15"),
            *("0.0001", "1", "False", "55.250 ± 0.354", *["54.250 ± 0.354"] * 2),
            *["–"] * 5,
        ],
        [
            *("100", "0.001", "5", "63.250 ± 0.354", *["62.250 ± 0.354"] * 2),
            *("0.001", "5", "62.5", "-0.25"),
            *("0.0001", "1", "False", "58.250 ± 0.354", *["57.250 ± 0.354"] * 2),
            *("0.0001", "5", "True", "61.25", "-4"),
        ],
        ["150", *["–"] * 5, "0.001", "1", "63", *["–"] * 12],
    ]
    assert table.notes[1].startswith("Held out: test_accuracy of what all seeds but")
    assert table.notes[2:] == (
        "Complete configurations at the budgets: B 2 of 2, M 1 of 1.",
        f"Published: {SOURCE}. Δ is ours − published.",
    )


def test_an_axis_of_which_nothing_is_published_keeps_its_form(storage):
    """Rows of one method each, of hours here."""
    made = report.make(recorded(storage))
    table = of_kind(made, "best", "hours")
    assert table.names[:3] == ("hours", "method", "selected")
    assert table.rows[0][:3] == (1, "B", "β=0.001 K=1")


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"choice": {"scale": "lite"}}, "this is scale lite"),
        ({"choice": {"gin": ("toy.a = 1",)}}, "this is with --gin toy.a = 1"),
        ({"data": "stand-in"}, "this is with data = stand-in"),
        (
            {"choice": {"stop": {"meta_updates": 50}}},
            "this is trained to 50 meta_updates",
        ),
    ],
)
def test_what_is_not_the_papers_does_not_stand_beside_it(storage, keywords, reason):
    """The form is the same; whatever is published is left out, and a note says why."""
    found = recorded(storage, AT_SCALE, **keywords)
    made = report.make(found)
    table = of_kind(made, "best", "meta_updates")
    assert list(table.names) == [c for c in COLUMNS if "published" not in c]
    assert len(table.rows) == 2
    note = f"Published numbers are left out: {reason}, and does not compare with them."
    assert note in table.notes
    assert note in of_kind(made, "measures").notes
    assert "published" not in " ".join(of_kind(made, "measures").names)
    text = report.comma_separated(found)
    assert "published" not in text
    panels = charts.data(found)["panels"]
    assert [panel["published"] for panel in panels] == [[], []]


AT_SCALE = dataclasses.replace(
    SWEEP, scales={"paper": grid.Scale(({"seed": 0}, {"seed": 1}), stop=STOP)}
)


def test_the_scales_own_stop_rule_may_be_typed(storage):
    found = recorded(storage, AT_SCALE, choice={"stop": dict(STOP)})
    table = of_kind(report.make(found), "best", "meta_updates")
    assert list(table.names) == COLUMNS


def test_every_table_says_what_its_numbers_are_numbers_of(storage):
    """Scale, the fields that the sweep shows, seeds, budget and device."""
    made = report.make(recorded(storage))
    about = (
        "scale paper; data real; seeds 0–1; trained to 100 meta_updates, 2 hours; cpu"
    )
    assert {table.about for table in made} == {about}
    assert about in as_text(made[:1]).splitlines()[0]
    assert tables.markdown(made).count(about) == len(made)


def as_text(made):
    console = rich.console.Console(file=io.StringIO(), width=100)
    tables.text(made, console)
    return console.file.getvalue()


def test_side_by_side_fits_a_wide_terminal(storage):
    """Groups stand above their first columns, a word a line."""
    table = of_kind(report.make(recorded(storage)), "best", "meta_updates")
    _, first, second, third, *_ = as_text([table]).splitlines()
    assert first.split() == ["B", "B", "M", "M"]
    assert second.split() == ["published", "published"]
    names = (c.split(maxsplit=1)[1].removeprefix("published ") for c in COLUMNS[1:])
    assert third.split() == ["meta_updates", *" ".join(names).split()]
    assert max(map(len, (first, second, third))) < 200


def test_other_forms_have_the_groups_in_the_columns_names(storage):
    """Markdown and W&B, where no two columns may have one name."""
    table = of_kind(report.make(recorded(storage)), "best", "meta_updates")
    assert f"| {' | '.join(COLUMNS)} |" in tables.markdown([table])
    columns = runs._as_wandb(table).columns
    assert len(set(columns)) == len(columns)
    assert set(COLUMNS) <= set(columns)


def test_csv_has_the_published_selection_beside_the_best(storage):
    """In the lines of what was selected, where there is any."""
    text = io.StringIO(report.comma_separated(recorded(storage)), newline="")
    lines = list(csv.DictReader(text))
    beside = {
        (line["configuration"], line["budget"]): line["published_configuration"]
        for line in lines
        if line["published"]
    }
    assert beside == {
        ("β=0.001 K=1", "50.0"): "β=0.001 K=1",
        ("β=0.001 K=5", "100.0"): "β=0.001 K=5",
        ("β=0.0001 K=1 FO=False", "100.0"): "β=0.0001 K=5 FO=True",
    }


def test_measures_are_averaged_over_a_window_and_over_seeds(storage):
    """Of rows above 40: (1 + 2) / 2 and (2 + 4) / 2, so 2.25 ± 1.061; 100 in 7200 s.

    The published one of M names K and FO alone; of B1 none is published.
    """
    table = of_kind(report.make(recorded(storage)), "measures")
    assert table.names == ("method", "configuration", "ρ ours", "ρ published", "speed")
    assert exact(table) == [
        ["B", "β=0.001 K=1", "2.250 ± 1.061", "–", "0.0139 ± 0.0000"],
        ["B", "β=0.001 K=5", "2.250 ± 1.061", "0.59 ± 0.03", "0.0139 ± 0.0000"],
        [
            *("M", "β=0.0001 K=1 FO=False", "2.250 ± 1.061", "0.0002 ± 5e-06"),
            "0.0139 ± 0.0000",
        ],
    ]
    assert table.notes[1:] == (
        f"ρ is norm, mean of the last 60 meta_updates before it; published: {SOURCE}.",
        "speed is meta_updates_per_second, the last number before it.",
    )


def test_a_row_that_was_not_finite_leaves_a_window_without_a_mean(storage):
    """And the note says so, once for all configurations of which it holds."""
    chosen = recorded(storage).chosen
    for p in chosen.points:
        record(storage, p, (60.0, 61.0), norms=(1.0, None, 1.0))
    table = of_kind(report.make(results.load(storage, chosen)), "measures")
    assert {row[2] for row in table.rows} == {None}
    assert table.notes[-1] == "ρ: norm is not finite (3 configurations)."


@pytest.mark.parametrize(
    ("provenance", "reason"),
    [
        (
            {"pack_width": 4},
            "speed: ran in a pack of 4, whose hours are not its own (B β=0.001 K=1).",
        ),
        (
            {"device": "H100"},
            "speed: meta_updates_per_second on H100 and cpu cannot be compared "
            "(3 configurations).",
        ),
    ],
)
def test_speeds_of_packs_and_of_two_devices_are_refused(storage, provenance, reason):
    """As hours are; what is no time is shown all the same."""
    chosen = recorded(storage).chosen
    record(storage, chosen.points[0], (60.0, 61.0), **provenance)
    table = of_kind(report.make(results.load(storage, chosen)), "measures")
    assert table.rows[0][4] is None
    assert isinstance(table.rows[0][2], estimates.Estimate)
    assert table.notes[-1] == reason


def test_measures_at_hours_of_two_devices_are_refused(storage):
    """Nobody can say which row is that of an hour; rewards are refused as well."""
    rule = dataclasses.replace(SWEEP.select, budgets={"hours": 2})
    chosen = recorded(storage, dataclasses.replace(SWEEP, select=rule)).chosen
    assert of_kind(report.make(results.load(storage, chosen)), "measures").rows[0][2]
    record(storage, chosen.points[0], (60.0, 61.0), device="H100")
    table = of_kind(report.make(results.load(storage, chosen)), "measures")
    assert {row[2] for row in table.rows} == {None}
    reason = "ρ: hours on H100 and cpu cannot be compared (3 configurations)."
    assert reason in table.notes


def test_what_is_left_out_says_the_axis_of_its_budget_where_there_are_two(storage):
    """M has trained to no hour, and has no meta-updates either."""
    chosen = recorded(storage).chosen
    more = toy_point(("one", 1e-4, 5), 0)
    chosen = dataclasses.replace(chosen, points=(*chosen.points, more))
    found = results.load(storage, chosen)
    (both,) = report.left_out(found, "meta_updates", "hours")
    assert exact(both)[0][2] == "50 meta_updates"
    (hours,) = report.left_out(found, "hours")
    assert exact(hours)[0][2] == "1"


def test_a_speed_that_decides_is_refused_as_hours_are(storage):
    """On two devices nothing is selected by it, on any axis."""
    rule = dataclasses.replace(SWEEP.select, metric="meta_updates_per_second")
    chosen = recorded(storage, dataclasses.replace(SWEEP, select=rule)).chosen
    by_updates = results.load(storage, chosen).first
    assert by_updates.best[0].estimate.mean == pytest.approx(50 / 3600)
    record(storage, chosen.points[0], (60.0, 61.0), device="H100")
    by_updates = results.load(storage, chosen).first
    assert by_updates.refused.startswith("meta_updates_per_second on H100 and cpu")


def test_the_best_of_each_value_of_a_field_have_a_table_and_tests(storage):
    """At the last budget: B with K = 1 and with 5, M with 1."""
    table = of_kind(report.make(recorded(storage)), "by_value", "meta_updates")
    assert table.title == "Best by validation_accuracy at 100 meta_updates, by steps"
    assert exact(table) == [
        ["1", "B", "β=0.001 K=1", "61.250 ± 0.354", "60.250 ± 0.354"],
        ["1", "M", "β=0.0001 K=1 FO=False", "58.250 ± 0.354", "57.250 ± 0.354"],
        ["5", "B", "β=0.001 K=5", "63.250 ± 0.354", "62.250 ± 0.354"],
    ]


def test_panels_of_the_best_have_the_tests_of_what_was_selected(storage):
    """By budget, with what is published; and by the values of a field, K."""
    found = recorded(storage)
    by_data, by_k = charts.data(found)["panels"]
    b, m = by_data["attained"]
    assert (b["method"], b["at"], b["means"]) == ("B", [50, 100], [59.25, 62.25])
    assert b["deviations"] == pytest.approx([0.5 / 2**0.5] * 2)
    assert (m["method"], m["means"]) == ("M", [54.25, 57.25])
    assert [(a["method"], a["at"]) for a in by_data["published"]] == [
        ("B", 50), ("B", 100), ("M", 100), ("B", 150)]  # fmt: skip
    assert (by_k["below"], by_k["published"]) == ("K", [])
    assert [(one["at"], one["means"]) for one in by_k["attained"]] == [
        (["1", "5"], [60.25, 62.25]),
        (["1"], [57.25]),
    ]
    assert figures.draw(found).startswith(b"\x89PNG")


def test_values_of_a_field_stand_in_order_whichever_method_has_them(storage, drawn):
    """B has K = 5 and M has 1 and 10: not in the order 5, 1, 10."""
    points = []
    for arm in (("b", 1e-3, 5), ("one", 1e-4, 1), ("one", 1e-4, 10)):
        points.append(toy_point(arm, 0))
        record(storage, points[-1], (60.0, 61.0))
    choice = choices.Choice(scale="paper")
    chosen = choices.Chosen("toy", SWEEP, tuple(points), STOP, choice)
    found = results.load(storage, chosen)
    by_data, by_k = charts.data(found)["panels"]
    assert (by_data["categories"], by_k["categories"]) == ([], ["1", "5", "10"])
    figures.draw(found)
    ticks = drawn[0].axes[1].get_xticklabels()
    assert [tick.get_text() for tick in ticks] == ["1", "5", "10"]


def test_a_curve_of_validations_has_no_published_tests_on_it(storage):
    """They are of the test, which this is not; the panel of the best has them."""
    panel = display.Curve(title="V", metric="validation_accuracy", label="accuracy")
    sweep = dataclasses.replace(SWEEP, curves=(panel,))
    data = charts.data(recorded(storage, sweep))
    assert data["axes"][0]["panels"][0]["lines"]
    assert data["axes"][0]["panels"][0]["published"] == []


def test_the_speed_of_a_pack_is_not_drawn(storage):
    """It is not its points' own; that of the others is."""
    panel = display.Curve(title="S", metric="meta_updates_per_second", label="steps/s")
    chosen = recorded(storage, dataclasses.replace(SWEEP, curves=(panel,))).chosen
    for p in chosen.points[:2]:
        record(storage, p, (60.0, 61.0), pack_width=2)
    data = charts.data(results.load(storage, chosen))
    lines = data["axes"][0]["panels"][0]["lines"]
    assert sorted(lines) == [1, 2]


def test_the_table_of_every_configuration_has_few_enough_columns(storage):
    """Of 30 budgets every third, from the last one back; a note says so."""
    rule = dataclasses.replace(SWEEP.select, budgets={"meta_updates": 30})
    made = report.make(recorded(storage, dataclasses.replace(SWEEP, select=rule)))
    table = of_kind(made, "scores", "meta_updates")
    assert table.names[-3:] == ("90", "100", "like the best")
    assert len(table.columns) == 2 + 10 + 1
    assert table.notes == ("At 10 of 30 budgets; CSV has all of them.",)


@pytest.mark.parametrize(
    ("mean", "deviation", "text"),
    [
        (0.000213, 5e-6, "0.000213 ± 0.000005"),
        (0.05, None, "0.0500"),
        (0, 0, "0.000"),
        (2.3e-9, 4e-9, "2.3e-09 ± 4e-09"),
    ],
)
def test_small_numbers_keep_three_digits(mean, deviation, text):
    """A meta-gradient's variance is 0.0002."""
    assert estimates.exact(estimates.Estimate(mean, deviation)).startswith(text)


def test_small_budgets_are_told_apart():
    """Of the smoke scale, in hours."""
    written = [formatting.shown_amount(hours) for hours in (0.001, 0.002, 0.5, 24)]
    assert written == ["0.001", "0.002", "0.50", "24"]


@pytest.mark.parametrize(
    ("kind", "cell", "short", "exact"),
    [
        ("amount", 2_000_000.0, "2,000,000", None),
        ("count", 3, "3", None),
        ("described", tables.Described("A", TWO), "A: 2k ± 1", None),
        ("difference", 2_500.0, "+2.5k", None),
        ("difference", -0.5, "-0.5", None),
        ("estimate", TWO, "2k ± 1", "2,000 ± 1"),
        ("interval", intervals.Interval(2_000.0, -1.0, 3.0), "2k [-1, 3]", None),
        ("printed", TWO, "2000 ± 1", None),
        ("probability", intervals.Interval(0.5, 0, 1), "0.50 [0.00, 1.00]", None),
        ("share", tables.Share(2, 3), "2 / 3", None),
        ("value", 1e-4, "0.0001", None),
        ("estimate", None, "–", None),
        ("estimate", "not run", "not run", None),
    ],
)
def test_the_kind_of_a_column_says_how_it_is_written(kind, cell, short, exact):
    """Only estimates differ between a terminal and a file."""
    column = tables.Column("c", kind)
    assert tables.written(column, cell, is_exact=False) == short
    assert tables.written(column, cell, is_exact=True) == (exact or short)


def test_what_a_report_always_has_is_known_without_its_records(storage):
    """Of this sweep, which has seeds enough to compare its methods, too."""
    claim = display.Claim(text="B is better", more="B", less="M")
    found = recorded(storage, dataclasses.replace(SWEEP, claims=(claim,)))
    made = [table.key for table in report.make(found)]
    assert len(set(made)) == len(made)
    more = [key for key in made if key.kind == "improvement"]
    assert [key for key in made if key not in more] == report.keys(found.chosen)


def test_tables_of_wandb_have_numbers(storage):
    """An interval is three columns of them; a difference is one."""
    made = report.make(recorded(storage))
    table = runs._as_wandb(of_kind(made, "improvement", "meta_updates"))
    names = ["interquartile mean", "interquartile mean low", "interquartile mean high"]
    assert table.columns[1:4] == names
    assert table.data[0][1:4] == [62.25, 62, 62.5]
    table = runs._as_wandb(of_kind(made, "best", "meta_updates"))
    last = dict(zip(table.columns, table.data[1], strict=True))
    assert last["meta_updates"] == 100
    assert last["B published Δ"] == pytest.approx(-0.25)
    assert (last["B published test"], last["B published test ±"]) == (62.5, None)
    assert (last["M K"], last["M FO"]) == (1, "False")
