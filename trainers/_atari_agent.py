"""The agent of Atari: hyper-parameters of its losses, network, actions and loss.

The main task is a policy and a critic; auxiliary tasks are further pairs on the same
features, whose losses have hyper-parameters of their own. Task 0 is the main one.

Source: Flennerhag et al. (2022), Section 5.2, Appendix C; Zahavy et al. (2020), STACX;
Schmitt et al. (2020), LASER.
"""

import functools
from typing import Any, NamedTuple

import chex
import haiku as hk
import jax
import jax.numpy as jnp

from bmg_sweeps.core import convolutions, losses, networks, trust_region, v_trace

PRECISIONS = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}
REMATERIALIZATIONS = ("none", "sections")
ILLEGAL = -1e9  # Logit of an action that the game does not have.


class HyperParams(NamedTuple):
    """Those of a task's loss: [] each, or [H] of H tasks. As meta-parameters, raw."""

    discount: jax.Array  # γ.
    trace_decay: jax.Array  # λ.
    leak: jax.Array  # α: 1 is V-trace, 0 plain importance sampling.
    policy_gradient_weight: jax.Array  # ε_PG.
    entropy_weight: jax.Array  # ε_EN.
    value_weight: jax.Array  # ε_TD.


class Trajectories(NamedTuple):
    """B unrolls of T steps, time first."""

    observations: jax.Array  # [T + 1, B, H, W, C] uint8 of 0 to 255, or bool.
    a_t: jax.Array  # [T, B] int32.
    r_t: jax.Array  # [T, B] rewards as the game gives them.
    continues_t: jax.Array  # [T, B] bool; False where a game is over or a life lost.
    behavior_logits_t: jax.Array  # [T, B, A] of the policy ν that acted.
    is_online: jax.Array  # [B] bool; False of what comes from the replay.


class Outputs(NamedTuple):
    """What the network says of states."""

    logits: jax.Array  # [..., H, A] unnormalized log-probabilities.
    values: jax.Array  # [..., H] in units of return.


def objective(config: Any) -> HyperParams:
    """Returns the fixed hyper-parameters of the IMPALA objective, p; [] each."""
    return HyperParams(
        discount=config.discount,
        trace_decay=config.trace_decay,
        leak=config.leak,
        policy_gradient_weight=config.policy_gradient_weight,
        entropy_weight=config.entropy_weight,
        value_weight=config.value_weight,
    )


def initial_meta_params(config: Any) -> HyperParams:
    """Returns w(0): each meta-parameter is `initial_share` of its bound, ε_EN is p's.

    Source: Zahavy et al. (2020): all raw values are 4.6, of which the sigmoid is 0.99.

    Returns:
        [H] raw values each, equal for all tasks.
    """
    num_tasks = 1 + config.num_auxiliary_tasks
    raw = jax.scipy.special.logit(jnp.full(num_tasks, config.initial_share))
    entropy_share = config.entropy_weight / config.max_entropy_weight
    return HyperParams(*[raw] * len(HyperParams._fields))._replace(
        entropy_weight=jax.scipy.special.logit(jnp.full(num_tasks, entropy_share))
    )


def decoded(config: Any, meta_params: HyperParams) -> HyperParams:
    """Returns the hyper-parameters that meta-parameters stand for, bound · σ(w).

    The bounds are the objective's values, but 1 for λ and α and `max_entropy_weight`
    for ε_EN; otherwise ε_EN could never exceed its start.

    Source: Zahavy et al. (2020), Section 3; the paper's "max entropy loss value".

    Args:
        config: the point's values.
        meta_params: w, [H] raw values each.

    Returns:
        [H] each.

    Gradient: flows through all of w.
    """
    bounds = objective(config)._replace(
        trace_decay=1.0, leak=1.0, entropy_weight=config.max_entropy_weight
    )
    return jax.tree.map(lambda bound, w: bound * jax.nn.sigmoid(w), bounds, meta_params)


