"""Whatever a user gets wrong: one line, exit status 2, and nothing half-made.

A table of malformed inputs, each through the command line's own `main`. The line names
the field or flag, the value, and what was expected; storage and working folder are byte
for byte as before.
"""

import gzip
import hashlib
import json
import pathlib
import pickle
from typing import NamedTuple

import checked_here
import forged
import pytest
import toy_checkout

from bmg_sweeps import __main__, formatting, paths
from bmg_sweeps.launching import checking
from bmg_sweeps.records import encoding, manifests, store
from bmg_sweeps.running import binding
from bmg_sweeps.sweep import choices, point

TRAINER = "two_colors_actor_critic"
FIGURE_2 = choices.choose("figure_2", choices.Choice())
NUM_POINTS, STOP = len(FIGURE_2.points), formatting.amounts(FIGURE_2.stop)


class Case(NamedTuple):
    """A mistake, and what the line about it must say."""

    arguments: list[str]
    fragments: list[str]
    sweep: str | bytes | None = None  # Content of mine.py, in the working folder.
    trainer: dict[str, str | bytes | None] | None = None  # Files other than the toy's.


def launched(*arguments):
    """Makes a case of a launch of figure_2: what is typed, then what is said."""
    *typed, fragments = arguments
    return Case(["launch", "figure_2", "--dry-run", *typed], fragments)


def gin(value, *fragments):
    """Makes a case of `--gin`; {} is the trainer."""
    text = value.replace("{}", TRAINER)
    return launched("--gin", text, [f.replace("{}", TRAINER) for f in fragments])


