"""Points are resolved from text alone, and one set of values has one id, for good."""

import dataclasses
import math

import gin
import pytest

from bmg_sweeps import errors, paths
from bmg_sweeps.sweep import point
from bmg_sweeps.trainer import bindings, source

TRAINER = '''
"""A trainer with a field of every type, which cannot be imported."""

raise RuntimeError("planning must not import a trainer")


class Config:
    """Every value is bound in gin/toy.gin."""

    seed: int
    rate: float  # With a unit, and a source.
    flag: bool
    kind: str = structure()
    steps: int = structure()
    sizes: tuple[int, ...] = config.structure()
'''
GIN = """
# Toy.
import no_such_module.at_all

toy.seed = 0
toy.rate = 0.1  # a unit; a source
toy.flag = False
toy.kind = "fast"
toy.steps = 3
toy.sizes = (8, 8)
"""
VALUES = {
    "seed": 0,
    "rate": 0.1,
    "flag": False,
    "kind": "fast",
    "steps": 3,
    "sizes": (8, 8),
}


@pytest.fixture(autouse=True)
def toy(tmp_path, monkeypatch):
    """A checkout's trainers/ and gin/, with the toy alone."""
    (tmp_path / "toy.py").write_text(TRAINER)
    (tmp_path / "toy.gin").write_text(GIN)
    monkeypatch.setattr(paths, "TRAINERS", tmp_path)
    monkeypatch.setattr(paths, "GIN", tmp_path)
    return tmp_path


def resolve(**values):
    return point.resolve("toy", values)


def message(call, *arguments):
    """The one line that a call refuses its arguments with."""
    with pytest.raises(errors.UserError) as error:
        call(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_point_has_the_gin_values_where_nothing_else_is_said():
    """Bindings over the sweep over the .gin file, in the order of the fields."""
    bindings = ("toy.rate = 0.2", "toy.steps = 5")
    resolved = point.resolve("toy", {"steps": 7, "seed": 1}, bindings)
    assert resolved.values == VALUES | {"rate": 0.2, "steps": 5, "seed": 1}
    assert list(resolved.values) == list(VALUES)


def test_an_edited_gin_file_is_read_again(toy):
    """Both files are cached, but only as long as they stay as they are."""
    before = resolve()
    (toy / "toy.gin").write_text(GIN.replace("0.1", "0.25"))
    assert (before.values["rate"], resolve().values["rate"]) == (0.1, 0.25)


def test_an_id_is_stable():
    """This id was computed once: a change of it orphans every record of every user.

    It is the start of sha256 of '["toy", {"flag": false, "kind": "fast", "rate": 0.1,
    "seed": 0, "sizes": [8, 8], "steps": 3}]', on one line.
    """
    assert resolve().id == "bb38c5022c19"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"rate": 0}, {"rate": 0.0}),
        ({"rate": 2}, {"rate": 2.0}),
        ({"rate": 3e-4}, {"rate": 0.0003}),
        ({"sizes": [4, 2]}, {"sizes": (4, 2)}),
        ({"rate": 0.1}, {}),  # The value that gin gives anyhow.
        ({"rate": 0.5, "steps": 1}, {"steps": 1, "rate": 0.5}),
        ({"rate": -0.0}, {"rate": 0.0}),
    ],
)
def test_equal_values_have_one_id(one, other):
    """However they are written, and in whatever order."""
    assert resolve(**one) == resolve(**other)
    assert resolve(**one).id == resolve(**other).id


def test_the_order_of_a_point_s_values_does_not_matter_for_its_id():
    """A record made before a trainer's fields were reordered is still found."""
    values = resolve().values
    assert point.Point("toy", dict(reversed(values.items()))).id == resolve().id


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 1},
        {"rate": math.nextafter(0.1, 1)},
        {"flag": True},
        {"kind": "Fast"},
        {"steps": 4},
        {"sizes": (8,)},
        {"sizes": (88,)},
    ],
)
def test_other_values_have_another_id(changed):
    """Down to the last bit of a float."""
    assert resolve(**changed).id != resolve().id


