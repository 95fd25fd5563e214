"""Runs what a plan says is missing, as Ray Tune trials.

Ray Tune slots the trials, keeps their actors, and starts them again when a process or
a node dies. It is told nothing but which points there are: a trial reads its points
from storage, goes on from their checkpoints there, and leaves their records there, so
that a retried trial, a second launch and a resumed one are the same thing.
"""

import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from bmg_sweeps import errors
from bmg_sweeps.launching import (
    cluster,
    compiled,
    dealing,
    nodes,
    planning,
    revision,
    sending,
    temporary,
)
from bmg_sweeps.records import attempts, files, leases, manifests, store
from bmg_sweeps.sweep.point import Point

_POLL_SECONDS = 1.0
_AHEAD = 200  # Trials that wait for a cluster to grow; Tune's own number.
MAX_DEATHS = 3  # A trial fails after its process has died this often.
_LISTED = 5  # Points that one line names.
_REFUSED = (
    f"storage refused for {attempts.RETRY_SECONDS:.0f} s; expected it to answer: they "
    f"stand as last committed"
)
_STOPPED: set[str] = set()  # Launches in this process that the user has stopped.


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a launch ended."""

    is_stopped: bool  # Whether the user stopped it before all was done.
    lost: tuple[str, ...]  # Lines about trials that died without a word in a record.


def run(
    storage: files.Storage,
    plan: planning.Plan,
    resources: cluster.Resources,
    *,
    pack: int | None = None,
    retry: bool = False,
    ranks: Mapping[str, int] | None = None,
    watch: Callable[[], contextlib.AbstractContextManager],
) -> Outcome:
    """Trains the missing points of a plan, until none is left or the user stops it.

    Args:
        storage: where the records are.
        plan: what to run; `checking.check` has passed it.
        resources: what to run it on.
        pack: points of one structure that train together. None is 1 on CPUs, and as
            many as the memory holds on a GPU. `cluster.AUTO_PACK` is the same on a
            GPU, and on CPUs as many as trials find to be fastest.
        retry: whether failed and diverged points are tried once more.
        ranks: by point id, who goes first, as `rungs.ranks` says it. Unless given,
            points of one structure go one after the other.
        watch: opens a context that shows progress.

    Returns:
        How it ended. How the points ended is in their records.

    Raises:
        UserError: the resources asked for cannot be had, or the code has changed since
            the plan was made.
    """
    todo = list(plan.to_run)
    elsewhere = [p for p in plan.points if plan.statuses[p.id] == "running"]
    lost: list[str] = []
    with _copied_code(storage, plan) as code, watch():
        launch = _Launch(
            storage=storage,
            plan=plan,
            resources=resources,
            code=code,
            pack=pack,
            retry=retry,
            ranks=ranks or {},
            provenance={
                "launch": uuid.uuid4().hex[:8],
                "revision": revision.revision(),
            },
            holders=leases.Watch(storage),
            records=dict(plan.records),
        )
        while (todo or elsewhere) and not launch.is_stopped:
            if todo:
                busy, reasons = _run_trials(launch, todo)
                elsewhere, lost = elsewhere + busy, lost + reasons
            todo, elsewhere = _wait(launch, elsewhere)
    return Outcome(launch.is_stopped, tuple(lost))


def train_points(config: Mapping[str, Any]) -> dict[str, Any]:
    """Runs one trial, in a process of Ray's.

    Args:
        config: the trial's points, and the launch's constants.

    Returns:
        Under "busy", the ids of points that others work on; under "left", those that
        are not over; under "seconds", how long a point took, or None unless all are
        done.

    Raises:
        MachineError: this node lacks what the points need.
    """
    # The cache is in the node's own folder, and is set before JAX is imported. JAX is
    # imported below, because the driver imports this module and must not import JAX.
    compiled.use_cache()
    import ray

    from bmg_sweeps.running import work_unit

    constants, told = config["launch"], json.loads(config["task"])
    storage = files.open_storage(constants["storage"])
    nodes.check_this(
        storage, told["trainer"], next(iter(told["stops"])), constants["gpus"]
    )
    flag = _stop_flag(constants["provenance"])
    noted = {
        "node": ray.get_runtime_context().get_node_id()[:8],
        "code": constants["codes"][told["trainer"]],
    }
    task = work_unit.Task(
        **told,
        retry=constants["retry"],
        lost=constants["lost"],
        launch=constants["provenance"] | noted,
        is_only=True,
    )
    parts = [task]
    if dealing.is_batch(told):
        parts = [dataclasses.replace(task, stops={i: s}) for i, s in task.stops.items()]
    statuses: dict[str, str] = {}
    began = time.monotonic()
    with leases.one_pulse(storage):
        for part in parts:
            statuses |= work_unit.run(storage, part, lambda: _is_asked(storage, flag))
    seconds = (time.monotonic() - began) / len(statuses)
    return {
        "busy": [i for i, status in statuses.items() if status == "busy"],
        "left": [i for i, status in statuses.items() if status == "missing"],
        "seconds": seconds if set(statuses.values()) == {"done"} else None,
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Launch:
    """What stays the same from the first trial to the last."""

    storage: files.Storage
    plan: planning.Plan
    resources: cluster.Resources
    code: str  # The folder that all trials import from, whatever is edited meanwhile.
    pack: int | None
    retry: bool
    ranks: Mapping[str, int]
    provenance: Mapping[str, str]
    holders: leases.Watch  # Of points that others work on.
    records: dict[str, store.Record]  # As they were last seen.
    alone: set[str] = dataclasses.field(default_factory=set)  # In no batch any more.
    # Trials that died, by a point of theirs and where it stood.
    deaths: collections.Counter[tuple] = dataclasses.field(
        default_factory=collections.Counter
    )

    @property
    def owner(self) -> str:
        """How its trials are called in the leases that they hold."""
        return leases.owner_of(self.provenance["launch"])

    @property
    def is_stopped(self) -> bool:
        """Whether the user has asked to stop."""
        return self.provenance["launch"] in _STOPPED


@contextlib.contextmanager
def _copied_code(storage: files.Storage, plan: planning.Plan) -> Iterator[str]:
    """Copies the code that trials import, and keeps it with the records.

    Raises:
        UserError: it is no longer that of the plan.
    """
    with temporary.folder("bmg_code_") as folder:
        code = os.path.join(folder, "sent")
        sending.copy(pathlib.Path(code))
        for trainer, now in revision.fingerprints(plan.codes).items():
            if now != plan.codes[trainer]:
                raise errors.UserError(
                    f"trainer {trainer}: its code has changed since it was checked; "
                    f"expected the same: run the command again"
                )
        revision.keep(storage, {plan.codes[p.trainer] for p in plan.to_run})
        yield code


def _is_asked(storage: files.Storage, flag: str) -> bool:
    """Whether trials are asked to end; no, where the storage does not answer."""
    with contextlib.suppress(files.StorageError):
        return storage.exists(flag)
    return False


def _stop_flag(provenance: Mapping[str, str]) -> str:
    """Names the object whose presence asks a launch's trials to commit and end."""
    return f".stop-{provenance['launch']}"


