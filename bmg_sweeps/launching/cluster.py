"""Ray: starts one on this machine or joins a cluster, and refuses what cannot work.

A request that no node can meet would wait forever, and a node that does not see the
storage would lose what it trains. Both are refused before anything runs.
"""

import contextlib
import dataclasses
import gc
import importlib
import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from bmg_sweeps import errors, paths
from bmg_sweeps.launching import nodes, temporary
from bmg_sweeps.records import files

AUTO_PACK = 0  # In place of a number of points: trials on CPUs try out what is fastest.
_CONNECT_SECONDS = 10.0
_NEVER_SECONDS = 10**9
_MEMORY_SHARE = 0.9  # Of a GPU; the rest is for what JAX does not count.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resources:
    """What a launch runs on."""

    address: str | None = None  # A running Ray; None starts one on this machine.
    cpus: int = 1  # CPUs of each trial.
    gpus: float = 0.0  # GPUs of each trial; a fraction shares one.
    autoscaling: bool = False  # Whether to wait for nodes that are not there yet.
    data: str | None = None  # Folder of data sets; None is what the environment names.


def import_ahead(resources: Resources) -> None:
    """Imports Ray in a thread of its own, which takes seconds, while others check.

    Args:
        resources: that `connect` will be asked for.
    """
    _set_variables(resources)
    threading.Thread(target=importlib.import_module, args=("ray.tune",)).start()


@contextlib.contextmanager
def connect(
    resources: Resources, storage: files.Storage, code: str
) -> Iterator[tuple[Any, int]]:
    """Starts Ray, or joins a running one.

    Args:
        resources: what is asked for.
        storage: where the trials will write.
        code: the folder that workers get a copy of, and import from.

    Yields:
        The connected module `ray`, and how many trials can run at once.

    Raises:
        UserError: there is no cluster; none of its nodes has what a trial asks for; or
            a node does not see the storage, or lacks a package.
    """
    _set_variables(resources)
    import ray
    import ray.tune

    # Ray prints pages about a process that died; the records say what became of it.
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    with temporary.folder("bmg_ray_", _short()) as folder:
        # What Ray starts inherits this: a terminal that closes asks the driver only.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        try:
            ray.init(
                address=resources.address or "local",
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                runtime_env={
                    "working_dir": code,
                    "env_vars": worker_environment(resources),
                },
                **({} if resources.address else _own_settings(folder)),
            )
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            raise _not_connected(resources.address, error) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            yield ray, _checked_slots(ray, resources, storage)
        finally:
            _shut_down(ray)


def _not_connected(address: str | None, error: Exception) -> errors.UserError:
    """Says why there is no Ray: nobody answers, or with another token or version."""
    reason = errors.described(error)
    if address is None:
        return errors.UserError(f"Ray cannot be started on this machine: {reason}")
    return errors.UserError(
        f"--address {address}: expected a running Ray cluster, of this version of Ray "
        f"and with this token ({reason})"
    )


def _shut_down(ray: Any) -> None:
    """Ends Ray, or leaves the cluster, while nothing of Ray's is collected.

    Ray ends the whole process if another thread, as the one that shows progress, frees
    an object of Ray's meanwhile; a garbage collection may run in any thread.
    """
    gc.collect()
    gc.disable()
    try:
        ray.shutdown()
    finally:
        gc.enable()


