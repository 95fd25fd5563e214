"""Two-colors with an actor-critic whose entropy weight ε is fixed or meta-learned.

Three update kinds, each a function of this module: `fixed_entropy_weight`,
`standard_meta_gradient` (MG) and `bootstrapped_meta_gradient` (BMG). In the last two a
small network maps the mean rewards of the ten most recent rollouts to ε; `meta_input`
says whether they are normalized, as in Luketina et al. (2022).

Source: Flennerhag et al. (2022), Section 5.1, Appendix B.2, Algorithms 1 to 3, Table 1.

Differs from the paper, or goes beyond what it says:
- Returns reach n = 1 step ahead; the paper does not state n. At its learning rate of
  0.1 longer ones make the critic overshoot and the policy saturate.
- The KL divergence is summed over the states of a rollout (`matching_weight` = 16).
- The target's gradient step has the agent's learning rate α; the paper prints β.
- `target_rollout` says on which rollout that step is computed. "last_rollout": that of
  the last update, as in Algorithm 3. "next_rollout": that of the next one, which shares
  its gradients with the target ("without an extra gradient computation").
- The advantages in the meta-objective of MG and in the target use the critic z⁽ᵗ⁾.
- MG's objective is "each policy and entropy loss encountered": those of the policy that
  an update has led to, or of the one that acted (`meta_objective`). It is a mean over
  states and updates where BMG's divergence is a sum over states; with Adam's ε of 1e-4
  that holds MG's steps back, as its gradients are not far above ε at first.
  `meta_objective_weight` puts both on one scale; the paper has 1.
"""

import dataclasses
import functools
from typing import Annotated

import chex
import gin
import jax
import jax.numpy as jnp
import optax
from annotated_types import Ge, Interval

from bmg_sweeps.core import matching, meta_gradient, targets
from bmg_sweeps.trainer.config import data, require, require_unused, structure
from bmg_sweeps.trainer.ranges import (
    Count,
    Decay,
    DivisorOf,
    NonNegative,
    OneOf,
    Positive,
    Seed,
    Sizes,
)
from trainers import (
    _two_colors_agent,
    _two_colors_meta,
    _two_colors_statistics,
    _two_colors_targets,
)

Metrics = _two_colors_meta.Metrics
State = _two_colors_meta.State


@jax.tree_util.register_dataclass
@gin.configurable("two_colors_actor_critic")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """Every value is bound in gin/two_colors_actor_critic.gin; none has a default."""

    seed: Seed
    learning_rate: Positive  # α, of the agent and of the target's gradient step.
    discount: Decay  # γ.
    policy_gradient_weight: NonNegative  # ε_PG.
    value_weight: NonNegative  # ε_TD.
    entropy_weight: NonNegative  # ε_EN, where it is fixed.
    meta_entropy_weight: NonNegative  # ε_meta, in the meta-objective or the target.
    # Factor on the mean divergence over a rollout's states.
    matching_weight: NonNegative
    meta_learning_rate: Positive  # β.
    meta_adam_b1: Decay
    meta_adam_b2: Decay
    meta_adam_eps: Positive
    # ε_w(0), before meta-updates.
    initial_entropy_weight: Annotated[float, Interval(gt=0, lt=1)] = data(was=0.5)
    # Factor on the objective of MG, a mean over states.
    meta_objective_weight: Positive = data(was=1.0)
    update_kind: Annotated[str, OneOf(lambda: UPDATE_KINDS)] = structure()
    # Of MG: whose losses on a rollout it averages.
    meta_objective: Annotated[str, OneOf(lambda: META_OBJECTIVES)] = structure(
        was="updated_policy"
    )
    inner_steps: Count = structure()  # K, updates that the meta-gradient goes through.
    target_steps: Count = structure()  # L, updates from x⁽ᴷ⁾ to the target.
    matching_function: Annotated[str, OneOf(lambda: MATCHING_FUNCTIONS)] = structure()
    target_weight: Annotated[str, OneOf(_two_colors_targets.WEIGHTS)] = structure()
    target_rollout: Annotated[str, OneOf(_two_colors_targets.ROLLOUTS)] = structure()
    # N, environment steps per update.
    rollout_length: Annotated[Count, DivisorOf(_two_colors_statistics.RECORD_EVERY)] = (
        structure()
    )
    return_steps: Count = structure()  # n of the n-step return.
    # t, what ε depends on.
    meta_input: Annotated[str, OneOf(_two_colors_agent.META_INPUTS)] = structure(
        was="mean_rewards"
    )
    num_recent_rollouts: Count = structure()  # Length of t.
    hidden_sizes: Sizes = structure()  # Layers of policy and critic.
    meta_hidden_sizes: Sizes = structure()  # Layers of the meta-network.
    # Steps on random inputs, towards the same ε at all of them.
    meta_pretraining_steps: Annotated[int, Ge(0)] = structure(was=0)


