"""Gin text, read with gin's own parser and without running anything."""

import ast
import functools
import re
import tokenize
from typing import Any

from gin import config_parser

from bmg_sweeps import errors

Values = dict[str, Any]
"""Values by field name; the fields it does not name keep the trainer's gin values."""


def parse_bindings(trainer: str, text: str) -> Values:
    """Reads gin text with gin's own parser, executing none of its imports.

    Args:
        trainer: the only configurable that may be bound.
        text: lines such as `two_colors_actor_critic.discount = 0.9`.

    Returns:
        Values by field.

    Raises:
        UserError: a line is not gin, binds another configurable, or uses a macro or a
            reference, which a record could not hold.
    """
    values = _plain(trainer, text)
    if values is not None:
        return values
    values = {}
    try:
        for statement in config_parser.ConfigParser(text, _Literals()):
            if isinstance(statement, config_parser.ImportStatement):
                continue
            if not isinstance(statement, config_parser.BindingStatement):
                raise errors.UserError(
                    f"gin line {statement.location.line_content.strip()!r}: expected "
                    f"{trainer}.field = value"
                )
            if statement.scope or statement.selector != trainer:
                raise errors.UserError(
                    f"gin binding {statement.location.line_content.strip()!r}: "
                    f"expected a field of {trainer}"
                )
            values[statement.arg_name] = statement.value
    except errors.UserError as error:
        # Gin adds lines that point into the text; the first one says it all.
        raise errors.UserError(errors.first_line(error)) from error
    except (RecursionError, MemoryError) as error:
        raise errors.UserError(
            f"gin text {errors.shown(text)}: nested too deeply"
        ) from error
    except (SyntaxError, tokenize.TokenError) as error:
        raise errors.UserError(_not_gin(text, error)) from error
    return values


def _plain(trainer: str, text: str) -> Values | None:
    """Reads a text of one literal a line, as points have; None where it has more.

    Gin reads such lines with `literal_eval`, too. Thousands of points have most lines
    in common, which are read once.
    """
    values: Values = {}
    for line in text.splitlines():
        if not line or line.startswith(("#", "import ")):
            continue
        binding = _plain_line(line)
        if binding is None or binding[0] != trainer:
            return None
        values[binding[1]] = binding[2]
    return values


@functools.lru_cache(maxsize=100_000)
def _plain_line(line: str) -> tuple[str, str, Any] | None:
    """Reads `trainer.field = literal`; None for another line, and what could change."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    try:
        value = ast.literal_eval(match[3])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    is_fixed = isinstance(value, _FIXED) or (
        isinstance(value, tuple) and all(isinstance(v, _FIXED) for v in value)
    )
    return (match[1], match[2], value) if is_fixed else None


_LINE = re.compile(r"(\w+)\.(\w+) = (\S.*)")
_FIXED = (str, int, float, bool, type(None))


@functools.cache
def typed(trainer: str, lines: tuple[str, ...]) -> Values:
    """Reads what was typed: one field in each line, and each field once.

    Args:
        trainer: the only configurable that may be bound.
        lines: such as `two_colors_actor_critic.discount = 0.9`.

    Returns:
        Values by field.

    Raises:
        UserError: as `parse_bindings`; a line binds no field, or a field twice.
    """
    values: Values = {}
    for line in lines:
        try:
            found = parse_bindings(trainer, line)
        except errors.UserError as error:
            raise errors.UserError(f"--gin: {error}") from error
        if len(found) != 1:
            raise errors.UserError(
                f"--gin {errors.shown(line)}: expected {trainer}.field = value"
            )
        if values.keys() & found:
            raise errors.UserError(
                f"--gin {trainer}.{next(iter(found))}: given twice; expected once"
            )
        values |= found
    return values


def _not_gin(text: str, error: SyntaxError | tokenize.TokenError) -> str:
    """Says which line of a text gin cannot read, and why."""
    # At the end of the text the tokenizer names a line that is not there.
    number = getattr(error, "lineno", None) or error.args[1][0]
    lines = [line.strip() for line in text.splitlines()[:number] if line.strip()]
    line = lines[-1] if lines else ""
    reason = str(error.args[0]).splitlines()[0]
    if reason.startswith("malformed node"):
        reason = "expected a literal value"
    return f"gin line {line!r}: {reason}"


class _Literals(config_parser.ParserDelegate):
    """Refuses what is not a literal."""

    def configurable_reference(self, scoped_configurable_name, evaluate):
        raise errors.UserError(
            f"gin reference @{scoped_configurable_name}: expected a literal value"
        )

    def macro(self, macro_name):
        raise errors.UserError(f"gin macro %{macro_name}: expected a literal value")
