"""A sweep as one HTML file, opened from disk: curves, tables, and how it was made.

Everything is inside the file, the charts' library included, and the page's policy
forbids it a network. Whatever a user or a record said is text here, never markup: the
templates escape it, and so does the script where a chart gives markup a meaning.
"""

import base64
import dataclasses
import datetime
import itertools
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bmg_sweeps import formatting, privacy
from bmg_sweeps.analysis import readings
from bmg_sweeps.analysis.readings import Trained
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.records import store
from bmg_sweeps.reporting import (
    best_tables,
    charts,
    expected_best,
    published,
    rendering,
    report,
    side_by_side,
    tables,
    task_curves,
)
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Table
from bmg_sweeps.sweep import choices, grid
from bmg_sweeps.sweep.choices import Chosen

MAX_ROWS = 15  # A longer table is folded away.
MAX_LINE = 36  # Characters of a cell that is not broken into lines.
MAX_ESTIMATES = 3  # Columns of estimates that are written in full.
MAX_AIRY = 8  # Columns of a table that is not set densely.
MAX_ERRORS = 200  # Points with an error that are listed.
MAX_EXAMPLES = 5  # So many of them have their command written out.
TROUBLE = ("damaged", "failed", "diverged")
_SCALES = {
    "smoke": "Smoke scale: few points and short training, to see that all of it works. "
    "None of these are the paper's numbers.",
    "lite": "Lite scale: fewer points and shorter training than in the paper. These "
    "are not the paper's numbers, and do not compare with them.",
}


def page(
    results: Results,
    storage: str,
    more: Sequence[Table] = (),
    asked: Sequence[str] = (),
) -> str:
    """Writes the page of a sweep.

    Args:
        results: of the sweep.
        storage: where the records are, as a command line says it.
        more: tables that were asked for; those of no axis stand below the last one's.
        asked: the words of a command line that ask for them.

    Returns:
        HTML that needs no other file.
    """
    chosen, trained = results.chosen, results.trained
    statuses = statuses_of(results)
    provenance = report.provenance(results)
    data = charts.data(results)
    axes = []
    for axis in results.selections:
        shown = best_tables.headline(results, axis)
        shown += side_by_side.published_table(results, axis)
        shown = [dataclasses.replace(t, about=provenance.about) for t in shown]
        shown += [*report.of_axis(results, axis), *report.left_out(results, axis)]
        shown += [table for table in more if table.key.axis == axis]
        axes.append((axis, [_view(table) for table in shown]))
    axes[-1][1].extend(_view(table) for table in more if not table.key.axis)
    return rendering.render(
        "page.html",
        scripts=[rendering.library(), rendering.script("page.js")],
        title=chosen.sweep.title,
        facts=_facts(results, statuses, storage),
        warnings=[
            *_warnings(chosen, statuses, provenance.notes),
            *expected_best.warnings(results),
        ],
        data=rendering.json_text(data),
        has_expected_best=bool(data["expected_best"]),
        images=_images(results),
        has_ranges=any(panel["is_range"] for panel in data["panels"]),
        has_grids=any(axis["grids"] for axis in data["axes"]),
        has_agreement=any(axis["agreement"] for axis in data["axes"]),
        groups=_grouped(data["configurations"]),
        axes=axes,
        points=[_view(t) for t in _points_tables(results, statuses)],
        provenance=[_view(t) for t in (provenance, _versions_table(trained))],
        commands=_commands(results, statuses, storage, asked),
    )


def _images(results: Results) -> list[dict[str, str]]:
    """Draws the figures of tasks, each as an image inside the page."""
    shown = task_curves.figures(results)
    if not shown:
        return []
    from bmg_sweeps.reporting import task_figures  # Loads matplotlib.

    images = []
    for panel in shown:
        text = task_figures.draw(results, panel, "svg").decode()
        data = privacy.scrubbed(text, homes=True).encode()
        source = f"data:image/svg+xml;base64,{base64.b64encode(data).decode()}"
        images.append({"title": panel.title, "source": source})
    return images


class _Column(NamedTuple):
    name: str
    is_number: bool
    is_published: bool


class _Shown(NamedTuple):
    text: str
    is_long: bool
    exact: str | None  # Where the text has fewer digits.


def _view(table: Table) -> dict[str, Any]:
    """Prepares a table for the template."""
    num_estimates = sum(column.kind == "estimate" for column in table.columns)
    is_wide = num_estimates > MAX_ESTIMATES
    columns = [
        _Column(column.name, _is_number(column, cells), column.is_published)
        for column, cells in zip(table.columns, _transposed(table), strict=True)
    ]
    groups = itertools.groupby(column.group for column in table.columns)
    return {
        "kind": table.key.kind,
        "title": table.title,
        "about": table.about,
        "columns": columns,
        "spans": [(name, len(list(members))) for name, members in groups]
        if table.has_groups
        else [],
        "rows": _shown(table, is_wide),
        "notes": table.notes,
        "is_dense": is_wide or len(table.columns) > MAX_AIRY,
        "is_grouped": table.is_grouped,
        "is_folded": len(table.rows) > MAX_ROWS,
    }


