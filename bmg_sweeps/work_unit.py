"""One point: bind, compile, train, commit.

The only user of gin's global configuration, of `jax.jit` and of the training loop. It
never knows which setting it runs: a trainer is a module with the contract of the README
("How to add a trainer"), and everything else about a point is in its record.

    python -m bmg_sweeps.work_unit < points.json

checks every point of a plan, for a driver that imports neither JAX nor a trainer.
"""

import contextlib
import dataclasses
import functools
import importlib
import json
import os
import pathlib
import platform
import re
import sys
import time
import traceback
import types
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

import gin
import jax
import jax.numpy as jnp
import numpy as np

from bmg_sweeps import errors, files, store

COMMIT_SECONDS = 30.0  # Between commits, and up to a chunk more; a kill loses that.
_PACKAGES = ("jax", "jaxlib", "dm-haiku", "optax", "numpy", "gin-config", "ray")


def bind(trainer: str, gin_text: str) -> tuple[types.ModuleType, Any]:
    """Makes a point's `Config` from its gin text, and nothing of the last point's.

    Args:
        trainer: name of a module in trainers/.
        gin_text: imports it, and binds every field of its `Config`.

    Returns:
        The trainer's module and the checked config.

    Raises:
        ValueError: a binding is unknown, or the trainer's `check` refuses a value.
    """
    gin.clear_config()
    gin.parse_config(gin_text)
    module = importlib.import_module(f"trainers.{trainer}")
    config = module.Config()
    module.check(config)
    return module, config


def run(
    storage: files.Storage,
    trainer: str,
    point_id: str,
    stop: Mapping[str, float],
    *,
    should_stop: Callable[[], bool] = lambda: False,
    retry: bool = False,
    launch: Mapping[str, Any] | None = None,
) -> str:
    """Trains a point until the stop rule is met, from where its record stands.

    A point that raises is tried again, here, until its tries are used up.

    Args:
        storage: of the records.
        trainer: of the point.
        point_id: of the point, declared before.
        stop: amount by axis of progress.
        should_stop: asked after every chunk; if true, the point commits and ends.
        retry: whether to try a failed or diverged point again.
        launch: provenance that the launch adds, such as the fingerprint of its `code`.

    Returns:
        The point's status afterwards, as `store.status` says it, or "busy". Where
        storage fails for long it is "missing": the point goes on from its last commit.
    """
    try:
        return _run(storage, trainer, point_id, stop, should_stop, retry, launch or {})
    except files.StorageError as error:
        print(f"point {point_id} is interrupted: {error}", file=sys.stderr)
        return "missing"


def _run(storage, trainer, point_id, stop, should_stop, retry, launch) -> str:
    while True:
        record = store.verify(storage, store.read(storage, trainer, point_id))
        status = store.status(record, stop, launch.get("code"))
        is_retried = retry and status in ("failed", "diverged")
        if status != "missing" and not is_retried:
            return "busy" if status == "running" else status
        if should_stop():
            return status
        tries = 0 if is_retried else (record.failure or {}).get("tries", 0)
        retry = False
        try:
            record = store.verify(storage, record, store.PARTS)
            with store.holding(storage, record) as attempt:
                _run_attempt(storage, record, attempt, stop, should_stop, launch, tries)
        except (store.Busy, store.Stale):
            return "busy"


def _run_attempt(storage, record, attempt, stop, should_stop, launch, tries) -> None:
    """Commits how it ended, whatever that is; raises where it no longer counts."""
    provenance = dict(launch)
    try:
        module, config = bind(
            record.trainer, store.gin_text(storage, record.trainer, record.id)
        )
        with module.open_source(config) as source:
            work = _start(storage, record, module, config, source, provenance)
            provenance["attempt"] = attempt.number
            attempt.commit(provenance=provenance)  # Compiling may have outlasted it.
            _train(work, attempt, provenance, stop, should_stop)
    except (store.Stale, files.StorageError):
        raise  # No fault of the point's.
    except Exception as error:
        attempt.commit(
            provenance=provenance,
            failure=_failure(error) | {"kind": "failed", "tries": tries + 1},
            release=True,
        )


