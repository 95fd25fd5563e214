"""Errors that a user can mend, and how errors are written in one line."""

import difflib
from collections.abc import Iterable
from typing import Any

MAX_LINE = 1_000  # Characters of a message; the middle of a longer one is cut.
MAX_VALUE = 120  # Characters of a value in a message.


class UserError(ValueError):
    """An error that the user can mend.

    Its message is one line that names the field, the value and what was expected. The
    command line prints it without a traceback and exits with status 2.
    """


class MachineError(UserError):
    """This machine lacks what a point needs; another machine may have it.

    No point has failed for it.
    """


def expected_one_of(name: str, choices: Iterable[str]) -> str:
    """Says which name was probably meant, or else which names there are.

    >>> expected_one_of("figure_22", ["figure_2", "table_5"])
    'did you mean figure_2?'
    >>> expected_one_of("fly", ["list", "show"])
    'expected one of: list, show'

    Args:
        name: what was typed, which is not among the choices.
        choices: the names that there are.

    Returns:
        The end of an error message.
    """
    choices = list(choices)
    near = difflib.get_close_matches(name, choices, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"expected one of: {', '.join(choices) or 'nothing, there is none'}"


def shown(value: Any) -> str:
    """Writes a value for a message: its `repr`, in one line and not too long."""
    try:
        text = repr(value)
    except Exception:  # The user's own class raises, or an integer is too long.
        text = f"<{type(value).__name__}>"
    return one_line(text, MAX_VALUE)


def one_line(text: str, max_length: int = MAX_LINE) -> str:
    r"""Writes text in one line: escapes what cannot be printed, cuts what is too long.

    >>> print(one_line("a\nb"))
    a\nb
    """
    if len(text) > max_length:
        text = f"{text[: max_length // 2]} … {text[-max_length // 2 :]}"
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


def first_line(error: BaseException) -> str:
    """Returns what an exception says, in one line; its type where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def described(error: BaseException) -> str:
    """Returns an exception's type and the first line of what it says."""
    name, line = type(error).__name__, first_line(error)
    return name if line == name else f"{name}: {line}"


def last_line(error: BaseException) -> str:
    """Returns the end of what an exception says, where Ray puts the cause."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
