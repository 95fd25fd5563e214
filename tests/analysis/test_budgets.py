"""Budgets of data and of time, tests that are read last, and intervals over runs."""

import dataclasses
import itertools

import numpy as np
import pytest

from bmg_sweeps.analysis import estimates, intervals, readings, results, selection
from bmg_sweeps.launching import planning
from bmg_sweeps.records import attempts, store
from bmg_sweeps.reporting import improvement, measures, report, tables
from bmg_sweeps.sweep import choices, display, grid
from bmg_sweeps.sweep.point import Point

BUDGETS = {"meta_updates": 2, "hours": (0.5, 1, 2)}
STOP = {"meta_updates": 100, "hours": 2}
SWEEP = grid.Sweep(
    title="Toy",
    trainer="toy",
    scales={},
    select=grid.Select(
        metric="validation_accuracy",
        mode="max",
        budgets=BUDGETS,
        test="test_accuracy",
    ),
    methods={
        "A": grid.Method({"kind": "a"}, tuned={"rate": "rate"}),
        "B": grid.Method({"kind": "b"}, tuned={"rate": "rate"}),
    },
)
HERE = {"device": "cpu", "pack_width": 1}


def toy_point(rate, seed=0, kind="a", **values):
    return Point("toy", {"kind": kind, "rate": rate, "seed": seed, **values})


def record(storage, p, accuracies, hours=(1, 2), tests=None, **provenance):
    """Commits a point that was evaluated at 50 and 100 meta-updates."""
    axes = {"meta_updates": [50, 100], "training_seconds": [h * 3600 for h in hours]}
    tests = tests or [-a for a in accuracies]
    store.declare(storage, p.trainer, p.id, "# No gin is read here.\n")
    attempts.begin(storage, store.read(storage, p.trainer, p.id)).commit(
        progress={"meta_updates": 100, "hours": hours[-1]},
        rows=axes | {"loss": [3.0, 2.0]},
        validation=axes | {"validation_accuracy": list(accuracies)},
        test=axes | {"test_accuracy": tests},
        provenance=HERE | provenance,
        release=True,
    )


def load(storage, *points, sweep=SWEEP):
    chosen = choices.Chosen("toy", sweep, points, STOP)
    return results.load(storage, chosen)


def select(storage, *points, sweep=SWEEP):
    return load(storage, *points, sweep=sweep).selections


def test_a_sweep_has_budgets_of_data_and_of_time(storage):
    """Parts of the stop rule, or amounts as they are given."""
    assert selection.budgets(SWEEP.select, STOP) == {
        "meta_updates": [50, 100],
        "hours": [0.5, 1, 2],
    }


def test_an_axis_without_a_stop_rule_has_no_parts(storage):
    """`--stop hours=1` leaves nothing to divide; amounts stay as they are."""
    assert selection.budgets(SWEEP.select, {"hours": 1}) == {"hours": [0.5, 1, 2]}


def test_the_best_of_an_hour_is_not_the_best_of_an_update(storage):
    """A fast configuration and a good one: at one hour, the good one has no row."""
    record(storage, toy_point(0.1), [0.5, 0.6], hours=(0.25, 0.5))
    record(storage, toy_point(0.2), [0.7, 0.8], hours=(1, 2))
    found = select(storage, toy_point(0.1), toy_point(0.2))
    chosen = {
        axis: [(s.budget, s.configuration.values["rate"]) for s in selected.best]
        for axis, selected in found.items()
    }
    assert chosen["meta_updates"] == [(50, 0.2), (100, 0.2)]
    # The fast one ended after half an hour: it has no number at one.
    assert chosen["hours"] == [(0.5, 0.1), (1, 0.2), (2, 0.2)]


def test_hours_are_those_of_training_at_the_last_evaluation_before(storage):
    """Evaluated after 0.4 and 2 hours: at one hour the first counts."""
    record(storage, toy_point(0.1), [0.5, 0.9], hours=(0.4, 2))
    found = select(storage, toy_point(0.1))
    values = [(s.budget, s.estimate.mean) for s in found["hours"].best]
    assert values == [(0.5, 0.5), (1, 0.5), (2, 0.9)]


