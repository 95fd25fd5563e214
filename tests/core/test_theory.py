"""The paper's performance guarantees (Section 4, Appendix A), numerically.

The learner, x ∈ R³, is moved K = 3 times by a rule with two meta-parameters, w ∈ R²,
none of it linear or quadratic. In the paper's symbols g = ∇f(x⁽ᴷ⁾), D = (∂x⁽ᴷ⁾/∂w)ᵀ,
Gᵀ = DᵀD, and ‖g‖²_G = ⟨g, Gᵀ g⟩. All updates are those of the project: its meta-losses
and its matching functions, at double precision.

A residual of order βⁿ is told by what halving β does to it: a division by 2ⁿ.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.core import matching, meta_gradient, targets

START = np.array([1.0, -0.5, 0.3])  # x⁽⁰⁾.
META_PARAMS = np.array([-1.0, 0.2])  # w.
OTHER_META_PARAMS = np.array([-2.0, -0.4])
INNER_STEPS = 3  # K.
SMALL = 1e-3  # A step size at which the next order is a correction of 1%.

# μ = ‖·‖² and a divergence for which x are the logits of a policy. Both are convex
# in x, with a minimum of 0 at x̃, as Theorem 1 asks.
EVERY_MATCHING_FUNCTION = pytest.mark.parametrize(
    "matching_function", [matching.squared_euclidean, matching.policy_kl]
)
EVERY_META_PARAMS = pytest.mark.parametrize(
    "w", [META_PARAMS, OTHER_META_PARAMS], ids=["w1", "w2"]
)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def _objective(x):
    return jax.nn.logsumexp(2 * x) + 0.1 * jnp.sum(x**4) + x[0] * x[1]


def _update(w, x):
    return x - jnp.exp(w[0]) * jnp.tanh(jax.grad(_objective)(x)) + w[1] * jnp.sin(x)


def _inner_loop(w, x):
    for _ in range(INNER_STEPS):
        x = _update(w, x)
    return x


class _Geometry(NamedTuple):
    x: jax.Array  # x⁽ᴷ⁾.
    g: jax.Array  # ∇f(x⁽ᴷ⁾).
    G: jax.Array  # DᵀD, [3, 3].


@functools.partial(jax.jit, static_argnames="inner_loop")
def _geometry(w, inner_loop=_inner_loop):
    x = inner_loop(w, START)
    jacobian = jax.jacobian(inner_loop)(w, START)  # Dᵀ, [3, dimension of w].
    return _Geometry(x, jax.grad(_objective)(x), jacobian @ jacobian.T)


@functools.partial(jax.jit, static_argnames="inner_loop")
def _mg(w, beta, inner_loop=_inner_loop):
    """Eq. 1: w′."""
    gradient, _ = jax.grad(meta_gradient.standard_meta_loss, has_aux=True)(
        w, START, inner_loop=inner_loop, objective=_objective
    )
    return w - beta * gradient


@functools.partial(jax.jit, static_argnames=("matching_function", "inner_loop"))
def _bmg(w, beta, target, matching_function, inner_loop=_inner_loop):
    """Eq. 2: w̃."""
    gradient, _ = jax.grad(meta_gradient.bootstrapped_meta_loss, has_aux=True)(
        w,
        START,
        inner_loop=inner_loop,
        target_bootstrap=lambda w, x: (target, x),
        matching_function=matching_function,
    )
    return w - beta * gradient


@functools.partial(jax.jit, static_argnames="inner_loop")
def _change(new_w, w, inner_loop=_inner_loop):
    """f(x⁽ᴷ⁾(new w)) − f(x⁽ᴷ⁾(w))."""
    return _objective(inner_loop(new_w, START)) - _objective(inner_loop(w, START))


def _half_squared(target, x):
    return 0.5 * matching.squared_euclidean(target, x)


def _aligned_target(geometry, alpha):
    """ξ^α_G(x⁽ᴷ⁾) = x⁽ᴷ⁾ − α Gᵀ g."""
    return geometry.x - alpha * geometry.G @ geometry.g


@jax.jit
def _learned_target(w, geometry):
    """The paper's own x̃, two updates and a step on f away: far, and not along −Gᵀ g."""
    target, _ = targets.objective_step(
        geometry.x,
        update=lambda x: _update(w, x),
        final_step=lambda x: x - 0.1 * jax.grad(_objective)(x),
        num_steps=3,
    )
    return target


@EVERY_META_PARAMS
def test_mg_descends_by_the_norm_of_the_gradient(w):
    """Lemma 1: f(x⁽ᴷ⁾(w′)) − f(x⁽ᴷ⁾(w)) = −β ‖g‖²_G + O(β²) < 0.

    The appendix prints o(β²). The residual is of order β² exactly, hence O(β²), as in
    the main text: halving β divides it by 4.
    """
    _, g, G = _geometry(w)

    def residual(beta):
        return _change(_mg(w, beta), w) + beta * g @ G @ g

    assert _change(_mg(w, SMALL), w) < 0
    np.testing.assert_allclose(residual(SMALL) / residual(SMALL / 2), 4, rtol=0.02)


