"""How a launch starts and leaves a Ray of its own, and what it asks nodes."""

import gc
import weakref

import pytest
import ray

from bmg_sweeps import errors
from bmg_sweeps.launching import cluster
from bmg_sweeps.records import files


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
    cluster._check_nodes(Nodes(), [NODE], storage)

    def lacks(name):
        raise ModuleNotFoundError("No module named 'optax'")

    monkeypatch.setattr(cluster.importlib, "import_module", lacks)
    with pytest.raises(
        errors.UserError, match=r"node gpu-1 \(192.0.2.7\) cannot train "
    ):
        cluster._check_nodes(Nodes(), [NODE], storage)


def test_a_node_that_does_not_see_the_storage_is_named(storage, monkeypatch):
    """What this machine wrote is not in the folder of that name there."""
    monkeypatch.setattr(files.Storage, "sizes", lambda *_: {})
    with pytest.raises(errors.UserError, match=r"--storage .* gpu-1 .* is not there"):
        cluster._check_nodes(Nodes(), [NODE], storage)
