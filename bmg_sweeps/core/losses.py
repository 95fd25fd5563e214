"""The three terms of the actor-critic loss (Eq. 4), each a sum over the rollout.

The paper's objective is f = ε_PG ℓ_PG + ε_EN ℓ_EN + ε_TD ℓ_TD. Trainers that average,
as two-colors does, divide by the number of states. Advantages and returns come in as
they are: callers stop gradients at what Eq. 4 holds constant, the critic's part in
them, and leave the way to a meta-learned discount open.
"""

import chex
import jax
import jax.numpy as jnp


def policy_gradient(
    logits_t: jax.Array,
    a_t: jax.Array,
    advantage_t: jax.Array,
    weight_t: jax.Array | None = None,
) -> jax.Array:
    """Returns the policy-gradient loss, ℓ_PG = −Σ_t w_t log π(a_t | s_t) (G_t − v_t).

    Source: Flennerhag et al. (2022), Eq. 4.

    Args:
        logits_t: [..., A] unnormalized log-probabilities at s_t.
        a_t: [...] int, the actions taken there.
        advantage_t: [...] G_t − v(s_t), in units of return.
        weight_t: [...] w_t, such as the ρ_t of Eq. 4, or None where it is 1.

    Returns:
        [] the sum over all states.

    Raises:
        AssertionError: the leading shapes differ.

    Gradient: flows through logits, advantages and weights. For Eq. 4 callers stop it
        at all of the latter two that depends on the agent's parameters.
    """
    chex.assert_equal_shape([logits_t[..., 0], a_t, advantage_t])
    log_pi_t = jnp.take_along_axis(
        jax.nn.log_softmax(logits_t), a_t[..., jnp.newaxis], axis=-1
    )[..., 0]
    return -_total(advantage_t * log_pi_t, weight_t)


def entropy(logits_t: jax.Array, weight_t: jax.Array | None = None) -> jax.Array:
    """Returns the entropy loss, ℓ_EN = Σ_t w_t Σ_a π(a | s_t) log π(a | s_t), in nats.

    The negative of the policy's entropy: a positive weight ε_EN keeps it exploring.

    Source: Flennerhag et al. (2022), Eq. 4.

    Args:
        logits_t: [..., A] unnormalized log-probabilities at s_t; those of illegal
            actions are finite and very negative, such as −10⁹.
        weight_t: [...] w_t, or None where it is 1.

    Returns:
        [] the sum over all states, at most 0 where no weight is negative.

    Raises:
        AssertionError: the leading shapes differ.

    Gradient: flows through both.
    """
    log_pi_t = jax.nn.log_softmax(logits_t)
    return _total(jnp.sum(jnp.exp(log_pi_t) * log_pi_t, axis=-1), weight_t)


def temporal_difference(
    v_t: jax.Array, return_t: jax.Array, weight_t: jax.Array | None = None
) -> jax.Array:
    """Returns the critic's loss, ℓ_TD = ½ Σ_t w_t (G_t − v(s_t))².

    Source: Flennerhag et al. (2022), Eq. 4.

    Args:
        v_t: [...] predicted values of s_t, in units of return.
        return_t: [...] their targets G_t.
        weight_t: [...] w_t, or None where it is 1.

    Returns:
        [] the sum over all states.

    Raises:
        AssertionError: the arrays differ in shape.

    Gradient: flows through values, returns and weights. For Eq. 4 callers stop it at
        all of the latter two that depends on the agent's parameters.
    """
    chex.assert_equal_shape([v_t, return_t])
    return 0.5 * _total((return_t - v_t) ** 2, weight_t)


def _total(terms, weights):
    if weights is None:
        return jnp.sum(terms)
    chex.assert_equal_shape([terms, weights])
    return jnp.sum(weights * terms)
