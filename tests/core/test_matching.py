"""Matching functions: values by hand, and gradients to the learner only."""

import functools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import test_util

from bmg_sweeps.core import matching

LN2, LN3 = math.log(2), math.log(3)
# Two policies over three actions, p and q, as logits shifted by a constant each: they
# need not be normalized.
P_LOGITS = np.log([1 / 2, 1 / 4, 1 / 4]) + 1.0
Q_LOGITS = np.log([1 / 8, 1 / 8, 3 / 4]) - 2.0
# KL(p ‖ q) = ½ ln 4 + ¼ ln 2 − ¼ ln 3; KL(q ‖ p) = −⅛ ln 4 − ⅛ ln 2 + ¾ ln 3.
KL_P_Q = 5 / 4 * LN2 - 1 / 4 * LN3
KL_Q_P = -3 / 8 * LN2 + 3 / 4 * LN3

# Four states [T, B] = [2, 2], for the properties that hold whatever the numbers.
LOGITS = (
    np.sin(np.arange(12.0)).reshape(2, 2, 3),
    np.cos(np.arange(12.0) ** 2).reshape(2, 2, 3),
)
VALUES = (np.array([[1.0, -2.0], [0.5, 3.0]]), np.array([[0.3, 1.0], [-1.5, 2.0]]))
TREES = (
    {"a": LOGITS[0], "b": (VALUES[0], np.array(0.7))},
    {"a": LOGITS[1], "b": (VALUES[1], np.array(-0.1))},
)
# Each function with a target and a learner for it.
EVERY_FUNCTION = pytest.mark.parametrize(
    ("function", "target", "learner"),
    [
        pytest.param(matching.policy_kl, *LOGITS, id="policy_kl"),
        pytest.param(matching.reverse_policy_kl, *LOGITS, id="reverse_policy_kl"),
        pytest.param(matching.symmetric_policy_kl, *LOGITS, id="symmetric_policy_kl"),
        pytest.param(matching.value, *VALUES, id="value"),
        pytest.param(
            functools.partial(matching.policy_and_value, value_weight=0.25),
            *zip(LOGITS, VALUES, strict=True),
            id="policy_and_value",
        ),
        pytest.param(matching.squared_euclidean, *TREES, id="squared_euclidean"),
    ],
)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (matching.policy_kl, KL_P_Q),
        (matching.reverse_policy_kl, KL_Q_P),
        (matching.symmetric_policy_kl, KL_P_Q + KL_Q_P),
    ],
)
def test_divergence_of_two_policies_by_hand(function, expected):
    """Section 3, "Matching Function", and Appendix B.2: Σ_a p ln(p / q), in nats.

    Here p is the target and q the learner.
    """
    actual = function(jnp.asarray(P_LOGITS), jnp.asarray(Q_LOGITS))
    chex.assert_trees_all_close(actual, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (matching.policy_kl, KL_P_Q),
        (matching.reverse_policy_kl, KL_Q_P),
        (matching.symmetric_policy_kl, KL_P_Q + KL_Q_P),
    ],
)
def test_divergence_is_a_mean_over_states(function, expected):
    """Section 3, "Matching Function": E over states, one of four of which differs."""
    target = jnp.tile(P_LOGITS, (2, 2, 1))
    learner = target.at[1, 0].set(Q_LOGITS)
    chex.assert_trees_all_close(function(target, learner), expected / 4, rtol=1e-5)


def test_value_is_the_mean_squared_difference():
    """Appendix C.2: E (v_z̃ − v_z)² = (2² + 0² + 1² + 3²) / 4 = 3.5."""
    target = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    learner = jnp.array([[-1.0, 2.0], [4.0, 1.0]])
    chex.assert_trees_all_close(matching.value(target, learner), 3.5, rtol=1e-6)


@pytest.mark.parametrize("value_weight", [0.0, 0.25, 2.0])
def test_policy_and_value_adds_the_weighted_value(value_weight):
    """Appendix C.2: KL(π_x̃ ‖ π_x) + λ E (v_z̃ − v_z)², here with E (…)² = 3² = 9."""
    actual = matching.policy_and_value(
        (jnp.asarray(P_LOGITS), jnp.array(1.0)),
        (jnp.asarray(Q_LOGITS), jnp.array(-2.0)),
        value_weight,
    )
    chex.assert_trees_all_close(actual, KL_P_Q + 9 * value_weight, rtol=1e-5)


def test_squared_euclidean_sums_over_the_whole_tree():
    """Eq. 3: ‖x̃ − x‖² = 1² + 2² + (3² + 4²) = 30, neither a root nor a mean."""
    target = {"a": jnp.array([[1.0], [2.0]]), "b": (jnp.array([0.0, 5.0]),)}
    params = {"a": jnp.array([[2.0], [0.0]]), "b": (jnp.array([3.0, 1.0]),)}
    actual = matching.squared_euclidean(target, params)
    chex.assert_trees_all_close(actual, 30.0, rtol=1e-6)


@EVERY_FUNCTION
def test_gradient_is_zero_where_target_and_learner_agree(function, target, learner):
    """Section 4: 0 is the minimum of μ, so its gradient there is 0, and not NaN."""
    loss, gradient = jax.value_and_grad(function, argnums=1)(target, target)
    zeros = jax.tree.map(np.zeros_like, target)
    # Absolute, because the expected numbers are 0; softmax leaves a last digit.
    chex.assert_trees_all_close((loss, gradient), (0.0, zeros), atol=1e-7)
    assert function(target, learner) > 0.1


@EVERY_FUNCTION
def test_target_receives_no_gradient(function, target, learner):
    """Eq. 2: "the gradient is with respect to the second argument of μ"."""
    gradient = jax.grad(function)(target, learner)
    chex.assert_trees_all_equal(gradient, jax.tree.map(np.zeros_like, target))


@EVERY_FUNCTION
def test_learner_receives_the_gradient_of_finite_differences(function, target, learner):
    """Eq. 2: ∇_z μ(x̃, z), against central differences in float64."""
    with jax.enable_x64(True):
        test_util.check_grads(
            functools.partial(function, target),
            (learner,),
            order=1,
            modes=["rev"],
            rtol=1e-6,
        )


@EVERY_FUNCTION
def test_different_shapes_are_refused(function, target, learner):
    """Docstrings of `matching`: shapes that would broadcast raise nevertheless."""
    first_row = jax.tree.map(lambda leaf: leaf[:1] if leaf.ndim else leaf, learner)
    with pytest.raises(AssertionError):
        function(target, first_row)


def test_different_structures_are_refused():
    """Docstring of `squared_euclidean`: x̃ and x are trees of one structure."""
    with pytest.raises(AssertionError):
        matching.squared_euclidean({"a": jnp.ones(2)}, {"b": jnp.ones(2)})
