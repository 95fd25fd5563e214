"""Derivatives of a network whose outputs are known already.

An agent that has acted has made the forward pass of every state that it learns from,
and its parameters have not moved since. The learning pass then needs the backward pass
alone. `forward` keeps what every layer has put out, and `recalled` is the same function
of the parameters, whose values are looked up and whose derivatives, of every order, are
as ever. Both are for parameters of `networks.mlp` with its ReLUs.
"""

from collections.abc import Mapping, Sequence

import chex
import jax
import jax.numpy as jnp

Params = Mapping[str, Mapping[str, jax.Array]]
"""Of `networks.mlp`: by layer its weights "w", [D, O], and biases "b", [O]."""


def forward(
    params: Params, inputs: jax.Array, leak: chex.Numeric | None = None
) -> tuple[jax.Array, ...]:
    """Returns what every layer puts out, before the ReLU that follows it.

        zₗ = hₗ₋₁ Wₗ + bₗ,  hₗ = max(zₗ, 0) + ℓ min(zₗ, 0)

    Args:
        params: W and b of all layers.
        inputs: h₀, [..., D].
        leak: ℓ, []; None is 0, as in `networks.mlp`.

    Returns:
        z₁, z₂ and so on; the last is `networks.mlp(...).apply(params, inputs)`.

    Gradient: flows through both.
    """
    outputs: list[jax.Array] = []
    for layer in _layers(params):
        inputs = leaky_relu(outputs[-1], leak) if outputs else inputs
        outputs.append(_linear(layer["w"], layer["b"], inputs))
    return tuple(outputs)


def recalled(
    params: Params, inputs: jax.Array, outputs: Sequence[jax.Array]
) -> jax.Array:
    """Returns the last of the outputs, as a function of the parameters.

    Args:
        params: those that `outputs` were computed with; nothing checks that.
        inputs: [..., D], those that `outputs` were computed of.
        outputs: of `forward`.

    Returns:
        `outputs[-1]`.

    Gradient: flows through params and inputs, as that of `forward` does; `outputs` are
        constants.
    """
    found: list[jax.Array] = []
    for layer, known in zip(_layers(params), outputs, strict=True):
        inputs = leaky_relu(found[-1]) if found else inputs
        found.append(_recalled_linear(layer["w"], layer["b"], inputs, known))
    return found[-1]


def gradient(
    params: Params,
    inputs: jax.Array,
    outputs: Sequence[jax.Array],
    cotangent: jax.Array,
    leak: chex.Numeric | None = None,
) -> dict[str, dict[str, jax.Array]]:
    """Returns the gradient of c · z_L in the parameters, for one input.

        ∇Wₗ = hₗ₋₁ δₗᵀ,  ∇bₗ = δₗ,  δ_L = c,  δₗ₋₁ = (Wₗ δₗ) h′(zₗ₋₁)

    Differentiation has a product of matrices for each hₗ₋₁ δₗᵀ, which compilers write
    to memory. Written as it stands here they compute it where it is used, element by
    element.

    Args:
        params: W and b of all layers.
        inputs: h₀, [D].
        outputs: of `forward`.
        cotangent: c, [O].
        leak: ℓ, as in `forward`.

    Returns:
        Shaped like `params`.
    """
    layers = _layers(params)
    features = [inputs, *(leaky_relu(z, leak) for z in outputs[:-1])]
    deltas = [cotangent]
    for layer, z in zip(layers[:0:-1], outputs[-2::-1], strict=True):
        deltas.append(
            (layer["w"] @ deltas[-1])
            * jnp.where(z > 0, 1.0, 0.0 if leak is None else leak)
        )
    return {
        _NAME.format(i): {"w": h[:, jnp.newaxis] * delta[jnp.newaxis], "b": delta}
        for i, (h, delta) in enumerate(zip(features, deltas[::-1], strict=True))
    }


def leaky_relu(z: jax.Array, leak: chex.Numeric | None = None) -> jax.Array:
    """Returns the outputs of hidden units, h(z) = max(z, 0) + ℓ min(z, 0).

    Args:
        z: of any shape.
        leak: ℓ, as in `forward`.

    Returns:
        h(z), shaped like z.

    Gradient: flows through both; h′(0) = ℓ, where that of `jax.nn.leaky_relu` is 1.
    """
    return jax.nn.relu(z) if leak is None else jnp.where(z > 0, z, leak * z)


_NAME = "mlp/~/linear_{}"


def _layers(params: Params) -> list[Mapping[str, jax.Array]]:
    """Returns the layers in their order; as text, "linear_10" is before "linear_2"."""
    return [params[_NAME.format(i)] for i in range(len(params))]


def _linear(weights: jax.Array, biases: jax.Array, inputs: jax.Array) -> jax.Array:
    product = inputs @ weights
    return product + jnp.broadcast_to(biases, product.shape)


@jax.custom_jvp
def _recalled_linear(weights, biases, inputs, outputs):
    del weights, biases, inputs
    return outputs


@_recalled_linear.defjvp
def _derivative(primals, tangents):
    weights, biases, inputs, _ = primals
    *along, _ = tangents
    _, tangent = jax.jvp(_linear, (weights, biases, inputs), tuple(along))
    return _recalled_linear(*primals), tangent