FLAGS = {
    "where without =": launched("--where", "seed", ["--where", "'seed'", "NAME=VALUE"]),
    "where without a name": launched("--where", "=1", ["--where", "'=1'", "NAME="]),
    "where without a value": launched("--where", "seed=", ["'seed='", "NAME=VALUE"]),
    "where of an unknown field": launched(
        "--where", "discont=1", ["--where discont=1", "did you mean discount?"]
    ),
    "where that leaves nothing": launched(
        "--where", "seed=77", ["--where seed=77", "no point is left", "0, 1"]
    ),
    "where with a value that no Python has": launched(
        "--where", "seed={[]:1}", ["--where seed={[]:1}", "no point is left"]
    ),
    "where twice": launched(
        "--where", "seed=1", "--where", "seed=0", ["--where seed", "twice", "once"]
    ),
    "where with a line in it": launched(
        "--where", "seed=1\n2\x1b[31m", [r"--where seed=1\n2\x1b[31m", "0, 1"]
    ),
    "gin that is none": gin("x", "gin line 'x'", "expected ':' or '='"),
    "gin that is empty": gin("", "--gin ''", "expected {}.field = value"),
    "gin without a value": gin("{}.discount", "'{}.discount'", "'='"),
    "gin with a macro": gin("{}.discount = %M", "%M", "expected a literal value"),
    "gin that defines a macro": gin("M = 3", "'M = 3'", "expected a field of {}"),
    "gin with a reference": gin("{}.discount = @f()", "@f", "expected a literal"),
    "gin with a call": gin(
        "{}.discount = __import__('os')", "__import__", "expected a literal value"
    ),
    "gin of another trainer": gin("other.x = 1", "'other.x = 1'", "a field of {}"),
    "gin with a scope": gin("a/{}.discount = 1", "'a/{}.", "expected a field of {}"),
    "gin with an import": gin("import os", "--gin 'import os'", "{}.field = value"),
    "gin with an include": gin("include 'x.gin'", "include", "{}.field = value"),
    "gin of an unknown field": gin("{}.discont = 1", "{}.discont", "discount?"),
    "gin of a wrong type": gin("{}.discount = 'a'", "{}.discount = 'a'", "type float"),
    "gin with a fraction": gin("{}.seed = 1.5", "{}.seed = 1.5", "type int"),
    "gin with NaN": gin("{}.discount = nan", "discount = nan", "expected a literal"),
    "gin with infinity": gin("{}.discount = 1e999", "discount = inf", "type float"),
    "gin with two lines": gin(
        "{}.discount = 1\n{}.seed = 2", r"--gin '{}.discount = 1\n", "{}.field = value"
    ),
    "gin nested 5,000 deep": gin(
        "{}.discount = " + "[" * 5000, "too deeply", "[[ … [["
    ),
    "gin with 5,000 digits": gin("{}.seed = " + "9" * 5000, "gin line", "999 … 999"),
    "gin with a null byte": gin("{}.update_kind = 'a\0'", r"'a\x00'", "null bytes"),
    "gin twice": launched(
        *("--gin", f"{TRAINER}.seed = 1", "--gin", f"{TRAINER}.seed = 2"),
        [f"--gin {TRAINER}.seed", "given twice; expected once"],
    ),
    "seeds in words": launched("--seeds", "a", ["--seeds", "'a'", "such as 0-4"]),
    "seeds that descend": launched("--seeds", "3-1", ["--seeds", "'3-1'", "0-4"]),
    "a negative seed": launched("--seeds=-1", ["--seeds", "'-1'", "such as 0-4"]),
    "half a seed": launched("--seeds", "1.5", ["--seeds", "'1.5'", "such as 0-4"]),
    "a comma too many": launched("--seeds", "1,,2", ["--seeds", "'1,,2'", "0,2,5"]),
    "seeds in other digits": launched("--seeds", "٣", ["--seeds", "'٣'", "0-4"]),
    "a billion seeds": launched(
        "--seeds", "0-999999999", ["--seeds", "'0-999999999'", "at most 10,000"]
    ),
    "seeds for too many points": Case(
        ["show", "figure_2", "--seeds", "0-9999", "--scale", "paper"],
        ["--seeds", "10,000 seeds", "expected at most 100,000"],
    ),
    "an unknown axis to stop at": launched(
        "--stop", "frames=1", ["--stop frames", "expected one of the axes env_steps"]
    ),
    "no axis to stop at": launched("--stop", "10", ["--stop", "'10'", "NAME=VALUE"]),
    "a stop twice": launched(
        "--stop", "env_steps=1", "--stop", "env_steps=2", ["--stop env_steps", "once"]
    ),
    **{
        f"stop at {n}": launched(
            "--stop", f"env_steps={n}", ["--stop", f"env_steps={n}", "N above 0"]
        )
        for n in ("0", "-1", "nan", "inf", "many")
    },
    **{
        f"budget of {n}": Case(
            ["best", "figure_2", "--budget", f"env_steps={n}"],
            ["--budget", f"'env_steps={n}'", "N above 0"],
        )
        for n in ("0", "-1", "nan", "inf", "many")
    },
    "an unknown axis of a budget": Case(
        ["best", "figure_2", "--budget", "frames=1"],
        ["--budget frames=1", "expected one of: env_steps, hours"],
    ),
    "a budget twice": Case(
        ["best", "figure_2", *2 * ("--budget", "env_steps=1")],
        ["--budget", "given twice; expected once"],
    ),
    "a budget that nothing has reached": Case(
        ["best", "figure_2"], ["sweep figure_2", "no point has trained yet (they are"]
    ),
    "no CPU": launched("--cpus", "0", ["--cpus", "'0'", "a whole number above 0"]),
    "CPUs and a half": launched("--cpus", "1.5", ["--cpus", "'1.5'", "whole number"]),
    "CPUs with an exponent": launched("--cpus", "²", ["--cpus", "'²'", "whole number"]),
    "CPUs of 5,000 digits": launched("--cpus", "9" * 5000, ["--cpus", "whole number"]),
    "GPUs that are no number": launched(
        "--gpus", "nan", ["--gpus", "'nan'", "least 0"]
    ),
    "GPUs without end": launched("--gpus", "inf", ["--gpus", "'inf'", "whole"]),
    "GPUs below none": launched("--gpus", "-1", ["--gpus", "'-1'", "at least 0"]),
    "GPUs and a half": launched("--gpus", "1.5", ["--gpus", "'1.5'", "above 1"]),
    "a pack of none": launched("--pack", "0", ["--pack", "'0'", "whole number"]),
    "a pack and hours": launched(
        "--pack", "4", "--stop", "hours=1", ["--pack 4", "expected 1", "hours"]
    ),
    "an empty address": launched("--address", "", ["--address", "''", "HOST:PORT"]),
    **{
        f"an address that is {what}": Case(
            ["launch", "figure_2", "--address", address],
            [f"--address {address}: expected", expected],
        )
        for what, address, expected in (
            ("nobody's", "127.0.0.1:1", "a running Ray cluster"),
            ("a name alone", "nowhere", "auto or HOST:PORT"),
            ("of no port", "127.0.0.1:99999", "a running Ray cluster"),
        )
    },
    "an unknown scale": launched(
        "--scale", "huge", ["--scale huge", "figure_2 has smoke, lite, paper"]
    ),
    "an unknown mode of W&B": launched(
        "--wandb", "maybe", ["--wandb", "'maybe'", "off"]
    ),
    "an unknown format": Case(
        ["report", "figure_2", "--format", "pdf"], ["--format", "'pdf'", "markdown"]
    ),
    **{
        f"a backtest {what}": Case(["report", "figure_2", *words], expected)
        for what, words, expected in (
            ("of nothing", ["--backtest", "env_steps"], ["--backtest", "NAME=VALUE"]),
            ("of no number", ["--backtest", "env_steps=a"], ["--backtest", "AXIS=N,N"]),
            ("downwards", ["--backtest", "env_steps=2,1"], ["'env_steps=2,1'", "asc"]),
            ("from 0", ["--backtest", "env_steps=0,1"], ["--backtest", "above 0"]),
            ("of none", ["--backtest", "env_steps="], ["--backtest", "NAME=VALUE"]),
            (
                "of another axis",
                ["--backtest", "frames=1"],
                ["--backtest frames=1", "env_steps"],
            ),
            (
                "of the end",
                ["--backtest", "env_steps=1,2e6"],
                ["--backtest env_steps=2_000_000", "less than 2_000_000"],
            ),
            (
                "that keeps all",
                ["--backtest", "env_steps=1", "--keep-one-in", "1"],
                ["--keep-one-in 1", "above 1"],
            ),
            ("of no rungs", ["--keep-one-in", "2"], ["--keep-one-in", "--backtest"]),
            (
                "in CSV",
                ["--backtest", "env_steps=1", "--format", "csv"],
                ["--backtest", "csv"],
            ),
        )
    },
    "a backtest of all": Case(
        ["report", "all", "--format", "html", "--backtest", "env_steps=1"],
        ["--backtest", "one sweep"],
    ),
    "an unknown flag": Case(["show", "figure_2", "--nope"], ["--nope", "--help"]),
    "an unknown command": Case(["fly"], ["'fly'", "launch", "status"]),
    "nothing to launch": Case(["launch"], ["sweep", "required"]),
    "an unknown point": Case(
        ["show", "figure_2", "--point", "zz"], ["--point zz", "one point", "0 match"]
    ),
    "an ambiguous point": Case(
        ["run", "figure_2", "--point", ""],
        ["--point", "one point", f"{NUM_POINTS} match"],
    ),
    "an empty point": Case(
        ["show", "figure_2", "--point", ""],
        ["--point", "one point", f"{NUM_POINTS} match"],
    ),
    "a point that would escape": Case(
        ["run", "figure_2", "--point", "../x"], ["--point ../x", "0 match"]
    ),
    "a rerun without seeds": Case(["rerun", "figure_2"], ["--seeds", "10-14"]),
    "an unknown sweep": Case(["show", "figure_22"], ["'figure_22'", "figure_2?"]),
    "an empty name": Case(["show", ""], ["sweep ''", "expected one of: atari_check"]),
    "a name that climbs": Case(
        ["show", "../sweeps/figure_2"], ["'../sweeps/figure_2'", ".py"]
    ),
    "a name of 5,000 letters": Case(["show", "a" * 5000], ["no such sweep", "aa … aa"]),
    "a sweep file that is missing": Case(["show", "no.py"], ["'no.py'", "figure_2"]),
}
# What the trainer's own check refuses.
REFUSED = {
    "a target that is too long": gin(
        "{}.target_steps = 626", "target_steps = 626", "at most 625"
    ),
    "an inner loop that is too long": Case(
        ["launch", "figure_2", "--dry-run", "--gin", f"{TRAINER}.inner_steps = 625"],
        ["inner_steps = 625", "at most 619 at this L"],
    ),
    "a target of no steps": gin(
        "{}.target_steps = 0", "target_steps = 0", "at least 1"
    ),
    "a matching function that is none": gin(
        "{}.matching_function = 'kl'", "matching_function = 'kl'", "expected"
    ),
    "a layer of no units": gin(
        "{}.hidden_sizes = (0,)", "hidden_sizes = (0,)", "least"
    ),
    "a seed of ten digits": launched(
        "--seeds", "9999999999", ["seed = 9999999999", "2³¹"]
    ),
}