def test_hours_of_a_pack_are_refused(storage):
    """It trained beside three others; its meta-updates count all the same."""
    record(storage, toy_point(0.1), [0.5, 0.9], pack_width=4)
    found = select(storage, toy_point(0.1))
    assert found["hours"].best == ()
    reasons = {one.reason for one in found["hours"].left_out}
    assert reasons == {"seed 0: ran in a pack of 4, whose hours are not its own"}
    assert len(found["meta_updates"].best) == 2


def test_hours_of_a_point_that_left_its_pack_and_went_on_are_refused(storage):
    """They may have those of the pack among them; without a checkpoint they cannot."""
    left = {"left_pack": "RuntimeError: no memory"}
    record(storage, toy_point(0.1), [0.5, 0.9], **left, revisions=["abc"])
    record(storage, toy_point(0.2), [0.5, 0.9], **left)
    record(storage, toy_point(0.3), [0.5, 0.9], revisions=["abc"])
    found = load(storage, *map(toy_point, (0.1, 0.2, 0.3)))
    hours = found.selections["hours"]
    left_out = [one for one in hours.left_out if one.budget == 2]
    refused = {(s.configuration.values["rate"], s.reason) for s in left_out}
    reason = "seed 0: left its pack; its hours may include the pack's"
    assert refused == {(0.1, reason)}
    rates = [s.configuration.values["rate"] for s in hours.scores if s.budget == 2]
    assert sorted(rates) == [0.2, 0.3]
    assert len(found.selections["meta_updates"].scores) == 2 * 3
    of_device = [
        readings.device_hours(one, "meta_updates", 100) for one in found.trained
    ]
    assert of_device == [None, 2, 2]


def test_hours_on_different_devices_are_refused(storage):
    """Nothing is compared that cannot be; data budgets are unaffected."""
    record(storage, toy_point(0.1), [0.5, 0.9])
    record(storage, toy_point(0.2), [0.5, 0.9], device="H100")
    found = load(storage, toy_point(0.1), toy_point(0.2))
    hours = found.selections["hours"]
    assert hours.refused == "hours on H100 and cpu cannot be compared"
    assert len(found.selections["meta_updates"].scores) == 4
    (table,) = [t for t in report.make(found) if "hours" in t.title]
    assert table.rows == (("hours on H100 and cpu cannot be compared",),)


def test_memory_is_a_column_of_every_table(storage):
    """In GiB, the same in all rows; of a pack, a point's part. Old records lack it."""
    provenances = (
        {"program_bytes": 3 << 29},
        {"program_bytes": 3 << 30, "pack_width": 4},
        {},
    )
    found = []
    for seed, provenance in enumerate(provenances):
        record(storage, toy_point(0.1, seed), [0.5, 0.9], **provenance)
        (one,) = load(storage, toy_point(0.1, seed)).trained
        assert ("peak_memory_gib" in one.validation) == bool(provenance)
        found.append(one.table("peak_memory_gib").get("peak_memory_gib"))
    assert found == [[1.5, 1.5], [0.75, 0.75], None]


def test_memory_is_shown_as_a_measure(storage):
    """Unless two devices have counted it."""
    measure = display.Measure(metric="peak_memory_gib", label="GiB")
    sweep = dataclasses.replace(SWEEP, measures=(measure,))
    record(storage, toy_point(0.1), [0.5, 0.9], program_bytes=3 << 29)
    record(storage, toy_point(0.2), [0.5, 0.9], program_bytes=3 << 28)
    points = (toy_point(0.1), toy_point(0.2))
    (table,) = measures.table(load(storage, *points, sweep=sweep))
    assert [row[2].mean for row in table.rows] == [1.5, 0.75]
    record(storage, toy_point(0.2), [0.5, 0.9], program_bytes=3 << 28, device="H100")
    (table,) = measures.table(load(storage, *points, sweep=sweep))
    assert [row[2] for row in table.rows] == [None, None]
    assert "GiB: peak_memory_gib on H100 and cpu cannot be compared" in table.notes[-1]


def test_a_point_that_went_on_elsewhere_has_hours_of_two_devices(storage):
    """The record knows all of them."""
    devices = {"device": "H100", "devices": ["cpu", "H100"]}
    record(storage, toy_point(0.1), [0.5, 0.9], **devices)
    found = select(storage, toy_point(0.1))
    assert found["hours"].refused


