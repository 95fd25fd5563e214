"""Checks a plan, for a driver that imports neither JAX nor a trainer.

    python -m bmg_sweeps.running.check < request.json

Every point is bound and checked. Examples of them are traced, which holds their trainer
to its contract. The columns and axes that a sweep names are looked up in what its
examples return.
"""

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from bmg_sweeps import errors, formatting
from bmg_sweeps.core import convolutions
from bmg_sweeps.running import binding, noted, numerics, tracing
from bmg_sweeps.trainer import contract

Problem = tuple[int | None, str]
"""The index of a point in the request, if it is a point's, and what is wrong."""


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Finds the first reason not to start, and what the points will need.

    Args:
        request: `platform`, "cpu" or "gpu", that the points will run on; `points`,
            pairs of trainer and gin text; `stops`, the stop rule of
            each; `examples`, the indices of those to be traced; `pack`, how many points
            are to train together, if the user says so; and `sweeps`, each with its
            `name`, `trainer`, `examples` as gin text, `axes` and `columns`, both pairs
            of where a sweep names it and its name.

    Returns:
        Under "problem" a `Problem`, or None; nothing after the first one is checked.
        Under "memory" pairs: the index of an example, and the bytes of device memory
        that it is estimated to need.
    """
    numerics.fix()
    bound: list[tuple[contract.Trainer, Any]] = []
    outlines: dict[tuple, tracing.Outline] = {}
    with convolutions.traced_for(request.get("platform", "cpu")):
        problem = next(_problems(request, bound, outlines), None)
    traced = [(i, _structure(*bound[i])) for i in request["examples"] if i < len(bound)]
    memory = [(i, outlines[s].memory_bytes) for i, s in traced if s in outlines]
    return {"problem": problem, "memory": memory}


def _problems(
    request: Mapping[str, Any], bound: list, outlines: dict
) -> Iterator[Problem]:
    """Finds all problems; keeps what it binds and traces on the way."""
    for i, (trainer, gin_text) in enumerate(request["points"]):
        try:
            bound.append(binding.bind(trainer, gin_text))
            numerics.check_fixed(trainer)
            noted.by_trainer(*bound[i])
        except ValueError as error:
            yield i, errors.first_line(error)
        except Exception as error:
            yield i, tracing.located(error)
    for i in request["examples"]:
        try:
            _outline(*bound[i], outlines)
        except errors.UserError as error:
            yield None, errors.first_line(error)
        except Exception as error:
            yield i, tracing.located(error)
    pack = request.get("pack") or 1
    for (trainer, _), outline in outlines.items():
        if outline.is_live and pack > 1:
            yield (
                None,
                f"--pack {pack}: expected 1, as the source of trainer {trainer} is "
                f"live: each point has its own",
            )
    for i, (trainer, config) in enumerate(bound):
        found = outlines.get(_structure(trainer, config))
        if found:
            stop = request["stops"][i]
            yield from ((i, line) for line in _too_short(found, config, stop))
            yield from ((i, line) for line in _too_far(found, stop))
    for sweep in request["sweeps"]:
        yield from _problems_of_names(sweep, outlines)


def _too_short(
    found: tracing.Outline, config: Any, stop: Mapping[str, float]
) -> Iterator[str]:
    """Finds what ends before the training has done one of it."""
    if found.counts is None:
        return
    axis, (chunk, first_row) = found.axes[0], found.counts
    if found.evaluations and config.evaluation_interval < chunk:
        yield (
            f"evaluation_interval = {config.evaluation_interval}: expected at least "
            f"{chunk}, the {axis} of one chunk"
        )
    if first_row and stop.get(axis, first_row) < first_row:
        yield (
            f"stop: {formatting.amounts({axis: stop[axis]})}: expected at least "
            f"{formatting.amounts({axis: first_row})}, where the first row stands"
        )


def _too_far(found: tracing.Outline, stop: Mapping[str, float]) -> Iterator[str]:
    """Finds what no chunk ends at or beyond without its counter wrapping round."""
    chunk = found.counts.chunk if found.counts else 1  # Of the first axis.
    for axis, integer in zip(found.axes, found.integers, strict=True):
        most = int(jnp.iinfo(integer).max)
        most -= most % max(chunk, 1)
        chunk = 1
        if stop.get(axis, 0) > most:
            yield (
                f"stop: {formatting.amounts({axis: stop[axis]})}: expected at most "
                f"{formatting.amounts({axis: most})}, as far as its {integer} counts"
            )


def _problems_of_names(sweep: Mapping[str, Any], outlines: dict) -> Iterator[Problem]:
    """Finds the axes and columns of a sweep that its trainer does not have.

    Examples are traced until all names are found, those that have been traced first.
    """
    problems: list[str] = []
    examples: list[tracing.Outline] = []
    try:
        bound = [binding.bind(sweep["trainer"], text) for text in sweep["examples"]]
        for one in sorted(bound, key=lambda one: _structure(*one) not in outlines):
            examples.append(_outline(*one, outlines))
            problems = _unknown_names(sweep, examples)
            if not problems:
                return
    except Exception:
        return  # An example is refused before, unless it is to be seen failing.
    yield from ((None, problem) for problem in problems)


def _unknown_names(
    sweep: Mapping[str, Any], examples: Sequence[tracing.Outline]
) -> list[str]:
    """Describes the axes and columns of a sweep that none of its examples has."""
    axes = {axis for example in examples for axis in example.axes} | {"hours"}
    rows = {column for example in examples for column in example.rows}
    validation, test = (
        {column for example in examples for column in example.columns(split)}
        for split in contract.SPLITS
    )
    rates = {f"{axis}_per_second" for axis in axes - {"hours"}}
    columns = {*rows, *validation, *axes, *rates, "training_seconds", "peak_memory_gib"}
    unknown = [
        _unknown(sweep, where, axis, "axis", axes)
        for where, axis in sweep["axes"]
        if axis not in axes
    ]
    for where, column in sweep["columns"]:
        known = test if where == "select.test" else columns
        if column not in known:
            unknown.append(_unknown(sweep, where, column, "column", known))
    return unknown


def _unknown(sweep, where: str, name: str, kind: str, known: set[str]) -> str:
    expected = errors.expected_one_of(name, _meant(name, known) or sorted(known))
    return (
        f"sweep {sweep['name']}, {where}: {sweep['trainer']} has no {kind} "
        f"{errors.shown(name)}; {expected}"
    )


def _meant(name: str, known: set[str]) -> list[str]:
    """Finds what a name may be short for: val_loss for validation_loss."""
    words = name.split("_")
    return [
        other
        for other in known
        if len(other.split("_")) == len(words)
        and all(map(str.startswith, other.split("_"), words))
    ]


def _outline(trainer: contract.Trainer, config: Any, outlines: dict) -> tracing.Outline:
    """Traces an example, unless one of its structure has been."""
    key = _structure(trainer, config)
    if key not in outlines:
        outlines[key] = tracing.outline(trainer, config)
    return outlines[key]


def _structure(trainer: contract.Trainer, config: Any) -> tuple:
    return trainer.name, jax.tree.structure(config)


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # A trainer may print.
        found = answer(json.load(sys.stdin))
    print(json.dumps(found))
