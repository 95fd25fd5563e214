"""Options that several commands share, and what each value must be.

An option's text becomes a typed value here, or one line that says what was expected. A
group of options that mean one thing reaches a command as one frozen value.
"""

import dataclasses
import functools
import itertools
import math
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import click

from bmg_sweeps import errors, paths
from bmg_sweeps.analysis import selection
from bmg_sweeps.cli import completion, until_decided
from bmg_sweeps.launching import cluster
from bmg_sweeps.records import files
from bmg_sweeps.sweep import choices

MAX_SEEDS = 10_000
DEFAULT_KEPT = 3  # Of so many configurations, successive halving keeps one.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """How a command trains points."""

    resources: cluster.Resources
    pack: int | None  # Points in a trial, as `trials.run` takes it.
    retry: bool  # Whether failed and diverged points are tried once more.
    dry_run: bool  # Whether the plan is printed and nothing is run.
    wandb: str  # "auto", "online", "offline" or "off".


class _Value(click.ParamType):
    """Text that a function reads, which raises ValueError with what is expected."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value  # A default.
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(f"{errors.shown(value)}: expected {error}", param, ctx)


class OneOf(click.Choice):
    """One of some words."""

    def get_invalid_choice_message(self, value: Any, ctx: Any) -> str:
        """Says which words there are."""
        return f"{errors.shown(value)}: {errors.expected_one_of(value, self.choices)}"


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ValueError("NAME=VALUE")
    return name, value


def _amount(text: str) -> tuple[str, float]:
    axis, value = _pair(text)
    try:
        amount = float(value)
    except ValueError:
        amount = float("nan")
    if not 0 < amount < float("inf"):
        raise ValueError("AXIS=N, N above 0")
    return axis, amount


def _rungs(text: str) -> tuple[str, tuple[float, ...]]:
    axis, value = _pair(text)
    try:
        amounts = tuple(float(part) for part in value.split(","))
    except ValueError:
        amounts = ()
    is_ascending = list(amounts) == sorted({*amounts})
    if not (amounts and is_ascending and 0 < amounts[0] <= amounts[-1] < math.inf):
        raise ValueError("AXIS=N,N, ascending and above 0")
    return axis, amounts


def _count(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        raise ValueError("a whole number above 0")
    return int(text)


def _gpus(text: str) -> float:
    try:
        gpus = float(text)
    except ValueError:
        gpus = -1.0
    if not (0 <= gpus <= 1 or (gpus.is_integer() and gpus > 0)):
        raise ValueError("a number of at least 0, whole where it is above 1")
    return gpus


def _seeds(text: str) -> tuple[int, ...]:
    parts = [
        re.fullmatch("([0-9]{1,18})(?:-([0-9]{1,18}))?", p) for p in text.split(",")
    ]
    ranges = [range(int(p[1]), int(p[2] or p[1]) + 1) for p in parts if p]
    if len(ranges) < len(parts) or not all(ranges):
        raise ValueError("such as 0-4 or 0,2,5")
    if sum(map(len, ranges)) > MAX_SEEDS:
        raise ValueError(f"at most {MAX_SEEDS:,}")
    return tuple(dict.fromkeys(itertools.chain.from_iterable(ranges)))


def _folder(text: str) -> str:
    if not os.path.isdir(os.path.expanduser(text)):
        raise ValueError("a folder of data sets")
    return os.path.abspath(os.path.expanduser(text))


def _address(text: str) -> str:
    if not text:
        raise ValueError("auto or HOST:PORT")
    return text


PAIR = _Value("K=V", _pair)
AMOUNT = _Value("AXIS=N", _amount)
COUNT = _Value("N", _count)
PACK = _Value(
    "N|auto", lambda text: cluster.AUTO_PACK if text == "auto" else _count(text)
)


def command(function: Callable | None = None, *, raises: bool = False) -> Callable:
    """Makes a command of a function, whose first argument is the storage.

    To stand above the decorators of the options. The function's name is the command's,
    and the begin of its docstring is the help.

    Args:
        function: that does what the command says.
        raises: whether its exceptions are seen with their tracebacks.

    Returns:
        The command.
    """
    if function is None:
        return functools.partial(command, raises=raises)

    @functools.wraps(function)
    def opened(storage: str, **arguments: Any) -> Any:
        state = click.get_current_context().ensure_object(dict)
        state["raises"] = raises
        return function(files.open_storage(storage), **arguments)

    options = (
        click.option("--storage", default="runs", help="Folder or fsspec URI."),
        click.option(
            "--debug",
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_remember,
            help="Show tracebacks.",
        ),
    )
    text = (function.__doc__ or "").split("\n\nArgs:")[0]  # -OO leaves none.
    make = click.command(function.__name__.rstrip("_"), help=text)
    return make(_joined(opened, options))


def _remember(context: click.Context, param: Any, value: bool) -> None:
    """Notes --debug where `app.main` looks for it when something is wrong."""
    del param
    context.ensure_object(dict)["debug"] = value


def scale(function: Callable) -> Callable:
    """Adds --scale."""
    return click.option(
        "--scale",
        metavar="NAME",
        shell_complete=completion.scales,
        help="Scale; unless given smoke, or the first that the sweep has.",
    )(function)


def points(function: Callable) -> Callable:
    """Adds the options that choose points, as the argument `choice`."""

    @functools.wraps(function)
    def gathered(*positional: Any, **arguments: Any) -> Any:
        chosen = {name: arguments.pop(name) for name in CHOICE}
        return function(*positional, choice=read_choice(**chosen), **arguments)

    options = (
        scale,
        click.option(
            "--where",
            type=PAIR,
            multiple=True,
            metavar="K=V",
            shell_complete=completion.fields,
            help="Only points with this value; may be given for several fields.",
        ),
        click.option(
            "--gin",
            multiple=True,
            metavar="BINDING",
            shell_complete=completion.bindings,
            help="'trainer.field = value' for all points; may be given several times.",
        ),
        click.option(
            "--seeds",
            type=_Value("0-4", _seeds),
            default=(),
            metavar="0-4",
            help="These seeds in place of the points' own; of rerun the fresh ones.",
        ),
        click.option(
            "--stop",
            type=AMOUNT,
            multiple=True,
            metavar="AXIS=N",
            help="How far points train.",
        ),
    )
    return _joined(gathered, options)


CHOICE = ("scale", "where", "gin", "seeds", "stop")


def read_choice(
    *,
    scale: str | None,
    where: Sequence[tuple[str, str]],
    gin: Sequence[str],
    seeds: tuple[int, ...],
    stop: Sequence[tuple[str, float]],
) -> choices.Choice:
    """Reads what the options say about a sweep's points.

    Raises:
        UserError: a field or an axis is named twice.
    """
    return choices.Choice(
        scale=scale,
        where=_each_once("--where", where),
        gin=tuple(gin),
        seeds=seeds,
        stop=_each_once("--stop", stop),
    )


def _each_once(flag: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise errors.UserError(f"{flag} {key}: given twice; expected once")
    return dict(pairs)


def sweep(function: Callable | None = None, *, required: bool = True) -> Callable:
    """Adds the argument of one sweep."""
    if function is None:
        return functools.partial(sweep, required=required)
    add = click.argument("sweep", required=required, shell_complete=completion.sweeps)
    return add(function)


def sweeps(function: Callable) -> Callable:
    """Adds the argument of one sweep or several."""
    return click.argument(
        "sweeps",
        metavar="SWEEP...",
        nargs=-1,
        required=True,
        shell_complete=completion.sweeps,
    )(function)


def budget(function: Callable) -> Callable:
    """Adds --budget, an axis and an amount, or None."""

    @functools.wraps(function)
    def only(*positional: Any, budget: Sequence, **arguments: Any) -> Any:
        if len(budget) > 1:
            raise errors.UserError("--budget: given twice; expected once")
        return function(*positional, budget=next(iter(budget), None), **arguments)

    option = click.option(
        "--budget",
        type=AMOUNT,
        multiple=True,
        metavar="AXIS=N",
        help="The last one, unless given.",
    )
    return option(only)


def looks(function: Callable) -> Callable:
    """Adds --until-decided and how often it looks, as `looks`; None without it."""

    @functools.wraps(function)
    def gathered(*positional: Any, **arguments: Any) -> Any:
        is_asked = arguments.pop("until_decided")
        typed = until_decided.Looks(arguments.pop("by"), arguments.pop("at_most"))
        if typed.is_typed and not is_asked:
            raise errors.UserError("--by, --at-most: expected --until-decided as well")
        looks = typed if is_asked else None
        return function(*positional, looks=looks, **arguments)

    options = (
        click.option(
            "--until-decided",
            is_flag=True,
            help="Run seeds until open claims are decided, by a plan that is stored.",
        ),
        click.option(
            "--by",
            type=COUNT,
            help=f"Seeds from one look to the next; {until_decided.BY}, unless given.",
        ),
        click.option(
            "--at-most",
            type=COUNT,
            help=f"Seeds in all; for {until_decided.LOOKS} looks, unless given.",
        ),
    )
    return _joined(gathered, options)


def backtest(function: Callable) -> Callable:
    """Adds --backtest and --keep-one-in, as the argument `backtest`: rungs, or None."""

    @functools.wraps(function)
    def gathered(
        *positional: Any, backtest: tuple | None, keep_one_in: int | None, **rest: Any
    ) -> Any:
        if backtest is None:
            if keep_one_in is not None:
                raise errors.UserError("--keep-one-in: expected --backtest beside it")
            return function(*positional, backtest=None, **rest)
        rungs = selection.Rungs(*backtest, keep_one_in=keep_one_in or DEFAULT_KEPT)
        if rungs.keep_one_in < 2:
            raise errors.UserError("--keep-one-in 1: expected a whole number above 1")
        return function(*positional, backtest=rungs, **rest)

    options = (
        click.option(
            "--backtest",
            type=_Value("AXIS=N,N", _rungs),
            metavar="AXIS=N,N",
            help="Say what successive halving at these amounts would have chosen.",
        ),
        click.option(
            "--keep-one-in",
            type=COUNT,
            metavar="N",
            help=f"That --backtest keeps at each; {DEFAULT_KEPT}, unless given.",
        ),
    )
    return _joined(gathered, options)


def fresh(function: Callable) -> Callable:
    """Adds --fresh."""
    return click.option(
        "--fresh",
        type=_Value("10-14", _seeds),
        default=(),
        metavar="10-14",
        help="Seeds of rerun, whose numbers alone stand beside the others.",
    )(function)


def data(function: Callable) -> Callable:
    """Adds --data."""
    return click.option(
        "--data",
        type=_Value("DIR", _folder),
        metavar="DIR",
        help=f"Folder of data sets; or set {paths.DATA_VARIABLE}.",
    )(function)


def wandb(function: Callable) -> Callable:
    """Adds --wandb."""
    return click.option(
        "--wandb",
        type=OneOf(("auto", "online", "offline", "off")),
        default="auto",
        help="Where W&B runs are written; auto, unless given.",
    )(function)


def as_json(function: Callable) -> Callable:
    """Adds --json."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print JSON, and nothing else."
    )(function)


