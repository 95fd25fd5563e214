"""Whether a node of a cluster can do what is asked: see the storage, and train.

The nodes that are there are asked before anything runs. A node that joins later is
asked by the first lines of each of its trials: these raise, and the launch says so.
"""

import importlib
import socket
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from bmg_sweeps import errors
from bmg_sweeps.records import attempts, files, store

_PROBE_SECONDS = 120.0  # A node has so long to import JAX and look at the storage.
_SHARED = "expected a folder that all nodes share, or an object storage"


def check(
    ray: Any, nodes: Sequence[Mapping[str, Any]], storage: files.Storage, uri: str
) -> None:
    """Refuses a node that cannot read what is written here, or cannot train.

    Args:
        ray: connected.
        nodes: as Ray lists them.
        storage: where the trials will write.
        uri: as other processes, with other current folders, open it.

    Raises:
        UserError: names the node, and what it lacks.
    """
    probe = f".probe-{uuid.uuid4().hex}"
    storage.create(b"", probe)
    try:
        task = ray.remote(num_cpus=0)(_problems)
        answers = {
            f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})": (
                task.options(scheduling_strategy=_on(node["NodeID"])).remote(uri, probe)
            )
            for node in nodes
        }
        for name, answer in answers.items():
            try:
                unseen, untrained = ray.get(answer, timeout=_PROBE_SECONDS)
            except ray.exceptions.RayError as error:
                unseen, untrained = errors.last_line(error), None
            if unseen:
                raise errors.UserError(
                    f"--storage {storage.uri}: node {name} does not see it "
                    f"({unseen}); {_SHARED}"
                )
            if untrained:
                raise errors.UserError(
                    f"--address: node {name} cannot train ({untrained}); expected the "
                    f"packages of requirements.txt on every node"
                )
    finally:
        storage.remove(probe)


def check_this(
    storage: files.Storage, trainer: str, point_id: str, gpus: float
) -> None:
    """Refuses this node, in a trial's own process, if its points would fail for it.

    Args:
        storage: of the launch, as this node opens it.
        trainer: of the trial's points.
        point_id: one of these. The launch has declared it.
        gpus: of the trial.

    Raises:
        MachineError: names this node, and what it lacks.
    """
    name = socket.gethostname()
    if not attempts.patiently(lambda: store.is_declared(storage, trainer, point_id)):
        raise errors.MachineError(
            f"--storage {storage.uri}: node {name} does not see it (point {point_id} "
            f"is not there); {_SHARED}"
        )
    from bmg_sweeps.running import machine

    if gpus and not machine.has_accelerator():
        raise errors.MachineError(
            f"--gpus {gpus:g}: JAX sees none on node {name}; expected jax[cuda13] "
            f"there, and no JAX_PLATFORMS=cpu"
        )


def _on(node_id: str) -> Any:
    from ray.util import scheduling_strategies

    return scheduling_strategies.NodeAffinitySchedulingStrategy(node_id, soft=False)


def _problems(uri: str, probe: str) -> tuple[str | None, str | None]:
    """Says on a node why it cannot use a storage, and why it cannot train."""
    unseen = untrained = None
    try:
        storage = files.open_storage(uri)
        if probe not in storage.sizes():
            unseen = "what this machine wrote is not there"
        else:
            files.check_writable(storage)
    except Exception as error:
        unseen = errors.described(error)
    try:
        importlib.import_module("bmg_sweeps.running.work_unit")
    except Exception as error:
        untrained = errors.described(error)
    return unseen, untrained
