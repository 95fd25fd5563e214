"""Tables and figures say what the records say, in every form that they are written."""

import csv
import dataclasses
import io
import itertools
import re

import numpy as np
import pytest
import rich.console
from matplotlib import image

from bmg_sweeps.analysis import estimates, readings, results
from bmg_sweeps.records import attempts, manifests, store
from bmg_sweeps.reporting import comparison, curves, figures, report, tables
from bmg_sweeps.sweep import choices, display, grid
from bmg_sweeps.sweep.point import Point

BLUE = (0x00, 0x72, 0xB2)  # Of the first method's curve.
ANY = tables.Key(tables.Kind.BEST)
LITERAL = "[red]a|b[/red] [/x]"
SWEEP = grid.Sweep(
    title="Toy",
    trainer="toy",
    scales={},
    select=grid.Select(metric="reward", mode="max", budgets={"env_steps": 2}),
    methods={
        "A": grid.Method({"kind": "a"}, tuned={"rate": "rate"}),
        "B": grid.Method({"kind": "b"}, tuned={"rate": "rate"}),
    },
    curves=(
        display.Curve(title="Reward", metric="reward", label="reward"),
        display.Curve(title="Weight", metric="weight", label="ε"),
    ),
    # A's number at the last budget, and one of B's method at another one.
    published=display.Published(
        best=(
            display.PublishedBest(
                method="A",
                budget=100,
                mean=1240.0,
                deviation=90.0,
                source="Somebody [b], Table 1",
            ),
            display.PublishedBest(
                method="B", budget=75, mean=5.5, source="Somebody, Table 2"
            ),
        )
    ),
)
BUDGETS = (50, 100)
A1, A2, B = (("a", 0.1), ("a", 0.2), ("b", 0.1))
REWARDS = {  # At both budgets, for each of two seeds.
    A1: ([1, 1000], [3, 1200]),
    A2: ([0.5, 500], [0.25, 700]),
    B: ([7, 9], [8, 12]),
}


def toy_point(arm, seed):
    kind, rate = arm
    return Point("toy", {"kind": kind, "rate": rate, "seed": seed})


def record(storage, p, rewards, provenance=None, **keywords):
    """Commits a point that has trained to the last budget."""
    rows = {
        "env_steps": list(BUDGETS),
        "reward": rewards,
        "weight": [0.5, 0.25],
        "training_seconds": [1.0, 2.0],
    }
    provenance = {"revision": "abc", "device": "cpu", "threads": 1} | (provenance or {})
    attempts.begin(storage, store.read(storage, p.trainer, p.id)).commit(
        **{"progress": {"env_steps": 100, "hours": 2 / 3600}, "rows": rows} | keywords,
        provenance=provenance,
        release=True,
    )


def load(storage, sweep=SWEEP, arms=tuple(REWARDS)):
    points = tuple(toy_point(arm, seed) for arm in arms for seed in (0, 1))
    choice = choices.Choice(scale="paper")
    chosen = choices.Chosen("toy", sweep, points, {"env_steps": 100}, choice)
    return results.load(storage, chosen)


@pytest.fixture
def complete(storage):
    """A storage in which every point is done."""
    for arm, by_seed in REWARDS.items():
        for seed, rewards in enumerate(by_seed):
            record(storage, toy_point(arm, seed), rewards)
    return storage


@pytest.fixture
def made(complete):
    """The tables without that of the methods, which has tests of its own."""
    return without_methods(report.make(load(complete)))


def without_methods(made):
    """All but those of methods, fields and budgets, which have tests of their own."""
    kinds = tables.Kind
    others = (kinds.IMPROVEMENT, kinds.IMPORTANCE, kinds.EXPECTED_BEST, kinds.AGREEMENT)
    return [t for t in made if t.key.kind not in others]


def shown(table):
    """A table's rows with numbers in full, as the file formats write them."""
    return tuple(map(tuple, tables.texts(table, is_exact=True)))


@pytest.fixture
def partial(storage):
    """Tables of a storage in which a seed of A1 failed, and B has not been run."""
    for seed, rewards in enumerate(REWARDS[A2]):
        record(storage, toy_point(A2, seed), rewards)
    record(storage, toy_point(A1, 0), REWARDS[A1][0])
    record(
        storage,
        toy_point(A1, 1),
        REWARDS[A1][1],
        progress={"env_steps": 60},
        failure=manifests.Failure("failed", 2, "ValueError", LITERAL),
    )
    return without_methods(report.make(load(storage)))


