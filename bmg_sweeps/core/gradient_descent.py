"""Gradient descent on a learner, with the derivative of where it ends.

The derivative of K steps of gradient descent, as reverse-mode differentiation computes
it, keeps every activation of every step. The recursion for it needs the iterates only,
and one product with a Hessian for each: memory does not grow with K, nor does the
program, and forward-over-reverse products are cheaper than twice-reversed ones.
"""

import functools
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp

Loss = Callable[[chex.ArrayTree, chex.ArrayTree, chex.ArrayTree], jax.Array]
"""f, (x, c, data) ↦ [] scalar; it may hold no traced arrays."""


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 5))
def descend(
    loss: Loss,
    params: chex.ArrayTree,
    context: chex.ArrayTree,
    data: chex.ArrayTree,
    learning_rate: jax.Array,
    num_steps: int,
) -> chex.ArrayTree:
    """Takes K steps of gradient descent.

        x⁽ᵏ⁾ = x⁽ᵏ⁻¹⁾ − α ∇_x f(x⁽ᵏ⁻¹⁾, c)

    The derivative is exact. With v⁽ᴷ⁾ the gradient of some loss in x⁽ᴷ⁾,

        v⁽ᵏ⁻¹⁾ = v⁽ᵏ⁾ − α ∇²_xx f(x⁽ᵏ⁻¹⁾, c) v⁽ᵏ⁾

    gives its gradients: v⁽⁰⁾ in x⁽⁰⁾, −α Σ_k ∇²_cx f(x⁽ᵏ⁻¹⁾, c) v⁽ᵏ⁾ in c, and
    −Σ_k v⁽ᵏ⁾ · ∇_x f(x⁽ᵏ⁻¹⁾, c) in α.

    Source: Finn et al. (2017), Eq. 1, for more than one step.

    Args:
        loss: f.
        params: x⁽⁰⁾, any pytree.
        context: c, what f depends on and a meta-learner may learn, but the steps leave
            as it is; any pytree.
        data: what f is computed on.
        learning_rate: α, [].
        num_steps: K, at least 0.

    Returns:
        x⁽ᴷ⁾, shaped like `params`.

    Gradient: reaches params, context and learning_rate; data is constant.
    """
    return _trajectory(loss, params, context, data, learning_rate, num_steps)[0]


def descend_first_order(
    loss: Loss,
    params: chex.ArrayTree,
    context: chex.ArrayTree,
    data: chex.ArrayTree,
    learning_rate: jax.Array,
    num_steps: int,
) -> chex.ArrayTree:
    """Takes the steps of `descend`, each taken for a constant by its derivative.

    Source: Finn et al. (2017), Section 5.2, "first-order approximation" (FOMAML).

    Args:
        loss: f.
        params: x⁽⁰⁾, any pytree.
        context: c.
        data: what f is computed on.
        learning_rate: α, [].
        num_steps: K, at least 0.

    Returns:
        x⁽ᴷ⁾, shaped like `params`.

    Gradient: reaches params only, ∂x⁽ᴷ⁾/∂x⁽⁰⁾ = 1.
    """

    def step(params, _):
        grads = jax.grad(loss)(*jax.lax.stop_gradient((params, context, data)))
        return _minus(params, learning_rate, jax.lax.stop_gradient(grads)), None

    learning_rate = jax.lax.stop_gradient(learning_rate)
    return jax.lax.scan(step, params, length=num_steps)[0]


def _trajectory(loss, params, context, data, learning_rate, num_steps):
    """x⁽ᴷ⁾, and x⁽⁰⁾ … x⁽ᴷ⁻¹⁾ stacked."""

    def step(params, _):
        grads = jax.grad(loss)(params, context, data)
        return _minus(params, learning_rate, grads), params

    return jax.lax.scan(step, params, length=num_steps)


def _forwards(loss, params, context, data, learning_rate, num_steps):
    params, iterates = _trajectory(
        loss, params, context, data, learning_rate, num_steps
    )
    return params, (iterates, context, data, learning_rate)


def _backwards(loss, num_steps, residuals, cotangent):
    del num_steps
    iterates, context, data, learning_rate = residuals
    gradients = jax.grad(loss, argnums=(0, 1))

    def step(carry, params):
        params_bar, context_bar, rate_bar = carry
        # Hessians are symmetric: one forward pass through both gradients, along v⁽ᵏ⁾,
        # has both of their products with it.
        (grads, _), products = jax.jvp(
            lambda x: gradients(x, context, data), (params,), (params_bar,)
        )
        rate_bar -= _dot(params_bar, grads)
        params_bar, context_bar = _minus(
            (params_bar, context_bar), learning_rate, products
        )
        return (params_bar, context_bar, rate_bar), None

    zeros = jax.tree.map(jnp.zeros_like, (context, learning_rate))
    (params_bar, context_bar, rate_bar), _ = jax.lax.scan(
        step, (cotangent, *zeros), iterates, reverse=True
    )
    return params_bar, context_bar, None, rate_bar


descend.defvjp(_forwards, _backwards)


def _minus(params, learning_rate, grads):
    return jax.tree.map(lambda x, g: x - learning_rate * g, params, grads)


def _dot(left, right):
    products = jax.tree.map(jnp.vdot, left, right)
    return jax.tree.reduce(jnp.add, products)
