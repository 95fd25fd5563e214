"""Two-colors with Peng's Q(λ), whose exploration rate ε is fixed or meta-learned.

Two update kinds, each a function of this module: `fixed_epsilon` and
`bootstrapped_meta_gradient` (BMG). In the second a small network maps the rewards of
the 50 most recent steps to the ε of the next one. ε is no part of the agent's update
rule, so the meta-gradient goes through none of the agent's updates: K is 0.

Source: Flennerhag et al. (2022), Section 5.1, Appendix B.3, Table 1; Peng and Williams
(1994).

Differs from the paper, or goes beyond what it says:
- The agent is updated on every step, by the backward view of Q(λ) with a trace, and
  the trace is that of weights which have moved since.
- The moving average of gradients, of agent and meta-learner, is corrected for its start
  and then given to Adam, which has moments of its own: Table 1 lists both.
- Meta-updates follow each other every L steps. Target and learner are matched on the L
  states that lie between, each with the ε of its own recent rewards; those before the
  start are 0. Neither L nor, for Figure 3, the matching function is stated.
- A tie goes to the first of the best actions; initial weights are Haiku's.
"""

import dataclasses
import functools
from typing import Annotated, NamedTuple

import chex
import gin
import jax
import jax.numpy as jnp
import optax
from annotated_types import Interval

from bmg_sweeps.core import epsilon_greedy, networks
from bmg_sweeps.core import meta_gradient as meta_gradients
from bmg_sweeps.trainer.config import require_unused, structure
from bmg_sweeps.trainer.ranges import (
    Count,
    Decay,
    Fraction,
    OneOf,
    Positive,
    Seed,
    Sizes,
)
from trainers import _two_colors_q_agent as agent
from trainers import _two_colors_statistics

CHUNK_ENV_STEPS = 20_000  # About as many in one call of `train`.


@jax.tree_util.register_dataclass
@gin.configurable("two_colors_q_lambda")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """Every value is bound in gin/two_colors_q_lambda.gin; none has a default."""

    seed: Seed
    learning_rate: Positive  # α, of the agent.
    adam_b1: Decay
    adam_b2: Decay
    adam_eps: Positive
    gradient_decay: Decay  # Of the moving average before Adam.
    discount: Decay  # γ.
    trace_decay: Fraction  # λ.
    epsilon: Fraction  # ε, where it is fixed.
    meta_learning_rate: Positive  # β.
    meta_adam_b1: Decay
    meta_adam_b2: Decay
    meta_adam_eps: Positive
    meta_gradient_decay: Decay  # Of the moving average before Adam.
    update_kind: Annotated[str, OneOf(lambda: UPDATE_KINDS)] = structure()
    # L, updates from x to the target.
    target_steps: Annotated[
        int, Interval(ge=1, le=_two_colors_statistics.RECORD_EVERY)
    ] = structure()
    matching_function: Annotated[str, OneOf(lambda: MATCHING_FUNCTIONS)] = structure()
    num_recent_rewards: Count = structure()  # Length of the meta-network's input t.
    hidden_sizes: Sizes = structure()  # Of q.
    meta_hidden_sizes: Sizes = structure()  # Of the meta-network.


class State(NamedTuple):
    """All that `update` reads; saving it is a checkpoint."""

    learner: agent.Learner
    meta_params: chex.ArrayTree  # w: the network that sets ε.
    meta_opt_state: optax.OptState
    meta_updates: jax.Array  # [] int32.


class Explorer(NamedTuple):
    """What decides how the agent acts: its values, and w."""

    learner: agent.Learner
    meta_params: chex.ArrayTree


def check(config: Config) -> None:
    """Raises ValueError where fields contradict each other."""
    if config.update_kind != bootstrapped_meta_gradient.__name__:
        require_unused(config, _UNUSED_WITHOUT_TARGET, "there is no target")


def progress(config: Config, state: State) -> dict[str, jax.Array]:
    """Counts the training so far: environment steps, and meta-updates."""
    del config
    return {
        "env_steps": state.learner.environment.steps,
        "meta_updates": state.meta_updates,
    }


def init(config: Config, key: chex.PRNGKey, source: None) -> State:
    """Starts an agent in a new world, with a meta-network whose ε is about ½.

    Args:
        config: of one point.
        key: consumed here.
        source: nothing; the world is in `State`.

    Returns:
        The state before the first update.
    """
    del source
    learner_key, meta_key = jax.random.split(key)
    learner = agent.init(config, learner_key)
    meta_params = _meta_network(config).init(meta_key, learner.recent_rewards)
    return State(
        learner=learner,
        meta_params=meta_params,
        meta_opt_state=_meta_optimizer(config).init(meta_params),
        meta_updates=jnp.zeros((), jnp.int32),
    )