def test_the_best_table_has_the_records_numbers(made):
    """Sample deviations of two numbers are |a − b| / √2.

    A1 at 50: mean 2, 2 / √2 = 1.414; at 100: 1100, 200 / √2 = 141, and from 1000 on
    without decimals. B at 50: 7.5, 1 / √2 = 0.707; at 100: 10.5, 3 / √2 = 2.121. A
    published number stands in the rows of its own method and budget: there is one.
    Each seed of A alone chooses A1, too. Its other one is 1.625 below it at 50, and 500
    at 100: of two with two seeds, 2.92 deviations, 2.95 and 413, are not told apart.
    """
    a_50 = ("2.000 ± 1.414", "2.000 ± 1.414", "2 / 2")
    b_50 = ("7.500 ± 0.707", "7.500 ± 0.707", "–")
    a_100 = ("1,100 ± 141", "1,100 ± 141", "1 / 2")
    b_100 = ("10.500 ± 2.121", "10.500 ± 2.121", "–")
    assert made[0].names == (
        "env_steps",
        "method",
        "selected",
        "reward",
        "held out",
        "like the best",
        "points",
        "complete",
        "published",
        "Δ",
    )
    assert shown(made[0]) == (
        ("50", "A", "rate=0.1", *a_50, "2", "2 / 2", "–", "–"),
        ("50", "B", "rate=0.1", *b_50, "2", "1 / 1", "–", "–"),
        ("100", "A", "rate=0.1", *a_100, "2", "2 / 2", "1,240 ± 90", "-140"),
        ("100", "B", "rate=0.1", *b_100, "2", "1 / 1", "–", "–"),
    )


def test_the_notes_say_what_is_published_at_which_budget(made):
    """Every published number, with its source, whatever was trained."""
    assert made[0].notes[2:] == (
        "Published, at 100 env_steps: A 1,240 ± 90 (Somebody [b], Table 1).",
        "Published, at 75 env_steps: B 5.500 (Somebody, Table 2).",
    )


def test_a_published_number_does_not_stand_beside_a_shorter_run(complete):
    """Trained to 50, whose two budgets are 25 and 50, nothing compares with 100."""
    whole = load(complete)
    chosen = dataclasses.replace(whole.chosen, stop={"env_steps": 50})
    shorter = results.load(complete, chosen)
    assert {row[-1] for row in report.make(shorter)[0].rows} == {None}


def test_every_configuration_has_a_row_with_all_budgets(made):
    """A2: means 0.375 and 600, deviations 0.25 / √2 = 0.177 and 200 / √2 = 141.421."""
    names = ("method", "configuration", "50", "100", "like the best")
    assert made[1].names == names
    assert shown(made[1]) == (
        ("A", "rate=0.1", "2.000 ± 1.414", "1,100 ± 141", "yes"),
        ("A", "rate=0.2", "0.375 ± 0.177", "600.000 ± 141.421", "–"),
        ("B", "rate=0.1", "7.500 ± 0.707", "10.500 ± 2.121", "–"),
    )


def test_configurations_that_are_described_alike_keep_their_rows(complete):
    """A sweep's `tuned` forgot the rate: A1 and A2 differ in what is not shown."""
    methods = {"A": grid.Method({"kind": "a"}, tuned={"kind": "kind"})}
    found = load(complete, dataclasses.replace(SWEEP, methods=methods))
    rows = shown(without_methods(report.make(found))[1])
    of_a = [row for row in rows if row[0] == "A"]
    assert [row[3] for row in of_a] == ["1,100 ± 141", "600.000 ± 141.421"]


def test_what_is_complete_is_not_left_out(made):
    """Then there is no table of what is."""
    titles = [table.title.partition(",")[0] for table in made]
    assert titles == [
        "Best by reward for each budget of env_steps",
        "reward of every configuration",
        "Provenance",
    ]


