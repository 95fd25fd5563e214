"""What a user can get wrong is one line that says what to mend, and exit status 2."""

import dataclasses
import json
import pathlib
import subprocess
import sys

import checked_here
import pytest

from bmg_sweeps import __main__, paths
from bmg_sweeps.cli import options, training
from bmg_sweeps.launching import cluster
from bmg_sweeps.records import attempts, files, store
from bmg_sweeps.sweep import choices, grid

TRAINER = "two_colors_actor_critic"
FIGURE_2 = choices.choose("figure_2", choices.Choice())
NUM_POINTS, STOP = len(FIGURE_2.points), FIGURE_2.stop["env_steps"]
SEEDS = {p.values["seed"] for p in FIGURE_2.points}


@pytest.fixture
def storage(tmp_path):
    return str(tmp_path / "runs")


@pytest.fixture
def command(storage, capsys):
    """Runs a command line on an empty storage; gives status, output and errors."""

    def run(*arguments):
        try:
            status = __main__.main([*arguments, "--storage", storage])
        except SystemExit as error:
            status = error.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def assert_one_line(result, *fragments):
    status, _, errors = result
    assert status == 2
    assert len(errors.splitlines()) == 1, errors
    assert errors.startswith("error: ")
    for fragment in fragments:
        assert fragment in errors


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["launch", "figure_22"], ["'figure_22'", "did you mean figure_2?"]),
        (["launch", "nothing/like/it.py"], ["'nothing/like/it.py'", "figure_2"]),
        (
            ["launch", "figure_2", "--gin", f"{TRAINER}.discont = 0.9"],
            [f"{TRAINER}.discont", "did you mean discount?"],
        ),
        (
            ["launch", "figure_2", "--gin", f"{TRAINER}.discount = 'high'"],
            [f"{TRAINER}.discount = 'high'", "float"],
        ),
        (
            ["launch", "figure_2", "--gin", f"{TRAINER}.inner_steps = 1.5"],
            [f"{TRAINER}.inner_steps = 1.5", "int"],
        ),
        (
            ["launch", "figure_2", "--gin", f"{TRAINER}.discount"],
            [f"gin line '{TRAINER}.discount'"],
        ),
        (["launch", "figure_2", "--gin", "other.x = 1"], ["other.x = 1", TRAINER]),
        (["launch", "figure_2", "--gin", f"{TRAINER}.seed = %S"], ["%S", "literal"]),
        (["launch", "figure_2", "--where", "discont=1"], ["discont", "discount?"]),
        (["launch", "figure_2", "--where", "discount"], ["'discount'", "NAME=VALUE"]),
        (["launch", "figure_2", "--where", "seed=77"], ["no point is left", "seed=77"]),
        (["launch", "figure_2", "--scale", "huge"], ["huge", "smoke, lite, paper"]),
        (["launch", "figure_2", "--seeds", "3-1"], ["3-1", "0-4"]),
        (["launch", "figure_2", "--seeds", "-1"], ["--seeds"]),
        (["launch", "figure_2", "--stop", "frames=10"], ["frames", "env_steps"]),
        (["launch", "figure_2", "--stop", "env_steps=0"], ["env_steps=0", "above 0"]),
        (["launch", "figure_2", "--stop", "env_steps=x"], ["env_steps=x"]),
        (["launch", "figure_2", "--cpus", "0"], ["--cpus", "'0'", "above 0"]),
        (["launch", "figure_2", "--gpus", "-1"], ["--gpus", "at least 0"]),
        (["launch", "figure_2", "--wandb", "maybe"], ["maybe", "offline"]),
        (["launch"], ["sweep"]),
        (["launch", "all", "figure_2"], ["all figure_2", "expected all alone"]),
        (["fly"], ["fly", "launch"]),
        (["show", "figure_2", "--point", "zzz"], ["zzz", "0 match"]),
        (["run", "figure_2", "--point", ""], [f"{NUM_POINTS} match"]),
        (["best", "figure_2"], ["sweep figure_2", "no point has trained yet"]),
        (["best", "figure_2", "--budget", "env_steps=9e9"], ["no point has trained"]),
        (["best", "figure_2", "--budget", "frames=1"], ["frames=1", "env_steps"]),
        (["rerun", "figure_2"], ["--seeds"]),
        (["rerun", "figure_2", "--seeds", "10"], ["no point has trained yet"]),
        (["report", "figure_2", "--format", "pdf"], ["pdf", "markdown"]),
        (["best", "figure_2", "--stop", "hours=1"], ["hours", "env_steps=N"]),
        (
            ["launch", "figure_2", "--gin", f"{TRAINER}.discount = nan"],
            [f"{TRAINER}.discount = nan", "expected a literal value"],
        ),
    ],
)
def test_a_mistake_is_one_line(command, storage, arguments, fragments):
    """The line names the field, the value and what was expected; nothing is left."""
    assert_one_line(command(*arguments), *fragments)
    assert not pathlib.Path(storage).exists()


