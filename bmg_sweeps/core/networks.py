"""Networks, as haiku transforms without state or randomness."""

from collections.abc import Callable, Sequence

import haiku as hk
import jax


def mlp(
    hidden_sizes: Sequence[int],
    output_size: int,
    activation: Callable[[jax.Array], jax.Array] = jax.nn.relu,
) -> hk.Transformed:
    """Builds a feed-forward network with a linear last layer.

    Args:
        hidden_sizes: units of each hidden layer.
        output_size: units of the last layer.
        activation: applied after every hidden layer.

    Returns:
        A pair of pure functions: `init(key, inputs)` and `apply(params, inputs)`, with
        inputs [..., D] and outputs [..., output_size]. Weights start as haiku's
        default, a normal of deviation 1/√fan_in cut at two deviations; biases at 0.
    """
    return hk.without_apply_rng(
        hk.transform(
            lambda inputs: hk.nets.MLP(
                [*hidden_sizes, output_size], activation=activation
            )(inputs)
        )
    )
