"""Atari and MinAtar: actor-critics that meta-learn the weights of their own losses.

Three update kinds, in `_atari_updates`: `impala`, whose weights are fixed; `stacx`,
which learns them by the gradient of the IMPALA objective after K updates; and `bmg`,
which learns them by matching a target that has learned on.

Source: Flennerhag et al. (2022), Section 5.2, Appendix C, Table 2; Zahavy et al.
(2020), STACX; Espeholt et al. (2018), IMPALA; Schmitt et al. (2020), LASER.

Differs from the paper, or goes beyond what it says:
- Acting and learning take turns: N environments act T steps, then N / 6 updates follow.
  The paper's actors are asynchronous. The policy lag, which `policy_lag` counts in
  meta-updates of K agent updates each, is the same in every run.
- The "max entropy loss value" of 0.9 is the bound of the entropy weight, which the
  paper does not explain. The discount is bounded by the objective's.
- The policy-gradient advantage is IMPALA's, ρ_t (r_t + γ G_{t+1} − v_t); the formulas
  of Appendix C weight the leading temporal difference by ρ twice.
- Tasks are summed from the main one, i = 0; the formulas print i = 1.
- The squared distance in parameter space is matched; Appendix C prints the norm.
- The learning rate falls to 0 over all frames; the table prints 200,000.
- States that LASER rejects count in no loss. The matching functions count all states.
- The entropy loss is of online data only (`replay_entropy_weight`), as in LASER. So
  updates on replay alone have none: the first K − 1 of the agent, the first L − 1 of
  the target, and the target's last step by `on_replay`.
- A loss is a mean over states, times `loss_weight`: 20 is the sum over an unroll and
  the mean over a batch. Meta-objectives that are means over states, STACX's and the
  matching functions, have `meta_loss_weight`: 360 × the mean; with 18 trajectories
  that is the sum.
- Meta-gradient variance is over the batches of an interval between rows, summed over
  the meta-parameters; the paper does not define its scale.
- The value of the main critic learns with the meta-learned discount and is judged by
  the objective's, in all agents.
"""

import dataclasses
import functools
from typing import Annotated, Any, NamedTuple

import chex
import gin
import jax
import jax.numpy as jnp
from annotated_types import Ge, Interval

from bmg_sweeps.core import diagnostics
from bmg_sweeps.environments import frame_ring
from bmg_sweeps.trainer import structures
from bmg_sweeps.trainer.config import require, require_unused, structure
from bmg_sweeps.trainer.ranges import (
    Count,
    Decay,
    Fraction,
    NonNegative,
    OneOf,
    Positive,
    Seed,
    Sizes,
)
from trainers import (
    _atari_agent,
    _atari_statistics,
    _atari_updates,
    _atari_worlds,
)

Share = Annotated[float, Interval(gt=0, lt=1)]


