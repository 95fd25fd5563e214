"""Tables of values, and the forms in which they are shown.

Cells stay what they are, numbers and estimates, until a table is printed. Its columns
say what kind of value theirs are, which decides how these are written.
"""

import dataclasses
import enum
import functools
import html
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import rich.console
import rich.text
import tabulate

from bmg_sweeps import formatting
from bmg_sweeps.analysis import estimates, intervals
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.intervals import Interval

NOTHING = "–"  # Where there is no value.
tabulate.MIN_PADDING = 0  # Columns are as wide as their widest cell.
MAX_BUDGETS = 12  # Columns of a table that has one for each budget.


class Kind(enum.StrEnum):
    """What a table shows."""

    AGREEMENT = "agreement"
    BACKTEST = "backtest"
    BEST = "best"
    BY_VALUE = "by_value"
    CLAIMS = "claims"
    COMPARISON = "comparison"
    DECISION = "decision"
    DIFFERENCE = "difference"
    EXPECTED_BEST = "expected_best"
    HEADING = "heading"
    HEADLINE = "headline"
    IMPORTANCE = "importance"
    IMPROVEMENT = "improvement"
    LEFT_OUT = "left_out"
    MEASURES = "measures"
    PROVENANCE = "provenance"
    PUBLISHED = "published"
    SCORES = "scores"
    TASK_PROFILE = "task_profile"
    TASK_PUBLISHED = "task_published"
    TASK_SENSITIVITY = "task_sensitivity"
    TASK_SUMMARY = "task_summary"
    TASKS = "tasks"
    TROUBLE = "trouble"
    VERSIONS = "versions"
    WAITING = "waiting"


class Key(NamedTuple):
    """What tells a table apart from the others of a sweep."""

    kind: Kind
    axis: str = ""  # The budgets', where there is a table for each axis.
    field: str = ""  # Where there is a table for each of several fields.


class Share(NamedTuple):
    """So many of so many."""

    part: int
    whole: int


class Described(NamedTuple):
    """An estimate, and of what it is one."""

    what: str
    estimate: Estimate
    held_out: float | None = None  # Where other seeds chose.


Cell = str | int | float | Estimate | Interval | Share | Described | None
ColumnKind = Literal[
    "amount",  # An amount of training: a number.
    "correlation",  # An Interval of numbers from -1 to 1.
    "count",  # A number of things; or words, where it takes more than a number.
    "described",  # A Described.
    "difference",  # A number that is written with its sign, or an Interval of such.
    "estimate",  # An Estimate.
    "fraction",  # A number from 0 to 1, which is written in percent.
    "interval",  # An Interval in the unit of the metric, or its estimate alone.
    "probability",  # An Interval of numbers from 0 to 1.
    "printed",  # An Estimate with the digits that it was published with.
    "share",  # A Share.
    "text",
    "value",  # A value of a trainer's field: a number, or a text.
]


@dataclasses.dataclass(frozen=True)
class Column:
    """The name of a column, and what its cells are. A text may stand in any of them."""

    name: str
    kind: ColumnKind = "text"
    group: str = ""  # Columns of one group stand below a common head.
    is_published: bool = False  # Whether its numbers are others', or compare with them.


@dataclasses.dataclass(frozen=True)
class Table:
    """A title, columns, rows of cells, and remarks below."""

    key: Key
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    about: str = ""  # What its numbers are numbers of, beside the title.

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, told apart by their groups."""
        return tuple(f"{c.group} {c.name}".strip() for c in self.columns)

    @property
    def has_groups(self) -> bool:
        """Whether some columns stand below a common head."""
        return any(column.group for column in self.columns)

    @functools.cached_property
    def is_grouped(self) -> bool:
        """Whether some rows have the same in their first cell."""
        firsts = [row[0] for row in self.rows]
        return len(set(firsts)) < len(firsts)


def value(of_field: Any) -> Cell:
    """Makes a cell of a field's value: a number stays one, all else is text."""
    is_number = type(of_field) in (int, float)
    return of_field if is_number else formatting.short(of_field)