@dataclasses.dataclass
class _Work:
    """A point in training."""

    module: types.ModuleType
    config: Any
    source: Any
    programs: "_Programs"
    state: Any
    rows: store.Rows
    training_seconds: float

    def progress(self) -> dict[str, float]:
        axes = self.module.progress(self.config, self.state)
        axes = {name: int(amount) for name, amount in axes.items()}
        return axes | {"hours": self.training_seconds / 3600}


def _start(storage, record, module, config, source, provenance) -> _Work:
    """Initializes a point, or takes up the state of its last commit."""
    config = jax.tree.map(jnp.asarray, config)
    key = jax.random.key(config.seed)
    programs = _programs(module, config, key, source, provenance)
    state, rows = _checkpoint(storage, record, programs, provenance)
    if state is None:
        state, rows, hours = programs.init(config, key, source), {}, 0.0
    else:
        hours = record.progress["hours"]
    return _Work(module, config, source, programs, state, rows, hours * 3600)


def _checkpoint(storage, record, programs, provenance) -> tuple[Any, store.Rows]:
    """Reads the last commit; None where there is none, or none to go on from."""
    try:
        if record.damage:
            raise store.Damaged(record.damage)
        arrays = None if record.begins_anew else store.state(storage, record)
        if arrays is None:
            return None, {}
        state, rows = _unflatten(arrays, programs.state), store.rows(storage, record)
    except store.Damaged as error:
        provenance["restarted"] = f"damaged: {error}"
        return None, {}
    if state is None:
        provenance["restarted"] = "the checkpoint does not fit this code's state"
        return None, {}
    if record.fallback:
        provenance["restarted"] = f"{record.fallback}; from the commit before"
    before = record.provenance
    revisions = before.get("revisions", [before.get("revision")])
    provenance["revisions"] = list(
        dict.fromkeys([*revisions, provenance.get("revision")])
    )
    return state, rows


def _train(work, attempt, provenance, stop, should_stop) -> None:
    """Advances by chunks, and commits from time to time and at the end."""
    unknown = [axis for axis in stop if axis not in work.progress()]
    if unknown:
        axes = ", ".join(work.progress())
        raise ValueError(f"stop rule {unknown[0]}: expected one of the axes {axes}")
    committed = time.monotonic()
    provenance["began"] = round(time.time(), 3)
    reached = work.progress()
    while True:
        progress = work.progress()
        is_over = all(progress.get(a, 0) >= n for a, n in stop.items()) or should_stop()
        is_due = time.monotonic() - committed >= COMMIT_SECONDS
        problem = _not_finite(work, progress)
        if is_over or is_due or problem:
            failure = None
            if problem:
                failure = {"kind": "diverged", "type": "Diverged", "message": problem}
                failure |= {"frames": [], "tries": 0}
                progress = reached  # The chunk that lost it does not count.
            provenance["ended"] = round(time.time(), 3)
            attempt.commit(
                progress=progress,
                state=_flatten(work.state),
                rows=work.rows,
                provenance=provenance,
                failure=failure,
                release=bool(is_over or problem),
            )
            committed = time.monotonic()
        if is_over or problem:
            return
        reached = progress
        began = time.perf_counter()
        work.state, rows = work.programs.train(work.config, work.state, work.source)
        rows = jax.device_get(jax.block_until_ready(rows))
        work.training_seconds += time.perf_counter() - began
        _append(work, rows)


def _append(work: _Work, rows: Mapping[str, np.ndarray]) -> None:
    """Adds the rows that are new: those in which the first axis has advanced."""
    axis = next(iter(work.progress()))
    columns = {name: np.asarray(column) for name, column in rows.items()}
    for i, amount in enumerate(columns[axis].tolist()):
        if amount > (work.rows[axis][-1] if work.rows else 0):
            row = {name: _number(column[i]) for name, column in columns.items()}
            row["training_seconds"] = round(work.training_seconds, 3)
            for name, value in row.items():
                work.rows.setdefault(name, []).append(value)


def _number(value: np.generic) -> int | float | None:
    """Writes a float32 with as few digits as tell it apart; None where not finite."""
    if np.issubdtype(value.dtype, np.integer):
        return int(value)
    return float(str(value)) if np.isfinite(value) else None


