"""Leaky V-trace: against the paper's sum, against rlax's form, and its gradients."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import test_util

from bmg_sweeps.core import v_trace

STEPS, STREAMS, HEADS = 7, 2, 3
SHAPE = (STEPS, STREAMS, HEADS)
MAX_RHO, MAX_C = 1.3, 0.9
RANDOM = np.random.default_rng(0)
VALUES = RANDOM.normal(size=(STEPS + 1, STREAMS, HEADS))
REWARDS = RANDOM.normal(size=SHAPE)
RATIOS = np.exp(RANDOM.normal(size=SHAPE))
GAMMA = np.array([0.9, 0.8, 0.99])
DISCOUNTS = np.where(RANDOM.uniform(size=SHAPE) < 0.1, 0.0, GAMMA)
RELEVANT = RANDOM.uniform(size=SHAPE) < 0.8
LEAK = np.array([0.3, 0.9, 0.5])
TRACE_DECAY = np.array([0.95, 0.7, 1.0])


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


compiled = jax.jit(v_trace.leaky_v_trace)


def leaky_v_trace(**inputs):
    """Of the inputs above, but for some."""
    given = {
        "values": VALUES,
        "rewards": REWARDS,
        "discounts": DISCOUNTS,
        "ratios": RATIOS,
        "relevant": np.ones(SHAPE),
        "leak": LEAK,
        "trace_decay": TRACE_DECAY,
        "max_rho": MAX_RHO,
        "max_c": MAX_C,
    }
    return compiled(**given | inputs)


def papers_sum(relevant):
    """Appendix C: G_t = v(s_t) + Σ_i (Π_j γ_j c_j) δ_{t+i}, in loops over everything.

    The sum ends before the first irrelevant state: its value is bootstrapped from.
    """
    clipped_rho, clipped_c = np.minimum(RATIOS, MAX_RHO), np.minimum(RATIOS, MAX_C)
    targets, advantages = np.zeros(SHAPE), np.zeros(SHAPE)
    for b, h in np.ndindex(STREAMS, HEADS):
        v, r, discount = VALUES[:, b, h], REWARDS[:, b, h], DISCOUNTS[:, b, h]
        ratio = RATIOS[:, b, h]
        rho = LEAK[h] * clipped_rho[:, b, h] + (1 - LEAK[h]) * ratio
        c = LEAK[h] * clipped_c[:, b, h] + (1 - LEAK[h]) * ratio
        for t in range(STEPS):
            target, product = v[t], 1.0
            for i in range(t, STEPS):
                if not relevant[i, b, h]:
                    break
                target += product * rho[i] * (r[i] + discount[i] * v[i + 1] - v[i])
                product *= discount[i] * TRACE_DECAY[h] * c[i]
            targets[t, b, h] = target
        for t in range(STEPS):
            later = targets[t + 1, b, h] if t + 1 < STEPS else v[STEPS]
            advantages[t, b, h] = rho[t] * (r[t] + discount[t] * later - v[t])
    return v_trace.VTrace(targets, advantages)


@pytest.mark.parametrize(
    "relevant", [np.ones(SHAPE), RELEVANT], ids=["all", "some irrelevant"]
)
def test_targets_and_advantages_are_those_of_the_papers_sum(relevant):
    """Appendix C, "STACX"; the discount of every step in place of γ."""
    actual = leaky_v_trace(relevant=relevant)
    chex.assert_trees_all_close(actual, papers_sum(relevant), rtol=1e-12)


@pytest.mark.parametrize("leak", [0.0, 0.5, 1.0])
def test_corrections_are_those_of_rlax(leak):
    """`rlax.leaky_vtrace` returns errors G_t − v_t, and truncates c at 1."""
    rho = (1 - leak) * RATIOS + leak * np.minimum(RATIOS, MAX_RHO)
    c = ((1 - leak) * RATIOS + leak * np.minimum(RATIOS, 1.0)) * TRACE_DECAY
    errors = rho * (REWARDS + DISCOUNTS * VALUES[1:] - VALUES[:-1])
    expected, error = np.zeros(SHAPE), np.zeros((STREAMS, HEADS))
    for t in reversed(range(STEPS)):
        expected[t] = error = errors[t] + DISCOUNTS[t] * c[t] * error
    targets, _ = leaky_v_trace(leak=leak, max_c=1.0)
    np.testing.assert_allclose(targets - VALUES[:-1], expected, rtol=1e-10)


def test_on_policy_the_target_is_the_longest_return():
    """Appendix C: with η = 1, c̄ ≥ 1 and λ = 1, G_t = Σ_i γⁱ r_{t+i} + γⁿ v(s_T)."""
    targets, advantages = leaky_v_trace(
        ratios=np.ones(SHAPE), trace_decay=1.0, max_rho=1.0, max_c=1.0
    )
    expected = [VALUES[-1]]
    for t in reversed(range(STEPS)):
        expected.insert(0, REWARDS[t] + DISCOUNTS[t] * expected[0])
    np.testing.assert_allclose(targets, expected[:-1], rtol=1e-12)
    np.testing.assert_allclose(advantages, targets - VALUES[:-1], rtol=1e-10)


def test_two_steps_by_hand():
    """η = (2, ½), α = ½, λ = ½, ρ̄ = c̄ = 1, γ = ½, so ρ = (3/2, ½), c = (¾, ¼).

    δ = (3/2 (1 + ½ · 2 − 1), ½ (2 + ½ · 4 − 2)) = (3/2, 1). G₁ = 2 + 1 = 3, and
    G₀ = 1 + 3/2 + ½ · ¾ · 1 = 23/8. Advantages: 3/2 (1 + ½ · 3 − 1) = 9/4, ½ · 2 = 1.
    """
    actual = compiled(
        values=np.array([1.0, 2.0, 4.0]),
        rewards=np.array([1.0, 2.0]),
        discounts=np.array([0.5, 0.5]),
        ratios=np.array([2.0, 0.5]),
        relevant=np.array([True, True]),
        leak=0.5,
        trace_decay=0.5,
        max_rho=1.0,
        max_c=1.0,
    )
    expected = v_trace.VTrace(np.array([23 / 8, 3.0]), np.array([9 / 4, 1.0]))
    chex.assert_trees_all_close(actual, expected, rtol=1e-12)


def test_nothing_behind_an_irrelevant_state_matters_to_earlier_ones():
    """Its target is its value, from which the state before it bootstraps."""
    relevant = np.ones(SHAPE)
    relevant[3] = 0
    later = np.arange(STEPS)[:, np.newaxis, np.newaxis] >= 3
    actual = leaky_v_trace(relevant=relevant)
    changed = leaky_v_trace(
        relevant=relevant,
        rewards=REWARDS + later,
        ratios=RATIOS * (1 + later),
        values=VALUES + 5 * (np.arange(STEPS + 1) > 3)[:, np.newaxis, np.newaxis],
    )
    np.testing.assert_array_equal(actual.targets[3], VALUES[3])
    chex.assert_trees_all_equal(
        *(jax.tree.map(lambda x: x[:3], trace) for trace in (actual, changed))
    )


META_PARAMETERS = {"trace_decay": TRACE_DECAY, "leak": LEAK, "gamma": GAMMA}


@pytest.mark.parametrize("name", META_PARAMETERS)
@pytest.mark.parametrize("part", ["targets", "advantages"])
def test_meta_gradients_are_those_of_finite_differences(name, part):
    """The way to γ, λ and α is open, in every head."""
    continues = np.asarray(DISCOUNTS > 0, float)

    def weighed(value):
        if name == "gamma":
            inputs = {"discounts": continues * value[np.newaxis, np.newaxis]}
        else:
            inputs = {name: value}
        trace = leaky_v_trace(relevant=RELEVANT, **inputs)
        return jnp.sum(jnp.sin(getattr(trace, part)))

    value = META_PARAMETERS[name]
    assert np.abs(jax.grad(weighed)(value)).min() > 1e-3
    test_util.check_grads(weighed, (value,), order=1, modes=["fwd", "rev"], rtol=1e-5)


def test_the_gradient_passes_through_values_ratios_and_rewards():
    """Nothing is stopped here; callers stop what Eq. 4 holds constant."""

    def total(values, rewards, ratios):
        trace = leaky_v_trace(values=values, rewards=rewards, ratios=ratios)
        return jnp.sum(jnp.sin(trace.targets) + jnp.cos(trace.advantages))

    arguments = (VALUES, REWARDS, RATIOS)
    for gradient in jax.grad(total, (0, 1, 2))(*arguments):
        assert np.abs(gradient).max() > 1e-3
    test_util.check_grads(total, arguments, order=1, modes=["rev"], rtol=1e-5)


def test_long_rollouts_lose_no_more_than_rounding():
    """In single precision, against the loop in double precision, over 20 steps."""
    random = np.random.default_rng(1)
    factors, terms = random.uniform(size=(20, 50)), random.normal(size=(20, 50))
    inputs = [jnp.asarray(x, jnp.float32) for x in (factors, terms)]
    actual = compiled(
        values=jnp.zeros((21, 50), jnp.float32),
        rewards=inputs[1],
        discounts=inputs[0],
        ratios=jnp.ones((20, 50), jnp.float32),
        relevant=jnp.ones((20, 50), bool),
        leak=1.0,
        trace_decay=1.0,
        max_rho=1.0,
        max_c=1.0,
    ).targets
    assert actual.dtype == jnp.float32
    expected, total = np.zeros((20, 50)), 0.0
    for t in reversed(range(20)):
        total = np.float64(inputs[1][t]) + np.float64(inputs[0][t]) * total
        expected[t] = total
    error = np.abs(actual - expected).max() / np.abs(expected).max()
    assert error < 1e-6


def test_arrays_that_do_not_fit_are_refused():
    for name in ("values", "rewards", "discounts", "ratios", "relevant"):
        with pytest.raises(AssertionError):
            leaky_v_trace(**{name: np.ones((STEPS, 1, HEADS))})
