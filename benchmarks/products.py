"""The matrix products that the actor-critic of two-colors cannot do without.

Networks are linear here, since nothing but their products is counted. A small part of
each product, `_TRACE` of it, flows on, so that none is optimized away. A rollout is

    16 forward passes of the policy, one state at a time
    a forward and a backward pass of policy and critic, 16 states at a time

of which the agent saves the forward pass of the policy, as acting has made it; so that
numbers of other agents compare, it is counted. MG has, for each of its K rollouts, a
forward pass of both networks with the parameters after it and a backward pass of the
policy; BMG once a forward pass of both and a backward pass of the policy for its
target's last step, a forward pass of the policy with the target's and with the agent's
parameters, and a backward one. From there ∂x⁽ᴷ⁾/∂ε needs one product with the Hessian
of the policy's loss for each rollout but the first,

    R(z_l) = R(h_{l-1}) W_l + h_{l-1} V_l       V: the direction
    R(δ_{l-1}) = R(δ_l) W_lᵀ + δ_l V_lᵀ
    (H V)_l = R(h_{l-1})ᵀ δ_l + h_{l-1}ᵀ R(δ_l)

six products a layer, with the activations h and the δ of the update kept (Pearlmutter,
1994, "Fast Exact Multiplication by the Hessian"); and for each rollout one with the
gradient of the entropy, a backward pass.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from benchmarks import timing

LENGTH = 16  # N, environment steps of a rollout.
_TRACE = 1e-9
_ROLLOUTS = 1000  # About so many are timed together.

Weights = list[jax.Array]


def steps_per_second(meta_update: Callable, rollouts: int, repeats: int) -> float:
    """Times meta-updates.

    Args:
        meta_update: (policy, critic) ↦ the same.
        rollouts: in each.
        repeats: the fastest counts.

    Returns:
        Environment steps a second.
    """
    number = _ROLLOUTS // rollouts
    networks = _weights(0, 4), _weights(1, 1)
    run = jax.jit(
        lambda pair: jax.lax.scan(
            lambda pair, _: (meta_update(*pair), None), pair, length=number
        )[0]
    )
    seconds = timing.fastest(run, networks, repeats)
    return number * rollouts * LENGTH / seconds


def fixed(policy: Weights, critic: Weights) -> tuple[Weights, Weights]:
    """One rollout of an agent whose ε is fixed."""
    policy, critic, _ = _rollout(policy, critic)
    return policy, critic


def standard(
    inner_steps: int, policy: Weights, critic: Weights
) -> tuple[Weights, Weights]:
    """K rollouts, and the meta-gradient of MG."""

    def forwards(pair, _):
        policy, critic, kept = _rollout(*pair)
        states = kept[1][0]
        objective = _forward(policy, states), _forward(critic, states)[-1]
        return (policy, critic), (kept, policy, objective)

    pair, kept = jax.lax.scan(forwards, (policy, critic), length=inner_steps)

    def backwards(direction, of_rollout):
        kept, after, (activations, values) = of_rollout
        _, gradient = _backward(after, activations, values)
        direction = _minus(direction, gradient)
        return _through(direction, kept), None

    direction = jax.tree.map(jnp.zeros_like, policy)
    first, rest = _split(kept)
    direction, _ = jax.lax.scan(backwards, direction, rest, reverse=True)
    of_first, after, (activations, values) = first
    _, gradient = _backward(after, activations, values)
    direction = _minus(_minus(direction, gradient), _of_entropy(of_first))
    return _minus(pair[0], direction), pair[1]


def bootstrapped(
    inner_steps: int, target_steps: int, policy: Weights, critic: Weights
) -> tuple[Weights, Weights]:
    """K + L − 1 rollouts, and the meta-gradient of BMG."""

    def forwards(pair, _):
        policy, critic, kept = _rollout(*pair)
        return (policy, critic), kept

    pair, kept = jax.lax.scan(forwards, (policy, critic), length=inner_steps)
    matched = pair[0]
    pair, others = jax.lax.scan(forwards, pair, length=target_steps - 1)
    states = (others if target_steps > 1 else kept)[1][0][-1]
    values = _forward(pair[1], states)[-1]
    _, gradient = _backward(pair[0], _forward(pair[0], states), values)
    logits = _forward(_minus(pair[0], gradient), states)[-1]
    activations = _forward(matched, states)
    _, direction = _backward(matched, activations, activations[-1] - logits)
    first, rest = _split(kept)
    direction, _ = jax.lax.scan(
        lambda direction, kept: (_through(direction, kept), None),
        direction,
        rest,
        reverse=True,
    )
    direction = _minus(direction, _of_entropy(first))
    return _minus(pair[0], direction), pair[1]


def _rollout(policy, critic):
    """Acts and learns; returns what the derivative of the policy's update reads."""
    _, states = jax.lax.scan(
        lambda x, _: (x + _TRACE * jnp.sum(_forward(policy, x)[-1]), x),
        jnp.ones(30) + _TRACE * policy[0][0, 0],
        length=LENGTH,
    )
    activations = _forward(policy, states)
    deltas, gradient = _backward(policy, activations, activations[-1])
    values = _forward(critic, states)
    _, of_values = _backward(critic, values, values[-1])
    kept = policy, activations, deltas
    return _minus(policy, gradient), _minus(critic, of_values), kept


