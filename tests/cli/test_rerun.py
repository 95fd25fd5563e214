"""`rerun` over seeds and tasks, from the command to its table; its points are done."""

import pytest

from bmg_sweeps import __main__
from bmg_sweeps.analysis import results, selection
from bmg_sweeps.launching import checking
from bmg_sweeps.records import attempts, store
from bmg_sweeps.sweep import choices

SWEEP = """
from bmg_sweeps.sweep import Method, Scale, Select, Sweep, arm

MG = {"update_kind": "meta_gradient"}
SWEEP = Sweep(
    title="Mine",
    trainer="two_colors_actor_critic",
    scales={
        "smoke": Scale(
            arm(MG, inner_steps=(1, 7), rollout_length=(8, 16), seed=range(2)),
            stop={"env_steps": 100},
        )
    },
    select=Select(
        metric="total_reward",
        mode="max",
        budgets={"env_steps": 1},
        over=("seed", "rollout_length"),
        test="test_reward",
    ),
    methods={"MG": Method(MG, tuned={"inner_steps": "K"})},
)
"""


def commit(storage, p):
    """By reward, K = 7 is best: K + task / 8 + seed; tests are ten times as large."""
    values = p.values
    reward = values["inner_steps"] + values["rollout_length"] / 8 + values["seed"]
    axes = {"env_steps": [100], "training_seconds": [1.0]}
    store.declare(storage, p.trainer, p.id, p.gin_text())
    attempts.begin(storage, store.read(storage, p.trainer, p.id)).commit(
        progress={"env_steps": 100, "hours": 0.1},
        rows=axes | {"total_reward": [reward]},
        test=axes | {"test_reward": [10 * reward]},
        provenance={"device": "cpu"},
        release=True,
    )


@pytest.fixture
def rerun(storage, tmp_path, capsys):
    """Runs the command on a storage in which everything has been trained."""
    path = tmp_path / "mine.py"
    path.write_text(SWEEP)
    chosen = choices.choose(str(path), choices.Choice())
    for p in chosen.points:
        commit(storage, p)
    best = results.load(storage, chosen).first.best
    for p in selection.on_fresh_seeds(chosen, best, (10, 12)):
        commit(storage, p)

    def run(seeds, *more):
        arguments = ["rerun", str(path), "--seeds", seeds, "--wandb", "off"]
        status = __main__.main([*arguments, "--storage", storage.uri, *more])
        return status, capsys.readouterr()

    return run


def test_all_tasks_run_again_and_tests_are_compared(rerun):
    """K = 7: means of seeds 0 and 1 are 8.5 and 9.5; of seeds 10 and 12 18.5, 20.5."""
    status, said = rerun("10,12")
    assert status == 0
    assert "4 done" in said.out
    assert "test_reward at 100 env_steps" in said.out
    (row,) = [line for line in said.out.splitlines() if "K=7" in line]
    cells = [cell.strip() for cell in row.split("  ") if cell.strip()]
    runs = "2 seeds × 2 rollout_lengths"
    assert cells == [
        *("MG", "K=7"),
        *("90 ± 7.07", "9 ± 0.707", runs),
        *("195 ± 14.1", "19.5 ± 1.41", runs),
    ]


def test_fresh_seeds_take_as_long_as_those_that_chose(rerun, monkeypatch):
    """Four points of six minutes, two at a time."""
    monkeypatch.setattr(checking, "check", lambda *_: {})
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    status, said = rerun("20-21", "--dry-run")
    assert status == 0
    assert "4 to run, of 2 structures, about 12 min (2 trials at a time)" in said.out


def test_a_seed_of_the_sweep_is_refused(rerun):
    status, said = rerun("1,10")
    assert status == 2
    assert said.err.startswith("error: --seeds: seed 1 was used in the selection")
