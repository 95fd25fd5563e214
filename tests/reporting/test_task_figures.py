"""Figures of tasks show the numbers of `toy_tasks`, in files and in a page."""

import base64
import dataclasses
import json
import re

import numpy as np
import pytest
import toy_tasks
from matplotlib.colors import to_hex
from matplotlib.patches import Patch

from bmg_sweeps.analysis import across_tasks
from bmg_sweeps.reporting import (
    charts,
    figures,
    page,
    rendering,
    task_curves,
    task_figures,
)
from bmg_sweeps.sweep import display


@pytest.fixture
def results(storage):
    return toy_tasks.load(toy_tasks.record(storage), scale="paper")


def test_the_median_over_tasks_is_drawn_over_training(results):
    """At half the training all is half; the seeds of A have medians 1 and 3."""
    a, b = task_curves.summary(results, toy_tasks.MEDIANS)
    assert (a.method, a.at, a.means) == ("A", [50, 100], [1, 2])
    assert a.deviations == pytest.approx([2**0.5 / 2, 2**0.5])
    assert (b.means, b.deviations) == ([1, 2], [0, 0])


@pytest.mark.parametrize(
    ("statistic", "expected"), [("mean", 17 / 6), ("interquartile_mean", 2.5)]
)
def test_other_statistics_are_drawn_by_name(results, statistic, expected):
    panel = dataclasses.replace(toy_tasks.MEDIANS, statistic=statistic, methods=("A",))
    (a,) = task_curves.summary(results, panel)
    assert a.means[-1] == pytest.approx(expected)


def test_published_statistics_have_a_place_in_the_panel(results):
    """A's is computed of its tasks, not the text's 5; C has none but the printed."""
    found = task_curves.published_points(results.chosen, toy_tasks.MEDIANS)
    assert found == [("A", 100, 4), ("C", 100, 8)]


def test_differences_are_sorted(results):
    """2 − 2, 6 − 1 and ½ − 2."""
    found = task_curves.differences(results, toy_tasks.DIFFERENCES)
    assert found == [("y", 5), ("x", 0), ("z", -1.5)]


def test_a_distribution_is_of_all_runs(results):
    found = task_curves.distribution(results, toy_tasks.SCORES)
    assert sorted(found["A"]) == [0, 1, 1, 3, 5, 7]
    assert sorted(found["B"]) == [1, 1, 2, 2, 2, 2]


def test_a_standardized_distribution_is_by_task(results):
    """On x the runs are 1, 3, 2, 2: mean 2, deviation √½."""
    panel = dataclasses.replace(toy_tasks.SCORES, is_standardized=True)
    found = task_curves.distribution(results, panel)
    assert found["A"].reshape(2, 3)[:, 0] == pytest.approx([-(2**0.5), 2**0.5])
    assert np.concatenate([*found.values()]).mean() == pytest.approx(0)


def test_a_profile_has_a_step_at_each_score(results):
    """A has 0, 1, 1, 3, 5 and 7, B has 1, 1 and four 2; both lines reach from 0 to 7.

    A resample of two seeds has both, or one of them twice, which is one in four: so of
    a task on which one seed is above τ, none to two are. That is z at 0, x at 1 and y
    at 5. Of the other tasks, and of B, the seeds are alike.
    """
    a, b = task_curves.profile(results, toy_tasks.PROFILE)
    assert (a.method, a.thresholds.tolist()) == ("A", [0, 1, 3, 5, 7])
    assert a.shares == pytest.approx([5 / 6, 3 / 6, 2 / 6, 1 / 6, 0])
    low, high = a.edges
    assert low == pytest.approx([4 / 6, 2 / 6, 2 / 6, 0, 0])
    assert high == pytest.approx([1, 4 / 6, 2 / 6, 2 / 6, 0])
    assert (b.method, b.thresholds.tolist()) == ("B", [0, 1, 2, 7])
    assert b.shares == b.edges[0] == b.edges[1] == pytest.approx([1, 4 / 6, 0, 0])


