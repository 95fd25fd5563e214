"""A launch runs what its sweeps want, minus what the records already hold."""

import pathlib

import pytest

from bmg_sweeps import errors, paths
from bmg_sweeps.launching import planning, revision
from bmg_sweeps.records import attempts, manifests, store
from bmg_sweeps.sweep import choices, grid, loading, point

TRAINER = """
class Config:
    seed: int
    rate: float
    kind: str
    steps: int = structure()
    sizes: tuple[int, ...] = structure()
"""
GIN = """
toy.seed = 0
toy.rate = 0.1
toy.kind = "fast"
toy.steps = 1
toy.sizes = (8, 8)
"""
SWEEP = """
from bmg_sweeps.sweep import Scale, Select, Sweep, product

SMOKE = product(rate=(3e-4, 0.5), steps=(1, 2), seed=range(2))
SWEEP = Sweep(
    title="Toy",
    trainer="toy",
    scales={
        "smoke": Scale(SMOKE, stop={"env_steps": 100}),
        "lite": Scale(SMOKE + product(steps=(3,)) + SMOKE, stop={"env_steps": 300}),
    },
    select=Select(metric="reward", mode="max", budgets={"env_steps": 1}),
    methods={},
)
"""


def failure(kind, tries):
    return manifests.Failure(kind, tries, "ValueError", "no")


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A checkout with one trainer, one .gin and one sweep."""
    (tmp_path / "toy.py").write_text(TRAINER)
    (tmp_path / "toy.gin").write_text(GIN)
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "toy_sweep.py").write_text(SWEEP)
    monkeypatch.setattr(paths, "TRAINERS", tmp_path)
    monkeypatch.setattr(paths, "GIN", tmp_path)
    monkeypatch.setattr(paths, "SWEEPS", tmp_path / "sweeps")
    return tmp_path


def choose(**choice):
    return choices.choose("toy_sweep", choices.Choice(**choice))


def values(chosen, *fields):
    """The points' values of some fields, in the points' order."""
    return [tuple(p.values[field] for field in fields) for p in chosen.points]


def message(call, *arguments, **keywords):
    """The one line that a call refuses its arguments with."""
    with pytest.raises(errors.UserError) as error:
        call(*arguments, **keywords)
    assert "\n" not in str(error.value)
    return str(error.value)


def chosen_of(*points, stop):
    """A sweep of made-up points."""
    sweep = loading.load_sweep("toy_sweep")
    return choices.Chosen("made up", sweep, points, {"env_steps": stop})


def toy_point(**changed):
    return point.resolve("toy", changed)


def record(storage, p, steps, release=True, **keywords):
    """Commits that a point was trained for a number of steps."""
    attempt = attempts.begin(storage, store.read(storage, p.trainer, p.id))
    attempt.commit(progress={"env_steps": steps}, release=release, **keywords)


@pytest.mark.parametrize(
    ("scale", "num_points", "most_structures"),
    [
        ("smoke", 2 * (2 + 1), 2),  # 2 seeds of 2 fixed weights, and of BMG.
        # Fixed: 5 weights. MG: 5 K, without and with entropy. BMG: 3 K · 6 L. Here:
        ("lite", 3 * (5 + 5 + 5 + 3 * 6), 24),  # 3 seeds, 1 rate;
        ("paper", 50 * (5 + 5 * 5 + 5 * 5 + 3 * 6 * 5), 24),  # 50 seeds, 5 rates.
    ],
)
def test_figure_2_has_as_many_points_as_its_arms(scale, num_points, most_structures):
    """6, 99 and 7250, each once; fixed weights share a program, as the rates do."""
    chosen = choices.choose("figure_2", choices.Choice(scale=scale))
    assert len(chosen.points) == num_points == len({p.id for p in chosen.points})
    assert len({p.structure for p in chosen.points}) <= most_structures


def test_the_points_are_the_scale_s_in_the_sweep_s_order(toy):
    """Unless said otherwise the scale is the smallest one, with its own stop rule."""
    chosen = choose()
    assert values(chosen, "rate", "steps", "seed") == [
        (rate, steps, seed)
        for rate in (3e-4, 0.5)
        for steps in (1, 2)
        for seed in (0, 1)
    ]
    assert chosen.stop == {"env_steps": 100}


def test_a_scale_may_have_budgets_of_its_own(toy):
    """In place of the sweep's, which the other scales keep."""
    text = SWEEP.replace(
        'stop={"env_steps": 300}', 'stop={"env_steps": 300}, budgets={"env_steps": 3}'
    )
    (toy / "sweeps" / "toy_sweep.py").write_text(text)
    budgets = [choose(scale=s).sweep.select.budgets for s in ("smoke", "lite")]
    assert budgets == [{"env_steps": 1}, {"env_steps": 3}]


