"""The one kind of error that a user is meant to read."""

import difflib
import os
import pathlib
import re
from collections.abc import Iterable
from typing import Any

_MOST_LINE = 1_000  # Characters of a message; of what is longer, both ends.
_MOST_VALUE = 120
_SECRET = re.compile(
    "KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE
)  # In a variable's name.
_LEAST_SECRET = 8  # Characters of a value; shorter ones are words, such as "true".


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


def counted(number: int, noun: str) -> str:
    """Writes a number of things: "1 image", "600 images"."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def one_line(text: str, most: int = _MOST_LINE) -> str:
    """Writes text for a terminal: what cannot be printed escaped, the middle cut."""
    if len(text) > most:
        text = f"{text[: most // 2]} … {text[-most // 2 :]}"
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


def public(text: str) -> str:
    """Leaves out of a text what is the user's own affair.

    Args:
        text: that is to be kept, or shown to others.

    Returns:
        The same with "~" for their home folder, and for the value of an environment
        variable that is named like a secret, the variable's name.
    """
    variables = sorted(os.environ.items(), key=lambda item: len(item[1]), reverse=True)
    for name, value in variables:  # The longest first: one may begin with another.
        if len(value) >= _LEAST_SECRET and _SECRET.search(name):
            text = text.replace(value, f"${name}")
    return without_home(text)


def without_home(text: str) -> str:
    """Writes "~" for the user's home folder, which bears their name."""
    home = str(pathlib.Path.home())
    is_whole = r"(?![\w.-])"  # And not the beginning of another folder's name.
    return re.sub(re.escape(home) + is_whole, "~", text) if len(home) > 1 else text


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
