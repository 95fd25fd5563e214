"""A trial's points: bind, compile, train, evaluate, commit.

The only user of gin's global configuration and of the training loop. It never knows
which setting it runs: `trainer.contract` says what a trainer is, and everything else
about a point is in its record.

Points of one structure may train together, as a pack: one compiled call advances all of
them. Each keeps its own record, stop rule and failure; those that are over stay in the
pack, unrecorded, until the last one is.
"""

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax

from bmg_sweeps import errors
from bmg_sweeps.records import attempts, files, leases, store
from bmg_sweeps.running import binding, noted, numerics, pack, programs
from bmg_sweeps.running.lane import Lane, Misfit
from bmg_sweeps.tasks import data_sets
from bmg_sweeps.trainer import contract


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """What a launch asks of a trial: points of one structure, and how to train them."""

    trainer: str
    stops: Mapping[str, Mapping[str, float]]  # Amount by axis, by point id.
    pack: int | None = 1  # Points that train together; None is for the device to say.
    retry: bool = False  # Whether failed and diverged points are tried once more.
    raises: bool = False  # Whether an exception goes on, once its failure is committed.
    data: str | None = None  # Folder of data sets; None is what the environment names.
    lost: Sequence[str] = ()  # Tokens of leases whose holders were found lost.
    is_only: bool = False  # Whether nothing else of this launch works on the points.
    launch: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # Provenance.

    @property
    def owner(self) -> str:
        """How others that want the same points call who trains them."""
        return leases.owner_of(self.launch.get("launch", "unknown"))


def run(
    storage: files.Storage,
    task: Task,
    should_stop: Callable[[], bool] = lambda: False,
) -> dict[str, str]:
    """Trains points until their stop rules are met, from where their records stand.

    A point that raises is tried again, here, until its tries are used up. A pack that
    raises without saying for which point is taken apart: its points go on alone.

    Args:
        storage: of the records, where the points are declared.
        task: which points, and how.
        should_stop: asked after every chunk; if true, the points commit and end.

    Raises:
        Exception: what a point raised, if the task says so.
        MachineError: this machine lacks what the points need, such as their data.

    Returns:
        By point id, the status afterwards, as `store.status` says it, or "busy". Where
        storage fails for long it is "missing": the point goes on from its last commit.
    """
    statuses = dict.fromkeys(task.stops, "missing")
    numerics.fix()
    try:
        with data_sets.in_folder(task.data):
            _run(storage, task, should_stop, statuses)
    except files.StorageError as error:
        print(f"interrupted: {error}", file=sys.stderr)
    return statuses


def _run(storage, task: Task, should_stop, statuses: dict[str, str]) -> None:
    """Runs packs until nothing is left to do; keeps the statuses up to date."""
    waiting = dict.fromkeys(task.stops)  # As an ordered set.
    forgiven: set[str] = set()  # Tried once more, as `task.retry` says.
    while True:
        keys = [(task.trainer, i) for i in waiting]
        todo, code = [], task.launch.get("code")
        records = attempts.patiently(
            lambda k=keys: store.read_all(storage, k, verify=True)
        )
        task = _without_own(task, records.values())
        for i, record in records.items():
            status = store.status(record, task.stops[i], code, task.lost)
            statuses[i] = "busy" if status == "running" else status
            is_lost = task.retry and i not in forgiven
            if status == "missing" or (is_lost and status in ("failed", "diverged")):
                todo.append(record)
        if not todo or should_stop():
            return
        if task.pack is None:
            task = dataclasses.replace(task, pack=_best_width(storage, todo))
        members, width = _next_pack(todo, task.pack)
        forgiven |= {record.id for record in members}
        lanes = _take(storage, members, task, statuses)
        for record in members:
            if record.id not in {lane.record.id for lane in lanes}:
                statuses[record.id] = "busy"
                del waiting[record.id]
        _run_pack(lanes, width, should_stop)
        for lane in lanes:
            if lane.is_taken_over or lane.is_interrupted:
                statuses[lane.record.id] = "busy" if lane.is_taken_over else "missing"
                del waiting[lane.record.id]