@EVERY_META_PARAMS
@EVERY_MATCHING_FUNCTION
@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 0.1), (0.1, 1)])
def test_bmg_changes_the_objective_by_a_difference_of_distances(
    w, matching_function, a, b
):
    """Theorem 1: Δf = β/α (μ(x̃, x⁽ᴷ⁾ − α Gᵀ g) − μ(x̃, x⁽ᴷ⁾)) + O(β (α + β)).

    The paper prints o(β (α + β)). Its proof expands μ(x̃, x + d) to first order with a
    residual o(‖d‖²), which is O(‖d‖²): ‖d‖² itself where μ = ‖·‖². So with α and β
    shrinking together, at a fixed x̃, the residual over β (α + β) tends to a constant,
    and the residual over the change of f to 0.
    """
    geometry = _geometry(w)
    target = _learned_target(w, geometry)

    def change_and_residual(scale):
        alpha, beta = a * scale, b * scale
        change = _change(_bmg(w, beta, target, matching_function), w)
        nearer = matching_function(target, _aligned_target(geometry, alpha))
        distance = matching_function(target, geometry.x)
        return change, change - beta / alpha * (nearer - distance)

    change, residual = change_and_residual(SMALL)
    half_change, half_residual = change_and_residual(SMALL / 2)
    np.testing.assert_allclose(change / half_change, 2, rtol=0.02)
    np.testing.assert_allclose(residual / half_residual, 4, rtol=0.02)


@EVERY_META_PARAMS
def test_residual_of_bmg_is_known_to_order_beta_squared_for_the_squared_norm(w):
    """Theorem 1, first equation, sharpened for μ = ‖·‖².

    With u = ∇_z μ(x̃, z) at z = x⁽ᴷ⁾, the proof's Δf = −β ⟨u, Gᵀ g⟩ + O(β²), and
    μ(x̃, x⁽ᴷ⁾ − α Gᵀ g) − μ(x̃, x⁽ᴷ⁾) = −α ⟨u, Gᵀ g⟩ + α² ‖Gᵀ g‖² without residual.
    Hence Δf = β/α (…) − α β ‖Gᵀ g‖² + O(β²), for any α, here one far from small.
    """
    geometry, alpha = _geometry(w), 0.7
    target = _learned_target(w, geometry)
    nearer = matching.squared_euclidean(target, _aligned_target(geometry, alpha))
    distance = matching.squared_euclidean(target, geometry.x)
    descent = geometry.G @ geometry.g

    def residual(beta):
        change = _change(_bmg(w, beta, target, matching.squared_euclidean), w)
        first_order = (nearer - distance) / alpha - alpha * descent @ descent
        return change - beta * first_order

    np.testing.assert_allclose(residual(SMALL) / residual(SMALL / 2), 4, rtol=0.02)


@EVERY_META_PARAMS
@EVERY_MATCHING_FUNCTION
@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 0.1), (0.1, 1)])
def test_bmg_towards_the_aligned_target_descends_twice_as_far_as_printed(
    w, matching_function, a, b
):
    """Theorem 1, second equation: Δf = −β/α μ(x̃, x⁽ᴷ⁾) + O(β (α + β)) < 0 for ξ^α_G.

    Again o(…) in print. Here μ(x̃, x⁽ᴷ⁾) is of order α², so that the printed term is of
    the residual's own order, α β: near its minimum μ(x̃, x̃ + d) = ½ dᵀ H d, whence
    ⟨u, d⟩ = dᵀ H d = 2 μ, and Δf / (−β/α μ) tends to 2, whatever μ. The inequality
    holds, with an improvement of at least the one printed: convexity of μ alone gives
    ⟨u, d⟩ ≥ μ.
    """
    geometry = _geometry(w)

    def change_over_printed(scale):
        alpha, beta = a * scale, b * scale
        target = _aligned_target(geometry, alpha)
        change = _change(_bmg(w, beta, target, matching_function), w)
        assert change < 0
        return change / (-beta / alpha * matching_function(target, geometry.x))

    for scale in (SMALL, SMALL / 10):
        np.testing.assert_allclose(change_over_printed(scale), 2, rtol=10 * scale)


@EVERY_META_PARAMS
@EVERY_MATCHING_FUNCTION
def test_targets_around_the_aligned_one_descend_too(w, matching_function):
    """Theorem 1: "there exists infinitely many ξ" for which f decreases.

    Any x̃ = x⁽ᴷ⁾ − α (Gᵀ g + v) with ‖v‖ = ‖Gᵀ g‖ / 20, here along ± each axis.
    """
    geometry = _geometry(w)
    length = jnp.linalg.norm(geometry.G @ geometry.g) / 20
    for direction in np.concatenate([np.eye(3), -np.eye(3)]):
        target = _aligned_target(geometry, SMALL) - SMALL * length * direction
        assert _change(_bmg(w, SMALL, target, matching_function), w) < 0