def init(
    config: Any, key: chex.PRNGKey, observation: jax.Array, num_actions: int
) -> hk.Params:
    """Draws the parameters u of features, policies and critics.

    Args:
        config: the point's values.
        key: consumed here.
        observation: [H, W, C], any.
        num_actions: A.

    Returns:
        "torso", "policy" and "critic"; the leaves of the last two are [H, …].
    """
    torso_key, policy_key, critic_key = jax.random.split(key, 3)
    observation = _scaled(config, observation[jnp.newaxis])
    torso = _torso(config)
    torso_params = torso.init(torso_key, observation)
    features = torso.apply(torso_params, observation)
    return {
        "torso": torso_params,
        "policy": _heads(config, num_actions).init(policy_key, features),
        "critic": _heads(config, 1).init(critic_key, features),
    }


def main(params: Any) -> Any:
    """Returns the part of parameters, or of their optimizer's moments, of task 0."""
    return with_heads(params, lambda leaf: leaf[:1])


def merged(params: Any, part: Any) -> Any:
    """Returns parameters with those of features and task 0 replaced by a part."""
    heads = {
        name: jax.tree.map(lambda all_, one: all_.at[:1].set(one), params[name], heads)
        for name, heads in part.items()
        if name != "torso"
    }
    return {"torso": part["torso"], **heads}


def with_heads(params: Any, function: Any) -> Any:
    """Maps the leaves of policies and critics, [H, …] each."""
    heads = {
        name: jax.tree.map(function, part)
        for name, part in params.items()
        if name != "torso"
    }
    return {"torso": params["torso"], **heads}


def apply(
    config: Any, params: Any, observations: jax.Array, is_legal: jax.Array
) -> Outputs:
    """Applies the network to states.

    Args:
        config: the point's values.
        params: u, of all tasks or of task 0.
        observations: [..., H, W, C].
        is_legal: [A] whether the game has the action.

    Returns:
        Logits [..., H, A], `ILLEGAL` where the game lacks an action, and values.
    """
    leading = observations.shape[:-3]
    flat = observations.reshape(-1, *observations.shape[-3:])
    features = _torso(config).apply(params["torso"], _scaled(config, flat))
    logits = _heads(config, is_legal.shape[0]).apply(params["policy"], features)
    values = _heads(config, 1).apply(params["critic"], features)[..., 0]
    logits = jnp.where(jnp.broadcast_to(is_legal, logits.shape), logits, ILLEGAL)
    return Outputs(
        logits.reshape(*leading, *logits.shape[-2:]),
        values.reshape(*leading, values.shape[-1]),
    )


def features(config: Any, params: Any, observations: jax.Array) -> jax.Array:
    """Returns what policies and critics see of states.

    Args:
        config: the point's values.
        params: u, of all tasks or of task 0.
        observations: [M, H, W, C].

    Returns:
        [M, feature_size], after their ReLUs.
    """
    seen = _torso(config).apply(params["torso"], _scaled(config, observations))
    return seen.astype(jnp.float32)


