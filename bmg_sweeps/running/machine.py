"""Where and with what an attempt runs."""

import contextlib
import functools
import os
import pathlib
import platform
from importlib import metadata
from typing import Any

import jax

_PACKAGES = ("jax", "jaxlib", "dm-haiku", "optax", "numpy", "gin-config", "ray")


def provenance(
    width: int, program_bytes: int, compile_seconds: float | None, attempt: int
) -> dict[str, Any]:
    """Says where and with what an attempt runs."""
    return {
        "attempt": attempt,
        "compilations": int(compile_seconds is not None),
        "compile_seconds": round(compile_seconds or 0.0, 3),
        "evaluation_seconds": 0.0,
        "device": _device(),
        "threads": int(os.environ.get("NPROC", os.cpu_count() or 1)),
        "pack_width": width,
        "program_bytes": program_bytes or None,  # Not every compiler counts them.
        "process": os.getpid(),
        "packages": _packages(),
    }


def has_accelerator() -> bool:
    """Whether JAX runs programs on something else than the CPU."""
    return jax.default_backend() != "cpu"


@functools.cache
def _device() -> str:
    """Names the model of the device: times and last bits depend on it."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        return device.device_kind
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return "cpu, " + line.partition(":")[2].strip()
    return f"cpu, {platform.machine()}"


@functools.cache
def _packages() -> dict[str, str]:
    return {name: metadata.version(name) for name in _PACKAGES} | {
        "python": platform.python_version()
    }