def test_what_is_left_out_is_listed_once_with_its_first_budget(partial):
    """A1 has passed 50 and not 100; of B nothing is there."""
    assert partial[2].names == ("method", "configuration", "budget", "why")
    assert sorted(shown(partial[2])) == [
        ("A", "rate=0.1", "100", f"seed 1: failed (ValueError: {LITERAL})"),
        ("B", "rate=0.1", "50", "seed 0: not run"),
    ]
    assert shown(partial[1])[0] == ("A", "rate=0.1", "2.000 ± 1.414", "–")
    considered = [(row[0], row[1], row[7]) for row in shown(partial[0])]
    assert considered == [("50", "A", "2 / 2"), ("100", "A", "1 / 2")]


def test_the_provenance_is_that_of_the_records(made):
    """Each point trained for 2 s."""
    assert shown(made[-1]) == (
        ("points with a record", "6 of 6"),
        ("code revision", "abc"),
        ("hash of the trainer's code", "–"),
        ("device", "cpu"),
        ("threads", "1"),
        ("points in a pack", "1"),
        ("training seconds a point", "2, median"),
        ("evaluation seconds", "–"),
        ("compile seconds", "–"),
    )
    assert made[-1].notes == ()


def test_mixed_code_revisions_are_noted(complete):
    """One point was made by another commit, on another device."""
    for seed, code in ((0, "c0de"), (1, "beef")):
        other = {"revision": "def+dirty", "device": "H100", "code": code}
        record(complete, toy_point(B, seed), [8, 12], provenance=other)
    loaded = load(complete)
    table = report.make(loaded)[-1]
    assert shown(table)[1:4] == (
        ("code revision", "abc, def+dirty"),
        ("hash of the trainer's code", "beef, c0de"),
        ("device", "H100, cpu"),
    )
    assert table.notes == (
        "Code revisions are mixed.",
        "The trainer's code is mixed.",
        "Devices are mixed.",
    )
    assert report.context(loaded).endswith("by 2 versions of the trainer's code")


def test_an_attempt_that_noted_nothing_is_none_of_those_that_are_mixed(complete):
    """It was made where there was no checkout; None does not compare with text."""
    noted = {"revisions": [None, "abc"], "devices": [None, "cpu"], "codes": [None]}
    record(complete, toy_point(B, 0), [8, 12], provenance=noted)
    loaded = load(complete)
    table = report.provenance(loaded)
    assert shown(table)[1:4] == (
        ("code revision", "abc"),
        ("hash of the trainer's code", "–"),
        ("device", "cpu"),
    )
    assert table.notes == ()
    assert report.context(loaded).endswith("; cpu")
    assert readings.refusal(loaded.trained, "hours") is None
    assert readings.devices(loaded.trained) == ["cpu"]


def test_without_a_record_there_are_tables_still(storage):
    """Everything is left out, and nothing is known."""
    best, scores, left_out, provenance = without_methods(report.make(load(storage)))
    assert (best.rows, scores.rows) == ((), ())
    assert [row[-1] for row in left_out.rows] == ["seed 0: not run"] * 3
    assert [row[1] for row in shown(provenance)] == ["0 of 6", *["–"] * 8]


@pytest.mark.parametrize(
    ("mean", "deviation", "short", "exact"),
    [
        (1_774_099.4, 60_321.0, "1.77M ± 60.3k", "1,774,099 ± 60,321"),
        (-9_312.0, None, "-9.31k", "-9,312"),
        (0.27641, 0.0012, "0.276 ± 0.0012", "0.276 ± 0.001"),
        (0.954, 0.0002, "0.954 ± 0.0002", "0.9540 ± 0.0002"),
        (1_774.0, 0.03, "1.77k ± 0.03", "1,774.00 ± 0.03"),
        (0.5, 1e-9, "0.5 ± 1e-09", "0.500 ± 0.000"),
        (2.5e9, 0.0, "2.5G ± 0", "2,500,000,000 ± 0"),
        (999_600.0, None, "1M", "999,600"),
    ],
)
def test_an_estimate_is_written_short_or_exactly(mean, deviation, short, exact):
    """Three digits for the terminal, all of them for files."""
    estimate = estimates.Estimate(mean, deviation)
    assert (estimates.short(estimate), estimates.exact(estimate)) == (short, exact)


def parse_markdown(text):
    """Titles, and rows of cells with the columns first; escaped pipes are pipes."""
    made = []
    for line in text.splitlines():
        if line.startswith("### "):
            made.append((line.removeprefix("### "), []))
        elif line.startswith("|") and "---" not in line:
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            made[-1][1].append(tuple(c.strip().replace("\\|", "|") for c in cells))
    return made


