"""Points in training together: what they have come to, and when it is committed.

A pack is advanced by one compiled call; each of its points keeps its own record, stop
rule and failure. Points that are over stay in the pack, unrecorded, until all are.
"""

import contextlib
import itertools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bmg_sweeps import errors
from bmg_sweeps.running import programs
from bmg_sweeps.running.lane import Lane
from bmg_sweeps.trainer import contract

COMMIT_SECONDS = 30.0  # Between commits, and up to a chunk more; a kill loses that.
CHEAP_SECONDS = 0.6  # A commit that takes longer costs more than 2 % of that.
LONGEST_SECONDS = 90.0  # Between commits, however slow they are.


class Pack:
    """Points in training, advanced by one compiled call."""

    def __init__(
        self, lanes: list[Lane], width: int, opened: contextlib.ExitStack
    ) -> None:
        """Compiles, and initializes every point or takes up its last commit.

        Args:
            lanes: the points; at most as many as the width.
            width: of the pack.
            opened: closes the source, which is opened here, when the pack is over.

        Raises:
            UserError: the source is live and the pack is of several points.
        """
        self._lanes = lanes
        self._opened = opened
        self._open_source()
        if width > 1 and self._live is not None:
            raise errors.UserError(
                f"trainer {lanes[0].trainer.name}: a pack of {width}; expected 1 point,"
                f" as its source is live"
            )
        # A pack keeps its width when some of its points are over: others fill it up.
        padded = list(itertools.islice(itertools.cycle(lanes), width))
        configs = [lane.config for lane in padded]
        self._programs, seconds = programs.compiled(
            lanes[0].trainer, configs, self._source
        )
        self._config = programs.stack(configs)
        keys = programs.stack([jax.random.key(config.seed) for config in configs])
        initial = contract.handed(self._source).to_init
        state = self._programs.init(self._config, keys, initial)
        states = [self._programs.take(state, i) for i in range(width)]
        for i, lane in enumerate(lanes):
            with lane.catching():
                states[i] = lane.start(self._programs, states[i], seconds, self._live)
                if lane.has_spoiled_source:
                    self._open_source()
                    lane.source = self._live
        self._state = programs.stack(states)

    def _open_source(self) -> None:
        """Opens what training reads, and closes it where it was open."""
        self._opened.close()
        lane = self._lanes[0]
        self._source = self._opened.enter_context(lane.trainer.source(lane.config))
        is_live = isinstance(self._source, contract.LiveSource)
        self._live = self._source if is_live else None

    def train(self, should_stop: Callable[[], bool]) -> None:
        """Advances by chunks, until every point is over."""
        committed, pause = time.monotonic(), COMMIT_SECONDS
        while True:
            is_stopping = should_stop()
            began = time.monotonic()
            is_due = began - committed >= pause
            for i, lane in self._open():
                with lane.catching():
                    lane.settle(self._state_of(i), is_stopping, is_due)
            if is_due:
                committed = time.monotonic()
                pause = _pause_after(committed - began)
            if not self._open():
                return
            self._advance()
            self._evaluate()

    def _advance(self) -> None:
        began = time.perf_counter()
        source = self._read()
        self._state, rows = self._programs.train(self._config, self._state, source)
        rows = jax.device_get(jax.block_until_ready(rows))
        seconds = time.perf_counter() - began
        are_finite = np.atleast_1d(self._programs.is_finite(self._state))
        for i, lane in self._open():
            with lane.catching():
                state = self._state_of(i)
                lane.advance(self._part(rows, i), seconds, state, are_finite[i])

    def _read(self) -> Any:
        """Returns the source, or what a live one delivers after acting."""
        if self._live is None:
            return self._source
        act, config, state = self._programs.act, self._config, self._state
        return self._live.read(lambda o, n: act(config, state, o, np.int32(n)), state)

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


def _pause_after(commit_seconds: float) -> float:
    """Says how long to train after a commit, so that commits cost 2 % at most."""
    pause = COMMIT_SECONDS * max(1.0, commit_seconds / CHEAP_SECONDS)
    return min(pause, LONGEST_SECONDS)


def as_arrays(config: Any) -> Any:
    """Makes a config's data fields arrays, as compiled programs take them."""
    return jax.tree.map(jnp.asarray, config)