def test_a_sweep_can_be_made_of_another_one(toy):
    """Its points are the same ones; what it changes is its own."""
    (toy / "sweeps" / "other.py").write_text(
        "import dataclasses\nfrom bmg_sweeps.sweep import load_sweep\n"
        "TOY = load_sweep('toy_sweep')\n"
        "SWEEP = dataclasses.replace(TOY, title='Other')\n"
    )
    other = choices.choose("other", choices.Choice())
    assert other.points == choose().points
    assert (other.sweep.title, choose().sweep.title) == ("Other", "Toy")


def test_a_point_that_two_arms_share_is_there_once(toy):
    """8 points, 1 more, and the same 8 again."""
    chosen = choose(scale="lite")
    assert len(chosen.points) == 9
    assert chosen.stop == {"env_steps": 300}


def test_a_sweep_is_found_by_path(toy):
    """Users keep sweeps anywhere."""
    path = str(toy / "sweeps" / "toy_sweep.py")
    assert choices.choose(path, choices.Choice()).points == choose().points


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (None, "'mine': no such sweep"),
        ("SWEEP = (", "line 1: "),
        ("import no_such_module", "ModuleNotFoundError: No module named"),
        ("SWEEP = 3", "expected SWEEP = Sweep(…), got 3"),
        (SWEEP.replace("0.5", "float('inf')"), "rate = inf: a value must be"),
    ],
    ids=["none", "syntax", "exception", "no sweep", "not a literal"],
)
def test_a_sweep_that_cannot_be_loaded_is_refused(toy, source, problem):
    """In one line that names the sweep or its file."""
    if source:
        (toy / "sweeps" / "mine.py").write_text(source)
    text = message(choices.choose, "mine", choices.Choice())
    assert "mine" in text
    assert problem in text


def test_a_scale_that_a_sweep_does_not_have_is_refused(toy):
    """The message names those that it has."""
    assert message(choose, scale="paper") == (
        "--scale paper: sweep toy_sweep has smoke, lite"
    )


@pytest.mark.parametrize(
    ("where", "num_points"),
    [
        ({"rate": "3e-4"}, 4),
        ({"rate": "0.0003"}, 4),
        ({"rate": ".5", "steps": "2"}, 2),
        ({"seed": "1"}, 4),
        ({"kind": "fast"}, 8),  # By gin's value, which no point sets.
        ({"sizes": "(8, 8)"}, 8),
        ({"sizes": "(8,8)"}, 8),
        ({"sizes": "[8, 8]"}, 8),
    ],
)
def test_where_keeps_the_points_with_a_value_however_it_is_written(
    toy, where, num_points
):
    """Of 2 rates · 2 numbers of steps · 2 seeds; all conditions hold together."""
    assert len(choose(where=where).points) == num_points


