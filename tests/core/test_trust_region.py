"""The divergence that decides which states are relevant, on made-up policies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import test_util

from bmg_sweeps.core import trust_region

ILLEGAL = -1e9
THRESHOLD = 2.0  # The paper's, Appendix C.1.
RANDOM = np.random.default_rng(0)


compiled = jax.jit(trust_region.implied_divergence)


def implied_divergence(policy, behavior, max_rho=1.0):
    """Of probabilities, whose logits are moved by a constant."""
    logits, behavior_logits = np.log(policy) + 3, np.log(behavior) - 2
    return compiled(jnp.asarray(logits), jnp.asarray(behavior_logits), max_rho)


@pytest.mark.parametrize("max_rho", [0.5, 1.0, 2.5])
def test_it_is_the_divergence_from_the_implied_policy(max_rho):
    """KL(π ‖ π̃), π̃ ∝ min(ρ̄ µ, π), written down for [T, B] = [3, 2] states."""
    policy, behavior = RANDOM.dirichlet(np.ones(4), size=(2, 3, 2))
    implied = np.minimum(max_rho * behavior, policy)
    implied /= implied.sum(axis=-1, keepdims=True)
    expected = np.sum(policy * np.log(policy / implied), axis=-1)
    with jax.enable_x64(True):
        actual = implied_divergence(policy, behavior, max_rho)
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("rare", [0.5, 0.1, 0.01, 0.002, 1e-6])
def test_it_passes_the_threshold_where_likely_actions_were_rare(rare):
    """π = (½, ½), µ = (1 − ε, ε): π̃ ∝ (½, ε), KL = log(½ + ε) − ½ log 2ε.

    That is 0 at ε = ½ and passes 2 at ε = 0.0023.
    """
    actual = implied_divergence([0.5, 0.5], [1 - rare, rare])
    expected = np.log(0.5 + rare) - 0.5 * np.log(2 * rare)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    assert (actual > THRESHOLD) == (rare < 0.0023)


def test_it_is_not_the_divergence_from_the_behavior_policy():
    """π = (ε, 1 − ε), µ = (½, ½): π̃ ∝ (ε, ½) is nearly π, but KL(π ‖ µ) is log 2."""
    actual = implied_divergence([1e-6, 1 - 1e-6], [0.5, 0.5])
    assert 0 <= actual < 1e-4


@pytest.mark.parametrize("max_rho", [1.0, 3.0])
def test_a_policy_does_not_diverge_from_itself(max_rho):
    logits = jnp.asarray(RANDOM.normal(scale=5, size=(8, 6)), jnp.float32)
    actual = compiled(logits, logits + 4, max_rho)
    np.testing.assert_allclose(actual, np.zeros(8), atol=1e-5)


def test_a_wider_bound_truncates_less():
    """π/µ is at most 2 here: at ρ̄ = 2 nothing is truncated."""
    policy, behavior = [0.5, 0.5], [0.75, 0.25]
    divergences = [implied_divergence(policy, behavior, r) for r in (1.0, 1.5, 2.0)]
    assert divergences[0] > divergences[1] + 0.01 > divergences[2] + 0.02
    np.testing.assert_allclose(divergences[2], 0, atol=1e-6)


def test_illegal_actions_change_nothing():
    """Nor are there NaNs, in single precision, also in the gradients."""
    logits, behavior = jnp.asarray(RANDOM.normal(scale=3, size=(2, 5, 4)), jnp.float32)
    illegal = jnp.full((5, 2), ILLEGAL)
    arguments = [jnp.concatenate([x, illegal], axis=-1) for x in (logits, behavior)]
    np.testing.assert_allclose(
        compiled(*arguments, 1.0),
        compiled(logits, behavior, 1.0),
        rtol=1e-5,
        atol=1e-6,
    )

    def total(logits, behavior_logits, max_rho):
        divergences = trust_region.implied_divergence(logits, behavior_logits, max_rho)
        return jnp.sum(divergences)

    for gradient in jax.jit(jax.grad(total, (0, 1, 2)))(*arguments, 1.0):
        assert jnp.all(jnp.isfinite(gradient))
        assert jnp.any(gradient != 0)


def test_a_single_legal_action_has_no_divergence():
    logits = jnp.array([2.0, ILLEGAL, ILLEGAL])
    actual = trust_region.implied_divergence(logits, logits - 1, 1.0)
    assert actual == 0


def test_the_gradient_is_that_of_finite_differences():
    """In both policies and the bound, away from where a ratio is the bound."""
    logits, behavior = RANDOM.normal(size=(2, 3, 4))
    with jax.enable_x64(True):
        test_util.check_grads(
            compiled,
            (logits, behavior, np.float64(1.1)),
            order=1,
            modes=["rev"],
            rtol=1e-5,
        )


def test_policies_of_other_shapes_are_refused():
    with pytest.raises(AssertionError):
        trust_region.implied_divergence(jnp.zeros((2, 3)), jnp.zeros((1, 3)), 1.0)
