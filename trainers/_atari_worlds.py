"""Where Atari's agents act: MinAtar inside the program, or the emulators outside it.

Both play a round at a time: N environments act T steps in lockstep under the same
parameters, and enough batches for U = N / num_online updates are drawn from what they
did and from the replay. `of` says which of the two a game belongs to.
"""

import contextlib
import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from bmg_sweeps import atari_scores
from bmg_sweeps.environments import atari, frame_ring
from bmg_sweeps.environments.minatar import grid, scores, worlds
from bmg_sweeps.trainer.config import require, require_unused
from trainers import _atari_agent, _atari_emulators

MINATAR = "minatar_"  # Before the names of its games.
GAMES = (*(MINATAR + name for name in worlds.GAMES), *atari.GAMES)
FRAME_FORMATS = ("rgb", "grayscale")

Act = Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
"""(observations [N, H, W, C], uniforms [N]) ↦ actions [N], logits [N, A]."""


class Game(NamedTuple):
    """What a game is to an agent; data, so that games share a program."""

    is_legal: jax.Array  # [A] bool.
    random: jax.Array  # [] score of random play.
    reference: jax.Array  # [] score of a human, or on MinAtar of a published agent.


class Round(NamedTuple):
    """What was acted in a round, and what its updates learn from."""

    trajectories: Any  # [U, M, …] as the world stores them, online ones first.
    rewards: jax.Array  # [T, N].
    is_game_over: jax.Array  # [T, N] bool.


class World(NamedTuple):
    """The functions of a world."""

    frames_per_step: int
    check: Callable[[Any], None]  # (config); raises ValueError.
    # (config) ↦ rounds that one call of `train` plays.
    rounds_per_call: Callable[[Any], int]
    game: Callable[[str], Game]
    observation: Callable[[Any], jax.Array]  # (config) any [H, W, C].
    open_source: Callable[[Any], Any]  # (structure), a context manager.
    start: Callable[[Any, chex.PRNGKey], Any]  # (config, key) its state, if any.
    # (config, state, act, key, source) the state after a round, and the round.
    play: Callable[..., tuple[Any, Round]]
    # (config, [M, …] of a round's trajectories) the same, time first.
    trajectories: Callable[[Any, Any], _atari_agent.Trajectories]
    # (config, state, source) [M, H, W, C], some of the last.
    recent_observations: Callable[[Any, Any, Any], jax.Array]


class Replay(NamedTuple):
    """A ring of C trajectories: the oldest makes room for the newest."""

    observations: jax.Array  # [C, T + 1, P] uint8, eight squares a byte.
    actions: jax.Array  # [C, T] uint8.
    rewards: jax.Array  # [C, T].
    continues: jax.Array  # [C, T] bool.
    behavior_logits: jax.Array  # [C, T, A].


class MinAtarState(NamedTuple):
    """N worlds, and the replay of what was done in them."""

    worlds: Any  # [N, …].
    replay: Replay
    count: jax.Array  # [] int32, trajectories that were ever added.


def of(game: str) -> World:
    """Finds the world that a game is of."""
    return minatar if game.startswith(MINATAR) else emulators


def num_samples(config: Any) -> int:
    """Counts the replay trajectories of a meta-update."""
    further = config.inner_steps + config.target_steps - 2
    return config.meta_replay + further * config.num_replay


def updates_per_round(config: Any) -> int:
    """Counts the meta-updates of a round; each has num_online new trajectories."""
    return config.num_environments // config.num_online


def num_rounds(config: Any) -> int:
    """Counts the rounds of an interval between rows."""
    return config.record_interval // updates_per_round(config)


def _minatar_game(name: str) -> Game:
    game = _minatar(name)
    score = scores.SCORES[name.removeprefix(MINATAR)]
    return Game(
        is_legal=jnp.ones(game.NUM_ACTIONS, bool),
        random=jnp.float32(score.random),
        reference=jnp.float32(score.published),
    )


def _minatar_observation(config: Any) -> jax.Array:
    return jnp.zeros((grid.SIZE, grid.SIZE, _minatar(config.game).NUM_CHANNELS), bool)


