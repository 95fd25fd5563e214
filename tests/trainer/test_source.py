"""A trainer's fields, read from its text: types are those without their ranges."""

import pytest

from bmg_sweeps import errors, paths
from bmg_sweeps.trainer import source

TRAINER = """
Rate = Annotated[float, Gt(0)]

class Config:
    seed: Seed
    rate: Rate
    plain: float
    bounded: Annotated[int, Interval(ge=0, lt=2.5)]
    nested: typing.Annotated[Count, DivisorOf(100)] = structure(was=5)
    named: ranges.Positive
    sizes: Sizes = structure()
    row: Annotated[tuple[int, ...], Each(Ge(1))] = structure()
    kind: Annotated[str, OneOf(kinds.KINDS)] = structure()
"""
TYPES = {
    "seed": "int",
    "rate": "float",
    "plain": "float",
    "bounded": "int",
    "nested": "int",
    "named": "float",
    "sizes": "tuple[int, ...]",
    "row": "tuple[int, ...]",
    "kind": "str",
}


@pytest.fixture
def fields(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "TRAINERS", tmp_path)
    (tmp_path / "mine.py").write_text(TRAINER)
    return source.fields("mine")


def test_a_range_is_no_part_of_a_type(fields):
    """Ids are made of values that are cast to their types."""
    assert {name: field.type for name, field in fields.items()} == TYPES


def test_what_a_range_stands_before_is_read_as_ever(fields):
    assert fields["nested"].was == 5
    static = [name for name, field in fields.items() if field.is_structure]
    assert static == ["nested", "sizes", "row", "kind"]


def test_a_type_that_no_record_can_hold_is_named(tmp_path, monkeypatch):
    """Not the value, which may be of that type."""
    monkeypatch.setattr(paths, "TRAINERS", tmp_path)
    (tmp_path / "mine.py").write_text("class Config:\n    x: tuple[float, ...]\n")
    expected = r"line 2, x: type tuple\[float, ...\]; expected one of int, float, str"
    with pytest.raises(errors.UserError, match=expected):
        source.fields("mine")
