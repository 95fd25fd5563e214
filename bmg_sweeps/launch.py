"""Runs what a plan says is missing, as Ray Tune trials.

Ray Tune places the trials, keeps their actors, and starts them again when a process or
a node dies. It is told nothing but which points there are: a trial reads its point from
storage, goes on from its checkpoint there, and leaves its record there, so that a
retried trial, a second launch and a resumed one are the same thing.
"""

import contextlib
import dataclasses
import logging
import os
import pathlib
import signal
import socket
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bmg_sweeps import errors, files, paths, planning, store
from bmg_sweeps import point as points_module
from bmg_sweeps.point import Point

_EXCLUDED = [".git", ".venv", "runs", "results", "tests", "**/__pycache__", ".*_cache"]
_POLL_SECONDS = 1.0
_CONNECT_SECONDS = 10.0
_CACHE_BYTES = 1 << 30  # Of compiled programs; a limit also makes JAX lock the cache.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resources:
    """What a launch runs on."""

    address: str | None = None  # Of a running Ray; None starts one on this machine.
    cpus: int = 1  # Of each trial.
    gpus: float = 0.0  # Of each trial; a fraction shares one.


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a launch ended."""

    is_stopped: bool  # By the user, before all was done.
    lost: tuple[str, ...]  # Why trials died that could not leave it in a record.


def run(
    storage: files.Storage,
    plan: planning.Plan,
    resources: Resources,
    *,
    retry: bool = False,
    watch: Callable[[planning.Plan], contextlib.AbstractContextManager],
) -> Outcome:
    """Trains the missing points of a plan, until none is left or the user stops it.

    Args:
        storage: of the records.
        plan: what to run.
        resources: where.
        retry: whether failed and diverged points are tried once more.
        watch: shows progress while its context is open.

    Returns:
        How it ended. How the points ended is in their records.

    Raises:
        UserError: the points or the resources asked for cannot be had.
    """
    planning.check(plan.to_run)
    provenance = {"launch": uuid.uuid4().hex[:8]} | planning.provenance()
    launch = _Launch(storage, plan, resources, provenance, retry, threading.Event())
    todo = list(plan.to_run)
    elsewhere = [p for p in plan.points if plan.statuses[p.id] == "running"]
    lost: list[str] = []
    with watch(plan):
        while (todo or elsewhere) and not launch.stopped.is_set():
            if todo:
                busy, reasons = _run_trials(launch, todo)
                elsewhere, lost = elsewhere + busy, lost + reasons
            todo, elsewhere = _wait(launch, elsewhere)
    return Outcome(launch.stopped.is_set(), tuple(lost))


def train_point(config: Mapping[str, Any]) -> dict[str, str]:
    """Runs one trial, in a process of Ray's.

    Args:
        config: the point's trainer, id and stop rule, and the launch's constants.

    Returns:
        The status of its point.
    """
    # Imported here: the driver, which imports this module, must not import JAX.
    from bmg_sweeps import work_unit

    point, launch = config["point"], config["launch"]
    storage = files.open_storage(launch["storage"])
    flag = _stop_flag(launch["provenance"])
    status = work_unit.run(
        storage,
        point["trainer"],
        point["id"],
        point["stop"],
        should_stop=lambda: _is_stopped(storage, flag),
        retry=launch["retry"],
        launch=launch["provenance"],
    )
    return {"status": status}


@dataclasses.dataclass(frozen=True)
class _Launch:
    """What stays the same from the first trial to the last."""

    storage: files.Storage
    plan: planning.Plan
    resources: Resources
    provenance: Mapping[str, str]
    retry: bool
    stopped: threading.Event  # Set once the user has asked to stop.


def _is_stopped(storage: files.Storage, flag: str) -> bool:
    """Whether trials are asked to end; a storage that does not answer asks nothing."""
    with contextlib.suppress(files.StorageError):
        return storage.exists(flag)
    return False


def _stop_flag(provenance: Mapping[str, str]) -> str:
    """Names the object whose presence asks a launch's trials to commit and end."""
    return f".stop-{provenance['launch']}"


def _run_trials(
    launch: _Launch, points: Sequence[Point]
) -> tuple[list[Point], list[str]]:
    """Runs points on Ray; returns those that others work on, and why trials died."""
    storage = launch.storage
    constants = {
        "storage": os.path.abspath(storage.root) if storage.is_local else storage.uri,
        "provenance": launch.provenance,
        "retry": launch.retry,
    }
    with (
        _ray(launch.resources, storage) as (ray, places),
        # Within: starting Ray replaces the handlers.
        _stop_on_signal(launch),
    ):
        for p in points:
            store.declare(storage, p.trainer, p.id, points_module.gin_text(p))
        trials = [
            {"trainer": p.trainer, "id": p.id, "stop": dict(launch.plan.stops[p.id])}
            for p in _in_lanes(points, places)
        ]
        results = _fit(ray.tune, trials, constants, launch.resources)
    lost = [
        f"{pathlib.PurePath(r.path).name}: {errors.last_line(r.error)}"
        for r in results
        if r.error
    ]
    ended = [r for r in results if not r.error]
    busy = {r.config["point"]["id"] for r in ended if r.metrics["status"] == "busy"}
    return [p for p in points if p.id in busy], lost


def _wait(launch: _Launch, points: list[Point]) -> tuple[list[Point], list[Point]]:
    """Waits while others work on all of these points; returns those now free, and not.

    A launch that was killed leaves leases behind, which end with its processes, or
    where those cannot be seen, with their time.
    """
    plan = launch.plan
    with _stop_on_signal(launch):
        while points and not launch.stopped.is_set():
            keys = [(p.trainer, p.id) for p in points]
            records = store.scan(launch.storage, keys)
            statuses = {
                i: store.status(record, plan.stops[i], plan.code)
                for i, record in records.items()
            }
            free = [p for p in points if statuses[p.id] == "missing"]
            points = [p for p in points if statuses[p.id] == "running"]
            if free:
                return free, points
            launch.stopped.wait(_POLL_SECONDS)
    return [], points


