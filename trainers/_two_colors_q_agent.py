"""The Q(λ) agent of two-colors: a step in the world and a gradient step at a time.

The part of `two_colors_q_lambda` that knows the agent and not how its exploration rate
ε is learned. Functions take that trainer's `Config`.

Source: Flennerhag et al. (2022), Appendix B.3; Peng and Williams (1994).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import haiku as hk
import jax
import jax.numpy as jnp
import optax

from bmg_sweeps.core import networks, optimizers, peng_q_lambda, recall
from bmg_sweeps.environments import two_colors
from trainers import _two_colors_meta_input, _two_colors_statistics

Epsilon = Callable[[jax.Array], jax.Array]
"""ε(t): the meta-network's input ↦ the probability of a random action."""


class Learner(NamedTuple):
    """The agent and its world: all that a step of the agent reads and changes."""

    params: chex.ArrayTree  # x, of q.
    trace: chex.ArrayTree  # e: decayed sum of ∇q of the steps before, shaped like x.
    opt_state: optax.OptState
    environment: two_colors.State
    recent_rewards: jax.Array  # [num_recent_rewards], oldest first.
    key: chex.PRNGKey
    statistics: _two_colors_statistics.Statistics
    moments: _two_colors_meta_input.Moments | None  # Of rewards, to normalize t.


class Visited(NamedTuple):
    """Where the agent has been, before each of T steps."""

    observations: jax.Array  # [T, 30].
    meta_inputs: jax.Array  # [T, num_recent_rewards], t.


class _Noise(NamedTuple):
    """The random numbers of a step."""

    explore: jax.Array  # [] uniform in [0, 1): below ε, the action is random.
    action: jax.Array  # [] int32, the random one.
    respawn: jax.Array  # [] uniform in [0, 1): where a reached square goes.


def init(config: Any, key: chex.PRNGKey) -> Learner:
    """Starts an agent in a new world.

    Args:
        config: the point's values.
        key: consumed here.

    Returns:
        The learner before its first step, t = 0.
    """
    key, network_key, environment_key = jax.random.split(key, 3)
    environment = two_colors.reset(environment_key)
    is_normalized = config.meta_input == normalized_recent_rewards.__name__
    params = network(config).init(network_key, two_colors.observe(environment))
    return Learner(
        params=params,
        trace=jax.tree.map(jnp.zeros_like, params),
        opt_state=_optimizer(config).init(params),
        environment=environment,
        recent_rewards=jnp.zeros(config.num_recent_rewards),
        key=key,
        statistics=_two_colors_statistics.init(("epsilon",)),
        moments=_two_colors_meta_input.no_moments() if is_normalized else None,
    )


def recent_rewards(learner: Learner) -> jax.Array:
    """Returns the rewards of recent steps, 0 before the first.

    Source: Flennerhag et al. (2022), Appendix B.3, "Meta-learning".
    """
    return learner.recent_rewards


def normalized_recent_rewards(learner: Learner) -> jax.Array:
    """Returns tanh((r − m) / s), with mean m and deviation s of all rewards so far.

    Source: Luketina et al. (2022), "reward context".
    """
    return _two_colors_meta_input.normalized(learner.recent_rewards, learner.moments)


def no_rewards(learner: Learner) -> jax.Array:
    """Returns zeros: ε depends on nothing, and what is learned of it is one number.

    Source: Luketina et al. (2022), without context.
    """
    return jnp.zeros_like(learner.recent_rewards)


META_INPUTS = {
    f.__name__: f for f in (recent_rewards, normalized_recent_rewards, no_rewards)
}


def values(config: Any, params: chex.ArrayTree, observations: jax.Array) -> jax.Array:
    """Returns q(s, ·), [..., 4], of observations [..., 30].

    Gradient: flows through params and observations.
    """
    return recall.forward(params, observations, config.hidden_leak)[-1]


def network(config: Any) -> hk.Transformed:
    """Builds the layers of q, for their initial weights; `values` applies them."""
    return networks.mlp(config.hidden_sizes, two_colors.NUM_ACTIONS)


def act_and_learn(
    config: Any, epsilon: Epsilon, learner: Learner, num_steps: int
) -> tuple[Learner, Visited]:
    """Takes steps in the world, with an update of x after each.

        x ← x − α Adam(EMA(−(δ γλ e + δ′ ∇q(s, a))))

    Source: Flennerhag et al. (2022), Appendix B.3; Peng and Williams (1994), Fig. 1.

    Args:
        config: the point's values.
        epsilon: ε(t).
        learner: to go on from.
        num_steps: T.

    Returns:
        The learner after them, and where it has been.

    Gradient: not stopped here; callers stop it.
    """
    key, noise_key = jax.random.split(learner.key)
    step = functools.partial(_step, config, epsilon)
    learner = learner._replace(key=key)
    return jax.lax.scan(step, learner, _noise(noise_key, num_steps))


def _step(config, epsilon, learner, noise):
    observation = two_colors.observe(learner.environment)
    outputs = recall.forward(learner.params, observation, config.hidden_leak)
    q_tm1, meta_input = outputs[-1], META_INPUTS[config.meta_input](learner)
    rate = epsilon(meta_input)
    action = jnp.where(noise.explore < rate, noise.action, jnp.argmax(q_tm1))
    environment, outcome = two_colors.step(learner.environment, action, noise.respawn)
    q_t = values(config, learner.params, two_colors.observe(environment))

    discount = jnp.asarray(config.discount, outcome.reward.dtype)
    error = peng_q_lambda.errors(q_tm1, action, outcome.reward, discount, q_t)
    chosen = jax.nn.one_hot(action, q_tm1.size, dtype=q_tm1.dtype)
    gradient = recall.gradient(
        learner.params, observation, outputs, chosen, config.hidden_leak
    )
    descended, trace = peng_q_lambda.descent(
        learner.trace, gradient, error, discount * config.trace_decay
    )
    updates, opt_state = _optimizer(config).update(descended, learner.opt_state)
    visited = Visited(observation, meta_input)
    return learner._replace(
        params=optax.apply_updates(learner.params, updates),
        trace=trace,
        opt_state=opt_state,
        environment=environment,
        recent_rewards=jnp.append(learner.recent_rewards[1:], outcome.reward),
        statistics=_two_colors_statistics.update(
            learner.statistics,
            environment.steps,
            outcome.collected[jnp.newaxis],
            {"epsilon": jnp.asarray(rate)},
        ),
        moments=_two_colors_meta_input.accumulate(learner.moments, outcome.reward),
    ), visited


def _noise(key, num_steps):
    """Draws the random numbers of all steps at once, which is faster."""
    uniform_key, action_key = jax.random.split(key)
    explore, respawn = jax.random.uniform(uniform_key, (2, num_steps))
    action = jax.random.randint(action_key, (num_steps,), 0, two_colors.NUM_ACTIONS)
    return _Noise(explore, action, respawn)


def _optimizer(config):
    """A moving average of gradients, corrected for its start, and then Adam.

    The correction is that of `optax.ema`, as a factor where that divides each number,
    which takes a twelfth of a step's time.
    """
    decay = config.gradient_decay
    return optax.chain(
        optax.ema(decay, debias=False),
        optax.scale_by_schedule(lambda count: 1 / (1 - decay ** (count + 1))),
        optimizers.folded_adam(
            config.learning_rate,
            b1=config.adam_b1,
            b2=config.adam_b2,
            eps=config.adam_eps,
            eps_root=config.adam_eps_root,
        ),
    )
