"""The page of a sweep, as a browser shows it: opened from disk, without a network."""

import contextlib
import dataclasses
import html
import itertools
import pathlib
import re
import shlex
import shutil
import statistics

import command_words
import numpy as np
import pytest

from bmg_sweeps.analysis import readings, results
from bmg_sweeps.records import manifests, store
from bmg_sweeps.reporting import charts, index, page, report, tables
from bmg_sweeps.sweep import choices, display, grid
from bmg_sweeps.sweep.point import Point

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
STOP = {"env_steps": 1000, "hours": 1.0}
AMOUNTS = range(50, 1001, 50)


def published(method, mean, **values):
    """A published number at the last budget."""
    return display.PublishedBest(method=method, budget=1000, mean=mean, **values)


SWEEP = grid.Sweep(
    title="Toy",
    trainer="toy",
    scales={},
    select=grid.Select(
        metric="reward", mode="max", budgets={"env_steps": 2, "hours": (0.5, 1.0)}
    ),
    methods={
        "A": grid.Method({"kind": "a"}, tuned={"rate": "β"}),
        "B": grid.Method({"kind": "b"}, tuned={"rate": "β"}),
    },
    curves=(
        display.Curve(title="Reward", metric="reward", label="total reward"),
        display.Curve(title="Weight", metric="weight", label="ε", last=300),
    ),
    published=display.Published(
        best=(
            published("A", 1240.0, deviation=90.0, source="Somebody, Table 1"),
            published("optimal", 2000.5, source="Somebody, Table 2"),
        )
    ),
)
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</script></title></style><h1>out</h1><!--",
    "{{7*7}} %{x} & &lt;",
    "<b>bold</b><br><a href='javascript:alert(3)'>link</a>",
)


def reward(kind, rate, seed, amount):
    """Where A is best with 0.2 and B with 0.1, and seeds differ by 8 % a step."""
    slope = {"a": 1.0 + rate, "b": 0.5 - rate}[kind]
    return amount * slope * (1 + 0.08 * seed)


def trained_point(kind, rate, seed, until=1000, provenance=None, **manifest):
    """A point with rows up to somewhere, as `readings.load` reads it."""
    amounts = [n for n in AMOUNTS if n <= until]
    rows = {
        "env_steps": amounts,
        "reward": [reward(kind, rate, seed, n) for n in amounts],
        "weight": [0.5 / n for n in amounts],
        "hours": [n / 1000 + seed / 7000 for n in amounts],
    }
    p = Point("toy", {"kind": kind, "rate": rate, "seed": seed})
    made = {"revision": "abc", "device": "cpu", "threads": 1, "packages": {"jax": "1"}}
    progress = {"env_steps": until, "hours": rows["hours"][-1]} if until else {}
    made = manifests.Provenance.of(made | (provenance or {}) if until else {})
    manifest = {"progress": progress, "provenance": made} | manifest
    record = store.Record("toy", p.id, manifests.Manifest(**manifest))
    return readings.Trained(p, record, rows if until else {})


def complete(rates=(0.1, 0.2), seeds=range(3)):
    """Every combination, trained to the stop rule."""
    return [trained_point(*of) for of in itertools.product("ab", rates, seeds)]


def choose(trained, sweep=SWEEP, name="toy", **choice):
    choice = choices.Choice(**{"scale": "paper"} | choice)
    return choices.Chosen(name, sweep, tuple(t.point for t in trained), STOP, choice)


def write(trained, storage="runs", **keywords):
    """The page's text."""
    chosen = choose(trained, **keywords)
    return page.page(results.without_tests(chosen, trained), storage)


def data(trained, sweep=SWEEP):
    """What the charts are given."""
    return charts.data(results.without_tests(choose(trained, sweep), trained))


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium; without one there is nothing to look at."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    from playwright import sync_api

    unneeded = ("gpu", "software-rasterizer", "extensions")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=path, args=[f"--disable-{one}" for one in unneeded]
        )
        yield launched
        launched.close()


@contextlib.contextmanager
def viewer(browser, folder):
    """A function that opens a page's text from disk, and what the pages said.

    Each is in a context of its own: beside others in one, charts are drawn later.
    """
    heard = []
    with contextlib.ExitStack() as stack:

        def view(text, name="toy-paper.html", **options):
            (folder / name).write_text(text, encoding="utf-8")
            options = {"viewport": {"width": 1400, "height": 900}} | options
            context = stack.enter_context(browser.new_context(**options))
            context.set_default_timeout(20_000)
            shown = context.new_page()
            shown.on("console", lambda message: heard.append(message.text))
            shown.on("pageerror", lambda error: heard.append(str(error)))
            shown.on(
                "dialog", lambda dialog: (heard.append("dialog"), dialog.dismiss())
            )
            shown.on("request", lambda request: heard.append(request.url))
            address = (folder / name).as_uri()
            shown.goto(address)
            heard.remove(address)
            return shown

        yield view, heard


def said(heard):
    """What a page must not: anything at all, but for the icon that is in it."""
    return [one for one in heard if not one.startswith("data:")]


@pytest.fixture
def view(browser, tmp_path):
    """Opens pages; fails if they said or fetched anything."""
    with viewer(browser, tmp_path) as (view, heard):
        yield view
        assert said(heard) == []


@pytest.fixture(scope="module")
def pages(browser, tmp_path_factory):
    """Pages that stay open, since a page takes a second to open; and what they said."""
    rates = [i / 100 for i in range(60)]
    other = trained_point("a", 0.1, 1, provenance={"device": "H100"})
    other.rows["reward"][3] = None
    with viewer(browser, tmp_path_factory.mktemp("pages")) as (view, heard):
        made = {
            "toy": view(write(complete())),
            "many": view(write([trained_point("a", rate, 0) for rate in rates])),
            "odd": view(write([trained_point("a", 0.1, 0), other])),
        }
        yield made, heard


@pytest.fixture
def toy(pages):
    """The page of four configurations, as it is when it opens."""
    made, heard = pages
    toy = made["toy"]
    toy.set_viewport_size({"width": 1400, "height": 900})
    toy.get_by_label("env_steps", exact=True).check()
    toy.get_by_role("button", name="Best only").click()
    yield toy
    assert said(heard) == []


@pytest.fixture
def many(pages):
    """The page of 60 configurations, which is too long to be all unfolded."""
    made, heard = pages
    yield made["many"]
    assert said(heard) == []


