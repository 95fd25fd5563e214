"""Tables as LaTeX, for a paper: with the rules of the package booktabs."""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from bmg_sweeps.reporting import tables
from bmg_sweeps.reporting.tables import Column, Table

_PREAMBLE = "% In the preamble: \\usepackage{booktabs}"
_MINUS = re.compile(r"(?<![\w.)-])-(?=[\d.])")
_ESCAPED = {
    **{letter: f"\\{letter}" for letter in "{}$&#%_"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "–": "--",
    "…": r"\ldots{}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "¼": r"$\frac{1}{4}$",
    "½": r"$\frac{1}{2}$",
    "→": r"$\rightarrow$",
    "°": r"$^\circ$",
}
# Capital letters that look as Latin ones do; LaTeX has no others for them.
_LATIN = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo", strict=True))


def write(made: Sequence[Table]) -> str:
    """Writes tables as LaTeX, each a floating `table`, numbers in full.

    Args:
        made: as a report makes them. One in the paper's form keeps its groups of
            columns.

    Returns:
        Text for a document that loads booktabs.
    """
    return (
        "\n\n".join([_PREAMBLE, *("\n".join(_lines(table)) for table in made)]) + "\n"
    )


def escaped(text: str) -> str:
    r"""Writes text as LaTeX shows it; before a number "-" is a minus.

    >>> print(escaped("env_steps ≥ -5 %, β=0.1"))
    env\_steps $\geq$ $-$5 \%, $\beta$=0.1
    """
    return "".join(map(_letter, _MINUS.sub("−", text)))


def _letter(letter: str) -> str:
    if letter in _ESCAPED:
        return _ESCAPED[letter]
    if letter in _LATIN:
        return _LATIN[letter]
    words = unicodedata.name(letter, "").split()
    if len(words) == 4 and words[0] == "GREEK" and words[2] == "LETTER":
        name = words[3].lower().replace("lamda", "lambda")  # Unicode spells it so.
        return f"$\\{name.capitalize() if words[1] == 'CAPITAL' else name}$"
    return letter


def _lines(table: Table) -> Iterator[str]:
    """Writes one table, line by line."""
    title = f"{table.title} ({table.about})." if table.about else f"{table.title}."
    yield from (r"\begin{table}", r"  \centering", rf"  \caption{{{escaped(title)}}}")
    yield rf"  \begin{{tabular}}{{{''.join(map(_alignment, table.columns))}}}"
    yield r"    \toprule"
    yield from _groups(table.columns)
    yield _row(column.name for column in table.columns)
    yield r"    \midrule"
    before = None
    for row, cells in zip(table.rows, tables.texts(table, is_exact=True), strict=True):
        is_next = before is not None and table.is_grouped and row[0] != before
        yield from [r"    \addlinespace"] if is_next else []
        yield _row(cells)
        before = row[0]
    yield from (r"    \bottomrule", r"  \end{tabular}")
    yield from (rf"  \par\footnotesize {escaped(note)}" for note in table.notes)
    yield r"\end{table}"


def _groups(columns: Sequence[Column]) -> Iterator[str]:
    """Writes the common heads of columns, and a rule below each."""
    if not any(column.group for column in columns):
        return
    heads, rules, place = [], [], 1
    for name, members in itertools.groupby(column.group for column in columns):
        width = len(list(members))
        last = place + width - 1
        head = rf"\multicolumn{{{width}}}{{c}}{{{escaped(name)}}}"
        heads.append(head if name else "& " * (width - 1))
        rules += [rf"\cmidrule(lr){{{place}-{last}}}"] if name else []
        place = last + 1
    yield f"    {' & '.join(heads)} \\\\"
    yield f"    {' '.join(rules)}"


def _alignment(column: Column) -> str:
    return "l" if column.kind in ("text", "described", "value") else "r"


def _row(cells: Iterable[str]) -> str:
    return f"    {' & '.join(map(escaped, cells))} \\\\"
