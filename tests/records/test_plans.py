"""Stored plans: created once, found by their claims, and checked when they are read."""

import json

import forged
import msgspec
import pytest

from bmg_sweeps import errors
from bmg_sweeps.records import files, plans

FIRST, SECOND = "0123456789ab", "0123456789ac"
PLAN = plans.Plan(
    sweep="mine",
    scale="smoke",
    trainer="toy",
    stop={"env_steps": 100},
    axis="env_steps",
    budget=50.5,
    claims=(plans.NamedClaim(FIRST, "So"),),
    configurations=(
        plans.Configuration(
            ({"kind": "a", "rate": 0.1, "is_on": True, "sizes": (8, 8), "steps": 3},)
        ),
    ),
    seeds=(10, 11, 12, 13),
    looks=(2, 4),
    level=0.0294,
    floor=None,
    made=1.5,
)


def changed(**fields):
    """The file of a plan with other fields, which vouches for itself."""
    return forged.manifest(msgspec.to_builtins(PLAN) | fields)


def test_a_plan_is_read_as_it_was_written(storage):
    """Types of values, too: a tuple is no list, and 1.0 no 1."""
    plans.create(storage, PLAN)
    (found,) = plans.find(storage, [SECOND, FIRST])
    assert found == PLAN
    assert plans.find(storage, [SECOND]) == []


def test_a_storage_without_plans_has_none(storage):
    assert plans.find(storage, [FIRST]) == []


def test_a_plan_is_created_once(storage):
    """Another one of the same claims does not take its place."""
    plans.create(storage, PLAN)
    plans.create(storage, PLAN)  # As after an answer that was lost.
    with pytest.raises(FileExistsError):
        plans.create(storage, msgspec.structs.replace(PLAN, level=0.01))
    assert plans.find(storage, [FIRST]) == [PLAN]


def test_its_name_is_that_of_its_claims():
    """In whichever order, and whatever else it has."""
    both = [plans.NamedClaim(i, "So") for i in (FIRST, SECOND)]
    one, other = (
        msgspec.structs.replace(PLAN, claims=tuple(some), level=level)
        for some, level in ((both, 0.01), (both[::-1], 0.02))
    )
    assert one.name == other.name != PLAN.name


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"level": 0.06}, "level: expected `float` <= 0.05"),
        ({"level": "0.01"}, "level: expected `float`, got `str`"),
        ({"claims": []}, "claims: expected `array` of length >= 1"),
        ({"claims": [{"id": "../a", "text": "So"}]}, "claims[0].id: expected `str`"),
        ({"configurations": [{"runs": []}]}, "configurations[0].runs: expected"),
        (
            {"configurations": [{"runs": [{"rate": None}]}]},
            "configurations[0].runs[0][...]: expected",
        ),
        ({"seeds": [10, 11, 11, 12]}, "seeds: expected each once"),
        ({"seeds": [-1, 11, 13, 12]}, "seeds[0]: expected `int` >= 0"),
        ({"looks": [4, 2]}, "looks: expected ascending numbers"),
        ({"looks": [1, 4]}, "looks: expected ascending numbers"),
        ({"looks": [2, 3]}, "looks: expected ascending numbers"),
        ({"stop": {"env_steps": 5}}, "stop: expected to reach the budget"),
        ({"axis": "frames"}, "stop: expected to reach the budget"),
        ({"claims": [{"id": SECOND, "text": "So"}]}, "claims: expected those that"),
        ({"floor": "low"}, "floor: expected"),
    ],
)
def test_a_field_that_is_not_what_it_should_be_is_named(storage, fields, said):
    """In one line, which names the file as well."""
    storage.replace(changed(**fields), plans.FOLDER, PLAN.name)
    with pytest.raises(plans.DamagedPlan) as error:
        plans.find(storage, [FIRST])
    assert str(error.value).startswith(f"plan .plans/{PLAN.name}: {said}")
    assert "\n" not in str(error.value)
    assert isinstance(error.value, errors.UserError)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xff",
        plans.dump(PLAN)[:-20],
        plans.dump(PLAN).replace(b"0.0294", b"0.0499"),
        json.dumps(msgspec.to_builtins(PLAN)).encode(),  # Without its check.
        b"[" * 100_000,
        b'{"stop":' * 900 + b"1" + b"}" * 900,
    ],
)
def test_what_is_no_plan_is_refused_in_one_line(storage, data):
    storage.replace(data, plans.FOLDER, PLAN.name)
    with pytest.raises(plans.DamagedPlan) as error:
        plans.find(storage, [FIRST])
    assert str(error.value).startswith(f"plan .plans/{PLAN.name}: ")
    assert "\n" not in str(error.value)


def test_a_file_that_is_too_large_is_not_read(storage, monkeypatch):
    plans.create(storage, PLAN)
    monkeypatch.setattr(plans, "MAX_BYTES", 100)
    monkeypatch.setattr(files.Storage, "read", None)
    with pytest.raises(plans.DamagedPlan, match="expected at most 100 bytes"):
        plans.find(storage, [FIRST])


def test_fields_of_newer_code_are_left_out(storage):
    """As they are in a manifest."""
    storage.replace(changed(new=1), plans.FOLDER, PLAN.name)
    assert plans.find(storage, [FIRST]) == [PLAN]
