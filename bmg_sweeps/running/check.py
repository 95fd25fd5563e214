"""Checks every point of a plan, for a driver that imports neither JAX nor a trainer.

python -m bmg_sweeps.running.check < points.json
"""

import contextlib
import json
import sys

from bmg_sweeps import errors
from bmg_sweeps.running import binding


def _problem(trainer: str, gin_text: str) -> str | None:
    try:
        bound, config = binding.bind(trainer, gin_text)
        bound.provenance(config)
    except Exception as error:
        return errors.first_line(error)
    return None


def _first_problem(points: list[tuple[str, str]]) -> tuple[int, str] | None:
    """Returns the first point that cannot be run, and why; none after it is checked."""
    problems = ((i, _problem(*point)) for i, point in enumerate(points))
    return next(((i, problem) for i, problem in problems if problem), None)


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # A trainer may print.
        found = _first_problem(json.load(sys.stdin))
    print(json.dumps(found))
