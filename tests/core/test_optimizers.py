"""Inner-loop optimizers: updates by hand, and derivatives at a zero gradient."""

import functools
import math

import chex
import jax
import jax.numpy as jnp
import optax
import pytest
from jax import test_util

from bmg_sweeps.core import optimizers

ADAM = functools.partial(optimizers.adam, b1=0.5, b2=0.75, eps=1e-2, eps_root=1e-4)
RMSPROP = functools.partial(optimizers.rmsprop, decay=0.75, eps=1e-4)
# As optax builds them: the derivative of their denominator's root is infinite at 0.
PLAIN_ADAM = optax.adam
PLAIN_RMSPROP = functools.partial(optax.rmsprop, eps_in_sqrt=False)
GRADIENTS = {"w": jnp.array([[3.0, 0.0], [-4.0, 0.0]]), "b": jnp.array([12.0])}
NORM = 13.0


def _outcome(make_optimizer, learning_rate, scale):
    """Takes two updates on ½ scale x₁², in which x₂ has no part. Returns Σ x⁽²⁾."""
    optimizer = make_optimizer(learning_rate)
    params = jnp.array([1.0, 1.0])
    state = optimizer.init(params)
    for _ in range(2):
        gradients = scale * jnp.array([1.0, 0.0]) * params
        updates, state = optimizer.update(gradients, state, params)
        params = optax.apply_updates(params, updates)
    return jnp.sum(params)


def _meta_gradient(make_optimizer, meta_parameter):
    return jax.grad(
        functools.partial(_outcome, make_optimizer), argnums=meta_parameter
    )(0.1, 2.0)


@pytest.mark.parametrize("meta_parameter", [0, 1], ids=["learning rate", "scale"])
@pytest.mark.parametrize(
    "make_optimizer",
    [optimizers.adam, ADAM, RMSPROP, optimizers.sgd],
    ids=["adam by default", "adam", "rmsprop", "sgd"],
)
def test_meta_gradient_is_finite_where_a_gradient_is_zero(
    make_optimizer, meta_parameter
):
    """Style guide, trap 8: a unit without gradient leaves the meta-gradient finite."""
    assert jnp.isfinite(_meta_gradient(make_optimizer, meta_parameter))


@pytest.mark.parametrize("meta_parameter", [0, 1], ids=["learning rate", "scale"])
@pytest.mark.parametrize(
    "make_optimizer", [PLAIN_ADAM, PLAIN_RMSPROP], ids=["adam", "rmsprop"]
)
def test_meta_gradient_of_plain_optax_is_not_a_number(make_optimizer, meta_parameter):
    """Style guide, trap 8: what this project's optimizers are there to avoid.

    Shows also that the test above can fail.
    """
    assert jnp.isnan(_meta_gradient(make_optimizer, meta_parameter))


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        # −α g.
        (optimizers.sgd(0.1), (-0.3, 0.1)),
        # m = 3/2 and ν = 9/4, without their bias m̂ = 3 and ν̂ = 9; then
        # m = ½ · 3/2 + ½ · (−1) = ¼ and ν = ¾ · 9/4 + ¼ · 1 = 31/16, divided by
        # 1 − ½² = ¾ and 1 − ¾² = 7/16 to m̂ = ⅓ and ν̂ = 31/7.
        (
            ADAM(0.1),
            (
                -0.1 * 3 / (math.sqrt(9 + 1e-4) + 1e-2),
                -0.1 / 3 / (math.sqrt(31 / 7 + 1e-4) + 1e-2),
            ),
        ),
        # ν = ¼ · 9 = 9/4, then ν = ¾ · 9/4 + ¼ · 1 = 31/16.
        (
            RMSPROP(0.1),
            (-0.3 / math.sqrt(9 / 4 + 1e-4), 0.1 / math.sqrt(31 / 16 + 1e-4)),
        ),
    ],
    ids=["sgd", "adam", "rmsprop"],
)
def test_two_updates_by_hand(optimizer, expected):
    """Equations of the docstrings, for the gradients g = 3 and then −1."""
    state = optimizer.init(jnp.array(0.0))
    first, state = optimizer.update(jnp.array(3.0), state)
    second, _ = optimizer.update(jnp.array(-1.0), state)
    chex.assert_trees_all_close((first, second), expected, rtol=1e-5)


def test_learning_rate_of_sgd_is_differentiable():
    """−α g: two steps give x⁽²⁾ = (1 − α s)² and ∂x⁽²⁾/∂α = −2 s (1 − α s) = −3.2."""
    actual = _meta_gradient(optimizers.sgd, 0)
    chex.assert_trees_all_close(actual, -2 * 2.0 * (1 - 0.1 * 2.0), rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, -1e-8, math.nan])
