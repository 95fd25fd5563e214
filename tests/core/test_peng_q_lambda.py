"""Peng's Q(λ): the backward view against λ-returns, and its special cases."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.core import peng_q_lambda

GAMMA = 0.9
STEPS = 5
RANDOM = np.random.default_rng(0)
# A linear q over random features: ∇q(s, a) is the features of s, in a's column.
FEATURES = RANDOM.normal(size=(STEPS + 1, 4))
WEIGHTS = RANDOM.normal(size=(4, 3))
REWARDS = RANDOM.normal(size=STEPS)
ACTIONS = np.array([0, 2, 1, 1, 0])


@pytest.fixture(autouse=True)
def double():
    """The two views agree to rounding."""
    with jax.enable_x64():
        yield


def q(state):
    return FEATURES[state] @ WEIGHTS


def gradient(t):
    """∇q(s_t, a_t)."""
    return np.outer(FEATURES[t], np.eye(3)[ACTIONS[t]])


def backward(decay):
    """What all steps ask for together, by traces; weights stand still."""
    trace = {"w": jnp.zeros_like(WEIGHTS)}
    total = np.zeros_like(WEIGHTS)
    for t in range(STEPS):
        error = peng_q_lambda.errors(
            jnp.asarray(q(t)),
            jnp.asarray(ACTIONS[t]),
            jnp.asarray(REWARDS[t]),
            jnp.asarray(GAMMA),
            jnp.asarray(q(t + 1)),
        )
        descended, trace = peng_q_lambda.descent(
            trace, {"w": jnp.asarray(gradient(t))}, error, GAMMA * decay
        )
        total -= descended["w"]
    return total


def lambda_returns(decay):
    """G_t = r_{t+1} + γ ((1 − λ) V(s_{t+1}) + λ G_{t+1}), from G_T = V(s_T)."""
    returns = [q(STEPS).max()]
    for t in reversed(range(STEPS)):
        mixed = (1 - decay) * q(t + 1).max() + decay * returns[0]
        returns.insert(0, REWARDS[t] + GAMMA * mixed)
    return returns


@pytest.mark.parametrize("decay", [0.0, 0.3, 0.7, 1.0])
def test_the_backward_view_is_the_lambda_return(decay):
    """Peng and Williams (1994), Section 3: Σ_t (G_t − q(s_t, a_t)) ∇q(s_t, a_t)."""
    returns = lambda_returns(decay)
    expected = sum((returns[t] - q(t)[ACTIONS[t]]) * gradient(t) for t in range(STEPS))
    np.testing.assert_allclose(backward(decay), expected, rtol=1e-12)


def test_without_a_trace_it_is_q_learning():
    """λ = 0: Σ_t (r + γ max_b q(s′, b) − q(s, a)) ∇q(s, a)."""
    expected = sum(
        (REWARDS[t] + GAMMA * q(t + 1).max() - q(t)[ACTIONS[t]]) * gradient(t)
        for t in range(STEPS)
    )
    np.testing.assert_allclose(backward(0.0), expected, rtol=1e-12)


def test_some_actions_were_not_greedy():
    """Otherwise the tests above would not tell δ from δ′, nor Peng's from Watkins'."""
    is_greedy = [q(t).argmax() == ACTIONS[t] for t in range(STEPS)]
    assert 0 < sum(is_greedy) < STEPS


def test_the_errors_by_hand():
    """R + γ V(s′) = 1 + 0.5 · 4 = 3, q(s, a) = 1 and V(s) = 2."""
    error = peng_q_lambda.errors(
        jnp.array([1.0, 2.0]),
        jnp.array(0),
        jnp.array(1.0),
        jnp.array(0.5),
        jnp.array([4.0, 3.0]),
    )
    assert error == (2.0, 1.0)


def test_a_pytree_of_gradients_is_credited_leaf_by_leaf():
    """−(δ γλ e + δ′ ∇q) = −(1 · ½ · 2 + 3 · 4) = −13, e ← ½ · 2 + 4 = 5."""
    error = peng_q_lambda.Errors(action=jnp.array(3.0), state=jnp.array(1.0))
    trees = [{"a": jnp.array([x]), "b": (jnp.array(10 * x),)} for x in (2.0, 4.0)]
    descended, trace = peng_q_lambda.descent(*trees, error, jnp.array(0.5))
    expected = {"a": jnp.array([-13.0]), "b": (jnp.array(-130.0),)}
    chex.assert_trees_all_close(descended, expected)
    expected = {"a": jnp.array([5.0]), "b": (jnp.array(50.0),)}
    chex.assert_trees_all_close(trace, expected)


def test_values_of_other_shapes_are_refused():
    with pytest.raises(AssertionError):
        peng_q_lambda.errors(
            jnp.zeros(2), jnp.array(0), jnp.array(0.0), jnp.array(0.9), jnp.zeros(3)
        )