@contextlib.contextmanager
def _ray(resources: Resources, storage: files.Storage) -> Iterator[tuple[Any, int]]:
    """Starts Ray, or joins a running one; yields it, and how many trials fit in."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Nothing is sent anywhere.
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    os.environ["TUNE_DISABLE_SIGINT_HANDLER"] = "1"
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    os.environ["RAY_CHDIR_TO_TRIAL_DIR"] = "0"
    import ray
    import ray.tune

    if resources.address:
        _check_address(resources.address)
    try:
        ray.init(
            address=resources.address or "local",
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env={
                "working_dir": str(paths.ROOT),
                "excludes": [*_EXCLUDED, *_within_checkout(storage)],
                "env_vars": _worker_environment(resources),
            },
            **({} if resources.address else {"object_store_memory": 200_000_000}),
        )
    except (ConnectionError, ValueError) as error:
        reason = errors.first_line(error)
        raise errors.UserError(
            f"--address {resources.address}: expected a running Ray cluster ({reason})"
        ) from error
    try:
        _check_resources(ray.nodes(), resources)
        yield ray, _places(ray.nodes(), resources)
    finally:
        ray.shutdown()


def _within_checkout(storage: files.Storage) -> list[str]:
    """Names the storage where it lies in the checkout, which is sent to the workers."""
    root = pathlib.Path(os.path.abspath(storage.root))
    is_inside = storage.is_local and root.is_relative_to(paths.ROOT)
    return [str(root.relative_to(paths.ROOT))] if is_inside else []


def _check_address(address: str) -> None:
    """Refuses an address where nobody answers; Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # Such as "auto": Ray finds it, or says at once that there is none.
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise errors.UserError(
            f"--address {address}: expected a running Ray cluster ({error})"
        ) from error


def _worker_environment(resources: Resources) -> dict[str, str]:
    environment = {
        "NPROC": str(resources.cpus),  # The one thing that bounds XLA's CPU threads.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # Trials may share a GPU.
        "JAX_COMPILATION_CACHE_DIR": str(paths.cache()),
        "JAX_COMPILATION_CACHE_MAX_SIZE": str(_CACHE_BYTES),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5",
        "RAY_CHDIR_TO_TRIAL_DIR": "0",
    }
    return environment | ({} if resources.gpus else {"JAX_PLATFORMS": "cpu"})


def _check_resources(nodes: list[Mapping[str, Any]], resources: Resources) -> None:
    """Refuses a request that no node can meet; Ray would wait for one forever."""
    for flag, name, wanted in (
        ("--cpus", "CPU", resources.cpus),
        ("--gpus", "GPU", resources.gpus),
    ):
        largest = max((n["Resources"].get(name, 0) for n in nodes), default=0)
        if wanted > largest:
            raise errors.UserError(
                f"{flag} {wanted:g}: expected at most {largest:g}, the most that one "
                f"node has"
            )
    if _places(nodes, resources) < 1:
        raise errors.UserError(
            f"--cpus {resources.cpus} --gpus {resources.gpus:g}: expected no more of "
            f"both than one node has"
        )


def _places(nodes: list[Mapping[str, Any]], resources: Resources) -> int:
    """Counts the trials that can run at once."""
    places = 0
    for node in nodes:
        room = [node["Resources"].get("CPU", 0) / resources.cpus]
        if resources.gpus:
            room.append(node["Resources"].get("GPU", 0) / resources.gpus)
        places += int(min(room) + 1e-9)  # Ten tenths of a GPU are one.
    return places


def _in_lanes(points: Sequence[Point], places: int) -> list[Point]:
    """Orders points so that actors, each taking the next one, keep to few structures.

    The points come ordered by structure. Each place gets a run of them, and the runs
    are dealt out in turn: the actors compile different structures at the same time
    rather than all of them the same one.
    """
    length = -(-len(points) // places)
    return [p for i in range(length) for p in points[i::length]]


def _fit(tune: Any, trials: list, constants: Mapping[str, Any], resources: Resources):
    trainable = tune.with_resources(
        train_point, {"cpu": resources.cpus, "gpu": resources.gpus}
    )
    with tempfile.TemporaryDirectory(prefix="bmg_sweeps_") as folder:
        tuner = tune.Tuner(
            trainable,
            param_space={"point": tune.grid_search(trials), "launch": dict(constants)},
            tune_config=tune.TuneConfig(
                reuse_actors=True,
                trial_dirname_creator=lambda trial: trial.config["point"]["id"],
            ),
            run_config=tune.RunConfig(
                name="launch",
                storage_path=folder,
                verbose=0,
                # A process or node that dies; what a point raises is caught inside.
                failure_config=tune.FailureConfig(max_failures=2),
            ),
        )
        return tuner.fit()


@contextlib.contextmanager
def _stop_on_signal(launch: _Launch) -> Iterator[None]:
    """Turns Ctrl-C and SIGTERM into a request that trials commit and end."""
    flag = _stop_flag(launch.provenance)

    def stop(signum: int, frame: Any) -> None:
        del signum, frame
        if launch.stopped.is_set():
            raise KeyboardInterrupt  # The second time the user means it.
        launch.stopped.set()
        launch.storage.replace(b"", flag)

    old = {s: signal.signal(s, stop) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in old.items():
            signal.signal(signum, handler)
        launch.storage.remove(flag)