@pytest.fixture
def odd(pages):
    """The page of two seeds on two devices, one with a number that is not finite."""
    made, heard = pages
    made["odd"].get_by_label("env_steps", exact=True).check()
    yield made["odd"]
    assert said(heard) == []


def legend(shown):
    """Texts of the legend, which names what the charts show."""
    return [" ".join(t.split()) for t in shown.locator(".legend li").all_inner_texts()]


def lines(shown, panel=0):
    """Plotly's own lines of a chart; bands, of which there are as many, left out."""
    traces = shown.evaluate(
        "i => document.querySelectorAll('.plot')[i].data.map("
        "({x, y, mode, name}) => ({x, y, mode, name}))",
        panel,
    )
    return [t for t in traces if t["mode"] == "lines+markers"]


def table(shown, title):
    """The cells of the table with a caption, as text, its head first."""
    found = shown.locator("table").filter(has=shown.locator("caption", has_text=title))
    return found.first.evaluate(
        "t => [...t.rows].map(r => [...r.cells].map(c => c.textContent.trim()))"
    )


A1, A2 = ["A β=0.1 3 seeds", "A β=0.2 3 seeds"]
B1, B2 = ["B β=0.1 3 seeds", "B β=0.2 3 seeds"]
PUBLISHED = ["A, published", "optimal, published"]


def test_the_best_of_each_method_are_shown_and_nothing_is_fetched(toy):
    """Without a word on the console; lines in both panels, published marks in one."""
    assert legend(toy) == [A2, B1, *PUBLISHED]
    assert [line["name"] for line in lines(toy)] == ["A β=0.2", "B β=0.1"]
    assert len(lines(toy, 1)) == 2
    drawn = toy.locator("#curves .plot .scatterlayer .trace")
    assert drawn.count() == 2 * (2 + 2) + 2
    assert toy.locator("#curves .plot .errorbar").count() == 1


def test_the_buttons_show_the_best_all_and_none(toy):
    """Each redraws the charts, and says how many of how many."""
    for name, expected in {
        "All": [A1, A2, B1, B2],
        "None": [],
        "Best only": [A2, B1],
    }.items():
        toy.get_by_role("button", name=name).click()
        assert legend(toy) == expected + PUBLISHED
        assert len(lines(toy)) == len(expected)
        count = f"{len(expected)} of 4"
        assert toy.locator(".count").inner_text() == f"{count} shown"
        label = toy.locator(".plot").first.get_attribute("aria-label")
        assert label == f"Reward over env_steps: {count} configurations"


def test_a_configuration_is_toggled_with_the_keyboard_alone(toy):
    """From the last button, Tab leads to the first box; its label names it."""
    toy.get_by_role("button", name="None").focus()
    toy.keyboard.press("Tab")
    toy.keyboard.press("Tab")  # The list scrolls, so it may be a stop of its own.
    box = toy.get_by_role("group", name="A").get_by_label("β=0.1")
    if not box.evaluate("box => box === document.activeElement"):
        toy.keyboard.press("Shift+Tab")
    assert box.evaluate("box => box === document.activeElement")
    outline = box.evaluate("box => getComputedStyle(box).outlineStyle")
    assert outline == "solid"
    toy.keyboard.press("Space")
    assert legend(toy) == [A1, A2, B1, *PUBLISHED]
    toy.keyboard.press("Space")
    assert legend(toy) == [A2, B1, *PUBLISHED]


def test_the_axis_that_is_chosen_is_that_of_curves_and_tables(toy):
    """By keyboard, too. On hours nothing is published, and budgets are others."""
    sections = toy.locator("[data-axis]")
    assert [one.is_visible() for one in sections.all()] == [True, False]
    before = lines(toy)[0]["x"]
    toy.get_by_label("env_steps", exact=True).focus()
    toy.keyboard.press("ArrowRight")
    assert [one.is_visible() for one in sections.all()] == [False, True]
    assert legend(toy) == [A2, B1]
    after = lines(toy)[0]["x"]
    assert before == list(AMOUNTS)
    assert max(after) <= 1
    assert toy.locator("#curves .below").all_inner_texts() == ["hours", "hours"]
    title = sections.nth(1).locator("caption span").first.inner_text()
    assert title == "Best at 1 hours"


def expected(kind, rate, amount):
    """Mean and deviation, by the standard library."""
    rewards = [reward(kind, rate, seed, amount) for seed in range(3)]
    return statistics.fmean(rewards), statistics.stdev(rewards)


def test_the_tables_have_the_records_numbers(toy):
    """At 1000, A's seeds have 1200, 1296 and 1392, and B's 400, 432 and 464."""
    head, *rows = table(toy, "Best at 1,000 env_steps")
    assert head[:3] == ["method", "selected", "reward"]
    assert rows == [
        ["A", "β=0.2", *["1,296 ± 96"] * 2, "2 / 2", "3", "2 / 2", "1,240 ± 90", "+56"],
        ["B", "β=0.1", *["432.000 ± 32.000"] * 2, "1 / 2", "3", "2 / 2", "–", "–"],
    ]
    head, *rows = table(toy, "Best by reward for each budget")
    assert [row[:4] for row in rows[:2]] == [
        ["500", "A", "β=0.2", "648.000 ± 48.000"],
        ["500", "B", "β=0.1", "216.000 ± 16.000"],
    ]
    assert table(toy, "Published numbers")[1:] == [
        ["A", "1,000", "1,240 ± 90", "1,296 ± 96", "β=0.2", "+56", "Somebody, Table 1"],
        ["optimal", "1,000", "2,000", "–", "–", "–", "Somebody, Table 2"],
    ]
    for row in table(toy, "reward of every configuration")[1:]:
        kind, rate = row[0].lower(), float(row[1].removeprefix("β="))
        for cell, amount in zip(row[2:4], (500, 1000), strict=True):
            numbers = [float(n.replace(",", "")) for n in cell.split(" ± ")]
            assert numbers == pytest.approx(expected(kind, rate, amount), rel=1e-3)


def test_a_table_of_many_numbers_has_them_in_full_on_hover():
    """Five budgets are written with three digits; the title has all."""
    budgets = {"env_steps": 5, "hours": 1}
    select = dataclasses.replace(SWEEP.select, budgets=budgets)
    text = write(complete(), sweep=dataclasses.replace(SWEEP, select=select))
    assert '<td class="number" title="1,296 ± 96">1.3k ± 96</td>' in text