def test_a_profile_of_one_seed_has_no_band(storage):
    toy_tasks.record(storage, seeds=(0,))
    of = tuple(p for p in toy_tasks.points() if p.values["seed"] == 0)
    a, _ = task_curves.profile(toy_tasks.load(storage, of=of), toy_tasks.PROFILE)
    assert (a.shares, a.edges) == (pytest.approx([2 / 3, 1 / 3, 0]), None)


def test_a_profile_begins_at_the_lowest_score(results, monkeypatch):
    """And not at 0, where a run is below it."""
    read = [dataclasses.replace(one, normalized=one.normalized - 1)
            for one in across_tasks.read(results)]  # fmt: skip
    monkeypatch.setattr(across_tasks, "read", lambda _: read)
    for one in task_curves.profile(results, toy_tasks.PROFILE):
        assert (one.thresholds[0], one.thresholds[-1]) == (-1, 6)


def test_a_profile_is_drawn_as_steps_with_a_band(results, drawn):
    """A step lasts until the next score; the axes say what τ is and of what shares."""
    task_figures.draw(results, toy_tasks.PROFILE, "png")
    (axes,) = drawn[0].axes
    a, b = axes.get_lines()
    assert (a.get_label(), a.get_drawstyle()) == ("A", "steps-post")
    assert b.get_xydata().tolist() == [
        [0, 1],
        [1, pytest.approx(4 / 6)],
        [2, 0],
        [7, 0],
    ]
    assert len(axes.collections) == 2
    assert axes.get_xlabel() == "τ: of a human"
    assert axes.get_ylabel() == "share of all seeds of all tasks above τ"
    assert axes.get_xscale() == "linear"
    assert axes.get_legend().get_title().get_text() == "bands: 95 %"


def test_large_scores_of_a_profile_leave_room_for_small_ones(
    results, drawn, monkeypatch
):
    """The largest is 70."""
    read = [dataclasses.replace(one, normalized=one.normalized * 10)
            for one in across_tasks.read(results)]  # fmt: skip
    monkeypatch.setattr(across_tasks, "read", lambda _: read)
    task_figures.draw(results, toy_tasks.PROFILE, "png")
    (axes,) = drawn[0].axes
    assert axes.get_xscale() == "symlog"
    assert -0.1 < axes.get_xlim()[0] < 0  # Margins are of the scale that is seen.


def test_each_task_has_lines_of_both_methods(results):
    found = dict(task_curves.by_task(results, toy_tasks.CURVES))
    assert list(found) == ["x", "y", "z"]
    line = found["y"]["A"]
    assert (line.amounts.tolist(), line.means.tolist()) == ([50, 100], [30, 60])
    assert line.deviations == pytest.approx(np.array([50**0.5, 200**0.5]))


def test_a_missing_task_has_no_line(storage):
    toy_tasks.record(storage, without=[("a", 1, "z")])
    found = dict(task_curves.by_task(toy_tasks.load(storage), toy_tasks.CURVES))
    assert list(found["z"]) == ["B"]


@pytest.mark.parametrize("panel", task_curves_panels := toy_tasks.SWEEP.curves[1:])
def test_figures_are_files_of_their_form(results, panel):
    """The same each time, so that a page is."""
    assert task_figures.draw(results, panel, "png").startswith(b"\x89PNG")
    svg = task_figures.draw(results, panel, "svg")
    assert svg.startswith(b"<?xml")
    assert svg == task_figures.draw(results, panel, "svg")


@pytest.mark.parametrize("panel", task_curves_panels)
def test_figures_of_nothing_are_drawn(storage, panel):
    """Before the first point has trained."""
    assert task_figures.draw(toy_tasks.load(storage), panel, "png")


def test_bars_are_the_differences(results, drawn):
    task_figures.draw(results, toy_tasks.DIFFERENCES, "png")
    (axes,) = drawn[0].axes
    assert [bar.get_height() for bar in axes.patches] == [5, 0, -1.5]
    assert axes.get_title() == "A and B\nA has more on 1 of 3"


def test_a_long_title_is_inside_the_image(results, drawn):
    """The width of a PNG file is in its bytes 16 to 20, at 120 dots an inch."""
    panel = dataclasses.replace(toy_tasks.DIFFERENCES, title="A and B, " * 30)
    png = task_figures.draw(results, panel, "png")
    (axes,) = drawn[0].axes
    title = axes.title.get_window_extent(dpi=120).width
    assert int.from_bytes(png[16:20]) > title > 120 * drawn[0].get_figwidth()


