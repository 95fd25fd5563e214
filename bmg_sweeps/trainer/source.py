"""What a trainer declares, read from its source and its .gin without importing it."""

import ast
import dataclasses
import functools
import os
import pathlib
import sys
import typing
from typing import Annotated, Any

from bmg_sweeps import errors, paths
from bmg_sweeps.trainer import bindings, ranges

TYPES = ("int", "float", "str", "bool", "tuple[int, ...]")


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of a trainer's `Config`."""

    type: str  # As annotated: one of `TYPES`.
    is_structure: bool  # Whether it shapes the compiled program.
    was: Any = None  # Value of the points from before it was added.


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


def gin_values(trainer: str) -> bindings.Values:
    """Reads the values that a trainer's .gin binds, by field."""
    path = paths.GIN / f"{trainer}.gin"
    return dict(_parsed_gin(trainer, path, _modified(path, trainer)))


@functools.cache
def _parsed_gin(trainer: str, path: pathlib.Path, modified: float) -> bindings.Values:
    del modified  # Part of the key, so that an edited file is read again.
    try:
        return bindings.parse_bindings(trainer, path.read_text(encoding="utf-8"))
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
    aliases = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Config":
            return {
                line.target.id: _field(path, line, aliases)
                for line in node.body
                if isinstance(line, ast.AnnAssign)
            }
    raise errors.UserError(f"trainer file {path}: expected a class Config")


def _field(
    path: pathlib.Path, line: ast.AnnAssign, aliases: dict[str, ast.expr]
) -> Field:
    """Reads one line of a `Config`."""
    type_ = _type(line.annotation, aliases)
    if type_ not in TYPES:
        raise errors.UserError(
            f"trainer file {path}, line {line.lineno}, {line.target.id}: type {type_}; "
            f"expected one of {', '.join(TYPES)}"
        )
    if not isinstance(line.value, ast.Call):
        return Field(type_, is_structure=False)
    is_structure = ast.unparse(line.value.func).endswith("structure")
    was = None
    for keyword in line.value.keywords:
        if keyword.arg == "was":
            name = f"trainer file {path}, line {line.lineno}, {line.target.id}: was"
            was = cast(name, type_, _literal(name, keyword.value))
    return Field(type_, is_structure, was)


def _type(annotation: ast.expr, aliases: dict[str, ast.expr]) -> str:
    """Reads an annotation; of Annotated[int, Ge(1)] and its aliases the type is int."""
    if isinstance(annotation, ast.Subscript):
        inner = annotation.slice
        if _last_name(annotation.value) == "Annotated" and isinstance(inner, ast.Tuple):
            return _type(inner.elts[0], aliases)
    elif (name := _last_name(annotation)) in aliases:
        return _type(aliases[name], {})
    elif typing.get_origin(vars(ranges).get(name)) is Annotated:
        origin = vars(ranges)[name].__origin__
        return origin.__name__ if isinstance(origin, type) else str(origin)
    return ast.unparse(annotation)


def _last_name(node: ast.expr) -> str:
    """Reads typing.Annotated as Annotated."""
    return ast.unparse(node).rpartition(".")[2]


def _literal(name: str, node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        text = ast.unparse(node)
        raise errors.UserError(f"{name} = {text}: expected a literal value") from error


def cast(name: str, type_: str, value: Any) -> Any:
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