def _run_trials(
    launch: _Launch, points: Sequence[Point]
) -> tuple[list[Point], list[str]]:
    """Runs points on Ray.

    Returns:
        Points to look at again, because others work on them, their node died or they
        were in a batch or a pack with one that died; and lines that say what trials
        died of, or raised.
    """
    constants = {
        "storage": cluster.storage_uri(launch.storage),
        "provenance": launch.provenance,
        "codes": launch.plan.codes,
        "retry": launch.retry,
        "gpus": launch.resources.gpus,
        "lost": sorted(launch.holders.lost),
    }
    with (
        cluster.connect(launch.resources, launch.storage, launch.code) as (ray, slots),
        # Within: starting Ray reslots the handlers.
        _stop_on_signal(launch),
    ):
        texts = ((p.trainer, p.id, p.gin_text()) for p in points)
        store.declare_all(launch.storage, texts)
        dealer = _dealer(launch, points, slots)
        before = cluster.alive(ray).keys()
        results = _fit(ray.tune, dealer, constants, launch, slots)
        has_lost_nodes = not before <= cluster.alive(ray).keys()
        is_raised = ray.exceptions.RayTaskError
    open_: set[str] = set()
    lost: dict[str, list[str]] = {}  # Points by what their trials died of.
    for result in results:
        if not result.error:
            open_ |= set(result.metrics["busy"])
            if result.metrics["left"] and not launch.is_stopped:
                lost.setdefault(_REFUSED, []).extend(result.metrics["left"])
            continue
        task = json.loads(result.config["task"])
        if isinstance(result.error, is_raised):
            reason = errors.last_line(result.error)
            lost.setdefault(reason, []).extend(task["stops"])
            continue
        is_stuck = _count_death(launch, task) >= MAX_DEATHS
        if is_stuck or not (has_lost_nodes or dealing.is_batch(task)):
            lost.setdefault(_record_death(launch, task), []).extend(task["stops"])
            again = len(task["stops"]) > 1
        else:
            launch.alone.update(task["stops"])
            again = True
        open_ |= set(task["stops"]) if again else set()
    lines = [f"{_listed(ids)}: {reason}" for reason, ids in lost.items()]
    return [p for p in points if p.id in open_], lines


