"""Ranges stand on the fields' lines, and a value outside of one is named."""

import dataclasses
from typing import Annotated

import annotated_types
import pytest
from annotated_types import Ge, Gt, Interval, Le, Lt

from bmg_sweeps.trainer import config, ranges
from bmg_sweeps.trainer.ranges import Count, Decay, DivisorOf, Each, OneOf, Seed, Sizes

LATER = {"slow": 1}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """A field of each kind; what has no range is not looked at."""

    seed: Seed = 0
    free: float = -1.0
    plain: int = 0
    rate: Annotated[float, Gt(0)] = 0.1
    weight: Annotated[float, Ge(0)] = 0.0
    below: Annotated[float, Lt(2.5)] = 0.0
    most: Annotated[int, Le(7)] = 7
    decay: Decay = 0.0
    inside: Annotated[float, Interval(gt=0, le=1)] = 1.0
    steps: Count = 1
    length: Annotated[Count, DivisorOf(100)] = 50
    sizes: Sizes = (1, 2)
    small: Annotated[tuple[int, ...], Each(Le(3))] = (3,)
    kind: Annotated[str, OneOf({"fast": 0, "slow": 1})] = "fast"
    later: Annotated[str, OneOf(lambda: LATER)] = "slow"


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("seed", -1, "an integer in [0, 2³¹)"),
        ("seed", 2**31, "an integer in [0, 2³¹)"),
        ("plain", 2**31, "an integer in [−2³¹, 2³¹)"),
        ("plain", -(2**31) - 1, "an integer in [−2³¹, 2³¹)"),
        ("most", -(2**40), "an integer in [−2³¹, 7]"),
        ("steps", 2**31, "an integer in [1, 2³¹)"),
        ("rate", 0.0, "a number above 0"),
        ("weight", -0.5, "a number of at least 0"),
        ("below", 2.5, "a number below 2.5"),
        ("most", 8, "an integer of at most 7"),
        ("decay", 1.0, "a number in [0, 1)"),
        ("inside", 0.0, "a number in (0, 1]"),
        ("steps", 0, "an integer of at least 1"),
        ("length", 0, "an integer of at least 1"),
        ("length", 3, "a divisor of 100"),
        ("sizes", (4, 0), "sizes of at least 1"),
        ("small", (4,), "sizes of at most 3"),
        ("kind", "best", "one of: fast, slow"),
        ("later", "fast", "one of: slow"),
    ],
)
def test_a_value_out_of_its_range_is_named(field, value, expected):
    """The field, the value, and what was expected."""
    with pytest.raises(ValueError, match="expected") as error:
        ranges.check(Config(**{field: value}))
    assert str(error.value) == f"{field} = {value!r}: expected {expected}"


def test_a_name_that_is_nearly_one_is_found():
    with pytest.raises(ValueError, match=r"^kind = 'slov': did you mean slow\?$"):
        ranges.check(Config(kind="slov"))


@pytest.mark.parametrize(
    "values",
    [{}, {"seed": 2**31 - 1, "decay": 0.99, "length": 100, "sizes": ()}],
)
def test_values_at_the_bounds_are_accepted(values):
    ranges.check(Config(**values))


def test_a_bound_that_nothing_checks_is_refused():
    """It would look like a range, and let every value pass."""

    @dataclasses.dataclass(frozen=True)
    class Even:
        steps: Annotated[int, annotated_types.MultipleOf(2)]

    with pytest.raises(TypeError, match="steps: MultipleOf"):
        ranges.check(Even(3))


def test_a_field_without_effect_must_have_its_value():
    """So that no two points run the same."""
    config.require_unused(Config(), {"steps": 1}, "there is no target")
    with pytest.raises(ValueError, match=r"^steps = 2: expected 1, where there is no"):
        config.require_unused(Config(steps=2), {"steps": 1}, "there is no target")
