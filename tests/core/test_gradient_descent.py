"""Where gradient descent ends, and the derivative of that."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.core import gradient_descent

RATE, STEPS = 0.3, 4
CURVATURE = np.array([1.0, 2.0])  # h.


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def bowl(params, context, data):
    """F = ½ Σ h (x − c − data)²."""
    return 0.5 * jnp.sum(CURVATURE * (params - context - data) ** 2)


def wavy(params, context, data):
    """Some loss whose Hessian depends on everything."""
    inner = jnp.tanh(params["w"] @ data + context)
    return jnp.sum(inner**2) + jnp.sum(jnp.sin(params["b"] * inner))


def wavy_problem():
    keys = jax.random.split(jax.random.key(1), 4)
    draw = lambda key, *shape: jax.random.normal(key, shape, jnp.float64)  # noqa: E731
    params = {"w": draw(keys[0], 3, 2), "b": draw(keys[1], 3)}
    return params, draw(keys[2], 3), draw(keys[3], 2)


def unrolled(loss, params, context, data, rate, num_steps):
    """The same steps, for JAX to differentiate as it does anything."""
    for _ in range(num_steps):
        grads = jax.grad(loss)(params, context, data)
        params = jax.tree.map(lambda x, g: x - rate * g, params, grads)
    return params


def test_descent_in_a_bowl_has_a_closed_form():
    """x⁽ᴷ⁾ − m = (1 − αh)ᴷ (x⁽⁰⁾ − m), with m = c + data."""
    start, context = jnp.array([1.0, -2.0]), jnp.array([0.5, 0.5])
    end = gradient_descent.descend(bowl, start, context, 0.25, RATE, STEPS)
    middle = context + 0.25
    expected = middle + (1 - RATE * CURVATURE) ** STEPS * (start - middle)
    np.testing.assert_allclose(end, expected, rtol=1e-12)


@pytest.mark.parametrize("num_steps", [1, 2, 5])
def test_the_derivative_is_that_of_the_unrolled_steps(num_steps):
    """In the start, the context and the rate; the data has none."""
    params, context, data = wavy_problem()

    def after(descend, params, context, rate):
        end = descend(wavy, params, context, data, rate, num_steps)
        return jnp.sum(jnp.cos(end["w"])) + jnp.sum(end["b"] ** 3)

    gradients = jax.jit(jax.grad(after, (1, 2, 3)), static_argnums=0)
    actual = gradients(gradient_descent.descend, params, context, RATE)
    expected = gradients(unrolled, params, context, RATE)
    for left, right in zip(
        jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
    ):
        assert np.abs(right).max() > 1e-3
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12)


def test_the_first_order_derivative_takes_the_steps_for_constants():
    """∂x⁽ᴷ⁾/∂x⁽⁰⁾ = 1, and the other arguments have no influence."""
    params, context, data = wavy_problem()

    def after(params, context, rate):
        end = gradient_descent.descend_first_order(
            wavy, params, context, data, rate, STEPS
        )
        return jnp.sum(jnp.cos(end["w"])) + jnp.sum(end["b"] ** 3)

    steps = jax.jit(unrolled, static_argnums=(0, 5))
    end = steps(wavy, params, context, data, RATE, STEPS)
    gradients = jax.jit(jax.grad(after, (0, 1, 2)))
    in_params, in_context, in_rate = gradients(params, context, RATE)
    np.testing.assert_allclose(in_params["w"], -jnp.sin(end["w"]), rtol=1e-12)
    np.testing.assert_allclose(in_params["b"], 3 * end["b"] ** 2, rtol=1e-12)
    assert not np.any(in_context)
    assert in_rate == 0


def test_memory_does_not_grow_with_the_number_of_steps():
    """The program for 20 steps needs hardly more than that for 2."""
    params = jnp.ones(100)
    data = jnp.ones((1000, 100))

    def loss(params, context, data):
        return jnp.mean(jnp.tanh(data @ params + context) ** 2)

    def num_bytes(num_steps):
        gradient = jax.grad(
            lambda x: jnp.sum(
                gradient_descent.descend(loss, x, 0.0, data, RATE, num_steps)
            )
        )
        return jax.jit(gradient).lower(params).compile().memory_analysis()

    few, many = num_bytes(2), num_bytes(20)
    iterates = 18 * params.nbytes
    assert many.temp_size_in_bytes < few.temp_size_in_bytes + 2 * iterates


def test_no_steps_are_the_identity():
    params, context, data = wavy_problem()
    end = gradient_descent.descend(wavy, params, context, data, RATE, 0)
    assert all(map(np.array_equal, jax.tree.leaves(end), jax.tree.leaves(params)))
