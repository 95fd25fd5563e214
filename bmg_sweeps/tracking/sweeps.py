"""The W&B run of a sweep: what is best at each budget, beside published numbers.

Its tables are those of the report, named by what they show: "tables/best_env_steps",
"tables/by_value_env_steps_inner_steps", "tables/claims", "tables/left_out" and so on,
with the axis of the budgets and the field where there is a table for each. What a plan
of fresh seeds decides is "tables/decision_…", with the plan's name.
"""

import dataclasses
import functools
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from bmg_sweeps import errors, formatting, privacy
from bmg_sweeps.analysis import planned, results, selection
from bmg_sweeps.analysis.selection import Selection
from bmg_sweeps.records import files, plans, store
from bmg_sweeps.reporting import decision_table, expected_best, report, tables
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.tracking import memory, points, runs
from bmg_sweeps.tracking.runs import Content, Run

JOB_TYPE = "sweep"


def describe(
    storage: files.Storage, chosen: Chosen, records: Mapping[str, store.Record]
) -> Run | None:
    """Describes the run of a sweep at a scale.

    Args:
        chosen: the sweep.
        records: of its points, and perhaps of others.

    Returns:
        The run, which reads rows only when it is written; None where no point has any,
        or the stop rule does not say what the budgets are.
    """
    own = [records[p.id] for p in chosen.points]
    statuses = [store.status(record, chosen.stop) for record in own]
    try:
        budgets = selection.budgets(chosen.sweep.select, chosen.stop)
    except errors.UserError:
        return None
    if not any("rows" in record.objects for record in own):
        return None
    name, config = points.stem(chosen), _declaration(chosen, budgets)
    notes = _notes(chosen)
    id_ = run_id(storage, chosen)
    known = memory.remembered(storage, id_)
    counts = {f"points/{s}": statuses.count(s) for s in sorted(set(statuses))}
    return Run(
        key=id_,
        id=known.get("id", id_),
        group=name,
        job_type=JOB_TYPE,
        name=f"{chosen.sweep.title} ({chosen.choice.scale})"[:128],
        notes=notes,
        tags=points.tags_of(chosen),
        config=config,
        is_running="running" in statuses,
        is_failed=False,
        digest=memory.digest(
            [
                *([_shown(r) for r in own], counts, config, notes),
                *(names(chosen).tables, _planned(storage, chosen)),
            ]
        ),
        remembered=known,
        load=functools.partial(_load, storage, chosen, counts),
    )


def run_id(storage: files.Storage, chosen: Chosen) -> str:
    """Names the run of a sweep: one for each choice of its points and each storage."""
    stem, choice = points.stem(chosen), chosen.choice
    told_apart = [chosen.sweep.trainer, choice.arguments(), memory.identity(storage)]
    digest = memory.digest([stem, *told_apart])[:8]
    return f"sweep-{runs.name_of(stem)}-{choice.scale}-{digest}"


class Names(NamedTuple):
    """What a sweep's run is going to have, whatever its records hold."""

    metrics: Mapping[str, Sequence[str]]  # One for each method, by their axis.
    expected: Mapping[str, Sequence[str]]  # Those of the best of n, by their axis.
    tables: Sequence[str]
    left_out: str  # The table of what was left out.


def names(chosen: Chosen) -> Names:
    """Says what there will be to show of a sweep."""
    axes = selection.budgets(chosen.sweep.select, chosen.stop)
    metrics = {a: [_metric(a, m) for m in chosen.methods] for a in axes}
    expected = {
        _expected(over): [_expected(over, m) for m in chosen.methods]
        for over in (expected_best.OVER if chosen.has_choice else ())
    }
    made = [_name_of(key) for key in report.keys(chosen)]
    left_out = _name_of(tables.Key(tables.Kind.LEFT_OUT))
    return Names(metrics, expected, made, left_out)


def _notes(chosen: Chosen) -> str:
    """Writes the commands that show the same and that run the same."""
    words = [points.shown_name(chosen), *chosen.choice.arguments()]
    commands = [shlex.join([verb, *words]) for verb in ("report", "launch")]
    return "\n".join(f"python -m bmg_sweeps {command}" for command in commands)


def _shown(record: store.Record) -> list[Any]:
    """Returns what the run shows of a record."""
    tables = [record.objects.get(table) for table in store.TABLES]
    hashes = [table and table.sha256 for table in tables]
    failure = msgspec.to_builtins(record.failure)
    return [record.id, hashes, record.progress, failure, record.damage]


def _planned(storage: files.Storage, chosen: Chosen) -> list[Any]:
    """Returns what the run shows of plans of fresh seeds, and of their runs."""
    try:
        found = [
            (plan, planned.points(planned.by_seed(plan, chosen)))
            for plan in planned.find(storage, chosen)
        ]
    except errors.UserError as error:
        return [str(error)]
    records = store.scan(
        storage, [(p.trainer, p.id) for _, made in found for p in made]
    )
    return [
        [plans.dump(plan).decode(), [_shown(records[p.id]) for p in made]]
        for plan, made in found
    ]