@EVERY_META_PARAMS
@EVERY_MATCHING_FUNCTION
def test_aligned_target_is_not_optimal(w, matching_function):
    """Theorem 1: "This is not an optimal rate": a target twice as far improves more.

    For x̃ = x⁽ᴷ⁾ − 2α Gᵀ g the gradient u doubles to first order, and Δf with it.
    """
    geometry = _geometry(w)
    near, far = (
        _change(_bmg(w, SMALL, _aligned_target(geometry, alpha), matching_function), w)
        for alpha in (SMALL, 2 * SMALL)
    )
    assert far < near < 0
    np.testing.assert_allclose(far / near, 2, rtol=0.01)


@EVERY_META_PARAMS
@pytest.mark.parametrize(
    ("matching_function", "factor"),
    [(matching.squared_euclidean, 2), (_half_squared, 1)],
    ids=["squared", "half squared"],
)
def test_bmg_improves_more_than_mg(w, matching_function, factor):
    """Corollary 1: f(x⁽ᴷ⁾(w̃)) < f(x⁽ᴷ⁾(w′)) for ξ^r_G, r = ‖g‖ / ‖Gᵀ g‖, small β.

    MG moves f by −β ⟨g, Gᵀ g⟩ (Lemma 1), BMG by −β ⟨u, Gᵀ g⟩, both up to O(β²). With
    μ = ‖·‖², u = −2 (x̃ − x⁽ᴷ⁾) = 2r Gᵀ g, so that

        f(x⁽ᴷ⁾(w̃)) − f(x⁽ᴷ⁾(w′)) = −β (2r ‖Gᵀ g‖² − ⟨g, Gᵀ g⟩) + O(β²).

    The paper's proof has r where this has 2r, as for μ = ½ ‖·‖²; then the sign follows
    from Cauchy and Schwarz, r ‖Gᵀ g‖² = ‖g‖ ‖Gᵀ g‖ ≥ ⟨g, Gᵀ g⟩, and is strict unless
    g and Gᵀ g are parallel. With 2r as stated it is strict wherever Gᵀ g ≠ 0 (main
    text: = 0, a slip, since then neither update moves).
    """
    geometry = _geometry(w)
    _, g, G = geometry
    r = jnp.linalg.norm(g) / jnp.linalg.norm(G @ g)
    target = _aligned_target(geometry, r)
    gain = factor * r * (G @ g) @ (G @ g) - g @ G @ g

    def difference(beta):
        bootstrapped = _bmg(w, beta, target, matching_function)
        return _change(bootstrapped, w) - _change(_mg(w, beta), w)

    # The premises of the corollary, by a margin.
    assert jnp.linalg.norm(G @ G.T - G.T) > 0.1 * jnp.linalg.norm(G)
    assert jnp.linalg.norm(G @ g) > 0.1 * jnp.linalg.norm(g)
    assert difference(SMALL) < 0
    residual, half_residual = (
        difference(beta) + beta * gain for beta in (SMALL, SMALL / 2)
    )
    np.testing.assert_allclose(residual / half_residual, 4, rtol=0.02)


@pytest.mark.parametrize(
    ("effect", "strict"),
    [
        # Gᵀ = 4 I: not idempotent, g ∥ Gᵀ g, and BMG is MG.
        (2 * np.eye(3), False),
        # Gᵀ = diag(1, 1, 0): idempotent, g ∦ Gᵀ g, and BMG improves more.
        (np.eye(3)[:, :2], True),
    ],
    ids=["multiple of the identity", "projection"],
)
def test_strictness_depends_on_g_and_not_on_idempotence(effect, strict):
    """Corollary 1: "strictly if G Gᵀ ≠ Gᵀ" is neither sufficient nor necessary.

    At the scale of the proof, μ = ½ ‖·‖², where MG and BMG tie if g ∥ Gᵀ g: the two
    gradients are then D g and r D Gᵀ g = D g. For x⁽¹⁾ = x + A w, Gᵀ = A Aᵀ.
    """

    def inner_loop(w, x):
        return x + effect @ w

    w = 0.1 * np.ones(effect.shape[1])
    geometry = _geometry(w, inner_loop)
    _, g, G = geometry
    idempotent = bool(jnp.allclose(G @ G.T, G.T))
    assert idempotent == strict
    r = jnp.linalg.norm(g) / jnp.linalg.norm(G @ g)
    standard = _mg(w, SMALL, inner_loop)
    bootstrapped = _bmg(
        w, SMALL, _aligned_target(geometry, r), _half_squared, inner_loop
    )
    difference = _change(bootstrapped, w, inner_loop) - _change(standard, w, inner_loop)
    if strict:
        assert difference < -1e-3 * SMALL
    else:
        np.testing.assert_allclose(bootstrapped, standard, rtol=1e-12)
