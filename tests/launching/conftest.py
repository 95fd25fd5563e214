"""Launches of the toy trainer in the process of the test, where Ray has no part."""

import pytest
import toy_checkout

from bmg_sweeps.launching import checking, cluster, trials
from bmg_sweeps.records import store
from bmg_sweeps.running import work_unit


@pytest.fixture
def toy_here(tmp_path, monkeypatch, toy):
    """A folder with a sweep of four points, mine.py, that trains in this process."""
    points = "product(rate=(0.1, 0.2), seed=(0, 1))"
    toy_checkout.enter(tmp_path, toy, monkeypatch, points)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(checking, "check", lambda *_, **__: {})
    monkeypatch.setattr(trials, "run", train_here)
    monkeypatch.setattr(cluster, "import_ahead", lambda resources: None)
    return tmp_path


def train_here(storage, plan, resources, *, retry=False, **_):
    """Runs a plan without Ray."""
    for p in plan.to_run:
        store.declare(storage, p.trainer, p.id, p.gin_text())
    stops = {p.id: plan.stops[p.id] for p in plan.to_run}
    task = work_unit.Task(trainer="toy_trainer", stops=stops, retry=retry)
    work_unit.run(storage, task)
    return trials.Outcome(False, ())
