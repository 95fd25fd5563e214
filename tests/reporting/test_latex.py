"""LaTeX and JSON hold the same cells as the tables that they are written of."""

import dataclasses
import json
import math
import re
import shutil
import subprocess

import pytest
import test_paper_tables as toy
import toy_tasks

from bmg_sweeps import paths
from bmg_sweeps.analysis import estimates, intervals
from bmg_sweeps.reporting import latex, report, tables

ANY = tables.Key(tables.Kind.BEST, "env_steps")
WORDS = {r"\pm": "±", r"\beta": "β", r"\Delta": "Δ", r"\rho": "ρ", r"\tau": "τ"}
WORDS |= {"-": "-"}


@pytest.fixture
def made(storage):
    return report.make(toy.recorded(storage))


def shown(text):
    """What LaTeX prints of a cell, of the commands that tables have."""
    text = re.sub(r"\$(.*?)\$", lambda match: WORDS[match[1]], text)
    return re.sub(r"\\([{}$&#%_])", r"\1", text).replace("--", "–").strip()


def cells(text):
    """The rows of each table: its heads below the groups, and its cells."""
    found = []
    for part in text.split(r"\toprule")[1:]:
        body = part.partition(r"\bottomrule")[0].partition(r"\midrule")
        lines = [body[0].strip().splitlines()[-1], *body[2].splitlines()]
        rows = [line for line in lines if " & " in line or line.endswith(r"\\")]
        found.append([re.split(r"(?<!\\)&", r.removesuffix(r"\\")) for r in rows])
    return [[[shown(cell) for cell in row] for row in table] for table in found]


def test_every_cell_of_every_table_is_there(made):
    """In full, as Markdown has it; below the columns' own names."""
    expected = [
        [[column.name for column in table.columns], *tables.texts(table, is_exact=True)]
        for table in made
    ]
    assert cells(latex.write(made)) == expected


def test_the_papers_form_has_its_groups(made):
    """Each above its columns, with a rule as wide as they are."""
    text = latex.write([made[0]])
    groups = re.search(r"\\toprule\n(.*)\n(.*)\n", text)
    spans = re.findall(r"\\multicolumn\{(\d+)\}\{c\}\{([\w ]*)\}", groups[1])
    assert spans == [("5", "B"), ("4", "B published"), ("6", "M"), ("5", "M published")]
    assert groups[1].strip().startswith("& ")  # Above the budgets is nothing.
    assert re.findall(r"cmidrule\(lr\)\{(\S+?)\}", groups[2]) == [
        "2-6", "7-10", "11-16", "17-21"
    ]  # fmt: skip
    alone = dataclasses.replace(made[0], columns=tuple(
        dataclasses.replace(column, group="") for column in made[0].columns
    ))  # fmt: skip
    assert "cmidrule" not in latex.write([alone])


def test_columns_below_no_group_keep_their_place():
    """Two of them before the group are an empty head each."""
    columns = (tables.Column("a"), tables.Column("b"), tables.Column("c", group="G"))
    text = latex.write([tables.Table(ANY, "T", columns, (("x", "y", "z"),))])
    head = text.split(r"\toprule")[1].splitlines()[1]
    assert head == r"    &  & \multicolumn{1}{c}{G} \\"
    assert r"\cmidrule(lr){3-3}" in text


