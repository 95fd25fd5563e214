"""The actor-critic of two-colors: one rollout and one gradient step an update.

The part of `two_colors_actor_critic` that knows the agent and not how its entropy
weight ε is learned. Functions take that trainer's `Config`.

Source: Flennerhag et al. (2022), Eq. 4, Appendix B.2 and Algorithms 1 and 2.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import haiku as hk
import jax
import jax.numpy as jnp

from bmg_sweeps.core import losses, networks, recall, returns
from bmg_sweeps.environments import two_colors
from trainers import _two_colors_meta_input, _two_colors_statistics

EntropyWeight = Callable[[jax.Array], jax.Array]
"""ε(t): the meta-network's input ↦ the weight of the entropy loss."""


class Params(NamedTuple):
    """x and z: two networks that share nothing."""

    policy: chex.ArrayTree
    value: chex.ArrayTree


class Pending(NamedTuple):
    """A rollout's gradients before ε is known: the target and an update share them."""

    policy_gradient: chex.ArrayTree  # ∇_x ε_PG ℓ_PG.
    entropy: chex.ArrayTree  # ∇_x ℓ_EN.
    value: chex.ArrayTree  # ∇_z ε_TD ℓ_TD.
    policy_entropy: jax.Array  # [] nats.


class Learner(NamedTuple):
    """The agent and its world: all that an update of the agent reads and changes."""

    params: Params
    environment: two_colors.State
    recent_rewards: jax.Array  # [num_recent_rollouts] mean rewards, oldest first.
    rollout: two_colors.Rollout  # The last one.
    pending: Pending | None  # What that rollout left, if an update is still to use it.
    key: chex.PRNGKey
    statistics: _two_colors_statistics.Statistics
    moments: _two_colors_meta_input.Moments | None  # Of mean rewards, to normalize t.


def init(config: Any, key: chex.PRNGKey) -> Learner:
    """Starts an agent in a new world.

    Args:
        config: the point's values.
        key: consumed here.

    Returns:
        The learner before its first update.
    """
    key, policy_key, value_key, environment_key = jax.random.split(key, 4)
    environment = two_colors.reset(environment_key)
    observation = two_colors.observe(environment)
    is_normalized = config.meta_input == normalized_mean_rewards.__name__
    return Learner(
        params=Params(
            policy=policy_network(config).init(policy_key, observation),
            value=_critic(config).init(value_key, observation),
        ),
        environment=environment,
        recent_rewards=jnp.zeros(config.num_recent_rollouts),
        rollout=two_colors.empty_rollout(config.rollout_length),
        pending=None,
        key=key,
        statistics=_two_colors_statistics.init(("entropy_weight", "policy_entropy")),
        moments=_two_colors_meta_input.no_moments() if is_normalized else None,
    )


def env_steps(config: Any, learner: Learner) -> jax.Array:
    """Counts the steps that updates have used; those of a pending rollout are not."""
    is_pending = learner.pending is not None
    return learner.environment.steps - config.rollout_length * is_pending


def meta_input(config: Any, learner: Learner) -> jax.Array:
    """Returns t, [num_recent_rollouts], by the name in `META_INPUTS`."""
    return META_INPUTS[config.meta_input](learner)


def mean_rewards(learner: Learner) -> jax.Array:
    """Returns the mean reward r̄ of each recent rollout, 0 before the first.

    Source: Flennerhag et al. (2022), Appendix B.2, "Meta-learning".
    """
    return learner.recent_rewards


def normalized_mean_rewards(learner: Learner) -> jax.Array:
    """Returns tanh((r̄ − m) / s), with mean m and deviation s of all r̄ so far.

    Source: Luketina et al. (2022), "reward context".
    """
    return _two_colors_meta_input.normalized(learner.recent_rewards, learner.moments)


META_INPUTS = {f.__name__: f for f in (mean_rewards, normalized_mean_rewards)}