SWEEP = """\
{before}
from bmg_sweeps.sweep import Best, Curve, Measure, Method, Published, Scale, Select
from bmg_sweeps.sweep import Sweep, Symbol, product, zipped
SWEEP = Sweep(
    title="Mine",
    trainer={trainer},
    scales={scales},
    select={select},
    methods={methods},
    {more}
)
"""
TASKS = "Tasks(field='inner_steps', score='s', normalized='n', baseline='STACX')"


def written(*fragments, before="", points="product(seed=(0,))", **parts):
    """Makes a case of `show mine.py`, a sweep in which one part is wrong."""
    stop = parts.pop("stop", '{"env_steps": 10_000}')
    parts = {
        "trainer": repr(TRAINER),
        "scales": f'{{"smoke": Scale({points}, stop={stop})}}',
        "select": select(),
        "methods": '{"all": Method({}, tuned={"inner_steps": "K"})}',
        "more": "",
    } | parts
    return raw(*fragments, text=SWEEP.format(before=before, **parts))


def raw(*fragments, text):
    """Makes a case of `show mine.py`, of any content."""
    return Case(["show", "mine.py"], ["mine.py", *fragments], sweep=text)


def bad_points(points, *fragments, before=""):
    """Makes a case of points that are none, which have the trainer's name or line."""
    case = written(*fragments, points=points, before=before)
    return case._replace(fragments=list(fragments))


def select(metric="'total_reward'", mode="'max'", budgets="{'env_steps': 1}", more=""):
    return f"Select(metric={metric}, mode={mode}, budgets={budgets}, {more})"


def literal(value, *fragments, before=""):
    """Makes a case of a value that is no literal."""
    said = ["line", "a value must be a Python literal", *fragments]
    return bad_points(f"product(discount=({value},))", *said, before=before)