def train(
    config: Config, state: State, source: None
) -> tuple[State, dict[str, jax.Array]]:
    """Runs one chunk of meta-updates.

    Args:
        config: of one point.
        state: to go on from.
        source: nothing.

    Returns:
        The state after the chunk, and [R] rows: `env_steps`, `total_reward` since the
        start, and so on; a repeated row counts once.
    """
    del source

    def meta_update(state: State, _: None) -> tuple[State, dict[str, jax.Array]]:
        state, metrics = update(config, state)
        return state, state.learner.statistics.row | metrics

    env_steps = state.learner.environment.steps
    length = max(1, CHUNK_ENV_STEPS // config.target_steps)  # L is 1 without a target.
    state, latched = jax.lax.scan(meta_update, state, length=length)
    most = -(-length * config.target_steps // _two_colors_statistics.RECORD_EVERY)
    return state, _two_colors_statistics.rows(latched, env_steps, most)


def update(config: Config, state: State) -> tuple[State, dict[str, jax.Array]]:
    """Makes one meta-update of the configured kind.

    Args:
        config: of one point.
        state: before it.

    Returns:
        The state after it, and the meta-update's own metrics.
    """
    return UPDATE_KINDS[config.update_kind](config, state)


def fixed_epsilon(config: Config, state: State) -> tuple[State, dict[str, jax.Array]]:
    """Makes one step of the agent under a fixed ε; the baseline.

    Source: Flennerhag et al. (2022), Section 5.1, Figure 3.

    Args:
        config: of one point.
        state: before it.

    Returns:
        The state after it, and the meta-update's own metrics.
    """
    learner, _ = agent.act_and_learn(
        config, lambda _: config.epsilon, state.learner, num_steps=1
    )
    state = state._replace(learner=learner, meta_updates=state.meta_updates + 1)
    return state, _metrics(state, meta_loss=0.0, meta_gradient_norm=0.0)


def bootstrapped_meta_gradient(
    config: Config, state: State
) -> tuple[State, dict[str, jax.Array]]:
    """Makes L steps of the agent, and one step on w towards where they led.

        E_s μ(x̃, (x, w)): the greedy policy of q_x̃ against the ε_w-greedy one of q_x

    Source: Flennerhag et al. (2022), Eq. 2 and Appendix B.3, "BMG".

    Args:
        config: of one point.
        state: before them.

    Returns:
        The state after them, and the meta-update's own metrics.

    Gradient: reaches w through the ε of the states that are matched; none goes through
    the agent's updates or q.
    """

    def target_bootstrap(meta_params, explorer):
        learner, visited = agent.act_and_learn(
            config,
            _meta_learned(config, meta_params),
            explorer.learner,
            config.target_steps,
        )
        return (learner.params, visited), learner

    def matching_function(target, explorer):
        params, visited = target
        q = functools.partial(agent.network(config).apply, inputs=visited.observations)
        epsilon = jax.vmap(_meta_learned(config, explorer.meta_params))
        return MATCHING_FUNCTIONS[config.matching_function](
            q(params), q(explorer.learner.params), epsilon(visited.recent_rewards)
        )

    meta_loss = functools.partial(
        meta_gradients.bootstrapped_meta_loss,
        inner_loop=lambda meta_params, learner: Explorer(learner, meta_params),
        target_bootstrap=target_bootstrap,
        matching_function=matching_function,
    )
    (loss, learner), grads = jax.value_and_grad(meta_loss, has_aux=True)(
        state.meta_params, state.learner
    )
    updates, meta_opt_state = _meta_optimizer(config).update(
        grads, state.meta_opt_state
    )
    state = State(
        learner=learner,
        meta_params=optax.apply_updates(state.meta_params, updates),
        meta_opt_state=meta_opt_state,
        meta_updates=state.meta_updates + 1,
    )
    return state, _metrics(state, loss, optax.tree.norm(grads))


UPDATE_KINDS = {f.__name__: f for f in (fixed_epsilon, bootstrapped_meta_gradient)}
MATCHING_FUNCTIONS = {
    f.__name__: f for f in (epsilon_greedy.policy_kl, epsilon_greedy.value)
}


def _metrics(state, meta_loss, meta_gradient_norm):
    return {
        "meta_updates": state.meta_updates,
        "meta_loss": jnp.asarray(meta_loss),
        "meta_gradient_norm": jnp.asarray(meta_gradient_norm),
    }


def _meta_learned(config, meta_params):
    """ε_w(t), in (0, 1)."""
    apply = _meta_network(config).apply
    return lambda recent_rewards: jax.nn.sigmoid(apply(meta_params, recent_rewards)[0])


def _meta_network(config):
    return networks.mlp(config.meta_hidden_sizes, 1)


def _meta_optimizer(config):
    return optax.chain(
        optax.ema(config.meta_gradient_decay),
        optax.adam(
            config.meta_learning_rate,
            b1=config.meta_adam_b1,
            b2=config.meta_adam_b2,
            eps=config.meta_adam_eps,
        ),
    )


_UNUSED_WITHOUT_TARGET = {"target_steps": 1, "matching_function": "policy_kl"}
