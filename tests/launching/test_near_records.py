"""Points are missing, and records that differ in one value are there: that is told."""

import pytest

from bmg_sweeps import paths
from bmg_sweeps.launching import near_records, planning
from bmg_sweeps.records import store
from bmg_sweeps.sweep import choices

TRAINER = """
class Config:
    seed: int
    rate: float
    kind: str
    steps: int = structure()
"""
GIN = 'toy.seed = 0\ntoy.rate = 0.1\ntoy.kind = "fast"\ntoy.steps = 1\n'
SWEEP = """
from bmg_sweeps.sweep import Scale, Select, Sweep, product

SWEEP = Sweep(
    title="Toy",
    trainer="toy",
    scales={
        "smoke": Scale(product(steps=(1, 2), seed=range(2)), stop={"env_steps": 100}),
        "lite": Scale(product(kind=("slow",)), stop={"env_steps": 300}),
    },
    select=Select(metric="reward", mode="max", budgets={"env_steps": 1}),
    methods={},
)
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A checkout with one trainer, one .gin and one sweep."""
    for name, text in (("toy.py", TRAINER), ("toy.gin", GIN), ("toy_sweep.py", SWEEP)):
        (tmp_path / name).write_text(text)
    for folder in ("TRAINERS", "GIN", "SWEEPS"):
        monkeypatch.setattr(paths, folder, tmp_path)
    return tmp_path


def choose(scale="smoke"):
    return choices.choose("toy_sweep", choices.Choice(scale=scale))


def near(storage):
    """What is said of the sweep's points that have no record."""
    chosen = choose()
    missing = planning.plan(storage, [chosen]).unknown
    return near_records.Records(storage).near(chosen, missing)


@pytest.fixture
def recorded(storage, toy):
    """A storage with a record of each point at scale smoke."""
    for p in choose().points:
        store.declare(storage, "toy", p.id, p.gin_text())
    return storage


EDITS = {
    "a default of gin": ("toy.gin", "0.1", "0.2", "with rate=0.1 in place of 0.2"),
    "a name": ("toy.gin", "fast", "quick", "with kind='fast' in place of 'quick'"),
    "a value of the sweep": (
        "toy_sweep.py",
        "product(steps=(1, 2)",
        "product(steps=(1, 2), rate=(0.5,)",
        "with rate=0.1 in place of 0.5",
    ),
    "a field more": (
        "toy.py",
        "    kind: str",
        "    kind: str\n    more: int",
        "without more=3; was=3 in the trainer makes them the same",
    ),
    "a field less": (
        "toy.py",
        "    kind: str\n",
        "",
        "with a field kind, which the trainer has no longer",
    ),
}


@pytest.mark.parametrize(("name", "old", "new", "said"), EDITS.values(), ids=EDITS)
def test_what_was_edited_is_told(recorded, toy, name, old, new, said):
    """All four points are missing, and each has a record that is nearly its own."""
    assert near(recorded) == []
    (toy / name).write_text((toy / name).read_text().replace(old, new))
    if "more" in new:
        (toy / "toy.gin").write_text(GIN + "toy.more = 3\n")
    if not new:
        (toy / "toy.gin").write_text(GIN.replace('toy.kind = "fast"\n', ""))
        text = SWEEP.replace('product(kind=("slow",))', "product(rate=(0.3,))")
        (toy / "toy_sweep.py").write_text(text)
    assert near(recorded) == [f"4 of the missing points are there {said}"]


def test_two_edits_are_no_kin(recorded, toy):
    (toy / "toy.gin").write_text(GIN.replace("0.1", "0.2").replace("fast", "quick"))
    assert near(recorded) == []


def test_points_of_a_grid_are_no_kin_of_each_other(storage, toy):
    """Nor are other seeds, and points of another scale."""
    first, *_ = choose().points
    (slow,) = choose("lite").points
    for p in (first, slow):
        store.declare(storage, "toy", p.id, p.gin_text())
    assert near(storage) == []


@pytest.mark.parametrize("has_line", [False, True])
def test_a_field_with_a_former_value_does_not_hide_an_edit(recorded, toy, has_line):
    """Records from before it was added have no line of it, and later ones have."""
    text = TRAINER.replace("kind: str", "kind: str\n    more: int = data(was=3)")
    (toy / "toy.py").write_text(text)
    (toy / "toy.gin").write_text(GIN + "toy.more = 3\n")
    if has_line:
        for p in choose().points:
            store.declare(recorded, "toy", p.id, p.gin_text())
    assert near(recorded) == []
    (toy / "toy.gin").write_text(GIN.replace("0.1", "0.2") + "toy.more = 3\n")
    said = "4 of the missing points are there with rate=0.1 in place of 0.2"
    assert near(recorded) == [said]


def test_that_not_all_records_were_looked_at_is_told(recorded, toy, monkeypatch):
    """Else silence would seem to say that there are none."""
    (toy / "toy.gin").write_text(GIN.replace("0.1", "0.2"))
    monkeypatch.setattr(near_records, "MOST", 3)
    *_, last = near(recorded)
    assert last == "only 3 of 4 records were compared with them"
    monkeypatch.setattr(near_records, "MOST", 4)
    assert not any("were compared" in line for line in near(recorded))