def test_another_trainer_has_another_id():
    """Two settings may have the same fields."""
    assert point.Point("toy2", VALUES).id != point.Point("toy", VALUES).id


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("steps", 3.0, "int"),
        ("steps", True, "int"),
        ("steps", "3", "int"),
        ("rate", "0.1", "float"),
        ("rate", True, "float"),
        ("rate", None, "float"),
        ("rate", math.inf, "float"),
        ("rate", -math.inf, "float"),
        ("rate", math.nan, "float"),
        ("kind", 3, "str"),
        ("flag", 0, "bool"),
        ("flag", "False", "bool"),
        ("sizes", 8, "tuple[int, ...]"),
        ("sizes", "88", "tuple[int, ...]"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(field, value, expected):
    """Nothing is rounded, parsed or truncated."""
    assert message(point.resolve, "toy", {field: value}) == (
        f"toy.{field} = {value!r}: expected a value of type {expected}"
    )


def test_a_default_of_the_wrong_type_is_refused_though_replaced(toy):
    """Else it would wait for the first sweep that does not name the field."""
    (toy / "toy.gin").write_text(GIN.replace("steps = 3", "steps = 3.5"))
    assert message(point.resolve, "toy", {"steps": 4}) == (
        "toy.steps = 3.5: expected a value of type int"
    )


@pytest.mark.parametrize("element", [8.0, True, "8", (8,)])
def test_an_element_of_the_wrong_type_is_refused(element):
    """The elements of a tuple are as strict as a field."""
    text = message(point.resolve, "toy", {"sizes": (8, element)})
    assert text.startswith("toy.sizes = ")
    assert repr(element) in text


def test_an_integer_that_no_float_can_hold_is_refused():
    """10⁴⁰⁰ is a literal, and beyond the largest float, about 1.8 · 10³⁰⁸."""
    assert message(point.resolve, "toy", {"rate": 10**400}).startswith("toy.rate = ")


@pytest.mark.parametrize(
    ("values", "bindings"),
    [({"raet": 0.1}, ()), ({}, ("toy.raet = 0.1",))],
    ids=["sweep", "binding"],
)
def test_an_unknown_field_is_refused(values, bindings):
    """Wherever it is set."""
    text = message(point.resolve, "toy", values, bindings)
    assert text.startswith("toy.raet: no such field; ")
    assert "rate" in text


def test_a_misspelt_binding_in_the_gin_file_is_refused(toy):
    """It is not taken for a missing value only."""
    (toy / "toy.gin").write_text(GIN.replace("toy.rate", "toy.raet"))
    assert message(resolve).startswith("toy.raet: no such field; ")


def test_a_field_that_no_gin_file_binds_is_refused(toy):
    """There are no defaults; the message says where the line belongs."""
    (toy / "toy.gin").write_text(GIN.replace("toy.steps = 3\n", ""))
    text = message(resolve)
    assert text.startswith("toy.steps: bound in no gin file")
    assert "gin/toy.gin" in text


@pytest.mark.parametrize(
    ("name", "source", "problem"),
    [
        ("other", None, "trainer 'other'"),
        ("toy", "class Config(:", "toy.py, line 1: "),
        ("toy", "class Settings: pass", "expected a class Config"),
    ],
    ids=["no file", "syntax error", "no Config"],
)
def test_a_trainer_that_cannot_be_read_is_refused(toy, name, source, problem):
    """The message names the trainer or its file."""
    if source:
        (toy / "toy.py").write_text(source)
    assert problem in message(point.resolve, name, {})


@pytest.mark.parametrize(
    "line",
    [
        "toy.rate = %fast",
        "toy.sizes = (1, %fast)",
        "toy.rate = @other",
        "toy.rate = @other()",
        "scope/toy.rate = 1.0",
        "other.rate = 1.0",
        "trainers.toy.rate = 1.0",
        "fast = 1.0",  # The definition of a macro.
        "include 'other.gin'",
        "toy.rate 1.0",
        "toy.rate =",
        "toy.rate = 1.0 2.0",
        "toy.rate = nan",
        "toy.kind = 'fast",
        "toy.sizes = (1, 2",
        "toy.kind = '''fast",
    ],
)
def test_gin_that_a_record_could_not_hold_is_refused_in_one_line(line):
    """Macros, references, scopes, other configurables, includes, and what is not gin.

    The message quotes the line, or the macro or reference in it.
    """
    text = message(bindings.parse_bindings, "toy", f"toy.seed = 0\n{line}\n")
    assert any(part in text for part in (line, "%fast", "@other"))


def test_parsing_executes_no_imports():
    """A broken or missing module cannot break planning."""
    text = "import no_such_module.at_all\nfrom no_such import thing\ntoy.seed = 1\n"
    assert bindings.parse_bindings("toy", text) == {"seed": 1}


ODD = 'it\'s "ε"\\ # @50 %\n'


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"rate": 1 / 3, "steps": -(10**20), "sizes": (1,), "flag": True},
        {"rate": 5e-324, "sizes": (), "kind": ""},
        {"rate": -1e22, "kind": ODD},
    ],
)
def test_gin_text_binds_the_same_values(values):
    """To the last bit, types included: `repr` tells 1 from 1.0."""
    resolved = resolve(**values)
    text = resolved.gin_text()
    assert repr(bindings.parse_bindings("toy", text)) == repr(resolved.values)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"learning_rate": 1 / 3, "hidden_sizes": (1,), "seed": 2**31 - 1},
        {"meta_adam_eps": 5e-324, "hidden_sizes": (), "update_kind": ODD},
        {"learning_rate": 1, "inner_steps": 15, "meta_learning_rate": 3e-6},
    ],
)
def test_gin_itself_builds_a_config_of_the_same_values(values, monkeypatch):
    """The trainer is imported by the text, and every one of its fields is bound."""
    monkeypatch.setattr(paths, "TRAINERS", paths.ROOT / "trainers")
    monkeypatch.setattr(paths, "GIN", paths.ROOT / "gin")
    resolved = point.resolve("two_colors_actor_critic", values)
    gin.parse_config(resolved.gin_text())
    from trainers import two_colors_actor_critic

    config = dataclasses.asdict(two_colors_actor_critic.Config())
    in_order = {name: config[name] for name in resolved.values}
    assert len(in_order) == len(config)
    assert repr(in_order) == repr(resolved.values)


