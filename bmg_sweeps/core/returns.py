"""Returns: what a rollout says a state was worth."""

import chex
import jax
import jax.numpy as jnp


def n_step_returns(
    r_t: jax.Array, discount_t: jax.Array, v_t: jax.Array, n: int
) -> jax.Array:
    """Computes the n-step bootstrapped returns of a rollout.

        G⁽ⁿ⁾ = r₁ + γ₁ r₂ + … + γ₁ ⋯ γₙ₋₁ rₙ + γ₁ ⋯ γₙ v(sₙ)

    A return that would reach past the end of the rollout bootstraps from its last
    state, so n ≥ T gives the longest return available to each state.

    Source: Flennerhag et al. (2022), Section 5, below Eq. 4.

    Args:
        r_t: [T, ...] reward received on reaching each state s_t, t = 1 … T.
        discount_t: [T, ...] discount on what follows s_t; 0 at the end of an episode.
        v_t: [T, ...] value of s_t.
        n: number of rewards in each return, at least 1.

    Returns:
        [T, ...] the return of s_{t−1}, in units of reward.

    Raises:
        ValueError: n < 1.
        AssertionError: the arrays differ in shape.

    Gradient: flows through all three arrays; callers stop it at v_t.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    chex.assert_equal_shape([r_t, discount_t, v_t])
    continuation = v_t  # What follows s_t, from one reward further back each time.
    for _ in range(min(n, r_t.shape[0])):
        returns = r_t + discount_t * continuation
        continuation = jnp.concatenate([returns[1:], v_t[-1:]])
    return returns
