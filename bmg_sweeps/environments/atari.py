"""Atari games on the host: many emulators in lockstep, behind one mutable object.

What follows a seed is a function of the seed and the actions alone: not of the number
of threads, nor of what the emulator played before, nor of its neighbors. So emulators
need not be saved. Their seeds and actions are enough to bring them back.

A reset with a seed loads the game anew. That takes fifteen times as long as one without
and as long as 250 steps. Without a seed, some games begin differently after different
play. So a seed begins a span, of whole episodes: the first that ends after `span_steps`
steps is its last. With `span_steps` of 0, every episode is a span.

Differs from ale-py's defaults, after Flennerhag et al. (2022), Appendix C: frames have
their full size and colors and are not pooled, rewards are raw, a lost life ends no
episode, and none begins with FIRE. A frame here is a single one: `frame_ring` stacks.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from ale_py import roms, vector_env

from bmg_sweeps import atari_scores

GAMES = tuple(atari_scores.SCORES)
# Of the joystick. A game's k minimal actions have indices 0 … k − 1, in ale-py's order;
# the others are masked.
MAX_ACTIONS = 18
FRAMES_PER_STEP = 4  # An action is repeated so often, and the last frame is seen.
MAX_NO_OPS = 30  # An episode begins with fewer no-ops than this.
HEIGHT, WIDTH = 210, 160  # Pixels of a game's own frame.
MAX_EPISODE_FRAMES = 108_000  # Half an hour of play; an episode ends there.

_NO_SEED = -1  # Of ale-py: a reset that goes on with the random numbers there are.
_COUNTS = (
    "num_environments",
    "frame_height",
    "frame_width",
    "max_episode_frames",
    "threads",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What is emulated, and how it is seen."""

    game: str
    num_environments: int  # N.
    frame_height: int = HEIGHT  # H, pixels; another than the game's is resized to.
    frame_width: int = WIDTH  # W, pixels.
    is_grayscale: bool = False  # C is 1, else 3.
    sticky_action_probability: float = 0.0  # That the action before is repeated.
    max_episode_frames: int = MAX_EPISODE_FRAMES  # Without the no-ops.
    span_steps: int = 4_000  # A game that ends after so many is seeded anew.
    threads: int = 1  # Of ale-py; frames do not depend on them.

    @property
    def frame_shape(self) -> tuple[int, int, int]:
        """[H, W, C] of a frame."""
        return self.frame_height, self.frame_width, 1 if self.is_grayscale else 3


class Step(NamedTuple):
    """What one action a game led to."""

    frames: np.ndarray  # [N, H, W, C] uint8, the newest; after a game's end the next's.
    rewards: np.ndarray  # [N] float32, changes of the score.
    is_game_over: np.ndarray  # [N] bool.
    is_life_lost: np.ndarray  # [N] bool; where the game is not over.
    is_span_begun: np.ndarray  # [N] bool; where the game is over.


def check(settings: Settings) -> None:
    """Checks that there is such a game, and something to emulate.

    Raises:
        ValueError: of one line, for a setting that makes no sense, or a ROM that cannot
            be read.
    """
    if settings.game not in GAMES:
        raise ValueError(
            f"game: {settings.game!r}; expected one of the {len(GAMES)} of Atari by "
            "the name of its ROM, such as 'ms_pacman'"
        )
    for field, value in dataclasses.asdict(settings).items():
        if field in _COUNTS and value < 1:
            raise ValueError(f"{field}: {value}; expected at least 1")
    if settings.span_steps < 0:
        raise ValueError(f"span_steps: {settings.span_steps}; expected at least 0")
    if not 0 <= settings.sticky_action_probability <= 1:
        raise ValueError(
            f"sticky_action_probability: {settings.sticky_action_probability}; "
            "expected a number from 0 to 1"
        )
    try:
        roms.get_rom_path(settings.game)
    except OSError as error:
        reason = str(error).replace("\n", " ")
        raise ValueError(
            f"game: {settings.game!r}; expected a ROM that can be read: {reason}"
        ) from error


@functools.cache
def num_actions(game: str) -> int:
    """Counts the actions that do something in a game, its minimal set: 3 to 18.

    Raises:
        ValueError: there is no such game, or its ROM cannot be read.
    """
    settings = Settings(game=game, num_environments=1)
    check(settings)
    return int(_emulated(settings).single_action_space.n)