def _transposed(table: Table) -> list[list[Cell]]:
    return [[row[i] for row in table.rows] for i in range(len(table.columns))]


def _is_number(column: Column, cells: Sequence[Cell]) -> bool:
    """Whether a column is set as numbers are: flush right."""
    if column.kind == "value":
        return bool(cells) and not any(isinstance(cell, str) for cell in cells)
    return column.kind not in ("text", "described")


def _shown(table: Table, is_wide: bool) -> list[list[_Shown]]:
    """Writes the cells; where there are many estimates, in full on hover only."""
    exact = tables.texts(table, is_exact=True)
    if not is_wide:
        return [[_Shown(text, len(text) > MAX_LINE, None) for text in r] for r in exact]
    short = tables.texts(table, is_exact=False)
    return [
        [
            _Shown(text, len(text) > MAX_LINE, full if full != text else None)
            for text, full in zip(*row, strict=True)
        ]
        for row in zip(short, exact, strict=True)
    ]


def statuses_of(results: Results) -> dict[str, str]:
    """Says where each point stands, by id; damaged ones apart from missing ones."""
    return {
        one.point.id: readings.status(one, results.chosen.stop)
        for one in results.trained
    }


def _facts(
    results: Results, statuses: Mapping[str, str], storage: str
) -> list[tuple[str, str]]:
    """What a reader has to know before any number."""
    chosen = results.chosen
    over = report.averaged_over(chosen)
    done = sum(status == "done" for status in statuses.values())
    return [
        ("scale", chosen.choice.scale),
        ("trained to", formatting.shown_amounts(chosen.stop)),
        *((name, f"{values} ({number})") for name, values, number in over),
        ("device", ", ".join(readings.devices(results.trained)) or "–"),
        ("points done", f"{done:,} of {len(statuses):,}"),
        ("trainer", chosen.sweep.trainer),
        ("storage", storage),
    ]


def _warnings(
    chosen: Chosen, statuses: Mapping[str, str], notes: Sequence[str]
) -> list[str]:
    """What keeps the numbers from being the paper's, or from being compared."""
    scale, *rest = chosen.choice.scale, *chosen.choice.arguments()[2:]
    found = scale_warnings(chosen)
    if rest:
        found.append(f"Not the whole {scale} scale, but with {shlex.join(rest)}.")
    if other := sum(status != "done" for status in statuses.values()):
        found.append(f"Incomplete: {other:,} of {len(statuses):,} points are not done.")
    return [*found, *notes]


def _points_tables(results: Results, statuses: Mapping[str, str]) -> list[Table]:
    """Points that ended badly, with their error, and those that are not done."""
    chosen, trained, made = results.chosen, results.trained, []
    bad = [one for one in trained if statuses[one.point.id] in TROUBLE]
    bad += [
        one
        for one in trained
        if statuses[one.point.id] == "missing" and one.record.failure
    ]
    if bad:
        made.append(_trouble_table(chosen, bad, statuses))
    waiting = [
        one for one in trained if statuses[one.point.id] in ("missing", "running")
    ]
    if waiting:
        made.append(_waiting_table(chosen, waiting, statuses))
    return made


def _trouble_table(
    chosen: Chosen, bad: Sequence[Trained], statuses: Mapping[str, str]
) -> Table:
    over = chosen.sweep.select.over
    rows = []
    for one in bad[:MAX_ERRORS]:
        values = one.point.values
        row = (
            one.point.id,
            statuses[one.point.id],
            grid.method_of(chosen.sweep, values),
            grid.describe(chosen.sweep, one.point.configuration(over).values),
            *(tables.value(values[field]) for field in over),
            formatting.shown_amounts(one.record.progress),
            _error(one.record),
        )
        rows.append(row)
    more = len(bad) - len(rows)
    notes = (f"And {more:,} more, which the command `status` lists.",) if more else ()
    names = ("point", "status", "method", "configuration")
    columns = (
        *map(Column, names),
        *(Column(field, "value") for field in over),
        *(Column("reached"), Column("error")),
    )
    title = "Points that failed, diverged or are damaged"
    return Table(Key(Kind.TROUBLE), title, columns, tuple(rows), notes)


def _error(record: store.Record) -> str:
    """Says in one line what was wrong with a point."""
    if record.damage:
        return f"damaged, counted as missing: {record.damage}"
    return store.reason(record.failure)