@pytest.mark.parametrize(
    ("choice", "parts"),
    [
        ({"where": {"raet": "1"}}, ("--where raet=1", "rate")),
        ({"where": {"rate": "0.25"}}, ("no point is left", "rate=0.25")),
        ({"where": {"rate": "fast"}}, ("no point is left", "rate=fast")),
        ({"where": {"steps": "True"}}, ("no point is left", "steps=True")),
        ({"stop": {"frames": 10}}, ("--stop frames", "env_steps", "hours")),
        ({"gin": ("toy.raet = 1",)}, ("toy.raet", "rate")),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(toy, choice, parts):
    """The message names what was said, and what would have done."""
    text = message(choose, **choice)
    assert [part for part in parts if part not in text] == []


def test_seeds_replace_the_sweep_s_seeds(toy):
    """Each configuration once with each of them, and none of the old ones."""
    chosen = choose(seeds=(7, 5), where={"rate": "0.5"})
    expected = [(1, 7), (1, 5), (2, 7), (2, 5)]
    assert values(chosen, "steps", "seed") == expected


def test_bindings_hold_for_all_points(toy):
    """They are stronger than the sweep, whose 1 and 2 steps become one point."""
    chosen = choose(gin=("toy.sizes = (4,)", "toy.steps = 9"))
    assert values(chosen, "sizes", "steps", "rate", "seed") == [
        ((4,), 9, rate, seed) for rate in (3e-4, 0.5) for seed in (0, 1)
    ]


@pytest.mark.parametrize("stop", [{"env_steps": 5.0}, {"hours": 0.5}])
def test_a_stop_rule_replaces_the_sweep_s(toy, stop):
    """Hours are an axis of every trainer."""
    assert choose(stop=stop).stop == stop


@pytest.mark.parametrize(
    ("steps", "keywords", "status"),
    [
        (100, {}, "done"),
        (120, {}, "done"),
        (99, {}, "missing"),  # Interrupted.
        (99, {"release": False}, "running"),  # By this very process.
        (0, {"failure": failure("failed", 1)}, "missing"),
        (0, {"failure": failure("failed", store.TRIES)}, "failed"),
        (50, {"failure": failure("diverged", 1)}, "diverged"),
        (100, {"failure": failure("diverged", 1)}, "done"),
    ],
)
@pytest.mark.parametrize("retry", [False, True])
def test_a_plan_runs_what_is_missing(storage, toy, steps, keywords, status, retry):
    """What failed or diverged is run with --retry only; what is done or runs, never."""
    p, untouched = toy_point(), toy_point(seed=1)
    code = {"code": revision.fingerprints(["toy"])["toy"]}
    record(storage, p, steps, provenance=code, **keywords)
    plan = planning.plan(storage, [chosen_of(p, untouched, stop=100)], retry)
    assert plan.statuses == {p.id: status, untouched.id: "missing"}
    wanted = {"missing"} | ({"failed", "diverged"} if retry else set())
    assert (p in plan.to_run) == (status in wanted)
    assert untouched in plan.to_run


def test_a_point_that_diverged_under_other_code_is_missing(storage, toy):
    """The trainer was edited since, which may have mended it."""
    p = toy_point()
    code = {"code": revision.fingerprints(["toy"])["toy"]}
    record(storage, p, 50, failure=failure("diverged", 1), provenance=code)
    chosen = chosen_of(p, stop=100)
    assert planning.plan(storage, [chosen]).counts() == {"diverged": 1}
    (toy / "toy.py").write_text(TRAINER + "# Mended.\n")
    assert planning.plan(storage, [chosen]).counts() == {"missing": 1}


def test_a_damaged_record_is_missing(storage, toy):
    """Its rows were cut short, so that it must be trained again."""
    p = toy_point()
    record(storage, p, 100, rows={"env_steps": [100]})
    chosen = chosen_of(p, stop=100)
    assert planning.plan(storage, [chosen]).counts() == {"done": 1}
    (rows,) = pathlib.Path(storage.path("toy", p.id)).glob("rows-*")
    rows.write_bytes(rows.read_bytes()[:-1])
    assert planning.plan(storage, [chosen]).counts() == {"missing": 1}


def test_a_plan_counts_its_points_by_status(storage, toy):
    """2 done, 1 failed, 1 diverged, and 1 missing, which alone is run."""
    points = [toy_point(seed=seed) for seed in range(5)]
    record(storage, points[0], 100)
    record(storage, points[1], 100)
    record(storage, points[2], 0, failure=failure("failed", 2))
    record(
        storage,
        points[3],
        50,
        failure=failure("diverged", 1),
        provenance={"code": revision.fingerprints(["toy"])["toy"]},
    )
    plan = planning.plan(storage, [chosen_of(*points, stop=100)])
    assert plan.counts() == {"done": 2, "failed": 1, "diverged": 1, "missing": 1}
    assert plan.to_run == (points[4],)


def test_a_longer_stop_rule_makes_done_points_missing(storage, toy):
    """They go on from where they stand."""
    p = toy_point()
    record(storage, p, 100)
    assert planning.plan(storage, [chosen_of(p, stop=100)]).counts() == {"done": 1}
    assert planning.plan(storage, [chosen_of(p, stop=101)]).counts() == {"missing": 1}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_points_that_sweeps_share_run_once_and_as_far_as_the_longest_asks(
    storage, toy, order
):
    """100 steps are enough for the first sweep, and not for the second."""
    first, shared, second = (toy_point(seed=seed) for seed in range(3))
    record(storage, first, 100)
    record(storage, shared, 100)
    sweeps = [
        chosen_of(first, shared, stop=100),
        chosen_of(shared, second, stop=300),
    ]
    plan = planning.plan(storage, [sweeps[i] for i in order])
    assert plan.counts() == {"done": 1, "missing": 2}
    assert {p.id for p in plan.points} == {first.id, shared.id, second.id}
    assert len(plan.points) == 3
    assert plan.stops == {
        first.id: {"env_steps": 100},
        shared.id: {"env_steps": 300},
        second.id: {"env_steps": 300},
    }
    assert [p.values["seed"] for p in plan.to_run] == [1, 2]


def test_sweeps_that_stop_on_different_axes_are_both_satisfied(storage, toy):
    """A shared point trains until it has its steps and its hours."""
    p = toy_point()
    record(storage, p, 100)
    by_steps = chosen_of(p, stop=100)
    by_hours = choices.Chosen("hours", by_steps.sweep, (p,), {"hours": 1})
    plan = planning.plan(storage, [by_steps, by_hours])
    assert plan.stops == {p.id: {"env_steps": 100, "hours": 1}}
    assert plan.to_run == (p,)


def test_points_run_in_the_order_of_their_structures(storage, toy):
    """So that each program is compiled once; else in the sweep's order."""
    points = [
        toy_point(**v)
        for v in grid.product(seed=range(2), rate=(0.1, 0.2), steps=(2, 1))
    ]
    plan = planning.plan(storage, [chosen_of(*points, stop=100)])
    in_order = [
        (p.values["steps"], p.values["seed"], p.values["rate"]) for p in plan.to_run
    ]
    assert in_order == [
        (steps, seed, rate)
        for steps in (2, 1)
        for seed in (0, 1)
        for rate in (0.1, 0.2)
    ]


def test_values_that_differ_by_rounding_are_told(toy):
    """0.3 and 0.1 + 0.2 are two points, of which a grid has one by mistake."""
    path = toy / "sweeps" / "toy_sweep.py"
    path.write_text(SWEEP.replace("(3e-4, 0.5)", "(0.3, 0.1 + 0.2, 0.31, 0.0, 1e-300)"))
    assert choices.twins(choose()) == [
        "toy_sweep: rate = 0.3 and 0.30000000000000004 are two values; is one of them "
        "a rounding of the other?"
    ]


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_a_sweep_file_may_hold_a_dataclass(toy, future):
    """Python looks for its module while it makes one."""
    declared = (
        "import dataclasses, typing\n\n\n@dataclasses.dataclass\nclass Grid:\n"
        "    rates: tuple = (0.3,)\n    name: typing.ClassVar[str] = 'a'\n"
    )
    path = toy / "sweeps" / "toy_sweep.py"
    path.write_text(future + declared + SWEEP.replace("(3e-4, 0.5)", "Grid().rates"))
    assert values(choose(), "rate")[0] == (0.3,)
