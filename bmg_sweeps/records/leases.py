"""Who works on a record, and whether they may still live."""

import hashlib
import socket
import time
import uuid
from collections.abc import Mapping
from typing import Any

import psutil

LEASE_SECONDS = 180.0  # An attempt that has not committed for so long is lost.


def new(owner: str) -> dict[str, Any]:
    """Makes a lease of this process, that ends with it or in `LEASE_SECONDS`."""
    process = psutil.Process()
    return {
        "owner": owner,
        "host": _host(),
        "pid": process.pid,
        "started": process.create_time(),
        "expires": time.time() + LEASE_SECONDS,
        "token": uuid.uuid4().hex[:8],  # No two manifests that begin are the same.
    }


def may_live(lease: Mapping[str, Any]) -> bool:
    """Asks this host for its own processes, and the clock for those of others."""
    if lease["host"] != _host():
        return time.time() < lease["expires"]
    try:
        process = psutil.Process(lease["pid"])
        return (
            abs(process.create_time() - lease["started"]) < 1
            and process.status() != psutil.STATUS_ZOMBIE
        )
    except psutil.NoSuchProcess:
        return False


def _host() -> str:
    """Tells hosts apart without naming them."""
    name = f"{socket.gethostname()}-{uuid.getnode()}"
    return hashlib.sha256(name.encode()).hexdigest()[:12]
