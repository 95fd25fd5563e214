"""The trust region of off-policy corrections: states at which V-trace can be trusted.

V-trace truncates ratios, and so evaluates another policy than π: the implied one. Where
that is far from π, returns are about something else; LASER leaves such states out.
"""

import chex
import jax
import jax.numpy as jnp


def implied_divergence(
    logits: jax.Array, behavior_logits: jax.Array, max_rho: jax.Array
) -> jax.Array:
    """Returns the divergence of a policy from the one that V-trace implies, in nats.

        KL(π ‖ π̃_µ),  π̃_µ(a | s) ∝ min(ρ̄ µ(a | s), π(a | s))

    The sum is Σ_a π max(log π − log ρ̄ µ, 0) + log Σ_a min(ρ̄ µ, π). A state is relevant
    where this is below a threshold. The action that was taken does not enter.

    Source: Schmitt et al. (2020), Section 4, "behaviour relevance function".

    Args:
        logits: [..., A] unnormalized log-probabilities of π; those of illegal actions
            are finite and very negative, such as −10⁹.
        behavior_logits: [..., A] the same of µ, which collected the data.
        max_rho: [] ρ̄, above 0.

    Returns:
        [...] at least 0, to rounding; 0 where no ratio π / µ exceeds ρ̄.

    Raises:
        AssertionError: the two arrays differ in shape.

    Gradient: flows through both arrays and `max_rho`; callers that compare it with a
        threshold take none.
    """
    chex.assert_equal_shape([logits, behavior_logits])
    log_pi = jax.nn.log_softmax(logits)
    log_bound = jnp.log(max_rho) + jax.nn.log_softmax(behavior_logits)
    excess = jnp.exp(log_pi) * jnp.maximum(log_pi - log_bound, 0)
    log_mass = jax.nn.logsumexp(jnp.minimum(log_bound, log_pi), axis=-1)
    return jnp.sum(excess, axis=-1) + log_mass