def thinned(budgets: Sequence[float]) -> list[float]:
    """Chooses the budgets that have a column, evenly; the last one is among them."""
    step = -(-len(budgets) // MAX_BUDGETS) or 1
    return list(budgets[::-step][::-1])


def texts(table: Table, is_exact: bool) -> list[list[str]]:
    """Writes the cells of a table.

    Args:
        table: of values.
        is_exact: whether estimates are written in full, or with three digits.

    Returns:
        The rows.
    """
    return [
        [
            written(column, cell, is_exact)
            for column, cell in zip(table.columns, row, strict=True)
        ]
        for row in table.rows
    ]


def written(column: Column, cell: Cell, is_exact: bool) -> str:
    """Writes one cell of a column, as `texts` does."""
    if cell is None:
        return NOTHING
    if isinstance(cell, str):
        return cell
    if column.kind == "estimate" and isinstance(cell, Estimate):
        return (estimates.exact if is_exact else estimates.short)(cell)
    return _WRITERS[column.kind](cell)


def text(made: Sequence[Table], console: rich.console.Console) -> None:
    """Prints tables to a terminal, numbers with three digits."""
    for table in made:
        title = rich.text.Text(table.title, style="bold")
        title.append(f" ({table.about})" if table.about else "", style="not bold")
        console.print(title, soft_wrap=True)
        laid_out = rich.text.Text(_laid_out(table))  # Is taken literally.
        console.print(laid_out, soft_wrap=True)
        for note in table.notes:
            console.print(rich.text.Text(note), soft_wrap=True)
        console.print()


def _laid_out(table: Table) -> str:
    """Writes a table as lines.

    One wider than the terminal runs over its edge: cells that are folded to fit it
    cannot be read at all.
    """
    rows: list[Sequence[str]] = []
    for i, row in enumerate(texts(table, is_exact=False)):
        if table.is_grouped and i and table.rows[i][0] != table.rows[i - 1][0]:
            rows.append([""] * len(row))
        rows.append(row)
    number = len(table.columns)
    return tabulate.tabulate(
        rows,
        headers=_heads(table),
        tablefmt="simple",
        disable_numparse=True,
        preserve_whitespace=True,
        colalign=("left", "left", *("right",) * number)[:number] if rows else None,
    )


def _heads(table: Table) -> list[str]:
    """The columns' names, below those of their groups, a word a line."""
    height = max(len(column.group.split()) for column in table.columns)
    heads, before = [], None
    for column in table.columns:
        words = column.group.split() if column.group != before else []
        heads.append("\n".join([*words, *[""] * (height - len(words)), column.name]))
        before = column.group
    return heads


def markdown(made: Sequence[Table]) -> str:
    """Writes tables as GitHub Markdown, numbers in full."""
    lines = []
    for table in made:
        lines += [f"### {_markdown_text(table.title)}", ""]
        lines += [_markdown_text(table.about), ""] if table.about else []
        lines.append(_markdown_row(table.names))
        lines.append("|" + " --- |" * len(table.columns))
        lines += map(_markdown_row, texts(table, is_exact=True))
        lines += ["", *(f"{_markdown_text(note)}  " for note in table.notes), ""]
    return "\n".join(lines)


def as_json(table: Table) -> dict[str, Any]:
    """Writes a table as values that JSON has, its cells as numbers.

    Returns:
        What `Table` has, by name. A cell is null, a text or a number; or an object: of
        an estimate with mean and deviation, of an interval with estimate, low and high,
        of a share with part and whole, of a claim's side with what, mean, deviation and
        held_out, which is null where nothing is held out.
    """
    return {
        **table.key._asdict(),
        "title": table.title,
        "about": table.about,
        "columns": [dataclasses.asdict(column) for column in table.columns],
        "rows": [list(map(_as_json, row)) for row in table.rows],
        "notes": list(table.notes),
    }


def _as_json(cell: Any) -> Any:
    """Writes a cell; what is not finite is null."""
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    if isinstance(cell, Described):
        apart = {"held_out": _as_json(cell.held_out)}
        return {"what": cell.what} | _as_json(cell.estimate) | apart
    if isinstance(cell, Estimate):
        cell = dataclasses.asdict(cell)
    elif isinstance(cell, Interval | Share):
        cell = cell._asdict()
    is_several = isinstance(cell, dict)
    return {k: _as_json(v) for k, v in cell.items()} if is_several else cell


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_markdown_text, cells)) + " |"


def _markdown_text(text: str) -> str:
    """Writes text as such, be there tags in it or lines between columns."""
    return html.escape(text, quote=False).replace("|", "\\|")


def _printed(estimate: Estimate) -> str:
    numbers = (estimate.mean, estimate.deviation)
    return " ± ".join(f"{number:g}" for number in numbers if number is not None)


def _described(cell: Described) -> str:
    apart = cell.held_out
    more = "" if apart is None else f"; held out {formatting.suffixed(apart)}"
    return f"{cell.what}: {estimates.short(cell.estimate)}{more}"


_WRITERS: Mapping[str, Callable[[Any], str]] = {
    "amount": formatting.shown_amount,
    "correlation": lambda cell: intervals.interval(cell, "{:.2f}".format),
    "count": str,
    "described": _described,
    "difference": lambda cell: intervals.interval(cell, formatting.signed),
    "fraction": "{:.1%}".format,
    "interval": lambda cell: intervals.interval(cell, formatting.suffixed),
    "printed": _printed,
    "probability": lambda cell: intervals.interval(cell, "{:.2f}".format),
    "share": lambda cell: f"{cell.part} / {cell.whole}",
    "value": formatting.short,
}