def act(
    config: Any,
    params: Any,
    observations: jax.Array,
    is_legal: jax.Array,
    uniforms: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Draws actions of the main policy, by the inverse of its distribution function.

    Args:
        config: the point's values.
        params: u.
        observations: [N, H, W, C].
        is_legal: [A] whether the game has the action.
        uniforms: [N] in [0, 1), multiples of 2⁻²³ as `jax.random.uniform` draws them.

    Returns:
        [N] int32 actions, and [N, A] the logits that they were drawn by.
    """
    logits = apply(config, main(params), observations, is_legal).logits[:, 0]
    cumulative = jnp.cumsum(jax.nn.softmax(logits), axis=-1)
    # Sums in another order can grow by rounding where nothing is added.
    cumulative = jnp.where(is_legal[jnp.newaxis], cumulative, 0.0)
    total = jnp.max(cumulative, axis=-1, keepdims=True)
    # 0 is among the uniforms, and would draw action 0 whatever its probability. So they
    # are moved to the middle of their steps.
    is_next = cumulative > (uniforms[:, jnp.newaxis] + 2**-24) * total
    return jnp.argmax(is_next, axis=-1).astype(jnp.int32), logits


def loss(
    config: Any,
    params: Any,
    hyper_params: HyperParams,
    batch: Trajectories,
    is_legal: jax.Array,
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Returns the sum of the tasks' losses, Σ_i f_τ(u_i; w_i).

        f = ε_PG ℓ_PG + ε_EN ℓ_EN + ε_TD ℓ_TD, on leaky V-trace targets

    The sum begins with the main task; the paper prints i = 1 to n, which leaves it out.
    Each f is a mean over states, times `loss_weight`.

    Source: Flennerhag et al. (2022), Eq. 4 and Appendix C, "STACX".

    Args:
        config: the point's values.
        params: u, of H tasks.
        hyper_params: [H] each.
        batch: τ.
        is_legal: [A] whether the game has the action.

    Returns:
        [] the loss, and the main task's terms.

    Gradient: in u through policies and critics; targets, ratios and relevance are
    constants of u. In the hyper-parameters through everything, targets too.
    """
    outputs = apply(config, params, batch.observations, is_legal)
    of_task = functools.partial(_task_loss, config, batch)
    total, terms = jax.vmap(of_task, in_axes=(Outputs(2, 2), 0))(outputs, hyper_params)
    return jnp.sum(total), jax.tree.map(lambda term: term[0], terms)


def _task_loss(
    config: Any, batch: Trajectories, outputs: Outputs, hyper_params: HyperParams
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """The loss f of one task.

    Logits are [T + 1, B, A], values [T + 1, B], hyper-parameters [].
    """
    logits_t, values = outputs.logits[:-1], jax.lax.stop_gradient(outputs.values)
    relevant = _relevance(config, logits_t, batch)
    returns = v_trace.leaky_v_trace(
        values=values,
        rewards=jnp.clip(batch.r_t, -config.reward_clip, config.reward_clip),
        discounts=hyper_params.discount * batch.continues_t,
        ratios=_ratios(logits_t, batch),
        relevant=relevant,
        leak=hyper_params.leak,
        trace_decay=hyper_params.trace_decay,
        max_rho=config.max_rho,
        max_c=config.max_c,
    )
    exploring = jnp.where(batch.is_online, 1.0, config.replay_entropy_weight)[None]
    policy_gradient = losses.policy_gradient(
        logits_t, batch.a_t, returns.advantages, relevant
    )
    entropy = losses.entropy(logits_t, relevant * exploring)
    temporal_difference = losses.temporal_difference(
        outputs.values[:-1], returns.targets, relevant
    )
    total = (
        hyper_params.policy_gradient_weight * policy_gradient
        + hyper_params.entropy_weight * entropy
        + hyper_params.value_weight * temporal_difference
    )
    num_states = batch.a_t.size
    return config.loss_weight * total / num_states, {
        "policy_gradient_loss": policy_gradient / num_states,
        "value_loss": temporal_difference / num_states,
        "entropy": -losses.entropy(logits_t) / num_states,
        "relevant": jnp.mean(relevant),
    }


def _relevance(config: Any, logits_t: jax.Array, batch: Trajectories) -> jax.Array:
    """[T, B] 1 where the behavior is near enough to learn from, else 0."""
    divergence = trust_region.implied_divergence(
        jax.lax.stop_gradient(logits_t), batch.behavior_logits_t, config.max_rho
    )
    return (divergence < config.relevance_threshold).astype(jnp.float32)


def _ratios(logits_t: jax.Array, batch: Trajectories) -> jax.Array:
    """[T, B] η_t = π(a_t | s_t) / ν(a_t | s_t), a constant."""
    difference = jax.nn.log_softmax(jax.lax.stop_gradient(logits_t))
    difference -= jax.nn.log_softmax(batch.behavior_logits_t)
    chosen = jnp.take_along_axis(difference, batch.a_t[..., jnp.newaxis], axis=-1)
    return jnp.exp(chosen[..., 0])


def _scaled(config: Any, observations: jax.Array) -> jax.Array:
    """Observations from 0 to 1, in the precision that is computed in."""
    scale = 255.0 if observations.dtype == jnp.uint8 else 1.0
    return observations.astype(PRECISIONS[config.precision]) / scale


def _torso(config: Any) -> hk.Transformed:
    return networks.residual(
        config.channels,
        config.num_blocks,
        config.feature_size,
        PRECISIONS[config.precision],
        is_rematerialized=config.rematerialization == "sections",
        is_written_out=convolutions.is_written_out_faster(),
    )


def _heads(config: Any, num_outputs: int) -> hk.Transformed:
    return networks.heads(
        1 + config.num_auxiliary_tasks, config.head_sizes, num_outputs
    )