def training(function: Callable) -> Callable:
    """Adds the options of training, as the argument `training`."""

    @functools.wraps(function)
    def gathered(*positional: Any, **arguments: Any) -> Any:
        where = {
            field.name: arguments.pop(field.name)
            for field in dataclasses.fields(cluster.Resources)
        }
        how = {name: arguments.pop(name) for name in _TRAINING}
        value = Training(resources=cluster.Resources(**where), **how)
        return function(*positional, training=value, **arguments)

    options = (
        data,
        click.option(
            "--address", type=_Value("A", _address), help="Of a running Ray cluster."
        ),
        click.option("--cpus", type=COUNT, default=1, help="CPUs of each trial."),
        click.option(
            "--gpus",
            type=_Value("F", _gpus),
            default=0.0,
            help="GPUs of each trial; a fraction shares one.",
        ),
        click.option(
            "--pack",
            type=PACK,
            help="Points of one structure in a trial; auto tries out what is fastest.",
        ),
        click.option(
            "--autoscaling", is_flag=True, help="Wait for nodes that are not there yet."
        ),
        click.option("--retry", is_flag=True, help="Failed and diverged points again."),
        click.option("--dry-run", is_flag=True, help="Check and print the plan only."),
        wandb,
    )
    return _joined(gathered, options)


_TRAINING = ("pack", "retry", "dry_run", "wandb")


def _joined(function: Callable, options: Sequence[Callable]) -> Callable:
    """Applies decorators so that the first one's option is listed first."""
    for option in reversed(options):
        function = option(function)
    return function
