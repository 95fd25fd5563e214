"""Matching functions μ: how far the learner is from its target.

All take the target first and the learner second, are non-negative, and have a zero
(never NaN) gradient where the two agree. The KL divergences compare what the learner
does, `value` what it expects, `squared_euclidean` what it is. Divergences and errors
are means over all leading axes; an expectation over states is one of them.
"""

import chex
import jax
import jax.numpy as jnp


def policy_kl(target_logits: jax.Array, logits: jax.Array) -> jax.Array:
    """Returns the divergence of the policy from its target, KL(π_x̃ ‖ π_x), in nats.

    Mode-covering: large where the learner excludes what the target does.

    Source: Flennerhag et al. (2022), Section 3, "Matching Function".

    Args:
        target_logits: [..., A] unnormalized log-probabilities under x̃.
        logits: [..., A] the same under x.

    Returns:
        [] the mean over the leading axes.

    Raises:
        AssertionError: the two arrays differ in shape.

    Gradient: flows through `logits` only; `target_logits` is a constant.
    """
    chex.assert_equal_shape([target_logits, logits])
    return _kl(jax.lax.stop_gradient(target_logits), logits)


def reverse_policy_kl(target_logits: jax.Array, logits: jax.Array) -> jax.Array:
    """Returns the divergence of the target from the policy, KL(π_x ‖ π_x̃), in nats.

    Mode-seeking: large where the learner does what the target excludes.

    Source: Flennerhag et al. (2022), Appendix B.2, "Ablation: matching function".

    Args:
        target_logits: [..., A] unnormalized log-probabilities under x̃.
        logits: [..., A] the same under x.

    Returns:
        [] the mean over the leading axes.

    Raises:
        AssertionError: the two arrays differ in shape.

    Gradient: flows through `logits` only; `target_logits` is a constant.
    """
    chex.assert_equal_shape([target_logits, logits])
    return _kl(logits, jax.lax.stop_gradient(target_logits))


def symmetric_policy_kl(target_logits: jax.Array, logits: jax.Array) -> jax.Array:
    """Returns KL(π_x̃ ‖ π_x) + KL(π_x ‖ π_x̃), in nats.

    Source: Flennerhag et al. (2022), Section 5.2, "KL-S". The paper does not say
    whether the two are added or averaged; here they are added.

    Args:
        target_logits: [..., A] unnormalized log-probabilities under x̃.
        logits: [..., A] the same under x.

    Returns:
        [] the mean over the leading axes.

    Raises:
        AssertionError: the two arrays differ in shape.

    Gradient: flows through `logits` only; `target_logits` is a constant.
    """
    return policy_kl(target_logits, logits) + reverse_policy_kl(target_logits, logits)


def value(target_values: jax.Array, values: jax.Array) -> jax.Array:
    """Returns the squared difference of the two critics, E (v_z̃ − v_z)².

    Source: Flennerhag et al. (2022), Appendix C.2.

    Args:
        target_values: [...] state values under z̃.
        values: [...] the same under z.

    Returns:
        [] the mean over all axes, in squared units of return.

    Raises:
        AssertionError: the two arrays differ in shape.

    Gradient: flows through `values` only; `target_values` is a constant.
    """
    chex.assert_equal_shape([target_values, values])
    return jnp.mean((jax.lax.stop_gradient(target_values) - values) ** 2)


def policy_and_value(
    target: tuple[jax.Array, jax.Array],
    learner: tuple[jax.Array, jax.Array],
    value_weight: float,
) -> jax.Array:
    """Returns the composite KL(π_x̃ ‖ π_x) + λ E (v_z̃ − v_z)².

    Source: Flennerhag et al. (2022), Appendix C.2, with λ = 0.25 on Atari.

    Args:
        target: [..., A] logits under x̃ and [...] values under z̃.
        learner: the same under x and z.
        value_weight: λ, at least 0.

    Returns:
        [] the weighted sum of the two means.

    Raises:
        AssertionError: shapes differ between target and learner.

    Gradient: flows through `learner` only; `target` is a constant.
    """
    target_logits, target_values = target
    logits, values = learner
    return policy_kl(target_logits, logits) + value_weight * value(
        target_values, values
    )


def squared_euclidean(target: chex.ArrayTree, params: chex.ArrayTree) -> jax.Array:
    """Returns the squared distance in parameter space, ‖x̃ − x‖².

    Squared, where Appendix C.2 prints the norm: the text says squared, Eq. 3 needs it,
    and the norm has no gradient at x̃ = x.

    Source: Flennerhag et al. (2022), Eq. 3.

    Args:
        target: x̃, any pytree of arrays.
        params: x, of the same structure and shapes.

    Returns:
        [] the sum over all elements of all arrays.

    Raises:
        AssertionError: structures or shapes differ.

    Gradient: flows through `params` only; `target` is a constant.
    """
    chex.assert_trees_all_equal_shapes(target, params)
    squares = jax.tree.map(
        lambda x_target, x: jnp.sum((jax.lax.stop_gradient(x_target) - x) ** 2),
        target,
        params,
    )
    return jax.tree.reduce(jnp.add, squares)


def _kl(p_logits: jax.Array, q_logits: jax.Array) -> jax.Array:
    """KL(p ‖ q) of categorical distributions, averaged over the leading axes."""
    log_p, log_q = jax.nn.log_softmax(p_logits), jax.nn.log_softmax(q_logits)
    return jnp.mean(jnp.sum(jnp.exp(log_p) * (log_p - log_q), axis=-1))
