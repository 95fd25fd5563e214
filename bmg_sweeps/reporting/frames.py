"""A sweep's results as tidy pandas frames, for notebooks and scripts.

One row is one observation, and each column has one type. What is known of the units
stands in a frame's `attrs["units"]`, by column; `attrs["about"]` says of what the
numbers are numbers. Only `bmg_sweeps.load` needs this module, which imports pandas.
"""

import dataclasses
import itertools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bmg_sweeps import errors
from bmg_sweeps.analysis import claims, intervals, readings, results
from bmg_sweeps.analysis.deciding import Decision
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.records import files, store
from bmg_sweeps.reporting import decision_table, report, task_lines
from bmg_sweeps.sweep import choices, display, grid

_KINDS = ("training", "validation", "test")  # Of rows.
_NOTED = ("threads", "pack_width", "compile_seconds", "evaluation_seconds")
_TIMES = ("began", "ended")
_CLAIMS = ("claim", "verdict", "reason", "difference", "low", "high")
_PLAIN = ("plain_verdict", "plain_difference", "plain_low", "plain_high")
_DECISIONS = ("claim", "verdict", "reason", "seeds", "difference", "low", "high")
_SIDES = ("more", "less")
_OF_SIDE = ("", "_mean", "_deviation", "_held_out")
_OF_FRESH = _OF_SIDE[:-1]  # Nothing is held out, as these seeds have chosen nothing.
_NO_PLAIN = (None,) * len(_PLAIN)
_UNITS = {"_seconds": "s", "_gib": "GiB"}  # By the end of a column's name.
# Columns of a few words; and those of text, also where nothing stands in them.
_WORDS = ("method", "status", "axis", "table", "verdict", "plain_verdict")
_TEXTS = ("point", "configuration", "problem", "revision", "code", "device", "claim")
_TEXTS += ("reason", "plan", *_SIDES, "published_configuration")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Frames:
    """What came out of a sweep, a frame for each kind of observation."""

    runs: pd.DataFrame  # One row a point: its values, how far it is, where it ran.
    rows: pd.DataFrame  # One row a row of a point, of training and of evaluations.
    scores: pd.DataFrame  # One row a configuration at a budget.
    best: pd.DataFrame  # The rows of `scores` that are a method's best there.
    tasks: pd.DataFrame  # One row a task of a row of `scores`, of a sweep with tasks.
    claims: pd.DataFrame  # One row a claim.
    decisions: pd.DataFrame  # One row a claim of a plan of fresh seeds.


def load(
    storage: files.Storage, chosen: choices.Chosen, tests: Sequence[str] = ()
) -> Frames:
    """Reads the records of a sweep into frames.

    Args:
        storage: where the records are.
        chosen: the sweep.
        tests: columns of tests whose rows are wanted of all points. Without them only
            `best` and `scores` have tests, and only of what was chosen.

    Returns:
        The frames. `scores` and `tasks` have the numbers of `report --format csv`.
        Where a plan cannot be read, `decisions` is empty, and its `attrs["problem"]`
        and a warning say why.

    Raises:
        UserError: no test has a column of that name.
    """
    found = results.load(storage, chosen)
    decided = decision_table.read(storage, chosen)
    problem = decided if isinstance(decided, str) else None
    decisions = [] if isinstance(decided, str) else decided
    scores, of_tasks = _scores(found)
    frames = {
        "runs": _runs(found),
        "rows": _rows(found, _tests(storage, found, tests)),
        "scores": scores,
        "best": scores[scores["is_best"]].drop(columns="is_best"),
        "tasks": of_tasks,
        "claims": _claims(found),
        "decisions": _decisions(decisions),
    }
    about = {"sweep": chosen.name, "scale": chosen.choice.scale}
    about["about"] = report.context(found)
    made = {name: frame.reset_index(drop=True) for name, frame in frames.items()}
    for frame in made.values():
        frame.attrs.update(about, units=_units(frame, chosen))
    own = [f"{d.plan.name}: {decision_table.described(d.plan)}" for d in decisions]
    made["decisions"].attrs.update(about="; ".join(own), problem=problem)
    if problem:
        warnings.warn(problem, stacklevel=3)
    return Frames(**made)


def _runs(found: Results) -> pd.DataFrame:
    axes = dict.fromkeys(a for one in found.trained for a in one.record.progress)
    lines = []
    for one in found.trained:
        values, record, noted = one.point.values, one.record, one.record.provenance
        own = {
            "point": one.point.id,
            "method": grid.method_of(found.sweep, values),
            "configuration": grid.describe(found.sweep, values),
            "status": readings.status(one, found.chosen.stop),
            **{axis: record.progress.get(axis, 0) for axis in axes},
            "problem": record.damage
            or (record.failure and store.reason(record.failure)),
            "attempts": record.manifest.attempt,
            "revision": ", ".join(filter(None, record.revisions)) or None,
            "code": ", ".join(filter(None, record.codes)) or None,
            "device": ", ".join(filter(None, record.devices)) or None,
            **{name: getattr(noted, name) for name in (*_NOTED, *_TIMES)},
        }
        # A field that is named as another column has its trainer's name before it.
        fields = {
            f"{one.point.trainer}.{f}" if f in own else f: values[f] for f in values
        }
        lines.append(own | fields)
    frame = _frame(list(lines[0]), [line.values() for line in lines])
    for name in _TIMES:
        frame[name] = pd.to_datetime(frame[name].astype(float), unit="s", utc=True)
    return frame