def test_tests_are_read_for_what_was_chosen_only(storage, monkeypatch):
    """And only when they are asked for: nothing before has them."""
    points = [toy_point(rate, seed) for rate in (0.1, 0.2) for seed in (0, 1)]
    for p, accuracy in zip(points, (0.1, 0.2, 0.7, 0.9), strict=True):
        record(storage, p, [accuracy, accuracy], tests=[0.5 - accuracy, accuracy / 2])
    rows, read = store.rows, []

    def spy(storage, record, table="rows"):
        read.append((record.id, table))
        return rows(storage, record, table)

    monkeypatch.setattr(store, "rows", spy)
    chosen = choices.Chosen("toy", SWEEP, tuple(points), STOP)
    trained = readings.load(storage, chosen)
    found = results.without_tests(chosen, trained)
    assert "test" not in {table for _, table in read}
    assert all(score.test is None for score in found.first.best)
    read.clear()
    tested = selection.with_tests(storage, SWEEP, trained, found.first)
    assert {i for i, _ in read} == {points[2].id, points[3].id}
    assert [s.test.mean for s in tested.best] == pytest.approx([-0.3, 0.4])
    assert tested.best[1].test.deviation == pytest.approx(0.1 / 2**0.5)


def test_the_table_has_the_papers_form(storage):
    """Budget, what was selected, validation, test: mean ± deviation over seeds."""
    points = [toy_point(0.1, seed) for seed in (0, 1)]
    for p, accuracy in zip(points, (0.5, 0.7), strict=True):
        record(storage, p, [0.1, accuracy], tests=[0.3, accuracy - 0.1])
    table = report.make(load(storage, *points))[0]
    assert table.names[:5] == (
        "meta_updates",
        "method",
        "selected",
        "validation_accuracy",
        "test_accuracy",
    )
    cells = table.rows[1][:5]
    assert cells[:3] == (100, "A", "rate=0.1")
    assert [estimates.exact(c) for c in cells[3:]] == ["0.600 ± 0.141", "0.500 ± 0.141"]


def test_a_deviation_is_over_seeds_when_games_are_averaged_too(storage):
    """Means of seeds 2 and 4, so √2; over all four numbers it would be larger."""
    rule = dataclasses.replace(SWEEP.select, over=("seed", "game"))
    values = {(0, "x"): 1, (0, "y"): 3, (1, "x"): 0, (1, "y"): 8}
    points = [toy_point(0.1, seed, game=game) for seed, game in values]
    for p, value in zip(points, values.values(), strict=True):
        record(storage, p, [value, value])
    found = select(storage, *points, sweep=dataclasses.replace(SWEEP, select=rule))
    estimate = found["meta_updates"].best[0].estimate
    assert estimate.mean == 3
    assert estimate.deviation == pytest.approx(2**0.5)


def test_two_stop_rules_are_both_satisfied(storage):
    """One sweep wants updates and another hours: a point that both use trains on."""
    p = toy_point(0.1)
    record(storage, p, [0.5, 0.9], hours=(1, 2))
    wants = {
        "updates": ({"meta_updates": 100}, "done"),
        "hours": ({"hours": 2}, "done"),
        "both": ({"meta_updates": 100, "hours": 2}, "done"),
        "more hours": ({"hours": 3}, "missing"),
    }
    for stop, expected in wants.values():
        chosen = choices.Chosen("toy", SWEEP, (p,), stop)
        plan = planning.plan(storage, [chosen])
        assert plan.statuses[p.id] == expected
    both = [
        choices.Chosen("a", SWEEP, (p,), {"meta_updates": 100}),
        choices.Chosen("b", SWEEP, (p,), {"hours": 3}),
    ]
    plan = planning.plan(storage, both)
    assert plan.stops[p.id] == {"meta_updates": 100, "hours": 3}
    assert plan.statuses[p.id] == "missing"


def make_methods_table(storage, runs, sweep=SWEEP):
    points = []
    for kind, accuracies in runs.items():
        for seed, accuracy in enumerate(accuracies):
            points.append(toy_point(0.1, seed, kind=kind))
            record(storage, points[-1], [0, accuracy], tests=[0, accuracy])
    found = load(storage, *points, sweep=sweep)
    return improvement.table(found, "meta_updates")


def test_methods_are_compared_at_the_last_budget(storage):
    """B is always better; the middle three of 1 … 5 have the mean 3."""
    runs = {"a": (1, 2, 3, 4, 5), "b": (6, 7, 8, 9, 10)}
    (table,) = make_methods_table(storage, runs)
    assert table.title == "Methods at 100 meta_updates"
    assert table.names[2:] == ("P(better than A)", "P(better than B)")
    a, b = table.rows
    assert (a[1].estimate, b[1].estimate) == (3, 8)
    assert tables.texts(table, is_exact=True)[0][2:] == ["–", "0.00 [0.00, 0.00]"]
    assert (b[2], b[3]) == ((1, 1, 1), None)