def test_numbers_are_flush_right_by_the_kind_of_their_column():
    """A point's id may begin with a digit; a field's values may be words."""
    columns = (
        *(tables.Column("point"), tables.Column("K", "value")),
        *(tables.Column("kind", "value"), tables.Column("mean", "estimate")),
    )
    rows = (("3f2a", 7, "1", None), ("12", None, "x", "not run"))
    key = tables.Key(tables.Kind.TROUBLE)
    view = page._view(tables.Table(key, "T", columns, rows))
    assert [column.is_number for column in view["columns"]] == [
        False,
        True,
        False,
        True,
    ]


def test_the_curves_have_the_records_numbers():
    """Mean and sample deviation at every amount, to five and three digits."""
    made = data(complete())
    for i, one in enumerate(made["configurations"]):
        place, means, deviations = made["axes"][0]["panels"][0]["lines"][i]
        assert made["amounts"][place] == list(AMOUNTS)
        kind, rate = one["method"].lower(), float(one["label"].removeprefix("β="))
        exact = np.array([expected(kind, rate, n) for n in AMOUNTS])
        np.testing.assert_allclose(means, exact[:, 0], rtol=1e-4)
        np.testing.assert_allclose(deviations, exact[:, 1], rtol=1e-2)


def test_a_chart_says_which_part_of_the_axis_it_shows(toy):
    """Its last 300 steps; on hours, those in which they were trained."""
    titles = toy.locator("#curves figure h3")
    assert titles.all_inner_texts() == ["Reward", "Weight, 700 to 1k env_steps"]
    toy.get_by_label("hours", exact=True).check()
    assert titles.all_inner_texts()[0] == "Reward"
    found = re.fullmatch(r"Weight, (0\.\d+) to 1 hours", titles.all_inner_texts()[1])
    assert 0.75 <= float(found[1]) < 0.76 + 2 / 7


def test_axes_are_written_in_thousands(view):
    """Of 1000 times as many steps and rewards."""
    one = trained_point("a", 0.2, 0)
    rows = {k: [1000 * n for n in one.rows[k]] for k in ("env_steps", "reward")}
    manifest = manifests.Manifest(progress={"env_steps": 1e6})
    record = dataclasses.replace(one.record, manifest=manifest)
    trained = [dataclasses.replace(one, record=record, rows=one.rows | rows)]
    select = dataclasses.replace(SWEEP.select, budgets={"env_steps": 2})
    chosen = choose(trained, dataclasses.replace(SWEEP, select=select, published=None))
    chosen = dataclasses.replace(chosen, stop={"env_steps": 1e6})
    shown = view(page.page(results.without_tests(chosen, trained), "runs"))
    plot = shown.locator(".plot").first
    ends = [plot.locator(f".{x}tick text").last.text_content() for x in "xy"]
    assert ends == ["1M", "1.2M"]
    assert plot.locator(".xtick text").nth(1).text_content() == "0.2M"


def test_a_panels_window_is_the_same_on_every_axis():
    """Its last 300 steps are those from 750 on, which begin at 0.75 hours."""
    made = data(complete())
    amounts = made["amounts"]
    on_steps, on_hours = (axis["panels"][1]["lines"][0] for axis in made["axes"])
    assert amounts[on_steps[0]] == [750, 800, 850, 900, 950, 1000]
    assert 0.75 <= amounts[on_hours[0]][0] < 0.76 + 2 / 7
    assert amounts[on_hours[0]][-1] == 1


def test_seeds_are_averaged_over_tasks_before_they_deviate():
    """Two tasks of one seed are one run: no deviation, and the mean of both."""
    points = [Point("toy", {"kind": "a", "seed": 0, "task": i}) for i in (0, 1)]
    trained = [
        readings.Trained(
            p,
            store.Record("toy", p.id, manifests.Manifest(progress=STOP)),
            {"env_steps": [500, 1000], "reward": [i, 2 + i], "hours": [0.5, 1.0]},
        )
        for i, p in enumerate(points)
    ]
    select = dataclasses.replace(SWEEP.select, over=("seed", "task"))
    methods = {"A": grid.Method({"kind": "a"}, tuned={})}
    sweep = dataclasses.replace(SWEEP, select=select, methods=methods, curves=())
    assert data(trained, sweep)["axes"][0]["panels"][0]["lines"] == {0: [0, [0.5, 2.5]]}


def test_hours_of_a_pack_are_not_drawn():
    """They are not its points' own, nor of those that left it; on steps is a line."""
    left = {"pack_width": 1, "left_pack": "it raised", "revisions": ("abc",)}
    for packed in ({"pack_width": 3}, left):
        trained = [trained_point("a", 0.1, s, provenance=packed) for s in (0, 1)]
        on_steps, on_hours = data(trained)["axes"]
        assert list(on_steps["panels"][0]["lines"]) == [0]
        assert on_hours["panels"][0]["lines"] == {}


def test_a_number_that_is_not_finite_is_a_gap(odd):
    """Of line and band; JSON has no NaN."""
    assert [i for i, y in enumerate(lines(odd)[0]["y"]) if y is None] == [3]
    band = odd.evaluate("document.querySelector('.plot').data[0]")
    # Each part is its amounts there and back, and a break; 3 before the gap, 16 after.
    assert [i for i, x in enumerate(band["x"]) if x is None] == [6, 6 + 1 + 32]
    assert len(band["x"]) == len(band["y"])


def hostile():
    """A sweep and records in which everything that a user says is hostile."""
    methods = {text: grid.Method({"kind": text}, {"rate": text}) for text in HOSTILE}
    curve = display.Curve(title=HOSTILE[1], metric="reward", label=HOSTILE[4])
    sweep = dataclasses.replace(
        SWEEP, title=" ".join(HOSTILE), methods=methods, curves=(curve,)
    )
    trained = []
    for text, seed in itertools.product(HOSTILE, (0, 1)):
        one = trained_point("a", 0.1, seed, provenance={"revision": text})
        p = Point("toy", {"kind": text, "rate": text, "seed": seed})
        record = dataclasses.replace(one.record, id=p.id)
        trained.append(dataclasses.replace(one, point=p, record=record))
    failure = manifests.Failure(
        "failed", 2, HOSTILE[0], " ".join(HOSTILE), (HOSTILE[4],)
    )
    manifest = manifests.Manifest(progress={"env_steps": 50}, failure=failure)
    record = dataclasses.replace(trained[0].record, manifest=manifest)
    trained[0] = dataclasses.replace(trained[0], record=record)
    return sweep, trained


