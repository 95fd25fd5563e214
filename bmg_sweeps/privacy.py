"""What is the user's own affair, and stays out of records, logs and reports."""

import os
import pathlib
import re

from bmg_sweeps import errors

# In a variable's name.
_SECRET = re.compile("KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_LEAST_SECRET = 8  # Characters of a value; shorter ones are words, such as "true".


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


_FOLDERS = re.compile(r"(?:~|(?<![\w.:/]))/(?:[^\s/'\"]+/)+")


def without_folders(text: str) -> str:
    """Leaves out secrets, and where files lie on this machine."""
    return errors.one_line(_FOLDERS.sub("", public(text)))


def scrubbed(text: str) -> str:
    """Leaves out what is the user's own affair: home folders and credentials."""
    text = without_home(text)
    text = re.sub(r"(?<![\w.-])/(home|Users)/[^/\s'\"<>]+", "~", text)
    text = re.sub(r"(?<=://)[^/@\s'\"]+@", "", text)
    secret = r"((?:api_?key|secret|token|password|signature)\w*=)[^\s&'\"]+"
    return re.sub(secret, r"\1…", text, flags=re.IGNORECASE)