def test_small_panels_say_what_they_show(results, drawn):
    task_figures.draw(results, toy_tasks.CURVES, "png")
    assert drawn[0].get_supylabel() == "score"


def test_a_method_has_one_color_in_all_figures(storage, drawn):
    """Whichever methods a panel shows; differences have that of what is ahead."""
    blue, orange = (color.lower() for color in figures.COLORS[:2])
    only_b = display.Curve(title="B", metric="score", label="score", methods=("B",))
    sweep = dataclasses.replace(toy_tasks.SWEEP, curves=(only_b, toy_tasks.MEDIANS))
    results = toy_tasks.load(toy_tasks.record(storage), sweep)
    figures.draw(results)
    for panel in toy_tasks.SWEEP.curves[1:]:
        task_figures.draw(results, panel, "png")
    lines, bars, boxes, shares, small = drawn
    with_lines = (*lines.axes, shares.axes[0], small.axes[0])
    assert [colors_of(axes.get_lines()) for axes in with_lines] == [
        [orange], [blue, orange], [blue, orange], [blue, orange]
    ]  # fmt: skip
    assert colors_of(bars.axes[0].patches) == [blue, orange, orange]
    assert colors_of(boxes.axes[0].patches) == [blue, orange]


def colors_of(drawn_ones):
    """Colors of lines, or of areas."""
    found = [
        one.get_facecolor() if isinstance(one, Patch) else one.get_color()
        for one in drawn_ones
    ]
    return [to_hex(color) for color in found]


def test_the_pages_script_has_the_same_colors():
    text = rendering.script("page.js")
    (found,) = re.findall(r"const COLORS = (\[.*\]);", text)
    assert tuple(json.loads(found)) == figures.COLORS


def test_a_method_has_its_style_on_the_page_before_it_is_complete(storage):
    """B alone is selected, and has the second style all the same."""
    toy_tasks.record(storage, without=[("a", 1, "z")])
    data = charts.data(toy_tasks.load(storage))
    assert [(one["method"], one["style"]) for one in data["configurations"]] == [
        ("A", 0), ("B", 1)
    ]  # fmt: skip


def test_methods_without_any_point_have_no_place_in_figures(storage):
    """The first has none, so the second has the first style."""
    toy_tasks.record(storage)
    kept = tuple(p for p in toy_tasks.points() if p.values["kind"] == "b")
    results = toy_tasks.load(storage, of=kept)
    assert figures.styles(results) == {"B": figures.STYLES[0]}
    assert charts.data(results)["methods"] == ["B"]
    assert task_curves.figures(results) == toy_tasks.SWEEP.curves[2:]
    only_a = dataclasses.replace(toy_tasks.CURVES, methods=("A",))
    sweep = dataclasses.replace(toy_tasks.SWEEP, curves=(only_a,))
    assert task_curves.figures(toy_tasks.load(storage, sweep, of=kept)) == ()


def test_a_method_that_lacks_tasks_says_so_in_each_panel_of_all(storage, drawn):
    """A has no z: its median, profile and distribution are over the other two."""
    toy_tasks.record(storage, without=[("a", 1, "z")])
    results = toy_tasks.load(storage)
    names = ["A (2 of 3 tasks)", "B"]
    figures.draw(results)
    task_figures.draw(results, toy_tasks.PROFILE, "png")
    task_figures.draw(results, toy_tasks.SCORES, "png")
    task_figures.draw(results, toy_tasks.DIFFERENCES, "png")
    medians, profile, scores, differences = (figure.axes[0] for figure in drawn)
    assert medians.get_legend_handles_labels()[1] == names
    assert profile.get_legend_handles_labels()[1] == names
    assert [tick.get_text() for tick in scores.get_xticklabels()] == names
    said = "A has more on 1 of 2 that both have, of 3"
    assert differences.get_title() == f"A and B\n{said}"
    (panel,) = charts.data(results)["panels"]
    assert [one["label"] for one in panel["attained"]] == names


