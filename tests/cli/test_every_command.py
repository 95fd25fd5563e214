"""Every command over the sweeps of the checkout, at every scale, in this process.

What a launch checks in JAX is left out: `tests/test_declarations.py` builds the Config
of every point.
"""

import json
import os
import re
import subprocess
import sys

import pytest

from bmg_sweeps import __main__, paths
from bmg_sweeps.launching import checking
from bmg_sweeps.sweep import choices, loading

SCALES = ("smoke", "lite", "paper")
FIGURE_2 = choices.choose("figure_2", choices.Choice())
SKIPPED = {
    "smoke": "atari_check, few_shot_choices, mini_imagenet_check, two_colors_check, "
    "two_colors_choices, two_colors_q_choices, two_colors_q_units",
    "lite": "",
    "paper": "atari_check, few_shot_choices, mini_imagenet_check, two_colors_check, "
    "two_colors_choices, two_colors_q_choices, two_colors_q_units",
}


@pytest.fixture(scope="module", autouse=True)
def _resolved_once():
    """The sweeps' points: there are 31,000 at paper scale, which takes seconds."""
    resolve, found = choices._chosen, {}

    def remembered(name, sweep, choice):
        if name.endswith(".py"):
            return resolve(name, sweep, choice)
        key = name, repr(choice)
        if key not in found:
            found[key] = resolve(name, sweep, choice)
        return found[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choices, "_chosen", remembered)
        yield


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Runs a command on an empty storage; gives its status, output and errors."""
    monkeypatch.chdir(tmp_path)
    checked = []
    monkeypatch.setattr(
        checking, "check", lambda points, *_, **__: checked.extend(points) or {}
    )

    def run_(*arguments):
        status = __main__.main([*arguments, "--storage", "runs"])
        return status, *capsys.readouterr()

    run_.checked = checked
    return run_


def has_skipped(output, scale):
    said = [line for line in output.splitlines() if line.startswith("Skipped")]
    line = f"Skipped, as they have no scale {scale}: {SKIPPED[scale]}."
    return said == ([line] if SKIPPED[scale] else [])


@pytest.mark.parametrize("scale", SCALES)
def test_lists_and_status_are_of_every_sweep(run, scale):
    """A sweep without the scale has no numbers in a list, and is skipped by status."""
    status, output, errors = run("list", "--scale", scale)
    assert (status, errors) == (0, "")
    assert all(name in output for name in loading.sweep_names())
    status, output, errors = run("status", "--scale", scale)
    assert (status, errors) == (0, "")
    assert has_skipped(output, scale)
    names = [line.split(":")[0] for line in output.splitlines()[1:]]
    skipped = SKIPPED[scale].split(", ")
    assert [n for n in names if not n.startswith("Skipped")] == [
        name for name in loading.sweep_names() if name not in skipped
    ]


@pytest.mark.parametrize("scale", SCALES)
def test_all_are_launched_reported_and_tracked(run, scale, tmp_path):
    """Those that have the scale; a launch would run each point once.

    Reports of all of the paper's seeds take long, and have the same parts as of one.
    """
    seeds, part = (("--seeds", "0"), "-part-HASH") if scale == "paper" else ((), "")
    for words in (
        ("launch", "all", "--dry-run"),
        ("report", "all", *seeds),
        ("track", "all", "--wandb", "off", *seeds),
    ):
        status, output, errors = run(*words, "--scale", scale)
        assert (status, errors) == (0, ""), words
        assert has_skipped(output, scale), words
    assert len(run.checked) == len({p.id for p in run.checked}) > 0
    skipped = SKIPPED[scale].split(", ")
    pages = {path.stem for path in (tmp_path / "runs" / "reports").glob("*.html")}
    there = {name for name in loading.sweep_names() if name not in skipped}
    pages = {re.sub("-part-[0-9a-f]{6}$", "-part-HASH", name) for name in pages}
    assert pages == {"index"} | {f"{name}-{scale}{part}" for name in there}


@pytest.mark.parametrize("name", loading.sweep_names())
def test_a_sweep_is_shown_and_its_best_asked_for_at_each_of_its_scales(run, name):
    """Nothing has been trained, which `best` says in one line."""
    for scale in loading.load_sweep(name).scales:
        status, output, errors = run("show", name, "--scale", scale)
        assert (status, errors) == (0, "")
        assert f"scale {scale}." in output
        status, output, errors = run("best", name, "--scale", scale)
        assert (status, output) == (2, "")
        assert "no point has trained yet (they are missing)" in errors
        assert errors.count("\n") == 1


def test_a_scale_that_no_sweep_has_is_refused(run):
    """With the names of those that there are."""
    for words in (["list"], ["status"], ["launch", "all"], ["report", "all"]):
        status, _, errors = run(*words, "--scale", "papre")
        assert status == 2
        assert errors == (
            "error: --scale papre: no sweep has it; did you mean paper?\n"
        ), words


def test_a_sweep_without_a_smoke_scale_has_its_first_where_none_is_named(run):
    """Alone; among all of them, it is skipped."""
    assert "scale lite." in run("show", "two_colors_check")[1]
    assert "scale smoke." in run("show", "figure_2")[1]


def test_scales_are_named_freely(run, tmp_path):
    """A user's own study needs no paper scale."""
    (tmp_path / "mine.py").write_text(MINE)
    assert "2 points: 2 missing" in run("status", "mine.py")[1]
    assert "scale tiny." in run("status", "mine.py")[1]
    assert "3 points: 3 missing" in run("status", "mine.py", "--scale", "all-of-it")[1]
    status, _, errors = run("status", "mine.py", "--scale", "smoke")
    assert status == 2
    assert errors == "error: --scale smoke: sweep mine.py has tiny, all-of-it\n"