FILES = {
    "a syntax error": raw("line 2", "never closed", text="x = 1\nSWEEP = (\n"),
    "an exception": raw(
        "line 3: RuntimeError: no", text="\n\nraise RuntimeError('no')"
    ),
    "an exception in a function": raw(
        "line 2: KeyError", text="def f():\n    raise KeyError('k')\n\nf()\n"
    ),
    "an exception of two lines": raw(
        "line 1: ValueError: a", text="raise ValueError('a\\nb')"
    ),
    "a module that is missing": raw("line 2", "'no_such'", text="\nimport no_such\n"),
    "no SWEEP": raw("expected SWEEP = Sweep(…)", "None", text=""),
    "a SWEEP that is none": raw("expected SWEEP = Sweep(…)", "got 3", text="SWEEP = 3"),
    "a SWEEP that cannot be written": raw(
        "expected SWEEP = Sweep(…)",
        "got <A>",
        text="class A:\n    def __repr__(self):\n        raise OSError\nSWEEP = A()\n",
    ),
    "a SWEEP of 100,000 letters": raw(
        "xx … xx", "expected", text="SWEEP = 'x' * 100000"
    ),
    "binary garbage": raw("SyntaxError", "null bytes", text=bytes(range(256)) * 9),
    "no UTF-8": raw("line 1", "utf-8", text="x = 'é'".encode("latin-1")),
    "an exit": raw("line 2: SystemExit", text="import sys\nsys.exit()\n"),
    "an exit without a fault": raw("line 1: SystemExit: 0", text="raise SystemExit(0)"),
    "no end": raw("line 2: RecursionError", text="def f():\n    f()\nf()\n"),
    "too much memory": raw("line 1: MemoryError", text="x = bytes(1 << 62)"),
    "parentheses without end": raw("line 1", "nested", text="x = " + "(" * 10_000),
    "no points": written("scales['smoke'].points = ()", "at least one", points="()"),
    "an empty axis": written("points = ()", "at least one", points="product(seed=())"),
    "an unknown field": bad_points("product(discont=(1,))", "discont", "discount?"),
    "an array": literal("np.ones(2)", "array([1., 1.])", before="import numpy as np"),
    "a number of numpy": literal(
        "np.float64(1)", "float64", before="import numpy as np"
    ),
    "NaN": literal("float('nan')", "discount = nan"),
    "infinity": literal("float('inf')", "discount = inf"),
    "an object": literal("object()", "<object object", "got object"),
    "an integer of 5,000 digits": literal("10**5000", "discount = <int>"),
    "text for an integer": bad_points("product(seed=('1',))", "seed = '1'", "type int"),
    "a fraction for an integer": bad_points(
        "product(seed=(1.5,))", "seed = 1.5", "int"
    ),
    "a bool for an integer": bad_points("product(seed=(True,))", "seed = True", "int"),
    "an integer for text": bad_points(
        "product(update_kind=(1,))", "update_kind = 1", "type str"
    ),
    "fractions for sizes": bad_points(
        "product(hidden_sizes=((1.0,),))", "hidden_sizes = (1.0,)", "tuple[int, ...]"
    ),
    "None": bad_points("product(seed=(None,))", "seed = None", "type int"),
    "a string for an axis": bad_points(
        "product(update_kind='fixed')", "update_kind = 'fixed'", "('fixed',)"
    ),
    "a number for an axis": bad_points("product(seed=1)", "line 7", "seed = 1", "(1,)"),
    "an axis without end": bad_points(
        "product(seed=itertools.count())",
        "seed",
        "at most 100,000",
        before="import itertools",
    ),
    "a billion points": bad_points(
        "product(seed=range(1000), inner_steps=range(1000), target_steps=range(1000))",
        "number of points = 1000000000",
        "at most 100,000",
    ),
    "axes of different lengths": bad_points(
        "zipped(seed=(1, 2), inner_steps=(1,))", "one length", "'seed': 2"
    ),
    "a generator of points": bad_points("(p for p in ())", "generator", "product(…)"),
    "points that are text": bad_points("'abc'", "points = 'abc'", "product(…)"),
    "a point that is a pair": bad_points("((1, 2),)", "(1, 2)", "expected a dict"),
    "a field that is a number": bad_points("({1: 2},)", "key = 1", "expected a name"),
    **{
        f"a stop at {n}": written(
            "line",
            f"stop['env_steps'] = {shown}",
            "above 0",
            stop=f"{{'env_steps': {n}}}",
        )
        for n, shown in {
            "-1": "-1",
            "0": "0",
            "float('nan')": "nan",
            "float('inf')": "inf",
            "'10'": "'10'",
            "True": "True",
            "10**400": "1000",
        }.items()
    },
    "no stop": written("scales['smoke'].stop = {}", "at least one", stop="{}"),
    "a stop without an axis": written("stop = 10", "a dict by name", stop="10"),
    "a scale that is no name": written(
        "scales = '../x'", "a name of letters", scales="{'../x': Scale((), stop={})}"
    ),
    "a scale that is none": written(
        "scales['smoke'] = 3", "Scale(points", scales="{'smoke': 3}"
    ),
    "a scale that is not there": Case(
        ["show", "mine.py", "--scale", "lite"],
        ["--scale lite", "mine.py has smoke"],
        sweep=written().sweep,
    ),
    "an unknown mode": written("mode", "'best'", "'max'", select=select(mode="'best'")),
    "a test that chooses": written(
        "metric = 'test_x'", "must not", select=select(metric="'test_x'")
    ),
    "a metric that is a number": written(
        "metric = 3", "text", select=select(metric="3")
    ),
    "no budgets": written("budgets", "at least one", select=select(budgets="{}")),
    "budgets that descend": written(
        "budgets['env_steps'] = (2, 1)",
        "ascending",
        select=select(budgets="{'env_steps': (2, 1)}"),
    ),
    "a budget without end": written(
        "(inf,)", "amounts", select=select(budgets="{'env_steps': (float('inf'),)}")
    ),
    "a billion budgets": written(
        "1000000000", "at most 1,000", select=select(budgets="{'env_steps': 10**9}")
    ),
    "budgets on an axis that does not stop": written(
        "select.budgets['frames']", "env_steps", select=select(budgets="{'frames': 3}")
    ),
    "an unknown field to average over": written(
        "select.over", "'sead'", "seed?", select=select(more="over=('sead',)")
    ),
    "nothing to average over": written(
        "over", "at least one field", select=select(more="over=()")
    ),
    "text to average over": written(
        "over = 'seed'", "('seed',)", select=select(more="over='seed'")
    ),
    "no Select": written("select = None", "Select(…)", select="None"),
    "an unknown field of a method": written(
        "methods['all']",
        "'discont'",
        "discount?",
        methods="{'all': Method({'discont': 1}, {})}",
    ),
    "an unknown tuned field": written(
        "methods['all']",
        "'sead'",
        "seed?",
        methods="{'all': Method({}, {'sead': 's'})}",
    ),
    "a tuned field that is averaged over": written(
        "methods['all'].tuned", "'seed'", methods="{'all': Method({}, {'seed': 's'})}"
    ),
    "tuned fields without symbols": written(
        "tuned = ('seed',)", "symbol", methods="{'all': Method({}, ('seed',))}"
    ),
    "a symbol whose text is a number": written(
        "symbol = 3", "text", methods="{'all': Method({}, {'seed': Symbol(3)})}"
    ),
    "labels in a list": written(
        "labels = ['a']",
        "by value",
        methods="{'all': Method({}, {'seed': Symbol('s', ['a'])})}",
    ),
    "a label that is a number": written(
        "labels[0] = 1",
        "text",
        methods="{'all': Method({}, {'seed': Symbol('s', {0: 1})})}",
    ),
    "a value of a method that is no literal": written(
        "discount = inf", "literal", methods="{'all': Method({'discount': 1e999}, {})}"
    ),
    "a method that is none": written(
        "methods['all'] = 3", "Method", methods="{'all': 3}"
    ),
    "published numbers that need an unknown field": written(
        "published.values",
        "did you mean discount?",
        more="published=Published(values={'discounts': 1})",
    ),
    "published numbers that are none": written(
        "best = (3,)", "PublishedBest(…)", more="published=Published(best=(3,))"
    ),
    "a curve that is none": written("curves = (3,)", "Curve(…)", more="curves=(3,)"),
    "a curve without a title": written(
        "title = 1", "text", more="curves=(Curve(title=1, metric='m', label='l'),)"
    ),
    "a curve that ends in words": written(
        "until = 'x'",
        "a number above 0",
        more="curves=(Curve(title='t', metric='m', label='l', until='x'),)",
    ),
    "an unknown axis of a panel of the best": written(
        "axis 'steps'",
        "env_steps",
        more="curves=(Best(title='t', label='l', axis='steps'),)",
    ),
    "a panel of the best by an unknown field": written(
        "curves",
        "'sead'",
        "seed?",
        more="curves=(Best(title='t', label='l', axis='env_steps', by='sead'),)",
    ),
    "a panel of the best by a number": written(
        "by = 3", "text", more="curves=(Best(title='t', label='l', axis='a', by=3),)"
    ),
    "tasks that are no field of the selection": written(
        "select.over = ('seed',)",
        "such as ('seed', 'inner_steps')",
        before="from bmg_sweeps.sweep import Tasks",
        more=f"tasks={TASKS},",
    ),
    "tasks that are no field of the trainer": written(
        "no field 'gaem'",
        "select.over",
        before="from bmg_sweeps.sweep import Tasks",
        select=select(more="over=('seed', 'gaem')"),
        more="tasks=Tasks(field='gaem', score='s', normalized='n'),",
    ),
    "a baseline that is no method": written(
        "tasks.baseline, method 'STACX'",
        "expected one of: all",
        before="from bmg_sweeps.sweep import Tasks",
        select=select(more="over=('seed', 'inner_steps')"),
        methods='{"all": Method({}, tuned={})}',
        more=f"tasks={TASKS},",
    ),
    "a figure of tasks without any": written(
        "curves = 'TaskCurves'",
        "a sweep with tasks=Tasks(…)",
        before="from bmg_sweeps.sweep import TaskCurves",
        more="curves=(TaskCurves(title='t', metric='m'),)",
    ),
    "bars of a method that is none": written(
        "curves, method 'BMG'",
        "expected one of: all",
        before="from bmg_sweeps.sweep import TaskDifferences, Tasks",
        select=select(more="over=('seed', 'inner_steps')"),
        methods='{"all": Method({}, tuned={})}',
        more="tasks=Tasks(field='inner_steps', score='s', normalized='n'), "
        "curves=(TaskDifferences(title='t', label='l', more='BMG', less='all'),)",
    ),
    "a measure that is none": written(
        "measures = (3,)", "Measure(…)", more="measures=(3,)"
    ),
    "a measure over no training": written(
        "last = 0",
        "a number above 0",
        more="measures=(Measure(metric='m', label='l', last=0),)",
    ),
    "a measure without a label": written(
        "label = ''", "text", more="measures=(Measure(metric='m', label=''),)"
    ),
    "an unknown field that is shown": written(
        "shown", "'sead'", "seed?", more="shown={'sead': 's'}"
    ),
    "fields that are shown in a list": written(
        "shown = ['seed']", "symbol", more="shown=['seed']"
    ),
    "budgets of a scale without an axis": written(
        "budgets = 3",
        "a dict by name",
        scales='{"smoke": Scale(product(seed=(0,)), {"env_steps": 1}, budgets=3)}',
    ),
    "budgets of a scale that it does not reach": written(
        "budgets['hours']",
        "env_steps",
        scales='{"smoke": Scale(product(seed=(0,)), {"env_steps": 1}, {"hours": 2})}',
    ),
    "published numbers by number": written(
        "published = 3", "Published(…)", more="published=3"
    ),
    "a number to average over": written(
        "over = 1", "text", select=select(more="over=(1,)")
    ),
    "a test that is a number": written(
        "test = 3", "text", select=select(more="test=3")
    ),
    "budgets without an axis": written(
        "budgets = 3", "a dict by name", select=select(budgets="3")
    ),
    "scales in a list": written("scales = []", "a dict by name", scales="[]"),
    "methods in a list": written("methods = []", "a dict by name", methods="[]"),
    "values of a method that are none": written(
        "values = 3", "a dict by name", methods="{'all': Method(3, {})}"
    ),
    "a tuned field that is a number": written(
        "tuned, key = 1", "a name", methods="{'all': Method({}, {1: 's'})}"
    ),
    "a symbol that is a number": written(
        "tuned['seed'] = 3", "text", methods="{'all': Method({}, {'seed': 3})}"
    ),
    "a trainer that is a number": written("trainer = 3", "text", trainer="3"),
    "an unknown part": written("line", "'colour'", more="colour='red'"),
    "an unknown trainer": written(trainer="'two_colors_actor'")._replace(
        fragments=[
            "trainer 'two_colors_actor'",
            "did you mean two_colors_actor_critic?",
        ]
    ),
    "a trainer that would escape": written(trainer="'../bmg_sweeps/grid'")._replace(
        fragments=["trainer '../bmg_sweeps/grid'", "expected one of"]
    ),
}