def _set_variables(resources: Resources) -> None:
    """Sets what Ray reads when it is imported, and what its processes inherit."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Nothing is sent anywhere.
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    os.environ["TUNE_DISABLE_SIGINT_HANDLER"] = "1"
    # What Tune would go on from; it writes all trials anew each time. We have records.
    os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = str(_NEVER_SECONDS)
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    os.environ["RAY_CHDIR_TO_TRIAL_DIR"] = "0"
    os.environ["RAY_RUNTIME_ENV_IGNORE_GITIGNORE"] = "1"  # What is sent is our choice.
    os.environ.pop("PYTHONOPTIMIZE", None)  # Libraries of trainers read docstrings.
    if not resources.address:
        _keep_private()
        # One worker a CPU would start at once, and none be used: Tune's are of its own.
        os.environ.update(RAY_prestart_worker_first_driver="0")


def _checked_slots(ray: Any, resources: Resources, storage: files.Storage) -> int:
    """Counts the trials that can run at once; refuses what could not run at all."""
    here = [*alive(ray).values()]
    if not resources.autoscaling:
        _check_resources(here, resources)
    if resources.address or not storage.is_local:
        nodes.check(ray, here, storage, storage_uri(storage))
    return max(1, _count_slots(here, resources))


def check_address(resources: Resources) -> None:
    """Refuses an address where nobody answers; Ray would try for minutes.

    Args:
        resources: whose address it is.

    Raises:
        UserError: it is none, or nobody answers there.
    """
    address = resources.address
    if address in (None, "auto"):
        return  # Ray finds "auto", or says at once that there is none.
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise errors.UserError(f"--address {address}: expected auto or HOST:PORT")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise errors.UserError(
            f"--address {address}: expected a running Ray cluster ({error})"
        ) from error


def own_slots(resources: Resources) -> int | None:
    """Guesses how many trials a Ray of this machine's own will run at once.

    Returns:
        None where that is for others to say: a cluster, or this machine's GPUs.
    """
    if resources.address or resources.gpus:
        return None
    return max(1, (os.cpu_count() or 1) // resources.cpus)


def _keep_private() -> None:
    """Makes a Ray that this process starts reachable for this user only.

    By default Ray listens on all interfaces, and leaves its token in a file that other
    users may read. Ray reads these variables when it is imported.
    """
    # Ray listens on 127.0.0.1, as it does on a Mac.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _short() -> str | None:
    """Names a folder for temporary files with a short path, if there is one.

    A socket's name may have 107 bytes, which a long TMPDIR would use up. Ray opens the
    folder that it is given to everyone, so it gets one inside of ours.
    """
    return "/tmp" if os.path.isdir("/tmp") else None


def _own_settings(folder: str) -> dict[str, Any]:
    return {"object_store_memory": 200_000_000, "_temp_dir": os.path.join(folder, "r")}


def worker_environment(resources: Resources) -> dict[str, str]:
    """Returns the variables that trials run with.

    Args:
        resources: of the launch.
    """
    environment = {
        "NPROC": str(resources.cpus),  # Nothing else bounds XLA's CPU threads.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # Trials may share a GPU.
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",  # All is cached.
        "RAY_CHDIR_TO_TRIAL_DIR": "0",
    }
    if data := resources.data or os.environ.get(paths.DATA_VARIABLE):
        environment[paths.DATA_VARIABLE] = os.path.abspath(data)
    if not resources.gpus:
        environment["JAX_PLATFORMS"] = "cpu"
    elif resources.gpus < 1:
        # Each of the trials that share a GPU gets its part of the memory.
        fraction = f"{_MEMORY_SHARE * resources.gpus:.3f}"
        environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] = fraction
    return environment


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
                f"node has (--autoscaling waits for others)"
            )
    if _count_slots(nodes, resources) < 1:
        raise errors.UserError(
            f"--cpus {resources.cpus} --gpus {resources.gpus:g}: expected no more of "
            f"both than one node has"
        )


def _count_slots(nodes: list[Mapping[str, Any]], resources: Resources) -> int:
    """Counts the trials that can run at once."""
    slots = 0
    for node in nodes:
        room = [node["Resources"].get("CPU", 0) / resources.cpus]
        if resources.gpus:
            room.append(node["Resources"].get("GPU", 0) / resources.gpus)
        slots += int(min(room) + 1e-9)  # Ten tenths of a GPU add up to one.
    return slots


def alive(ray: Any) -> dict[str, Mapping[str, Any]]:
    """Lists the nodes of a cluster that answer, by their ids."""
    return {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}


def storage_uri(storage: files.Storage) -> str:
    """Writes a storage as other processes, with other current folders, open it."""
    return os.path.abspath(storage.root) if storage.is_local else storage.uri