def test_a_value_that_makes_no_sense_is_refused_before_anything_starts(
    command, storage, monkeypatch
):
    """The trainer's own check speaks, in the launcher's voice."""
    checked_here.patch(monkeypatch)
    result = command("launch", "figure_2", "--gin", f"{TRAINER}.learning_rate = -0.1")
    assert_one_line(result, "learning_rate", "expected")
    assert not [*pathlib.Path(storage).rglob("point.gin")]


def test_a_sweep_with_a_bad_point_is_refused(command, tmp_path, monkeypatch):
    """K = 0 in a user's own sweep file."""
    checked_here.patch(monkeypatch)
    path = write_sweep(tmp_path, "points = product(inner_steps=(0,))")
    assert_one_line(command("launch", path), "inner_steps = 0", "at least 1")


@pytest.mark.parametrize(
    ("body", "fragments"),
    [
        ("points = (", ["line", "never closed"]),
        ("points = product(inner_steps=1)", ["inner_steps = 1", "(1,)"]),
        ("points = zipped(seed=(1, 2), inner_steps=(1,))", ["one length"]),
        ("points = product(discount=(float('inf'),))", ["discount = inf", "literal"]),
        ("points = product(discont=(0.9,))", ["discont", "discount?"]),
        ("raise RuntimeError('no')", ["RuntimeError: no"]),
    ],
)
def test_a_broken_sweep_file_is_one_line(command, tmp_path, body, fragments):
    """The line names the file and what is wrong in it."""
    path = write_sweep(tmp_path, body)
    assert_one_line(command("show", path), *fragments)


def test_a_file_without_a_sweep_is_named(command, tmp_path):
    """Any Python file is not a sweep."""
    path = tmp_path / "empty.py"
    path.write_text("")
    assert_one_line(command("show", str(path)), "empty.py", "SWEEP = Sweep")


def test_a_storage_that_is_a_file_is_refused(command, storage):
    """Nothing can be written there; the line says so."""
    pathlib.Path(storage).write_text("")
    assert_one_line(command("launch", "figure_2"), "--storage", "can be written")


def test_a_broken_trainer_breaks_neither_list_nor_status(
    command, monkeypatch, tmp_path
):
    """Its source cannot be imported; the fields can still be read."""
    for path in paths.TRAINERS.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text() + "\nraise RuntimeError\n")
    monkeypatch.setattr(paths, "TRAINERS", tmp_path)
    assert command("list")[0] == 0
    assert command("status", "figure_2")[0] == 0


def test_show_prints_a_points_gin_text_and_record(command, storage):
    """The whole of it can be read, and the text is what gin would parse."""
    first = choices.choose("figure_2", choices.Choice()).points[0]
    status, output, _ = command("show", "figure_2", "--point", first.id[:8])
    assert status == 0
    assert first.gin_text() in output


def test_a_damaged_record_is_named_by_status_and_counted_as_missing(command, storage):
    """A truncated checkpoint: the point's id, the file, and what was found."""
    chosen = choices.choose("figure_2", choices.Choice())
    runs = files.open_storage(storage)
    key = chosen.points[0].trainer, chosen.points[0].id
    attempts.begin(runs, store.read(runs, *key)).commit(
        progress={"env_steps": STOP},
        rows={"env_steps": [STOP], "total_reward": [1.0]},
        release=True,
    )
    assert "1 done" in command("status", "figure_2")[1]
    path = next(pathlib.Path(runs.path(*key)).glob("rows-*"))
    path.write_bytes(path.read_bytes()[:-3])
    _, output, _ = command("status", "figure_2")
    assert f"{NUM_POINTS} missing" in output
    assert key[1] in output
    assert path.name in output