NAMED = {
    f"{part} that the trainer lacks": Case(
        ["launch", "mine.py", "--dry-run"], ["mine.py", *fragments], written(**of).sweep
    )
    for part, of, fragments in (
        (
            "a metric",
            {"select": select("'tot_reward'")},
            ["select.metric", "no column 'tot_reward'", "did you mean total_reward?"],
        ),
        (
            "a measure",
            {"more": "measures=(Measure(metric='loss', label='l'),),"},
            ["measures", "no column 'loss'; "],
        ),
        (
            "an axis",
            {
                "stop": "{'env_step': 10_000}",
                "select": select(budgets="{'env_step': 1}"),
            },
            ["stop", "no axis 'env_step'; did you mean env_steps?"],
        ),
    )
} | {
    "a metric that the trainer of a point lacks": Case(
        ["run", "mine.py", "--point", ""],
        ["mine.py", "select.metric", "did you mean total_reward?"],
        written(select=select("'total_rewards'")).sweep,
    )
}

TOY = """
class Config:
    seed: int
    rate: float
    kind: str = structure()
"""
TOY_GIN = 'toy.seed = 0\ntoy.rate = 0.1\ntoy.kind = "fast"\n'


def trained(files_, *fragments):
    """Makes a case of a trainer whose source or .gin is broken."""
    text = written(trainer="'toy'", methods="{'all': Method({}, {})}").sweep
    return Case(["show", "mine.py"], list(fragments), text, files_)