@jax.tree_util.register_dataclass
@gin.configurable("atari")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """Every value is bound in gin/atari.gin; none has a default."""

    seed: Seed
    learning_rate: Positive  # α, at the start.
    learning_rate_frames: Count  # Over which it falls to 0.
    rmsprop_decay: Decay
    rmsprop_eps: Positive  # Inside the root.
    gradient_clip: Positive  # Largest norm.
    loss_weight: Positive  # Factor on the mean loss over states.
    reward_clip: Positive  # Largest magnitude that is learned from.
    # The objective p: of IMPALA, and of what the meta-learners judge by.
    discount: Decay  # γ.
    trace_decay: Fraction  # λ.
    leak: Fraction  # α of leaky V-trace; 1 is V-trace.
    max_rho: Positive  # ρ̄.
    max_c: Positive  # c̄.
    policy_gradient_weight: NonNegative  # ε_PG.
    entropy_weight: Positive  # ε_EN.
    value_weight: NonNegative  # ε_TD.
    replay_entropy_weight: Fraction  # Factor on the entropy loss of replay.
    relevance_threshold: Positive  # LASER's b, in nats.
    # The meta-learner.
    initial_share: Share  # Of its bound that a meta-parameter starts at.
    max_entropy_weight: Positive  # Bound of ε_EN.
    meta_learning_rate: Positive  # β.
    meta_adam_b1: Decay
    meta_adam_b2: Decay
    meta_adam_eps: Positive
    meta_gradient_clip: Positive  # Largest norm.
    meta_loss_weight: Positive  # Factor on the meta-objective's mean over states.
    value_matching_weight: NonNegative  # Of the values in `policy_and_value`.
    target_learning_rate: Positive  # Of the target's last step by "sgd".
    game: Annotated[str, OneOf(_atari_worlds.GAMES)] = structure()
    sticky_action_probability: Fraction = structure()
    frame_height: Annotated[int, Ge(0)] = structure()  # Pixels; 0 on MinAtar.
    frame_width: Annotated[int, Ge(0)] = structure()
    frame_format: Annotated[str, OneOf(_atari_worlds.FRAME_FORMATS)] = structure()
    num_environments: Count = structure()  # N, that act in lockstep.
    unroll_length: Count = structure()  # T, steps.
    num_online: Count = structure()  # New trajectories of a meta-update.
    num_replay: Count = structure()  # Replay trajectories of an update.
    replay_capacity: Count = structure()  # Trajectories.
    channels: Sizes = structure()  # Of each section of convolutions; () has none.
    num_blocks: Annotated[int, Ge(0)] = structure()  # Residual ones a section.
    feature_size: Count = structure()
    head_sizes: Sizes = structure()  # Hidden layers of each policy and critic.
    precision: Annotated[str, OneOf(_atari_agent.PRECISIONS)] = structure()
    rematerialization: Annotated[str, OneOf(_atari_agent.REMATERIALIZATIONS)] = (
        structure()
    )
    num_auxiliary_tasks: Annotated[int, Ge(0)] = structure()
    update_kind: Annotated[str, OneOf(_atari_updates.UPDATE_KINDS)] = structure()
    inner_steps: Count = structure()  # K.
    target_steps: Count = structure()  # L.
    target_optimizer: Annotated[str, OneOf(_atari_updates.TARGET_OPTIMIZERS)] = (
        structure()
    )
    target_last_step: Annotated[str, OneOf(_atari_updates.TARGET_LAST_STEPS)] = (
        structure()
    )
    matching_function: Annotated[str, OneOf(_atari_updates.MATCHING_FUNCTIONS)] = (
        structure()
    )
    # Replay trajectories of the meta-objective.
    meta_replay: Count = structure()
    # Which parameters the agent goes on from.
    next_params: Annotated[str, OneOf(_atari_updates.NEXT_PARAMS)] = structure()
    record_interval: Count = structure()  # Updates that a row is the mean of.
    score_rows: Count = structure()  # Rows whose episodes a score is the mean of.


Row = _atari_statistics.Row


class State(NamedTuple):
    """All that `train` reads and changes; saving it is a checkpoint."""

    learner: _atari_updates.Learner
    world: Any  # None where it is outside JAX.
    game: _atari_worlds.Game  # Never changes.
    key: chex.PRNGKey  # Never changes; rounds fold their number in.
    updates: jax.Array  # [] int32.
    statistics: _atari_statistics.Statistics


def check(config: Config) -> None:
    """Raises ValueError where fields contradict each other."""
    online = config.num_online
    require(
        config,
        "num_environments",
        lambda v: v % online == 0,
        f"a multiple of num_online = {online}",
    )
    per_round = _atari_worlds.updates_per_round(config)
    require(
        config,
        "record_interval",
        lambda v: v % per_round == 0,
        f"a multiple of num_environments / num_online = {per_round}",
    )
    largest = max(config.num_environments, config.meta_replay)
    require(
        config,
        "replay_capacity",
        lambda v: v >= largest,
        f"at least {largest}, the trajectories of a round and of a batch",
    )
    require(
        config,
        "meta_replay",
        lambda v: v >= config.num_replay,
        f"at least num_replay = {config.num_replay}",
    )
    unroll = config.unroll_length * _atari_worlds.of(config.game).frames_per_step
    require(
        config,
        "learning_rate_frames",
        lambda v: v >= unroll,
        f"at least {unroll}, the frames of an unroll",
    )
    require(
        config,
        "max_entropy_weight",
        lambda v: v > config.entropy_weight,
        f"more than entropy_weight = {config.entropy_weight}",
    )
    _atari_worlds.of(config.game).check(config)
    _check_unused(config)


