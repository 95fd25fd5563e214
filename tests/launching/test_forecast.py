"""How long a launch may take: hand-made records, and times that can be added up."""

import pytest

from bmg_sweeps import __main__
from bmg_sweeps.launching import checking, cluster, forecast, planning
from bmg_sweeps.records import attempts, files, store
from bmg_sweeps.sweep import choices, grid
from bmg_sweeps.sweep.point import Point
from bmg_sweeps.trainer import source

FIELDS = {
    "kind": source.Field("str", is_structure=True),
    "seed": source.Field("int", is_structure=False),
}
SWEEP = grid.Sweep(
    title="Toy",
    trainer="toy",
    scales={},
    select=grid.Select(metric="reward", mode="max", budgets={"env_steps": 1}),
    methods={},
)


def point(kind, seed):
    return Point("toy", {"kind": kind, "seed": seed}, FIELDS)


def train(storage, p, env_steps, seconds, **provenance):
    attempts.begin(storage, store.read(storage, "toy", p.id)).commit(
        progress={"env_steps": env_steps, "hours": seconds / 3600},
        provenance=provenance,
        release=True,
    )


def plan(storage, points, **stop):
    stop = stop or {"env_steps": 100}
    return planning.plan(storage, [choices.Chosen("toy", SWEEP, tuple(points), stop)])


def test_a_launch_of_nothing_known_is_not_forecast(storage):
    """Neither is one with nothing to run."""
    points = [point("a", seed) for seed in range(3)]
    assert forecast.seconds(plan(storage, points), 1) is None
    for p in points:
        train(storage, p, 100, 10)
    assert forecast.seconds(plan(storage, points), 1) is None


def test_what_is_left_counts_with_compiling_and_evaluating(storage):
    """50 + 100 steps of 0.2 + 0.1 s, and one program of 8 s."""
    points = [point("a", seed) for seed in range(3)]
    spent = {"compile_seconds": 8.0, "evaluation_seconds": 10.0}
    train(storage, points[0], 100, 20, **spent)
    train(storage, points[1], 50, 10, evaluation_seconds=5.0, compile_seconds=0.0)
    assert forecast.seconds(plan(storage, points), 1) == pytest.approx(150 * 0.3 + 8)


def test_trials_at_once_share_the_work(storage):
    """Four points of 20 s: with two slots, both compile the one program of 8 s."""
    points = [point("a", seed) for seed in range(5)]
    train(storage, points[0], 100, 20, compile_seconds=8.0)
    made = plan(storage, points)
    assert forecast.seconds(made, 1) == pytest.approx(4 * 20 + 8)
    assert forecast.seconds(made, 2) == pytest.approx(2 * 20 + 8)
    assert forecast.seconds(made, 4) == pytest.approx(20 + 8)
    assert forecast.seconds(made, 99) == pytest.approx(20 + 8)


def test_structures_compile_each(storage):
    """Three structures in one slot; what b and c take is not known, and as a's."""
    points = [point(kind, seed) for kind in "abc" for seed in (0, 1)]
    train(storage, points[0], 100, 20, compile_seconds=8.0)
    assert forecast.seconds(plan(storage, points), 1) == pytest.approx(5 * 20 + 3 * 8)


def test_no_launch_ends_before_its_longest_point(storage):
    """One point goes on for 1,000 steps, which no second slot speeds up."""
    points = [point("a", 0), point("b", 0)]
    train(storage, points[0], 100, 20)
    train(storage, points[1], 100, 200)
    made = plan(storage, points, env_steps=1_100)
    assert forecast.seconds(made, 2) == pytest.approx(1_000 * 2)


def test_a_points_part_of_its_pack_counts(storage):
    """Four points trained for 80 s together."""
    points = [point("a", seed) for seed in range(2)]
    train(storage, points[0], 100, 80, pack_width=4)
    assert forecast.seconds(plan(storage, points), 1) == pytest.approx(20)


def test_hours_are_known_before_anything_is_trained(storage):
    """A stop rule says them."""
    points = [point("a", seed) for seed in range(2)]
    assert forecast.seconds(plan(storage, points, hours=2), 2) == pytest.approx(7200)


def test_a_launch_needs_the_memory_of_its_largest_structure(storage):
    """What was counted wins over what is estimated; of a pack, a point's part."""
    points = [point(kind, seed) for kind in "abc" for seed in (0, 1)]
    a, b = points[0].structure, points[2].structure
    assert forecast.memory_bytes(plan(storage, points), {}) is None
    estimates = {a: 500, b: 90}
    assert forecast.memory_bytes(plan(storage, points), estimates) == 500
    train(storage, points[0], 100, 1, program_bytes=300, pack_width=2)
    assert forecast.memory_bytes(plan(storage, points), estimates) == 150
    train(storage, points[1], 50, 1, program_bytes=160)
    assert forecast.memory_bytes(plan(storage, points), estimates) == 160
    train(storage, points[4], 100, 1, program_bytes=900)
    assert forecast.memory_bytes(plan(storage, points), estimates) == 900
    # What is done does not count.
    train(storage, points[5], 100, 1, program_bytes=900)
    assert forecast.memory_bytes(plan(storage, points), estimates) == 160


def test_the_slots_of_this_machine(monkeypatch):
    """Of a cluster, and of GPUs, only Ray knows."""
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert cluster.own_slots(cluster.Resources()) == 8
    assert cluster.own_slots(cluster.Resources(cpus=3)) == 2
    assert cluster.own_slots(cluster.Resources(cpus=9)) == 1
    assert cluster.own_slots(cluster.Resources(address="auto")) is None
    assert cluster.own_slots(cluster.Resources(gpus=0.5)) is None


def test_a_launch_says_how_long_it_may_take(tmp_path, monkeypatch, capsys):
    """In units that a person reads; and what a point needs."""

    def check(points, *_):
        return {points[0].structure: 1_300_000_000, points[-1].structure: 1}

    monkeypatch.setattr(checking, "check", check)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    runs = str(tmp_path / "runs")
    name = str(tmp_path / "mine.py")
    (tmp_path / "mine.py").write_text(MINE)
    words = ["launch", name, "--dry-run", "--storage", runs]
    assert __main__.main(words) == 0
    assert ", time unknown: nothing like them has been" in capsys.readouterr().out
    first = choices.choose(name, choices.Choice()).points[0]
    storage = files.open_storage(runs)
    attempts.begin(storage, store.read(storage, first.trainer, first.id)).commit(
        progress={"env_steps": 100, "hours": 0.3}, release=True
    )
    assert __main__.main(words) == 0
    output = capsys.readouterr().out
    # 11 points of 18 min, two at a time.
    assert "11 to run, of 4 structures, about 1 h 39 min (2 trials at a time)" in output
    assert "\nMemory of a point: about 1.2 GiB\n" in output
    assert __main__.main([*words, "--address", "auto"]) == 0
    output = capsys.readouterr().out
    assert "about 3 h 18 min (if trials ran one by one)" in output


MINE = """
from bmg_sweeps.sweep import Scale, Select, Sweep, product

SWEEP = Sweep(
    title="Mine",
    trainer="two_colors_actor_critic",
    scales={
        "smoke": Scale(
            product(inner_steps=(1, 3, 5, 7), seed=range(3)), stop={"env_steps": 100}
        )
    },
    select=Select(metric="total_reward", mode="max", budgets={"env_steps": 1}),
    methods={},
)
"""
