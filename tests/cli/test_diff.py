"""`diff` says in what two points differ, or two sweeps' best, and where curves part.

The toy's reward is K + seed at 50 steps, and at 100 steps K + seed + 10 · rate. Its
loss is 1 and then K; its weight is K, but for seed 1 it is 1 at first.
"""

import json
import re

import pytest

from bmg_sweeps import __main__, paths
from bmg_sweeps.records import attempts, store
from bmg_sweeps.sweep import choices

SWEEP = """
from bmg_sweeps.sweep import Method, Scale, Select, Sweep, arm

MG = {{"update_kind": "meta_gradient"}}
FIXED = {{"update_kind": "fixed"}}
SWEEP = Sweep(
    title="Mine",
    trainer="two_colors_actor_critic",
    scales={{
        "smoke": Scale(
            arm(
                MG,
                inner_steps={inner_steps},
                meta_learning_rate={rates},
                seed=range(2),
            )
            + arm({other}, inner_steps=(1,), seed=range(2)),
            stop={{"env_steps": {stop}}},
        )
    }},
    select=Select(
        metric="total_reward",
        mode="max",
        budgets={{"env_steps": 1}},
        test="test_reward",
    ),
    methods={{
        "MG": Method(MG, tuned={{"inner_steps": "K", "meta_learning_rate": "β"}}),
        "{method}": Method({other}, tuned={{}}),
    }},
)
"""
PART = {"packages": {"jax": "1", "numpy": "2"}, "device": "cpu", "revision": "abc"}


def commit(storage, p, to=100, **provenance):
    """Commits a point with two rows, and with a test that is ten times its reward."""
    values = p.values
    k, seed = float(values["inner_steps"]), values["seed"]
    early, weight = k + seed, 1.0 if seed else k
    rewards = [early, early + 10 * values["meta_learning_rate"]]
    axes = {"env_steps": [50, to], "training_seconds": [1.0, 3.0]}
    store.declare(storage, p.trainer, p.id, p.gin_text())
    attempts.begin(storage, store.read(storage, p.trainer, p.id)).commit(
        progress={"env_steps": to, "hours": 0.5},
        rows=axes | {"total_reward": rewards, "loss": [1.0, k], "weight": [weight, k]},
        test=axes | {"test_reward": [10 * r for r in rewards]},
        provenance=PART | provenance,
        release=True,
    )


def sweep(folder, name, **changes):
    """Writes a sweep file; returns its path and its points."""
    parts = {"inner_steps": (1, 7), "rates": (0.1, 0.2), "stop": 100}
    parts |= {"other": "FIXED", "method": "fixed"} | changes
    path = folder / name
    path.write_text(SWEEP.format(**parts))
    return str(path), choices.choose(str(path), choices.Choice()).points


@pytest.fixture
def diff(storage, capsys):
    """Runs the command on a storage; gives status, output and errors."""

    def diff_(*words):
        status = __main__.main(["diff", *words, "--storage", storage.uri])
        return status, *capsys.readouterr()

    return diff_


@pytest.fixture
def points(storage, tmp_path):
    """Two points of one seed that differ in the rate alone, on two devices."""
    _, every = sweep(tmp_path, "mine.py")
    one, other = (
        next(p for p in every if p.values["meta_learning_rate"] == rate)
        for rate in (0.1, 0.2)
    )
    commit(storage, one)
    commit(storage, other, device="H200", packages={"jax": "3", "numpy": "2"})
    return one, other


def tables(output):
    """The tables of --format json by their part, as dicts of rows by the first cell."""
    found = {}
    for table in json.loads(output)["tables"]:
        rows = {row[0]: row[1:] for row in table["rows"]}
        found.setdefault(table["field"], []).append((table, rows))
    return found


