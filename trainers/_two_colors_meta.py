"""The meta-learner that the agents of two-colors share.

A small network w maps the rewards of recent steps or rollouts to a number ε in (0, 1).
It is the weight of the entropy loss in one trainer and the exploration rate in the
other. Functions take either trainer's `Config`.

Source: Flennerhag et al. (2022), Section 5.1, Appendix B.2 and B.3, "Meta-learning".
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import haiku as hk
import jax
import jax.numpy as jnp
import optax

from bmg_sweeps.core import networks
from trainers import _two_colors_statistics

CHUNK_ENV_STEPS = 20_000  # About as many in one call of `train`.
_PRETRAINING_RATE = 1e-3  # Of Adam; the paper states neither it nor the batch.
_PRETRAINING_BATCH = 64  # Random inputs a step.

Metrics = dict[str, jax.Array]


class State(NamedTuple):
    """All that a meta-update reads; saving it is a checkpoint."""

    learner: Any  # The agent's, with its world, its key and its statistics.
    meta_params: chex.ArrayTree  # w.
    meta_opt_state: optax.OptState
    meta_updates: jax.Array  # [] int32.


def network(config: Any) -> hk.Transformed:
    """Builds the meta-network: t, [recent rewards] ↦ [1] logit of ε."""
    return networks.mlp(config.meta_hidden_sizes, 1)


def learned(
    config: Any, meta_params: chex.ArrayTree
) -> Callable[[jax.Array], jax.Array]:
    """Returns ε_w: t ↦ a number in (0, 1)."""
    apply = network(config).apply
    return lambda recent_rewards: jax.nn.sigmoid(apply(meta_params, recent_rewards)[0])


def init_params(
    config: Any,
    key: chex.PRNGKey,
    pretraining_key: chex.PRNGKey,
    num_rewards: int,
    epsilon: float | jax.Array,
) -> chex.ArrayTree:
    """Makes a meta-network that starts near one number.

    With zero biases but for the last one, ε_w(0) is ε. Pre-training brings ε_w(t)
    near it for all t, in `meta_pretraining_steps` steps of Adam on

        mean_t (ε_w(t) − ε)²,  t ~ U(−1, 1) in each element

    Source: Luketina et al. (2022), who pre-train so on random inputs; their number of
    steps and the distribution are not stated. Flennerhag et al. (2022) do not.

    Args:
        config: the point's values.
        key: consumed here.
        pretraining_key: consumed here.
        num_rewards: length of t.
        epsilon: ε, in (0, 1).

    Returns:
        w.
    """
    meta_params = network(config).init(key, jnp.zeros(num_rewards))
    meta_params[list(meta_params)[-1]]["b"] += jax.scipy.special.logit(epsilon)
    if not config.meta_pretraining_steps:
        return meta_params
    optimizer = optax.adam(_PRETRAINING_RATE)

    def loss(meta_params, inputs):
        outputs = jax.vmap(learned(config, meta_params))(inputs)
        return jnp.mean(jnp.square(outputs - epsilon))

    def step(i, carry):
        meta_params, opt_state = carry
        inputs = jax.random.uniform(
            jax.random.fold_in(pretraining_key, i),
            (_PRETRAINING_BATCH, num_rewards),
            minval=-1.0,
        )
        grads = jax.grad(loss)(meta_params, inputs)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(meta_params, updates), opt_state

    carry = (meta_params, optimizer.init(meta_params))
    return jax.lax.fori_loop(0, config.meta_pretraining_steps, step, carry)[0]


def start(
    learner: Any, meta_params: chex.ArrayTree, optimizer: optax.GradientTransformation
) -> State:
    """Makes the state before the first meta-update."""
    return State(
        learner=learner,
        meta_params=meta_params,
        meta_opt_state=optimizer.init(meta_params),
        meta_updates=jnp.zeros((), jnp.int32),
    )


def train(
    state: State,
    update: Callable[[State], tuple[State, Metrics]],
    env_steps: jax.Array,
    env_steps_per_update: int,
    measure: Callable[[Any], Metrics],
) -> tuple[State, Metrics]:
    """Runs one chunk of meta-updates.

    Args:
        state: to go on from.
        update: makes one meta-update.
        env_steps: [] int32, steps taken before.
        env_steps_per_update: those of one meta-update.
        measure: learner ↦ what is measured of its network.

    Returns:
        The state after the chunk, and [R] rows: `env_steps`, `total_reward` since the
        start, and so on; a repeated row counts once. What is measured of the network is
        that of the end of the chunk in all rows.
    """

    def meta_update(state: State, _: None) -> tuple[State, Metrics]:
        state, metrics = update(state)
        return state, state.learner.statistics.row | metrics

    length = max(1, CHUNK_ENV_STEPS // env_steps_per_update)
    state, latched = jax.lax.scan(meta_update, state, length=length)
    num_rows = -(-length * env_steps_per_update // _two_colors_statistics.RECORD_EVERY)
    rows = _two_colors_statistics.rows(latched, env_steps, num_rows)
    measured = measure(state.learner)
    return state, rows | {n: jnp.full(num_rows, x) for n, x in measured.items()}


def update_meta_params(
    state: State,
    optimizer: optax.GradientTransformation,
    meta_loss: Callable[[chex.ArrayTree, Any], tuple[jax.Array, Any]],
) -> tuple[State, Any, Metrics]:
    """Makes one step on w, and counts it.

    Args:
        state: before it.
        optimizer: of w.
        meta_loss: (w, learner) ↦ the meta-loss [], and what it has come to beside.

    Returns:
        The state after it, whose learner is as it was; what the meta-loss has come to
        beside; and the meta-update's own metrics.

    Gradient: reaches w as `meta_loss` says.
    """
    (loss, outcome), grads = jax.value_and_grad(meta_loss, has_aux=True)(
        state.meta_params, state.learner
    )
    updates, meta_opt_state = optimizer.update(grads, state.meta_opt_state)
    state = state._replace(
        meta_params=optax.apply_updates(state.meta_params, updates),
        meta_opt_state=meta_opt_state,
        meta_updates=state.meta_updates + 1,
    )
    return state, outcome, _metrics(state, loss, optax.tree.norm(grads))


def leave_meta_params(state: State) -> tuple[State, Metrics]:
    """Counts a meta-update that leaves w as it is: ε is fixed."""
    state = state._replace(meta_updates=state.meta_updates + 1)
    return state, _metrics(state, meta_loss=0.0, meta_gradient_norm=0.0)


def _metrics(state, meta_loss, meta_gradient_norm):
    return {
        "meta_updates": state.meta_updates,
        "meta_loss": jnp.asarray(meta_loss),
        "meta_gradient_norm": jnp.asarray(meta_gradient_norm),
    }