def update_rule(
    config: Any, entropy_weight: EntropyWeight
) -> Callable[[Learner], Learner]:
    """Builds the update rule φ: one rollout, then one step of SGD on Eq. 4.

        x ← x − α ∇(ε_PG ℓ_PG + ε(t) ℓ_EN),  z ← z − α ∇ ε_TD ℓ_TD

    Source: Flennerhag et al. (2022), Algorithm 2; losses averaged, Table 1.

    Args:
        config: the point's values.
        entropy_weight: ε(t).

    Returns:
        A function from learner to updated learner.

    Gradient: flows through x and ε; what the rollout saw and paid is constant.
    """

    def update(learner: Learner) -> Learner:
        learner, outputs = _collect(config, learner)
        weight = entropy_weight(meta_input(config, learner))
        grads, policy_entropy = jax.grad(_loss, argnums=1, has_aux=True)(
            config, learner.params, learner.rollout, outputs, weight
        )
        learner = learner._replace(params=_descend(config, learner.params, grads))
        return _count(learner, weight, policy_entropy)

    return update


def look_ahead(config: Any, learner: Learner) -> Learner:
    """Collects the rollout of the next update, and its gradients term by term.

    Args:
        config: the point's values.
        learner: with nothing pending.

    Returns:
        The learner with the gradients pending.
    """
    learner, outputs = _collect(config, learner)
    rollout, length = learner.rollout, config.rollout_length
    apply = functools.partial(
        recall.recalled, inputs=rollout.observations[:-1], outputs=outputs
    )
    # Two backward passes, from the gradients at the logits.
    logits, pull_back = jax.vjp(apply, learner.params.policy)
    _, advantages, _ = _values(config, learner.params.value, rollout)
    policy_gradient = jax.grad(losses.policy_gradient)(
        logits, rollout.actions, config.policy_gradient_weight * advantages / length
    )
    entropy, entropy_gradient = jax.value_and_grad(losses.entropy)(logits)
    pending = Pending(
        policy_gradient=pull_back(policy_gradient)[0],
        entropy=pull_back(entropy_gradient / length)[0],
        value=jax.grad(_value_loss, argnums=1)(config, learner.params.value, rollout),
        policy_entropy=-entropy / length,
    )
    return learner._replace(pending=pending)


def update_pending(
    config: Any, entropy_weight: EntropyWeight, learner: Learner
) -> Learner:
    """Applies the update rule φ to a learner that has looked ahead.

    Args:
        config: the point's values.
        entropy_weight: ε(t).
        learner: with gradients pending.

    Returns:
        The updated learner, with nothing pending.

    Gradient: flows through ε; the pending gradients are constants.
    """
    weight = entropy_weight(meta_input(config, learner))
    params = Params(
        policy=pending_policy(config, weight, learner),
        value=_descend(config, learner.params.value, learner.pending.value),
    )
    policy_entropy = learner.pending.policy_entropy
    learner = learner._replace(params=params, pending=None)
    return _count(learner, weight, policy_entropy)


def pending_policy(
    config: Any, entropy_weight: jax.Array, learner: Learner
) -> chex.ArrayTree:
    """Steps the policy on its pending gradients, x − α (∇ε_PG ℓ_PG + ε ∇ℓ_EN)."""
    grads = jax.tree.map(
        lambda g, h: g + entropy_weight * h,
        learner.pending.policy_gradient,
        learner.pending.entropy,
    )
    return _descend(config, learner.params.policy, grads)


def stepped_policy(
    config: Any, entropy_weight: jax.Array, learner: Learner
) -> chex.ArrayTree:
    """Steps the policy once more on its last rollout, x − α ∇(ε_PG ℓ_PG + ε ℓ_EN)."""
    grads = jax.grad(policy_loss, argnums=2)(
        config, learner, learner.params.policy, entropy_weight
    )
    return _descend(config, learner.params.policy, grads)