def _check_unused(config: Config) -> None:
    """Raises ValueError where a field of the structure is without effect."""
    if not config.channels:
        require_unused(config, _UNUSED_WITHOUT_SECTIONS, "there are no sections")
    if config.update_kind == _atari_updates.impala.__name__:
        unused = _UNUSED_WITHOUT_META_LEARNER | {"meta_replay": config.num_replay}
        require_unused(config, unused, "nothing is meta-learned")
    if config.update_kind != _atari_updates.bmg.__name__:
        require_unused(config, _UNUSED_WITHOUT_TARGET, "there is no target")
    elif config.target_last_step == _atari_updates.meta_learned.__name__:
        unused = {"target_optimizer": _atari_updates.rmsprop.__name__}
        require_unused(config, unused, "the target's last step is the agent's own")


def open_source(structure: structures.Structure) -> Any:
    """Opens the emulators of an Atari game; MinAtar's games are in the program."""
    return _atari_worlds.of(structure.game).open_source(structure)


def progress(config: Config, state: State) -> dict[str, jax.Array]:
    """Counts the training so far: frames of the game, and meta-updates.

    Each step of the agent is four frames of Atari and one of MinAtar.
    """
    return {"frames": _frames(config, state.updates), "updates": state.updates}


def init(config: Config, key: chex.PRNGKey, source: None) -> State:
    """Starts an agent in new worlds.

    Args:
        config: the point's values.
        key: those of the network and the world are split off.
        source: nothing.

    Returns:
        The state before the first update.
    """
    del source
    network_key, world_key, key = jax.random.split(key, 3)
    world = _atari_worlds.of(config.game)
    game = world.game(config.game)
    params = _atari_agent.init(
        config, network_key, world.observation(config), game.is_legal.shape[0]
    )
    learner = _atari_updates.init(config, params)
    scores = _atari_statistics.init_scores(
        config.num_environments, config.score_rows, game.random
    )
    sums = _atari_statistics.no_metrics(learner)
    state = State(
        learner=learner,
        world=world.start(config, world_key),
        game=game,
        key=key,
        updates=jnp.zeros((), jnp.int32),
        statistics=_atari_statistics.Statistics(scores, sums, row={}),
    )
    row = _row(config, state, sums)
    return state._replace(statistics=state.statistics._replace(row=row))


