"""Eq. 1 to 3 on a quadratic bowl, where every gradient has a closed form.

The learner descends f(x) = ½ Σ h x² by gradient descent, and the meta-parameter is the
logarithm of its step size, w = log η.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import pytest

from bmg_sweeps.core import matching, meta_gradient, targets

CURVATURE = jnp.array([1.0, 10.0])  # h, the Hessian diagonal of f.
STEP_SIZE, INNER_STEPS = 0.05, 3  # η = eʷ and K.
LOG_STEP_SIZE = jnp.log(STEP_SIZE)  # w.
START = jnp.array([1.0, -2.0])  # x⁽⁰⁾.

# One step multiplies x by 1 − ηh, hence x⁽ᵏ⁾ = (1 − ηh)ᵏ x⁽⁰⁾, and because dη/dw = η,
# ∂x⁽ᵏ⁾/∂w = −k ηh (1 − ηh)ᵏ⁻¹ x⁽⁰⁾.
SHRINK = 1 - STEP_SIZE * CURVATURE
ITERATES = [SHRINK**k * START for k in range(INNER_STEPS + 1)]
SLOPES = [
    -k * STEP_SIZE * CURVATURE * SHRINK ** (k - 1) * START
    for k in range(INNER_STEPS + 1)
]


def _objective(x):
    return 0.5 * jnp.sum(CURVATURE * x**2)


def _gradient_step(log_step_size, x):
    return x - jnp.exp(log_step_size) * jax.grad(_objective)(x)


def _inner_loop(log_step_size, x):
    for _ in range(INNER_STEPS):
        x = _gradient_step(log_step_size, x)
    return x


def _squares_that_stop_nothing(target, params):
    """Unlike the functions of `matching`, lets gradients into the target."""
    return jnp.sum((target - params) ** 2)


def _target_that_depends_on(log_step_size, params):
    """Gives ∇_w something to find in x̃ and in x⁽ᴷ⁺ᴸ⁻¹⁾."""
    latest = _gradient_step(log_step_size, params)
    return _gradient_step(log_step_size, latest), latest


def _standard(w, x, inner_loop=_inner_loop, objective=_objective):
    return jax.grad(meta_gradient.standard_meta_loss, has_aux=True)(
        w, x, inner_loop=inner_loop, objective=objective
    )


def _bootstrapped(
    w,
    x,
    target_bootstrap=_target_that_depends_on,
    matching_function=matching.squared_euclidean,
    inner_loop=_inner_loop,
):
    return jax.grad(meta_gradient.bootstrapped_meta_loss, has_aux=True)(
        w,
        x,
        inner_loop=inner_loop,
        target_bootstrap=target_bootstrap,
        matching_function=matching_function,
    )


def test_standard_meta_gradient_matches_the_closed_form():
    """Eq. 1: ∇_w f(x⁽ᴷ⁾(w)) = ⟨∇f(x⁽ᴷ⁾), ∂x⁽ᴷ⁾/∂w⟩, with ∇f(x) = h x."""
    actual, outcome = _standard(LOG_STEP_SIZE, START)
    expected = jnp.sum(CURVATURE * ITERATES[-1] * SLOPES[-1])
    chex.assert_trees_all_close(actual, expected, rtol=1e-5)
    chex.assert_trees_all_close(outcome, ITERATES[-1], rtol=1e-6)


def test_standard_meta_gradient_of_an_average_over_the_iterates():
    """Section 2, below Eq. 1: f averaged over x⁽¹⁾ … x⁽ᴷ⁾ has the averaged gradient."""

    def trajectory(w, x):
        iterates = []
        for _ in range(INNER_STEPS):
            x = _gradient_step(w, x)
            iterates.append(x)
        return jnp.stack(iterates)

    actual, outcome = _standard(
        LOG_STEP_SIZE,
        START,
        inner_loop=trajectory,
        objective=lambda xs: jnp.mean(jax.vmap(_objective)(xs)),
    )
    expected = sum(
        jnp.sum(CURVATURE * iterate * slope)
        for iterate, slope in zip(ITERATES[1:], SLOPES[1:], strict=True)
    )
    chex.assert_trees_all_close(actual, expected / INNER_STEPS, rtol=1e-5)
    chex.assert_trees_all_close(outcome, jnp.stack(ITERATES[1:]), rtol=1e-6)


@pytest.mark.parametrize("target_steps", [1, 2, 5])
def test_bootstrapped_meta_gradient_matches_the_closed_form(target_steps):
    """Eq. 2: ∇_w ‖x̃ − x⁽ᴷ⁾(w)‖² = −2 ⟨x̃ − x⁽ᴷ⁾, ∂x⁽ᴷ⁾/∂w⟩ at a constant x̃.

    The target x̃ = x⁽ᴷ⁺ᴸ⁻¹⁾ − α∇f(x⁽ᴷ⁺ᴸ⁻¹⁾) is (1 − αh)(1 − ηh)ᴸ⁻¹ x⁽ᴷ⁾.
    """
    alpha = 0.02

    def target_bootstrap(w, x):
        return targets.objective_step(
            x,
            update=functools.partial(_gradient_step, w),
            final_step=functools.partial(_gradient_step, jnp.log(alpha)),
            num_steps=target_steps,
        )

    latest = SHRINK ** (target_steps - 1) * ITERATES[-1]
    target = (1 - alpha * CURVATURE) * latest
    actual, actual_latest = _bootstrapped(LOG_STEP_SIZE, START, target_bootstrap)
    expected = -2 * jnp.sum((target - ITERATES[-1]) * SLOPES[-1])
    chex.assert_trees_all_close(actual, expected, rtol=1e-5)
    chex.assert_trees_all_close(actual_latest, latest, rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 0.1, 0.01])
def test_bootstrapping_one_gradient_step_recovers_the_standard_meta_gradient(alpha):
    """Eq. 3: ξ(x) = x − α∇f(x) and μ = ‖·‖² give 2α ∇_w f, and ∇_w f at α = ½."""
    standard, outcome = _standard(LOG_STEP_SIZE, START)
    bootstrapped, latest = _bootstrapped(
        LOG_STEP_SIZE, START, lambda w, x: (x - alpha * jax.grad(_objective)(x), x)
    )
    chex.assert_trees_all_close(bootstrapped, 2 * alpha * standard, rtol=1e-5)
    chex.assert_trees_all_close(latest, outcome, rtol=0)


def test_standard_meta_gradient_is_bootstrapped_for_any_pytree():
    """Eq. 3, with w and x of several arrays and shapes."""
    w = {"log_step_size": jnp.log(0.01), "shift": jnp.array([0.5, -0.3, 0.2])}
    x = {"matrix": jnp.arange(6.0).reshape(2, 3) / 6, "vector": jnp.array([1.0, -1.0])}

    def objective(x):
        return jnp.sum(jnp.cos(x["matrix"])) * jnp.sum(x["vector"] ** 2)

    def step(step_size, x):
        return jax.tree.map(
            lambda leaf, grad: leaf - step_size * grad, x, jax.grad(objective)(x)
        )

    def inner_loop(w, x):
        x = step(jnp.exp(w["log_step_size"]), x)
        x = x | {"matrix": x["matrix"] + w["shift"][jnp.newaxis]}
        return step(jnp.exp(w["log_step_size"]), x)

    standard, _ = _standard(w, x, inner_loop, objective)
    bootstrapped, _ = _bootstrapped(
        w, x, lambda w, x: (step(0.5, x), x), inner_loop=inner_loop
    )
    chex.assert_trees_all_close(bootstrapped, standard, rtol=1e-5)


@pytest.mark.parametrize(
    "bootstrap_given",
    [
        lambda w: _target_that_depends_on,
        lambda w: lambda _, x: _target_that_depends_on(w, x),
    ],
    ids=["w as an argument", "w in a closure"],
)
def test_target_that_depends_on_w_counts_as_a_constant(bootstrap_given):
    """Section 3: no gradient flows through the target, however it was computed."""
    constant = _target_that_depends_on(LOG_STEP_SIZE, ITERATES[-1])

    def meta_loss(w, bootstrap_given):
        return meta_gradient.bootstrapped_meta_loss(
            w,
            START,
            inner_loop=_inner_loop,
            target_bootstrap=bootstrap_given(w),
            matching_function=_squares_that_stop_nothing,
        )

    actual, latest = jax.grad(meta_loss, has_aux=True)(LOG_STEP_SIZE, bootstrap_given)
    expected, _ = jax.grad(meta_loss, has_aux=True)(
        LOG_STEP_SIZE, lambda w: lambda *_: constant
    )
    chex.assert_trees_all_close(actual, expected, rtol=1e-5)
    chex.assert_trees_all_close(latest, constant[1], rtol=1e-6)


def test_learner_to_go_on_from_carries_no_gradient():
    """Section 3: x⁽ᴷ⁺ᴸ⁻¹⁾ is a constant, although it is a function of w."""

    def latest(w):
        return meta_gradient.bootstrapped_meta_loss(
            w,
            START,
            inner_loop=_inner_loop,
            target_bootstrap=_target_that_depends_on,
            matching_function=matching.squared_euclidean,
        )[1]

    chex.assert_trees_all_equal(
        jax.jacobian(latest)(LOG_STEP_SIZE), jnp.zeros_like(START)
    )


def test_target_need_not_be_differentiable():
    """Section 3: the target is not only stopped, its derivative is never computed."""

    @jax.custom_jvp
    def double(x):
        return 2 * x

    @double.defjvp
    def _(primals, tangents):
        raise AssertionError("the target was differentiated")

    actual, _ = _bootstrapped(
        LOG_STEP_SIZE, START, lambda w, x: (double(x) * jnp.exp(double(w)), x)
    )
    expected, _ = _bootstrapped(
        LOG_STEP_SIZE, START, lambda w, x: (2 * x * jnp.exp(2 * w), x)
    )
    chex.assert_trees_all_close(actual, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "matching_function",
    [matching.squared_euclidean, matching.policy_kl, matching.value],
)
def test_meta_gradient_vanishes_where_the_target_is_the_learner(matching_function):
    """Eq. 2 at x̃ = x⁽ᴷ⁾, the minimum of μ: 0, where a plain norm would give NaN."""
    actual, _ = _bootstrapped(
        LOG_STEP_SIZE, START, lambda w, x: (x, x), matching_function
    )
    # Absolute, because the expected number is 0; softmax leaves a last digit.
    chex.assert_trees_all_close(actual, 0.0, atol=1e-7)


@pytest.mark.parametrize("meta_gradient_of", [_standard, _bootstrapped])
def test_batch_of_starts_under_vmap_equals_separate_runs(meta_gradient_of):
    """Style guide, rule 10: `vmap` over x changes nothing but the rounding."""
    starts = jnp.array([[1.0, -2.0], [0.5, 3.0], [-1.0, 0.1]])
    actual = jax.vmap(meta_gradient_of, in_axes=(None, 0))(LOG_STEP_SIZE, starts)
    separate = [meta_gradient_of(LOG_STEP_SIZE, start) for start in starts]
    expected = jax.tree.map(lambda *leaves: jnp.stack(leaves), *separate)
    chex.assert_trees_all_close(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("meta_gradient_of", [_standard, _bootstrapped])
def test_jit_changes_nothing(meta_gradient_of):
    """Style guide, rule 10: the same numbers with `jit` and without."""
    actual = jax.jit(meta_gradient_of)(LOG_STEP_SIZE, START)
    expected = meta_gradient_of(LOG_STEP_SIZE, START)
    chex.assert_trees_all_close(actual, expected, rtol=1e-5)