def _forward(weights, x):
    activations = [x]
    for w in weights:
        activations.append(activations[-1] @ w)
    return activations


def _backward(weights, activations, cotangent):
    """Returns the δ of all layers, and the gradient."""
    deltas = [jnp.ones((LENGTH, weights[-1].shape[1])) + _TRACE * cotangent]
    for w in weights[:0:-1]:
        deltas.append(deltas[-1] @ w.T)
    deltas = deltas[::-1]
    pairs = zip(activations[:-1], deltas, strict=True)
    return deltas, [h.T @ delta for h, delta in pairs]


def _through(direction, kept):
    """Takes a direction through an update: less a product with the Hessian."""
    weights, activations, deltas = kept
    states, *hidden, _ = activations
    along = [states @ direction[0]]
    for w, v, h in zip(weights[1:], direction[1:], hidden, strict=True):
        along.append(along[-1] @ w + h @ v)
    backwards = [_TRACE * along[-1]]
    pairs = zip(weights[:0:-1], direction[:0:-1], deltas[:0:-1], strict=True)
    for w, v, delta in pairs:
        backwards.append(backwards[-1] @ w.T + delta @ v.T)
    backwards = backwards[::-1]
    product = [states.T @ backwards[0]]
    for i, h in enumerate(hidden):
        product.append(along[i].T @ deltas[i + 1] + h.T @ backwards[i + 1])
    return _minus(_minus(direction, product), _of_entropy(kept))


def _split(kept):
    """Splits the first rollout off: its derivative is that in ε alone."""
    return tuple(
        jax.tree.map(lambda x, part=part: x[part], kept) for part in (0, slice(1, None))
    )


def _of_entropy(kept):
    """The gradient of the entropy, along which an update depends on ε."""
    weights, activations, _ = kept
    return _backward(weights, activations, activations[-1])[1]


def _minus(weights, gradient):
    return jax.tree.map(lambda w, g: w - _TRACE * g, weights, gradient)


def _weights(seed, num_outputs):
    shapes = ((30, 256), (256, 256), (256, num_outputs))
    keys = jax.random.split(jax.random.key(seed), len(shapes))
    return [
        jax.random.normal(key, shape) / shape[0] ** 0.5
        for key, shape in zip(keys, shapes, strict=True)
    ]


def of(kind: str, inner_steps: int, target_steps: int) -> Callable:
    """Returns the meta-update of an update kind of `two_colors_actor_critic`."""
    kinds = {
        "fixed_entropy_weight": fixed,
        "meta_gradient": functools.partial(standard, inner_steps),
        "bootstrapped_meta_gradient": functools.partial(
            bootstrapped, inner_steps, target_steps
        ),
    }
    return kinds[kind]
