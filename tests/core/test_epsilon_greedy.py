"""ε-greedy policies and their matching functions: values by hand, and gradients."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import test_util

from bmg_sweeps.core import epsilon_greedy

Q = jnp.array([0.5, -1.0, 2.0, 0.0])
SAME = jnp.array([1.0, 0.0, 3.0, 2.0])  # The same action is best.
OTHER = jnp.array([1.0, 4.0, 3.0, 2.0])
FUNCTIONS = [epsilon_greedy.policy_kl, epsilon_greedy.value]


def test_the_policy_is_greedy_but_for_a_share_of_each_action():
    """Appendix B.3: 1 − ε + ε/4 on the best of four, ε/4 on each other."""
    actual = epsilon_greedy.probabilities(Q, jnp.array(0.2))
    np.testing.assert_allclose(actual, [0.05, 0.05, 0.85, 0.05], rtol=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_at_its_ends_it_is_greedy_and_uniform(epsilon):
    actual = epsilon_greedy.probabilities(Q, jnp.array(epsilon))
    expected = [0, 0, 1, 0] if epsilon == 0 else [0.25] * 4
    np.testing.assert_allclose(actual, expected, atol=1e-7)


def test_a_tie_goes_to_the_first_of_the_best():
    actual = epsilon_greedy.probabilities(jnp.zeros(4), jnp.array(0.0))
    np.testing.assert_array_equal(actual, [1, 0, 0, 0])


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("target", [SAME, OTHER])
def test_the_divergence_has_two_values(target, epsilon):
    """Facts of B.3, with |A| = 4: −log(1 − ¾ ε) where both agree, else −log(ε/4)."""
    agree = target is SAME
    expected = -math.log(1 - 0.75 * epsilon if agree else epsilon / 4)
    actual = epsilon_greedy.policy_kl(target, Q, jnp.array(epsilon))
    assert actual == pytest.approx(expected, rel=1e-5)


def test_value_compares_what_both_expect():
    """Max q_x̃ = 4; 0.85 · 2 + 0.05 · (0.5 − 1 + 0) = 1.675; squared: 5.405625."""
    actual = epsilon_greedy.value(OTHER, Q, jnp.array(0.2))
    assert actual == pytest.approx(5.405625, rel=1e-6)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_both_are_means_over_states(function):
    """Appendix B.3, an expectation over states; each has its own ε."""
    target, q = jnp.stack([SAME, OTHER]), jnp.stack([Q, Q])
    epsilon = jnp.array([0.2, 0.4])
    apart = [function(t, x, e) for t, x, e in zip(target, q, epsilon, strict=True)]
    assert function(target, q, epsilon) == pytest.approx(np.mean(apart), rel=1e-6)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_gradient_is_that_of_finite_differences(function):
    with jax.enable_x64():
        target, q = jnp.stack([SAME, OTHER]), jnp.stack([Q, Q])
        epsilon = jnp.array([0.2, 0.4])
        test_util.check_grads(
            lambda e: function(target, q, e), (epsilon,), order=1, modes=["rev"]
        )


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_gradient_reaches_the_values(function):
    """Appendix B.3: differentiated in the policy's ε alone."""
    gradients = jax.grad(function, argnums=(0, 1))(OTHER, Q, jnp.array(0.2))
    np.testing.assert_array_equal(jnp.stack(gradients), 0)


def test_matching_lowers_epsilon_where_both_agree_and_raises_it_else():
    """Appendix B.3, "Policy-matching"."""
    slope = jax.grad(epsilon_greedy.policy_kl, argnums=2)
    assert slope(SAME, Q, jnp.array(0.2)) > 0
    assert slope(OTHER, Q, jnp.array(0.2)) < 0


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_of_other_shapes_are_refused(function):
    with pytest.raises(AssertionError):
        function(jnp.zeros(3), jnp.zeros(4), jnp.array(0.1))
    with pytest.raises(AssertionError):
        function(jnp.zeros((2, 4)), jnp.zeros((2, 4)), jnp.zeros(3))
