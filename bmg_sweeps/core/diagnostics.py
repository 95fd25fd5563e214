"""What the meta-gradients of a meta-batch look like, without changing them."""

import chex
import jax
import jax.numpy as jnp
import optax


def cosine_similarity(left: chex.ArrayTree, right: chex.ArrayTree) -> jax.Array:
    """Compares two meta-gradients, θ = ⟨g, g′⟩ / (‖g‖ ‖g′‖).

    Source: Flennerhag et al. (2022), Appendix D.3, Table 6; between consecutive ones.

    Args:
        left: g, any pytree of arrays.
        right: g′, of the same structure and shapes.

    Returns:
        [] in [−1, 1]; 0 where either is zero.

    Raises:
        AssertionError: structures or shapes differ.

    Gradient: flows through both.
    """
    chex.assert_trees_all_equal_shapes(left, right)
    squares = optax.tree.norm(left, squared=True) * optax.tree.norm(right, squared=True)
    return optax.tree.vdot(left, right) * jax.lax.rsqrt(
        jnp.where(squares > 0, squares, jnp.inf)
    )


def variance(gradients: chex.ArrayTree) -> jax.Array:
    """Measures how the tasks' meta-gradients scatter, V = Σ_i ‖g_i − ḡ‖² / (M − 1).

    The trace of their sample covariance. The paper says "variance on a per meta-batch
    basis", and not whether it is summed over parameters or averaged; it is summed here.

    Source: Flennerhag et al. (2022), Appendix D.3, Table 6.

    Args:
        gradients: [M, …] in each leaf, one g_i for each task.

    Returns:
        [] at least 0; 0 where M is 1.

    Gradient: flows through all.
    """
    num_tasks = jax.tree.leaves(gradients)[0].shape[0]
    centered = jax.tree.map(lambda g: g - jnp.mean(g, 0, keepdims=True), gradients)
    return optax.tree.norm(centered, squared=True) / max(num_tasks - 1, 1)


def norm_to_variance(norm: jax.Array, variance: jax.Array) -> jax.Array:
    """Relates the size of a meta-gradient to its scatter, ρ = ‖ḡ‖ / V.

    Source: Flennerhag et al. (2022), Appendix D.3, Table 6.

    Args:
        norm: [] ‖ḡ‖.
        variance: [] V.

    Returns:
        [] at least 0; 0 where V is 0.

    Gradient: flows through both.
    """
    return norm / jnp.where(variance > 0, variance, jnp.inf)