TRAINERS = {
    "an unbound field": trained(
        {"toy.gin": "toy.seed = 0\n"}, "toy.rate", "expected a line in gin/toy.gin"
    ),
    "an unknown field": trained(
        {"toy.gin": TOY_GIN + "toy.raet = 1\n"}, "raet", "rate?"
    ),
    "a field of another": trained({"toy.gin": "a.b = 1\n"}, "gin file", "field of toy"),
    "a syntax error in .gin": trained(
        {"toy.gin": TOY_GIN + "toy.rate =\n"}, "gin file", "toy.gin", "'toy.rate ='"
    ),
    "a .gin that is no text": trained({"toy.gin": b"\xff\xfe"}, "toy.gin", "utf-8"),
    "no .gin": trained({"toy.gin": None}, "toy.gin does not exist", "expected it"),
    "a value of a wrong type": trained(
        {"toy.gin": TOY_GIN.replace("0.1", "'a'")}, "toy.rate = 'a'", "type float"
    ),
    "a syntax error": trained(
        {"toy.py": "class Config(:\n"}, "toy.py, line 1", "invalid syntax"
    ),
    "no Config": trained({"toy.py": ""}, "toy.py", "expected a class Config"),
    "no text": trained({"toy.py": b"\xff\xfe"}, "toy.py", "utf-8"),
    "an old value of a wrong type": trained(
        {"toy.py": TOY + "    new: int = data(was='a')\n"},
        "toy.py, line 6, new: was = 'a'",
        "type int",
    ),
    "an old value that is computed": trained(
        {"toy.py": TOY + "    new: int = structure(was=f())\n"},
        "toy.py, line 6, new: was = f()",
        "expected a literal value",
    ),
}


def stored(uri, *fragments, command=("report", "figure_2")):
    return Case([*command, "--storage", uri], ["--storage", *fragments])


STORAGES = {
    "a file": stored("file", "--storage file", "folder", "File exists"),
    "below a file": stored("file/below", "file/below", "folder", "Not a directory"),
    "no name": stored("", "''", "expected a folder or an fsspec URI"),
    "an unknown kind": stored("nope://x/y", "nope://x/y", "fsspec URI", "nope"),
    "a null byte": stored("a\0b", r"a\x00b", "folder", "null byte"),
    "a name of 5,000 letters": stored("a" * 5000, "aa … aa"[:5], "folder", "too long"),
    "keys of S3": stored(
        "s3://AKIACANARY:se/cretcanary@bucket/x", "s3://…@bucket/x", "no credentials"
    ),
    "keys within another protocol": stored(
        "simplecache::s3://AKIACANARY:secretcanary@b/x", "://…@b/x", "no credentials"
    ),
    "a password": stored(
        "sftp://user:secretcanary@host/x",
        *("sftp://…@host/x", "expected no credentials"),
        command=("launch", "figure_2"),
    ),
}
CASES = {
    f"{group}: {name}": case
    for group, cases in {
        "flag": FLAGS,
        "check": REFUSED | NAMED,
        "sweep": FILES,
        "trainer": TRAINERS,
        "storage": STORAGES,
    }.items()
    for name, case in cases.items()
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with a storage in it that holds something."""
    (tmp_path / "runs" / TRAINER).mkdir(parents=True)
    (tmp_path / "runs" / TRAINER / "note").write_text("kept")
    (tmp_path / "file").write_text("kept")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def snapshot(folder):
    """All files and folders, with the bytes of the files."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
    }


def main(capsys, *arguments):
    """Runs a command line; returns its status, output and errors."""
    if "--storage" not in arguments:
        arguments = (*arguments, "--storage", "runs")
    try:
        status = __main__.main(arguments)
    except SystemExit as error:
        status = error.code
    return status, *capsys.readouterr()


def write_toy(folder, changed, monkeypatch):
    """Makes trainers/ and gin/ with the toy alone, outside of the working folder."""
    for name, text in ({"toy.py": TOY, "toy.gin": TOY_GIN} | changed).items():
        if text is not None:
            data = text if isinstance(text, bytes) else text.encode()
            (folder / name).write_bytes(data)
    monkeypatch.setattr(paths, "TRAINERS", folder)
    monkeypatch.setattr(paths, "GIN", folder)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_mistake_is_one_line_and_leaves_nothing(
    case, here, capsys, monkeypatch, tmp_path_factory
):
    """Status 2, one line that says it all, and every byte as it was."""
    if case.sweep is not None:
        is_text = isinstance(case.sweep, str)
        (here / "mine.py").write_bytes(case.sweep.encode() if is_text else case.sweep)
    if case.trainer is not None:
        write_toy(tmp_path_factory.mktemp("checkout"), case.trainer, monkeypatch)
    checked_here.patch(monkeypatch)
    before = snapshot(here)
    status, _, errors = main(capsys, *case.arguments)
    assert status == 2
    assert errors.startswith("error: ")
    assert errors.endswith("\n")
    assert errors[:-1].isprintable(), errors  # Hence a single line.
    assert len(errors) < 1200
    assert [f for f in case.fragments if f not in errors] == [], errors
    assert "canary" not in errors.lower()
    assert snapshot(here) == before


@pytest.mark.parametrize(
    "words", [["--address", "127.0.0.1:1"], ["--storage", "file"]], ids="".join
)
def test_what_needs_no_trainer_is_refused_before_any_is_checked(
    words, here, capsys, monkeypatch
):
    """In seconds: the check of the points starts JAX, and Ray would try for minutes."""
    monkeypatch.setattr(checking, "check", lambda *_: pytest.fail("checked"))
    status, _, errors = main(capsys, "launch", "figure_2", *words)
    assert (status, errors.count("\n")) == (2, 1)
    assert errors.startswith(f"error: {' '.join(words)}: expected")


