"""Points: full assignments of a trainer's `Config`, resolved without importing it.

The trainer's source says which fields there are, of which type, and which shape the
program; its .gin says their values; a sweep says what varies. All three are read as
text, so that planning needs no JAX and a broken trainer cannot break a report.
"""

import ast
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import sys
import tokenize
from collections.abc import Iterable, Mapping
from typing import Any

from gin import config_parser

from bmg_sweeps import errors, paths
from bmg_sweeps.sweep import grid


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of a trainer's `Config`."""

    type: str  # As annotated: "int", "float", "str", "bool" or "tuple[int, ...]".
    is_structure: bool  # Whether it shapes the compiled program.
    was: Any = None  # Value of the points from before it was added.


@dataclasses.dataclass(frozen=True)
class Point:
    """A trainer and a value for each field of its `Config`, in the fields' order."""

    trainer: str
    values: grid.Values

    @functools.cached_property
    def id(self) -> str:
        """Short hash of trainer and values; the name of the record.

        A field that was added at the value that points had before does not count.
        """
        added = _added(self.trainer)
        values = {k: v for k, v in self.values.items() if (k, v) not in added.items()}
        text = json.dumps([self.trainer, values], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def configuration(self, over: Iterable[str] = ("seed",)) -> "Point":
        """Leaves out the fields that a score is averaged over.

        Args:
            over: names of those fields.

        Returns:
            A point without them: the unit of selection.
        """
        over = tuple(over)
        values = {k: v for k, v in self.values.items() if k not in over}
        return Point(self.trainer, values)


def fields(trainer: str) -> dict[str, Field]:
    """Reads the fields of a trainer's `Config` from its source.

    Args:
        trainer: name of a module in trainers/.

    Returns:
        Fields by name, in order.

    Raises:
        UserError: there is no such trainer, or its source declares no `Config`.
    """
    path = paths.TRAINERS / f"{trainer}.py"
    return _fields(path, _modified(path, trainer))


def resolve(trainer: str, values: Mapping[str, Any], bindings: tuple[str, ...] = ()):
    """Fills a point's values up with the trainer's gin values.

    Args:
        trainer: name of a module in trainers/.
        values: what a sweep says of the point.
        bindings: gin lines from the command line, stronger than both.

    Returns:
        The `Point`, each value cast to its field's type: 0 and 0.0 are one point.

    Raises:
        UserError: a field is unknown, unbound, or a value is of the wrong type.
    """
    declared = fields(trainer)
    bound = _gin_values(trainer) | values | _typed(trainer, bindings)
    for name in bound:
        if name not in declared:
            raise errors.UserError(
                f"{trainer}.{name}: no such field; "
                + errors.expected_one_of(name, declared)
            )
    missing = [name for name in declared if name not in bound]
    if missing:
        raise errors.UserError(
            f"{trainer}.{missing[0]}: bound in no gin file; expected a line in "
            f"gin/{trainer}.gin"
        )
    return Point(
        trainer,
        {
            name: _cast(f"{trainer}.{name}", field.type, bound[name])
            for name, field in declared.items()
        },
    )


def structure(point: Point) -> tuple[Any, ...]:
    """Returns the values that shape the compiled program.

    Args:
        point: any point.

    Returns:
        A tuple that two points share where one program serves both.
    """
    declared = fields(point.trainer)
    static = [v for k, v in point.values.items() if declared[k].is_structure]
    return (point.trainer, *static)


def gin_text(point: Point) -> str:
    """Writes a point as gin text that binds every field.

    Args:
        point: any point.

    Returns:
        Text that gin parses without any other file.
    """
    lines = [f"# Point {point.id}.", "", f"import trainers.{point.trainer}", ""]
    lines += [f"{point.trainer}.{k} = {v!r}" for k, v in point.values.items()]
    return "\n".join(lines) + "\n"


def parse_bindings(trainer: str, text: str) -> grid.Values:
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


@functools.cache
def _typed(trainer: str, bindings: tuple[str, ...]) -> grid.Values:
    """Reads what was typed: one field in each binding, and each field once."""
    values: grid.Values = {}
    for binding in bindings:
        found = parse_bindings(trainer, binding)
        if len(found) != 1:
            raise errors.UserError(
                f"--gin {errors.shown(binding)}: expected {trainer}.field = value"
            )
        if values.keys() & found:
            raise errors.UserError(
                f"--gin {trainer}.{next(iter(found))}: given twice; expected once"
            )
        values |= found
    return values


def _added(trainer: str) -> grid.Values:
    """Returns the old values of the fields that a trainer did not always have."""
    path = paths.TRAINERS / f"{trainer}.py"
    if not os.path.isfile(path):
        return {}
    return _old_values(path, path.stat().st_mtime)


@functools.cache
def _old_values(path: pathlib.Path, modified: float) -> grid.Values:
    declared = _fields(path, modified)
    return {
        name: field.was for name, field in declared.items() if field.was is not None
    }


def _modified(path: pathlib.Path, trainer: str) -> float:
    # The name becomes that of a folder in the storage, too.
    if trainer.isidentifier() and os.path.isfile(path):
        return path.stat().st_mtime
    known = sorted(p.stem for p in paths.TRAINERS.glob("[!_]*.py"))
    expected = errors.expected_one_of(trainer, known)
    if trainer in known:
        expected = "expected it to bind every field"
    raise errors.UserError(
        f"trainer {errors.shown(trainer)}: {path.parent.name}/{path.name} does not "
        f"exist; {expected}"
    )


def _gin_values(trainer: str) -> grid.Values:
    path = paths.GIN / f"{trainer}.gin"
    return dict(_parsed_gin(trainer, path, _modified(path, trainer)))


@functools.cache
def _parsed_gin(trainer: str, path: pathlib.Path, modified: float) -> grid.Values:
    del modified  # Part of the key, so that an edited file is read again.
    try:
        return parse_bindings(trainer, path.read_text(encoding="utf-8"))
    except ValueError as error:  # It may not be text.
        raise errors.UserError(f"gin file {path}: {error}") from error


@functools.cache
def _fields(path: pathlib.Path, modified: float) -> dict[str, Field]:
    del modified
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise errors.UserError(
            f"trainer file {path}, line {error.lineno}: {error.msg}"
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise errors.UserError(
            f"trainer file {path}: {errors.described(error)}"
        ) from error
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Config":
            return {
                line.target.id: _field(path, line)
                for line in node.body
                if isinstance(line, ast.AnnAssign)
            }
    raise errors.UserError(f"trainer file {path}: expected a class Config")


def _field(path: pathlib.Path, line: ast.AnnAssign) -> Field:
    """Reads one line of a `Config`."""
    type_ = ast.unparse(line.annotation)
    if not isinstance(line.value, ast.Call):
        return Field(type_, is_structure=False)
    is_structure = ast.unparse(line.value.func).endswith("structure")
    was = None
    for keyword in line.value.keywords:
        if keyword.arg == "was":
            name = f"trainer file {path}, line {line.lineno}, {line.target.id}: was"
            was = _cast(name, type_, _literal(name, keyword.value))
    return Field(type_, is_structure, was)


def _literal(name: str, node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        text = ast.unparse(node)
        raise errors.UserError(f"{name} = {text}: expected a literal value") from error


def _cast(name: str, type_: str, value: Any) -> Any:
    """Casts a literal to an annotated type; nothing is rounded, parsed or truncated."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if type_ == "float" and is_number and abs(value) <= sys.float_info.max:
        return float(value) + 0.0  # One zero: −0.0 is the same point.
    if type_ == "int" and isinstance(value, int) and is_number and _is_short(value):
        return value
    if type_ in ("str", "bool") and type(value).__name__ == type_:
        return value
    is_row = isinstance(value, tuple | list)
    are_int = is_row and all(type(n) is int and _is_short(n) for n in value)
    if type_ == "tuple[int, ...]" and are_int:
        return tuple(value)
    raise errors.UserError(
        f"{name} = {errors.shown(value)}: expected a value of type {type_}"
    )


def _is_short(value: int) -> bool:
    """Whether Python would write an integer; of thousands of digits it does not."""
    return abs(value) <= sys.float_info.max
