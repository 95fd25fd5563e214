"""The live source of Atari: emulators and replay on the host, which come back bitwise.

A round is one read. All environments act T steps in lockstep under the parameters that
the state has then, their trajectories enter the replay, and the batches of as many
updates are drawn as use each new trajectory once. So the policy that acted lags by less
than a round, in the same way on every machine.

What is saved is what cannot be computed: the actions (one byte a step), how far back
they go, and the behavior policy's logits. `restore` acts them again, which brings back
emulators, frames, rewards and replay. Nothing of a generator of random numbers is
saved: each is made anew of the run's key and the number of the round or the span.
"""

import collections
import contextlib
import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any, NamedTuple

import jax
import numpy as np

from bmg_sweeps.environments import action_log, atari, frame_ring

Act = Callable[[frame_ring.Recent, np.ndarray], tuple[jax.Array, jax.Array]]
"""The newest frames, [] step of the round ↦ actions [N], logits [N, 18]."""

_SPANS, _SAMPLES = 0, 1  # What is drawn of the run's key, besides by the trainer.


class Settings(NamedTuple):
    """Sizes of a round and of the replay."""

    emulators: atari.Settings  # N environments.
    unroll_length: int  # T, steps of a trajectory.
    num_online: int  # Trajectories of an update that are new; a divisor of N.
    num_replay_samples: int  # Trajectories of an update from the replay.
    replay_capacity: int  # Trajectories.

    @property
    def num_updates(self) -> int:
        """U, updates of a round."""
        return self.emulators.num_environments // self.num_online


def check(settings: Settings) -> None:
    """Checks that there is a game, and that a round comes out even.

    Raises:
        ValueError: of one line, for a setting that makes no sense.
    """
    atari.check(settings.emulators)
    for field in ("unroll_length", "num_online", "replay_capacity"):
        if getattr(settings, field) < 1:
            value = getattr(settings, field)
            raise ValueError(f"{field}: {value}; expected at least 1")
    if settings.num_replay_samples < 0:
        raise ValueError(
            f"num_replay_samples: {settings.num_replay_samples}; expected at least 0"
        )
    if settings.emulators.num_environments % settings.num_online:
        raise ValueError(
            f"num_online: {settings.num_online}; expected a divisor of the "
            f"{settings.emulators.num_environments} environments"
        )


@contextlib.contextmanager
def opened(settings: Settings) -> Iterator["LiveGames"]:
    """Opens the games, and ends their threads.

    Raises:
        ValueError: as `check` says.
    """
    check(settings)
    with futures.ThreadPoolExecutor(settings.emulators.threads) as pool:
        games = LiveGames(settings, pool)
        try:
            yield games
        finally:
            games.close()


