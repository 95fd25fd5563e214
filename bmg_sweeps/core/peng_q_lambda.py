"""Peng's Q(λ) in its backward view: one gradient a step, credited to earlier steps.

A trace sums the gradients of the action values of the past, each decayed by γλ a step.
It is never cut, whether an action was greedy or not: that is what tells Peng's from
Watkins' Q(λ).

    G_t = r_{t+1} + γ ((1 − λ) V(s_{t+1}) + λ G_{t+1}),  V(s) = max_a q(s, a)

With weights that stand still, all steps together add up to Σ_t (G_t − q(s_t, a_t))
∇q(s_t, a_t); see `tests/core/test_peng_q_lambda.py`.

Source: Peng and Williams (1994), "Incremental multi-step Q-learning".
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp


class Errors(NamedTuple):
    """Temporal-difference errors of a step, in units of return."""

    action: jax.Array  # δ′, of what was done: corrects q(s, a) itself.
    state: jax.Array  # δ, of where it was done: corrects what led there.


def errors(
    q_tm1: jax.Array,
    a_tm1: jax.Array,
    r_t: jax.Array,
    discount_t: jax.Array,
    q_t: jax.Array,
) -> Errors:
    """Returns what a step has shown of its action's and its state's value.

        δ′ = r + γ V(s′) − q(s, a),  δ = r + γ V(s′) − V(s)

    Source: Peng and Williams (1994), Fig. 1.

    Args:
        q_tm1: [A] action values of s.
        a_tm1: [] int, a.
        r_t: [] reward for reaching s′.
        discount_t: [] γ.
        q_t: [A] action values of s′.

    Returns:
        Both errors, [] each; they are equal where the action was greedy.

    Raises:
        AssertionError: shapes are not these.

    Gradient: flows through all inputs; callers use the errors as constants.
    """
    chex.assert_rank([q_tm1, q_t, a_tm1, r_t, discount_t], [1, 1, 0, 0, 0])
    chex.assert_equal_shape([q_tm1, q_t])
    target = r_t + discount_t * jnp.max(q_t)
    return Errors(action=target - q_tm1[a_tm1], state=target - jnp.max(q_tm1))


def descent(
    trace: chex.ArrayTree, gradient: chex.ArrayTree, error: Errors, decay: jax.Array
) -> tuple[chex.ArrayTree, chex.ArrayTree]:
    """Credits a step's errors, in place of the gradient of a loss.

        e ← γλ e + ∇q(s, a),  −(δ e + (δ′ − δ) ∇q(s, a))

    which is −(δ γλ e + δ′ ∇q(s, a)) with the trace before. Written with the one after,
    no step needs both in memory.

    Source: Peng and Williams (1994), Fig. 1, with ∇q in place of a table's entry.

    Args:
        trace: e, of the steps before; zeros at the start.
        gradient: ∇q(s, a), shaped like the trace.
        error: of this step.
        decay: [] γλ.

    Returns:
        What an optimizer is to descend, and the new trace.

    Gradient: flows through all inputs; callers take none.
    """
    trace = jax.tree.map(lambda e, g: decay * e + g, trace, gradient)
    beside = error.action - error.state
    descended = jax.tree.map(
        lambda e, g: -(error.state * e + beside * g), trace, gradient
    )
    return descended, trace
