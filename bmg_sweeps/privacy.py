"""What is the user's own affair, and stays out of records, logs and reports."""

import functools
import os
import re
import urllib.parse
from collections.abc import Callable, Sequence

from bmg_sweeps import paths

# In a variable's name. PWD and OLDPWD are folders.
_SECRET = re.compile("KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|DSN|_PWD$", re.IGNORECASE)
MIN_SECRET = 8  # Characters of a value; shorter ones are words, such as "true".
_FOLDERS = re.compile(r"(?:~|(?<![\w.:/]))/(?:[^\s/'\"]+/)+")
_HOMES = re.compile(r"(?<![\w.-])/(home|Users)/[^/\s'\"<>]+")

# Secrets by their form: what is before and after one stays, as far as it is a group.
_NAME = (
    r"(?:[\w-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key)[\w-]*"
    r"|[\w-]*(?:token|signature)|authorization|pwd)"
)
_FORMS = (
    # The login of a URI. A password may hold "/" where a colon is before it, or "@".
    (re.compile(r"(?<=://)[^\s'\"/@:]*:(?!\d+/)[^\s'\"]*@(?=[\w.\[-]+)"), ""),
    (re.compile(r"(?<=://)[^\s'\"/]*@"), ""),
    # Authorization: Bearer …, and the scheme alone.
    (
        re.compile(r"\b((?i:bearer|basic|digest)\s+)(?=\S*[A-Z\d=])[\w.~+/=-]{8,}"),
        r"\1…",
    ),
    # password=…, 'api_key': '…', --token …, X-Secret: "…".
    (
        re.compile(
            rf"\b({_NAME}['\"]?\s*[=:]\s*)(['\"])(?!\$)(?:(?!\2).)+\2", re.IGNORECASE
        ),
        r"\1\2…\2",
    ),
    (
        re.compile(rf"\b({_NAME}(?:['\"]?=))(?![$'\"])[^\s&,;'\"]+", re.IGNORECASE),
        r"\1…",
    ),
    (
        re.compile(rf"(--{_NAME}\s+)(?![$'\"-])[^\s'\"]+", re.IGNORECASE),
        r"\1…",
    ),
    (
        re.compile(
            rf"\b({_NAME}:\s+)(?![$'\"])(?=[^\s]*\d)[^\s'\",;]{{6,}}", re.IGNORECASE
        ),
        r"\1…",
    ),
    # Tokens that tell what they are: GitHub, GitLab, Hugging Face, OpenAI, Slack, W&B,
    # AWS, Google, and signed ones (JWT).
    (
        re.compile(
            r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{20,}"
            r"|sk-[\w-]{20,}|xox[abeprs]-[\w-]{10,}|wandb_v\d_\w{20,}"
            r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,}"
            r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
        ),
        "…",
    ),
    (
        re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END|$)", re.DOTALL),
        r"\1…\2",
    ),
)
# Texts without any of these hold no secret by form; most texts of a page do not.
_SUSPECT = re.compile(
    r"://|bearer|basic|digest|pass|pwd|secret|key|token|signature|authorization"
    r"|gh[pousr]_|glpat|hf_|sk-|xox|wandb_|A[KS]IA|AIza|eyJ",
    re.IGNORECASE,
)


def scrubbed(text: str, *, homes: bool = False, folders: bool = False) -> str:
    """Leaves out of a text what is the user's own affair.

    Args:
        text: what is to be kept, or shown to others.
        homes: whether the home folders of others are left out, too. A command with
            one of them does not work any more.
        folders: whether it is left out where any file lies on this machine.

    Returns:
        The same with "~" for their home folder; without what has the form of a login,
        a token or a password with its name; and for the value of an environment
        variable that is named like a secret, or is a URI's password, the variable's
        name.
    """
    return scrubber(homes=homes, folders=folders)(text)


def scrubber(*, homes: bool = False, folders: bool = False) -> Callable[[str], str]:
    """Makes a function that scrubs many texts, as `scrubbed` does one.

    It reads the environment once, which takes ten times as long as to scrub a text.

    Args:
        homes: as of `scrubbed`.
        folders: as of `scrubbed`.

    Returns:
        The function, which holds for the environment as it is now.
    """
    folder = str(paths.home() or "")
    is_whole = r"(?![\w.-])"  # And not the beginning of another folder's name.
    home = re.compile(re.escape(folder) + is_whole) if len(folder) > 1 else None
    removed = [(home, "~")] if home else []
    removed += [(_HOMES, "~")] if homes or folders else []
    removed += [(_FOLDERS, "")] if folders else []
    # The longest first: one may begin with another.
    secrets = sorted(_of_environment(), key=lambda one: -len(one[0]))
    return functools.partial(_without, secrets, removed)


def scrubbed_json(text: str) -> str:
    """Scrubs the strings of a JSON text, `homes` included, and no number."""
    scrub = scrubber(homes=True)
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda m: scrub(m[0]), text)


def _of_environment() -> list[tuple[str, str]]:
    """Lists the secrets in environment variables, with the variable of each."""
    found = []
    for name, value in os.environ.items():
        if len(value) >= MIN_SECRET and _SECRET.search(name):
            found.append((value, name))
        elif "://" in value and "@" in value:
            password = _password(value)
            if password and len(password) >= MIN_SECRET:
                found.append((password, name))
    return found


def _password(uri: str) -> str | None:
    """Returns the password in a URI's login."""
    try:
        return urllib.parse.urlsplit(uri).password
    except ValueError:
        return None


def _without(
    secrets: Sequence[tuple[str, str]],
    removed: Sequence[tuple[re.Pattern[str], str]],
    text: str,
) -> str:
    """Scrubs a text of what the environment says, of forms of secrets and of folders.

    Args:
        secrets: value and variable of each.
        removed: patterns of folders, and what stands in their place.
        text: what is scrubbed.
    """
    for value, name in secrets:
        text = text.replace(value, f"${name}")
    if _SUSPECT.search(text):
        for form, shown in _FORMS:
            text = form.sub(shown, text)
    for folder, shown in removed:
        text = folder.sub(shown, text)
    return text