def _waiting_table(
    chosen: Chosen, waiting: Sequence[Trained], statuses: Mapping[str, str]
) -> Table:
    """Points without a result, one row for each configuration."""
    rule = chosen.sweep.select
    rows = []
    for members in readings.by_configuration(waiting, rule.over).values():
        values = members[0].point.configuration(rule.over).values
        furthest = max(one.record.progress.get(rule.axis, 0) for one in members)
        states = [statuses[one.point.id] for one in members]
        rows.append(
            (
                grid.method_of(chosen.sweep, values),
                grid.describe(chosen.sweep, values),
                states.count("missing"),
                states.count("running"),
                *(
                    formatting.ranges(sorted({one.point.values[f] for one in members}))
                    for f in rule.over
                ),
                formatting.shown_amounts({rule.axis: furthest}) if furthest else None,
            )
        )
    columns = (
        *(Column("method"), Column("configuration")),
        *(Column("missing", "count"), Column("running", "count")),
        *(Column(f"{field}s") for field in rule.over),
        Column("furthest"),
    )
    title = "Points that are missing or running"
    return Table(Key(Kind.WAITING), title, columns, tuple(rows))


def _versions_table(trained: Sequence[Trained]) -> Table:
    """Versions of packages and of code, and when the points were trained."""
    runs = [t.record.provenance for t in trained if t.record.provenance]
    found: dict[str, set[str]] = {}
    for run in runs:
        for name, version in (run.packages or {}).items():
            found.setdefault(name, set()).add(version)
    rows = [(name, ", ".join(sorted(versions))) for name, versions in found.items()]
    times = [end for run in runs for end in (run.began, run.ended) if end]
    if times:
        first, last = (_day(end(times)) for end in (min, max))
        rows.append(("trained between", f"{first} and {last}"))
    columns = (Column("what"), Column("value"))
    return Table(Key(Kind.VERSIONS), "Versions and dates", columns, tuple(rows))


def _day(seconds: float) -> str:
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return when.strftime("%Y-%m-%d %H:%M UTC")


def scale_warnings(chosen: Chosen) -> list[str]:
    """Says what a scale of the paper's sweeps is too small for."""
    is_smaller = published.is_papers(chosen) and chosen.choice.scale in _SCALES
    return [_SCALES[chosen.choice.scale]] if is_smaller else []


def _commands(
    results: Results,
    statuses: Mapping[str, str],
    storage: str,
    asked: Sequence[str] = (),
) -> list[tuple[str, list[str]]]:
    """What to type for each of the page's parts, to the letter."""
    chosen, stored = results.chosen, ["--storage", storage]
    arguments = [*chosen.choice.arguments(), *stored]

    def command(name: str, *more: str, given: Sequence[str] = arguments) -> str:
        words = [name, chosen.name, *given, *more]
        return "python -m bmg_sweeps " + shlex.join(words)

    written = [
        ("Train what is missing", [command("launch")]),
        ("Write this page again", [command("report", "--format", "html", *asked)]),
        ("See where the points stand", [command("status")]),
    ]
    budgets = [
        formatting.amounts({axis: max(score.budget for score in selected.best)})
        for axis, selected in results.selections.items()
        if selected.best
    ]
    best = [command("best", "--budget", budget) for budget in budgets]
    fresh = [*_without_seeds(chosen.choice), *stored, "--seeds", _fresh_seeds(chosen)]
    again = [command("rerun", "--budget", budget, given=fresh) for budget in budgets]
    bad = [i for i, status in statuses.items() if status in TROUBLE][:MAX_EXAMPLES]
    retries = [command("run", "--point", i) for i in bad]
    if best:
        written.append(("Print the best configurations", best))
        written.append(("Run them again on fresh seeds, and compare", again))
    if retries:
        written.append(("Run a point that ended badly here, for debugging", retries))
    return written


def _without_seeds(choice: choices.Choice) -> list[str]:
    words = choice.arguments()
    if choice.seeds:
        place = words.index("--seeds")
        del words[place : place + 2]
    return words


def _fresh_seeds(chosen: Chosen) -> str:
    """Five seeds after any that the sweep declares at this scale."""
    scale = chosen.sweep.scales.get(chosen.choice.scale)
    declared = [values.get("seed", 0) for values in scale.points] if scale else []
    used = [p.values.get("seed", 0) for p in chosen.points]
    first = max([*declared, *used]) + 1
    return f"{first}-{first + 4}"


def _grouped(configurations: Sequence[Mapping[str, Any]]) -> dict[str, list]:
    """Arranges configurations by method, with their places."""
    groups: dict[str, list] = {}
    for place, one in enumerate(configurations):
        groups.setdefault(one["method"], []).append((place, one))
    return groups