def test_a_traceback_is_shown_only_on_request(command):
    """--debug is for those who look for the cause in the code."""
    assert "Traceback" in command("show", "nosuch", "--debug")[2]
    assert "Traceback" not in command("show", "nosuch")[2]


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (RuntimeError("no\nway"), 1, "error: RuntimeError: no (--debug shows where)"),
        (KeyboardInterrupt(), 130, "error: interrupted; the same command goes on"),
    ],
)
def test_what_is_no_mistake_of_the_users_is_one_line_too(
    command, monkeypatch, error, status, line
):
    """The program's own mistakes, and Ctrl-C; with --debug, where they arose."""

    def fail(*_):
        raise error

    monkeypatch.setattr("bmg_sweeps.launching.planning.plan", fail)
    found, _, errors = command("status", "figure_2")
    assert found == status
    assert errors.startswith(line)
    assert errors.count("\n") == 1
    if status == 130:
        assert "Traceback" in command("status", "figure_2", "--debug")[2]
    else:
        with pytest.raises(type(error)):
            command("status", "figure_2", "--debug")


def test_best_as_json_is_json(command, storage):
    """One object for each method, with all values of the configuration."""
    chosen = choices.choose("figure_2", choices.Choice())
    runs = files.open_storage(storage)
    for one in chosen.points:
        attempts.begin(runs, store.read(runs, one.trainer, one.id)).commit(
            progress={"env_steps": STOP},
            rows={"env_steps": [STOP], "total_reward": [float(one.values["seed"])]},
            release=True,
        )
    found = json.loads(command("best", "figure_2", "--format", "json")[1])
    there = {grid.method_of(chosen.sweep, p.values) for p in chosen.points}
    expected = [name for name in chosen.sweep.methods if name in there]
    assert [one["method"] for one in found] == expected
    assert {one["mean"] for one in found} == {sum(SEEDS) / len(SEEDS)}
    assert all(len(one["points"]) == len(SEEDS) for one in found)


def test_the_command_is_a_module(storage):
    """`python -m bmg_sweeps list` from the checkout, in under two seconds of work."""
    done = subprocess.run(
        [sys.executable, "-m", "bmg_sweeps", "list", "--storage", storage],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "figure_2" in done.stdout


SWEEP = """
from bmg_sweeps.sweep import Method, Scale, Select, Sweep, product, zipped

{body}
SWEEP = Sweep(
    title="A user's own",
    trainer="two_colors_actor_critic",
    scales={{"smoke": Scale(points, stop={{"env_steps": 10_000}})}},
    select=Select(metric="total_reward", mode="max", budgets={{"env_steps": 1}}),
    methods={{"all": Method({{}}, tuned={{"inner_steps": "K"}})}},
)
"""


def write_sweep(folder, body):
    path = folder / "mine.py"
    path.write_text(SWEEP.format(body=body))
    return str(path)


@pytest.mark.parametrize(
    ("pack", "gpus", "is_told"),
    [
        (None, 0.0, False),
        (1, 1.0, False),
        (None, 1.0, True),
        (8, 0.0, True),
        (cluster.AUTO_PACK, 0.0, True),
    ],
)
@pytest.mark.parametrize("axis", ["hours", "env_steps"])
def test_a_pack_that_costs_the_budgets_in_hours_is_told(pack, gpus, is_told, axis):
    """Before it trains: the hours of a pack are not its points' own."""
    chosen = choices.choose("figure_3", choices.Choice())
    rule = dataclasses.replace(chosen.sweep.select, budgets={axis: 2})
    sweep = dataclasses.replace(chosen.sweep, select=rule)
    asked = options.Training(
        resources=cluster.Resources(gpus=gpus),
        pack=pack,
        retry=False,
        dry_run=True,
        wandb="off",
    )
    chosen = [dataclasses.replace(chosen, sweep=sweep)]
    told = training._loses_hours(chosen, asked, pack)
    assert told == (is_told and axis == "hours")
