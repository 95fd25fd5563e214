"""Holds a trainer to its contract by tracing it; nothing is compiled or trained.

JAX follows a trainer's functions with shapes in the place of numbers. That shows what
they take and return, and costs about a second for a structure.
"""

import dataclasses
import importlib
import pathlib
import re
import traceback
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend import core as jax_core
from jax.interpreters import partial_eval

from bmg_sweeps import errors
from bmg_sweeps.running import memory, pack
from bmg_sweeps.trainer import contract

_CALLS = 10_000  # Of `train`, within which the first row is looked for.


class Counts(NamedTuple):
    """Amounts of the first axis that are known before the training."""

    chunk: int  # Of one call of `train`.
    first_row: int | None  # Where the first row stands; None is beyond `_CALLS`.


@dataclasses.dataclass(frozen=True)
class Outline:
    """What a trainer returns for the points of a structure."""

    axes: tuple[str, ...]  # The axes of progress, in order.
    rows: tuple[str, ...]  # Columns of the rows.
    evaluations: tuple[str, ...]  # Columns of one split, without its name.
    counts: Counts | None  # None where they depend on the training.
    memory_bytes: int  # That one point needs, as `memory.estimate` says.
    integers: tuple[Any, ...] = ()  # The type of each axis's amount.
    is_live: bool = False  # Whether the source is a world of a point's own.

    def columns(self, split: str) -> list[str]:
        """Names the columns of evaluations on a split."""
        return [f"{split}_{name}" for name in self.evaluations]


def outline(trainer: contract.Trainer, config: Any) -> Outline:
    """Traces a trainer, and compares what it does with what it must do.

    Args:
        trainer: to be held to the contract.
        config: the point's values, as plain Python.

    Returns:
        What it returns for points of this structure.

    Raises:
        UserError: it breaks the contract; names the part, and what was expected.
        Exception: whatever a function of the trainer raises.
    """
    _check_config(trainer, config)
    with trainer.source(config) as source:
        is_live = isinstance(source, contract.LiveSource)
        source = jax.eval_shape(lambda handed: handed, contract.handed(source))
    config = pack.as_arrays(config)
    key = jax.random.key(0)
    state = jax.eval_shape(
        lambda config, key, source: trainer.init(config, key, source),
        *(config, key, source.to_init),
    )
    axes = _axes(trainer, config, state)
    program, result = jax.make_jaxpr(
        lambda config, state, source: trainer.train(config, state, source),
        return_shape=True,
    )(config, state, source.to_train)
    rows = _rows(trainer, state, result, next(iter(axes)))
    first = len(jax.tree.leaves(config))
    donated = range(first, first + len(jax.tree.leaves(state)))
    if is_live:
        _act(trainer, config, state, source.to_act)
    evaluations: tuple[str, ...] = ()
    if trainer.evaluate is not None:
        evaluations = _evaluations(trainer, config, state, source.to_train)
    return Outline(
        tuple(axes),
        rows,
        evaluations,
        counts=_counts(trainer, config, source, program, result),
        memory_bytes=memory.estimate(program, donated),
        integers=tuple(axes.values()),
        is_live=is_live,
    )


def located(error: Exception) -> str:
    """Describes an exception by the line of a trainer that it comes from.

    Args:
        error: that a trainer's function has raised.

    Returns:
        One line; the deepest frame in trainers/, if there is one, and what went wrong.
    """
    folders = {pathlib.Path(p) for p in importlib.import_module("trainers").__path__}
    frames = [
        f"trainers/{pathlib.Path(frame.filename).name}, line {frame.lineno}: "
        for frame in traceback.extract_tb(error.__traceback__)
        if pathlib.Path(frame.filename).parent in folders
    ]
    where = frames[-1] if frames else ""
    field = re.search(r"the value of the argument config\.(\w+)", str(error))
    if field:
        return (
            f"{where}the program needs {field[1]} before it is compiled; expected the "
            f"field declared with structure()"
        )
    return where + errors.described(error)


def _check_config(trainer: contract.Trainer, config: Any) -> None:
    """Refuses a `Config` that is no frozen pytree, and one with defaults."""
    is_frozen = dataclasses.is_dataclass(config) and config.__dataclass_params__.frozen
    _expect(is_frozen, trainer, "Config is no frozen dataclass", "one")
    for field in dataclasses.fields(config):
        given = (field.default, field.default_factory)
        has_default = any(value is not dataclasses.MISSING for value in given)
        problem = f"Config.{field.name} has a default"
        where = f"none; its value stands in gin/{trainer.name}.gin"
        _expect(not has_default, trainer, problem, where)
    is_pytree = not jax.tree_util.all_leaves([config])
    registered = "@jax.tree_util.register_dataclass above @gin.configurable"
    _expect(is_pytree, trainer, "Config is no pytree", registered)


def _axes(trainer: contract.Trainer, config: Any, state: Any) -> dict[str, Any]:
    """Names the axes of progress, each with the type of its integers."""
    axes = jax.eval_shape(
        lambda config, state: trainer.progress(config, state), config, state
    )
    is_table = isinstance(axes, Mapping) and len(axes) > 0
    _expect(is_table, trainer, f"progress returns {_form(axes)}", "{axis: amount}")
    for name, amount in axes.items():
        is_count = amount.shape == () and jnp.issubdtype(amount.dtype, jnp.integer)
        problem = f"progress returns {name} as {_form(amount)}"
        _expect(is_count, trainer, problem, "an integer []")
    return {name: amount.dtype for name, amount in axes.items()}