def test_numbers_stand_flush_right_and_groups_of_rows_apart(made):
    """A space between budgets, as the terminal has a line."""
    (by_hours,) = [t for t in made if t.key == (tables.Kind.BEST, "hours", "")]
    text = latex.write([by_hours])
    assert r"\begin{tabular}{rllrrrrrr}" in text
    assert text.count(r"\addlinespace") == 1
    assert text.index("1 & M") < text.index(r"\addlinespace") < text.index("2 & B")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"50 % of a_b & {c} #1 $x$ \d", r"50 \% of a\_b \& \{c\} \#1 \$x\$ "
         r"\textbackslash{}d"),
        ("a^b ~ <c> |d|", r"a\textasciicircum{}b \textasciitilde{} $<$c$>$ $|$d$|$"),
        ("ε=0.1 Σ Α λ", r"$\epsilon$=0.1 $\Sigma$ A $\lambda$"),
        ("-3 ± -0.5, K-1, 0-9, --seeds 10-14, 1e-06",
         r"$-$3 $\pm$ $-$0.5, K-1, 0-9, -{}-seeds 10-14, 1e-06"),
        ("2 × 3 – [0.5, 1]…", r"2 $\times$ 3 -- [0.5, 1]\ldots{}"),
        ("Jürgen", "Jürgen"),
        ("x̃ ũ ȳ x̤", r"\~{x} \~{u} \={y} x[combining diaeresis below]"),
        ("10⁵ x⁽ᴷ⁾ χ₀ 10⁻¹", r"10$^{5}$ x$^{(}$$^{K}$$^{)}$ $\chi$$_{0}$ 10$^{-}$¹"),
        ("γ ∈ ‖x‖ ⅋ ð \x07", r"$\gamma$ $\in$ $\|$x$\|$ [turned ampersand] "
         "[latin small letter eth] [u+0007]"),
        ("`rerun --by N_x` ` “a”", r"\texttt{rerun -{}-by N\_x} \textasciigrave{} "
         "``a''"),
    ],
)  # fmt: skip
def test_text_is_shown_as_it_is(text, expected):
    """Whatever means something to LaTeX, and what its fonts lack."""
    assert latex.escaped(text) == expected


def test_no_letter_is_left_that_latex_has_not():
    """Of any text, what is written has letters of ASCII and Latin-1 alone."""
    for number in range(0x3000):
        written = latex.escaped(chr(number))
        assert all(one == "\n" or " " <= one <= "ÿ" for one in written), hex(number)
        assert not set(written) & set("«»ÐÞðþ\x7f\xad"), hex(number)


def table_of(rows, notes=(), columns=("a", "b")):
    names = tuple(tables.Column(name) for name in columns)
    return tables.Table(ANY, "T", names, tuple(rows), tuple(notes))


def test_a_long_table_is_continued():
    """100 rows and 20 notes: 38 lines each; the number of the table is the same."""
    rows = [(f"row {i}", "x") for i in range(100)]
    notes = [f"note {i}." for i in range(20)]
    first, *others = latex.write([table_of(rows, notes)]).split(r"\begin{table}")[1:]
    assert r"\caption{T.}" in first
    assert r"\addtocounter" not in first
    assert [re.findall(r"(?:row|note) \d+", part)[0] for part in (first, *others)] == [
        "row 0", "row 38", "row 76", "note 14"
    ]  # fmt: skip
    for part in others:
        assert r"\addtocounter{table}{-1}" in part
        assert r"\caption{T, continued.}" in part
        assert (r"\toprule" in part) == ("row" in part)
    found = re.findall(r"(?:row|note) \d+", "".join((first, *others)))
    assert found == [row for row, _ in rows] + [note[:-1] for note in notes]


def test_long_texts_are_broken_into_lines():
    """And count as several: 20 rows of three lines are two parts."""
    text = latex.write([table_of([("x", "long " * 16)] * 20)])
    assert text.count(r"\begin{tabular}{l>{\raggedright\arraybackslash}p{13em}}") == 2
    assert r"{ll}" in latex.write([table_of([("x", "a" * 36)])])


def test_a_row_that_begins_as_an_option_is_a_row():
    """LaTeX would take the bracket for one of the row before."""
    text = latex.write([table_of([("[0, 1]", "x"), ("*", "[y]")])])
    assert r"    {}[0, 1] & x \\" in text
    assert r"    {}* & [y] \\" in text


ODD = r"_a_ % & # $ β ε τ → × ~ ^ \ { } x̃ 10⁵ ∈ ⅋ ð ‖ [b] --c `d_e` < > | \end{table}"


def odd_tables(storage):
    """A sweep whose names are odd, in its title, methods, claims and labels."""
    name = {"A": ODD, "B": "[B] *"}
    sweep = dataclasses.replace(
        toy_tasks.SWEEP,
        title=ODD,
        methods={name[key]: one for key, one in toy_tasks.SWEEP.methods.items()},
        tasks=dataclasses.replace(toy_tasks.TASKS, baseline=name["B"]),
        curves=(),
        claims=tuple(
            dataclasses.replace(one, text=ODD, more=name["A"], less=name["B"])
            for one in toy_tasks.SWEEP.claims
        ),
        published=None,
    )
    found = toy_tasks.load(toy_tasks.record(storage), sweep)
    return [report.heading(found, "runs", f"bmg report {ODD}"), *report.make(found)]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
