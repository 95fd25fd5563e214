"""IMPALA's deep network: what it computes, its size, precision and derivatives."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.core import networks

KEY = jax.random.key(0)
IMAGES = np.random.default_rng(0).uniform(size=(2, 7, 6, 3)).astype(np.float32)
CHANNELS, FEATURE_SIZE = (4, 5), 6
FRAMES = (210, 160, 12)  # Four frames in color.


@functools.cache  # So that what was compiled of a network is found again.
def build(
    num_blocks=1, dtype=jnp.float32, is_rematerialized=False, is_written_out=False
):
    return networks.residual(
        CHANNELS, num_blocks, FEATURE_SIZE, dtype, is_rematerialized, is_written_out
    )


@functools.cache
def random_params(**sizes):
    """Biases, too, so that one that is left out shows."""
    params = jax.jit(build(**sizes).init)(KEY, IMAGES)
    leaves, structure = jax.tree.flatten(params)
    random = np.random.default_rng(1)
    noise = [random.normal(scale=0.3, size=leaf.shape) for leaf in leaves]
    return jax.tree.unflatten(structure, map(jnp.asarray, map(np.float32, noise)))


def convolved(images, layer):
    """3×3, with zeros around the images, in loops over their places."""
    batch, height, width, _ = images.shape
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    outputs = np.zeros((batch, height, width, layer["w"].shape[-1]))
    for h, w in np.ndindex(height, width):
        window = padded[:, h : h + 3, w : w + 3]
        outputs[:, h, w] = np.einsum("bijc,ijcf->bf", window, layer["w"])
    return outputs + np.asarray(layer["b"])


def pooled(images):
    """3×3 with strides of 2; of even sizes only the end is padded, of odd ones both."""
    batch, height, width, channels = images.shape
    before = [size % 2 for size in (height, width)]
    sides = [(0, 0), (before[0], 1), (before[1], 1), (0, 0)]
    padded = np.pad(images, sides, constant_values=-np.inf)
    outputs = np.zeros((batch, (height + 1) // 2, (width + 1) // 2, channels))
    for h, w in np.ndindex(outputs.shape[1:3]):
        window = padded[:, 2 * h : 2 * h + 3, 2 * w : 2 * w + 3]
        outputs[:, h, w] = window.max(axis=(1, 2))
    return outputs


def test_features_are_those_of_the_sections_one_by_one():
    """Espeholt et al. (2018), Fig. 3: conv, pool, two residual blocks; then linear."""
    params = random_params(num_blocks=2)
    expected = np.asarray(IMAGES, np.float64)
    for i in range(len(CHANNELS)):
        expected = pooled(convolved(expected, params[f"section_{i}/conv"]))
        for j in range(2):
            inner = expected
            for k in range(2):
                layer = params[f"section_{i}/block_{j}_conv_{k}"]
                inner = convolved(np.maximum(inner, 0), layer)
            expected = expected + inner
    flat = np.maximum(expected, 0).reshape(len(IMAGES), -1)
    weights, biases = (np.asarray(params["linear"][name]) for name in ("w", "b"))
    linear = flat @ weights + biases
    actual = jax.jit(build(num_blocks=2).apply)(params, IMAGES)
    assert 0 < np.sum(linear > 0) < linear.size
    np.testing.assert_allclose(actual, np.maximum(linear, 0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("factor", "flat_size", "num_millions"), [(1, 2240, 2.46), (4, 8960, 7.56)]
)
def test_sizes_are_those_of_the_papers_network(factor, flat_size, num_millions):
    """Four sections halve 210×160 to 14×10; 9 weights join two channels of a conv.

    With three heads of 18 actions, two hidden layers of 256 for each policy and critic.
    """
    channels = [factor * c for c in (16, 32, 32, 16)]
    network = networks.residual(
        channels,
        num_blocks=2,
        feature_size=512,
        dtype=jnp.float32,
        is_rematerialized=False,
        is_written_out=False,
    )
    shapes = jax.eval_shape(network.init, KEY, jax.ShapeDtypeStruct((1, *FRAMES), "f4"))
    assert shapes["linear"]["w"].shape == (flat_size, 512)
    before = [FRAMES[-1], *channels[:-1]]
    sections = sum(
        (9 * c + 1) * f + 4 * (9 * f + 1) * f
        for c, f in zip(before, channels, strict=True)
    )
    num_torso = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    assert num_torso == sections + (flat_size + 1) * 512
    mlps = [
        jax.eval_shape(networks.heads(3, (256, 256), n).init, KEY, jnp.zeros(512))
        for n in (18, 1)
    ]
    num_heads = sum(leaf.size for leaf in jax.tree.leaves(mlps))
    assert round((num_torso + num_heads) / 1e6, 2) == num_millions


@pytest.mark.parametrize("leading", [(), (2,), (3, 2)])
def test_leading_axes_are_kept(leading):
    """Docstring: images [..., H, W, C]; in a batch they are what each is alone."""
    images = np.broadcast_to(IMAGES[0], (*leading, *IMAGES.shape[1:]))
    actual = jax.jit(build().apply)(random_params(), images)
    expected = jax.jit(build().apply)(random_params(), IMAGES)[0]
    chex.assert_shape(actual, (*leading, FEATURE_SIZE))
    np.testing.assert_allclose(
        actual, np.broadcast_to(expected, actual.shape), rtol=1e-4
    )


def derivatives(network, params):
    """Features, the gradient of a loss of them, and its derivative along itself."""

    def loss(params):
        features = network.apply(params, IMAGES)
        return jnp.sum(jnp.sin(features)), features

    def gradient(params):
        grads, features = jax.grad(loss, has_aux=True)(params)
        return grads, features

    (grads, features), (products, _) = jax.jvp(gradient, (params,), (params,))
    return features, grads, products


@pytest.mark.parametrize("form", ["is_rematerialized", "is_written_out"])
def test_the_form_changes_no_numbers(form):
    """Nor the names of parameters, nor how they start."""
    plain, other = build(), build(**{form: True})
    expected, actual = (jax.jit(n.init)(KEY, IMAGES) for n in (plain, other))
    chex.assert_trees_all_equal(actual, expected)
    compute = jax.jit(derivatives, static_argnums=0)
    expected, actual = (compute(n, random_params()) for n in (plain, other))
    chex.assert_trees_all_close(actual, expected, rtol=1e-4, atol=1e-5)
    assert all(np.abs(leaf).max() > 1e-3 for leaf in jax.tree.leaves(expected))


def test_every_section_is_rematerialized():
    """Derivatives keep only what is between sections."""

    def num_checkpoints(is_rematerialized):
        apply = build(is_rematerialized=is_rematerialized).apply
        equations = jax.make_jaxpr(apply)(random_params(), IMAGES).eqns
        return [e.primitive.name for e in equations].count("remat2")

    assert num_checkpoints(True) == len(CHANNELS)
    assert num_checkpoints(False) == 0


def test_half_precision_is_in_computations_only():
    """Parameters, features and gradients are float32; rounding is that of bfloat16."""
    half = build(dtype="bfloat16")
    params = jax.jit(half.init)(KEY, IMAGES)
    chex.assert_trees_all_equal(params, jax.jit(build().init)(KEY, IMAGES))
    actual, expected = (jax.jit(n.apply)(params, IMAGES) for n in (half, build()))
    assert actual.dtype == jnp.float32
    error = np.abs(actual - expected).max() / np.abs(expected).max()
    assert 1e-4 < error < 0.05
    gradients = jax.eval_shape(jax.grad(lambda p: half.apply(p, IMAGES).sum()), params)
    chex.assert_trees_all_equal_shapes_and_dtypes(gradients, params)
    equations = jax.make_jaxpr(half.apply)(params, IMAGES).eqns
    names = ("conv_general_dilated", "dot_general")
    products = [e.outvars[0].aval for e in equations if e.primitive.name in names]
    assert [x.dtype for x in products] == [jnp.bfloat16] * (3 * len(CHANNELS) + 1)