def check(config: Config) -> None:
    """Raises ValueError where fields contradict each other."""
    # A meta-update is to pass one multiple of the interval between rows at most.
    longest = _two_colors_statistics.RECORD_EVERY // config.rollout_length
    require(config, "target_steps", lambda v: v <= longest, f"at most {longest}")
    longest += 1 - config.target_steps
    require(
        config, "inner_steps", lambda v: v <= longest, f"at most {longest} at this L"
    )
    if config.update_kind != "meta_gradient":
        require_unused(config, _UNUSED_WITHOUT_OBJECTIVE, "MG is not used")
    elif config.meta_objective == acting_policy.__name__:
        why = "the first policy does not depend on w"
        require(config, "inner_steps", lambda v: v >= 2, f"at least 2, as {why}")
    if config.update_kind != bootstrapped_meta_gradient.__name__:
        require_unused(config, _UNUSED_WITHOUT_TARGET, "there is no target")
    if config.update_kind == fixed_entropy_weight.__name__:
        require_unused(config, _UNUSED_WITHOUT_META_LEARNER, "ε is fixed")


def progress(config: Config, state: State) -> dict[str, jax.Array]:
    """Counts the training so far: environment steps, and meta-updates."""
    return {
        "env_steps": _two_colors_agent.env_steps(config, state.learner),
        "meta_updates": state.meta_updates,
    }


def init(config: Config, key: chex.PRNGKey, source: None) -> State:
    """Starts an agent in a new world, with a meta-network whose ε_w(0) is given.

    Args:
        config: the point's values.
        key: consumed here.
        source: nothing; the world is in `State`.

    Returns:
        The state before the first update.
    """
    del source
    learner_key, meta_key, pretraining_key = jax.random.split(key, 3)
    learner = _two_colors_agent.init(config, learner_key)
    if config.target_rollout == _two_colors_targets.next_rollout.__name__:
        learner = _two_colors_agent.look_ahead(config, learner)
    meta_params = _two_colors_meta.init_params(
        config,
        meta_key,
        pretraining_key,
        config.num_recent_rollouts,
        config.initial_entropy_weight,
    )
    return _two_colors_meta.start(learner, meta_params, _meta_optimizer(config))


def train(config: Config, state: State, source: None) -> tuple[State, Metrics]:
    """Runs one chunk of meta-updates.

    Args:
        config: the point's values.
        state: to go on from.
        source: nothing.

    Returns:
        The state after the chunk, and [R] rows: `env_steps`, `total_reward` since the
        start, and so on; a repeated row counts once.
    """
    del source
    updates = config.inner_steps + config.target_steps - 1  # L is 1 without a target.
    return _two_colors_meta.train(
        state,
        functools.partial(update, config),
        _two_colors_agent.env_steps(config, state.learner),
        updates * config.rollout_length,
        lambda learner: _two_colors_statistics.of_features(learner.params.policy),
    )


def update(config: Config, state: State) -> tuple[State, Metrics]:
    """Makes one meta-update of the configured kind.

    Args:
        config: the point's values.
        state: before it.

    Returns:
        The state after it, and the meta-update's own metrics.
    """
    return UPDATE_KINDS[config.update_kind](config, state)


def fixed_entropy_weight(config: Config, state: State) -> tuple[State, Metrics]:
    """Makes K updates of the agent under a fixed ε; the baseline.

    Source: Flennerhag et al. (2022), Appendix B.2, "Agent".

    Args:
        config: the point's values.
        state: before them.

    Returns:
        The state after them, and the meta-update's own metrics.
    """
    update = _two_colors_agent.update_rule(config, lambda _: config.entropy_weight)
    learner = jax.lax.fori_loop(
        0, config.inner_steps, lambda _, learner: update(learner), state.learner
    )
    return _two_colors_meta.leave_meta_params(state._replace(learner=learner))


