"""The three terms of Eq. 4: values by hand, signs, weights and gradients."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import test_util

from bmg_sweeps.core import losses

LN2, LN3 = math.log(2), math.log(3)
# Two states: the policies (½, ¼, ¼) and (⅛, ⅛, ¾), shifted to be unnormalized.
LOGITS = np.log([[1 / 2, 1 / 4, 1 / 4], [1 / 8, 1 / 8, 3 / 4]])
LOGITS += np.array([[1.0], [-2.0]])
ACTIONS = np.array([0, 1])  # Taken with probability ½ and ⅛.
ADVANTAGES = np.array([2.0, -4.0])
WEIGHTS = np.array([0.5, 2.0])  # w, such as ρ.
VALUES = np.array([1.0, 2.0])
RETURNS = np.array([3.0, -1.0])


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        # −(2 ln ½ − 4 ln ⅛) = −(−2 + 12) ln 2.
        (None, -10 * LN2),
        (np.ones(2), -10 * LN2),
        # −(½ · 2 ln ½ − 2 · 4 ln ⅛) = −(−1 + 24) ln 2.
        (WEIGHTS, -23 * LN2),
    ],
    ids=["on policy", "weights of 1", "off policy"],
)
def test_policy_gradient_by_hand(weights, expected):
    """Eq. 4: ℓ_PG = −Σ_t w_t log π(a_t | s_t) (G_t − v(s_t))."""
    actual = losses.policy_gradient(LOGITS, ACTIONS, ADVANTAGES, weights)
    chex.assert_trees_all_close(actual, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        # State 1: ½ ln ½ + 2 · ¼ ln ¼ = −3/2 ln 2.
        # State 2: 2 · ⅛ ln ⅛ + ¾ ln ¾ = −3/4 ln 2 + ¾ ln 3 − 3/2 ln 2.
        (None, -15 / 4 * LN2 + 3 / 4 * LN3),
        (WEIGHTS, -21 / 4 * LN2 + 3 / 2 * LN3),
    ],
    ids=["none", "weights"],
)
def test_entropy_by_hand(weights, expected):
    """Eq. 4: ℓ_EN = Σ_t w_t Σ_a π log π, the negative entropy, in nats."""
    actual = losses.entropy(LOGITS, weights)
    chex.assert_trees_all_close(actual, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("weights", "expected"), [(None, 6.5), (WEIGHTS, 10.0)], ids=["none", "weights"]
)
def test_temporal_difference_by_hand(weights, expected):
    """Eq. 4: ℓ_TD = ½ Σ_t w_t (G_t − v(s_t))² = ½ (2² + 3²), or ½ (½ 2² + 2 · 3²)."""
    actual = losses.temporal_difference(VALUES, RETURNS, weights)
    chex.assert_trees_all_close(actual, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("loss", "arguments"),
    [
        (losses.policy_gradient, (LOGITS, ACTIONS, ADVANTAGES, WEIGHTS)),
        (losses.entropy, (LOGITS,)),
        (losses.entropy, (LOGITS, WEIGHTS)),
        (losses.temporal_difference, (VALUES, RETURNS)),
        (losses.temporal_difference, (VALUES, RETURNS, WEIGHTS)),
    ],
)
def test_loss_is_a_sum_over_all_leading_axes(loss, arguments):
    """Eq. 4 sums over t: three copies in [T, B] = [2, 3] cost three times as much."""
    batch = [np.stack([x] * 3, axis=1) for x in arguments]
    chex.assert_trees_all_close(loss(*batch), 3 * loss(*arguments), rtol=1e-5)


@pytest.mark.parametrize(("advantage", "sign"), [(1.5, 1.0), (-1.5, -1.0)])
def test_descending_the_policy_gradient_makes_good_actions_likelier(advantage, sign):
    """Eq. 4, sign of ℓ_PG: the probability of a_t moves with the sign of G_t − v_t."""
    logits = jnp.asarray(LOGITS[:1])
    gradient = jax.grad(losses.policy_gradient)(
        logits, ACTIONS[:1], np.array([advantage])
    )
    before, after = jax.nn.softmax(logits), jax.nn.softmax(logits - 0.1 * gradient)
    assert sign * (after - before)[0, 0] > 0.01


def test_descending_the_entropy_loss_raises_the_entropy():
    """Eq. 4, sign of ℓ_EN: with a positive weight the policy spreads out."""
    logits = jnp.asarray(LOGITS)
    descended = logits - 0.1 * jax.grad(losses.entropy)(logits)
    before, after = jax.nn.softmax(logits), jax.nn.softmax(descended)
    entropy = jax.scipy.special.entr
    assert jnp.all(entropy(after).sum(axis=-1) > entropy(before).sum(axis=-1) + 0.001)


def test_descending_the_temporal_difference_moves_values_to_their_returns():
    """Eq. 4, ℓ_TD: ∂ℓ_TD/∂v_t = v_t − G_t, so a unit step lands on the return."""
    gradient = jax.grad(losses.temporal_difference)(jnp.asarray(VALUES), RETURNS)
    chex.assert_trees_all_close(VALUES - gradient, RETURNS, rtol=1e-6)


@pytest.mark.parametrize("is_weighed", [False, True], ids=["none", "weights"])
@pytest.mark.parametrize(
    ("loss", "arguments"),
    [
        pytest.param(
            lambda logits, *others: losses.policy_gradient(logits, ACTIONS, *others),
            (LOGITS, ADVANTAGES),
            id="policy_gradient",
        ),
        pytest.param(losses.entropy, (LOGITS,), id="entropy"),
        pytest.param(
            losses.temporal_difference, (VALUES, RETURNS), id="temporal_difference"
        ),
    ],
)
def test_gradients_are_those_of_finite_differences(loss, arguments, is_weighed):
    """Each term in all of its inputs, against central differences in float64.

    Nothing is stopped: a discount or λ that made a return is learned through it.
    """
    arguments = (*arguments, WEIGHTS) if is_weighed else arguments
    with jax.enable_x64(True):
        test_util.check_grads(loss, arguments, order=1, modes=["rev"], rtol=1e-6)


def test_illegal_actions_change_no_entropy():
    """With logits of −10⁹ their probability is 0: 0 log 0 = 0, and no gradient."""
    masked = np.concatenate([LOGITS, np.full((2, 2), -1e9)], axis=-1)
    gradient = jax.grad(losses.entropy)
    legal = losses.entropy(LOGITS), gradient(LOGITS)
    actual = losses.entropy(masked), gradient(masked)
    chex.assert_trees_all_close(actual[0], legal[0], rtol=1e-6)
    chex.assert_trees_all_close(actual[1][:, :3], legal[1], rtol=1e-5, atol=1e-7)
    chex.assert_trees_all_equal(actual[1][:, 3:], np.zeros((2, 2)))


def test_second_derivatives_of_the_entropy_are_finite_with_illegal_actions():
    """A meta-gradient takes them."""
    masked = np.concatenate([LOGITS, np.full((2, 2), -1e9)], axis=-1)
    hessian = jax.hessian(losses.entropy)(masked)
    assert jnp.all(jnp.isfinite(hessian))
    assert jnp.any(hessian != 0)


@pytest.mark.parametrize(
    ("loss", "arguments"),
    [
        pytest.param(
            losses.policy_gradient, (LOGITS, ACTIONS, ADVANTAGES[:1]), id="advantage"
        ),
        pytest.param(
            losses.policy_gradient, (LOGITS, ACTIONS[:1], ADVANTAGES), id="action"
        ),
        pytest.param(
            losses.policy_gradient, (LOGITS[:1], ACTIONS, ADVANTAGES), id="logits"
        ),
        pytest.param(
            losses.policy_gradient,
            (LOGITS, ACTIONS, ADVANTAGES, WEIGHTS[:1]),
            id="weight of the policy gradient",
        ),
        pytest.param(losses.entropy, (LOGITS, WEIGHTS[:1]), id="weight of the entropy"),
        pytest.param(losses.temporal_difference, (VALUES, RETURNS[:1]), id="return"),
        pytest.param(
            losses.temporal_difference,
            (VALUES, RETURNS, WEIGHTS[:1]),
            id="weight of the temporal difference",
        ),
    ],
)
def test_different_shapes_are_refused(loss, arguments):
    """Docstrings of `losses`: leading shapes that would broadcast raise."""
    with pytest.raises(AssertionError):
        loss(*arguments)
