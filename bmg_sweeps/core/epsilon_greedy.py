"""ε-greedy policies over action values, and how far one is from a greedy target.

    π(a | s) = 1 − ε + ε/A where a = argmax_b q(s, b), else ε/A

The matching functions μ take the target's values first, as those of `matching`; its
policy is the greedy one. They are means over all leading axes. A tie goes to the first
of the best actions.

Source: Flennerhag et al. (2022), Appendix B.3.
"""

import chex
import jax
import jax.numpy as jnp


def probabilities(q: jax.Array, epsilon: jax.Array) -> jax.Array:
    """Returns π(a | s).

    Args:
        q: [..., A] action values.
        epsilon: [...] ε, in [0, 1].

    Returns:
        [..., A] probabilities.

    Raises:
        AssertionError: the leading shapes differ.

    Gradient: flows through `epsilon`; the values only decide which action is best.
    """
    chex.assert_equal_shape([q[..., 0], epsilon])
    num_actions, epsilon = q.shape[-1], epsilon[..., jnp.newaxis]
    greedy = jax.nn.one_hot(jnp.argmax(q, axis=-1), num_actions, dtype=q.dtype)
    return (1 - epsilon) * greedy + epsilon / num_actions


def policy_kl(target_q: jax.Array, q: jax.Array, epsilon: jax.Array) -> jax.Array:
    """Returns the divergence from the greedy target, KL(π_x̃ ‖ π_x), in nats.

        −log(1 − ε + ε/A) where both find the same action best, else −log(ε/A)

    Source: Flennerhag et al. (2022), Appendix B.3, "Policy-matching".

    Args:
        target_q: [..., A] action values under x̃.
        q: [..., A] the same under x.
        epsilon: [...] ε of the learner, in (0, 1].

    Returns:
        [] the mean over the leading axes.

    Raises:
        AssertionError: shapes differ.

    Gradient: flows through `epsilon` only.
    """
    chex.assert_equal_shape([target_q, q])
    best = jnp.argmax(target_q, axis=-1, keepdims=True)
    chosen = jnp.take_along_axis(probabilities(q, epsilon), best, axis=-1)
    return -jnp.mean(jnp.log(chosen))


def value(target_q: jax.Array, q: jax.Array, epsilon: jax.Array) -> jax.Array:
    """Returns the squared difference of what both expect of acting, E (u_x̃ − u_x)².

        u_x̃(s) = max_a q_x̃(s, a),  u_x(s) = Σ_a π_x(a | s) q_x(s, a)

    Source: Flennerhag et al. (2022), Appendix B.3, "'Value'-matching".

    Args:
        target_q: [..., A] action values under x̃.
        q: [..., A] the same under x.
        epsilon: [...] ε of the learner, in [0, 1].

    Returns:
        [] the mean over the leading axes, in squared units of return.

    Raises:
        AssertionError: shapes differ.

    Gradient: flows through `epsilon` only.
    """
    chex.assert_equal_shape([target_q, q])
    target_q, q = jax.lax.stop_gradient((target_q, q))
    expected = jnp.sum(probabilities(q, epsilon) * q, axis=-1)
    return jnp.mean((jnp.max(target_q, axis=-1) - expected) ** 2)
