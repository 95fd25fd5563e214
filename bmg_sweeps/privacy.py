"""What is the user's own affair, and stays out of records, logs and reports."""

import os
import pathlib
import re

# In a variable's name.
_SECRET = re.compile("KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
MIN_SECRET = 8  # Characters of a value; shorter ones are words, such as "true".
_FOLDERS = re.compile(r"(?:~|(?<![\w.:/]))/(?:[^\s/'\"]+/)+")
_HOMES = re.compile(r"(?<![\w.-])/(home|Users)/[^/\s'\"<>]+")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s'\"]+@")
_ASSIGNED = re.compile(
    r"((?:api_?key|secret|token|password|signature)\w*=)[^\s&'\"]+", re.IGNORECASE
)


def scrubbed(text: str, *, homes: bool = False, folders: bool = False) -> str:
    """Leaves out of a text what is the user's own affair.

    Args:
        text: what is to be kept, or shown to others.
        homes: whether the home folders of others are left out, too. A command with
            one of them does not work any more.
        folders: whether it is left out where any file lies on this machine.

    Returns:
        The same with "~" for their home folder; without the credentials of URIs and
        after such as "token="; and for the value of an environment variable that is
        named like a secret, the variable's name.
    """
    secrets = [
        (value, name)
        for name, value in os.environ.items()
        if len(value) >= MIN_SECRET and _SECRET.search(name)
    ]
    # The longest first: one may begin with another.
    for value, name in sorted(secrets, key=lambda secret: -len(secret[0])):
        text = text.replace(value, f"${name}")
    text = _without_home(text)
    text = _HOMES.sub("~", text) if homes or folders else text
    text = _FOLDERS.sub("", text) if folders else text
    return _ASSIGNED.sub(r"\1…", _CREDENTIALS.sub("", text))


def scrubbed_json(text: str) -> str:
    """Scrubs the strings of a JSON text, `homes` included, and no number."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda m: scrubbed(m[0], homes=True), text)


def _without_home(text: str) -> str:
    """Writes "~" for the user's home folder, which bears their name."""
    home = str(pathlib.Path.home())
    is_whole = r"(?![\w.-])"  # And not the beginning of another folder's name.
    return re.sub(re.escape(home) + is_whole, "~", text) if len(home) > 1 else text
