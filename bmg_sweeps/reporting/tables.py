"""Tables of text and estimates, and the forms in which they are shown."""

import dataclasses
import html
import math
from collections.abc import Callable, Sequence
from typing import Any

import rich.box
import rich.console
import rich.table
import rich.text

from bmg_sweeps.analysis.intervals import Interval
from bmg_sweeps.analysis.selection import Estimate

_WIDEST = 400  # Columns of a table in a terminal.


Cell = str | Estimate


@dataclasses.dataclass(frozen=True)
class Table:
    """A title, column names, rows of cells, and remarks below."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    about: str = ""  # What its numbers are numbers of, beside the title.
    groups: tuple[str, ...] = ()  # Of each column, "" for none; () is no groups at all.

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, told apart by their groups."""
        groups = self.groups or ("",) * len(self.columns)
        pairs = zip(groups, self.columns, strict=True)
        return tuple(f"{group} {name}".strip() for group, name in pairs)


def text(made: Sequence[Table], console: rich.console.Console) -> None:
    """Prints tables to a terminal, numbers with three digits."""
    for table in made:
        is_dense = bool(table.groups)  # They have many columns.
        view = rich.table.Table(
            box=rich.box.SIMPLE_HEAD, pad_edge=False, collapse_padding=is_dense
        )
        for i, name in enumerate(_heads(table)):
            justify = "left" if i < 2 else "right"
            view.add_column(rich.text.Text(name), justify=justify)
        is_grouped = len({row[0] for row in table.rows}) < len(table.rows)
        for row, before in zip(table.rows, (None, *table.rows), strict=False):
            if is_grouped and before and row[0] != before[0]:
                view.add_section()
            cells = [short(c) if isinstance(c, Estimate) else c for c in row]
            view.add_row(*map(rich.text.Text, cells))  # Text is taken literally.
        title = rich.text.Text(table.title, style="bold")
        title.append(f" ({table.about})" if table.about else "", style="not bold")
        console.print(title, soft_wrap=True)
        # A table wider than the terminal runs over its edge: cells folded to fit it
        # cannot be read at all.
        wide = rich.console.Console(file=console.file, width=_WIDEST)
        wide.print(view)
        for note in table.notes:
            console.print(rich.text.Text(note), soft_wrap=True)
        console.print()


def _heads(table: Table) -> list[str]:
    """The columns' names, below those of their groups, a word a line."""
    groups = table.groups or ("",) * len(table.columns)
    height = max(len(group.split()) for group in groups)
    heads = []
    for name, group, before in zip(
        table.columns, groups, (None, *groups), strict=False
    ):
        words = group.split() if group != before else []
        heads.append("\n".join([*words, *[""] * (height - len(words)), name]))
    return heads


def markdown(made: Sequence[Table]) -> str:
    """Writes tables as GitHub Markdown, numbers in full."""
    lines = []
    for table in made:
        lines += [f"### {table.title}", "", *([table.about, ""] if table.about else ())]
        lines.append(_markdown_row(table.names))
        lines.append("|" + " --- |" * len(table.columns))
        lines += [_markdown_row(row) for row in table.rows]
        lines += ["", *(f"{note}  " for note in table.notes), ""]
    return "\n".join(lines)


def exact(estimate: Estimate) -> str:
    """Writes both with the mean's units in full: 1,774,099 ± 60,321."""
    size = abs(estimate.mean)
    digits = 0 if size >= 1000 else 3
    if 0 < size < 0.1:  # Three that count: 0.000213.
        digits = 2 - math.floor(math.log10(size))
    return " ± ".join(f"{part:,.{digits}f}" for part in _parts(estimate))


def short(estimate: Estimate) -> str:
    """Writes both with three digits and a suffix: 1.77M ± 60.3k."""
    return " ± ".join(suffixed(part) for part in _parts(estimate))


def _parts(estimate: Estimate) -> list[float]:
    return [p for p in (estimate.mean, estimate.deviation) if p is not None]


def amount(amount: float) -> str:
    """Writes a budget: 10,000,000 or 0.50 or 0.0011."""
    if amount == int(amount):
        return f"{amount:,.0f}"
    return f"{amount:,.2f}" if amount >= 0.1 else f"{amount:.2g}"


def interval(found: Interval, written: Callable[[float], str]) -> str:
    """Writes an estimate and its interval: 0.83 [0.51, 1.00]."""
    return f"{written(found.estimate)} [{written(found.low)}, {written(found.high)}]"


def ranges(numbers: Sequence[Any]) -> str:
    """Writes ascending numbers as "0–4, 7"."""
    parts: list[list[Any]] = []
    for number in numbers:
        is_next = parts and isinstance(number, int) and parts[-1][-1] == number - 1
        if is_next:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("–".join(map(str, part)) for part in parts) or "–"


def signed(difference: float) -> str:
    """Writes a difference with its sign and three digits: +3.1k."""
    text = suffixed(difference)
    return text if text.startswith("-") else f"+{text}"


def _markdown_row(row: Sequence[Cell]) -> str:
    cells = [exact(c) if isinstance(c, Estimate) else c for c in row]
    cells = [html.escape(c, quote=False).replace("|", "\\|") for c in cells]
    return "| " + " | ".join(cells) + " |"


def suffixed(number: float) -> str:
    """Writes three digits and a suffix: 1.77M."""
    for factor, suffix in ((1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")):
        digits = f"{number / factor:.3g}"
        if abs(float(digits)) < 1000:  # After rounding: 999.6 is 1k.
            return digits + suffix
    return f"{number:.3g}"