def test_a_title_with_dollars_is_text(results, drawn):
    """Matplotlib would read it as mathematics, and fail."""
    panel = dataclasses.replace(toy_tasks.DIFFERENCES, title=r"$\frac{$")
    task_figures.draw(results, panel, "png")
    assert drawn[0].axes[0].get_title().startswith(r"$\frac{$")
    title = r"$\frac{$"
    median = dataclasses.replace(toy_tasks.MEDIANS, title=title, label=title)
    figures.draw(dataclasses.replace(results, chosen=with_curves(results, median)))
    assert drawn[1].axes[0].get_title() == title


def with_curves(results, *panels):
    """The results' points, of a sweep that shows these panels."""
    sweep = dataclasses.replace(results.sweep, curves=panels)
    return dataclasses.replace(results.chosen, sweep=sweep)


def test_small_panels_share_a_legend(results, drawn):
    task_figures.draw(results, toy_tasks.CURVES, "png")
    (figure,) = drawn
    assert [axes.get_title() for axes in figure.axes] == ["x", "y", "z"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["A", "B"]


def test_no_text_lies_on_another(results, drawn, monkeypatch):
    """Of the title, the panels' titles, and the legend of many methods."""
    methods = [f"method {i}" for i in range(12)]
    shown = [
        (task, dict.fromkeys(methods, lines["A"]))
        for task, lines in task_curves.by_task(results, toy_tasks.CURVES)
    ]
    monkeypatch.setattr(task_curves, "by_task", lambda *_: shown)
    style = dict.fromkeys(methods, figures.styles(results)["A"])
    monkeypatch.setattr(figures, "styles", lambda _: style)
    task_figures.draw(results, toy_tasks.CURVES, "png")
    (figure,) = drawn
    axes = [each for one in figure.axes for each in (one, one.title)]
    boxes = [each.get_window_extent() for each in (figure._suptitle, *figure.legends)]
    boxes += [each.get_window_extent() for each in axes]
    for i, box in enumerate(boxes):
        assert not [other for other in boxes[i + 1 :] if box.overlaps(other)]


def test_the_figure_has_the_median_and_its_published_stars(results, drawn):
    """The panels that are images of their own are not in it."""
    figures.draw(results)
    (axes,) = drawn[0].axes
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    assert list(lines["A"]) == [1, 2]
    stars = [line for line in axes.get_lines() if line.get_marker() == "*"]
    assert [list(star.get_ydata()) for star in stars] == [[4], [8]]


def test_the_charts_have_the_same_median(results):
    (panel,) = charts.data(results)["panels"]
    assert panel["below"] == "env_steps"
    assert panel["attained"][0] == {
        "method": "A", "at": [50, 100], "means": [1, 2], "deviations": [0.707, 1.41],
            "held_out": [], "label": "A",
    }  # fmt: skip
    assert [(one["method"], one["mean"]) for one in panel["published"]] == [
        ("A", 4), ("C", 8)
    ]  # fmt: skip


def test_a_page_has_an_image_of_each_figure(results):
    text = page.page(results, "runs")
    images = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)" alt="([^"]+)"', text)
    assert [alt.partition(";")[0] for _, alt in images] == [
        "A and B",
        "All",
        "Above",
        "Each",
    ]
    assert b"<svg" in base64.b64decode(images[0][0])


def test_a_table_of_many_columns_is_set_densely(results):
    """The summary has 12, the profile 10; no other table here has many."""
    dense = re.findall(r'data-kind="(\w+)" class="dense"', page.page(results, "runs"))
    assert dense == ["task_summary", "task_profile"]


def test_a_page_without_tasks_has_no_image(storage):
    sweep = dataclasses.replace(toy_tasks.SWEEP, tasks=None, curves=(), claims=())
    text = page.page(toy_tasks.load(toy_tasks.record(storage), sweep), "runs")
    assert "<img" not in text


def test_files_are_named_by_what_they_show(results):
    names = task_figures.file_names(task_curves.figures(results))
    assert names == [
        "1-task-differences", "2-task-distribution", "3-task-profile", "4-task-curves"
    ]  # fmt: skip