def act(
    config: Config, state: State, observation: frame_ring.Recent, step: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Acts in the emulators.

    Args:
        config: the point's values.
        state: whose main policy acts.
        observation: the newest frames of N environments.
        step: [] int32 of the round.

    Returns:
        [N] int32 actions, and [N, A] the logits that they were drawn by.
    """
    key = jax.random.fold_in(jax.random.fold_in(state.key, state.updates), step)
    uniforms = jax.random.uniform(key, observation.ages.shape)
    return _act(config, state, frame_ring.observed(observation), uniforms)


def train(config: Config, state: State, source: Any) -> tuple[State, Row]:
    """Runs one chunk of rounds; each acts and then makes some meta-updates.

    Args:
        config: the point's values.
        state: to go on from.
        source: of MinAtar nothing; of Atari what was acted in one round.

    Returns:
        The state after the chunk, and [1] rows: the last whole interval's, and those of
        `core.diagnostics` on recent states.
    """
    world = _atari_worlds.of(config.game)
    state, _ = jax.lax.scan(
        lambda state, _: (_round(config, state, source), None),
        state,
        length=world.rounds_per_call(config),
    )
    observations = world.recent_observations(config, state.world, source)
    params = state.learner.agent.params
    features = _atari_agent.features(config, params, observations)
    row = state.statistics.row | diagnostics.of_features(features)
    return state, {name: value[jnp.newaxis] for name, value in row.items()}


def update(
    config: Config, state: State, batches: _atari_updates.Batches
) -> tuple[_atari_updates.Learner, Any]:
    """Makes one meta-update of the configured kind.

    Args:
        config: the point's values.
        state: before it.
        batches: the trajectories that it learns from.

    Returns:
        The learner after it, and its metrics; "policy_lag" is how many meta-updates
        there were since the policy acted.
    """
    share = _frames(config, state.updates) / config.learning_rate_frames
    given = _atari_updates.Given(
        config=config,
        batches=batches,
        is_legal=state.game.is_legal,
        learning_rate=config.learning_rate * jnp.maximum(1.0 - share, 0.0),
    )
    kind = _atari_updates.UPDATE_KINDS[config.update_kind]
    learner, metrics = kind(given, state.learner)
    lag = state.updates % _atari_worlds.updates_per_round(config)
    metrics = metrics | {"policy_lag": lag.astype(jnp.float32)}
    return learner, _atari_statistics.of_update(metrics, state.learner, learner)


def _round(config: Config, state: State, source: Any) -> State:
    """Acts T steps in N environments, then learns from all of it."""
    world = _atari_worlds.of(config.game)
    key = jax.random.fold_in(state.key, state.updates)

    def meta_update(state: State, stored: Any) -> tuple[State, None]:
        batches = batches_of(config, world.trajectories(config, stored))
        learner, metrics = update(config, state, batches)
        sums = jax.tree.map(jnp.add, state.statistics.sums, metrics)
        return state._replace(
            learner=learner,
            updates=state.updates + 1,
            statistics=state.statistics._replace(sums=sums),
        ), None

    act = functools.partial(_act, config, state)
    world_state, acted = world.play(config, state.world, act, key, source)
    scores = _atari_statistics.acted(
        state.statistics.scores, acted.rewards, acted.is_game_over
    )
    statistics = state.statistics._replace(scores=scores)
    state = state._replace(world=world_state, statistics=statistics)
    state, _ = jax.lax.scan(meta_update, state, acted.trajectories)
    statistics = _atari_statistics.recorded(
        state.statistics,
        _row(config, state, state.statistics.sums),
        is_due=state.updates % config.record_interval == 0,
    )
    return state._replace(statistics=statistics)


def _act(
    config: Config, state: State, observations: jax.Array, uniforms: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Draws the main policy's actions; see `_atari_agent.act`."""
    params, is_legal = state.learner.agent.params, state.game.is_legal
    return _atari_agent.act(config, params, observations, is_legal, uniforms)


def batches_of(
    config: Config, stored: _atari_agent.Trajectories
) -> _atari_updates.Batches:
    """Deals a meta-update's trajectories out, [T, M] to those of each of its parts."""
    end = config.num_online + config.meta_replay

    def part(first: int, length: int) -> _atari_agent.Trajectories:
        return jax.tree.map(
            lambda leaf: jax.lax.slice_in_dim(
                leaf, first, first + length, axis=min(1, leaf.ndim - 1)
            ),
            stored,
        )

    def parts(first: int, number: int) -> _atari_agent.Trajectories:
        each = [
            part(first + i * config.num_replay, config.num_replay)
            for i in range(number)
        ]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *each) if each else None

    num_inner, num_target = config.inner_steps - 1, config.target_steps - 1
    return _atari_updates.Batches(
        main=part(0, config.num_online + config.num_replay),
        meta=part(0, end),
        inner=parts(end, num_inner),
        target=parts(end + num_inner * config.num_replay, num_target),
    )


def _row(config: Config, state: State, sums: Any) -> Row:
    """What a row says, should the interval end here."""
    score = _atari_statistics.score(state.statistics.scores)
    span = state.game.reference - state.game.random
    return {
        **progress(config, state),
        "score": score,
        "normalized_score": (score - state.game.random) / span,
        "episodes": state.statistics.scores.episodes,
        **_atari_statistics.means(sums, config.record_interval),
        **_atari_statistics.hyper_params(config, state.learner),
    }


def _frames(config: Config, updates: jax.Array) -> jax.Array:
    steps = config.num_online * config.unroll_length
    return updates * (steps * _atari_worlds.of(config.game).frames_per_step)


_UNUSED_WITHOUT_SECTIONS = {"num_blocks": 0, "rematerialization": "none"}
_UNUSED_WITHOUT_META_LEARNER = {"num_auxiliary_tasks": 0}
_UNUSED_WITHOUT_TARGET = {
    "target_steps": 1,
    "target_optimizer": _atari_updates.rmsprop.__name__,
    "target_last_step": _atari_updates.on_all.__name__,
    "matching_function": _atari_updates.policy_kl.__name__,
    "next_params": _atari_updates.learned.__name__,
}