def _minatar_start(config: Any, key: chex.PRNGKey) -> MinAtarState:
    """N new episodes, and an empty ring."""
    game = _minatar(config.game)
    observation = worlds.packed(_minatar_observation(config))
    capacity, length = config.replay_capacity, config.unroll_length
    start = functools.partial(worlds.start, game)
    return MinAtarState(
        worlds=jax.vmap(start)(jax.random.split(key, config.num_environments)),
        replay=Replay(
            observations=jnp.zeros((capacity, length + 1, *observation.shape), "uint8"),
            actions=jnp.zeros((capacity, length), jnp.uint8),
            rewards=jnp.zeros((capacity, length)),
            continues=jnp.zeros((capacity, length), bool),
            behavior_logits=jnp.zeros((capacity, length, game.NUM_ACTIONS)),
        ),
        count=jnp.zeros((), jnp.int32),
    )


def _minatar_play(
    config: Any, state: MinAtarState, act: Act, key: chex.PRNGKey, source: None
) -> tuple[MinAtarState, Round]:
    """Acts T steps, adds what was done to the ring, and samples."""
    del source
    acting_key, sampling_key = jax.random.split(key)
    state, acted = _minatar_act(config, state, act, acting_key)
    newest = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), acted)
    slots = state.count + jnp.arange(config.num_environments)
    replay = jax.tree.map(
        lambda ring, new: ring.at[slots % config.replay_capacity].set(new),
        *(state.replay, newest),
    )
    state = state._replace(replay=replay, count=state.count + len(slots))
    shape = (updates_per_round(config), num_samples(config))
    filled = jnp.minimum(state.count, config.replay_capacity)
    uniforms = jax.random.uniform(sampling_key, shape)
    sampled = jax.tree.map(
        lambda ring: ring[(uniforms * filled).astype("int32")], replay
    )
    return state, Round(
        trajectories=jax.tree.map(_with_online(config), newest, sampled),
        rewards=acted.rewards,
        is_game_over=~acted.continues,
    )


def _minatar_act(
    config: Any, state: MinAtarState, act: Act, key: chex.PRNGKey
) -> tuple[MinAtarState, Replay]:
    """N worlds, T steps: what was seen, done and earned, time first."""
    game, num_worlds = _minatar(config.game), config.num_environments
    observe = jax.vmap(functools.partial(worlds.observe, game))

    def step(world, keys):
        observations = observe(world)
        uniforms = jax.random.uniform(keys[0], (num_worlds,))
        actions, logits = act(observations, uniforms)
        world, rewards, is_game_over = jax.vmap(
            functools.partial(worlds.act, game), in_axes=(0, 0, None, 0)
        )(world, actions, config.sticky_action_probability, keys[1:])
        packed = jax.vmap(worlds.packed)(observations)
        step_ = Replay(packed, actions.astype("uint8"), rewards, ~is_game_over, logits)
        return world, step_

    keys = jax.random.split(key, (config.unroll_length, 1 + num_worlds))
    world, acted = jax.lax.scan(step, state.worlds, keys)
    last = jax.vmap(worlds.packed)(observe(world))
    observations = jnp.concatenate([acted.observations, last[jnp.newaxis]])
    return state._replace(worlds=world), acted._replace(observations=observations)


def _with_online(config: Any) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """Puts each update's share of the new trajectories before its samples."""

    def joined(newest: jax.Array, sampled: jax.Array) -> jax.Array:
        online = newest[: sampled.shape[0] * config.num_online]
        online = online.reshape(-1, config.num_online, *newest.shape[1:])
        return jnp.concatenate([online, sampled], axis=1)

    return joined


def _minatar_trajectories(config: Any, stored: Replay) -> _atari_agent.Trajectories:
    game = _minatar(config.game)
    unpacked = jax.vmap(jax.vmap(lambda bits: worlds.unpacked(bits, game)))
    observations = unpacked(stored.observations)
    shape = (*observations.shape[:2], grid.SIZE, grid.SIZE, game.NUM_CHANNELS)
    return _time_first(config, stored, observations.reshape(shape))


def _minatar_recent_observations(
    config: Any, state: MinAtarState, source: None
) -> jax.Array:
    """Returns those of some trajectories, evenly spaced in the replay."""
    del source
    filled = jnp.minimum(state.count, config.replay_capacity)
    positions = jnp.arange(_MEASURED_TRAJECTORIES) * filled // _MEASURED_TRAJECTORIES
    stored = jax.tree.map(lambda ring: ring[positions], state.replay)
    return _flat(_minatar_trajectories(config, stored).observations)


