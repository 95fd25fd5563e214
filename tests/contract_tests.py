"""Tests that any trainer can be put through; tests/ runs them on all of ours.

For a trainer of your own, in a file anywhere:

    from contract_tests import Contract


    class TestMine(Contract):
        trainer = "mine"
        values = {"hidden_sizes": (4,)}  # A small point; gin/mine.gin says the others.

and from the checkout, `PYTHONPATH=tests python -m pytest path/to/test_mine.py`. Write a
class for each structure that runs other lines, such as each update kind.

A class trains a handful of points for two chunks each, and looks at their records.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
from annotated_types import Ge, Gt, Le, Lt

from bmg_sweeps.records import files, store
from bmg_sweeps.running import binding, check, programs, tracing, work_unit
from bmg_sweeps.sweep import point
from bmg_sweeps.trainer import ranges

CHUNKS = 2
FAR = 2**30  # An amount that no test reaches.


class Outcome(NamedTuple):
    """What a point has left."""

    state: list[np.ndarray]
    tables: list[Mapping[str, list]]  # Rows, validation and test, without times.
    compilations: int


class Runs(NamedTuple):
    """Points that were trained, each for as many chunks."""

    first: Outcome
    again: Outcome  # The same values, another record.
    resumed: Outcome  # The same values, stopped after every chunk.
    other: Outcome  # Other rates, weights and seed, and the same structure.
    packed: tuple[
        Outcome, ...
    ]  # The first and the other, together; none with a live source.


class Contract:
    """What a trainer must keep to, as tests; a subclass names the trainer."""

    trainer: str
    values: Mapping[str, Any] = {}  # As subclasses write it.
    tolerance = 1e-4  # Between a point in a pack and alone; relative.

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def surroundings(cls) -> None:
        """Override it to change something while the tests run: a chunk's length."""

    @classmethod
    def gin_text(cls) -> str:
        """Writes the point; for a trainer without a .gin, say all of its values."""
        return point.resolve(cls.trainer, cls.values).gin_text()

    @pytest.fixture(scope="class")
    @classmethod
    def config(cls, surroundings) -> Any:
        """The small point."""
        return binding.bind(cls.trainer, cls.gin_text())[1]

    @pytest.fixture(scope="class")
    @classmethod
    def outline(cls, config) -> tracing.Outline:
        """What the trainer returns; making it holds the trainer to the contract."""
        return tracing.outline(binding.load(cls.trainer), config)

    @pytest.fixture(scope="class")
    @classmethod
    def runs(cls, outline, config, tmp_path_factory) -> Runs:
        """Trains the point in each way, once for all tests."""
        folder = tmp_path_factory.mktemp("contract")
        trial = _Trial(files.open_storage(str(folder)), cls.trainer, outline.axes[0])
        first, other = _text(cls.trainer, config), _text(cls.trainer, _other(config))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(programs, "_COMPILED", {})  # Whatever ran in this process.
            once, again = trial.train({"first": first}), trial.train({"again": first})
            for _ in range(CHUNKS):
                resumed = trial.train({"resumed": first}, chunks=1)
            alone = trial.train({"other": other})
            both = {} if outline.is_live else {"pack-1": first, "pack-2": other}
            packed = trial.train(both) if both else ()
        return Runs(once[0], again[0], resumed[0], alone[0], tuple(packed))

    def test_its_functions_return_what_they_must(self, outline):
        """By their shapes; so a launch checks them, too."""
        assert outline.axes[0] in outline.rows

    def test_training_is_pure(self, runs):
        """The same values give the same bits, whatever ran between."""
        _assert_same(runs.first, runs.again)

    def test_a_point_that_was_stopped_goes_on_to_the_same_bits(self, runs):
        """All that training reads is in the state, and in the source."""
        _assert_same(runs.first, runs.resumed)

    def test_points_of_a_structure_share_one_program(self, runs):
        """Rates, weights and seeds are its arguments, not parts of it."""
        assert (runs.first.compilations, runs.other.compilations) == (1, 0)
        pairs = zip(runs.first.state, runs.other.state, strict=True)
        assert not all(np.array_equal(first, other) for first, other in pairs)

    def test_points_trained_together_are_points_trained_alone(
        self, runs, outline, config
    ):
        """To rounding; and points with live sources are not trained together."""
        if outline.is_live:
            points = [(self.trainer, _text(self.trainer, config))]
            request = {
                "points": points,
                "stops": [{}],
                "examples": [0],
                "sweeps": [],
                "pack": 2,
            }
            where, problem = check.answer(request)["problem"]
            assert where is None
            assert problem.startswith("--pack 2: expected 1, ")
            return
        for packed, alone in zip(runs.packed, (runs.first, runs.other), strict=True):
            _assert_close(packed, alone, self.tolerance)

    def test_rows_are_finite_and_ascend(self, runs, outline):
        """On the first axis, each amount once; and there are some."""
        rows = runs.first.tables[0]
        assert set(rows) == set(outline.rows)
        amounts = rows[outline.axes[0]]
        assert amounts == sorted(set(amounts))
        for name, column in rows.items():
            assert None not in column, name

    def test_what_is_out_of_a_fields_range_is_refused(self, config):
        """Each range that stands on a field's line, once."""
        for field, markers in ranges.of(type(config)).items():
            for marker in markers:
                wrong = dataclasses.replace(config, **{field: _outside(marker)})
                with pytest.raises(ValueError, match=f"^{field} = .*: expected "):
                    ranges.check(wrong)