def test_markdown_reads_back_as_the_same_cells(partial):
    """A pipe in a message does not end its cell."""
    expected = [(t.title, [t.names, *shown(t)]) for t in partial]
    assert parse_markdown(tables.markdown(partial)) == expected


def test_markdown_has_no_markup_of_users():
    """Neither in cells nor around the table."""
    hostile = "<b>a</b> | c & d"
    table = tables.Table(
        ANY, hostile, (tables.Column(hostile),), ((hostile,),), (hostile,), hostile
    )
    text = tables.markdown([table])
    assert text.count(r"&lt;b&gt;a&lt;/b&gt; \| c &amp; d") == 5
    assert "<" not in text


def test_csv_has_every_score_in_full(complete):
    """One line for each configuration and budget; the best of each method is marked.

    A method's cells are empty for what tunes another one alone.
    """
    tuned_by_kind = grid.Method({"kind": "b"}, tuned={"kind": "κ"})
    methods = dict(SWEEP.methods) | {"B": tuned_by_kind}
    sweep = dataclasses.replace(SWEEP, methods=methods)
    text = report.comma_separated(load(complete, sweep))
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    assert head == ["method", "configuration", "rate", "kind", "axis", "budget",
                    "reward", "deviation", "points", "is_best", "held_out",
                    "held_out_deviation", "like_best", "published",
                    "published_deviation", "published_configuration"]  # fmt: skip
    apart = [line[10:13] for line in lines]
    assert apart[0][::2] == ["2.0", "True"]
    assert apart[1][:2] == ["", ""]
    published = [line[13:] for line in lines]  # A's best at 100 alone has a number.
    assert published[3] == ["1240.0", "90.0", ""]
    assert [i for i, cells in enumerate(published) if any(cells)] == [3]
    described = [line.pop(1) for line in lines]
    assert described[:3] == ["rate=0.1", "rate=0.2", "κ=b"]
    lines = [line[:9] for line in lines]
    assert {line.pop(3) for line in lines} == {"env_steps"}
    deviations = [float(line.pop(5)) for line in lines]
    assert lines == [
        ["A", "0.1", "", "50.0", "2.0", "2", "True"],
        ["A", "0.2", "", "50.0", "0.375", "2", "False"],
        ["B", "", "b", "50.0", "7.5", "2", "True"],
        ["A", "0.1", "", "100.0", "1100.0", "2", "True"],
        ["A", "0.2", "", "100.0", "600.0", "2", "False"],
        ["B", "", "b", "100.0", "10.5", "2", "True"],
    ]
    # |a − b| / √2, as above.
    assert np.array(deviations) * 2**0.5 == pytest.approx([2, 0.25, 1, 200, 200, 3])


def as_text(made):
    console = rich.console.Console(file=io.StringIO(), width=100)
    tables.text(made, console)
    return console.file.getvalue()


@pytest.mark.parametrize("fixture", ["made", "partial"])
def test_text_contains_every_cell_title_and_note(fixture, request):
    """Literally, though rich gives brackets a meaning; lines may be broken anywhere."""
    made = request.getfixturevalue(fixture)
    text = as_text(made)
    for table in made:
        assert table.title in text
        for row in tables.texts(table, is_exact=False):
            assert all(cell in text for cell in row)
        for note in table.notes:
            assert note in " ".join(text.split())


def test_text_aligns_columns_however_wide():
    """Two left, the others right; a line between groups; nothing is folded."""
    columns = (tables.Column("method"), tables.Column("at"), tables.Column("score"))
    long = "x" * 500
    rows = (("A", "日本", "1"), ("A", long, "2"), ("B", None, "1.5 ± 3"))
    table = tables.Table(ANY, "T", columns, rows)
    assert [line.rstrip() for line in as_text([table]).splitlines()] == [
        "T",
        "method  at" + " " * 498 + "    score",
        "------  " + "-" * 500 + "  -------",
        "A       日本" + " " * 496 + "        1",
        "A       " + long + "        2",
        "",
        "B       –" + " " * 499 + "  1.5 ± 3",
        "",
    ]