def _not_finite(work: _Work, progress: Mapping[str, float]) -> str | None:
    """Names the first number of the state, or of the last row, that is not finite."""
    axis, amount = next(iter(progress.items()))
    for name, column in work.rows.items():
        if column[-1] is None:
            return f"{name} is not finite by {axis}={amount}"
    if not bool(work.programs.is_finite(work.state)):
        for path, leaf in jax.tree.leaves_with_path(work.state):
            if not bool(_is_finite([leaf])):
                name = jax.tree_util.keystr(path)
                return f"state{name} is not finite by {axis}={amount}"
    return None


def _is_finite(state: Any) -> jax.Array:
    return jnp.array(
        [
            jnp.all(jnp.isfinite(leaf))
            for leaf in jax.tree.leaves(state)
            if jnp.issubdtype(leaf.dtype, jnp.floating)
        ]
    ).all()


@dataclasses.dataclass(frozen=True)
class _Programs:
    """The compiled functions of one structure, and the shape of its state."""

    init: Callable[..., Any]
    train: Callable[..., Any]
    is_finite: Callable[..., Any]
    state: Any


_COMPILED: dict[Any, _Programs] = {}  # One entry for each structure in this process.


def _programs(module, config, key, source, provenance) -> _Programs:
    """Compiles a structure on its first point, and notes what that took."""
    shapes = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(source)]
    name = (module.__name__, jax.tree.structure(config), str(shapes))
    began = time.perf_counter()
    is_new = name not in _COMPILED
    if is_new:
        init = jax.jit(module.init)
        state = jax.eval_shape(init, config, key, source)
        train = jax.jit(module.train, donate_argnums=1)
        _COMPILED[name] = _Programs(
            init=init.lower(config, key, source).compile(),
            train=train.lower(config, state, source).compile(),
            is_finite=jax.jit(_is_finite).lower(state).compile(),
            state=state,
        )
    device = jax.devices()[0]
    provenance |= {
        "compilations": int(is_new),
        "compile_seconds": round(time.perf_counter() - began, 3),
        "device": device.device_kind if device.platform != "cpu" else "cpu",
        "threads": int(os.environ.get("NPROC", os.cpu_count() or 1)),
        "pack_width": 1,
        "process": os.getpid(),
        "packages": _packages(),
    }
    return _COMPILED[name]


def _flatten(state: Any) -> list[np.ndarray]:
    return [
        np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
        for leaf in jax.tree.leaves(state)
    ]


def _unflatten(arrays: list[np.ndarray], shapes: Any) -> Any | None:
    """Rebuilds a state; None where the arrays do not have the shapes it needs."""
    leaves, tree = jax.tree.flatten(shapes)
    if len(leaves) != len(arrays):
        return None
    state = []
    for array, leaf in zip(arrays, leaves, strict=True):
        if _is_key(leaf):
            array = jax.random.wrap_key_data(jnp.asarray(array))
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            return None
        state.append(jnp.asarray(array))
    return jax.tree.unflatten(tree, state)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


_FOLDERS = re.compile(r"(?<![\w.:/])/(?:[^\s/'\"]+/)+")


def _failure(error: Exception) -> dict[str, Any]:
    """Describes an exception by its type, first line and last frames."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return {
        # Gin raises through a proxy whose class is named like the exception.
        "type": type(error).__name__,
        # Where files lie is this machine's affair.
        "message": _FOLDERS.sub("", errors.first_line(error)),
        "frames": [
            f"{pathlib.Path(f.filename).name}:{f.lineno} in {f.name}" for f in frames
        ],
    }


@functools.cache
def _packages() -> dict[str, str]:
    return {name: metadata.version(name) for name in _PACKAGES} | {
        "python": platform.python_version()
    }


def _check_one(trainer: str, gin_text: str) -> str | None:
    try:
        bind(trainer, gin_text)
    except Exception as error:
        return errors.first_line(error)
    return None


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # A trainer may print.
        problems = [_check_one(*point) for point in json.load(sys.stdin)]
    print(json.dumps(problems))
