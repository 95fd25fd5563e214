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


@pytest.fixture
def checkout(tmp_path):
    """The toy's checkout, with a sweep of some seconds a point."""
    folder = toy_checkout.make(tmp_path / "c", commit_seconds=0.2)
    toy_checkout.write_sweep(folder, POINTS, 200_000)
    return folder


def provenances(folder, storage):
    keys = [
        ("toy_trainer", p.name) for p in (folder / storage / "toy_trainer").iterdir()
    ]
    records = store.scan(files.open_storage(str(folder / storage)), keys)
    return [record.provenance for record in records.values()]


def nodes_that_train(folder):
    """The nodes of points that have committed and are not over."""
    if not (folder / "runs" / "toy_trainer").exists():
        return set()
    storage = files.open_storage(str(folder / "runs"))
    keys = [("toy_trainer", name) for name in storage.folders("toy_trainer")]
    records = store.scan(storage, keys).values()
    return {r.provenance.node for r in records if r.is_leased() and r.progress}


def test_points_run_on_both_nodes_and_outlive_one(checkout, monkeypatch):
    """The node is killed while its point trains; the other node goes on with it."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with ray_cluster.running() as (address, kill_a_node):
        process = toy_checkout.popen(
            checkout, "launch", "toy", "--address", address, "--wandb", "off"
        )
        nodes, deadline = set(), time.monotonic() + 200
        while process.poll() is None and time.monotonic() < deadline:
            nodes = nodes_that_train(checkout)
            if len(nodes) == 2:
                break
            time.sleep(0.2)
        kill_a_node()
        output, _ = process.communicate(timeout=240)
    assert len(nodes) == 2
    assert process.returncode == 0, output
    found = provenances(checkout, "runs")
    assert len(found) == 3
    assert any(p["attempt"] > 1 for p in found), output


def test_storage_that_a_node_does_not_see_is_refused(checkout):
    """Each process has a memory of its own: what the driver writes, no node finds."""
    status, output = toy_checkout.run(
        checkout, "launch", "toy", "--storage", "memory://runs", "--wandb", "off"
    )
    assert status == 2
    *_, line = output.splitlines()
    assert line.startswith("error: --storage memory://runs: node ")
    assert "does not see it" in line
    assert socket.gethostname() in line


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


def listening_of(process):
    try:
        found = process.net_connections(kind="inet")
    except psutil.Error:
        return []
    return [connection for connection in found if connection.status == "LISTEN"]
