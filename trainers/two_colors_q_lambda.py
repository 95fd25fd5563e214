"""Two-colors with Peng's Q(λ), whose exploration rate ε is fixed or meta-learned.

Two update kinds, each a function of this module: `fixed_epsilon` and
`bootstrapped_meta_gradient` (BMG). In the second a small network maps the rewards of
the 50 most recent steps to the ε of the next one; `meta_input` says whether they are
normalized, or left out, as in Luketina et al. (2022). ε is no part of the agent's
update rule, so the meta-gradient goes through none of the agent's updates: K is 0.

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
- ε of Adam stands outside the root, and nothing inside (`adam_eps_root`); Table 1 does
  not say where. The ReLUs are the paper's; `hidden_leak` is there to see what their
  dead units cost.
- A tie goes to the first of the best actions; initial weights are Haiku's.
"""

import dataclasses
import functools
from typing import Annotated, NamedTuple

import chex
import gin
import jax
import optax
from annotated_types import Ge, Interval

from bmg_sweeps.core import epsilon_greedy, meta_gradient
from bmg_sweeps.trainer.config import data, require_unused, structure
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
from trainers import _two_colors_meta, _two_colors_q_agent, _two_colors_statistics

Metrics = _two_colors_meta.Metrics
State = _two_colors_meta.State


@jax.tree_util.register_dataclass
@gin.configurable("two_colors_q_lambda")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """Every value is bound in gin/two_colors_q_lambda.gin; none has a default."""

    seed: Seed
    learning_rate: Positive  # α, of the agent.
    adam_b1: Decay
    adam_b2: Decay
    adam_eps: Positive  # Outside the root.
    gradient_decay: Decay  # Decay of the moving average before Adam.
    discount: Decay  # γ.
    trace_decay: Fraction  # λ.
    epsilon: Fraction  # ε, where it is fixed.
    meta_learning_rate: Positive  # β.
    meta_adam_b1: Decay
    meta_adam_b2: Decay
    meta_adam_eps: Positive
    meta_gradient_decay: Decay  # Decay of the moving average before Adam.
    adam_eps_root: NonNegative = data(was=0.0)  # Inside the root.
    hidden_leak: Fraction = data(was=0.0)  # Slope of the ReLUs of q below 0.
    update_kind: Annotated[str, OneOf(lambda: UPDATE_KINDS)] = structure()
    # L, updates from x to the target.
    target_steps: Annotated[
        int, Interval(ge=1, le=_two_colors_statistics.RECORD_EVERY)
    ] = structure()
    matching_function: Annotated[str, OneOf(lambda: MATCHING_FUNCTIONS)] = structure()
    # t, what ε depends on.
    meta_input: Annotated[str, OneOf(_two_colors_q_agent.META_INPUTS)] = structure(
        was="recent_rewards"
    )
    num_recent_rewards: Count = structure()  # Length of t.
    hidden_sizes: Sizes = structure()  # Layers of q.
    meta_hidden_sizes: Sizes = structure()  # Layers of the meta-network.
    # Steps on random inputs, towards ε = ½.
    meta_pretraining_steps: Annotated[int, Ge(0)] = structure(was=0)


class Explorer(NamedTuple):
    """What decides how the agent acts: its values, and w."""

    learner: _two_colors_q_agent.Learner
    meta_params: chex.ArrayTree


def check(config: Config) -> None:
    """Raises ValueError where fields contradict each other."""
    if config.update_kind != bootstrapped_meta_gradient.__name__:
        require_unused(config, _UNUSED_WITHOUT_TARGET, "there is no target")
        require_unused(config, _UNUSED_WITHOUT_META_LEARNER, "ε is fixed")


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
        config: the point's values.
        key: consumed here.
        source: nothing; the world is in `State`.

    Returns:
        The state before the first update.
    """
    del source
    learner_key, meta_key, pretraining_key = jax.random.split(key, 3)
    learner = _two_colors_q_agent.init(config, learner_key)
    meta_params = _two_colors_meta.init_params(
        config, meta_key, pretraining_key, config.num_recent_rewards, epsilon=0.5
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
    return _two_colors_meta.train(
        state,
        functools.partial(update, config),
        state.learner.environment.steps,
        config.target_steps,  # 1 without a target.
        lambda learner: _two_colors_statistics.of_features(
            learner.params, config.hidden_leak
        ),
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


def fixed_epsilon(config: Config, state: State) -> tuple[State, Metrics]:
    """Makes one step of the agent under a fixed ε; the baseline.

    Source: Flennerhag et al. (2022), Section 5.1, Figure 3.

    Args:
        config: the point's values.
        state: before it.

    Returns:
        The state after it, and the meta-update's own metrics.
    """
    learner, _ = _two_colors_q_agent.act_and_learn(
        config, lambda _: config.epsilon, state.learner, num_steps=1
    )
    return _two_colors_meta.leave_meta_params(state._replace(learner=learner))


def bootstrapped_meta_gradient(config: Config, state: State) -> tuple[State, Metrics]:
    """Makes L steps of the agent, and one step on w towards where they led.

        E_s μ(x̃, (x, w)): the greedy policy of q_x̃ against the ε_w-greedy one of q_x

    Source: Flennerhag et al. (2022), Eq. 2 and Appendix B.3, "BMG".

    Args:
        config: the point's values.
        state: before them.

    Returns:
        The state after them, and the meta-update's own metrics.

    Gradient: reaches w through the ε of the states that are matched; none goes through
    the agent's updates or q.
    """

    def target_bootstrap(meta_params, explorer):
        learner, visited = _two_colors_q_agent.act_and_learn(
            config,
            _two_colors_meta.learned(config, meta_params),
            explorer.learner,
            config.target_steps,
        )
        return (learner.params, visited), learner

    def matching_function(target, explorer):
        params, visited = target
        q = functools.partial(
            _two_colors_q_agent.values, config, observations=visited.observations
        )
        epsilon = jax.vmap(_two_colors_meta.learned(config, explorer.meta_params))
        return MATCHING_FUNCTIONS[config.matching_function](
            q(params), q(explorer.learner.params), epsilon(visited.meta_inputs)
        )

    meta_loss = functools.partial(
        meta_gradient.bootstrapped_meta_loss,
        inner_loop=lambda meta_params, learner: Explorer(learner, meta_params),
        target_bootstrap=target_bootstrap,
        matching_function=matching_function,
    )
    state, learner, metrics = _two_colors_meta.update_meta_params(
        state, _meta_optimizer(config), meta_loss
    )
    return state._replace(learner=learner), metrics


UPDATE_KINDS = {f.__name__: f for f in (fixed_epsilon, bootstrapped_meta_gradient)}
MATCHING_FUNCTIONS = {
    f.__name__: f for f in (epsilon_greedy.policy_kl, epsilon_greedy.value)
}


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


_UNUSED_WITHOUT_META_LEARNER = {
    "meta_input": _two_colors_q_agent.recent_rewards.__name__,
    "meta_pretraining_steps": 0,
}
_UNUSED_WITHOUT_TARGET = {"target_steps": 1, "matching_function": "policy_kl"}
