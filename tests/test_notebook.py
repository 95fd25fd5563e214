"""The notebook of docs/ runs from its first cell to its last, on the demo's points."""

import json
import sys

import pytest
from matplotlib import pyplot

from bmg_sweeps import paths
from bmg_sweeps.records import attempts, files, store
from bmg_sweeps.sweep import choices

NOTEBOOK = json.loads((paths.ROOT / "docs" / "numbers.ipynb").read_text("utf-8"))
DEMO = choices.choose("figure_2", choices.Choice(scale="smoke"))
LAST = int(DEMO.stop["env_steps"])
AMOUNTS = [LAST * i // 10 for i in range(1, 11)]


def reward(values, amount):
    """Where BMG earns twice as much as any fixed weight, and seed 1 more than 0."""
    factor = 2.0 if values["update_kind"] == "bootstrapped_meta_gradient" else 1.0
    return factor * amount + values["seed"]


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """The names that the cells have made, run in docs/ beside a storage."""
    storage = files.open_storage(str(tmp_path / "runs"))
    for p in DEMO.points:
        rewards = [reward(p.values, n) for n in AMOUNTS]
        rows = {"env_steps": AMOUNTS, "total_reward": rewards}
        rows["training_seconds"] = [float(i) for i in range(10)]
        attempts.begin(storage, store.read(storage, p.trainer, p.id)).commit(
            progress={"env_steps": LAST, "hours": 9 / 3600},
            rows=rows,
            provenance={"device": "cpu"},
            release=True,
        )
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "docs")
    monkeypatch.setattr(sys, "path", [*sys.path])  # A cell adds to it.
    names = {"__name__": "__main__"}
    for i, cell in enumerate(NOTEBOOK["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {i}", "exec"), names)
    yield names
    pyplot.close("all")


def test_the_cells_have_the_records_numbers(ran):
    """What is best of each method at each budget, and the curves that are drawn."""
    best = ran["best"]
    assert best.index.tolist() == AMOUNTS
    assert best["BMG"].tolist() == [2.0 * n + 0.5 for n in AMOUNTS]
    assert best["fixed"].tolist() == [n + 0.5 for n in AMOUNTS]
    lines = ran["axes"].get_lines()
    assert len(lines) == len({p.configuration().id for p in DEMO.points})
    for line in lines:
        factor = 2.0 if line.get_label().startswith("BMG") else 1.0
        assert line.get_ydata().tolist() == [factor * n + 0.5 for n in AMOUNTS]
    assert ran["axes"].get_ylabel() == "total reward"
    assert len(ran["claims"]) == len(DEMO.sweep.claims)


def test_the_notebook_is_kept_without_outputs():
    """So that it names nobody's folders, and a change of it can be read."""
    assert (NOTEBOOK["nbformat"], {*NOTEBOOK}) == (
        4, {"cells", "metadata", "nbformat", "nbformat_minor"}
    )  # fmt: skip
    for cell in NOTEBOOK["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