def _rows(found: Results, tests: Sequence[store.Rows]) -> pd.DataFrame:
    """Puts the tables of all points below each other."""
    places, kinds, tables = [], [], []
    of_tests = tests or itertools.repeat({}, len(found.trained))
    for place, (one, test) in enumerate(zip(found.trained, of_tests, strict=True)):
        for kind, table in enumerate((one.rows, one.validation, test)):
            if table:
                places.append(place)
                kinds.append(kind)
                tables.append(table)
    lengths = [len(next(iter(table.values()))) for table in tables]
    points = pd.Series([one.point.id for one in found.trained], dtype="str").array
    codes = np.repeat(np.array(kinds, int), lengths)
    frame: dict[str, Any] = {
        "point": points.take(np.repeat(np.array(places, int), lengths)),
        "table": pd.Categorical.from_codes(codes, _KINDS),
    }
    for name in dict.fromkeys(name for table in tables for name in table):
        values: list[Any] = []
        for table, length in zip(tables, lengths, strict=True):
            values += table.get(name) or [None] * length
        frame[name] = _column(name, values)
    return pd.DataFrame(frame)


def _tests(
    storage: files.Storage, found: Results, names: Sequence[str]
) -> list[store.Rows]:
    """Reads the tests of all points that are asked for by name."""
    if not names:
        return []
    every = [readings.tests(storage, one.record) for one in found.trained]
    known = {name for table in every for name in table if name.startswith("test_")}
    for name in names:
        if name not in known:
            expected = errors.expected_one_of(name, sorted(known))
            raise errors.UserError(f"tests {errors.shown(name)}: {expected}")
    others = known - set(names)
    return [{n: table[n] for n in table if n not in others} for table in every]


def _scores(found: Results) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Reads the lines of CSV: those of configurations, and those of their tasks."""
    names, *lines = report.score_lines(found)
    number = len(names) - len(task_lines.names(found.sweep))
    whole, of_tasks = [], []
    for line in lines:
        # An empty description is that of a method's only configuration.
        cells = [*line[:2], *(None if cell == "" else cell for cell in line[2:])]
        is_task = any(cell is not None for cell in cells[number:])
        (of_tasks if is_task else whole).append(cells if is_task else cells[:number])
    return _frame(names[:number], whole), _frame(names, of_tasks)


def _claims(found: Results) -> pd.DataFrame:
    lines = []
    for one in claims.decide(found):
        line = [one.claim.text, str(one.verdict), one.reason or None]
        line += _cells(one.difference)
        plain = one.plain
        line += (str(plain.verdict), *_cells(plain.difference)) if plain else _NO_PLAIN
        for reading in (one.more, one.less):
            if reading is None:
                line += (None,) * len(_OF_SIDE)
                continue
            values = reading.score.configuration.values
            estimate = reading.estimate(one.claim.over_tasks)
            line += (grid.name(found.sweep, values), *dataclasses.astuple(estimate))
            line.append(reading.held_out)
        lines.append(line)
    sides = [f"{side}{end}" for side in _SIDES for end in _OF_SIDE]
    return _frame([*_CLAIMS, *_PLAIN, *sides], lines)


def _decisions(found: Sequence[Decision]) -> pd.DataFrame:
    lines = []
    for decision in found:
        plan, sweep = decision.plan, decision.chosen.sweep
        for one in decision.outcomes:
            why = decision_table.reason(plan, one) or None
            line = [one.claim.text, str(one.verdict), why, one.seeds]
            line += [*_cells(one.difference), plan.level]
            for side in (one.more, one.less):
                if side is None:
                    line += (None,) * len(_OF_FRESH)
                    continue
                name = grid.name(sweep, side.configuration.values)
                line += (name, *dataclasses.astuple(side.estimate))
            lines.append([*line, plan.name])
    sides = [f"{side}{end}" for side in _SIDES for end in _OF_FRESH]
    return _frame([*_DECISIONS, "level", *sides, "plan"], lines)


def _cells(difference: intervals.Interval | float | None) -> tuple[float | None, ...]:
    """An interval's three numbers, of which the estimate may be alone."""
    if isinstance(difference, intervals.Interval):
        return difference
    return (difference, None, None)


def _frame(names: Sequence[str], lines: Sequence[Iterable[Any]]) -> pd.DataFrame:
    """Makes a frame of lines, and gives each column the one type of its values."""
    columns = zip(*lines, strict=True) if lines else itertools.repeat((), len(names))
    cells = {n: _column(n, values) for n, values in zip(names, columns, strict=True)}
    return pd.DataFrame(cells)


def _column(name: str, values: Sequence[Any]) -> Any:
    """Makes a column of values, of which those that are None are missing."""
    found = set(map(type, values))
    types = found - {type(None)}
    is_whole = types == found
    if name in _WORDS:
        return pd.Categorical(values)
    if name in _TEXTS or types == {str}:
        return pd.array(values, dtype="str")
    if types == {bool} or name == "is_best":
        return pd.array(values, dtype="bool" if is_whole else "boolean")
    if types == {int}:
        return pd.array(values, dtype="int64" if is_whole else "Int64")
    if types <= {int, float}:
        return np.array(values, float)
    return pd.Series(values, dtype=object)


def _units(frame: pd.DataFrame, chosen: choices.Chosen) -> dict[str, str]:
    """Says the units of a frame's columns, as far as they are known."""
    sweep = chosen.sweep
    curves = [one for one in sweep.curves if isinstance(one, display.Curve)]
    known: Mapping[str, str] = {
        **{axis: axis for axis in (*chosen.stop, *sweep.select.budgets)},
        **{f"{axis}_per_second": f"{axis}/s" for axis in sweep.select.budgets},
        **{one.metric: one.label for one in (*curves, *sweep.measures)},
        "hours": "h",
    }
    found = {}
    for name in frame.columns:
        ends = (unit for end, unit in _UNITS.items() if name.endswith(end))
        if unit := known.get(name) or next(ends, None):
            found[name] = unit
    return found