def _rows(trainer, state, result, axis: str) -> tuple[str, ...]:
    """Names the columns of the rows, after a look at the state that comes with them."""
    is_pair = isinstance(result, tuple) and len(result) == 2
    _expect(is_pair, trainer, f"train returns {_form(result)}", "(state, rows)")
    after, rows = result
    _check_state(trainer, state, after)
    is_table = isinstance(rows, Mapping)
    _expect(is_table, trainer, f"train returns rows {_form(rows)}", "{column: [R]}")
    problem = f"the rows of train have no {axis}, the first axis of progress"
    _expect(axis in rows, trainer, problem, f"it among {', '.join(rows) or 'them'}")
    for name, column in rows.items():
        is_column = len(column.shape) == 1 and column.shape == rows[axis].shape
        problem = f"train returns the column {name} as {_form(column)}"
        _expect(is_column, trainer, problem, f"an array [R], as {_form(rows[axis])}")
        _expect(_are_numbers(column), trainer, problem, "numbers")
    return tuple(rows)


def _check_state(trainer: contract.Trainer, state: Any, after: Any) -> None:
    """Refuses a `train` whose state another call could not go on from."""
    is_same = jax.tree.structure(state) == jax.tree.structure(after)
    _expect(is_same, trainer, "train returns another tree of state", "that of init")
    leaves = zip(jax.tree.leaves_with_path(state), jax.tree.leaves(after), strict=True)
    for (path, before), leaf in leaves:
        is_same = (leaf.shape, leaf.dtype) == (before.shape, before.dtype)
        name = f"state{jax.tree_util.keystr(path)}"
        problem = f"train returns {name} as {_form(leaf)}"
        _expect(is_same, trainer, problem, f"{_form(before)}, as it got")


def _act(trainer, config, state, observation) -> None:
    """Traces `act`; it raises where it cannot act on what the source observes."""
    step = jax.ShapeDtypeStruct((), jnp.int32)
    jax.eval_shape(
        lambda config, state, observation, step: trainer.act(
            config, state, observation, step
        ),
        *(config, state, observation, step),
    )


def _evaluations(trainer, config, state, source) -> tuple[str, ...]:
    """Names what `evaluate` returns, on either split."""
    has_interval = "evaluation_interval" in {f.name for f in dataclasses.fields(config)}
    problem = "it has evaluate, and no field evaluation_interval"
    _expect(has_interval, trainer, problem, "the field")
    names: tuple[str, ...] = ()
    for split in contract.SPLITS:
        numbers = jax.eval_shape(
            lambda config, state, source, split=split: trainer.evaluate(
                config, state, source, split
            ),
            *(config, state, source),
        )
        is_table = isinstance(numbers, Mapping)
        _expect(is_table, trainer, f"evaluate returns {_form(numbers)}", "{name: []}")
        for name, number in numbers.items():
            problem = f"evaluate returns {name} as {_form(number)}"
            is_number = number.shape == () and _are_numbers(number)
            _expect(is_number, trainer, problem, "a number []")
        names = tuple(numbers)
    return names


def _counts(trainer, config, source: contract.Handed, program, result) -> Counts | None:
    """Counts how far a chunk goes on the first axis, and where the first row stands.

    The program is cut down to what counts the axis, and that alone is run.

    Args:
        trainer: which says what counts.
        config: values of a point.
        source: shapes of what the functions are handed.
        program: `train`, as `jax.make_jaxpr` traces it.
        result: shapes of what `train` returns.

    Returns:
        The amounts; None where they depend on more than counters.
    """
    train = jax_core.jaxpr_as_fun(program)

    def amounts(config, key, source):
        def call(state, _):
            flat = train(*jax.tree.leaves((config, state, source.to_train)))
            state, rows = jax.tree.unflatten(jax.tree.structure(result), flat)
            axis, amount = next(iter(trainer.progress(config, state).items()))
            return state, (amount, rows[axis])

        state = trainer.init(config, key, source.to_init)
        before = next(iter(trainer.progress(config, state).values()))
        _, (after, rows) = jax.lax.scan(call, state, length=_CALLS)
        return after[0] - before, rows.ravel()

    given = (config, jax.random.key(0), source)
    whole = jax.make_jaxpr(amounts)(*given)
    counting, is_used = partial_eval.dce_jaxpr(whole.jaxpr, [True, True])
    inputs = jax.tree.leaves(given)
    used = [leaf for leaf, is_ in zip(inputs, is_used, strict=True) if is_]
    is_known = not any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in used)
    if not is_known or not _counts_only(counting):
        return None
    closed = jax_core.ClosedJaxpr(counting, whole.consts)
    chunk, rows = jax_core.jaxpr_as_fun(closed)(*used)
    new = rows[rows > 0]  # Those that do not go on along the axis are no rows.
    return Counts(int(chunk), int(new[0]) if new.size else None)


def _counts_only(jaxpr: Any) -> bool:
    """Whether a program computes with integers and truth values alone."""
    return all(
        jnp.issubdtype(variable.aval.dtype, jnp.integer) or variable.aval.dtype == bool
        for equation in jaxpr.eqns
        for variable in equation.outvars
    )


def _expect(holds: bool, trainer: contract.Trainer, problem: str, what: str) -> None:
    if not holds:
        raise errors.UserError(f"trainer {trainer.name}: {problem}; expected {what}")


def _are_numbers(array: Any) -> bool:
    """Whether a table can hold them; truth values become 1 and 0."""
    kinds = (jnp.integer, jnp.floating, jnp.bool_)
    return any(jnp.issubdtype(array.dtype, kind) for kind in kinds)


def _form(value: Any) -> str:
    """Writes a shape and a type as float32[3]; of what has none, its type's name."""
    if isinstance(value, jax.ShapeDtypeStruct):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    return type(value).__name__