@pytest.mark.parametrize(
    ("make_optimizer", "name"),
    [
        (lambda value: optimizers.adam(0.1, eps_root=value), "eps_root"),
        (lambda value: optimizers.rmsprop(0.1, decay=0.9, eps=value), "eps"),
    ],
    ids=["adam", "rmsprop"],
)
def test_nothing_inside_the_root_is_refused(make_optimizer, name, value):
    """Docstrings of `optimizers`: what keeps the derivative finite is positive."""
    with pytest.raises(ValueError, match=rf"^{name} must be positive, got {value}$"):
        make_optimizer(value)


def test_values_of_rmsprop_may_be_arrays_of_a_compiled_program():
    """Fields of a configuration are; the check of ε is for plain numbers."""

    @jax.jit
    def second_update(learning_rate, decay, eps):
        optimizer = optimizers.rmsprop(learning_rate, decay=decay, eps=eps)
        state = optimizer.init(jnp.array(0.0))
        _, state = optimizer.update(jnp.array(3.0), state)
        return optimizer.update(jnp.array(-1.0), state)[0]

    actual = second_update(0.1, 0.75, 1e-4)
    chex.assert_trees_all_close(actual, 0.1 / math.sqrt(31 / 16 + 1e-4), rtol=1e-5)
    gradients = jax.grad(second_update, (0, 1, 2))(0.1, 0.75, 1e-4)
    assert all(jnp.isfinite(g) and g != 0 for g in gradients)


def clipped(max_norm, gradients):
    clip = optimizers.clip_by_global_norm(max_norm)
    return clip.update(gradients, clip.init(gradients))[0]


@pytest.mark.parametrize("max_norm", [0.3, 12.9, NORM, 13.1, 100.0])
def test_gradients_are_clipped_as_optax_does(max_norm):
    """‖g‖ = √(3² + 4² + 12²) = 13; the norm is of all arrays together."""
    actual = jax.jit(clipped)(max_norm, GRADIENTS)
    plain = optax.clip_by_global_norm(max_norm)
    expected, _ = plain.update(GRADIENTS, plain.init(GRADIENTS))
    chex.assert_trees_all_close(actual, expected, rtol=1e-6)
    chex.assert_trees_all_close(
        actual,
        jax.tree.map(lambda g: g * min(1, max_norm / NORM), GRADIENTS),
        rtol=1e-6,
    )


def test_clipping_leaves_no_gradient_as_it_is():
    zeros = jax.tree.map(jnp.zeros_like, GRADIENTS)
    chex.assert_trees_all_equal(clipped(0.3, zeros), zeros)


@pytest.mark.parametrize("max_norm", [2.0, 20.0])
def test_derivatives_of_clipping_are_those_of_finite_differences(max_norm):
    """In the gradients and the largest norm, where it clips and where not."""
    with jax.enable_x64(True):
        gradients = jax.tree.map(lambda g: g.astype(float), GRADIENTS)
        arguments = (jnp.asarray(max_norm), gradients)
        test_util.check_grads(
            jax.jit(clipped), arguments, order=1, modes=["rev"], rtol=1e-5
        )


def _sum_of_clipped(make_clip, scale):
    clip = make_clip(0.3)
    return jnp.sum(clip.update(scale * jnp.zeros(2), clip.init(None))[0] + scale)


def test_derivative_of_clipping_no_gradient_is_finite():
    """Where optax has NaN: its root is differentiated at 0."""
    actual = jax.grad(_sum_of_clipped, 1)(optimizers.clip_by_global_norm, 2.0)
    assert actual == 2
    assert jnp.isnan(jax.grad(_sum_of_clipped, 1)(optax.clip_by_global_norm, 2.0))


def test_meta_gradient_through_clipping_and_rmsprop_is_finite_at_zero():
    """An inner loop's optimizer as a whole, of which no parameter has a gradient."""

    def outcome(scale):
        optimizer = optax.chain(
            optimizers.clip_by_global_norm(0.3), RMSPROP(learning_rate=0.1)
        )
        params = jnp.zeros(2)
        state = optimizer.init(params)
        for _ in range(2):
            updates, state = optimizer.update(scale * params, state)
            params = optax.apply_updates(params, updates)
        return jnp.sum(params)

    assert jax.grad(outcome)(2.0) == 0


@pytest.mark.parametrize("eps_root", [0.0, 1e-3])
def test_folded_adam_is_adam(eps_root):
    """Three steps on other gradients: updates and state are those of optax."""
    values = {"b1": 0.8, "b2": 0.99, "eps": 1e-2, "eps_root": eps_root}
    folded, plain = optimizers.folded_adam(0.3, **values), optax.adam(0.3, **values)
    params = jax.tree.map(jnp.ones_like, GRADIENTS)
    states = folded.init(params), plain.init(params)
    for scale in (1.0, -0.1, 2.0):
        gradients = jax.tree.map(lambda g, s=scale: s * g + 0.01, GRADIENTS)
        found, ours = folded.update(gradients, states[0], params)
        expected, theirs = plain.update(gradients, states[1], params)
        chex.assert_trees_all_close(found, expected, rtol=1e-5)
        chex.assert_trees_all_close(ours, theirs, rtol=1e-6)
        chex.assert_trees_all_equal_structs(ours, theirs)
        states = ours, theirs
