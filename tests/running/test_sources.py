"""Sources: all points of a pack share one, so it must not depend on a point."""

import numpy as np
import pytest
import toy_variants
from toy_points import STOP, declare, outcome, run_all

from bmg_sweeps import errors
from bmg_sweeps.records import store
from bmg_sweeps.running import binding, noted
from bmg_sweeps.trainer import contract, structures

pytestmark = pytest.mark.usefixtures("toy")

TRAINER = "toy_sourced"
SEEDS = {"a": 1, "b": 2, "c": 3}


def test_a_pack_with_a_source_gives_each_point_the_numbers_it_gets_alone(storage):
    """To rounding; and another slope gives other numbers, so that it is used."""
    for point_id, seed in SEEDS.items():
        for name in (point_id, f"{point_id}-alone"):
            declare(storage, name, TRAINER, seed=seed, slope=2)
    assert set(run_all(storage, dict.fromkeys("abc", STOP), TRAINER, pack=3).values())
    for point_id in SEEDS:
        alone = f"{point_id}-alone"
        run_all(storage, {alone: STOP}, TRAINER)
        packed, single = (outcome(storage, i, TRAINER) for i in (point_id, alone))
        assert packed[1]["env_steps"] == single[1]["env_steps"]
        np.testing.assert_allclose(packed[1]["drift"], single[1]["drift"], rtol=1e-5)
        np.testing.assert_allclose(packed[0][0], single[0][0], rtol=1e-5)
    declare(storage, "other", TRAINER, seed=1, slope=3)
    run_all(storage, {"other": STOP}, TRAINER)
    assert outcome(storage, "other", TRAINER)[1] != outcome(storage, "a", TRAINER)[1]


@pytest.mark.parametrize("pack", [1, 3])
def test_a_source_that_depends_on_the_seed_is_refused(storage, tmp_path, pack):
    """Else every point of a pack would train on the first one's data."""
    seeded = ("structure.slope", "structure.seed")
    with toy_variants.importable(tmp_path, "toy_seeded", seeded, of=TRAINER) as name:
        for point_id, seed in SEEDS.items():
            declare(storage, point_id, name, seed=seed, slope=2)
        statuses = run_all(storage, dict.fromkeys("abc", STOP), name, pack=pack)
    assert statuses == dict.fromkeys("abc", "failed")
    assert store.read(storage, name, "b").failure.message == (
        "trainer toy_seeded: open_source reads seed; expected fields declared with "
        "structure() only, as points of a pack share one source"
    )


def test_a_structure_has_the_static_fields_and_what_is_computed_of_them():
    """Points that differ in data fields only have equal ones."""
    text = toy_variants.gin_text(TRAINER, slope=2)
    structure, same, other = (
        structures.of(TRAINER, binding.bind(TRAINER, changed)[1])
        for changed in (text, text.replace("0.1", "0.7"), text.replace("= 2", "= 4"))
    )
    assert (structure.width, structure.slope, structure.shape) == (3, 2, (3,))
    assert structure == same != other
    assert hash(structure) == hash(same)
    with pytest.raises(errors.UserError, match="open_source reads rate; expected"):
        _ = structure.rate
    with pytest.raises(AttributeError, match="slop"):
        _ = structure.slop


@pytest.mark.parametrize("pack", [1, 3])
@pytest.mark.parametrize("asked_for", ["a source", "provenance"])
def test_no_point_fails_for_what_a_machine_lacks(storage, monkeypatch, pack, asked_for):
    """As where a node has no data: they are let go of, and another may train them."""

    def lacks(*_):
        raise errors.MachineError("data nowhere: expected a folder, found nothing")

    for point_id, seed in SEEDS.items():
        declare(storage, point_id, TRAINER, seed=seed, slope=2)
    where = contract.Trainer if asked_for == "a source" else noted
    name = "source" if asked_for == "a source" else "by_trainer"
    with monkeypatch.context() as patch:
        patch.setattr(where, name, lacks)
        with pytest.raises(errors.MachineError, match="data nowhere"):
            run_all(storage, dict.fromkeys("abc", STOP), TRAINER, pack=pack)
    for point_id in SEEDS:
        record = store.read(storage, TRAINER, point_id)
        assert record.failure is None
        assert not record.is_leased()
    statuses = run_all(storage, dict.fromkeys("abc", STOP), TRAINER, pack=pack)
    assert statuses == dict.fromkeys("abc", "done")