def test_what_users_say_is_text_and_never_markup(view):
    """In title, methods, values, messages, revisions, legend and the charts' labels."""
    from playwright import sync_api

    sweep, trained = hostile()
    shown = view(write(trained, sweep=sweep, name="<b>.py", storage=HOSTILE[1]))
    shown.get_by_role("button", name="All").click()
    assert shown.locator("h1").all_inner_texts() == [sweep.title]
    assert shown.title() == f"{sweep.title} – paper"
    # Ours are those of the legend and of the page; nobody else's element is there.
    assert shown.locator("main img, main a, td b, .plot b, .plot a").count() == 0
    assert shown.locator("script").count() == 3
    assert legend(shown)[0] == f"{HOSTILE[0]} {HOSTILE[0]}={HOSTILE[0]} 2 seeds"
    error = table(shown, "Points that failed")[1][-1]
    assert error == f"{HOSTILE[0]}: {' '.join(HOSTILE)} ({HOSTILE[4]})"
    assert shown.locator("legend").all_inner_texts()[1:] == list(HOSTILE)
    assert "49" not in shown.locator("body").inner_text()
    # Plotly reads some markup, entities and its own templates.
    assert len(lines(shown)) == len(HOSTILE)
    for i, text in enumerate(HOSTILE):
        hover(shown, i)
        label = shown.locator(".hovertext .nums")
        sync_api.expect(label).to_contain_text(f"{text} {text}={text}")


def test_values_on_an_axis_are_text_and_never_markup(view):
    """Of the first method a seed has failed; the others' rates are in order."""
    sweep, trained = hostile()
    panel = display.Best(title="Best", label="reward", axis="env_steps", by="rate")
    shown = view(write(trained, sweep=dataclasses.replace(sweep, curves=(panel,))))
    ticks = shown.locator(".plot .xtick").all_text_contents()
    assert ticks == sorted(HOSTILE[1:])
    assert shown.locator(".plot b, .plot a, .plot img").count() == 0


def hover(shown, number):
    """Points at the line of that number in a chart; its label follows shortly."""
    shown.evaluate(
        """number => {
            const chart = document.querySelector(".plot");
            const lines = [...chart.data.keys()].filter(
                i => chart.data[i].mode === "lines+markers");
            Plotly.Fx.hover(chart, [{curveNumber: lines[number], pointNumber: 10}]);
        }""",
        number,
    )


def test_panels_of_the_best_are_drawn_by_method(view):
    """At each budget, with bars over seeds and stars, or by the values of a field."""
    best = [
        display.Best(title="Best", label="reward", axis="env_steps"),
        display.Best(title="Best of β", label="reward", axis="env_steps", by="rate"),
    ]
    sweep = dataclasses.replace(SWEEP, curves=(SWEEP.curves[0], *best))
    shown = view(write(complete(), sweep=sweep))
    hollow = "hollow and dotted: held out"
    names = [A2, B1, "A selected", "B selected", hollow, *PUBLISHED]
    assert legend(shown) == names
    assert [(one["name"], one["x"]) for one in lines(shown, 1)] == [
        (name, [500, 1000]) for name in ("A", "B", "A, held out", "B, held out")
    ]
    # Any two seeds choose the same.
    assert lines(shown, 1)[2]["y"] == pytest.approx([648, 1296])
    assert lines(shown, 1)[0]["y"] == pytest.approx([648, 1296])  # As in the table.
    assert shown.locator(".plot").nth(1).locator(".errorbar").count() == 2 * 2 + 1
    of_rates = shown.evaluate("() => document.querySelectorAll('.plot')[2].data")
    assert [(one["name"], one["x"], one["mode"]) for one in of_rates] == [
        ("A", ["0.1", "0.2"], "markers"),
        ("B", ["0.1", "0.2"], "markers"),
    ]
    layout = "() => document.querySelectorAll('.plot')[2].layout.xaxis"
    order = shown.evaluate(layout)
    assert (order["type"], order["categoryarray"]) == ("category", ["0.1", "0.2"])
    assert shown.locator("#curves .below").all_inner_texts() == [
        "env_steps",
        "env_steps",
        "β",
    ]
    assert shown.locator(".chooser").is_visible()


RANGE = display.Curve(
    title="Range",
    metric="reward",
    to="weight",
    label="reward to weight",
    methods=("B",),
)


def test_a_panel_of_ranges_has_both_ends_and_only_its_methods():
    made = data(complete(), dataclasses.replace(SWEEP, curves=(RANGE,)))
    assert made["panels"][0]["is_range"]
    drawn = made["axes"][0]["panels"][0]["lines"]
    assert [made["configurations"][i]["method"] for i in drawn] == ["B", "B"]
    for i, (place, rewards, weights) in drawn.items():
        rate = float(made["configurations"][i]["label"].removeprefix("β="))
        exact = [expected("b", rate, n)[0] for n in AMOUNTS]
        assert made["amounts"][place] == list(AMOUNTS)
        np.testing.assert_allclose(rewards, exact, rtol=1e-4)
        np.testing.assert_allclose(weights, [0.5 / n for n in AMOUNTS], rtol=1e-4)


def test_a_range_is_filled_from_one_end_to_the_other(view):
    sweep = dataclasses.replace(SWEEP, curves=(RANGE, SWEEP.curves[0]))
    shown = view(write(complete(), sweep=sweep))
    band, line = shown.evaluate("() => document.querySelector('.plot').data")
    number = len(AMOUNTS)
    assert band["y"][:number] == line["y"]
    assert band["y"][number : 2 * number] == list(reversed(line["customdata"]))
    assert line["name"].startswith("B ")
    assert " to %{customdata" in line["hovertemplate"]
    assert len(lines(shown, 1)) == 2  # The other panel has both methods.
    assert "shaded range" in shown.locator("#curves .note").last.inner_text()
    assert "shaded range" not in write(complete())


def test_without_curves_of_configurations_there_are_none_to_choose(view):
    """Only the best of each method are drawn."""
    best = display.Best(title="Best", label="reward", axis="env_steps")
    shown = view(write(complete(), sweep=dataclasses.replace(SWEEP, curves=(best,))))
    assert legend(shown)[:2] == ["A selected", "B selected"]
    assert not shown.locator(".chooser").is_visible()


