"""Optimizers of agents; all but `folded_adam` can be differentiated through.

A meta-gradient passes through every operation of an inner-loop optimizer, the square
root of its second moment among them, whose derivative at 0 is infinite. A unit that
saw no gradient (ReLU, an unvisited state) then turns the whole meta-gradient NaN.
Inner loops therefore take their optimizers from here. Meta-optimizers are not
differentiated and come straight from optax. `folded_adam` is a faster Adam for agents
whose updates no meta-gradient passes through.
"""

import chex
import jax
import jax.numpy as jnp
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


def folded_adam(
    learning_rate: chex.Numeric,
    *,
    b1: chex.Numeric,
    b2: chex.Numeric,
    eps: chex.Numeric,
    eps_root: chex.Numeric = 0.0,
) -> optax.GradientTransformation:
    """Builds `optax.adam` with its corrections folded into three numbers a step.

        −α m̂ / (√(v̂ + ε̄) + ε) = −α′ m / (√(v + ε̄′) + ε′),  c = 1 − β₂ᵗ,
        α′ = α √c / (1 − β₁ᵗ),  ε̄′ = c ε̄,  ε′ = √c ε

    One root and one division are left for each number of the parameters, where optax
    has one and three.

    Source: Kingma and Ba (2015), end of Section 2.

    Args:
        learning_rate: α, [].
        b1: β₁, decay of the first moment, [].
        b2: β₂, decay of the second moment, [].
        eps: ε, outside the root, [].
        eps_root: ε̄, inside the root, [].

    Returns:
        An optax gradient transformation, whose state is that of `optax.adam`.

    Gradient: not for differentiating through; `adam` is.
    """
    plain = optax.adam(learning_rate, b1=b1, b2=b2, eps=eps)

    def update(updates, state, params=None):
        del params
        moments, *others = state
        count = moments.count + 1
        mu = optax.tree.update_moment(updates, moments.mu, b1, 1)
        nu = optax.tree.update_moment_per_elem_norm(updates, moments.nu, b2, 2)
        correction = 1 - b2**count  # c.
        rate = learning_rate * jnp.sqrt(correction) / (1 - b1**count)
        outside, inside = eps * jnp.sqrt(correction), eps_root * correction
        updates = jax.tree.map(
            lambda m, v: -rate * m / (jnp.sqrt(v + inside) + outside), mu, nu
        )
        return updates, (moments._replace(count=count, mu=mu, nu=nu), *others)

    return optax.GradientTransformation(plain.init, update)


def rmsprop(
    learning_rate: chex.Numeric, *, decay: chex.Numeric, eps: chex.Numeric
) -> optax.GradientTransformation:
    """Builds RMSProp with ε inside the root, −α g / √(ν + ε).

    Source: Flennerhag et al. (2022), Table 2, which does not place ε; inside, the
    denominator is at least √ε and its derivative finite.

    Args:
        learning_rate: α, [].
        decay: decay of the second moment ν, [].
        eps: ε, inside the root, above 0, [].

    Returns:
        An optax gradient transformation.

    Raises:
        ValueError: eps is a number of Python, and not positive.

    Gradient: flows through ν; finite for every gradient.
    """
    # A field of a compiled program is an array; whoever makes it checks its value.
    if isinstance(eps, float | int) and not eps > 0:
        raise ValueError(f"eps must be positive, got {eps}")
    return optax.rmsprop(learning_rate, decay=decay, eps=eps, eps_in_sqrt=True)


def clip_by_global_norm(max_norm: chex.Numeric) -> optax.GradientTransformation:
    """Builds clipping with a finite derivative at zero gradients, g min(1, m / ‖g‖).

    Source: Pascanu et al. (2013), Algorithm 1.

    Args:
        max_norm: m, the largest norm of all arrays together, [].

    Returns:
        An optax gradient transformation without state.

    Gradient: flows through g, ‖g‖ and m; where nothing is clipped it is that of g.
    """

    def update(updates, state, params=None):
        del params
        square = optax.tree.norm(updates, squared=True)
        is_above = square > max_norm**2
        # The root's derivative at 0 is infinite, and 0 times that no number.
        norm = jnp.sqrt(jnp.where(is_above, square, 1))
        factor = jnp.where(is_above, max_norm / norm, 1)
        return jax.tree.map(lambda g: factor * g, updates), state

    return optax.GradientTransformation(optax.init_empty_state, update)


def sgd(learning_rate: float) -> optax.GradientTransformation:
    """Builds stochastic gradient descent, −α g.

    Args:
        learning_rate: α.

    Returns:
        An optax gradient transformation.

    Gradient: flows through g and α.
    """
    return optax.sgd(learning_rate)