def _emulator_recent_observations(config: Any, state: None, source: Any) -> jax.Array:
    """Returns those of the round's first update, online and from the replay.

    Further replay, which is there for a larger K, L or meta-objective, is left out: on
    more states a network shows a higher rank, and agents could not be compared.
    """
    names = frame_ring.Trajectories._fields
    number = config.num_online + config.num_replay
    stored = frame_ring.Trajectories(
        **{name: source[name][0][:number] for name in names}
    )
    return _flat(_emulator_trajectories(config, stored).observations)


def _flat(observations: jax.Array) -> jax.Array:
    return observations.reshape(-1, *observations.shape[2:])


_MEASURED_TRAJECTORIES = 24  # Of MinAtar.


def _time_first(
    config: Any, stored: Any, observations: jax.Array
) -> _atari_agent.Trajectories:
    """Trajectories of a meta-update as the learner takes them, time first."""
    num_trajectories = stored.actions.shape[0]
    return _atari_agent.Trajectories(
        observations=jnp.swapaxes(observations, 0, 1),
        a_t=stored.actions.T.astype(jnp.int32),
        r_t=stored.rewards.T,
        continues_t=stored.continues.T,
        behavior_logits_t=jnp.swapaxes(stored.behavior_logits, 0, 1),
        is_online=jnp.arange(num_trajectories) < config.num_online,
    )


def _minatar(name: str) -> Any:
    return worlds.GAMES[name.removeprefix(MINATAR)]


def _minatar_check(config: Any) -> None:
    require_unused(config, _UNUSED_ON_MINATAR, "MinAtar has cells, not pixels")


def _emulator_game(name: str) -> Game:
    num_actions, score = atari.num_actions(name), atari_scores.SCORES[name]
    return Game(
        is_legal=jnp.arange(atari.MAX_ACTIONS) < num_actions,
        random=jnp.float32(score.random),
        reference=jnp.float32(score.human),
    )


def _emulator_check(config: Any) -> None:
    for field in ("frame_height", "frame_width"):
        require(config, field, lambda v: v > 0, "at least 1 pixel")
    atari.check(emulator_settings(config))  # Raises where the game's ROM is missing.


def _emulator_observation(config: Any) -> jax.Array:
    height, width, channels = emulator_settings(config).frame_shape
    return jnp.zeros((height, width, frame_ring.STACK * channels), jnp.uint8)


def _emulator_source(structure: Any) -> Any:
    settings = _atari_emulators.Settings(
        emulators=emulator_settings(structure),
        unroll_length=structure.unroll_length,
        num_online=structure.num_online,
        num_replay_samples=num_samples(structure),
        replay_capacity=structure.replay_capacity,
    )
    return _atari_emulators.opened(settings)


def emulator_settings(structure: Any) -> atari.Settings:
    return atari.Settings(
        game=structure.game,
        num_environments=structure.num_environments,
        frame_height=structure.frame_height,
        frame_width=structure.frame_width,
        is_grayscale=structure.frame_format == "grayscale",
        sticky_action_probability=structure.sticky_action_probability,
        threads=int(os.environ.get("NPROC", os.cpu_count() or 1)),
    )


def _emulator_play(
    config: Any, state: None, act: Act, key: chex.PRNGKey, source: Any
) -> tuple[None, Round]:
    """What the live source has acted already."""
    del config, act, key
    trajectories = {name: source[name] for name in frame_ring.Trajectories._fields}
    return state, Round(
        trajectories=frame_ring.Trajectories(**trajectories),
        rewards=source["acted_rewards"],
        is_game_over=source["acted_game_over"],
    )


def _emulator_trajectories(
    config: Any, stored: frame_ring.Trajectories
) -> _atari_agent.Trajectories:
    return _time_first(config, stored, frame_ring.stacked(stored.frames, stored.ages))


_UNUSED_ON_MINATAR = {"frame_height": 0, "frame_width": 0, "frame_format": "rgb"}

minatar = World(
    frames_per_step=1,
    check=_minatar_check,
    rounds_per_call=num_rounds,
    game=_minatar_game,
    observation=_minatar_observation,
    open_source=lambda structure: contextlib.nullcontext(),
    start=_minatar_start,
    play=_minatar_play,
    trajectories=_minatar_trajectories,
    recent_observations=_minatar_recent_observations,
)
emulators = World(
    frames_per_step=atari.FRAMES_PER_STEP,
    check=_emulator_check,
    rounds_per_call=lambda config: 1,
    game=_emulator_game,
    observation=_emulator_observation,
    open_source=_emulator_source,
    start=lambda config, key: None,
    play=_emulator_play,
    trajectories=_emulator_trajectories,
    recent_observations=_emulator_recent_observations,
)