def test_columns_that_belong_together_have_a_head_of_their_own(view):
    """Of the paper's form: its first row spans the columns of a method."""
    selected = published("A", 1240.5, source="Somebody", selected={"β": 0.3})
    others = display.Published(best=(selected,))
    shown = view(write(complete(), sweep=dataclasses.replace(SWEEP, published=others)))
    groups, head, *rows = table(shown, "Best by reward for each budget")
    assert groups == ["", "A", "A published", "B", "B published"]
    spans = shown.locator("th[scope=colgroup]").evaluate_all(
        "cells => cells.map((cell) => cell.colSpan)"
    )
    assert spans == [3, 3, 3, 3]
    assert head == ["env_steps", *(["β", "reward", "held out", "β", "reward", "Δ"] * 2)]
    ours = ["1,000", "0.2", *["1.3k ± 96"] * 2]  # In full on hover: there are many.
    assert rows[-1][:7] == [*ours, "0.3", "1240.5", "+55.5"]


def test_a_page_is_small_enough_to_mail():
    """500 points of 250 configurations, two panels, two axes, ten budgets: 6 MB."""
    amounts = np.arange(1, 401) * 25_000
    random = np.random.default_rng(0)
    trained = []
    for rate, seed in itertools.product(range(250), (0, 1)):
        rows = {
            "env_steps": amounts.tolist(),
            "reward": random.normal(1e6, 1e5, 400).tolist(),
            "weight": random.uniform(size=400).tolist(),
            "hours": np.cumsum(random.uniform(0, 0.025, 400)).tolist(),
        }
        p = Point("toy", {"kind": "ab"[rate % 2], "rate": rate / 7, "seed": seed})
        progress = {"env_steps": 10_000_000, "hours": rows["hours"][-1]}
        record = store.Record("toy", p.id, manifests.Manifest(progress=progress))
        trained.append(readings.Trained(p, record, rows))
    select = dataclasses.replace(
        SWEEP.select, budgets={"env_steps": 10, "hours": tuple(np.arange(1, 11) * 0.4)}
    )
    sweep = dataclasses.replace(SWEEP, select=select)
    chosen = dataclasses.replace(
        choose(trained, sweep), stop={"env_steps": 10_000_000, "hours": 4.0}
    )
    found = results.without_tests(chosen, trained)
    text = page.page(found, "runs")
    assert len(text.encode()) < 6_000_000
    lines = charts.data(found)["axes"][0]["panels"][0]["lines"]
    assert len(lines) == 250
    assert min(len(line[1]) for line in lines.values()) >= 20


def test_lines_can_be_told_apart(many):
    """Each of 60 configurations has its own color, dash and marker together."""
    swatches = many.eval_on_selector_all(
        ".chooser .swatch", "all => all.map(one => one.innerHTML)"
    )
    assert len(swatches) == 60
    assert len(set(swatches)) == 60
    many.locator("summary", has_text="Choose configurations").click()
    many.get_by_role("button", name="All").click()
    drawn = many.evaluate(
        "document.querySelector('.plot').data.filter(t => t.mode === 'lines+markers')"
        ".map(t => t.line.color + t.line.dash + t.marker.symbol)"
    )
    assert len(set(drawn)) == 60


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_runs_over_the_windows_edge(toy, width):
    """Tables and commands scroll inside their own box; charts fit, side by side."""
    toy.set_viewport_size({"width": width, "height": 800})
    inner = width - 30  # Room for margins at least.
    toy.wait_for_function(
        "inner => [...document.querySelectorAll('.main-svg')].every("
        "svg => svg.getBoundingClientRect().width < inner)",
        arg=inner,
    )
    assert toy.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [one.bounding_box() for one in toy.locator("#curves figure").all()]
    assert all(box["x"] + box["width"] <= width for box in boxes)
    assert len({box["y"] for box in boxes}) == (1 if width == 1400 else 2)
    over = toy.eval_on_selector_all(
        ".scroll", "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
    )
    assert (over > 0) == (width == 400)