class LiveGames:
    """The live source; see `opened`. It begins at its first `read`, or at `restore`."""

    def __init__(self, settings: Settings, pool: futures.Executor):
        """Works out what is delivered; `pool` packs and unpacks frames."""
        self._settings = settings
        self._pool = pool
        count = settings.emulators.num_environments
        frames = (count, *settings.emulators.frame_shape)
        self.observes = frame_ring.Recent(
            frames=(jax.ShapeDtypeStruct(frames, np.uint8),) * frame_ring.STACK,
            ages=jax.ShapeDtypeStruct((count,), np.int32),
        )
        members = settings.num_online + settings.num_replay_samples
        acted = (settings.unroll_length, count)
        # The same for all rounds: to be given memory takes as long as to write there.
        self._batch = _room(settings, settings.num_updates, members)
        self.delivers = {
            name: jax.ShapeDtypeStruct(array.shape, array.dtype)
            for name, array in self._batch._asdict().items()
        } | {
            "acted_rewards": jax.ShapeDtypeStruct(acted, np.float32),
            "acted_game_over": jax.ShapeDtypeStruct(acted, np.bool_),
        }
        self._clear()

    def read(self, act: Act, state: Any) -> dict[str, np.ndarray]:
        """Plays a round, and draws the batches of its updates.

        Args:
            act: the policy, compiled and bound to the state.
            state: the trainer's. Its `key` never changes; nothing else is looked at.

        Returns:
            As `delivers` says; the next call writes over it. Leading axes are [U, M]:
            of each update first its new trajectories, then those from the replay, which
            may be new ones, too. `continues` is False where a game was over or a life
            lost. `acted_rewards` and `acted_game_over` [T, N] are of the round, in the
            order of time.

        Raises:
            ValueError: the game has no such action.
        """
        if self._key is None:
            key = np.asarray(jax.random.key_data(state.key)).tolist()
            zeros = np.zeros(self._settings.emulators.num_environments, np.int64)
            self._begin(key, spans=zeros, begins=zeros)
        online = _part(self._batch, slice(self._settings.num_online))
        replayed = _part(self._batch, slice(self._settings.num_online, None))

        def choose(step: int) -> tuple[np.ndarray, np.ndarray]:
            recent = frame_ring.Recent(tuple(self._recent), self._ages)
            actions, logits = act(recent, np.int32(step))
            return np.asarray(actions), np.asarray(logits)

        rewards, is_game_over = self._play(choose, online)
        self._ring.add(online)
        self._ring.sample(
            np.random.default_rng([*self._key, _SAMPLES, self._rounds]), replayed
        )
        self._rounds += 1
        self._log.forget(self._needed())
        return self._batch._asdict() | {
            "acted_rewards": rewards,
            "acted_game_over": is_game_over,
        }

    def save(self) -> list[np.ndarray]:
        """Returns what `restore` needs: kilobytes, where the frames are gigabytes."""
        log = self._log.save()
        arrays = [
            np.array(self._key or (), np.uint32),
            np.array(self._rounds, np.int64),
            *log,
            self._ring.columns().behavior_logits,
        ]
        checksums = [self._checksum_of(arrays), self._checksum_now()]
        return [*arrays, np.stack(checksums)]

    def restore(self, arrays: Sequence[np.ndarray]) -> None:
        """Acts again what was acted, so that the next `read` is the one that was next.

        Args:
            arrays: what `save` returned, of a source with the same settings; `threads`
                may differ.

        Raises:
            ValueError: of one line: they are not what was saved, or the emulators do
                not lead where they led.
        """
        arrays = [np.asarray(array) for array in arrays]
        *saved, checksums = arrays or [np.empty(0)]
        expected = self._checksum_of(saved)
        if checksums.shape != (2, expected.size) or (checksums[0] != expected).any():
            raise ValueError(
                "saved games: the arrays do not match their checksum; expected those "
                f"of {self._settings.emulators.game}, saved under the same settings"
            )
        key, rounds, *log, logits = saved
        self._clear()
        if key.size:
            self._act_again(key.tolist(), int(rounds), action_log.Saved(*log), logits)
        if (self._checksum_now() != checksums[1]).any():
            raise ValueError(
                "saved games: acted again, they lead elsewhere; expected the ale-py "
                "and the ROM with which they were saved"
            )

    def close(self) -> None:
        """Ends the emulators, if they were opened."""
        if "_emulators" in vars(self):
            self._emulators.close()

    @functools.cached_property
    def _emulators(self) -> atari.Emulators:
        """Opened when they are needed: that takes seconds, and shapes need none."""
        return atari.Emulators(self._settings.emulators)

    def _checksum_of(self, saved: Sequence[np.ndarray]) -> np.ndarray:
        """Hashes what is saved, with the settings under which it can be acted again."""
        emulators = dataclasses.replace(self._settings.emulators, threads=1)
        return _checksum(saved, repr(self._settings._replace(emulators=emulators)))

    def _checksum_now(self) -> np.ndarray:
        """Hashes what acting again brings back."""
        columns = self._ring.columns()[1:]
        return _checksum(
            [*columns, self._recent[-1], self._ages, self._emulators.lives]
        )

    def _needed(self) -> np.ndarray:
        """Finds the step from which each environment must be acted again.

        [N]: the first step of its oldest trajectory in the ring; of its next trajectory
        where the ring holds none of its own.
        """
        count = self._settings.emulators.num_environments
        oldest = self._rounds * count - len(self._ring)
        rounds = -((np.arange(count) - oldest) // count)  # ⌈(oldest − n) / N⌉.
        return rounds * self._settings.unroll_length

    def _clear(self) -> None:
        settings = self._settings
        count = settings.emulators.num_environments
        self._key: list[int] | None = None
        self._rounds = 0
        self._log = action_log.ActionLog(np.zeros(count, np.int64))
        self._ring = frame_ring.Ring(
            settings.replay_capacity, _room(settings, 0), self._pool
        )
        self._ages = np.zeros(count, np.int32)
        no_frames = np.zeros((count, *settings.emulators.frame_shape), np.uint8)
        self._recent = collections.deque(
            [no_frames] * frame_ring.STACK, maxlen=frame_ring.STACK
        )

    def _begin(self, key: list[int], spans: np.ndarray, begins: np.ndarray) -> None:
        """Begins each environment's log with a span, after so many steps."""
        self._key, self._spans, self._begins = key, spans, begins
        self._log = action_log.ActionLog(spans, steps=begins.min())
        self._recent[-1] = self._emulators.start([*key, _SPANS], spans)

    def _advance(self, actions: np.ndarray) -> atari.Step:
        step = self._emulators.step(actions)
        self._recent.append(step.frames)
        self._ages = np.where(step.is_game_over, 0, self._ages + 1).astype(np.int32)
        self._log.add(actions, step.is_span_begun)
        is_due = self._begins == self._log.steps
        if is_due.any():  # When acting again: it idled until its log begins.
            self._recent[-1] = self._emulators.restart(is_due, self._spans)
            self._ages[is_due] = 0
            self._log.begin(is_due, self._spans)
        return step

    def _play(
        self,
        choose: Callable[[int], tuple[np.ndarray, np.ndarray]],
        trajectories: frame_ring.Trajectories,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Acts T steps, and writes them down; the leading axes hold N in order.

        Returns:
            [T, N] rewards, and where a game was over.
        """
        axes = trajectories.actions.shape[:-1]
        frames = np.moveaxis(trajectories.frames, -4, 0)
        ages = np.moveaxis(trajectories.ages, -1, 0)
        for index, recent in enumerate(self._recent):
            # Frames of the episode before are no part of what can be acted again.
            frames[index] = recent.reshape(frames[index].shape)
            is_before = self._ages < frame_ring.STACK - 1 - index
            frames[index][is_before.reshape(axes)] = 0
        ages[0] = self._ages.reshape(axes)
        acted_rewards, game_over = [], []
        for t in range(self._settings.unroll_length):
            actions, logits = choose(t)
            step = self._advance(actions)
            is_lost = step.is_game_over | step.is_life_lost
            frames[frame_ring.STACK + t] = step.frames.reshape(frames[0].shape)
            ages[t + 1] = self._ages.reshape(axes)
            trajectories.actions[..., t] = actions.reshape(axes)
            trajectories.rewards[..., t] = step.rewards.reshape(axes)
            trajectories.continues[..., t] = ~is_lost.reshape(axes)
            trajectories.behavior_logits[..., t, :] = logits.reshape(*axes, -1)
            acted_rewards.append(step.rewards)
            game_over.append(step.is_game_over)
        return np.stack(acted_rewards), np.stack(game_over)

    def _act_again(
        self, key: list[int], rounds: int, log: action_log.Saved, logits: np.ndarray
    ) -> None:
        """Brings everything to where it was after some rounds."""
        length, count = self._settings.unroll_length, len(log.lengths)
        actions = log.aligned()
        self._begin(key, log.spans, rounds * length - log.lengths)
        # Of the oldest round in the ring, the first trajectories may be gone. They come
        # again, of no meaning, and go as the ring fills.
        oldest, gone = divmod(rounds * count - len(logits), count)
        logits = np.pad(logits, ((gone, 0), (0, 0), (0, 0)))
        idle, recorded = np.split(actions, [len(actions) - (rounds - oldest) * length])
        for step in idle:
            self._advance(step)
        trajectories = _room(self._settings, count)
        for acted in zip(
            recorded.reshape(-1, length, count),
            logits.reshape(-1, count, length, atari.MAX_ACTIONS),
            strict=True,
        ):
            self._play(functools.partial(_acted, *acted), trajectories)
            self._ring.add(trajectories)
        self._rounds = rounds


def _room(settings: Settings, *axes: int) -> frame_ring.Trajectories:
    """Makes room for trajectories of a source's size."""
    return frame_ring.empty(
        axes,
        settings.unroll_length,
        settings.emulators.frame_shape,
        atari.MAX_ACTIONS,
    )


def _part(batch: frame_ring.Trajectories, members: slice) -> frame_ring.Trajectories:
    """Views some of the trajectories of every update."""
    return frame_ring.Trajectories(*(array[:, members] for array in batch))


def _acted(
    actions: np.ndarray, logits: np.ndarray, step: int
) -> tuple[np.ndarray, np.ndarray]:
    return actions[step], logits[:, step]


def _checksum(arrays: Sequence[np.ndarray], text: str = "") -> np.ndarray:
    """Hashes values, shapes and types: [32] uint8."""
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array))
    return np.frombuffer(digest.digest(), np.uint8)