def test_text_writes_no_emoji():
    """In an error message, `:b:` is as likely a slice."""
    columns = (tables.Column("c [:b:]"),)
    table = tables.Table(ANY, "T [:b:]", columns, (("x [:b:]",),), ("n [:b:]",))
    assert as_text([table]).count(":b:") == 4


@pytest.mark.parametrize("part", ["title", "columns"])
def test_text_writes_titles_and_columns_literally_too(part):
    """A user's sweep may be titled "[draft] Toy", or its metric be "reward[0]"."""
    table = tables.Table(ANY, "Toy", (tables.Column("what"),), (("x",),))
    name = {"title": "[draft] Toy", "columns": "[a] what"}[part]
    new = name if part == "title" else (tables.Column(name),)
    assert name in as_text([dataclasses.replace(table, **{part: new})])


def test_fresh_seeds_are_compared_with_what_was_selected(complete):
    """A1 was run again on one seed, B has failed."""
    chosen = load(complete).chosen
    before = results.load(complete, chosen, {"env_steps": [100]})
    fresh = toy_point(A1, 7), toy_point(B, 7)
    record(complete, fresh[0], [1, 900], provenance={"device": "H100"})
    claim = display.Claim(text="So.", more="A", less="B")
    sweep = dataclasses.replace(SWEEP, claims=(claim,))
    again = choices.Chosen("toy", sweep, fresh, {"env_steps": 100})
    after = results.load(complete, again, {"env_steps": [100]})
    (claims,) = comparison.claims(after)
    assert claims.about == "scale smoke; seeds 7; trained to 100 env_steps; H100"
    table = comparison.table(before, after)
    assert table.title == "reward at 100 env_steps"
    about = "scale paper; seeds 0–1; trained to 100 env_steps; H100; cpu; fresh seeds 7"
    assert table.about == about
    assert [row[2:] for row in shown(table)] == [
        ("1,100 ± 141", "2", "900.000", "1"),
        ("10.500 ± 2.121", "2", "seed 7: not run", "–"),
    ]


@pytest.mark.parametrize(
    ("mode", "fresh", "expected"),
    [
        # Of the selection: A1 has 1000 and 1200, B 9 and 12: ahead on both, by 1089.5.
        (
            "max",
            {A1: (900, 800), B: (100, 1000)},
            "A had more reward than B on 1 of 2 fresh seeds, by 300 on average; "
            "and on 2 of 2 seeds that it was chosen on, by 1.09k on average.",
        ),
        (
            "max",
            {A1: (1, 2), B: (3, 4)},
            "B had more reward than A on 2 of 2 fresh seeds, by 2 on average; "
            "and on 0 of 2 seeds that it was chosen on, by -1.09k on average.",
        ),
        # A2 has 500 and 700.
        (
            "min",
            {A2: (5, 5), B: (1, 2)},
            "B had less reward than A on 2 of 2 fresh seeds, by 3.5 on average; "
            "and on 2 of 2 seeds that it was chosen on, by 590 on average.",
        ),
        (
            "max",
            {A1: (900, 800)},
            "A has reward 850 on fresh seeds, and had 1.1k before.",
        ),
        ("max", {}, ""),
    ],
)
def test_a_sentence_says_who_was_ahead(complete, mode, fresh, expected):
    """Seed by seed, true either way; a mode of min turns it around."""
    rule = dataclasses.replace(SWEEP.select, mode=mode)
    sweep = dataclasses.replace(SWEEP, select=rule)
    before = results.load(complete, load(complete, sweep).chosen, {"env_steps": [100]})
    points = []
    for arm, rewards in fresh.items():
        for seed, reward in enumerate(rewards, start=7):
            points.append(toy_point(arm, seed))
            record(complete, points[-1], [1, reward])
    again = choices.Chosen("toy", sweep, tuple(points), {"env_steps": 100})
    after = results.load(complete, again, {"env_steps": [100]})
    assert comparison.sentence(before, after) == expected


