"""Launches on a Ray cluster of two nodes, and what a Ray of our own exposes."""

import ipaddress
import pathlib
import re
import socket
import time

import psutil
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


def test_a_ray_of_our_own_is_this_machines_and_this_users(checkout):
    """Every socket of the launch listens on loopback, and its folder is closed."""
    process = toy_checkout.popen(checkout, "launch", "toy", "--wandb", "off")
    trained = checkout / "runs" / "toy_trainer"
    while process.poll() is None and not list(trained.glob("*/state-*")):
        time.sleep(0.1)
    children = psutil.Process(process.pid).children(recursive=True)
    words = " ".join(word for child in children for word in child.cmdline())
    (folder,) = map(pathlib.Path, set(re.findall(r"/tmp/bmg_ray_\w+", words)))
    assert folder.stat().st_mode & 0o777 == 0o700
    listening = [
        connection.laddr.ip
        for one in psutil.Process(process.pid).children(recursive=True)
        for connection in listening_of(one)
    ]
    process.terminate()
    output, _ = process.communicate(timeout=120)
    assert "goes on from here" in output
    assert len(listening) > 3
    for ip in listening:
        address = ipaddress.ip_address(ip)
        address = getattr(address, "ipv4_mapped", None) or address
        assert address.is_loopback, listening
    assert not folder.exists()
    assert not (checkout / ".ray").exists()  # The home of this launch.


def test_storage_that_a_node_does_not_see_is_refused(checkout, cluster):
    """Each process has a memory of its own: what the driver writes, no node finds."""
    words = ("--address", cluster[0], "--storage", "memory://runs", "--wandb", "off")
    status, output = toy_checkout.run(checkout, "launch", "toy", *words)
    assert status == 2
    *_, line = output.splitlines()
    assert line.startswith("error: --storage memory://runs: node ")
    assert "does not see it" in line
    assert socket.gethostname() in line


def test_a_request_that_no_node_can_meet_is_refused(checkout, cluster):
    """A GPU that is not there: one line, not a wait without end."""
    words = ("--address", cluster[0], "--storage", "refused", "--gpus", "99")
    status, output = toy_checkout.run(checkout, "launch", "toy", *words)
    assert status == 2
    assert output.splitlines()[-1].startswith("error: --gpus 99: expected at most")
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
        time.sleep(0.2)
    kill_a_node()
    output, _ = process.communicate(timeout=240)
    assert len(nodes) == 2
    assert process.returncode == 0, output
    found = [record.provenance for record in read(checkout / "both")]
    assert len(found) == 3
    assert any(p.attempt > 1 for p in found), output


def listening_of(process):
    try:
        found = process.net_connections(kind="inet")
    except psutil.Error:
        return []
    return [connection for connection in found if connection.status == "LISTEN"]
