"""The one kind of error that a user is meant to read."""

import difflib
from collections.abc import Iterable


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