MINE = """
from bmg_sweeps.sweep import Method, Scale, Select, Sweep, product

SWEEP = Sweep(
    title="Mine",
    trainer="two_colors_actor_critic",
    scales={
        name: Scale(product(seed=range(n)), stop={"env_steps": 10_000})
        for name, n in {"tiny": 2, "all-of-it": 3}.items()
    },
    select=Select(metric="total_reward", mode="max", budgets={"env_steps": 1}),
    methods={"all": Method({}, tuned={})},
)
"""


def test_list_as_json(run):
    """All of it is JSON, and each sweep has the documented keys."""
    status, output, _ = run("list", "--json")
    found = json.loads(output)
    assert status == 0
    assert found.keys() == {"storage", "scale", "sweeps"}
    assert (found["storage"], found["scale"]) == ("runs", "smoke")
    by_name = {sweep["name"]: sweep for sweep in found["sweeps"]}
    check = by_name["mini_imagenet_check"]
    assert by_name["figure_2"] == {
        "name": "figure_2",
        "title": loading.load_sweep("figure_2").title,
        "trainer": "two_colors_actor_critic",
        "scales": ["smoke", "lite", "paper"],
        "points": len(FIGURE_2.points),
        "done": 0,
    }
    assert [*by_name] == loading.sweep_names()
    assert (check["points"], check["done"]) == (None, None)


def test_show_as_json(run):
    """The points with their values; or one point with its gin text and record."""
    found = json.loads(run("show", "figure_2", "--json")[1])
    assert found.keys() == {
        *("storage", "sweep", "title", "trainer", "scale", "stop", "counts", "points")
    }
    assert found["counts"] == {"missing": len(FIGURE_2.points)}
    assert found["stop"] == FIGURE_2.stop
    first = found["points"][0]
    assert first.keys() == {"id", "method", "values", "status"}
    assert first["values"]["seed"] == 0
    one = json.loads(run("show", "figure_2", "--point", first["id"], "--json")[1])
    assert one.keys() == {
        *("storage", "id", "trainer", "values", "gin", "damage", "record")
    }
    assert (one["id"], one["values"]) == (first["id"], first["values"])
    assert one["gin"].startswith(f"# Point {first['id']}.")


def test_status_as_json(run):
    """What was skipped is a key, and no line."""
    found = json.loads(run("status", "--json")[1])
    assert found.keys() == {"storage", "skipped", "sweeps"}
    assert ", ".join(found["skipped"]) == SKIPPED["smoke"]
    assert [s for s in found["sweeps"] if s["name"] == "figure_2"] == [
        {
            "name": "figure_2",
            "scale": "smoke",
            "stop": FIGURE_2.stop,
            "points": len(FIGURE_2.points),
            "counts": {"missing": len(FIGURE_2.points)},
            "partly_trained": 0,
            "by_other_code": 0,
            "problems": {},
        }
    ]


@pytest.mark.parametrize("width", ["40", "80", "200"])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_list_cuts_no_name(run, monkeypatch, width, is_terminal):
    """However narrow the terminal is: titles are folded there."""
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    output = run("list")[1]
    assert "…" not in output
    for name in loading.sweep_names():
        assert name in output
        assert loading.load_sweep(name).trainer in output


@pytest.mark.parametrize("words", [["--help"], ["list"], ["status"]])
def test_a_command_that_looks_loads_nothing_slow(words, tmp_path):
    """Each of these takes 50 ms to seconds; `--help` needs no storage either."""
    slow = {"numpy", "rich", "jax", "ray", "wandb", "matplotlib", "jinja2", "plotly"}
    slow |= {"fsspec"} if words == ["--help"] else set()
    code = f"""if True:
        import sys
        from bmg_sweeps import __main__
        status = __main__.main({words})
        assert not {slow} & {{*sys.modules}}, {slow} & {{*sys.modules}}
        sys.exit(status)
    """
    path = {"PYTHONPATH": str(paths.ROOT), "PATH": os.environ["PATH"]}
    subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=path, check=True, timeout=60
    )