def test_of_many_methods_each_is_compared_with_the_best(storage):
    """Nine methods: a table of nine columns more could not be read."""
    kinds = "abcdefghi"
    methods = {k.upper(): grid.Method({"kind": k}, tuned={}) for k in kinds}
    runs = {kind: (i, i + 0.5, i, i, i) for i, kind in enumerate(kinds)}
    sweep = dataclasses.replace(SWEEP, methods=methods)
    (table,) = make_methods_table(storage, runs, sweep)
    assert table.names[2:] == ("P(better than I)",)
    assert [row[2] for row in table.rows] == [(0, 0, 0)] * 8 + [None]


def test_methods_on_other_tasks_are_not_compared(storage):
    """A has been trained on two games and B on one: the cells say so, and stay."""
    rule = dataclasses.replace(SWEEP.select, over=("seed", "game"), test=None)
    sweep = dataclasses.replace(SWEEP, select=rule)
    games = {"a": ("x", "y"), "b": ("x",)}
    points = [
        toy_point(0.1, seed, kind=kind, game=game)
        for kind in games
        for game in games[kind]
        for seed in range(5)
    ]
    for p in points:
        record(storage, p, [1, 2])
    (table,) = improvement.table(load(storage, *points, sweep=sweep), "meta_updates")
    assert [row[1:] for row in table.rows] == [
        (None, "other tasks"),
        ("other tasks", None),
    ]


@pytest.mark.parametrize("runs", [{"a": (1, 2)}, {"a": (1, 2), "b": (3,)}])
def test_one_method_or_one_run_is_not_compared(storage, runs):
    """An interval needs two runs, and a comparison two methods."""
    assert make_methods_table(storage, runs) == []


def test_the_interquartile_mean_drops_a_quarter_at_each_end():
    """Of eight the two lowest and highest go: (2 + 3 + 4 + 5) / 4 = 3.5."""
    scores = np.array([[0.0, 700, 3, 4], [1, 6, 2, 5]])
    found = intervals.interquartile_mean(scores)
    assert found.estimate == 3.5
    assert found.low <= 3.5 <= found.high


def test_the_interval_is_the_bootstraps_own():
    """Two runs of one task: the resampled means are those of 4 equally likely pairs.

    Of the pairs (0, 0), (0, 1), (1, 0), (1, 1) a quarter each: the 2.5 % and 97.5 %
    quantiles of the mean are 0 and 1.
    """
    found = intervals.interquartile_mean(np.array([[0.0], [1.0]]))
    assert found == (0.5, 0.0, 1.0)


def test_resampling_stays_within_a_task():
    """One task is all zeros, the other all ones: every resample has the mean ½."""
    scores = np.array([[0.0, 1.0]] * 4)
    assert intervals.interquartile_mean(scores) == (0.5, 0.5, 0.5)


def test_the_probability_of_improvement_counts_pairs_and_halves_ties():
    """X = 1, 3 against y = 1, 2: > in 2 of 4 pairs, = in one: 2.5 / 4."""
    x, y = np.array([[1.0], [3.0]]), np.array([[1.0], [2.0]])
    by_hand = np.mean([(a > b) + 0.5 * (a == b) for a, b in itertools.product(x, y)])
    found = intervals.probability_of_improvement(x, y)
    assert found.estimate == by_hand == 0.625
    other = intervals.probability_of_improvement(y, x)
    assert found.estimate + other.estimate == 1


def test_an_interval_is_the_same_each_time():
    """The resampling has a seed."""
    scores = np.random.default_rng(0).normal(size=(5, 3))
    first, second = (intervals.interquartile_mean(scores) for _ in range(2))
    assert first == second
    assert first.low < first.estimate < first.high


def test_the_interval_covers_the_mean_as_often_as_it_says():
    """About 95 % of 200 samples of 20 normal runs; 89 % allows for few runs."""
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        found = intervals.interquartile_mean(generator.normal(size=(20, 1)))
        covered += found.low <= 0 <= found.high
    assert 0.89 <= covered / 200 <= 0.99
