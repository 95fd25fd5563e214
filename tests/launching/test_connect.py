"""How a launch starts and leaves a Ray of its own, and what it asks nodes."""

import gc
import weakref

import pytest
import ray

from bmg_sweeps import errors
from bmg_sweeps.launching import cluster, nodes
from bmg_sweeps.records import files, store
from bmg_sweeps.running import machine


class Reference:
    """In place of what Ray gives for an object in its store."""


@pytest.fixture
def asked(monkeypatch):
    """What Ray was asked for; none is started."""
    asked = []
    node = {"NodeID": "0", "Alive": True, "Resources": {"CPU": 2.0}}
    monkeypatch.setattr(ray, "init", lambda **words: asked.append(words))
    monkeypatch.setattr(ray, "nodes", lambda: [node])
    return asked


def test_nothing_of_rays_is_freed_while_it_shuts_down(asked, monkeypatch, tmp_path):
    """Else Ray ends the process: a thread that collects garbage would be enough."""
    seen = []
    monkeypatch.setattr(
        ray, "shutdown", lambda: seen.append((left() is None, gc.isenabled()))
    )
    storage = files.open_storage(str(tmp_path))
    with cluster.connect(cluster.Resources(), storage, "") as (_, slots):
        held = Reference()
        held.itself = held  # Reference counts alone do not free it.
        left = weakref.ref(held)
        del held
    assert slots == 2
    assert seen == [(True, False)]
    assert gc.isenabled()


def test_a_ray_of_ones_own_is_not_asked_whether_it_sees_a_folder(asked, tmp_path):
    """It runs here. Asking takes a worker, which no trial gets afterwards."""
    storage = files.open_storage(str(tmp_path / "runs"))
    with cluster.connect(cluster.Resources(), storage, ""):
        assert not storage.sizes()
    assert asked[0]["address"] == "local"


class Nodes:
    """In place of Ray: runs what a node is asked at once, in this process."""

    exceptions = ray.exceptions

    def remote(self, **_):
        """As it decorates a function."""

        class Task:
            def __init__(self, function):
                self.remote = function

            def options(self, **_):
                return self

        return Task

    def get(self, answer, timeout):
        """An answer that is there."""
        return answer


NODE = {
    "NodeID": "0" * 56,
    "NodeManagerHostname": "gpu-1",
    "NodeManagerAddress": "192.0.2.7",
}


def test_a_node_that_lacks_a_package_is_named(storage, monkeypatch):
    """Before a point is tried there: none has failed for it."""
    nodes.check(Nodes(), [NODE], storage, storage.uri)

    def lacks(name):
        raise ModuleNotFoundError("No module named 'optax'")

    monkeypatch.setattr(nodes.importlib, "import_module", lacks)
    with pytest.raises(
        errors.UserError, match=r"node gpu-1 \(192.0.2.7\) cannot train "
    ):
        nodes.check(Nodes(), [NODE], storage, storage.uri)


def test_a_node_that_does_not_see_the_storage_is_named(storage, monkeypatch):
    """What this machine wrote is not in the folder of that name there."""
    monkeypatch.setattr(files.Storage, "sizes", lambda *_: {})
    with pytest.raises(errors.UserError, match=r"--storage .* gpu-1 .* is not there"):
        nodes.check(Nodes(), [NODE], storage, storage.uri)


@pytest.mark.parametrize(
    ("is_declared", "gpus", "said"),
    [
        (True, 0.0, None),
        (False, 0.0, r"--storage .*: node .* does not see it \(point a is not there\)"),
        (True, 0.25, r"--gpus 0.25: JAX sees none on node .*; expected jax\[cuda13\]"),
    ],
)
def test_a_trial_asks_its_own_node(storage, monkeypatch, is_declared, gpus, said):
    """Which may have joined after the others were asked; no point fails for it."""
    monkeypatch.setattr(machine, "has_accelerator", lambda: False)
    if is_declared:
        store.declare(storage, "toy", "a", "")
    if said is None:
        nodes.check_this(storage, "toy", "a", gpus)
        return
    with pytest.raises(errors.MachineError, match=said):
        nodes.check_this(storage, "toy", "a", gpus)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (
            "10.0.0.1:6379",
            r"--address 10.0.0.1:6379: expected .* \(AuthenticationError",
        ),
        (None, "Ray cannot be started on this machine: AuthenticationError"),
    ],
)
def test_a_ray_that_refuses_is_told_in_a_line(storage, monkeypatch, address, said):
    """As with another token, which is no ConnectionError."""

    def refuses(**_):
        raise ray.exceptions.AuthenticationError("no token")

    monkeypatch.setattr(ray, "init", refuses)
    resources = cluster.Resources(address=address)
    with (
        pytest.raises(errors.UserError, match=said),
        cluster.connect(resources, storage, ""),
    ):
        pass


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        (0.0, {"JAX_PLATFORMS": "cpu"}),
        (0.25, {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.225"}),
        (1.0, {}),
    ],
)
def test_trials_that_share_a_gpu_share_its_memory(gpus, expected):
    """Without a limit each would make its pack as large as the GPU allows."""
    environment = cluster.worker_environment(cluster.Resources(gpus=gpus))
    names = ("JAX_PLATFORMS", "XLA_PYTHON_CLIENT_MEM_FRACTION")
    assert {k: v for k, v in environment.items() if k in names} == expected