def standard_meta_gradient(config: Config, state: State) -> tuple[State, Metrics]:
    """Makes K updates of the agent, and one step on w to improve their mean loss.

        c/K Σ_k [ε_PG ℓ_PG(x⁽ᵏ⁾(w)) + ε_meta ℓ_EN(x⁽ᵏ⁾(w))], each on its rollout τ_k

    or of x⁽ᵏ⁻¹⁾, which collected τ_k, as `meta_objective` says; c is
    `meta_objective_weight`.

    Source: Flennerhag et al. (2022), Eq. 1 and Appendix B.2, "MG".

    Args:
        config: the point's values.
        state: before them.

    Returns:
        The state after them, and the meta-update's own metrics.

    Gradient: reaches w through all K updates; rollouts, advantages and the rewards that
    ε depends on are constants.
    """

    def inner_loop(meta_params, learner):
        update = _two_colors_agent.update_rule(
            config, _two_colors_meta.learned(config, meta_params)
        )

        def body(before, _):
            learner = update(before)
            params = META_OBJECTIVES[config.meta_objective](before, learner)
            judged = learner._replace(params=params)
            return learner, _two_colors_agent.policy_loss(
                config, judged, params.policy, config.meta_entropy_weight
            )

        return jax.lax.scan(body, learner, length=config.inner_steps)

    meta_loss = functools.partial(
        meta_gradient.standard_meta_loss,
        inner_loop=inner_loop,
        objective=lambda outcome: config.meta_objective_weight * jnp.mean(outcome[1]),
    )
    state, (learner, _), metrics = _two_colors_meta.update_meta_params(
        state, _meta_optimizer(config), meta_loss
    )
    return state._replace(learner=learner), metrics


def bootstrapped_meta_gradient(config: Config, state: State) -> tuple[State, Metrics]:
    """Makes K + L − 1 updates of the agent, and one step on w towards the last.

        KL(π_x̃ ‖ π_x⁽ᴷ⁾(w)) on the rollout of the target's last step

    Source: Flennerhag et al. (2022), Eq. 2, Algorithm 3 and Appendix B.2, "BMG".

    Args:
        config: the point's values.
        state: before them.

    Returns:
        The state after them, and the meta-update's own metrics.

    Gradient: reaches w through the K updates, and through none of the target's L.
    """

    def inner_loop(meta_params, learner):
        entropy_weight = _two_colors_meta.learned(config, meta_params)
        steps = config.inner_steps
        if learner.pending is not None:
            learner = _two_colors_agent.update_pending(config, entropy_weight, learner)
            steps -= 1
        update = _two_colors_agent.update_rule(config, entropy_weight)
        return jax.lax.scan(
            lambda learner, _: (update(learner), None), learner, length=steps
        )[0]

    def target_bootstrap(meta_params, learner):
        entropy_weight = _two_colors_meta.learned(config, meta_params)
        final_step = _two_colors_targets.ROLLOUTS[config.target_rollout]
        outcome, _ = targets.objective_step(
            learner,
            update=_two_colors_agent.update_rule(config, entropy_weight),
            final_step=functools.partial(final_step, config, entropy_weight),
            num_steps=config.target_steps,
        )
        return outcome

    def matching_function(target, learner):
        divergence = MATCHING_FUNCTIONS[config.matching_function]
        apply = _two_colors_agent.policy_network(config).apply
        return config.matching_weight * divergence(
            apply(target.policy, target.observations),
            apply(learner.params.policy, target.observations),
        )

    meta_loss = functools.partial(
        meta_gradient.bootstrapped_meta_loss,
        inner_loop=inner_loop,
        target_bootstrap=target_bootstrap,
        matching_function=matching_function,
    )
    state, learner, metrics = _two_colors_meta.update_meta_params(
        state, _meta_optimizer(config), meta_loss
    )
    return state._replace(learner=learner), metrics


def updated_policy(
    before: _two_colors_agent.Learner, after: _two_colors_agent.Learner
) -> _two_colors_agent.Params:
    """Returns x⁽ᵏ⁾ and z⁽ᵏ⁾: what an update made of its rollout."""
    del before
    return after.params


def acting_policy(
    before: _two_colors_agent.Learner, after: _two_colors_agent.Learner
) -> _two_colors_agent.Params:
    """Returns x⁽ᵏ⁻¹⁾ and z⁽ᵏ⁻¹⁾: what collected the rollout, and was updated on it."""
    del after
    return before.params


META_OBJECTIVES = {f.__name__: f for f in (updated_policy, acting_policy)}
UPDATE_KINDS = {
    "fixed_entropy_weight": fixed_entropy_weight,
    "meta_gradient": standard_meta_gradient,
    "bootstrapped_meta_gradient": bootstrapped_meta_gradient,
}
MATCHING_FUNCTIONS = {
    f.__name__: f
    for f in (
        matching.policy_kl,
        matching.reverse_policy_kl,
        matching.symmetric_policy_kl,
    )
}


def _meta_optimizer(config):
    return optax.adam(
        config.meta_learning_rate,
        b1=config.meta_adam_b1,
        b2=config.meta_adam_b2,
        eps=config.meta_adam_eps,
    )


_UNUSED_WITHOUT_TARGET = {
    "target_steps": 1,
    "target_rollout": _two_colors_targets.last_rollout.__name__,
}
_UNUSED_WITHOUT_OBJECTIVE = {"meta_objective": updated_policy.__name__}
_UNUSED_WITHOUT_META_LEARNER = {
    "meta_input": _two_colors_agent.mean_rewards.__name__,
    "meta_pretraining_steps": 0,
}