class _Trial(NamedTuple):
    """Trains points as a launch does, in this process."""

    storage: files.Storage
    trainer: str
    axis: str

    def train(self, texts: Mapping[str, str], chunks: int = CHUNKS) -> list[Outcome]:
        """Trains points together for some chunks."""
        for name, text in texts.items():
            store.declare(self.storage, self.trainer, name, text)
        stops = {name: {self.axis: FAR} for name in texts}
        task = work_unit.Task(trainer=self.trainer, stops=stops, pack=len(texts))
        left = iter([False] * (1 + chunks))  # Asked once before the first.
        statuses = work_unit.run(self.storage, task, lambda: next(left, True))
        return [self._outcome(name, statuses[name]) for name in texts]

    def _outcome(self, name: str, status: str) -> Outcome:
        record = store.read(self.storage, self.trainer, name)
        assert status == "missing", record.failure  # Stopped, long before its end.
        tables = [store.rows(self.storage, record, part) for part in store.TABLES]
        for table in tables:
            table.pop("training_seconds", None)
        state = store.state(self.storage, record)
        return Outcome(state, tables, record.provenance.compilations)


def _text(trainer: str, config: Any) -> str:
    """Writes a config as gin text."""
    return "".join(
        f"{trainer}.{field.name} = {getattr(config, field.name)!r}\n"
        for field in dataclasses.fields(config)
    )


def _other(config: Any) -> Any:
    """Changes every rate and weight a little, and the seed."""
    changed = {
        field.name: 0.9 * getattr(config, field.name)
        for field in dataclasses.fields(config)
        if isinstance(getattr(config, field.name), float)
        and not field.metadata.get("static")
    }
    return dataclasses.replace(config, **changed, seed=config.seed + 1)


def _outside(marker: ranges.Marker) -> Any:
    """Makes a value that a marker refuses."""
    match marker:
        case Ge(bound):
            return bound - 1
        case Gt(bound) | Lt(bound):
            return bound
        case Le(bound):
            return bound + 1
        case ranges.Each(bound):
            return (_outside(bound),)
        case ranges.DivisorOf(number):
            return number + 1
        case ranges.OneOf():
            return "none of them"


def _assert_same(actual: Outcome, expected: Outcome) -> None:
    assert actual.tables == expected.tables
    for a, b in zip(actual.state, expected.state, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def _assert_close(actual: Outcome, expected: Outcome, tolerance: float) -> None:
    """Compares to a tolerance relative to the largest number of an array."""
    for a, b in zip(actual.tables, expected.tables, strict=True):
        assert set(a) == set(b)
    pairs = [
        (a[name], b[name])
        for a, b in zip(actual.tables, expected.tables, strict=True)
        for name in a
    ]
    pairs += zip(actual.state, expected.state, strict=True)
    for a, b in pairs:
        scale = np.max(np.abs(np.asarray(b, float)), initial=1e-3)
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale)
