"""Numbers about meta-gradients, each against its formula."""

import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.core import diagnostics

LEFT = {"a": jnp.array([3.0, 0.0]), "b": jnp.array([[4.0]])}
RIGHT = {"a": jnp.array([0.0, 2.0]), "b": jnp.array([[2.0]])}


def test_the_cosine_is_that_of_the_angle():
    """⟨l, r⟩ = 8, ‖l‖ = 5, ‖r‖ = √8."""
    expected = 8 / (5 * 8**0.5)
    actual = diagnostics.cosine_similarity(LEFT, RIGHT)
    assert actual == pytest.approx(expected, rel=1e-6)
    opposite = {name: -value for name, value in LEFT.items()}
    assert diagnostics.cosine_similarity(LEFT, opposite) == pytest.approx(-1)


def test_the_cosine_with_nothing_is_zero():
    nothing = {name: jnp.zeros_like(value) for name, value in LEFT.items()}
    assert diagnostics.cosine_similarity(LEFT, nothing) == 0


def test_the_variance_is_the_trace_of_the_sample_covariance():
    draws = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    tree = {"a": jnp.asarray(draws[:, :2]), "b": jnp.asarray(draws[:, 2:, None])}
    expected = np.trace(np.cov(draws.T))
    assert diagnostics.variance(tree) == pytest.approx(expected, rel=1e-5)


def test_one_gradient_has_no_variance_and_no_ratio():
    variance = diagnostics.variance({"a": jnp.ones((1, 3))})
    assert variance == 0
    assert diagnostics.norm_to_variance(jnp.array(2.0), variance) == 0


def test_the_ratio_is_norm_over_variance():
    ratio = diagnostics.norm_to_variance(jnp.array(2.0), jnp.array(8.0))
    assert ratio == 0.25


def test_a_unit_is_dead_that_fires_for_no_input():
    """The second and the last of four; 0 is no firing."""
    features = jnp.array([[1.0, 0.0, -1.0, 0.0], [0.0, -2.0, 3.0, 0.0]])
    assert diagnostics.dead_share(features) == 0.5


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_the_rank_is_how_many_singular_values_make_all_but_a_hundredth(shape):
    """Of features with known singular values dᵏ, k = 0 to 11, where d is 0, ½ or 1."""
    generator = np.random.default_rng(0)
    left, right = (np.linalg.qr(generator.normal(size=(n, 12)))[0] for n in shape)
    for decay, expected in ((0.0, 1), (0.5, 7), (1.0, 12)):
        values = decay ** np.arange(12)
        shares = np.cumsum(values) / values.sum()
        assert 1 + np.sum(shares < 0.99) == expected
        features = jnp.asarray(left * values @ right.T, jnp.float32)
        assert diagnostics.effective_rank(features) == expected


def test_features_that_are_nothing_have_no_rank():
    assert diagnostics.effective_rank(jnp.zeros((3, 4))) == 0


def test_both_are_columns():
    """Half of the units fire, and all of those are one."""
    features = jnp.tile(jnp.arange(4.0)[:, None], (1, 6)).at[:, 3:].set(0.0)
    found = diagnostics.of_features(features)
    assert found == {"dead_units": 0.5, "feature_rank": 1}