def _listed(ids: Sequence[str]) -> str:
    """Lists the first few of many points."""
    more = f" and {len(ids) - _LISTED:,} more" if len(ids) > _LISTED else ""
    return ", ".join(ids[:_LISTED]) + more


def _count_death(launch: _Launch, task: Mapping[str, Any]) -> int:
    """Returns how many trials of a task's points have died where these stand now."""
    numbers = []
    for i in task["stops"]:
        record = store.read(launch.storage, task["trainer"], i)
        where = (i, *record.progress.items())
        launch.deaths[where] += 1
        numbers.append(launch.deaths[where])
    return max(numbers)


def _record_death(launch: _Launch, task: Mapping[str, Any]) -> str:
    """Notes in the records that a trial's process died; returns what it died of.

    A process that dies again and again has most likely run out of memory. A point that
    trained alone has failed; the points of a pack go on alone.
    """
    reason = f"its process died {MAX_DEATHS} times, most likely because memory ran out"
    for i in task["stops"]:
        _fail(launch, task, i, reason)
    return reason


def _fail(launch: _Launch, task: Mapping, point_id: str, reason: str) -> None:
    """Notes it, though the lease of the dead process may not be seen to have ended."""
    storage = launch.storage
    record = store.read(storage, task["trainer"], point_id)
    lease = record.manifest.lease
    lost = {lease.token} if lease and lease.owner == launch.owner else set()
    if store.status(record, task["stops"][point_id], lost=lost) != "missing":
        return
    provenance, failure = record.provenance.as_dict(), None
    if len(task["stops"]) > 1:
        provenance["left_pack"] = reason
    else:
        failure = manifests.Failure("failed", MAX_DEATHS, "Died", reason)
    with contextlib.suppress(attempts.Busy, attempts.Stale):
        attempts.begin(storage, record, lost=lost).commit(
            failure=failure, provenance=provenance, release=True
        )


def _dealer(launch: _Launch, points: Sequence[Point], slots: int) -> dealing.Dealer:
    """Divides points among trials; new ones that are alike may be in a batch."""
    plan, pack, records = launch.plan, launch.pack, launch.records
    by_id = {p.id: p for p in points}
    if pack is None and not launch.resources.gpus:
        pack = 1

    def kind(task: Mapping[str, Any]) -> Hashable | None:
        first, *others = task["stops"]
        is_new = records[first].manifest.attempt == 0
        if others or task["pack"] != 1 or not is_new or first in launch.alone:
            return None
        return by_id[first].structure, tuple(task["stops"][first].items())

    tasks = dealing.tasks(
        points,
        plan.stops,
        {p.id: records[p.id].pack_width for p in points},
        slots=slots,
        pack=None if pack == cluster.AUTO_PACK else pack,
        ranks=launch.ranks,
    )
    return dealing.Dealer(tasks, kind, slots)


