"""The three terms of Eq. 4: values by hand, signs, and where gradients stop."""

import functools
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
WEIGHTS = np.array([0.5, 2.0])  # ρ.
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
    """Eq. 4: ℓ_PG = −Σ_t ρ_t log π(a_t | s_t) (G_t − v(s_t))."""
    actual = losses.policy_gradient(LOGITS, ACTIONS, ADVANTAGES, weights)
    chex.assert_trees_all_close(actual, expected, rtol=1e-5)


def test_entropy_by_hand():
    """Eq. 4: ℓ_EN = Σ_t Σ_a π log π, the negative entropy, in nats.

    State 1: ½ ln ½ + 2 · ¼ ln ¼ = −3/2 ln 2.
    State 2: 2 · ⅛ ln ⅛ + ¾ ln ¾ = −3/4 ln 2 + ¾ ln 3 − 3/2 ln 2.
    """
    actual = losses.entropy(LOGITS)
    chex.assert_trees_all_close(actual, -15 / 4 * LN2 + 3 / 4 * LN3, rtol=1e-5)


def test_temporal_difference_by_hand():
    """Eq. 4: ℓ_TD = ½ Σ_t (G_t − v(s_t))² = ½ (2² + 3²)."""
    actual = losses.temporal_difference(VALUES, RETURNS)
    chex.assert_trees_all_close(actual, 6.5, rtol=1e-6)


@pytest.mark.parametrize(
    ("loss", "arguments"),
    [
        (losses.policy_gradient, (LOGITS, ACTIONS, ADVANTAGES, WEIGHTS)),
        (losses.entropy, (LOGITS,)),
        (losses.temporal_difference, (VALUES, RETURNS)),
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


@pytest.mark.parametrize(
    ("loss", "arguments", "constant"),
    [
        pytest.param(
            losses.policy_gradient,
            (LOGITS, ACTIONS, ADVANTAGES, WEIGHTS),
            2,
            id="advantage",
        ),
        pytest.param(
            losses.policy_gradient,
            (LOGITS, ACTIONS, ADVANTAGES, WEIGHTS),
            3,
            id="importance weight",
        ),
        pytest.param(losses.temporal_difference, (VALUES, RETURNS), 1, id="return"),
    ],
)
def test_no_gradient_flows_to_what_a_loss_takes_as_given(loss, arguments, constant):
    """Eq. 4: advantages, weights and returns are constants of the inner loss."""
    gradient = jax.grad(loss, argnums=constant)(*arguments)
    chex.assert_trees_all_equal(gradient, np.zeros(2))


@pytest.mark.parametrize(
    ("loss", "argument"),
    [
        pytest.param(
            lambda logits: losses.policy_gradient(logits, ACTIONS, ADVANTAGES),
            LOGITS,
            id="policy_gradient",
        ),
        pytest.param(
            lambda logits: losses.policy_gradient(logits, ACTIONS, ADVANTAGES, WEIGHTS),
            LOGITS,
            id="policy_gradient off policy",
        ),
        pytest.param(losses.entropy, LOGITS, id="entropy"),
        pytest.param(
            functools.partial(losses.temporal_difference, return_t=RETURNS),
            VALUES,
            id="temporal_difference",
        ),
    ],
)
def test_gradient_is_that_of_finite_differences(loss, argument):
    """Eq. 4, the gradient of each term against central differences in float64."""
    with jax.enable_x64(True):
        test_util.check_grads(loss, (argument,), order=1, modes=["rev"], rtol=1e-6)


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
            id="importance weight",
        ),
        pytest.param(losses.temporal_difference, (VALUES, RETURNS[:1]), id="return"),
    ],
)
def test_different_shapes_are_refused(loss, arguments):
    """Docstrings of `losses`: leading shapes that would broadcast raise."""
    with pytest.raises(AssertionError):
        loss(*arguments)
