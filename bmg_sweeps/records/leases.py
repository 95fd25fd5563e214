"""Leases: which process works on a record, and whether it may still be alive."""

import hashlib
import socket
import time
import uuid

import psutil

from bmg_sweeps.records import manifests

LEASE_SECONDS = 180.0  # An attempt that has not committed for so long is lost.


def new(owner: str) -> manifests.Lease:
    """Makes a lease of this process; it ends with it, or after `LEASE_SECONDS`."""
    process = psutil.Process()
    return manifests.Lease(
        owner=owner,
        host=_host(),
        pid=process.pid,
        started=process.create_time(),
        expires=time.time() + LEASE_SECONDS,
        token=uuid.uuid4().hex[:8],
    )


def may_live(lease: manifests.Lease) -> bool:
    """Looks for a process of this host; of another host, the clock decides."""
    if lease.host != _host():
        return time.time() < lease.expires
    try:
        process = psutil.Process(lease.pid)
        return (
            abs(process.create_time() - lease.started) < 1
            and process.status() != psutil.STATUS_ZOMBIE
        )
    except psutil.NoSuchProcess:
        return False


def _host() -> str:
    """Tells hosts apart without naming them."""
    name = f"{socket.gethostname()}-{uuid.getnode()}"
    return hashlib.sha256(name.encode()).hexdigest()[:12]
