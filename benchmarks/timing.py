"""Timing that the benchmarks share: the fastest of some steps, and growth."""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax


def fastest(step: Callable[[Any], Any], state: Any, repeats: int) -> float:
    """Returns the seconds of the fastest step; the first, which warms up, is left out.

    Args:
        step: maps a state to the next.
        state: the first.
        repeats: steps that are timed.
    """
    seconds = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        state = jax.block_until_ready(step(state))
        seconds.append(time.perf_counter() - began)
    return min(seconds[1:])


def slopes(amounts: Sequence[float], seconds: Sequence[float]) -> str:
    """Writes the slopes of log seconds over log amounts, of one amount to the next."""
    steps = itertools.pairwise(zip(amounts, seconds, strict=True))
    found = [math.log(b / a, m / n) for (n, a), (m, b) in steps]
    return " and ".join(f"{slope:.2f}" for slope in found)