def test_the_table_is_long_and_its_inputs_differ():
    """At least 70, no two of them the same."""
    inputs = {
        repr((case.arguments, case.sweep, case.trainer)) for case in CASES.values()
    }
    assert len(inputs) == len(CASES) >= 70
    assert all(len(case.fragments) >= 2 for case in CASES.values())


def test_nothing_typed_names_the_commands(here, capsys):
    """The shortest command line there is."""
    assert __main__.main([]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "list, show, launch, run, status" in errors


def test_what_a_sweep_prints_is_not_the_commands_output(here, capsys):
    """A pipe after `best --format json` gets JSON, whatever a sweep file says."""
    text = written(before="print('hello')").sweep
    (here / "mine.py").write_text(text)
    status, output, errors = main(capsys, "show", "mine.py")
    assert status == 0
    assert "hello" not in output
    assert errors == "hello\n"


def test_points_that_are_declared_twice_are_there_once(here, capsys):
    """No mistake: arms may overlap."""
    (here / "mine.py").write_text(written(points="2 * product(seed=(0, 1))").sweep)
    output = main(capsys, "show", "mine.py")[1]
    assert "2 points: 2 missing" in output
    assert len(output.splitlines()) == 4 + 2


def test_a_huge_grid_is_no_mistake(here, capsys):
    """5,000 points are listed in a second or two."""
    (here / "mine.py").write_text(written(points="product(seed=range(5000))").sweep)
    assert "5,000 points: 5,000 missing" in main(capsys, "show", "mine.py")[1]


ONE = point.resolve(TRAINER, {"seed": 0})  # The point of `written()`.
ROWS = {
    "env_steps": [5_000, 10_000],
    "total_reward": [1.0, 2.0],
    "training_seconds": [1.0, 2.0],
}


def manifest(text, name="manifest-0001.json"):
    """Makes a record whose manifest is this."""
    data = text if isinstance(text, bytes) else text.encode()
    return lambda folder: (folder / name).write_bytes(data)


def table(data=None, progress=10_000, **changed):
    """Makes a record of the right form whose rows are these."""

    def write(folder):
        rows = encoding.pack_rows(ROWS | changed) if data is None else data
        name = manifests.object_name("rows", 1, 1)
        (folder / name).write_bytes(rows)
        digest = hashlib.sha256(rows).hexdigest()
        item = {"name": name, "bytes": len(rows), "sha256": digest}
        return commit(progress, rows=item)(folder)

    return write


def commit(progress=0, **fields):
    """Makes a record with a manifest of the right form."""
    made = {"attempt": 1, "lease": None, "progress": {"env_steps": progress}}
    made |= {"provenance": {}, "failure": None} | fields
    return manifest(forged.manifest(made))


def failure(**changed):
    made = {"kind": "failed", "tries": 2, "type": "E", "message": "m", "frames": []}
    return commit(failure=made | changed)


class Payload:
    """Would create a file when it is unpickled."""

    def __reduce__(self):
        return pathlib.Path.touch, (pathlib.Path("unpickled"),)


FLAT = json.dumps(ROWS).encode()  # A table, but for what follows it.
HUGE = b'{"env_steps":[1],"total_reward":[' + b"9" * 4000 + b"]}"
# What makes a record, and what `status` says of it; nothing is "done" if it is damaged.
RECORDS = {
    "an empty manifest": (manifest(""), "manifest-0001.json: Expecting value"),
    "a manifest that was cut": (manifest('{"attempt": 1, "le'), "Unterminated"),
    "a manifest of garbage": (manifest(b"\x80\x04\xff" * 50), "utf-8"),
    "a pickled manifest": (manifest(pickle.dumps(Payload())), "manifest-0001.json: "),
    "a list": (manifest("[]"), "expected fields by name, got list"),
    "a manifest without end": (manifest("[" * 100_000), "nested too deeply"),
    "NaN": (manifest('{"attempt": 1, "progress": {"x": NaN}}'), "manifest-0001.json: "),
    "a number of 5,000 digits": (manifest('{"x":' + "9" * 5000 + "}"), "digits"),
    "another attempt": (manifest('{"attempt": 2}'), "expected attempt 1"),
    "progress in words": (
        manifest('{"attempt": 1, "progress": {"env_steps": "all"}}'),
        "progress[...]: expected `int | float`, got `str`",
    ),
    "an object elsewhere": (
        commit(rows={"name": "../../secret", "bytes": 6, "sha256": ""}),
        "rows.name: expected such as rows-0001-000001.json.gz, got '../../secret'",
    ),
    "a manifest that is a folder": (
        lambda folder: (folder / "manifest-0001.json").mkdir(),
        "1 missing",
    ),
    "a manifest that is a link": (
        lambda folder: (
            commit(10_000)(folder.parents[2] / "elsewhere"),
            (folder / "manifest-0001.json").symlink_to(
                folder.parents[2] / "elsewhere" / "manifest-0001.json"
            ),
        ),
        "1 missing",
    ),
    "rows that are missing": (
        commit(rows={"name": "rows-0001-000001.json.gz", "bytes": 9, "sha256": ""}),
        "rows-0001-000001.json.gz: expected 9 bytes",
    ),
    "pickled rows": (table(pickle.dumps(Payload())), None),
    "rows of garbage": (table(b"\x1f\x8b garbage"), None),
    "rows that inflate": (table(gzip.compress(FLAT + b" " * (1 << 27))), None),
    "rows that are a list": (table(gzip.compress(b"[1]")), None),
    "rows of words": (table(total_reward=["a", "b"]), None),
    "rows of an axis of words": (table(env_steps=["a", "b"]), None),
    "rows of an axis without numbers": (table(env_steps=[None, None]), None),
    "rows of an axis that descends": (table(env_steps=[10_000, 1]), None),
    "rows without seconds": (table(training_seconds=[None, None]), None),
    "rows of 4,000 digits": (table(gzip.compress(HUGE)), None),
    "a failure of two lines": (
        failure(message="a\nb\x1b[31m", frames=["f\ng"]),
        r"failed: E: a\nb\x1b[31m (f\ng)",
    ),
    "a restart of two lines": (
        commit(10_000, provenance={"restarted": "a\nb\x1b"}),
        r"began again: a\nb\x1b",
    ),
    "a point.gin of garbage": (
        lambda folder: (folder / "point.gin").write_bytes(b"\xff\0"),
        "1 missing",
    ),
    "a record that is a file": (
        lambda folder: (folder.rmdir(), folder.write_text("")),
        "1 missing",
    ),
    "a record that is a link": (
        lambda folder: (
            folder.rmdir(),
            folder.symlink_to(folder.parents[2] / "elsewhere"),
        ),
        "1 missing",
    ),
}


@pytest.mark.parametrize(("make", "said"), RECORDS.values(), ids=RECORDS)
def test_a_hostile_record_is_named_and_runs_nothing(make, said, here, capsys):
    """Status names it in one line; show works; reports leave it out with a reason."""
    folder = here / "runs" / ONE.trainer / ONE.id
    folder.mkdir()
    (here / "mine.py").write_text(written().sweep)
    (here / "secret").write_text("secret")
    make(folder)
    before = snapshot(here)
    status, output, errors = main(capsys, "status", "mine.py")
    assert (status, errors) == (0, "")
    assert all(line.isprintable() for line in output.splitlines())
    if said:
        assert said in output
    for arguments in (["mine.py"], ["mine.py", "--point", ONE.id]):
        assert main(capsys, "show", *arguments)[::2] == (0, "")
    if said is None:
        assert main(capsys, "best", "mine.py")[0] == 2  # Nothing is complete.
        status, output, errors = main(capsys, "report", "mine.py", "--format", "csv")
        assert (status, errors) == (0, "")
        assert output.count("\n") == 1  # Its head: no configuration is complete.
        (here / "runs" / "reports" / "mine-smoke.png").unlink()
        (here / "runs" / "reports").rmdir()
    assert snapshot(here) == before
    assert not (here / "unpickled").exists()


@pytest.mark.parametrize("name", ["a record that is a file", "a record that is a link"])
def test_a_record_that_cannot_be_written_is_refused(name, here, capsys, monkeypatch):
    """And nothing is written where it leads to."""
    monkeypatch.setattr(checking, "check", lambda *_, **__: {})
    folder = here / "runs" / ONE.trainer / ONE.id
    folder.mkdir()
    (here / "mine.py").write_text(written().sweep)
    RECORDS[name][0](folder)
    before = snapshot(here)
    status, _, errors = main(capsys, "run", "mine.py", "--point", ONE.id)
    assert status == 2
    assert errors.count("\n") == 1
    assert errors.startswith("error: --storage runs: expected a folder")
    assert snapshot(here) == before
    assert not [*(here / "elsewhere").iterdir()]


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "/etc", "../x", "a\0"])
def test_a_name_that_leads_out_of_the_storage_is_none(name, storage):
    """Whoever hands it on: reading, writing and deleting refuse it."""
    for action in (storage.read, storage.remove, storage.sizes, storage.exists):
        with pytest.raises(ValueError, match="no name in a storage"):
            action("trainer", name)
    with pytest.raises(ValueError, match="no name in a storage"):
        storage.replace(b"", name, "point.gin")


