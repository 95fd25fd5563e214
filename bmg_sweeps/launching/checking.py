"""Checks of every point of a plan, before Ray starts."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from bmg_sweeps import errors, paths
from bmg_sweeps.sweep.point import Point


def check(points: Sequence[Point], data: str | None = None) -> None:
    """Imports the trainers and checks every point, in a child process.

    Args:
        points: that are about to be run.
        data: folder of data sets; None is what the environment names.

    Raises:
        UserError: a point has a value that its trainer refuses, or a trainer is broken.
    """
    if not points:
        return
    texts = [(p.trainer, p.gin_text()) for p in points]
    child = subprocess.run(
        [sys.executable, "-m", "bmg_sweeps.running.check"],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        cwd=paths.ROOT,
        env=os.environ
        | {"JAX_PLATFORMS": "cpu"}
        | ({paths.DATA_VARIABLE: data} if data else {}),
        check=False,
    )
    if child.returncode != 0:
        lines = child.stderr.strip().splitlines() or ["no message"]
        raise errors.UserError(f"the points cannot be checked: {lines[-1]}")
    found = json.loads(child.stdout)
    if found:
        i, problem = found
        raise errors.UserError(f"point {points[i].id}: {problem}")
