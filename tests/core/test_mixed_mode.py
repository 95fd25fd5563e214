"""A gradient and its derivative: against reverse mode throughout, and closed forms."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.core import mixed_mode

RANDOM = np.random.default_rng(0)
HESSIAN = np.array([[2.0, 0.5], [0.5, 1.0]])  # H.
MIXED = np.array([[1.0, -1.0, 0.5], [0.0, 2.0, 1.0]])  # M.


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def bowl(params, context, data):
    """F = ½ xᵀ H x + xᵀ M c + dᵀ x."""
    loss = 0.5 * params @ HESSIAN @ params + params @ MIXED @ context + data @ params
    return loss, {"twice": 2 * loss}


def wavy(params, context, data):
    """Some loss whose second derivatives depend on everything."""
    inner = jnp.tanh(params["w"] @ data["inputs"] + context["shift"])
    loss = jnp.exp(context["log_scale"]) * jnp.sum(inner**2)
    loss += jnp.sum(jnp.sin(params["b"] * inner) ** 2)
    return loss, {"inner": inner, "index": data["index"] + 1}


def wavy_problem():
    params = {"w": RANDOM.normal(size=(3, 2)), "b": RANDOM.normal(size=3)}
    context = {"shift": RANDOM.normal(size=3), "log_scale": np.float64(0.3)}
    data = {"inputs": RANDOM.normal(size=2), "index": np.array([4, 5])}
    return jax.tree.map(jnp.asarray, (params, context, data))


@functools.partial(jax.jit, static_argnums=0)
def reverse_mode(loss, params, context, data):
    """The same, for JAX to differentiate as it does anything."""
    return jax.value_and_grad(loss, has_aux=True)(params, context, data)


def test_value_and_gradient_are_those_of_jax():
    """With integers among the data and the auxiliary outputs."""
    problem = wavy_problem()
    actual = jax.jit(mixed_mode.value_and_gradient, static_argnums=0)(wavy, *problem)
    chex.assert_trees_all_close(actual, reverse_mode(wavy, *problem), rtol=1e-12)


def test_second_derivatives_of_a_bowl_have_a_closed_form():
    """∇_x f = H x + M c + d, so its products with v are H v and Mᵀ v."""
    params, context, data = jnp.array([1.0, -2.0]), jnp.ones(3), jnp.array([0.5, 1.0])
    direction = jnp.array([3.0, -1.0])

    def later(params, context, data):
        _, grads = mixed_mode.value_and_gradient(bowl, params, context, data)
        return grads @ direction

    later = jax.jit(jax.value_and_grad(later, (0, 1, 2)))
    value, gradients = later(params, context, data)
    grads = HESSIAN @ params + MIXED @ context + data
    np.testing.assert_allclose(value, grads @ direction, rtol=1e-12)
    expected = HESSIAN @ direction, MIXED.T @ direction, np.zeros(2)
    chex.assert_trees_all_close(gradients, expected, rtol=1e-12)


def test_the_value_and_its_auxiliary_outputs_are_constants():
    """∂/∂x (a f + b aux + v · ∇_x f) = H v; the rest is left out."""
    direction = jnp.array([3.0, -1.0])

    def later(params):
        (value, aux), grads = mixed_mode.value_and_gradient(
            bowl, params, jnp.ones(3), jnp.ones(2)
        )
        return 10 * value + 100 * aux["twice"] + grads @ direction

    actual = jax.jit(jax.grad(later))(jnp.array([1.0, -2.0]))
    np.testing.assert_allclose(actual, HESSIAN @ direction, rtol=1e-12)


@pytest.mark.parametrize("num_updates", [1, 2])
def test_derivative_of_updates_is_that_of_reverse_mode(num_updates):
    """K chained updates, in x⁽⁰⁾ and in c; an update need not be linear in ∇f."""
    params, context, data = wavy_problem()

    def after(gradient_of, params, context):
        for _ in range(num_updates):
            _, grads = gradient_of(wavy, params, context, data)
            params = jax.tree.map(lambda x, g: x - 0.1 * jnp.tanh(g), params, grads)
        return jnp.sum(jnp.cos(params["w"])) + jnp.sum(params["b"] ** 3)

    gradients = jax.jit(jax.grad(after, (1, 2)), static_argnums=0)
    actual = gradients(mixed_mode.value_and_gradient, params, context)
    expected = gradients(reverse_mode, params, context)
    chex.assert_trees_all_close(actual, expected, rtol=1e-9)
    assert all(np.abs(x).max() > 1e-3 for x in jax.tree.leaves(expected))


def test_a_batch_under_vmap_equals_separate_derivatives():
    params, context, data = wavy_problem()
    contexts = jax.tree.map(lambda x: jnp.stack([x, 2 * x]), context)

    def later(context):
        _, grads = mixed_mode.value_and_gradient(wavy, params, context, data)
        return jnp.sum(jnp.sin(grads["w"])) + jnp.sum(grads["b"] ** 2)

    actual = jax.jit(jax.vmap(jax.grad(later)))(contexts)
    alone = jax.jit(jax.grad(later))
    for i in range(2):
        expected = alone(jax.tree.map(lambda x, i=i: x[i], contexts))
        one = jax.tree.map(lambda x, i=i: x[i], actual)
        chex.assert_trees_all_close(one, expected, rtol=1e-12)


def test_the_hessian_in_params_is_not_computed_where_only_the_context_is_asked_for():
    """A context behind a network needs one forward pass along v, and no way back.

    In products of [N, N] matrices, three layers have 3 forwards, 5 backwards (none to
    the inputs) and 5 along v (one in the first layer): 13. The way back has 9 more.
    """
    size, num_layers = 64, 3
    layers = [jnp.asarray(RANDOM.normal(size=(size, size))) for _ in range(num_layers)]
    inputs = jnp.asarray(RANDOM.normal(size=(size, size)))

    def loss(params, context, data):
        for layer in params:
            data = jnp.tanh(data @ layer)
        return context * jnp.sum(data**2), None

    def num_products(argument):
        def later(params, context):
            _, grads = mixed_mode.value_and_gradient(loss, params, context, inputs)
            return sum(jnp.sum(jnp.sin(g)) for g in grads)

        compiled = jax.jit(jax.grad(later, argument)).lower(layers, 1.0).compile()
        return compiled.cost_analysis()["flops"] / (2 * size**3)

    np.testing.assert_allclose(num_products(1), 13, rtol=0.03)
    np.testing.assert_allclose(num_products(0), 22, rtol=0.03)
