"""A loss and its gradient, whose derivative is taken forwards over backwards.

The gradient that an update descends is itself a backward pass. Its derivative, as
reverse-mode differentiation has it, is a backward pass through that one, and keeps what
both have computed. Products with a Hessian need no second one: they are the derivative
of the gradient along one direction, a forward pass. `gradient_descent` does the same
for steps of plain descent; this is for any update that starts from a gradient.
"""

import functools
from collections.abc import Callable

import chex
import jax

Loss = Callable[
    [chex.ArrayTree, chex.ArrayTree, chex.ArrayTree],
    tuple[jax.Array, chex.ArrayTree],
]
"""f, (x, c, data) ↦ ([] scalar, auxiliary outputs); it may hold no traced arrays."""


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def value_and_gradient(
    loss: Loss,
    params: chex.ArrayTree,
    context: chex.ArrayTree,
    data: chex.ArrayTree,
) -> tuple[tuple[jax.Array, chex.ArrayTree], chex.ArrayTree]:
    """Returns a loss with its auxiliary outputs, and ∇_x f(x, c).

    The derivative of the gradient is exact. With v the gradient of some later loss in
    ∇_x f, its gradients are

        ∇²_xx f(x, c) v in x,  ∇²_cx f(x, c) v in c

    both from one forward pass through (∇_x f, ∇_c f) along v, as Hessians are
    symmetric. Where only the one in c is asked for, compilers leave the other out.

    Source: Kemaev et al. (2025), "MixFlow-MG".

    Args:
        loss: f.
        params: x, any pytree of floating-point arrays.
        context: c, what f depends on and a meta-learner may learn, any such pytree.
        data: what f is computed on.

    Returns:
        f with its auxiliary outputs, and ∇_x f, shaped like `params`.

    Gradient: reaches params and context. Only ∇_x f is differentiated. A later loss
        that uses f or its auxiliary outputs gets no gradient from them. The data is a
        constant. Reverse mode only.
    """
    return jax.value_and_grad(loss, has_aux=True)(params, context, data)


def _forwards(loss, params, context, data):
    return value_and_gradient(loss, params, context, data), (params, context, data)


def _backwards(loss, residuals, cotangents):
    params, context, data = residuals
    _, direction = cotangents
    gradients = jax.grad(lambda x, c: loss(x, c, data)[0], argnums=(0, 1))
    _, products = jax.jvp(lambda x: gradients(x, context), (params,), (direction,))
    return *products, None


value_and_gradient.defvjp(_forwards, _backwards)
