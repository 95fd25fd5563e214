"""Tables as LaTeX, for a paper: with the rules of the package booktabs.

A table is as wide as the page's text at most: long texts are broken into lines, and
what is wider still is set smaller. One that is longer than a page is continued.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bmg_sweeps.reporting import tables
from bmg_sweeps.reporting.tables import Column, Table

_PREAMBLE = "% In the preamble: \\usepackage{array,booktabs,graphicx}"
MAX_LINES = 38  # Of rows and notes; a longer table is continued on the next page.
MAX_CELL = 36  # Characters; a longer cell is broken into lines.
_LONG = r">{\raggedright\arraybackslash}p{13em}"  # A column whose cells are broken.
_CELL_LINE = 28  # Characters of a line of such a cell.
_NOTE_LINE = 95  # Characters of a line of a note.
# What is wider than the page's text is made as wide as that, and nothing else is.
_FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
# Above a table a caption has its space below it.
_SPACE = r"\setlength{\abovecaptionskip}{0pt}\setlength{\belowcaptionskip}{6pt}"
_MINUS = re.compile(r"(?<![\w.)-])-(?=[\d.])")
# Code in backticks, what LaTeX would join, a letter with a sign above it, any other.
_TOKEN = re.compile("`[^`]+`|--|[A-Za-z][\u0300-\u036f]|.", re.DOTALL)
_SYMBOLS = {
    **{"<": "<", ">": ">", "|": "|", "−": "-", "±": r"\pm", "×": r"\times"},
    **{"≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "≈": r"\approx", "·": r"\cdot"},
    **{"¼": r"\frac{1}{4}", "½": r"\frac{1}{2}", "¾": r"\frac{3}{4}", "°": r"^\circ"},
    **{"→": r"\rightarrow", "←": r"\leftarrow", "↦": r"\mapsto", "⋯": r"\cdots"},
    **{"∈": r"\in", "∞": r"\infty", "∝": r"\propto", "∇": r"\nabla", "√": r"\surd"},
    **{"∂": r"\partial", "∫": r"\int", "ℓ": r"\ell", "‖": r"\|", "′": r"^\prime"},
    **{"⌈": r"\lceil", "⌉": r"\rceil", "⌊": r"\lfloor", "⌋": r"\rfloor"},
    **{"⟨": r"\langle", "⟩": r"\rangle", "⊂": r"\subset", "µ": r"\mu"},
}  # In mathematics.
_ESCAPED = {
    **{letter: f"\\{letter}" for letter in "{}$&#%_"},
    **{letter: f"${symbol}$" for letter, symbol in _SYMBOLS.items()},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "`": r"\textasciigrave{}",
    "–": "--",
    "—": "---",
    "--": "-{}-",
    "…": r"\ldots{}",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
}
# Capital letters that look as Latin ones do; LaTeX has no others for them.
_LATIN = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo", strict=True))
_ACCENTS = dict(
    zip("\u0300\u0301\u0302\u0303\u0304\u0307\u0308\u030c", "`'^~=.\"v", strict=True)
)
_NOT_IN_FONT = "«»ÐÞðþ\xad"  # What LaTeX's own encoding of fonts lacks of Latin-1.
_PLACES = {"<super>": "^", "<sub>": "_"}  # As Unicode names them.


def write(made: Sequence[Table]) -> str:
    """Writes tables as LaTeX, each a floating `table`, numbers in full.

    Args:
        made: as a report makes them. One in the paper's form keeps its groups of
            columns. A long one is several floating ones of one number.

    Returns:
        Text for a document that loads array, booktabs and graphicx.
    """
    return (
        "\n\n".join([_PREAMBLE, *("\n".join(_lines(table)) for table in made)]) + "\n"
    )


def escaped(text: str) -> str:
    r"""Writes text as LaTeX shows it; before a number "-" is a minus.

    What LaTeX has no letter for stands there by its name in Unicode.

    >>> print(escaped("env_steps ≥ -5 %, β=0.1"))
    env\_steps $\geq$ $-$5 \%, $\beta$=0.1
    >>> print(escaped("x̃ of `rerun --seeds`, ⅋"))
    \~{x} of \texttt{rerun -{}-seeds}, [turned ampersand]
    """
    return "".join(map(_written, _TOKEN.findall(_MINUS.sub("−", text))))


def _written(token: str) -> str:
    if token in _ESCAPED:
        return _ESCAPED[token]
    if token[0] == "`":
        return rf"\texttt{{{escaped(token[1:-1])}}}"
    if len(token) == 1:
        return _letter(token)
    accent = _ACCENTS.get(token[1])
    return rf"\{accent}{{{token[0]}}}" if accent else token[0] + _letter(token[1])


def _letter(letter: str) -> str:
    if letter in _LATIN:
        return _LATIN[letter]
    is_known = letter.isascii() or "\xa1" <= letter <= "\xff"
    if (
        is_known
        and letter not in _NOT_IN_FONT
        and (letter.isprintable() or letter == "\n")
    ):
        return letter
    words = unicodedata.name(letter, f"U+{ord(letter):04X}").lower().split()
    if len(words) == 4 and words[0] == "greek" and words[2] == "letter":
        name = words[3].replace("lamda", "lambda")  # Unicode spells it so.
        return f"$\\{name.capitalize() if words[1] == 'capital' else name}$"
    parts = unicodedata.normalize("NFD", letter)
    if len(parts) == 2 and parts[0].isascii() and parts[1] in _ACCENTS:
        return _written(parts)
    place, *codes = unicodedata.decomposition(letter).split() or [""]
    inner = "".join(chr(int(code, 16)) for code in codes).replace("−", "-")
    if place in _PLACES and inner.isascii():
        return f"${_PLACES[place]}{{{inner}}}$"
    return f"[{' '.join(words)}]"


def _lines(table: Table) -> Iterator[str]:
    """Writes one table, line by line, in as many parts as it takes."""
    about = f" ({table.about})" if table.about else ""
    texts = tables.texts(table, is_exact=True)
    alignments = "".join(
        _alignment(column, [row[i] for row in texts])
        for i, column in enumerate(table.columns)
    )
    for place, (rows, notes) in enumerate(_parts(table, texts)):
        yield from (r"\begin{table}", r"  \centering", f"  {_SPACE}")
        if place:
            yield r"  \addtocounter{table}{-1}"
        end = ", continued." if place else "."
        yield rf"  \caption{{{escaped(table.title + about + end)}}}"
        if rows or not place:
            yield from (f"  {_FIT}", rf"  \begin{{tabular}}{{{alignments}}}")
            yield r"    \toprule"
            yield from _groups(table.columns)
            yield _row(column.name for column in table.columns)
            yield r"    \midrule"
            yield from _body(table, texts, rows)
            yield from (r"    \bottomrule", r"  \end{tabular}}")
        if notes:
            yield r"  \par\smallskip\raggedright\footnotesize"
            yield from (rf"  {escaped(note)}\par" for note in notes)
        yield r"\end{table}"


class _Part(NamedTuple):
    rows: list[int]  # Their places.
    notes: list[str]


def _parts(table: Table, texts: Sequence[Sequence[str]]) -> list[_Part]:
    """Divides rows, and the notes below them, into parts that fit on a page."""
    parts, number = [_Part([], [])], 0

    def part(lines: int) -> _Part:
        nonlocal number
        number += lines
        if number > MAX_LINES and any(parts[-1]):
            parts.append(_Part([], []))
            number = lines
        return parts[-1]

    for place, row in enumerate(texts):
        longest = max(map(len, row))
        is_long = longest > MAX_CELL
        part(-(-longest // _CELL_LINE) if is_long else 1).rows.append(place)
    for note in table.notes:
        part(-(-len(note) // _NOTE_LINE)).notes.append(note)
    return parts


def _body(
    table: Table, texts: Sequence[Sequence[str]], places: Sequence[int]
) -> Iterator[str]:
    """Writes some rows, with a space between groups of them."""
    before = None
    for place in places:
        first = table.rows[place][0]
        is_next = before is not None and table.is_grouped and first != before
        yield from [r"    \addlinespace"] if is_next else []
        yield _row(texts[place])
        before = first


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


def _alignment(column: Column, cells: Sequence[str]) -> str:
    is_text = column.kind in ("text", "described", "value")
    if any(len(cell) > MAX_CELL for cell in cells):
        return _LONG
    return "l" if is_text else "r"


def _row(cells: Iterable[str]) -> str:
    text = " & ".join(map(escaped, cells))
    # After a rule or the end of a row LaTeX reads these as an option.
    return f"    {'{}' if text[:1] in ('[', '*') else ''}{text} \\\\"
