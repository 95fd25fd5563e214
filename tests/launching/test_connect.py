"""How a launch starts and leaves a Ray of its own."""

import gc
import weakref

import pytest
import ray

from bmg_sweeps.launching import cluster
from bmg_sweeps.records import files


class Reference:
    """In place of what Ray gives for an object in its store."""


@pytest.fixture
def asked(monkeypatch):
    """What Ray was asked for; none is started."""
    asked = []
    node = {"Alive": True, "Resources": {"CPU": 2.0}}
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
    with cluster.connect(cluster.Resources(), storage) as (_, slots):
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
    with cluster.connect(cluster.Resources(), storage):
        assert not storage.sizes()
    assert asked[0]["address"] == "local"
