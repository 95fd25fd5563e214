"""A storage that was written before reads as before, and its points are done.

`old_storage/` was made by revision d7a96c6, when all modules lay flat: two points of
two-colors and two of few-shot, with networks of a few units.
"""

import pathlib
import shutil

import numpy as np
import pytest

from bmg_sweeps.analysis import results
from bmg_sweeps.launching import planning
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import Method, Scale, Select, Sweep, arm, choices

OLD = pathlib.Path(__file__).with_name("old_storage")
BMG = {
    "update_kind": "bootstrapped_meta_gradient",
    "hidden_sizes": (2,),
    "meta_hidden_sizes": (2,),
    "num_recent_rollouts": 2,
}
TWO_COLORS = Sweep(
    title="Old",
    trainer="two_colors_actor_critic",
    scales={
        "smoke": Scale(
            arm(BMG, target_steps=(1, 2), seed=(0,)), stop={"env_steps": 20_000}
        )
    },
    select=Select(metric="total_reward", mode="max", budgets={"env_steps": 2}),
    methods={
        "BMG": Method({"update_kind": BMG["update_kind"]}, tuned={"target_steps": "L"})
    },
)
MAML = {
    "data_set": "glyphs",
    "num_blocks": 1,
    "num_filters": 1,
    "num_ways": 2,
    "num_shots": 1,
    "num_queries": 1,
    "num_evaluation_queries": 1,
    "num_evaluation_tasks": 4,
    "meta_batch_size": 1,
    "evaluation_interval": 2,
    "record_interval": 2,
    "update_kind": "maml",
    "inner_steps": 1,
    "evaluation_steps": 1,
    "target_steps": 1,
    "target_bootstrap": "objective_step",
    "matching_function": "policy_kl",
}
FEW_SHOT = Sweep(
    title="Old few-shot",
    trainer="few_shot",
    scales={"smoke": Scale(arm(MAML, seed=range(2)), stop={"meta_updates": 4})},
    select=Select(
        metric="validation_accuracy",
        test="test_accuracy",
        mode="max",
        budgets={"meta_updates": 2},
    ),
    methods={"MAML": Method({"update_kind": "maml"}, tuned={"inner_steps": "K"})},
)
IDS = {
    "two_colors_actor_critic": ["cca00a1a000f", "d4fe8b9a72ab"],
    "few_shot": ["3dda508f79c2", "c5405f06d420"],
}


@pytest.fixture
def storage(tmp_path):
    """A copy, so that nothing can be written into the original."""
    shutil.copytree(OLD, tmp_path / "runs")
    return files.open_storage(str(tmp_path / "runs"))


def choose(monkeypatch, sweep):
    monkeypatch.setattr(choices.loading, "load_sweep", lambda name: sweep)
    return choices.choose("old", choices.Choice())


@pytest.mark.parametrize("sweep", [TWO_COLORS, FEW_SHOT], ids=lambda s: s.trainer)
def test_old_points_are_done(storage, monkeypatch, sweep):
    """Their ids are the same, their objects are whole, and nothing is to be run."""
    chosen = choose(monkeypatch, sweep)
    assert [p.id for p in chosen.points] == IDS[sweep.trainer]
    plan = planning.plan(storage, [chosen], verify=True)
    assert plan.counts() == {"done": 2}
    assert plan.to_run == ()


def test_old_rows_and_tests_are_read(storage, monkeypatch):
    """The numbers are those that the report printed then."""
    chosen = choose(monkeypatch, FEW_SHOT)
    last = results.load(storage, chosen).first.best[-1]
    assert last.budget == 4
    assert last.estimate.mean == 50
    assert (last.test.mean, last.test.deviation) == pytest.approx((43.75, 8.839), 1e-4)


def test_an_old_state_is_read(storage, monkeypatch):
    """A longer launch would go on from it."""
    chosen = choose(monkeypatch, TWO_COLORS)
    record = store.read(storage, chosen.sweep.trainer, chosen.points[0].id)
    state = store.state(storage, record)
    assert len(state) > 10
    assert all(np.isfinite(a).all() for a in state if a.dtype.kind == "f")
