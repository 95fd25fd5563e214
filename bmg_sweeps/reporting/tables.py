"""Tables of text and estimates, and the forms in which they are shown."""

import dataclasses
import html
from collections.abc import Sequence

import rich.box
import rich.console
import rich.table
import rich.text

from bmg_sweeps.analysis import estimates
from bmg_sweeps.analysis.estimates import Estimate

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
            cells = [estimates.short(c) if isinstance(c, Estimate) else c for c in row]
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


def _markdown_row(row: Sequence[Cell]) -> str:
    cells = [estimates.exact(c) if isinstance(c, Estimate) else c for c in row]
    cells = [html.escape(c, quote=False).replace("|", "\\|") for c in cells]
    return "| " + " | ".join(cells) + " |"
