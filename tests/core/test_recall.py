"""A recalled forward pass: values that were computed before, derivatives as ever."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.core import networks, recall

SIZES, BATCH = (5, 6), 7
NETWORK = networks.mlp(SIZES, 3)


def drawn(network, size):
    """Weights and biases that are no zeros."""
    params = jax.jit(network.init)(jax.random.key(0), jnp.zeros(size))
    leaves, shape = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    noise = [jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(shape, noise)


@pytest.fixture(scope="module")
def params():
    return drawn(NETWORK, 4)


@pytest.fixture(scope="module")
def inputs():
    return jax.random.normal(jax.random.key(2), (BATCH, 4))


def test_forward_is_the_network(params, inputs):
    """Its last layer; the ones before it have the ReLUs' arguments."""
    first, second, last = recall.forward(params, inputs)
    np.testing.assert_allclose(last, NETWORK.apply(params, inputs), rtol=1e-6)
    assert (first.shape, second.shape) == ((BATCH, 5), (BATCH, 6))
    assert (np.asarray(first) < 0).any()
    alone = recall.forward(params, inputs[0])
    np.testing.assert_allclose(alone[-1], last[0], rtol=1e-5)


def test_more_than_ten_layers_are_in_their_order():
    """Their names as text have the eleventh after the second."""
    network = networks.mlp([8] * 11, 8)
    params, x = drawn(network, 8), jnp.linspace(-1.0, 1.0, 8)
    expected = network.apply(params, x)
    assert np.abs(expected).min() > 0
    np.testing.assert_allclose(recall.forward(params, x)[-1], expected, rtol=1e-4)


def test_values_are_those_that_are_given(params, inputs):
    """None is computed again: those of other parameters come back as they are."""
    outputs = recall.forward(params, inputs)
    doubled = jax.tree.map(lambda x: 2 * x, params)
    np.testing.assert_array_equal(
        recall.recalled(doubled, inputs, outputs), outputs[-1]
    )


def loss(apply):
    """A function of the network that is not linear in what it puts out."""
    return lambda params, inputs: jnp.sum(jnp.sin(apply(params, inputs)) ** 2)


def looked_up(params, inputs):
    outputs = jax.lax.stop_gradient(recall.forward(params, inputs))
    return recall.recalled(params, inputs, outputs)


def test_the_gradient_is_that_of_the_network(params, inputs):
    """In the parameters and in the inputs."""
    found, expected = (
        jax.jit(jax.grad(loss(apply), (0, 1)))(params, inputs)
        for apply in (looked_up, NETWORK.apply)
    )
    chex.assert_trees_all_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["forwards", "backwards"])
def test_products_with_the_hessian_are_those_of_the_network(params, inputs, mode):
    """Forwards over backwards, and backwards over backwards."""
    along = jax.tree.map(jnp.cos, params)

    def product(apply, params, along):
        gradient = jax.grad(loss(apply))
        if mode == "forwards":
            return jax.jvp(lambda x: gradient(x, inputs), (params,), (along,))[1]
        return jax.vjp(lambda x: gradient(x, inputs), params)[1](along)[0]

    found, expected = (
        jax.jit(product, static_argnums=0)(apply, params, along)
        for apply in (looked_up, NETWORK.apply)
    )
    chex.assert_trees_all_close(found, expected, rtol=1e-4, atol=1e-4)


def test_leaky_units_are_those_of_a_leaky_network(params, inputs):
    """Its outputs, and the gradient of one input."""
    network = networks.mlp(SIZES, 3, lambda z: jnp.where(z > 0, z, 0.3 * z))
    along, x = jnp.array([0.5, -1.0, 2.0]), inputs[0]
    outputs = recall.forward(params, x, 0.3)
    np.testing.assert_allclose(outputs[-1], network.apply(params, x), rtol=1e-5)
    found = recall.gradient(params, x, outputs, along, 0.3)
    expected = jax.jit(jax.grad(lambda p: network.apply(p, x) @ along))(params)
    chex.assert_trees_all_close(found, expected, rtol=1e-5, atol=1e-6)


def test_a_hidden_unit_leaks_at_zero_and_below():
    """Its value at −2, 0 and 2, and its slope there, which at 0 is that below 0."""
    z = jnp.array([-2.0, 0.0, 2.0])
    for leak, expected in ((0.3, 0.3), (None, 0.0)):
        values, slopes = jax.vmap(
            jax.value_and_grad(lambda x, leak=leak: recall.leaky_relu(x, leak))
        )(z)
        np.testing.assert_allclose(values, [-2 * expected, 0, 2], rtol=1e-6)
        np.testing.assert_allclose(slopes, [expected, expected, 1], rtol=1e-6)


def test_no_product_of_the_forward_pass_is_left(params, inputs):
    """A gradient has two products a layer where the network's has three."""

    def products(apply):
        gradient = jax.jit(jax.grad(loss(apply)))
        return gradient.lower(params, inputs).as_text().count("dot_general")

    outputs = recall.forward(params, inputs)
    found = products(lambda p, x: recall.recalled(p, x, outputs))
    assert found == products(NETWORK.apply) - len(params)


def test_a_gradient_of_one_input_is_that_of_the_network(params, inputs):
    """In the parameters, along any combination of the outputs."""
    along, x = jnp.array([0.5, -1.0, 2.0]), inputs[0]
    found = recall.gradient(params, x, recall.forward(params, x), along)
    expected = jax.jit(jax.grad(lambda p: NETWORK.apply(p, x) @ along))(params)
    chex.assert_trees_all_close(found, expected, rtol=1e-5, atol=1e-6)
