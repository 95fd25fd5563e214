"""Completion of commands, sweeps, scales and fields in bash, zsh and fish.

`python -m bmg_sweeps` is no single word that a shell could complete. So `completion`
prints a function `bmg`, which runs it, and has the shell ask click what could follow.
"""

import re
import shlex
import sys
from collections.abc import Iterable
from typing import Any

import click

from bmg_sweeps import errors
from bmg_sweeps.records import files
from bmg_sweeps.sweep import loading
from bmg_sweeps.trainer import source

VARIABLE = "_BMG_COMPLETE"  # Set by the shell's function: which shell asks what.
SCRIPTS = {
    "bash": """\
bmg() { PYTHON -m bmg_sweeps "$@"; }
_bmg_completion() {
    local IFS=$'\\n' completion type value
    COMPREPLY=()
    for completion in $(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
            _BMG_COMPLETE=bash_complete PYTHON -m bmg_sweeps); do
        IFS=',' read -r type value <<< "$completion"
        case $type in
            file) compopt -o default 2> /dev/null ;;
            dir) compopt -o dirnames 2> /dev/null ;;
            plain) COMPREPLY+=("$value")
                [[ $value == *= ]] && compopt -o nospace 2> /dev/null ;;
        esac
    done
    return 0
}
complete -o nosort -F _bmg_completion bmg
""",
    "zsh": """\
bmg() { PYTHON -m bmg_sweeps "$@"; }
_bmg_completion() {
    local -a response values
    response=("${(@f)$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \\
        _BMG_COMPLETE=zsh_complete PYTHON -m bmg_sweeps)}")
    for type key description in ${response}; do
        case $type in
            file) _path_files -f ;;
            dir) _path_files -/ ;;
            plain) values+=("$key") ;;
        esac
    done
    compadd -U -V unsorted -a values
}
compdef _bmg_completion bmg
""",
    "fish": """\
function bmg; PYTHON -m bmg_sweeps $argv; end
function _bmg_completion
    for completion in (COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t) \\
            _BMG_COMPLETE=fish_complete PYTHON -m bmg_sweeps)
        set -l parts (string split , $completion)
        switch $parts[1]
            case dir; __fish_complete_directories $parts[2]
            case file; __fish_complete_path $parts[2]
            case plain; echo $parts[2]
        end
    end
end
complete --no-files --command bmg --arguments "(_bmg_completion)"
""",
}


def script(shell: str) -> str:
    """Writes the function `bmg` and its completion for a shell.

    Args:
        shell: a key of `SCRIPTS`.

    Returns:
        What the shell is to evaluate.
    """
    return SCRIPTS[shell].replace("PYTHON", shlex.quote(sys.executable))


def complete(app: click.Command, instruction: str) -> int:
    """Answers a shell that asks what could follow.

    Args:
        app: the command line.
        instruction: the value of `VARIABLE`.

    Returns:
        An exit status.
    """
    from click import shell_completion

    return shell_completion.shell_complete(app, {}, "bmg", VARIABLE, instruction)


def sweeps(context: Any, param: Any, incomplete: str) -> list:
    """Names the sweeps of the checkout; files, once a path is begun."""
    from click import shell_completion

    del context, param
    if "/" in incomplete or "." in incomplete:
        return [shell_completion.CompletionItem(incomplete, type="file")]
    return _starting(incomplete, [*loading.sweep_names(), "all"])


def sweeps_and_points(context: Any, param: Any, incomplete: str) -> list:
    """Names the sweeps of the checkout, and the points of a storage on this machine."""
    found = [one for one in sweeps(context, param, incomplete) if one != "all"]
    storage = files.open_storage(context.params.get("storage") or "runs")
    if re.fullmatch("[0-9a-f]+", incomplete) and storage.is_local:
        found += [point_id for _, point_id in points(storage, incomplete)]
    return found


def points(storage: files.Storage, beginning: str) -> list[tuple[str, str]]:
    """Finds the points whose id begins so: the trainer and id of each."""
    return [
        (trainer, point_id)
        for trainer in sorted(storage.folders())
        for point_id in sorted(storage.folders(trainer))
        if re.fullmatch("[0-9a-f]{12}", point_id) and point_id.startswith(beginning)
    ]


def scales(context: click.Context, param: Any, incomplete: str) -> list[str]:
    """Names the scales of the sweeps that were typed, or of all."""
    del param
    return _starting(
        incomplete, (scale for one in _sweeps(context) for scale in one.scales)
    )


def fields(context: click.Context, param: Any, incomplete: str) -> list[str]:
    """Names the fields of the sweeps' trainers, as --where takes them."""
    del param
    return _starting(incomplete, (f"{field}=" for _, field in _fields(context)))


def bindings(context: click.Context, param: Any, incomplete: str) -> list[str]:
    """Names the fields of the sweeps' trainers, as --gin takes them."""
    del param
    return _starting(
        incomplete, (f"{trainer}.{field}=" for trainer, field in _fields(context))
    )


def _fields(context: click.Context) -> list[tuple[str, str]]:
    trainers = dict.fromkeys(one.trainer for one in _sweeps(context))
    return [(trainer, field) for trainer in trainers for field in _known(trainer)]


def _known(trainer: str) -> Iterable[str]:
    try:
        return source.fields(trainer)
    except errors.UserError:
        return ()


def _sweeps(context: click.Context) -> list:
    """Loads the sweeps that stand on the command line so far; all, where none does."""
    typed = [*(context.params.get("sweeps") or ()), context.params.get("sweep")]
    typed += context.args  # Click leaves them here while an option lacks its value.
    names = [name for name in typed if name and name != "all"]
    found = []
    for name in names or loading.sweep_names():
        try:
            found.append(loading.load_sweep(name))
        except errors.UserError:
            continue  # Pressing a key shows no errors.
    return found


def _starting(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.startswith(incomplete)]