def blue_pixels(png):
    """Counts them, by panel; the file is a PNG that matplotlib reads."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    pixels = np.round(255 * image.imread(io.BytesIO(png))[..., :3])
    is_blue = np.all(pixels == BLUE, axis=-1)
    return [int(half.sum()) for half in np.split(is_blue, 2, axis=1)]


@pytest.mark.parametrize(
    "window", [{"until": 80}, {"last": 40}, {"until": 80, "last": 40}]
)
def test_a_panel_shows_the_rows_of_its_window(complete, window):
    """The first panel has the rows of 50 and 100, between them a line.

    Up to 80, or within the last 40 steps, one row is left, and the legend's line.
    """
    curve = display.Curve(title="Reward", metric="reward", label="reward")
    curves = curve, dataclasses.replace(curve, **window)
    sweep = dataclasses.replace(SWEEP, curves=curves)
    whole, part = blue_pixels(figures.draw(load(complete, sweep)))
    assert whole > part > 0


@pytest.mark.parametrize(
    ("part", "span"),
    [
        ({}, ""),
        ({"last": 40}, ", 60 to 100 env_steps"),
        ({"until": 80}, ", up to 50 env_steps"),  # The last row before it.
        ({"until": 6_000_000, "last": 400_000}, ", up to 100 env_steps"),
    ],
)
def test_a_panel_says_which_part_is_drawn(complete, drawn, part, span):
    """Also where the run is shorter than what the panel would show."""
    curve = display.Curve(title="Reward", metric="reward", label="reward", **part)
    figures.draw(load(complete, dataclasses.replace(SWEEP, curves=(curve,))))
    assert drawn[0].axes[0].get_title() == f"Reward{span}"


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        ([0, 50_000, 400_000], ["0", "50k", "400k"]),
        ([1_000_000, 1_000_500, 2e6], ["1M", "1.0005M", "2M"]),
        ([-0.1, 1e-17, 0.3], ["-0.1", "0", "0.3"]),
    ],
)
def test_numbers_of_both_axes_are_written_in_thousands_and_millions(
    complete, drawn, ticks, labels
):
    """Without an offset such as 1e4 at the end of the axis."""
    best = display.Best(title="Best", label="reward", axis="env_steps")
    sweep = dataclasses.replace(SWEEP, curves=(*SWEEP.curves, best))
    figures.draw(load(complete, sweep))
    for panel in (drawn[0].axes[0], drawn[0].axes[2]):
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_ticks(ticks)
            assert [tick.get_text() for tick in axis.get_ticklabels()] == labels
            assert axis.get_offset_text().get_text() == ""


def one_row(amounts):
    """Rows at these amounts alone."""
    number = len(amounts)
    return {"env_steps": amounts, "reward": [5.0] * number, "weight": [0.5] * number,
            "training_seconds": [2.0] * number}  # fmt: skip


@pytest.mark.parametrize("others", [[100], [50, 100]])
def test_runs_with_a_single_row_in_common_are_drawn_as_a_marker(storage, drawn, others):
    """A line needs two numbers."""
    for seed, amounts in enumerate(([100], others)):
        record(storage, toy_point(A1, seed), [], rows=one_row(amounts))
    loaded = load(storage, arms=(A1,))
    amounts, values = curves.curve(loaded.trained, "env_steps", "reward")
    assert (amounts.tolist(), values.tolist()) == ([100], [[5.0], [5.0]])
    figures.draw(loaded)
    (line,) = drawn[0].axes[0].get_lines()
    assert (list(line.get_xdata()), line.get_marker()) == ([100], "o")


def test_a_method_that_is_not_at_the_furthest_budget_is_named(storage, drawn):
    """B has trained to 50 of 100: its curve is not there, and the title says so."""
    for seed in (0, 1):
        record(storage, toy_point(A1, seed), [1, 1000])
        record(storage, toy_point(B, seed), [7, 9], progress={"env_steps": 50})
    figures.draw(load(storage, arms=(A1, B)))
    only_a = tuple(dataclasses.replace(c, methods=("A",)) for c in SWEEP.curves)
    sweep = dataclasses.replace(SWEEP, curves=only_a)
    figures.draw(load(storage, sweep, arms=(A1, B)))
    titles = [figure.get_suptitle().splitlines() for figure in drawn]
    assert titles[0][1:] == ["No curve of B: none is complete at 100 env_steps"]
    assert titles[1][1:] == []


def test_without_rows_there_are_empty_panels(storage):
    """A report before the first launch has a figure all the same."""
    assert blue_pixels(figures.draw(load(storage))) == [0, 0]


def test_a_number_that_was_not_finite_is_not_drawn(complete):
    """A gap in the first panel, since a line needs two numbers; the rest is drawn."""
    whole = blue_pixels(figures.draw(load(complete)))
    record(complete, toy_point(A1, 1), [None, 1200])
    gap = blue_pixels(figures.draw(load(complete)))
    assert 0 < gap[0] < whole[0]
    assert gap[1] == whole[1]


def test_a_sweep_without_curves_can_be_drawn(complete):
    """`curves` is empty unless said otherwise."""
    sweep = dataclasses.replace(SWEEP, curves=())
    assert figures.draw(load(complete, sweep)).startswith(b"\x89PNG")


def test_a_range_is_filled_and_a_panel_shows_its_methods(complete):
    """Of B nothing is blue; the range of A is an area, in a lighter blue."""
    curve = display.Curve(title="Range", metric="reward", label="reward", to="weight")
    other = dataclasses.replace(curve, methods=("B",))
    line = dataclasses.replace(curve, to=None)
    areas = []
    for panels in ((curve, other), (line, other)):
        png = figures.draw(load(complete, dataclasses.replace(SWEEP, curves=panels)))
        pixels = np.round(255 * image.imread(io.BytesIO(png))[..., :3])
        is_blueish = (pixels[..., 2] - pixels[..., 0] > 40) & (pixels[..., 0] < 200)
        areas.append([half.sum() for half in np.split(is_blueish, 2, axis=1)])
    assert areas[0][0] > 3 * areas[1][0]


def test_panels_of_one_label_have_one_scale(complete, drawn):
    """B's rewards, 7 to 12, are drawn on the scale of A's, to 1,200; weights are not.

    Four panels are two rows of two.
    """
    curve = display.Curve(title="Reward", metric="reward", label="reward")
    weight = display.Curve(title="Weight", metric="weight", label="weight")
    of_b = dataclasses.replace(curve, methods=("B",))
    shown = (curve, of_b, weight, weight)
    figures.draw(load(complete, dataclasses.replace(SWEEP, curves=shown)))
    panels = drawn[0].axes
    assert panels[0].get_ylim() == panels[1].get_ylim()
    assert panels[0].get_ylim() != panels[2].get_ylim()
    (top, right, below, _) = (panel.get_position() for panel in panels)
    assert top.y0 == right.y0 > below.y1
    assert top.x0 == below.x0


def test_no_two_of_many_lines_look_the_same(storage, drawn):
    """Six colors, and a dash for each round of them."""
    kinds = "abcdefghijklmnop"
    arms = [(kind, 0.1) for kind in kinds]
    for arm, seed in itertools.product(arms, (0, 1)):
        record(storage, toy_point(arm, seed), [1, 2])
    methods = {kind: grid.Method({"kind": kind}, tuned={}) for kind in kinds}
    figures.draw(load(storage, dataclasses.replace(SWEEP, methods=methods), arms))
    lines = drawn[0].axes[0].get_lines()
    styles = {(line.get_color(), line.get_linestyle()) for line in lines}
    assert len(styles) == len(lines) == len(kinds)


def test_a_figure_says_that_it_shows_the_best_where_there_was_a_choice(complete, drawn):
    figures.draw(load(complete))
    figures.draw(load(complete, arms=(A1, B)))
    titles = [figure.get_suptitle() for figure in drawn]
    assert titles == ["Toy (scale paper; best of each method)", "Toy (scale paper)"]


def test_a_legend_counts_the_seeds_of_a_line(complete, drawn):
    """One seed holds nothing out."""
    whole = load(complete)
    figures.draw(whole)
    points = tuple(p for p in whole.chosen.points if p.values["seed"] == 0)
    chosen = dataclasses.replace(whole.chosen, points=points)
    figures.draw(results.load(complete, chosen))
    labels = [f.axes[0].get_lines()[0].get_label() for f in drawn]
    assert labels == ["A rate=0.1, 2 seeds, held out 1.1k", "A rate=0.1, 1 seed"]


def test_a_method_of_one_configuration_has_its_name_alone(complete):
    """Where nothing tells its configurations apart."""
    method = grid.Method(SWEEP.methods["A"].values, tuned={})
    sweep = dataclasses.replace(SWEEP, methods=SWEEP.methods | {"A": method})
    values = load(complete, sweep).trained[0].point.values
    assert grid.name(sweep, values) == "A"
    assert grid.name(SWEEP, values).startswith("A ")