def test_long_claims_are_broken_into_lines(view):
    claims = (display.Claim(text="A earns " + "much " * 15, more="A", less="B"),)
    sweep = dataclasses.replace(SWEEP, claims=claims)
    shown = view(write(complete(), sweep=sweep))
    box = shown.locator(".scroll", has=shown.locator("[data-kind=claims]")).first
    assert box.evaluate("one => one.scrollWidth <= one.clientWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_color_schemes(toy, scheme):
    """Ink and ground, the charts' too, differ by 7 to 1, as WCAG measures it."""
    toy.emulate_media(color_scheme=scheme)
    ground = luminance(toy, "body", "background-color")
    assert (ground > 0.5) == (scheme == "light")
    for selector, kind in ("h1", "color"), (".plot .xtick text", "fill"):
        ink = luminance(toy, selector, kind)
        low, high = sorted((ink, ground))
        assert (high + 0.05) / (low + 0.05) > 7


def luminance(shown, selector, kind):
    """Relative luminance of a color that is in force."""
    style = f"one => getComputedStyle(one)['{kind}']"
    color = shown.locator(selector).first.evaluate(style)
    channels = [int(n) / 255 for n in re.findall(r"\d+", color)[:3]]
    linear = [
        c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    ]
    return np.dot(linear, (0.2126, 0.7152, 0.0722))


def test_on_paper_everything_is_open_and_nothing_is_a_control(many):
    """Seen from within, between the events before and after printing."""
    folded = many.locator("details.table")
    assert folded.count() > 0
    assert not any(one.get_attribute("open") is not None for one in folded.all())
    many.evaluate("""window.addEventListener("beforeprint", () => {
        const all = [...document.querySelectorAll("details.table")];
        window.seen = [all.every(one => one.open), document.querySelector(".main-svg")
            .getBoundingClientRect().width];
    })""")
    many.pdf(format="A4")
    is_open, width = many.evaluate("window.seen")
    assert is_open
    assert width == 620  # A4 without its margins has 688.
    assert not any(one.get_attribute("open") is not None for one in folded.all())
    many.emulate_media(media="print")
    assert not any(one.is_visible() for one in many.locator(".controls, nav").all())
    assert many.locator("ul.legend").is_visible()
    many.emulate_media(media="screen")


def test_without_scripts_there_are_all_tables(view):
    """Of both axes, and a word about the curves; no control that does nothing."""
    shown = view(write(complete()), java_script_enabled=False)
    assert "switched off" in shown.locator("#curves noscript").inner_text()
    assert all(one.is_visible() for one in shown.locator(".table table").all())
    titles = shown.locator("caption span").all_inner_texts()
    assert {"Best at 1,000 env_steps", "Best at 1 hours"} <= set(titles)
    assert not any(one.is_visible() for one in shown.locator(".controls").all())


def test_tables_and_controls_have_names_for_those_who_cannot_see(toy):
    """Captions, scopes, labels, one first heading, and a link past the head."""
    for one in toy.locator("table").all():
        assert one.locator("caption").inner_text()
        assert one.locator("thead th:not([scope=col])").count() == 0
        assert one.locator("tbody tr:not(:has(> th[scope=row]))").count() == 0
    unlabeled = "all => all.filter(one => !one.labels.length).length"
    assert toy.eval_on_selector_all("input", unlabeled) == 0
    assert toy.locator("h1").count() == 1
    levels = toy.eval_on_selector_all("h1, h2, h3", "all => all.map(h => h.tagName)")
    assert all(int(b[1]) - int(a[1]) <= 1 for a, b in itertools.pairwise(levels))
    first = "document.querySelector('a, button, input, summary, [tabindex]')"
    toy.evaluate(f"{first}.focus()")
    toy.keyboard.press("Enter")
    assert toy.evaluate("document.activeElement.id") == "main"


def test_without_a_record_the_page_opens(view):
    """Before the first launch: everything is missing, and there is nothing to draw."""
    trained = [trained_point("a", 0.1, seed, until=0) for seed in (0, 1)]
    shown = view(write(trained))
    assert legend(shown) == PUBLISHED
    assert table(shown, "missing or running")[1:] == [
        ["A", "β=0.1", "2", "0", "0–1", "–"]
    ]
    assert "Incomplete: 2 of 2 points are not done." in banner(shown)


def test_before_anything_is_complete_what_there_is_is_shown(view):
    """Trained to 100 of 1000; nothing is the best, yet there are curves."""
    shown = view(write([trained_point("a", r / 10, 0, until=100) for r in range(8)]))
    assert len(lines(shown)) == 6


def test_an_axis_that_is_refused_says_why(odd):
    """Hours on two devices; its charts are empty."""
    odd.get_by_label("hours", exact=True).check()
    assert lines(odd) == []
    assert table(odd, "each budget of hours")[1] == [
        "hours on H100 and cpu cannot be compared"
    ]
    assert "Devices are mixed." in banner(odd)


def banner(shown):
    return shown.locator(".banner li").all_inner_texts()


@pytest.mark.parametrize(
    ("choice", "warnings"),
    [
        ({"scale": "smoke"}, ["Smoke scale"]),
        ({"scale": "lite"}, ["Lite scale"]),
        ({"scale": "paper"}, []),
        ({"scale": "paper", "seeds": (0, 1)}, ["Not the whole paper scale"]),
        ({"scale": "smoke", "stop": {"hours": 1}}, ["Smoke scale", "Not the whole"]),
    ],
)
def test_what_is_not_the_papers_says_so(choice, warnings):
    """Above every number; the whole of the paper's scale needs no such word."""
    text = write(complete(), **choice)
    found = re.findall("<li>(.*?)</li>", text.partition('<nav aria-label="Parts')[0])
    assert len(found) == len(warnings)
    assert all(map(str.startswith, found, warnings))
    assert f"<dt>scale</dt><dd>{choice['scale']}</dd>" in text
    assert "<dt>trained to</dt><dd>1,000 env_steps, 1 hours</dd>" in text
    assert "<dt>seeds</dt><dd>0–2 (3)</dd>" in text
    assert "<dt>device</dt><dd>cpu</dd>" in text


@pytest.mark.parametrize("scale", ["smoke", "lite", "mine"])
def test_a_study_of_ones_own_is_not_reported_as_the_papers(scale):
    """It has no published numbers and no scale "paper": none of its words are there."""
    claim = display.Claim(text="A earns more", more="A", less="B")
    trained = complete()
    for sweep, has_words in (
        (dataclasses.replace(SWEEP, claims=(claim,), published=None), False),
        (dataclasses.replace(SWEEP, claims=(claim,)), True),
    ):
        found = results.without_tests(choose(trained, sweep, scale=scale), trained)
        for text in (
            *(table.title for table in report.make(found)),
            *(note for table in report.make(found) for note in table.notes),
            *page._warnings(found.chosen, {}, []),
            *index.entry("toy.html", found).warnings,
        ):
            assert has_words or "paper" not in text.lower()
        assert "Claims" in [table.title for table in report.make(found)]
        number = int(has_words and scale != "mine")
        assert len(page._warnings(found.chosen, {}, [])) == number


def test_points_that_ended_badly_are_listed_with_their_error():
    """By id, with the error's last line; a point that was not tried is not."""
    frames = ("toy.py:7 in train",)
    failure = manifests.Failure("failed", 2, "ValueError", "no", frames)
    diverged = manifests.Failure("diverged", 0, "Diverged", "NaN at 60")
    bad = [
        trained_point("a", 0.1, 0, until=500, failure=failure),
        trained_point("a", 0.1, 1, until=50, failure=diverged),
        trained_point("a", 0.1, 2),
    ]
    damaged = dataclasses.replace(bad[2].record, damage="rows: 3 bytes")
    bad[2] = dataclasses.replace(bad[2], record=damaged)
    waiting = trained_point("a", 0.1, 3, until=0), trained_point("a", 0.1, 4, until=50)
    trained = [*bad, *waiting]
    found = results.without_tests(choose(trained), trained)
    trouble, missing = page._points_tables(found, page.statuses_of(found))
    assert [(row[0], row[1], *row[-3:]) for row in trouble.rows] == [
        (bad[0].point.id, "failed", 0, "500 env_steps, 0.50 hours",
         "ValueError: no (toy.py:7 in train)"),
        (bad[1].point.id, "diverged", 1, "50 env_steps, 0.05 hours", "NaN at 60"),
        (bad[2].point.id, "damaged", 2, "–",
         "damaged, counted as missing: rows: 3 bytes"),
    ]  # fmt: skip
    assert missing.rows == (("A", "β=0.1", 2, 0, "3–4", "50 env_steps"),)


def test_the_commands_mean_the_same_points():
    """They are parsed as they are written; fresh seeds are fresh in the whole scale."""
    declared = grid.Scale(({"seed": 0}, {"seed": 49}), stop=STOP)
    sweep = dataclasses.replace(SWEEP, scales={"paper": declared})
    failure = manifests.Failure("failed", tries=2, type="E")
    bad = trained_point("b", 0.1, 3, until=50, failure=failure)
    trained = [*complete(), bad]
    choice = {"where": {"kind": "a b"}, "seeds": (0, 1), "stop": {"env_steps": 2e6},
              "gin": ("toy.name = 'x'",)}  # fmt: skip
    chosen = choose(trained, sweep, **choice)
    loaded = results.without_tests(chosen, trained)
    written = page._commands(loaded, page.statuses_of(loaded), "my runs")
    found = {}
    for line in itertools.chain.from_iterable(of for _, of in written):
        words = shlex.split(line)
        assert words[:3] == ["python", "-m", "bmg_sweeps"]
        assert words.count("--seeds") == 1
        options = command_words.parsed(words[3:])
        assert options.storage == "my runs"
        found.setdefault(words[3], []).append(options)
    verbs = ["launch", "report", "status", "best", "rerun", "run"]
    assert list(found) == verbs
    for verb in {*verbs} - {"rerun"}:
        for options in found[verb]:
            assert options.choice == chosen.choice
    budgets = [(("env_steps", 1000),), (("hours", 1),)]
    assert [o.budget for o in found["best"]] == budgets
    assert [o.budget for o in found["rerun"]] == budgets
    assert found["rerun"][0].seeds == (50, 51, 52, 53, 54)
    assert found["run"][0].point == bad.point.id


def test_home_folders_and_credentials_are_left_out(monkeypatch):
    """Of the storage, the commands and the messages, whoever's they are."""
    monkeypatch.setattr(pathlib.Path, "home", lambda: pathlib.Path("/srv/me"))
    message = "/home/ann/x and /Users/bob/y, api_key=abc1&z"
    failure = manifests.Failure("failed", 2, "OSError", message)
    trained = [trained_point("a", 0.1, 0, until=50, failure=failure)]
    for storage, shown in {
        "/srv/me/runs": "~/runs",
        "/srv/mean/runs": "/srv/mean/runs",
        "s3://user:word@bucket/runs": "s3://bucket/runs",
    }.items():
        text = write(trained, storage=storage)
        assert f"--storage {shown}" in text
        assert f"<dt>storage</dt><dd>{shown}</dd>" in text
    assert "~/x and ~/y, api_key=…&amp;z" in text
    for secret in ("/srv/me/", "/ann", "/bob", "abc1", "user:word"):
        assert secret not in text


def test_only_the_pages_own_scripts_may_run(browser, tmp_path):
    """The policy has their hashes: what else got in does not run, nor is it fetched."""
    text = write(complete())
    policy = re.search('Content-Security-Policy" content="(.*?)"', text)[1]
    policy = html.unescape(policy)
    assert "default-src 'none'" in policy
    assert re.findall("script-src (.*?);", policy)[0].count("sha256-") == 2
    got_in = "<script>document.title = 'in'</script><img src='//localhost/x.png'>"
    with viewer(browser, tmp_path) as (view, heard):
        shown = view(text.replace("</main>", got_in + "</main>"))
        assert shown.title() == "Toy – paper"
        assert legend(shown) == [A2, B1, *PUBLISHED]  # Ours did run.
        refusals = [one for one in heard if "Content Security Policy" in one]
        assert len(refusals) == 2


def test_provenance_names_versions_and_days():
    """Of all records; 0 is 1970-01-01."""
    later = {"packages": {"jax": "2"}, "began": 60.0, "ended": 90_000.0}
    trained = [*complete(), trained_point("a", 0.3, 0, provenance=later)]
    assert page._versions_table(trained).rows == (
        ("jax", "1, 2"),
        ("trained between", "1970-01-01 00:01 UTC and 1970-01-02 01:00 UTC"),
    )


def test_methods_at_equal_tuning_are_drawn(view):
    """A has three rates and B one: its own curve ends at 1, where the line stands.

    Rewards of A at 1000 are 1000 (1 + β)(1 + 0.08 s): their mean is 1.2 · 1080, and of
    all three β = 0.3 is chosen.
    """
    trained = [t for t in complete((0.1, 0.2, 0.3)) if t.point.values["kind"] == "a"]
    trained += [trained_point("b", 0.1, seed) for seed in range(3)]
    shown = view(write(trained))
    figures = shown.locator("#expected-best figure")
    assert figures.locator(".below").all_inner_texts() == [
        "n configurations, drawn at random",
        "device hours of n configurations",
    ]
    (title,) = {*figures.locator("h3").all_inner_texts()}
    assert title == "Expected best of n configurations at 1,000 env_steps"
    read = "p => p.data.map(({name, x, y, line, fill}) => ({name, x, y, line, fill}))"
    band, dotted, apart, *of_b = figures.locator(".plot").first.evaluate(read)
    assert (apart["name"], apart["x"]) == ("A", [1, 2, 3])
    assert apart["y"][0] == pytest.approx(1.2 * 1080)
    assert apart["y"][2] == pytest.approx(1.3 * 1080)
    assert (dotted["line"]["dash"], dotted["y"]) == ("dot", apart["y"])
    deviation = 1.3 * 80
    assert band["fill"] == "toself"
    assert band["y"][2:4] == pytest.approx([1404 + deviation, 1404 - deviation])
    assert [trace["x"] for trace in of_b[1:]] == [[1], [1]]
    assert figures.locator(".plot").first.locator(".errorbar").count() == 1
    mark = figures.locator(".plot").first.evaluate("p => p.layout.shapes[0].x0")
    assert mark == 1
    widths = [box.bounding_box()["width"] for box in figures.locator(".plot").all()]
    drawn = figures.locator(".main-svg:first-child").all()
    assert [svg.bounding_box()["width"] for svg in drawn] == pytest.approx(widths)
    assert any(one.startswith("Arms are unequal: A 3, B 1") for one in banner(shown))
    assert legend(shown)[0] == "A β=0.3 3 seeds"


def test_without_a_choice_there_is_no_part_of_equal_tuning():
    assert 'id="expected-best"' not in write([trained_point("a", 0.1, 0)])


def test_the_index_leads_to_the_pages(view, tmp_path):
    """By file name, whatever is in it; with the sweep's state beside the link."""
    name = "to y#1-paper.html"
    trained = complete()
    (tmp_path / name).write_text(write(trained), encoding="utf-8")
    chosen = choose(trained, name=HOSTILE[0], scale="smoke")
    entries = [index.entry(name, results.without_tests(chosen, trained))]
    shown = view(index.write(entries, "Storage runs, scale smoke."), "index.html")
    row = table(shown, "Sweeps with a report")[2]
    assert row == [HOSTILE[0], "Toy", "12 of 12", "–", "–", "–", "–",
                   "1,000 env_steps, 1 hours", "toy", "smoke", "cpu"]  # fmt: skip
    assert banner(shown)[0].startswith("Smoke scale")
    assert (
        shown.eval_on_selector("tbody a", "a => a.href") == (tmp_path / name).as_uri()
    )
    assert shown.locator("table").count() == 1


def test_the_index_lists_all_claims_and_counts_them(view):
    """A has 1200, 1296 and 1392, B 400, 432 and 464; nothing is known of C.

    The difference of the means is 864; of A and its own weight, 0.0005, it is 1,296.
    """
    weight = display.Quantity(method="A", metric="weight")
    claimed = (
        display.Claim(text="<b>A earns more</b>", more="A", less="B"),
        display.Claim(text="B earns more", more="B", less="A"),
        display.Claim(text="A is no weight", more="A", less=weight, are_equal=True),
        display.Claim(text="As A", more="A", less="A", are_equal=True),
        display.Claim(text="C earns more", more="C", less="A"),
    )
    c = {"C": grid.Method({"kind": "c"}, {})}
    sweep = dataclasses.replace(
        SWEEP, claims=claimed, methods=SWEEP.methods | c, published=None
    )
    trained = complete()
    entries = [
        index.entry(f"{name}.html", results.without_tests(chosen, trained))
        for name, chosen in (
            ("one", choose(trained, sweep, name="one")),
            ("none", choose(trained, name="none")),
        )
    ]
    shown = view(index.write(entries, "Storage runs."), "index.html")
    _, _, one, none = table(shown, "Sweeps with a report")
    assert one[4:7] == ["1", "2", "2"]
    assert none[4:7] == ["–", "–", "–"]
    _, *rows = table(shown, "Claims")
    assert [row[:3] for row in rows] == [
        ["one", "<b>A earns more</b>", "supported"],
        ["one", "B earns more", "contradicted"],
        ["one", "A is no weight", "contradicted"],
        ["one", "As A", "open: no spread between seeds"],
        ["one", "C earns more", "open: no point is of C"],
    ]
    assert [row[3].partition(" [")[0] for row in rows] == [
        *("864", "-864", "1.3k", "0", "–"),
    ]
    assert shown.locator("tbody a").count() == 2 + len(claimed)


def test_what_matters_in_a_grid_is_drawn(toy):
    """Of each method, at the last budget of the axis: dots of seeds, and all lines.

    Rewards of A at 1000 are 1000 (1 + β)(1 + 0.08 s): of β = 0.1 they are 1100, 1188
    and 1276, whose mean is 1188; 0.2 is best.
    """
    figures = toy.locator("#grids figure")
    titles = [heading.inner_text() for heading in figures.locator("h3").all()]
    assert titles == [
        f"{m}: {t}" for m in "AB" for t in ("each value", "2 configurations")
    ]
    units = {unit.inner_text() for unit in figures.locator(".unit:not(.below)").all()}
    assert units == {"reward at 1,000 env_steps"}
    read = "plot => plot.data.map(({name, x, y, text}) => ({name, x, y, text}))"
    marginals, lines = (figures.locator(".plot").nth(i).evaluate(read) for i in (0, 1))
    assert [trace["name"] for trace in marginals] == [
        "seed 0",
        "seed 1",
        "seed 2",
        "mean",
    ]
    assert {tuple(trace["x"]) for trace in marginals} == {("0.1", "0.2")}
    first = [trace["y"][0] for trace in marginals]
    assert first == pytest.approx([1100, 1188, 1276, 1188])
    assert [trace["text"] for trace in lines] == ["β=0.1", "β=0.2"]  # The best on top.
    assert [trace["y"] for trace in lines] == [[0, 0], [1, 1]]
    toy.get_by_label("hours", exact=True).check()
    units = {unit.inner_text() for unit in figures.locator(".unit:not(.below)").all()}
    assert units == {"reward at 1 hours"}


def test_scores_of_a_grid_are_written_as_on_every_axis(toy, view):
    """On the axis of means, and at the ends of that of all configurations."""
    trained = [
        dataclasses.replace(
            one, rows=one.rows | {"reward": [1000 * r for r in one.rows["reward"]]}
        )
        for one in complete()
    ]
    for shown, first, ends in (
        (toy, "1100", ["1188", "1296"]),
        (view(write(trained)), "1.1M", ["1.188M", "1.296M"]),
    ):
        figures = shown.locator("#grids figure")
        assert figures.first.locator(".ytick text").first.text_content() == first
        texts = figures.nth(1).locator(".annotation-text").all_text_contents()
        assert texts[-2:] == ends


def test_a_partial_grid_is_not_drawn():
    """A lacks a seed of one rate; of B all is there."""
    of_axis = data(complete()[1:])["axes"][0]["grids"]
    assert [grid["method"] for grid in of_axis] == ["B"]
    assert 'id="grids"' not in write([trained_point("a", 0.1, 0)])


def test_of_a_large_grid_the_best_configurations_are_drawn():
    """Of 250 rates, 200; and the title says so."""
    rates = [i / 1000 for i in range(250)]
    (grid_,) = data([trained_point("a", rate, 0) for rate in rates])["axes"][0]["grids"]
    assert grid_["title"] == "the best 200 of 250 configurations"
    assert grid_["lines"][0] == [249, pytest.approx(1249)]
    assert len(grid_["lines"]) == 200
    assert len(grid_["fields"][0]["values"]) == 250


def test_the_agreement_of_budgets_is_drawn(view):
    """Of A and B with five rates each; rewards keep their order, so τ is 1."""
    trained = complete(rates=(0.1, 0.15, 0.2, 0.25, 0.3))
    shown = view(write(trained))
    (figure,) = shown.locator("#agreement figure").all()
    read = "plot => plot.data.map(({name, x, y}) => ({name, x, y}))"
    dots, line, *others = figure.locator(".plot").evaluate(read)
    assert line["name"] == "A"
    assert line["y"] == pytest.approx([1] * len(line["x"]))
    assert len(dots["x"]) == len(dots["y"]) == 3 * len(line["x"])
    assert others[1]["name"] == "B"
    below = figure.locator(".unit.below")
    assert below.inner_text() == "env_steps"
    shown.get_by_label("hours", exact=True).check()
    assert shown.locator("#agreement .unit.below").inner_text() == "hours"
    assert 'id="agreement"' not in write(complete())
