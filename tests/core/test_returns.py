"""N-step returns of a rollout of three rewards, by hand; every number is exact."""

import chex
import jax
import jax.numpy as jnp
import pytest

from bmg_sweeps.core import returns

REWARDS = jnp.array([1.0, 2.0, 3.0])  # r₁, r₂, r₃.
DISCOUNTS = jnp.array([0.5, 0.25, 0.125])  # γ₁, γ₂, γ₃.
VALUES = jnp.array([10.0, 20.0, 40.0])  # v(s₁), v(s₂), v(s₃).


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        # r_t + γ_t v(s_t): 1 + 0.5 · 10, 2 + 0.25 · 20, 3 + 0.125 · 40.
        (1, [6.0, 7.0, 8.0]),
        # One more reward: 1 + 0.5 · 7, 2 + 0.25 · 8; the last return cannot grow.
        (2, [4.5, 4.0, 8.0]),
        # From the end of the rollout: 1 + 0.5 · (2 + 0.25 · 8).
        (3, [3.0, 4.0, 8.0]),
        # No further than its end.
        (4, [3.0, 4.0, 8.0]),
        (100, [3.0, 4.0, 8.0]),
    ],
)
def test_return_by_hand(n, expected):
    """Section 5, below Eq. 4: G⁽ⁿ⁾ = r₁ + γ₁ r₂ + … + γ₁ ⋯ γₙ v(sₙ)."""
    actual = returns.n_step_returns(REWARDS, DISCOUNTS, VALUES, n)
    chex.assert_trees_all_equal(actual, jnp.array(expected))


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        # The second reward ends an episode: its return is the reward alone.
        (1, [6.0, 2.0, 8.0]),
        # 1 + 0.5 · 2, and 2 + 0 · 8.
        (2, [2.0, 2.0, 8.0]),
        (3, [2.0, 2.0, 8.0]),
    ],
)
def test_zero_discount_ends_the_episode(n, expected):
    """Docstring of `n_step_returns`: nothing beyond a discount of 0 counts."""
    discounts = DISCOUNTS.at[1].set(0.0)
    actual = returns.n_step_returns(REWARDS, discounts, VALUES, n)
    chex.assert_trees_all_equal(actual, jnp.array(expected))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_batch_axes_are_independent(n):
    """Docstring of `n_step_returns`: arrays are [T, ...], each column a rollout."""
    # Columns [T, 2, 2]: as they are, reversed, doubled, and reversed and doubled.
    rollouts = [
        jnp.stack([x, x[::-1], 2 * x, 2 * x[::-1]], axis=1).reshape(3, 2, 2)
        for x in (REWARDS, DISCOUNTS, VALUES)
    ]
    actual = returns.n_step_returns(*rollouts, n)
    chex.assert_shape(actual, (3, 2, 2))
    for i in range(2):
        for j in range(2):
            column = [x[:, i, j] for x in rollouts]
            expected = returns.n_step_returns(*column, n)
            chex.assert_trees_all_equal(actual[:, i, j], expected)


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        # G₀ = r₁ + γ₁ (r₂ + γ₂ v(s₂)) = 1 + 0.5 · (2 + 0.25 · 20).
        (0, [1.0, 0.5, 0.0]),  # ∂G₀/∂r = (1, γ₁, 0).
        (1, [7.0, 10.0, 0.0]),  # ∂G₀/∂γ = (r₂ + γ₂ v(s₂), γ₁ v(s₂), 0).
        (2, [0.0, 0.125, 0.0]),  # ∂G₀/∂v = (0, γ₁ γ₂, 0).
    ],
    ids=["rewards", "discounts", "values"],
)
def test_gradient_flows_through_all_three_arrays(argument, expected):
    """A meta-learned γ is reached through the return, here G₀⁽²⁾."""
    gradient = jax.grad(
        lambda *arrays: returns.n_step_returns(*arrays, n=2)[0], argnums=argument
    )(REWARDS, DISCOUNTS, VALUES)
    chex.assert_trees_all_equal(gradient, jnp.array(expected))


@pytest.mark.parametrize("n", [0, -1])
def test_return_of_no_rewards_is_refused(n):
    """Docstring of `n_step_returns`: n is at least 1."""
    with pytest.raises(ValueError, match=rf"^n must be at least 1, got {n}$"):
        returns.n_step_returns(REWARDS, DISCOUNTS, VALUES, n)


@pytest.mark.parametrize("argument", [0, 1, 2])
def test_different_shapes_are_refused(argument):
    """Docstring of `n_step_returns`: even shapes that would broadcast raise."""
    arrays = [REWARDS, DISCOUNTS, VALUES]
    arrays[argument] = arrays[argument][:1]
    with pytest.raises(AssertionError):
        returns.n_step_returns(*arrays, n=1)