def _declaration(chosen: Chosen, budgets: Mapping[str, Sequence[float]]) -> dict:
    """Writes what the sweep's file says, as the run's config."""
    sweep, rule = chosen.sweep, chosen.sweep.select
    axes: dict[str, list] = {}
    for p in chosen.points:
        for field, value in p.values.items():
            values = axes.setdefault(field, [])
            if value not in values:
                values.append(value)
    return {
        "title": sweep.title,
        "trainer": sweep.trainer,
        "scale": chosen.choice.scale,
        "points": len(chosen.points),
        "stop": dict(chosen.stop),
        "axes": {field: values for field, values in axes.items() if len(values) > 1},
        "methods": {
            runs.name_of(name): {
                "name": name,
                "values": method.values,
                "tuned": {f: symbol.text for f, symbol in method.symbols.items()},
            }
            for name, method in sweep.methods.items()
            if name in chosen.methods
        },
        "select": dataclasses.asdict(rule)
        | {"budgets": {axis: list(amounts) for axis, amounts in budgets.items()}},
    }


def _load(storage, chosen: Chosen, counts: Mapping[str, int]) -> Content:
    """Selects as the report does, and makes its tables."""
    loaded = results.load(storage, chosen)
    selections = loaded.selections.values()
    rows = {selected.axis: _best(selected) for selected in selections if selected.best}
    summary = {k: column[-1] for table in rows.values() for k, column in table.items()}
    summary |= {f"refused/{s.axis}": s.refused for s in selections if s.refused}
    decided = decision_table.read(storage, chosen)
    if isinstance(decided, str):
        summary["refused/plans"] = privacy.scrubbed(decided)
        decided = []
    made = [*report.make(loaded), *map(decision_table.table, decided)]
    return Content(
        rows=rows
        | {_expected(p.over): _drawn(p) for p in expected_best.panels(loaded)},
        summary=summary | dict(counts),
        tables={_name_of(table.key): table for table in made},
        artifact=f"best-{runs.name_of(points.stem(chosen))}-{chosen.choice.scale}",
        files=_configurations(loaded),
    )


def _best(selected: Selection) -> store.Rows:
    """Writes each method's best by budget: mean, deviation; of tests and held out."""
    amounts = sorted({score.budget for score in selected.best})
    rows: store.Rows = {selected.axis: amounts}
    for score in selected.best:
        name = _metric(selected.axis, score.method)
        place = amounts.index(score.budget)
        apart = selected.apart(score)
        shown = (
            ("", score.estimate),
            ("_test", score.test),
            ("_held_out", apart.estimate if apart and apart.has_choice else None),
        )
        for suffix, estimate in shown:
            for part in ("mean", "deviation") if estimate else ():
                key = name + suffix + ("" if part == "mean" else "_deviation")
                column = rows.setdefault(key, [None] * len(amounts))
                column[place] = getattr(estimate, part)
    return rows


def _metric(axis: str, method: str) -> str:
    return f"best/{axis}/{runs.name_of(method)}"


def _drawn(panel: expected_best.Panel) -> store.Rows:
    """Writes what a panel shows: held out, its deviation, and the plain one."""
    amounts = sorted({amount for line in panel.lines for amount in line.at})
    places = {amount: place for place, amount in enumerate(amounts)}
    rows: store.Rows = {_expected(panel.over): amounts}
    for line in panel.lines:
        shown = {"": line.held_out, "_deviation": line.deviations, "_plain": line.plain}
        for suffix, numbers in shown.items():
            if all(number is None for number in numbers):
                continue
            column = rows.setdefault(
                _expected(panel.over, line.method) + suffix, [None] * len(amounts)
            )
            for amount, number in zip(line.at, numbers, strict=True):
                column[places[amount]] = number
    return rows


def _expected(over: str, method: str | None = None) -> str:
    """Names what the best of n is drawn over, or a method's there."""
    return "/".join(
        ("expected_best", over, *([runs.name_of(method)] if method else ()))
    )


def _name_of(key: tables.Key) -> str:
    """Names a table by what it shows, such as "tables/best_env_steps"."""
    return f"tables/{runs.name_of(' '.join(filter(None, key)))}"


def _configurations(loaded: results.Results) -> dict[str, str]:
    """Writes the best configurations: all as JSON, and the gin text of each."""
    sweep = loaded.sweep
    selections = loaded.selections.values()
    best = [score for s in selections for score in s.best]
    written = [selection.as_json(sweep, s, one) for s in selections for one in s.best]
    texts = {"best.json": json.dumps(written, indent=2) + "\n"}
    for s in best:
        budget = formatting.amounts({s.axis: s.budget})
        name = f"{s.axis}/{s.budget:.12g}/{runs.name_of(s.method)}.gin"
        points_used = ", ".join(p.id for p in s.points)
        head = f"# {s.method}, best by {sweep.select.metric} at {budget}: "
        head += f"{s.estimate.mean:.6g}, points {points_used}.\n"
        texts[name] = head + s.points[0].gin_text()
    return texts
