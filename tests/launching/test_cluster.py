"""Launches on a Ray cluster of two nodes."""

import json
import os
import socket
import subprocess
import sys
import time

import pytest
import ray_cluster
import toy_checkout

from bmg_sweeps.records import files, store

POINTS = "product(rate=(0.1,), seed=range(3))"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The toy's checkout, with a sweep of some seconds a point."""
    folder = tmp_path_factory.mktemp("cluster") / "c"
    toy_checkout.make(folder, commit_seconds=0.2)
    toy_checkout.write_sweep(folder, POINTS, 200_000)
    return folder


@pytest.fixture(scope="module")
def cluster():
    """Two nodes that all tests share; the last one kills the second node."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        with ray_cluster.running() as (address, kill_a_node):
            yield address, kill_a_node


def read(folder):
    """The records of the toy's points in a storage."""
    storage = files.open_storage(str(folder))
    keys = [("toy_trainer", name) for name in storage.folders("toy_trainer")]
    return store.scan(storage, keys).values()


def nodes_that_train(folder):
    """The nodes of points that have committed and are not over."""
    return {r.provenance.node for r in read(folder) if r.is_leased() and r.progress}


# Runs command lines one after another; points are not checked.
REFUSED = """if True:
    import json, sys
    from bmg_sweeps import __main__
    from bmg_sweeps.launching import checking
    checking.check = lambda *_: {}
    for words in json.load(sys.stdin):
        print("status", __main__.main(words), file=sys.stderr)
"""


@pytest.mark.faults
def test_what_a_cluster_cannot_do_is_refused(checkout, cluster):
    """Each process has a memory of its own: what the driver writes, no node finds.

    And a GPU that is not there: one line, not a wait without end.
    """
    launch = ["launch", "toy", "--wandb", "off", "--address", cluster[0]]
    done = subprocess.run(
        [sys.executable, "-c", REFUSED],
        input=json.dumps(
            [
                [*launch, "--storage", "memory://runs"],
                [*launch, "--storage", "refused", "--gpus", "99"],
            ]
        ),
        cwd=checkout,
        env=os.environ | {"HOME": str(checkout), "COLUMNS": "200"},
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    said = [x for x in done.stderr.splitlines() if x.startswith(("error", "status"))]
    storage, first, gpus, second = said
    assert (first, second) == ("status 2", "status 2")
    assert storage.startswith("error: --storage memory://runs: node ")
    assert "does not see it" in storage
    assert socket.gethostname() in storage
    assert gpus.startswith("error: --gpus 99: expected at most")
    assert not list((checkout / "refused").rglob("point.gin"))


def test_points_run_on_both_nodes_and_outlive_one(checkout, cluster):
    """The node is killed while its point trains; the other node goes on with it."""
    address, kill_a_node = cluster
    words = ("--address", address, "--storage", "both", "--wandb", "off")
    process = toy_checkout.popen(checkout, "launch", "toy", *words)
    nodes, deadline = set(), time.monotonic() + 200
    while process.poll() is None and time.monotonic() < deadline:
        nodes = nodes_that_train(checkout / "both")
        if len(nodes) == 2:
            break
        time.sleep(0.5)
    kill_a_node()
    output, _ = process.communicate(timeout=240)
    assert len(nodes) == 2
    assert process.returncode == 0, output
    found = [record.provenance for record in read(checkout / "both")]
    assert len(found) == 3
    assert any(p.attempt > 1 for p in found), output