def _without_own(task: Task, records: Iterable[store.Record]) -> Task:
    """Counts leases of this launch as lost, where nothing else of it has the points.

    They are of a process that died, and of which this one takes the place; maybe on
    another machine, whose kernel knows nothing of it.
    """
    held = [r.manifest.lease for r in records if r.manifest.lease is not None]
    own = {one.token for one in held if task.is_only and one.owner == task.owner}
    return dataclasses.replace(task, lost=sorted({*task.lost, *own}))


def _next_pack(records, new_width: int) -> tuple[list[store.Record], int]:
    """Chooses the points that train together next, and the width of their pack."""
    width = records[0].pack_width
    alike = [record for record in records if record.pack_width == width]
    if width is None:
        width = min(new_width, len(alike))
    return alike[:width], width


def _bound(storage, record) -> tuple[contract.Trainer, Any]:
    """Binds a point as its record says."""
    gin_text = store.gin_text(storage, record.trainer, record.id)
    return binding.bind(record.trainer, gin_text)


def _best_width(storage, records) -> int:
    """Says how many points to train together: those that fit a GPU, or are fastest."""
    try:
        trainer, config = _bound(storage, records[0])
        config = pack.as_arrays(config)
        with trainer.source(config) as source:
            if isinstance(source, contract.LiveSource):
                return 1  # It is one point's own.
            if jax.default_backend() == "cpu":
                return programs.fastest_width(trainer, config, source, len(records))
            single, _ = programs.compiled(trainer, [config], source)
    except Exception:
        return 1  # What is wrong is recorded when the point runs.
    return programs.fitting_width(single, jax.devices()[0])


def _take(storage, members, task: Task, statuses) -> list[Lane]:
    """Takes hold of the points that nobody else has."""
    lanes: list[Lane] = []
    try:
        for record in members:
            record = store.verify(storage, record, store.PARTS)
            failure = record.failure if statuses[record.id] == "missing" else None
            with contextlib.suppress(attempts.Busy):
                lanes.append(
                    Lane(
                        storage=storage,
                        record=record,
                        attempt=attempts.begin(storage, record, task.owner, task.lost),
                        stop=task.stops[record.id],
                        tries=failure.tries if failure else 0,
                        raises=task.raises,
                        drops_misfit=_is_misfit(statuses[record.id], record),
                        provenance=dict(task.launch),
                    )
                )
    except files.StorageError:
        for lane in lanes:
            lane.interrupt()
        raise
    return lanes


def _is_misfit(status: str, record: store.Record) -> bool:
    """Whether an earlier launch has told that the checkpoint does not fit."""
    return status == "failed" and record.failure.type == Misfit.__name__


def _run_pack(lanes: list[Lane], width: int, should_stop) -> None:
    """Commits how every point ended, whatever that is.

    Raises:
        MachineError: this machine cannot train them; they are let go of.
    """
    try:
        _bind(lanes)
        _train([lane for lane in lanes if not lane.is_closed], width, should_stop)
    except errors.MachineError:
        for lane in lanes:
            if not lane.is_closed:
                lane.interrupt()
        raise


def _bind(lanes: list[Lane]) -> None:
    """Binds every point, and asks its trainer what its numbers depend on."""
    for lane in lanes:
        with lane.catching():
            lane.trainer, config = _bound(lane.storage, lane.record)
            lane.noted = noted.by_trainer(lane.trainer, config)
            lane.misfit = noted.difference(lane.trainer, config, lane.record.provenance)
            lane.config = pack.as_arrays(config)


def _train(lanes: list[Lane], width: int, should_stop) -> None:
    """Trains points, all of which are bound, until every one of them is over."""
    if not lanes:
        return
    try:
        with contextlib.ExitStack() as opened:
            pack.Pack(lanes, width, opened).train(should_stop)
    except errors.MachineError:
        raise
    except Exception as error:
        for lane in lanes:
            if not lane.is_closed and width == 1:
                lane.fail(error)
            elif not lane.is_closed:
                lane.leave_pack(error)
        if any(lane.raises for lane in lanes):
            raise
