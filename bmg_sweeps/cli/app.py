"""The command line: its commands, and how their errors end."""

import os
import signal
import sys
import traceback
from collections.abc import Sequence

import click

from bmg_sweeps import errors
from bmg_sweeps.cli import comparing, completion, options, training, viewing

PROGRAM = "python -m bmg_sweeps"


class _Group(click.Group):
    """Lists the commands in the order in which one needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of the commands."""
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]):
        """Finds the command that is typed, and says which there are."""
        name = args[0]
        if not (name in self.commands or name.startswith("-") or ctx.resilient_parsing):
            expected = errors.expected_one_of(name, self.commands)
            ctx.fail(f"command {errors.shown(name)}: {expected}")
        return super().resolve_command(ctx, args)


@click.command("completion")
@click.argument("shell", type=options.OneOf(tuple(completion.SCRIPTS)))
def completion_(shell: str) -> None:
    """Print a function `bmg` that the shell completes.

    bash: eval "$(python -m bmg_sweeps completion bash)"

    zsh: eval "$(python -m bmg_sweeps completion zsh)"

    fish: python -m bmg_sweeps completion fish | source
    """
    print(completion.script(shell), end="")


COMMANDS = (
    viewing.list_,
    viewing.show,
    training.launch,
    training.run,
    viewing.status,
    viewing.report_,
    viewing.best,
    comparing.diff_,
    training.rerun,
    viewing.track,
    completion_,
)


@click.group(
    cls=_Group,
    commands=COMMANDS,
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.pass_context
def app(context: click.Context) -> None:
    """Meta-learning sweeps: declare a grid, launch it, select per budget, rerun."""
    if context.invoked_subcommand is None:
        names = ", ".join(command.name or "" for command in COMMANDS)
        context.fail(f"a command is required; expected one of: {names}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: as typed; None takes the process's own.

    Returns:
        Exit status: 0; 1 where points failed, a launch was stopped or something broke;
        2 for what the user can mend; 130 after Ctrl-C.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if completion.VARIABLE in os.environ:
        return completion.complete(app, os.environ[completion.VARIABLE])
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # What it cannot write must stop nothing.
            stream.reconfigure(errors="replace")
    for signum in (signal.SIGTERM, signal.SIGHUP):  # As Ctrl-C.
        if signal.getsignal(signum) != signal.SIG_IGN:  # By nohup.
            signal.signal(signum, signal.default_int_handler)
    state: dict[str, bool] = {}
    try:
        with app.make_context(PROGRAM, arguments, obj=state) as context:
            return app.invoke(context) or 0
    except click.exceptions.Exit as end:
        return end.exit_code  # After --help.
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else PROGRAM
        _print_error(f"{_problem(error)} (see {path} --help)")
        return 2
    except errors.UserError as error:
        if state.get("debug"):
            traceback.print_exc()
        _print_error(str(error))
        return 2
    except BrokenPipeError:
        return 1  # Whoever read the output has seen enough.
    except KeyboardInterrupt:
        if state.get("debug"):
            traceback.print_exc()
        _print_error("interrupted; the same command goes on from here")
        return 130
    except Exception as error:
        if state.get("raises") or state.get("debug"):
            raise
        _print_error(f"{errors.described(error)} (--debug shows where)")
        return 1


def _problem(error: click.UsageError) -> str:
    """Says which option or argument is wrong, and why, in one line."""
    if isinstance(error, click.MissingParameter) and error.param:
        return f"{error.param.opts[0].removesuffix('s')} is required"
    if isinstance(error, click.BadParameter) and error.param:
        return f"{error.param.opts[0]}: {error.message}"
    return error.format_message()


def _print_error(text: str) -> None:
    print(f"error: {errors.one_line(text)}", file=sys.stderr)
