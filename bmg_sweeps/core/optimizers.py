"""Optimizers that can be differentiated through.

A meta-gradient passes through every operation of an inner-loop optimizer, the square
root of its second moment among them, whose derivative at 0 is infinite. A unit that
saw no gradient (ReLU, an unvisited state) then turns the whole meta-gradient NaN.
Inner loops therefore take their optimizers from here. Meta-optimizers are not
differentiated and come straight from optax.
"""

import optax


def adam(
    learning_rate: float,
    *,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 1e-8,
) -> optax.GradientTransformation:
    """Builds Adam with a finite derivative at zero gradients, −α m̂ / (√(v̂ + ε̄) + ε).

    Source: Kingma and Ba (2015); ε̄ as in optax, where it is 0 unless asked for.

    Args:
        learning_rate: α.
        b1: decay of the first moment.
        b2: decay of the second moment.
        eps: ε, outside the root.
        eps_root: ε̄, inside the root, above 0.

    Returns:
        An optax gradient transformation.

    Raises:
        ValueError: eps_root is not positive.

    Gradient: flows through both moments; finite for every gradient.
    """
    if not eps_root > 0:
        raise ValueError(f"eps_root must be positive, got {eps_root}")
    return optax.adam(learning_rate, b1=b1, b2=b2, eps=eps, eps_root=eps_root)


def rmsprop(
    learning_rate: float, *, decay: float, eps: float
) -> optax.GradientTransformation:
    """Builds RMSProp with ε inside the root, −α g / √(ν + ε).

    Source: Flennerhag et al. (2022), Appendix C.1, which does not place ε; inside, the
    denominator is at least √ε and its derivative finite.

    Args:
        learning_rate: α.
        decay: decay of the second moment ν.
        eps: ε, inside the root, above 0.

    Returns:
        An optax gradient transformation.

    Raises:
        ValueError: eps is not positive.

    Gradient: flows through ν; finite for every gradient.
    """
    if not eps > 0:
        raise ValueError(f"eps must be positive, got {eps}")
    return optax.rmsprop(learning_rate, decay=decay, eps=eps, eps_in_sqrt=True)


def sgd(learning_rate: float) -> optax.GradientTransformation:
    """Builds stochastic gradient descent, −α g.

    Args:
        learning_rate: α.

    Returns:
        An optax gradient transformation.

    Gradient: flows through g and α.
    """
    return optax.sgd(learning_rate)
