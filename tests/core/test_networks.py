"""Feed-forward networks, alone and as heads: what they compute, how they start."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.core import convolutions, networks

KEY = jax.random.key(0)


@functools.partial(jax.jit, static_argnums=0)
def init(network, key, inputs):
    return network.init(key, inputs)


@functools.partial(jax.jit, static_argnums=0)
def apply(network, params, inputs):
    return network.apply(params, inputs)


@pytest.mark.parametrize("leading", [(), (4,), (2, 3)])
@pytest.mark.parametrize("hidden_sizes", [(), (5,), (5, 7)])
def test_leading_axes_are_kept(leading, hidden_sizes):
    """Docstring of `mlp`: [..., D] to [..., output_size], one layer per size."""
    network = networks.mlp(hidden_sizes, output_size=3)
    inputs = jnp.ones((*leading, 6))
    params = jax.eval_shape(network.init, KEY, inputs)
    outputs = jax.eval_shape(network.apply, params, inputs)
    assert outputs.shape == (*leading, 3)
    sizes = (6, *hidden_sizes, 3)
    shapes = sorted(layer["w"].shape for layer in params.values())
    assert shapes == sorted(itertools.pairwise(sizes))


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        # Hidden (1 · 1 + 2 · (−1) + 0, 1 · 2 + 2 · 1 + 1) = (−1, 5). After relu
        # (0, 5), hence −(0 + 3 · 5) + 4 = −11, which the last layer does not rectify.
        (jax.nn.relu, -11.0),
        # −((−1)² + 3 · 5²) + 4.
        (jnp.square, -72.0),
    ],
    ids=["relu", "square"],
)
def test_two_layers_by_hand(activation, expected):
    """Docstring of `mlp`: activation(x W₁ + b₁) W₂ + b₂, linear at the end."""
    network = networks.mlp((2,), output_size=1, activation=activation)
    inputs = jnp.array([1.0, 2.0])
    first, last = network.init(KEY, inputs)
    params = {
        first: {"w": jnp.array([[1.0, 2.0], [-1.0, 1.0]]), "b": jnp.array([0.0, 1.0])},
        last: {"w": jnp.array([[-1.0], [-3.0]]), "b": jnp.array([4.0])},
    }
    chex.assert_trees_all_equal(network.apply(params, inputs), jnp.array([expected]))


def test_hidden_layers_are_rectified_unless_asked_otherwise():
    """Signature of `mlp`: the default activation is relu."""
    inputs = jnp.linspace(-1, 1, 12).reshape(3, 4)
    default = networks.mlp((5, 5), output_size=2)
    rectified = networks.mlp((5, 5), output_size=2, activation=jax.nn.relu)
    params = init(default, KEY, inputs)
    chex.assert_trees_all_equal(
        apply(default, params, inputs), apply(rectified, params, inputs)
    )


def test_weights_are_a_pure_function_of_the_key():
    """Docstring of `mlp`: same key, same weights; another key, others."""
    network = networks.mlp((5,), output_size=3)
    first, again = (init(network, KEY, jnp.ones(4)) for _ in range(2))
    other = init(network, jax.random.key(1), jnp.ones(4))
    chex.assert_trees_all_equal(first, again)
    for layer in first:
        assert not jnp.any(first[layer]["w"] == other[layer]["w"])


def test_output_is_a_pure_function_of_weights_and_inputs():
    """Style guide, rule 10: a batch, `vmap` and `jit` give the same numbers."""
    network = networks.mlp((5,), output_size=3)
    inputs = jnp.linspace(-1, 1, 12).reshape(3, 4)
    params = init(network, KEY, inputs)
    actual = network.apply(params, inputs)
    mapped = jax.vmap(network.apply, in_axes=(None, 0))(params, inputs)
    compiled = jax.jit(network.apply)(params, inputs)
    chex.assert_trees_all_close(actual, mapped, rtol=1e-5)
    chex.assert_trees_all_close(actual, compiled, rtol=1e-5)


def test_biases_start_at_zero():
    """Docstring of `mlp`: biases at 0."""
    params = init(networks.mlp((5, 7), output_size=3), KEY, jnp.ones(4))
    for layer in params.values():
        chex.assert_trees_all_equal(layer["b"], jnp.zeros_like(layer["b"]))


def test_weights_start_at_a_scale_of_the_inverse_root_of_the_fan_in():
    """Docstring of `mlp`: a truncated normal of scale 1/√fan_in.

    Cut at two deviations, N(0, 1) keeps a deviation of 0.8796 (Haiku does not make up
    for that), measured here on more than 10⁴ weights, to about 1%.
    """
    params = init(networks.mlp((400,), output_size=100), KEY, jnp.ones(50))
    for layer in params.values():
        fan_in = layer["w"].shape[0]
        scaled = np.asarray(layer["w"]) * np.sqrt(fan_in)
        np.testing.assert_allclose(scaled.std(), 0.8796, rtol=0.03)
        assert np.abs(scaled).max() <= 2


@pytest.mark.parametrize(("num_heads", "leading"), [(3, ()), (3, (2, 3)), (1, (4,))])
def test_heads_are_networks_of_their_own(num_heads, leading):
    """Docstring of `heads`: each is `mlp` with its slice of the parameters."""
    network, head = networks.heads(num_heads, (5,), 2), networks.mlp((5,), 2)
    features = jax.random.normal(jax.random.key(1), (*leading, 4))
    params = init(network, KEY, features)
    outputs = apply(network, params, features)
    chex.assert_shape(outputs, (*leading, num_heads, 2))
    for i in range(num_heads):
        expected = apply(head, jax.tree.map(lambda p, i=i: p[i], params), features)
        np.testing.assert_allclose(outputs[..., i, :], expected, rtol=1e-5, atol=1e-6)


def test_a_slice_of_the_parameters_makes_for_as_many_heads():
    """Docstring of `heads`: the main head is [0:1]."""
    network = networks.heads(3, (5,), 2)
    features = jax.random.normal(jax.random.key(1), (4, 6))
    params = init(network, KEY, features)
    first = apply(network, jax.tree.map(lambda p: p[0:1], params), features)
    chex.assert_shape(first, (4, 1, 2))
    all_heads = apply(network, params, features)
    np.testing.assert_allclose(first, all_heads[:, 0:1], rtol=1e-5)


def test_heads_start_as_networks_do_from_keys_of_their_own():
    """Docstring of `heads`: parameters of `mlp`, with [H, ...] in each leaf."""
    features, head = jnp.ones(4), networks.mlp((5,), 2)
    params = init(networks.heads(3, (5,), 2), KEY, features)
    for i, key in enumerate(jax.random.split(KEY, 3)):
        one = jax.tree.map(lambda p, i=i: p[i], params)
        chex.assert_trees_all_close(one, init(head, key, features), rtol=1e-6)


def test_features_are_what_the_last_layer_is_given():
    """Of two networks: the last layer's outputs are linear in them."""
    images = jax.random.normal(jax.random.key(0), (6, 8, 8, 1))
    convolutional = networks.convolutional(3, 4, convolutions.plain, 2)
    flat = images.reshape(6, -1)
    for network, inputs in ((convolutional, images), (networks.mlp((5,), 3), flat)):
        params = init(network, jax.random.key(1), inputs)
        features = jax.jit(networks.features, static_argnums=0)(network, params, inputs)
        (last,) = [p for p in params.values() if p.get("b", jnp.zeros(0)).shape == (3,)]
        assert features.min() >= 0
        np.testing.assert_allclose(
            features @ last["w"] + jnp.broadcast_to(last["b"], (6, 3)),
            apply(network, params, inputs),
            rtol=1e-5,
            atol=1e-6,
        )
