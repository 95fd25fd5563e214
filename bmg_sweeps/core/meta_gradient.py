"""Meta-losses: what the meta-parameters are asked to make small.

A meta-gradient is the gradient in the first argument of a function of this module.
The standard meta-loss judges the learner by its objective after K updates; the
bootstrapped one by its distance from a target, which `targets` reaches by learning
on. The distances are in `matching`. None of them knows what a learner is: any pytree
that an inner loop maps to a later one.
"""

from collections.abc import Callable

import chex
import jax

InnerLoop = Callable[[chex.ArrayTree, chex.ArrayTree], chex.ArrayTree]
"""(w, x) ↦ x⁽ᴷ⁾, differentiable in w."""

TargetBootstrap = Callable[
    [chex.ArrayTree, chex.ArrayTree], tuple[chex.ArrayTree, chex.ArrayTree]
]
"""ξ, (w, x⁽ᴷ⁾) ↦ (x̃, x⁽ᴷ⁺ᴸ⁻¹⁾)."""


def standard_meta_loss(
    meta_params: chex.ArrayTree,
    params: chex.ArrayTree,
    *,
    inner_loop: InnerLoop,
    objective: Callable[[chex.ArrayTree], jax.Array],
) -> tuple[jax.Array, chex.ArrayTree]:
    """Scores the learner after its inner loop, f(x⁽ᴷ⁾(w)).

    Source: Flennerhag et al. (2022), Eq. 1.

    Args:
        meta_params: w, any pytree.
        params: x, any pytree.
        inner_loop: (w, x) ↦ x⁽ᴷ⁾, differentiable in w. It may return the whole
            trajectory x⁽¹⁾ … x⁽ᴷ⁾, for an objective that averages over it.
        objective: f, what the inner loop returns ↦ [] scalar.

    Returns:
        The meta-loss [], and what the inner loop returned.

    Gradient: reaches w through every update of the inner loop.
    """
    outcome = inner_loop(meta_params, params)
    return objective(outcome), outcome


def bootstrapped_meta_loss(
    meta_params: chex.ArrayTree,
    params: chex.ArrayTree,
    *,
    inner_loop: InnerLoop,
    target_bootstrap: TargetBootstrap,
    matching_function: Callable[[chex.ArrayTree, chex.ArrayTree], jax.Array],
) -> tuple[jax.Array, chex.ArrayTree]:
    """Measures how far the learner is from its own future, μ(x̃, x⁽ᴷ⁾(w)).

    Source: Flennerhag et al. (2022), Eq. 2 and Algorithm 3.

    Args:
        meta_params: w, any pytree.
        params: x, any pytree.
        inner_loop: (w, x) ↦ x⁽ᴷ⁾, differentiable in w.
        target_bootstrap: ξ, (w, x⁽ᴷ⁾) ↦ (x̃, x⁽ᴷ⁺ᴸ⁻¹⁾).
        matching_function: μ, (x̃, x⁽ᴷ⁾) ↦ [] scalar.

    Returns:
        The meta-loss [], and x⁽ᴷ⁺ᴸ⁻¹⁾ for the learner to go on from.

    Gradient: reaches w through x⁽ᴷ⁾ only; x̃ and x⁽ᴷ⁺ᴸ⁻¹⁾ are constants.
    """
    params = inner_loop(meta_params, params)
    # Stopped on the way in, so that no derivative of the target is ever computed, and
    # on the way out, for bootstraps that hold w in a closure.
    target, latest = jax.lax.stop_gradient(
        target_bootstrap(*jax.lax.stop_gradient((meta_params, params)))
    )
    return matching_function(target, params), latest
