"""Templates filled in: HTML files that need no network and run no script but their own.

Whatever a user or a record said is text, never markup: the templates escape it.
"""

import base64
import functools
import hashlib
import json
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import jinja2
import jinja2.utils
import markupsafe
import plotly.offline

from bmg_sweeps import privacy

_TEMPLATES = pathlib.Path(__file__).parent / "templates"


def render(template: str, scripts: Sequence[str], **values: Any) -> str:
    """Fills a template in.

    Args:
        template: name of its file.
        scripts: those that the page may run.
        **values: what the template names.

    Returns:
        HTML that needs no other file.
    """
    hashes = [hashlib.sha256(script.encode()).digest() for script in scripts]
    allowed = [f"'sha256-{base64.b64encode(one).decode()}'" for one in hashes]
    style = (_TEMPLATES / "page.css").read_text(encoding="utf-8")
    return (
        _environment()
        .get_template(template)
        .render(
            style=markupsafe.Markup(style),
            scripts=[markupsafe.Markup(script) for script in scripts],
            script_policy=" ".join(allowed) or "'none'",
            **values,
        )
    )


def _environment() -> jinja2.Environment:
    """Makes what fills templates in, which scrubs all that it is told."""
    scrub = privacy.scrubber(homes=True)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        finalize=lambda value: scrub(value) if type(value) is str else value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["code"] = _code
    return environment


def _code(text: str) -> markupsafe.Markup:
    """Marks what stands between backticks."""
    escaped = str(markupsafe.escape(privacy.scrubbed(text, homes=True)))
    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", escaped))


@functools.cache
def library() -> str:
    """The charts' library, in a form that can stand inside a page."""
    return _inside(plotly.offline.get_plotlyjs())


def script(name: str) -> str:
    """Reads a script that lies beside the templates."""
    return _inside((_TEMPLATES / name).read_text(encoding="utf-8"))


def _inside(script: str) -> str:
    """Writes a script so that a page's parser finds its end where it is.

    The parser turns every end of line into one character, as the hash has it.
    """
    script = script.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(r"<(?=/script|!--)", r"\\x3c", script, flags=re.IGNORECASE)


def json_text(value: Any) -> markupsafe.Markup:
    """Writes data for a script, safe to stand inside a page."""
    dumps = functools.partial(json.dumps, allow_nan=False, separators=(",", ":"))
    return jinja2.utils.htmlsafe_json_dumps(
        value, dumps=lambda v: privacy.scrubbed_json(dumps(v, ensure_ascii=False))
    )
