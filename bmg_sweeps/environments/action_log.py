"""What was acted in each environment, as far back as it can still be needed.

A log begins with a span (see `atari`): the number of that span and the actions since
its first frame bring an emulator to where it is.
"""

import collections
from typing import NamedTuple

import numpy as np


class Saved(NamedTuple):
    """The logs of N environments as arrays. All end at the same step."""

    spans: np.ndarray  # [N] int64 number of the span with which a log begins.
    lengths: np.ndarray  # [N] int64 actions in each log.
    actions: np.ndarray  # [sum of lengths] uint8, environment by environment.

    def aligned(self) -> np.ndarray:
        """Puts the logs side by side.

        Returns:
            [longest length, N] int32 actions by step; 0 before a log begins.
        """
        longest = self.lengths.max()
        table = np.zeros((longest, len(self.lengths)), np.int32)
        logs = np.split(self.actions, np.cumsum(self.lengths)[:-1])
        for environment, actions in enumerate(logs):
            table[longest - len(actions) :, environment] = actions
        return table


class ActionLog:
    """Actions of N environments in lockstep, one byte each."""

    def __init__(self, spans: np.ndarray, steps: int = 0):
        """Begins every log.

        Args:
            spans: [N] numbers of the spans that begin.
            steps: taken before.
        """
        self.steps = steps  # Taken in every environment.
        self._actions = [bytearray() for _ in spans]
        # Of each environment, (step, number) of the spans in its log, in order.
        self._starts = [collections.deque([(steps, n)]) for n in spans.tolist()]

    def begin(self, is_chosen: np.ndarray, spans: np.ndarray) -> None:
        """Begins some logs anew, with spans that begin now.

        Args:
            is_chosen: [N] bool.
            spans: [N] their numbers; read where a log is chosen.
        """
        for environment in np.flatnonzero(is_chosen):
            start = (self.steps, int(spans[environment]))
            self._actions[environment].clear()
            self._starts[environment] = collections.deque([start])

    def add(self, actions: np.ndarray, is_span_begun: np.ndarray) -> None:
        """Adds a step.

        Args:
            actions: [N] integers below 256.
            is_span_begun: [N] bool: a span ended with it, and the next began.
        """
        self.steps += 1
        for log, action in zip(self._actions, actions.tolist(), strict=True):
            log.append(action)
        for environment in np.flatnonzero(is_span_begun).tolist():
            starts = self._starts[environment]
            starts.append((self.steps, starts[-1][1] + 1))

    def forget(self, needed: np.ndarray) -> None:
        """Drops the spans that ended before what is needed.

        Args:
            needed: [N] oldest step of each environment that must still be reached.
        """
        for log, starts, step in zip(self._actions, self._starts, needed, strict=True):
            first = starts[0][0]
            while len(starts) > 1 and starts[1][0] <= step:
                starts.popleft()
            del log[: starts[0][0] - first]

    def save(self) -> Saved:
        """Returns the logs as arrays."""
        return Saved(
            spans=np.array([starts[0][1] for starts in self._starts], np.int64),
            lengths=np.array([len(log) for log in self._actions], np.int64),
            actions=np.frombuffer(b"".join(self._actions), np.uint8),
        )