def test_two_points_differ_in_a_field_and_part_at_a_row(diff, points):
    """Rewards 1 and 2, then 1 + 1 and 1 + 2: they part at 100; the loss never does."""
    one, other = points
    status, output, errors = diff(one.id[:8], other.id[:8], "--format", "json")
    assert (status, errors) == (0, "")
    assert json.loads(output)["of"] == [one.id[:8], other.id[:8]]
    found = tables(output)
    ((values, rows),) = found["values"]
    assert rows == {"meta_learning_rate": [0.1, 0.2]}
    assert values["notes"] == [f"The same in both: {len(one.values) - 1} values."]
    ((numbers, rows),) = found["numbers"]
    assert numbers["axis"] == "env_steps"
    assert numbers["title"].endswith("at 100 env_steps")
    only = {"deviation": None}
    assert rows == {
        "loss": [{"mean": 1.0} | only, {"mean": 1.0} | only, 0.0, None],
        "total_reward": [{"mean": 2.0} | only, {"mean": 3.0} | only, 1.0, 100],
        "weight": [{"mean": 1.0} | only, {"mean": 1.0} | only, 0.0, None],
    }
    first = "The curves part at 100 env_steps: total_reward is 2.0 and 3.0."
    assert numbers["notes"][0] == first
    ((_, rows),) = found["provenance"]
    assert rows["device"] == ["cpu", "H200"]
    assert rows["jax"] == ["1", "3"]
    assert "numpy" not in rows
    assert rows["hours of training"] == ["0.5", "0.5"]
    assert rows["code revision"] == ["abc", "abc"]


def test_no_test_of_a_point_is_shown(diff, points):
    """Nobody has chosen it."""
    for form in ("text", "markdown", "latex", "json"):
        status, output, _ = diff(*(p.id for p in points), "--format", form)
        assert status == 0
        assert "total" in output
        assert "reward" in output
        assert not re.search(r"test(\\)?_reward", output)


def test_a_point_is_the_same_as_itself(diff, points):
    """Both of its rows, bit for bit."""
    _, output, _ = diff(points[0].id, points[0].id)
    assert "All numbers of the 2 rows that both have are bitwise the same." in output


def test_points_that_have_trained_unequally_far_are_read_where_both_have(
    diff, storage, points
):
    """At 80 the longer run's last row is that at 50; both have that one row."""
    one, other = points
    commit(storage, other, to=80)
    ((numbers, rows),) = tables(diff(one.id, other.id, "--format", "json")[1])[
        "numbers"
    ]
    assert numbers["title"].endswith("at 80 env_steps")
    assert [cell and cell["mean"] for cell in rows["total_reward"][:2]] == [1.0, 3.0]
    assert rows["total_reward"][3] is None
    assert numbers["notes"][0].startswith("All numbers of the 1 row that both have")


def test_a_point_that_has_not_trained_has_no_numbers(diff, storage, points):
    """Its values are known, and that is all."""
    empty = points[0].replaced(seed=77)
    store.declare(storage, empty.trainer, empty.id, empty.gin_text())
    status, output, _ = diff(points[0].id, empty.id)
    assert status == 0
    assert "The two have trained on no common axis." in output


def test_two_sweeps_best_are_compared_by_method(diff, storage, tmp_path):
    """Of MG K = 7 with β = 0.2, and K = 5 with β = 0.1, at the lesser of both stops.

    At 100: 9, 10 and 6, 7 for seeds 0 and 1, tests ten times as much. The
    second sweep's last budget is 200, which nothing has reached.
    """
    first, every = sweep(tmp_path, "first.py")
    second, others = sweep(
        tmp_path, "second.py", inner_steps=(5,), rates=(0.1,), stop=200,
        other='{"update_kind": "bmg"}', method="BMG",
    )  # fmt: skip
    for p in (*every, *others):
        commit(storage, p)
    status, output, errors = diff(first, second, "--format", "json")
    assert (status, errors) == (0, "")
    found = tables(output)
    ((_, rows),) = found["values"]  # MG is the only method of both.
    assert rows == {"inner_steps": [7, 5], "meta_learning_rate": [0.2, 0.1]}
    ((numbers, rows),) = found["numbers"]
    assert numbers["title"].endswith("at 100 env_steps")
    assert [c["mean"] for c in rows["total_reward"][:2]] == [9.5, 6.5]
    assert rows["total_reward"][2:] == [-3.0, 50]
    assert rows["loss"][2:] == [-2.0, 100]
    assert rows["weight"][2:] == [-2.0, 50]  # Of seed 0; of seed 1 at 100.
    assert [c["mean"] for c in rows["test_reward"][:2]] == [95.0, 65.0]
    assert "env_steps, seed 0: total_reward is 7.0 and 5.0." in numbers["notes"][0]
    ((_, rows),) = found["provenance"]
    assert rows["points"] == ["2", "2"]
    assert rows["hours of training"] == ["1", "1"]