def _fit(
    tune: Any,
    dealer: dealing.Dealer,
    constants: Mapping[str, Any],
    launch: _Launch,
    slots: int,
) -> list:
    """Runs the trials; returns their results, or none where the user stopped them."""
    # A cluster grows for the trials that wait. Else few wait: their batches are made
    # before the trials that run show how long points take.
    waiting = _AHEAD if launch.resources.autoscaling else slots
    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(waiting)
    trainable = tune.with_resources(
        train_points, {"cpu": launch.resources.cpus, "gpu": launch.resources.gpus}
    )
    with temporary.folder("bmg_sweeps_") as folder:
        tuner = tune.Tuner(
            trainable,
            param_space={"launch": dict(constants)},
            tune_config=tune.TuneConfig(
                search_alg=dealing.searcher(dealer),
                num_samples=len(launch.plan.points),  # At most.
                reuse_actors=True,
                trial_dirname_creator=lambda trial: min(_stops(trial.config)),
            ),
            run_config=tune.RunConfig(
                name="launch",
                storage_path=folder,
                verbose=0,
                # For a process or node that dies; what a point raises is caught.
                failure_config=tune.FailureConfig(max_failures=MAX_DEATHS - 1),
                callbacks=[_end_when_stopped(tune, launch.provenance["launch"])],
            ),
        )
        try:
            return list(tuner.fit())
        except _Stopped:
            return []


def _stops(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the stop rules of a trial's points, by their ids."""
    return json.loads(config["task"])["stops"]


class _Stopped(Exception):
    """All trials that ran when the user asked to stop have committed and ended."""


def _end_when_stopped(tune: Any, launch_id: str) -> Any:
    """Makes a callback that ends Tune before it starts the trials that still wait."""

    class EndWhenStopped(tune.Callback):
        running: list | None = None

        def on_step_end(self, iteration: int, trials: list, **_: Any) -> None:
            if self.running is None and launch_id in _stopped():
                self.running = [t for t in trials if t.status == "RUNNING"]
            if self.running is not None and all(t.is_finished() for t in self.running):
                raise _Stopped

    return EndWhenStopped()


def _stopped() -> set[str]:
    """Looks the set up here: Tune pickles the callback, and would copy it."""
    return _STOPPED


def _wait(launch: _Launch, points: list[Point]) -> tuple[list[Point], list[Point]]:
    """Waits while others work on all of these points.

    A launch that was killed leaves leases behind. They end with its processes, or,
    where those cannot be seen, when their pulse has stood still for a minute.

    Returns:
        The points that are free now, and those that are not.
    """
    plan = launch.plan
    with _stop_on_signal(launch):
        while points and not launch.is_stopped:
            keys = [(p.trainer, p.id) for p in points]
            records = attempts.patiently(lambda k=keys: store.scan(launch.storage, k))
            launch.records.update(records)
            for record in records.values():
                if record.manifest.lease is not None:
                    launch.holders.look(record.manifest.lease)
            lost = launch.holders.lost
            statuses = {
                i: store.status(record, plan.stops[i], plan.codes[record.trainer], lost)
                for i, record in records.items()
            }
            free = [p for p in points if statuses[p.id] == "missing"]
            points = [p for p in points if statuses[p.id] == "running"]
            if free:
                return free, points
            time.sleep(_POLL_SECONDS)
    return [], points


def _interrupt_without_ray() -> None:
    """Interrupts this process if the Ray that it has started is gone.

    A signal to a whole process group, as `timeout` and Slurm send it, ends Ray, too.
    Tune needs a minute to notice that no trial will commit any more.
    """
    while (ray := sys.modules.get("ray")) and ray.is_initialized():
        node = ray._private.worker._global_node
        if node is None:
            return  # A cluster's, which other machines keep.
        if any(node.dead_processes()):
            os.kill(os.getpid(), signal.SIGINT)
            return
        time.sleep(_POLL_SECONDS)


@contextlib.contextmanager
def _stop_on_signal(launch: _Launch) -> Iterator[None]:
    """Turns Ctrl-C, SIGTERM and SIGHUP into a request that trials commit and end."""
    flag = _stop_flag(launch.provenance)

    def stop(signum: int, frame: Any) -> None:
        del signum, frame
        if launch.is_stopped:
            raise KeyboardInterrupt  # Asked twice, it does not wait for commits.
        _STOPPED.add(launch.provenance["launch"])
        threading.Thread(target=_interrupt_without_ray, daemon=True).start()
        launch.storage.replace(b"", flag)

    signums = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # By nohup.
        signums.append(signal.SIGHUP)
    old = {s: signal.signal(s, stop) for s in signums}
    try:
        yield
    finally:
        for signum, handler in old.items():
            signal.signal(signum, handler)
        launch.storage.remove(flag)
