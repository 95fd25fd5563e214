"""Points in training together: what they have come to, and when it is committed.

A pack is advanced by one compiled call; each of its points keeps its own record, stop
rule and failure. Points that are over stay in the pack, unrecorded, until all are.
"""

import itertools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bmg_sweeps.running import programs
from bmg_sweeps.running.lane import Lane

COMMIT_SECONDS = 30.0  # Between commits, and up to a chunk more; a kill loses that.


class Pack:
    """Points in training, advanced by one compiled call."""

    def __init__(self, lanes: list[Lane], width: int, source: Any) -> None:
        """Compiles, and initializes every point or takes up its last commit."""
        self._lanes = lanes
        self._source = source
        # A pack keeps its width when some of its points are over: others fill it up.
        padded = list(itertools.islice(itertools.cycle(lanes), width))
        configs = [lane.config for lane in padded]
        self._programs, seconds = programs.compiled(lanes[0].trainer, configs, source)
        self._config = programs.stack(configs)
        keys = programs.stack([jax.random.key(config.seed) for config in configs])
        state = self._programs.init(self._config, keys, source)
        states = [self._programs.take(state, i) for i in range(width)]
        for i, lane in enumerate(lanes):
            with lane.catching():
                states[i] = lane.start(self._programs, states[i], seconds)
        self._state = programs.stack(states)

    def train(self, should_stop: Callable[[], bool]) -> None:
        """Advances by chunks, until every point is over."""
        committed = time.monotonic()
        while True:
            is_stopping = should_stop()
            is_due = time.monotonic() - committed >= COMMIT_SECONDS
            for i, lane in self._open():
                with lane.catching():
                    lane.settle(self._state_of(i), is_stopping, is_due)
            if is_due:
                committed = time.monotonic()
            if not self._open():
                return
            self._advance()
            self._evaluate()

    def _advance(self) -> None:
        began = time.perf_counter()
        self._state, rows = self._programs.train(
            self._config, self._state, self._source
        )
        rows = jax.device_get(jax.block_until_ready(rows))
        seconds = time.perf_counter() - began
        are_finite = np.atleast_1d(self._programs.is_finite(self._state))
        for i, lane in self._open():
            with lane.catching():
                state = self._state_of(i)
                lane.advance(self._part(rows, i), seconds, state, are_finite[i])

    def _evaluate(self) -> None:
        """Evaluates on each split, for the points that are due."""
        if not self._programs.evaluate:
            return
        due, states = [], {i: self._state_of(i) for i, _ in self._open()}
        for i, lane in self._open():
            with lane.catching():
                if lane.is_evaluation_due(states[i]):
                    due.append((i, lane))
        if not due:
            return
        for split, evaluate in self._programs.evaluate.items():
            began = time.perf_counter()
            metrics = evaluate(self._config, self._state, self._source)
            metrics = jax.device_get(jax.block_until_ready(metrics))
            seconds = time.perf_counter() - began
            for i, lane in due:
                with lane.catching():
                    part = self._part(metrics, i)
                    lane.add_evaluation(states[i], split, part, seconds)

    def _open(self) -> list[tuple[int, Lane]]:
        return [(i, lane) for i, lane in enumerate(self._lanes) if not lane.is_closed]

    def _state_of(self, i: int) -> Any:
        return self._programs.take(self._state, i)

    def _part(self, tree: Any, i: int) -> Any:
        if self._programs.width == 1:
            return tree
        return jax.tree.map(lambda leaf: leaf[i], tree)


def as_arrays(config: Any) -> Any:
    """Makes a config's data fields arrays, as compiled programs take them."""
    return jax.tree.map(jnp.asarray, config)
