"""The three terms of the actor-critic loss (Eq. 4), each a sum over the rollout.

The paper's objective is f = ε_PG ℓ_PG + ε_EN ℓ_EN + ε_TD ℓ_TD. Trainers that average,
as two-colors does, divide by the number of states.
"""

import chex
import jax
import jax.numpy as jnp


def policy_gradient(
    logits_t: jax.Array,
    a_t: jax.Array,
    advantage_t: jax.Array,
    importance_weight_t: jax.Array | None = None,
) -> jax.Array:
    """Returns the policy-gradient loss, ℓ_PG = −Σ_t ρ_t log π(a_t | s_t) (G_t − v_t).

    Source: Flennerhag et al. (2022), Eq. 4.

    Args:
        logits_t: [..., A] unnormalized log-probabilities at s_t.
        a_t: [...] int, the actions taken there.
        advantage_t: [...] G_t − v(s_t), in units of return.
        importance_weight_t: [...] ρ_t, or None on policy, where it is 1.

    Returns:
        [] the sum over all states.

    Raises:
        AssertionError: the leading shapes differ.

    Gradient: flows through `logits_t` only; advantages and weights are constants.
    """
    weight_t = advantage_t
    chex.assert_equal_shape([logits_t[..., 0], a_t, advantage_t])
    if importance_weight_t is not None:
        chex.assert_equal_shape([importance_weight_t, advantage_t])
        weight_t = importance_weight_t * advantage_t
    log_pi_t = jnp.take_along_axis(
        jax.nn.log_softmax(logits_t), a_t[..., jnp.newaxis], axis=-1
    )[..., 0]
    return -jnp.sum(jax.lax.stop_gradient(weight_t) * log_pi_t)


def entropy(logits_t: jax.Array) -> jax.Array:
    """Returns the entropy loss, ℓ_EN = Σ_t Σ_a π(a | s_t) log π(a | s_t), in nats.

    The negative of the policy's entropy: a positive weight ε_EN keeps it exploring.

    Source: Flennerhag et al. (2022), Eq. 4.

    Args:
        logits_t: [..., A] unnormalized log-probabilities at s_t.

    Returns:
        [] the sum over all states, at most 0.

    Gradient: flows through `logits_t`.
    """
    log_pi_t = jax.nn.log_softmax(logits_t)
    return jnp.sum(jnp.exp(log_pi_t) * log_pi_t)


def temporal_difference(v_t: jax.Array, return_t: jax.Array) -> jax.Array:
    """Returns the critic's loss, ℓ_TD = ½ Σ_t (G_t − v(s_t))².

    Source: Flennerhag et al. (2022), Eq. 4.

    Args:
        v_t: [...] predicted values of s_t, in units of return.
        return_t: [...] their targets G_t.

    Returns:
        [] the sum over all states.

    Raises:
        AssertionError: the two arrays differ in shape.

    Gradient: flows through `v_t` only; the return is a constant.
    """
    chex.assert_equal_shape([v_t, return_t])
    return 0.5 * jnp.sum((jax.lax.stop_gradient(return_t) - v_t) ** 2)