@pytest.mark.parametrize("what", ["paper", "tasks", "odd", "long"])
def test_the_document_of_the_docs_shows_all_tables(storage, tmp_path, what):
    """None is wider or longer than its page, and no letter is missing."""
    made = {
        "paper": lambda: report.make(toy.recorded(storage)),
        "tasks": lambda: report.make(toy_tasks.load(toy_tasks.record(storage))),
        "odd": lambda: odd_tables(storage),
        "long": lambda: [
            table_of([("x", "long " * 16)] * 60, ["a long note " * 20] * 40)
        ],
    }[what]()
    text = (paths.ROOT / "docs" / "numbers.md").read_text(encoding="utf-8")
    (document,) = re.findall(r"```latex\n(.*?)```", text, re.DOTALL)
    (tmp_path / "tables.tex").write_text(latex.write(made), encoding="utf-8")
    (tmp_path / "paper.tex").write_text(document, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    log = done.stdout.decode("latin-1")
    assert done.returncode == 0, log[-2000:]
    for word in ("Overfull", "Float too large", "Missing character"):
        assert word not in log


def test_every_brace_and_environment_is_closed(made):
    """Of all tables, whatever is written in them."""
    message = r"{\end{table}} 50 % & \\"
    text = latex.write(
        [*made, tables.Table(ANY, message, made[0].columns, (), (message,))]
    )
    plain = re.sub(r"\\[\\{}]", "", text)
    assert plain.count("{") == plain.count("}")
    for name in ("table", "tabular"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}")
    assert text.count(r"\begin{table}") == len(made) + 1


def test_json_has_numbers_where_text_has_words(made):
    """Every kind of cell; what is not finite is null, and JSON has no NaN."""
    interval = intervals.Interval(1.0, -math.inf, 2.0)
    row = (
        *("text", 3, 0.5, None, estimates.Estimate(2.0, None), interval),
        *(tables.Share(1, 2), tables.Described("A", estimates.Estimate(1.0, 0.5))),
        tables.Described("B", estimates.Estimate(1.0, None), 0.75),
    )
    columns = tuple(tables.Column(str(i), group="g") for i in range(len(row)))
    table = tables.Table(ANY, "T", columns, (row,), ("note",), "about")
    found = json.loads(json.dumps(tables.as_json(table), allow_nan=False))
    assert found["rows"] == [
        [
            *("text", 3, 0.5, None, {"mean": 2.0, "deviation": None}),
            {"estimate": 1.0, "low": None, "high": 2.0},
            {"part": 1, "whole": 2},
            {"what": "A", "mean": 1.0, "deviation": 0.5, "held_out": None},
            {"what": "B", "mean": 1.0, "deviation": None, "held_out": 0.75},
        ]
    ]
    assert (found["kind"], found["axis"], found["field"]) == ("best", "env_steps", "")
    assert (found["title"], found["about"], found["notes"]) == ("T", "about", ["note"])
    first = {"name": "0", "kind": "text", "group": "g", "is_published": False}
    assert found["columns"][0] == first


def test_json_has_the_tables_of_tasks(storage):
    """Their counts are numbers that JSON has: A is above 1 on x and y."""
    made = report.make(toy_tasks.load(toy_tasks.record(storage)))
    found = json.loads(json.dumps([tables.as_json(table) for table in made]))
    (summary,) = [table for table in found if table["kind"] == "task_summary"]
    names = [column["name"] for column in summary["columns"]]
    assert summary["rows"][0][names.index("above human")] == {"part": 2, "whole": 3}


def test_json_has_every_table_with_all_of_its_cells(made):
    """As many rows and columns as the table, and its numbers to the last digit."""
    for table in made:
        found = json.loads(json.dumps(tables.as_json(table), allow_nan=False))
        assert [len(row) for row in found["rows"]] == [len(table.columns)] * len(
            table.rows
        )
        for row, cells_ in zip(found["rows"], table.rows, strict=True):
            for value, cell in zip(row, cells_, strict=True):
                if isinstance(cell, estimates.Estimate):
                    assert value == dataclasses.asdict(cell)