def span_seed(seed: Sequence[int], environment: int, span: int) -> int:
    """Gives each span of each environment a seed of its own.

    Args:
        seed: of the run, words of 32 bits.
        environment: its index, from 0.
        span: its number in this environment, from 0.

    Returns:
        An integer of 31 bits, which is what ale-py takes.
    """
    sequence = np.random.SeedSequence([*map(int, seed), environment, int(span)])
    return int(sequence.generate_state(1)[0] >> 1)


class Emulators:
    """N games in lockstep. One that is over is followed by the next at once."""

    def __init__(self, settings: Settings):
        """Opens the games; none runs before `start`.

        Raises:
            ValueError: as `check` says.
        """
        check(settings)  # For no environments, ale-py would end the process.
        self.settings = settings
        self.lives = np.zeros(settings.num_environments, np.int32)
        self._games = _emulated(settings)
        self.num_actions = int(self._games.single_action_space.n)
        self._seed: tuple[int, ...] = ()
        self._spans = np.zeros(settings.num_environments, np.int64)
        self._steps = np.zeros(settings.num_environments, np.int64)  # Of the span.

    def start(self, seed: Sequence[int], spans: np.ndarray) -> np.ndarray:
        """Begins a span in every environment.

        Args:
            seed: of the run, words of 32 bits.
            spans: [N] numbers of the spans that begin; see `span_seed`.

        Returns:
            [N, H, W, C] uint8 first frames, those after the no-ops.
        """
        self._seed = tuple(seed)
        return self.restart(np.ones(len(spans), bool), spans)

    def restart(self, is_chosen: np.ndarray, spans: np.ndarray) -> np.ndarray:
        """Begins a span in some environments; the others stay as they are.

        Args:
            is_chosen: [N] bool.
            spans: [N] numbers of the spans that begin; read where one does.

        Returns:
            [N, H, W, C] uint8 newest frames of all environments.
        """
        self._spans = np.where(is_chosen, spans, self._spans)
        self._steps[is_chosen] = 0
        return self._reset(is_chosen, is_chosen)

    def step(self, actions: np.ndarray) -> Step:
        """Takes one action in each environment, four frames long.

        Args:
            actions: [N] integers below `num_actions`.

        Returns:
            What it led to. Where it ended a game, `frames` begin the next.

        Raises:
            ValueError: a game has no such action.
        """
        actions = np.asarray(actions, np.int32)
        if actions.min() < 0 or actions.max() >= self.num_actions:
            raise ValueError(
                f"actions: {actions.min()} to {actions.max()}; expected 0 to "
                f"{self.num_actions - 1} in {self.settings.game}"
            )
        lives = self.lives
        stacks, rewards, terminated, truncated, info = self._games.step(actions)
        self.lives = info["lives"]
        is_game_over = terminated | truncated
        is_life_lost = (self.lives < lives) & ~is_game_over
        self._steps += 1
        is_span_begun = is_game_over & (self._steps >= self.settings.span_steps)
        if is_game_over.any():
            # Before the next step, which would else reset in place of acting.
            self._spans = self._spans + is_span_begun
            self._steps[is_span_begun] = 0
            frames = self._reset(is_game_over, is_span_begun)
        else:
            frames = self._newest(stacks)
        rewards = rewards.astype(np.float32)
        return Step(frames, rewards, is_game_over, is_life_lost, is_span_begun)

    def close(self) -> None:
        """Ends the emulators and their threads."""
        self._games.close()
        del self._games

    def _reset(self, is_chosen: np.ndarray, is_seeded: np.ndarray) -> np.ndarray:
        seeds = [
            span_seed(self._seed, n, self._spans[n]) if is_seeded[n] else _NO_SEED
            for n in np.flatnonzero(is_chosen)
        ]
        stacks, info = self._games.reset(
            seed=np.array(seeds, np.int64), options={"reset_mask": is_chosen}
        )
        self.lives = info["lives"]
        return self._newest(stacks)

    def _newest(self, stacks: np.ndarray) -> np.ndarray:
        return stacks.reshape(len(stacks), *self.settings.frame_shape)


def _emulated(settings: Settings) -> vector_env.AtariVectorEnv:
    return vector_env.AtariVectorEnv(
        settings.game,
        settings.num_environments,
        num_threads=settings.threads,
        max_num_frames_per_episode=settings.max_episode_frames,
        repeat_action_probability=settings.sticky_action_probability,
        img_height=settings.frame_height,
        img_width=settings.frame_width,
        grayscale=settings.is_grayscale,
        stack_num=1,
        frameskip=FRAMES_PER_STEP,
        maxpool=False,
        noop_max=MAX_NO_OPS,
        episodic_life=False,
        life_loss_info=False,  # True would end the episode as well.
        reward_clipping=False,
        use_fire_reset=False,
    )
