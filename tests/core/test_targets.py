"""Target trajectories by hand on f(x) = ½ Σ h x², where a step is a product."""

import chex
import jax.numpy as jnp
import pytest

from bmg_sweeps.core import targets

CURVATURE = jnp.array([1.0, 10.0])  # h, so that ∇f(x) = h x.
OUTCOME = jnp.array([1.0, -2.0])  # x⁽ᴷ⁾.


def _update(x):
    """Multiplies x by 1 − ηh = (0.95, 0.5), with η = 0.05."""
    return x - 0.05 * CURVATURE * x


def _final_step(x):
    """Multiplies x by 1 − αh = (0.98, 0.8), with α = 0.02."""
    return x - 0.02 * CURVATURE * x


@pytest.mark.parametrize(
    ("num_steps", "target", "latest"),
    [
        # (0.98, 0.8) x⁽ᴷ⁾
        (1, [0.98, -1.6], [1.0, -2.0]),
        # x⁽ᴷ⁺¹⁾ = (0.95, 0.5) x⁽ᴷ⁾, then (0.98, 0.8) x⁽ᴷ⁺¹⁾
        (2, [0.931, -0.8], [0.95, -1.0]),
        # x⁽ᴷ⁺⁴⁾ = (0.95⁴, 0.5⁴) x⁽ᴷ⁾ = (0.81450625, 0.0625) x⁽ᴷ⁾, then as above
        (5, [0.798216125, -0.1], [0.81450625, -0.125]),
    ],
)
def test_objective_step_ends_with_a_step_on_the_objective(num_steps, target, latest):
    """Section 3, "Target Bootstrap": x̃ = x⁽ᴷ⁺ᴸ⁻¹⁾ − α∇f(x⁽ᴷ⁺ᴸ⁻¹⁾)."""
    actual = targets.objective_step(OUTCOME, _update, _final_step, num_steps)
    expected = (jnp.array(target), jnp.array(latest))
    chex.assert_trees_all_close(actual, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("num_steps", "target", "latest"),
    [
        # x⁽ᴷ⁺¹⁾ and x⁽ᴷ⁾
        (1, [0.95, -1.0], [1.0, -2.0]),
        # x⁽ᴷ⁺²⁾ and x⁽ᴷ⁺¹⁾
        (2, [0.9025, -0.5], [0.95, -1.0]),
        # x⁽ᴷ⁺⁵⁾ = (0.95⁵, 0.5⁵) x⁽ᴷ⁾ and x⁽ᴷ⁺⁴⁾
        (5, [0.7737809375, -0.0625], [0.81450625, -0.125]),
    ],
)
def test_update_rule_takes_every_step_with_the_rule(num_steps, target, latest):
    """Appendix B.2, "Ablation: target bootstrap": x̃ = x⁽ᴷ⁺ᴸ⁾."""
    actual = targets.update_rule(OUTCOME, _update, num_steps)
    expected = (jnp.array(target), jnp.array(latest))
    chex.assert_trees_all_close(actual, expected, rtol=1e-6)


def test_final_step_may_return_another_structure_than_the_learner():
    """Docstring of `objective_step`: x̃ may be a part of it, with more beside."""
    learner = {"x": OUTCOME, "updates": jnp.array(0)}
    (target, step_size), latest = targets.objective_step(
        learner,
        update=lambda s: {"x": _update(s["x"]), "updates": s["updates"] + 1},
        final_step=lambda s: (_final_step(s["x"]), 0.02),
        num_steps=5,
    )
    chex.assert_trees_all_close(target, jnp.array([0.798216125, -0.1]), rtol=1e-6)
    chex.assert_trees_all_equal(latest["updates"], jnp.array(4))
    assert step_size == 0.02


@pytest.mark.parametrize(
    "bootstrap",
    [
        lambda num_steps: targets.objective_step(
            OUTCOME, _update, _final_step, num_steps
        ),
        lambda num_steps: targets.update_rule(OUTCOME, _update, num_steps),
    ],
    ids=["objective_step", "update_rule"],
)
@pytest.mark.parametrize("num_steps", [0, -1])
def test_target_of_no_steps_is_refused(bootstrap, num_steps):
    """Section 3: L is at least 1, because the L-th step is the one on f."""
    with pytest.raises(ValueError, match=rf"num_steps .* got {num_steps}$"):
        bootstrap(num_steps)