def test_a_configuration_is_a_point_without_its_seed():
    """Two seeds are one configuration; another rate is another one."""
    configuration = resolve(seed=1).configuration()
    assert list(configuration.values) == ["rate", "flag", "kind", "steps", "sizes"]
    assert configuration.id == resolve(seed=2).configuration().id
    assert configuration.id != resolve(seed=1, rate=0.2).configuration().id


def test_a_configuration_is_made_once_for_each_choice_of_fields():
    """A report of thousands of points asks for it, and its id, a dozen times."""
    found = resolve()
    assert found.configuration() is found.configuration(["seed"])
    assert found.configuration(("kind",)).values != found.configuration().values
    assert found.replaced(seed=2).configuration().values == found.configuration().values


def test_a_configuration_leaves_out_whatever_is_averaged_over():
    """An iterator of names is read once."""
    configuration = resolve().configuration(iter(("seed", "kind")))
    assert list(configuration.values) == ["rate", "flag", "steps", "sizes"]


@pytest.mark.parametrize("changed", [{"kind": "slow"}, {"steps": 4}, {"sizes": (8,)}])
def test_what_shapes_the_program_is_in_the_structure(changed):
    """These are declared with `structure()`."""
    assert resolve(**changed).structure != resolve().structure


@pytest.mark.parametrize("changed", [{"seed": 1}, {"rate": 0.2}, {"flag": True}])
def test_what_a_program_takes_as_data_is_not_in_the_structure(changed):
    """Points that differ in these alone share one compiled program."""
    assert resolve(**changed).structure == resolve().structure


def test_the_shipped_trainer_s_structure_has_its_steps_and_not_its_rates(monkeypatch):
    """Its real source is read as the toy's is."""
    monkeypatch.setattr(paths, "TRAINERS", paths.ROOT / "trainers")
    is_structure = {
        name: field.is_structure
        for name, field in source.fields("two_colors_actor_critic").items()
    }
    names = ("inner_steps", "target_steps", "hidden_sizes", "learning_rate", "seed")
    assert [is_structure[n] for n in names] == [True, True, True, False, False]


def with_field(toy, declaration, value):
    """Adds a field to the toy, in its source and in its .gin."""
    (toy / "toy.py").write_text(f"{TRAINER}    new: {declaration}\n")
    (toy / "toy.gin").write_text(f"{GIN}toy.new = {value}\n")


@pytest.mark.parametrize(
    ("declaration", "value"),
    [
        ("float = data(was=0)", "0.0"),
        ("float = data(was=-0.5)", "-0.5"),
        ("int = config.structure(was=7)", "7"),
        ("bool = data(was=False)", "False"),
        ("str = structure(was='plain')", "'plain'"),
        ("tuple[int, ...] = structure(was=(1, 2))", "[1, 2]"),
    ],
)
def test_a_field_added_later_keeps_the_ids_of_points_at_its_old_value(
    toy, declaration, value
):
    """Theirs is the id from before there was the field; the text binds it, though."""
    before, of_any_seed = resolve().id, resolve().configuration().id
    with_field(toy, declaration, value)
    assert resolve().id == before
    assert resolve().configuration().id == of_any_seed
    assert "toy.new = " in resolve().gin_text()


@pytest.mark.parametrize(
    ("declaration", "value"),
    [
        ("float = data(was=0)", "0.1"),
        ("int = structure(was=7)", "8"),
        ("bool = data(was=False)", "True"),
        ("int", "7"),  # Says nothing of old records.
        ("int = structure()", "7"),
    ],
)
def test_another_value_of_a_field_added_later_is_another_point(toy, declaration, value):
    """As is every value of a field that says nothing of old records."""
    before = resolve().id
    with_field(toy, declaration, value)
    assert resolve().id != before


def test_a_field_added_later_is_part_of_the_structure_or_not(toy):
    """As it is declared, whatever its old value."""
    with_field(toy, "int = structure(was=7)", "7")
    assert source.fields("toy")["new"].is_structure
    with_field(toy, "int = data(was=8)", "8")
    assert not source.fields("toy")["new"].is_structure


@pytest.mark.parametrize(
    ("declaration", "problem"),
    [
        ("int = data(was='a')", "new: was = 'a': expected a value of type int"),
        ("int = data(was=1.5)", "new: was = 1.5: expected a value of type int"),
        ("float = structure(was=True)", "new: was = True: expected a value of type"),
        ("int = data(was=len('a'))", "new: was = len('a'): expected a literal value"),
    ],
)
def test_an_old_value_that_the_field_cannot_have_is_refused(toy, declaration, problem):
    """The message names the trainer's file, the line and the field."""
    with_field(toy, declaration, "1")
    text = message(resolve)
    assert text.startswith(f"trainer file {toy / 'toy.py'}, line ")
    assert problem in text