def test_a_budget_of_sweeps_is_asked_for(diff, storage, tmp_path):
    """At 50 K = 7 has 7 and 8, whatever β is."""
    first, every = sweep(tmp_path, "first.py")
    for p in every:
        commit(storage, p)
    words = (first, first, "--budget", "env_steps=50", "--format", "json")
    status, output, _ = diff(*words)
    assert status == 0
    (_, rows), _ = tables(output)["numbers"]
    assert rows["total_reward"][0]["mean"] == 7.5


def test_what_cannot_be_compared_is_said_in_one_line(diff, storage, points, tmp_path):
    """With what was expected, and status 2."""
    one, other = (p.id for p in points)
    path, _ = sweep(tmp_path, "mine.py")
    lone, _ = sweep(tmp_path, "lone.py", inner_steps=(3,), other="MG", method="fixed")
    store.declare(storage, "toy", "ffffffffffff", "not gin")
    clash = [store.declare(storage, "toy", f"abcdef{i:06d}", "") for i in range(7)]
    assert len(clash) == 7
    for words, fragments in {
        (): ["nothing: expected two points"],
        (one,): [f"{one}: expected two points, or two sweeps"],
        (one, other, one): ["expected two points, or two sweeps"],
        (one, path): ["expected two sweeps, or two points"],
        (one, "figure_22"): ["'figure_22': no sweep", "did you mean figure_2?"],
        (one, "../x"): ["'../x': no sweep"],
        (one, "abcdef"): ["point abcdef", "7 match (abcdef000000, abcdef000001"],
        (one, "012345678901"): ["point 012345678901", "0 match"],
        (one, "ffffffffffff"): ["gin"],
        (one, other, "--scale", "lite"): ["--scale: expected two sweeps"],
        (one, other, "--budget", "env_steps=5"): ["--budget: expected two sweeps"],
        (path, path, "--scale", "papre"): ["--scale papre"],
        (lone, path): ["no point has trained yet"],
        (path, path, "--budget", "frames=3"): ["--budget frames=3"],
    }.items():
        status, output, errors = diff(*words)
        assert (status, output) == (2, ""), words
        assert errors.count("\n") == 1, words
        for fragment in fragments:
            assert fragment in errors, (words, errors)


def test_a_damaged_record_is_named(diff, storage, points):
    """It has no numbers that could be compared."""
    one, other = points
    (rows,) = [n for n in storage.sizes(one.trainer, one.id) if n.startswith("rows")]
    storage.remove(one.trainer, one.id, rows)
    status, _, errors = diff(one.id, other.id)
    assert status == 2
    assert f"point {one.id}: damaged record (rows-" in errors


def test_the_sweeps_that_the_docs_compare_have_a_method_in_common():
    """At the scale that stands there, or there would be nothing to compare."""
    text = (paths.ROOT / "docs" / "numbers.md").read_text(encoding="utf-8")
    found = re.findall(r"bmg diff (figure\w+) (figure\w+) --scale (\w+)", text)
    assert found
    for *names, scale in found:
        both = [choices.choose(n, choices.Choice(scale=scale)).methods for n in names]
        assert set(both[0]) & set(both[1]), names
