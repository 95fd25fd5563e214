"""What meta-gradients and networks look like, without changing them."""

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


def dead_share(features: jax.Array) -> jax.Array:
    """Computes the share of units that never fire, 1/H Σ_h [max_m x_mh ≤ 0].

    The gradient of a ReLU that never fires is 0, and it stays dead.

    Source: Lyle et al. (2023), "Understanding Plasticity in Neural Networks", Section
    2; Sokar et al. (2023), "The Dormant Neuron Phenomenon", Definition 3.1 with τ = 0.

    Args:
        features: x, [M, H], what H units put out for M inputs, or the arguments of
            their ReLUs.

    Returns:
        [] in [0, 1].

    Gradient: none.
    """
    return jnp.mean(jnp.all(features <= 0, axis=0), dtype=jnp.float32)


def effective_rank(features: jax.Array) -> jax.Array:
    """Counts the directions that features have, min {k: Σ_{i≤k} σ_i ≥ 0.99 Σ_i σ_i}.

    The singular values σ are roots of the eigenvalues of xᵀ x, or of x xᵀ where that is
    smaller; in float32 those below 3e-4 of the largest are lost in rounding.

    Source: Kumar et al. (2021), "Implicit Under-Parameterization Inhibits
    Data-Efficient Deep Reinforcement Learning", Section 3, srank with δ = 0.01.

    Args:
        features: x, [M, H].

    Returns:
        [] int32, at most min(M, H); 0 where all features are 0.

    Gradient: none.
    """
    if features.shape[0] < features.shape[1]:
        features = features.T
    squares = jnp.linalg.eigvalsh(features.T @ features)[::-1]
    values = jnp.sqrt(jnp.maximum(squares, 0))
    total = jnp.cumsum(values)
    is_short = total < (1 - _RANK_SHARE) * total[-1]
    rank = 1 + jnp.sum(is_short, dtype=jnp.int32)
    return jnp.where(total[-1] > 0, rank, 0)


def of_features(features: jax.Array) -> dict[str, jax.Array]:
    """Measures the features of a network, for the columns of a row.

    Args:
        features: [M, H], after their ReLUs.

    Returns:
        "dead_units", their `dead_share`, and "feature_rank", their `effective_rank`.

    Gradient: none.
    """
    return {
        "dead_units": dead_share(features),
        "feature_rank": effective_rank(features),
    }


_RANK_SHARE = 0.01  # δ, the share of Σ σ that is left out.
