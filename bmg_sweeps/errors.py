"""The one kind of error that a user is meant to read."""

import difflib
from collections.abc import Iterable
from typing import Any

_MOST_LINE = 1_000  # Characters of a message; of what is longer, both ends.
_MOST_VALUE = 120


class UserError(ValueError):
    """What the user can mend: one line naming the field, the value, what was expected.

    The command line prints it without a traceback and exits with status 2.
    """


def expected_one_of(name: str, choices: Iterable[str]) -> str:
    """Says which names would have done: the likeliest one, or else all.

    Args:
        name: that is none of the choices.
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
    except Exception:  # A class of the user's, or an integer of too many digits.
        text = f"<{type(value).__name__}>"
    return one_line(text, _MOST_VALUE)


def one_line(text: str, most: int = _MOST_LINE) -> str:
    """Writes text for a terminal: what cannot be printed escaped, the middle cut."""
    if len(text) > most:
        text = f"{text[: most // 2]} … {text[-most // 2 :]}"
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
