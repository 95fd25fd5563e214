"""The commands, their options, and what each argument must be."""

import argparse
import itertools
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

from bmg_sweeps import errors, paths
from bmg_sweeps.cli import training, viewing
from bmg_sweeps.launching import planning
from bmg_sweeps.records import files

_MOST_SEEDS = 10_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: as typed; None takes the process's own.

    Returns:
        Exit status: 0; 1 where points failed, a launch was stopped or something broke;
        2 for what the user can mend.
    """
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # As Ctrl-C.
    try:
        options.storage = files.open_storage(options.storage)
        return options.run(options) or 0
    except errors.UserError as error:
        if options.debug:
            traceback.print_exc()
        _print_error(str(error))
        return 2
    except BrokenPipeError:
        return 1  # Whoever read the output has seen enough.
    except KeyboardInterrupt:
        _print_error("interrupted; the same command goes on from here")
        return 130
    except Exception as error:
        if options.debug:
            raise
        _print_error(f"{errors.described(error)} (--debug shows where)")
        return 1


def _print_error(text: str) -> None:
    print(f"error: {errors.one_line(text)}", file=sys.stderr)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=VALUE")
    return name, value


def _amount(text: str) -> dict[str, float]:
    axis, value = _pair(text)
    try:
        amount = float(value)
    except ValueError:
        amount = float("nan")
    if not 0 < amount < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: expected AXIS=N, N above 0")
    return {axis: amount}


def _count(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number above 0")
    return int(text)


def _gpus(text: str) -> float:
    try:
        gpus = float(text)
    except ValueError:
        gpus = -1.0
    if not (0 <= gpus <= 1 or (gpus.is_integer() and gpus > 0)):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a number of at least 0, whole where it is above 1"
        )
    return gpus


def _seeds(text: str) -> tuple[int, ...]:
    parts = [
        re.fullmatch("([0-9]{1,18})(?:-([0-9]{1,18}))?", p) for p in text.split(",")
    ]
    ranges = [range(int(p[1]), int(p[2] or p[1]) + 1) for p in parts if p]
    if len(ranges) < len(parts) or not all(ranges):
        raise argparse.ArgumentTypeError(f"{text!r}: expected such as 0-4 or 0,2,5")
    if sum(map(len, ranges)) > _MOST_SEEDS:
        raise argparse.ArgumentTypeError(f"{text!r}: expected at most {_MOST_SEEDS:,}")
    return tuple(dict.fromkeys(itertools.chain.from_iterable(ranges)))


def _folder(text: str) -> str:
    if not os.path.isdir(os.path.expanduser(text)):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a folder of data sets")
    return os.path.abspath(os.path.expanduser(text))


class _Data(argparse.Action):
    """Names the folder to the processes that train, which inherit or are sent it."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        os.environ[paths.DATA_VARIABLE] = values


def _address(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("'': expected auto or HOST:PORT")
    return text


class _Once(argparse.Action):
    """Refuses a second budget, where the first one would silently be dropped."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        if getattr(namespace, self.dest):
            raise argparse.ArgumentError(self, "given twice; expected once")
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        _print_error(f"{message} (see {self.prog} --help)")
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    """Declares the commands and their options."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--storage", default="runs", help="folder or fsspec URI")
    common.add_argument("--scale", default="smoke", choices=planning.SCALES)
    common.add_argument("--debug", action="store_true", help="show tracebacks")

    points = argparse.ArgumentParser(add_help=False)
    points.add_argument("--where", type=_pair, action="append", default=[],
                        metavar="K=V", help="only points with this value")  # fmt: skip
    points.add_argument("--gin", action="append", default=[], metavar="BINDING",
                        help="'trainer.field = value' for all points")  # fmt: skip
    points.add_argument("--seeds", type=_seeds, default=(), metavar="0-4")
    points.add_argument("--stop", type=_amount, action="append", default=[],
                        metavar="AXIS=N")  # fmt: skip

    data = argparse.ArgumentParser(add_help=False)
    data.add_argument("--data", type=_folder, action=_Data, metavar="DIR",
                      help=f"of data sets; or set {paths.DATA_VARIABLE}")  # fmt: skip

    running = argparse.ArgumentParser(add_help=False, parents=[data])
    running.add_argument("--address", type=_address, help="of a running Ray cluster")
    running.add_argument("--cpus", type=_count, default=1, help="of each trial")
    running.add_argument("--gpus", type=_gpus, default=0.0, help="of each trial")
    running.add_argument("--pack", type=_count, metavar="N",
                         help="points of one structure in one trial")  # fmt: skip
    running.add_argument("--autoscaling", action="store_true",
                         help="wait for nodes that are not there yet")  # fmt: skip
    running.add_argument("--retry", action="store_true",
                         help="failed and diverged points once more")  # fmt: skip
    running.add_argument("--dry-run", action="store_true", help="print the plan only")

    tracking = argparse.ArgumentParser(add_help=False)
    tracking.add_argument("--wandb", default="auto",
                          choices=("auto", "online", "offline", "off"))  # fmt: skip

    budget = argparse.ArgumentParser(add_help=False)
    budget.add_argument("--budget", type=_amount, default={}, action=_Once,
                        metavar="AXIS=N",
                        help="the last one, unless given")  # fmt: skip

    parser = _Parser(prog="python -m bmg_sweeps", description="Meta-learning sweeps.")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        command: Callable, *parents, sweep: str | None = "sweep", **keywords
    ) -> argparse.ArgumentParser:
        name = command.__name__.rstrip("_")
        help_ = command.__doc__.splitlines()[0]
        child = subparsers.add_parser(
            name, parents=[common, *parents], help=help_, description=help_
        )
        if sweep:
            child.add_argument(sweep, **keywords)
        child.set_defaults(run=command)
        return child

    add(viewing.list_, sweep=None)
    add(viewing.show, points).add_argument("--point", metavar="ID")
    several = {"sweep": "sweeps", "nargs": "+", "metavar": "sweep"}
    add(training.launch, points, running, tracking, **several)
    one = add(training.run, points, data)
    one.add_argument("--point", metavar="ID", required=True)
    one.add_argument("--retry", action="store_true")
    add(viewing.status, points, nargs="?")
    add(viewing.report_, points).add_argument(
        "--format", default="text", choices=("text", "markdown", "csv", "html")
    )
    add(viewing.best, points, budget).add_argument(
        "--format", default="gin", choices=("gin", "json")
    )
    add(training.rerun, points, running, tracking, budget)
    add(viewing.track, points, tracking, **several).add_argument(
        "--workspace", action="store_true", help="save a W&B workspace of each sweep"
    )
    return parser
