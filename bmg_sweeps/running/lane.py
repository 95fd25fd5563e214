"""A point in a pack: its record, and what it has come to since."""

import contextlib
import dataclasses
import functools
import pathlib
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from bmg_sweeps import errors
from bmg_sweeps.records import attempts, files, manifests, store
from bmg_sweeps.running import machine, numerics, programs
from bmg_sweeps.trainer import contract


class Misfit(Exception):
    """A checkpoint is whole, and cannot be gone on from as things are now."""


@dataclasses.dataclass
class Lane:
    """A point in a pack: its record, and what it has come to since."""

    storage: files.Storage
    record: store.Record  # As it was when the attempt began.
    attempt: attempts.Attempt
    stop: Mapping[str, float]
    tries: int
    provenance: dict[str, Any]
    raises: bool = False  # Whether an exception goes on, once it is committed.
    drops_misfit: bool = False  # Whether a checkpoint that does not fit may be lost.
    trainer: contract.Trainer | None = None  # Both are there once it is bound.
    config: Any = None  # Arrays in the leaves.
    noted: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # By trainer.
    misfit: str | None = None  # In what that is not what its record has.
    source: contract.LiveSource | None = None  # Where its trainer has a live one.
    has_spoiled_source: bool = False  # It refused what it was to go on from.
    rows: store.Rows = dataclasses.field(default_factory=dict)
    evaluations: dict[str, store.Rows] = dataclasses.field(default_factory=dict)
    training_seconds: float = 0.0
    reached: dict[str, float] = dataclasses.field(default_factory=dict)
    problem: str | None = None  # Why its numbers are lost.
    has_begun: bool = False  # What its record holds is this attempt's to go on from.
    is_closed: bool = False  # Committed for the last time.
    is_taken_over: bool = False  # By another process.
    is_interrupted: bool = False  # By storage, which lets nothing be committed.

    @contextlib.contextmanager
    def catching(self) -> Iterator[None]:
        """Lets an exception end this point, and none of its neighbors.

        Raises:
            MachineError: this machine cannot train any of them.
        """
        try:
            yield
        except attempts.Stale:
            self.is_closed = self.is_taken_over = True
        except files.StorageError:
            self.interrupt()
        except errors.MachineError:
            self.interrupt()
            raise
        except Exception as error:
            self.fail(error)
            if self.raises:
                raise

    def start(
        self,
        compiled: programs.Programs,
        state: Any,
        compile_seconds: float | None,
        source: contract.LiveSource | None = None,
    ) -> Any:
        """Takes up the last commit; returns its state, or else the one given."""
        self.source = source
        self.provenance |= machine.provenance(
            compiled.width, compiled.num_bytes, compile_seconds, self.attempt.number
        )
        self.provenance |= self.noted
        self.provenance["numerics"] = numerics.noted()
        found = self._checkpoint(compiled.state)
        if found is not None:
            self.has_begun = True
            state = found
            self.training_seconds = self.record.progress["hours"] * 3600
            self._join_provenance()
        if self.record.provenance.left_pack is not None:
            self.provenance["left_pack"] = self.record.provenance.left_pack
        axes = self.progress(state)
        unknown = [axis for axis in self.stop if axis not in axes]
        if unknown:
            raise ValueError(
                f"stop rule {unknown[0]}: expected one of the axes {', '.join(axes)}"
            )
        self.attempt.commit(provenance=self._made_by())
        self.provenance["began"] = round(time.time(), 3)
        return state

    def _checkpoint(self, shapes: Any) -> Any | None:
        """Reads the last commit; None where there is none, or none to go on from."""
        try:
            if self.record.damage:
                raise store.Damaged(self.record.damage)
            anew = self.record.begins_anew
            arrays = None if anew else store.state(self.storage, self.record)
            if arrays is None:
                return None
            num_leaves = len(jax.tree.leaves(shapes))
            arrays, saved = arrays[:num_leaves], arrays[num_leaves:]
            state = programs.unflatten(arrays, shapes)
            tables = {
                name: store.rows(self.storage, self.record, name)
                for name in store.TABLES
            }
            if state is not None:
                state = self._restored(state, saved)
        except store.Damaged as error:
            self.provenance["restarted"] = f"damaged: {error}"
            return None
        problem = self._problem_of(state)
        if problem is not None:
            if not self.drops_misfit:
                raise Misfit(f"{problem}; --retry begins anew, and loses what there is")
            self.provenance["restarted"] = problem
            return None
        if self.record.fallback:
            self.provenance["restarted"] = (
                f"{self.record.fallback}; from the commit before"
            )
        self.rows = tables.pop("rows")
        self.evaluations = {name: table for name, table in tables.items() if table}
        return state

    def _problem_of(self, state: Any | None) -> str | None:
        """Says why the last commit cannot be gone on from, if so.

        Args:
            state: of that commit; None where its arrays do not fit.
        """
        made_by = self.record.provenance
        if state is not None:
            return numerics.difference(made_by.numerics) or self.misfit
        kept = f", kept as .code/{made_by.code}.zip" if made_by.code else ""
        return (
            f"the checkpoint does not fit this code, but that of revision "
            f"{made_by.revision}{kept}"
        )

    def _restored(self, state: Any, saved: list[np.ndarray]) -> Any | None:
        """Restores the live source; None where there is none that saved arrays."""
        if self.source is None:
            return None if saved else state
        try:
            self.source.restore(saved)
        except ValueError as error:
            self.has_spoiled_source = True
            raise store.Damaged(errors.first_line(error)) from error
        return state

    def _join_provenance(self) -> None:
        """Adds what earlier attempts were made by, and the seconds that they took."""
        before, now = self.record.provenance, self.provenance
        revisions = [*self.record.revisions, now.get("revision")]
        now["revisions"] = list(dict.fromkeys(revisions))
        now["codes"] = list(dict.fromkeys([*self.record.codes, now.get("code")]))
        now["devices"] = list(dict.fromkeys([*self.record.devices, now["device"]]))
        for name in ("compile_seconds", "evaluation_seconds"):
            now[name] += getattr(before, name) or 0.0

    def progress(self, state: Any) -> dict[str, float]:
        """Amounts by axis, training hours last."""
        axes = self.trainer.progress(self.config, state)
        axes = {name: int(amount) for name, amount in axes.items()}
        return axes | {"hours": self.training_seconds / 3600}

    def settle(self, state: Any, is_stopping: bool, is_due: bool) -> None:
        """Commits where it is time to, and for good where the point is over."""
        progress = self.progress(state)
        is_done = all(progress[axis] >= n for axis, n in self.stop.items())
        is_over = is_done or is_stopping or self.problem is not None
        if is_over or is_due:
            failure = None
            if self.problem:
                failure = manifests.Failure("diverged", 0, "Diverged", self.problem)
                progress = self.reached  # The chunk that lost it does not count.
            self.provenance["ended"] = round(time.time(), 3)
            self.attempt.commit(
                progress=progress,
                state=programs.flatten(state) + self._saved(),
                rows=self.rows,
                provenance=self.provenance,
                failure=failure,
                release=is_over,
                **self.evaluations,
            )
            self.has_begun, self.is_closed = True, is_over
        self.reached = progress

    def _saved(self) -> list[np.ndarray]:
        return [] if self.source is None else self.source.save()

    def advance(self, rows, seconds: float, state: Any, is_finite: bool) -> None:
        """Adds the rows of a chunk that are new: those that go on along the first axis.

        Notes the first number of the last row, or of the state, that is not finite.
        """
        self.training_seconds += seconds
        axis = next(iter(self.reached))
        for i, amount in enumerate(rows[axis].tolist()):
            if amount > (self.rows[axis][-1] if self.rows else 0):
                _append(self.rows, {k: v[i] for k, v in rows.items()}, self._seconds())
        lost = [name for name in rows if self.rows and self.rows[name][-1] is None]
        if not lost and not is_finite:
            lost = [
                f"state{jax.tree_util.keystr(path)}"
                for path, leaf in jax.tree.leaves_with_path(state)
                if not bool(programs.all_finite([leaf]))
            ]
        if lost:
            amount = self.progress(state)[axis]
            self.problem = f"{lost[0]} is not finite by {axis}={amount}"

    def is_evaluation_due(self, state: Any) -> bool:
        """Whether the chunk has passed a multiple of the interval.

        Raises:
            ValueError: a chunk is longer than the interval, so that sooner or later it
                passes two multiples, one of which would never be evaluated.
        """
        if self.is_closed or self.problem:
            return False
        axis, amount = next(iter(self.progress(state).items()))
        interval, before = int(self.config.evaluation_interval), self.reached[axis]
        if amount - before > interval:
            raise ValueError(
                f"evaluation_interval = {interval}: expected at least "
                f"{amount - before}, the {axis} of one chunk"
            )
        evaluated = self.evaluations.get("validation", {}).get(axis, [0])[-1]
        return amount // interval > evaluated // interval

    def add_evaluation(self, state: Any, split: str, metrics, seconds: float) -> None:
        """Adds a row of one split, its columns named by it."""
        axes = {name: n for name, n in self.progress(state).items() if name != "hours"}
        row = {f"{split}_{name}": value for name, value in metrics.items()}
        table = self.evaluations.setdefault(split, {})
        _append(table, jax.tree.map(np.asarray, axes | row), self._seconds())
        self.provenance["evaluation_seconds"] += round(seconds, 6)

    def interrupt(self) -> None:
        """Lets go of the point as its last commit left it: the fault is not its own."""
        self.is_closed = self.is_interrupted = True
        self.attempt.abandon()

    def fail(self, error: Exception) -> None:
        """Commits why the point raised."""
        self._close(_failure(error, self.tries + 1))

    def leave_pack(self, error: Exception) -> None:
        """Commits that the point shall go on alone, because its pack raised."""
        self._close(None, left_pack=errors.described(error))

    def _close(self, failure: manifests.Failure | None, **noted: str) -> None:
        """Lets go of the point, whatever stands in the way of a commit."""
        self.is_closed = True
        try:
            self._commit_last(failure, self._made_by() | noted)
        except attempts.Stale:
            self.is_taken_over = True
        except files.StorageError:
            self.interrupt()
        finally:
            self.attempt.end()

    def _made_by(self) -> dict[str, Any]:
        """Says by what the state and rows are made that its record holds."""
        if self.has_begun or not self.record.progress or self.record.begins_anew:
            return self.provenance
        return self.record.provenance.as_dict()

    def _commit_last(
        self, failure: manifests.Failure | None, provenance: Mapping[str, Any]
    ) -> None:
        """Commits how the point ended; that alone, where the rest cannot be written."""
        commit = functools.partial(self.attempt.commit, failure=failure, release=True)
        try:
            commit(provenance=provenance)
        except (attempts.Stale, files.StorageError):
            raise
        except Exception:
            commit()

    def _seconds(self) -> float:
        return round(self.training_seconds, 3)


def _append(table: store.Rows, row: Mapping[str, np.generic], seconds: float) -> None:
    """Adds a row. Where columns have come or gone since, None stands in their place."""
    length = len(next(iter(table.values()), []))
    values = {name: _number(value) for name, value in row.items()}
    values["training_seconds"] = seconds
    for name in dict.fromkeys((*table, *values)):
        table.setdefault(name, [None] * length).append(values.get(name))


def _number(value: np.generic) -> int | float | None:
    """Writes a float32 with as few digits as tell it apart; None where not finite.

    A truth value is 1 or 0.
    """
    if value.dtype == bool or np.issubdtype(value.dtype, np.integer):
        return int(value)
    return float(str(value)) if np.isfinite(value) else None


def _failure(error: Exception, tries: int) -> manifests.Failure:
    """Describes an exception by its type, first line and last frames."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return manifests.Failure(
        kind="failed",
        tries=store.TRIES if isinstance(error, Misfit) else tries,
        # Gin raises through a proxy whose class is named like the exception.
        type=type(error).__name__,
        message=errors.first_line(error),
        frames=tuple(
            f"{pathlib.Path(f.filename).name}:{f.lineno} in {f.name}" for f in frames
        ),
    )