def policy_loss(
    config: Any, learner: Learner, policy: chex.ArrayTree, entropy_weight: jax.Array
) -> jax.Array:
    """Averages ε_PG ℓ_PG + ε ℓ_EN over the learner's last rollout.

    Args:
        config: the point's values.
        learner: whose rollout and critic are used.
        policy: x, at which the loss is taken.
        entropy_weight: ε.

    Returns:
        [] scalar.

    Gradient: flows through `policy` and `entropy_weight`.
    """
    rollout = learner.rollout
    logits = policy_network(config).apply(policy, rollout.observations[:-1])
    _, advantages, _ = _values(config, learner.params.value, rollout)
    loss = config.policy_gradient_weight * losses.policy_gradient(
        logits, rollout.actions, advantages
    ) + entropy_weight * losses.entropy(logits)
    return loss / config.rollout_length


def policy_network(config: Any) -> hk.Transformed:
    """Builds π: observations [..., 30] ↦ logits [..., 4]."""
    return networks.mlp(config.hidden_sizes, two_colors.NUM_ACTIONS)


def _critic(config):
    return networks.mlp(config.hidden_sizes, 1)


def _collect(config, learner):
    """Acts for a rollout; returns also what the policy's layers have put out."""
    key, rollout_key = jax.random.split(learner.key)
    # No derivative flows through what was seen; it is stopped before it is computed.
    params = jax.lax.stop_gradient(learner.params.policy)

    def policy(observation):
        outputs = recall.forward(params, observation)
        return outputs[-1], outputs

    environment, rollout, outputs = two_colors.collect(
        rollout_key, learner.environment, policy, config.rollout_length
    )
    mean_reward = jnp.mean(rollout.rewards)
    learner = learner._replace(
        environment=environment,
        rollout=rollout,
        recent_rewards=jnp.append(learner.recent_rewards[1:], mean_reward),
        key=key,
        moments=_two_colors_meta_input.accumulate(learner.moments, mean_reward),
    )
    return learner, outputs


def _loss(config, params, rollout, outputs, entropy_weight):
    """Eq. 4, averaged over the rollout; and the entropy of the policy.

    `outputs` are those of the policy's layers, from when it acted with these params.
    """
    logits = recall.recalled(params.policy, rollout.observations[:-1], outputs)
    values, advantages, returns_ = _values(config, params.value, rollout)
    entropy = losses.entropy(logits)
    loss = (
        config.policy_gradient_weight
        * losses.policy_gradient(logits, rollout.actions, advantages)
        + entropy_weight * entropy
        + config.value_weight * losses.temporal_difference(values, returns_)
    )
    return loss / config.rollout_length, -entropy / config.rollout_length


def _value_loss(config, value_params, rollout):
    values, _, returns_ = _values(config, value_params, rollout)
    loss = config.value_weight * losses.temporal_difference(values, returns_)
    return loss / config.rollout_length


def _values(config, value_params, rollout):
    """Values of s_0 … s_{N−1}, their advantages, and their returns.

    A derivative flows through the values only.
    """
    values = _critic(config).apply(value_params, rollout.observations)[:, 0]
    constants = jax.lax.stop_gradient(values)
    returns_ = returns.n_step_returns(
        rollout.rewards,
        jnp.full_like(rollout.rewards, config.discount),
        constants[1:],
        config.return_steps,
    )
    return values[:-1], returns_ - constants[:-1], returns_


def _descend(config, params, grads):
    return jax.tree.map(lambda x, g: x - config.learning_rate * g, params, grads)


def _count(learner, entropy_weight, policy_entropy):
    measurements = {"entropy_weight": entropy_weight, "policy_entropy": policy_entropy}
    statistics = _two_colors_statistics.update(
        learner.statistics,
        learner.environment.steps,
        learner.rollout.collected,
        measurements,
    )
    return learner._replace(statistics=statistics)