def test_a_records_gin_text_imports_and_includes_nothing(
    storage, toy, here, monkeypatch
):
    """Whoever wrote it: it is read as data."""
    (here / "payload.py").write_text("open('imported', 'w')\n")
    monkeypatch.syspath_prepend(str(here))
    text = "".join(
        f"toy_trainer.{k} = {v}\n"
        for k, v in {"seed": 0, "rate": 0.1, "nan_at": 0, "width": 3}.items()
    )
    _, config = binding.bind("toy_trainer", "import payload\n" + text)
    assert config.rate == 0.1
    with pytest.raises(ValueError, match="include"):
        binding.bind("toy_trainer", text + "include 'file'\n")
    with pytest.raises(ValueError, match="expected a field of toy_trainer"):
        binding.bind("toy_trainer", text + "gin.config.x = 1\n")
    assert not (here / "imported").exists()


def test_an_altered_gin_text_is_written_anew(storage):
    """The id says what it must be: a launch declares it again."""
    key = ONE.trainer, ONE.id
    text = ONE.gin_text()
    store.declare(storage, *key, text)
    pathlib.Path(storage.path(*key, "point.gin")).write_text(text.replace("1", "2"))
    store.declare(storage, *key, text)
    assert store.gin_text(storage, *key) == text


def test_points_are_checked_up_to_the_first_mistake(tmp_path):
    """What they lack may take long to find out, and a line names one point only."""
    checkout = toy_checkout.make(tmp_path / "checkout")
    with (checkout / "trainers" / "toy_trainer.py").open("a") as trainer:
        trainer.write(ASKING)
    name = toy_checkout.write_sweep(checkout, "product(seed=range(3))", 20)
    status, output = toy_checkout.run(checkout, "launch", name, "--dry-run")
    last = output.splitlines()[-1]
    assert status == 2
    assert last.startswith("error: point ")
    assert last.endswith(": seed 0 has no data")
    assert (checkout / "asked").read_text() == "0 "


ASKING = """

def provenance(config):
    with open("asked", "a") as file:
        file.write(f"{config.seed} ")
    raise ValueError(f"seed {config.seed} has no data")
"""
