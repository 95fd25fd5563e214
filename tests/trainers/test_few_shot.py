"""The learner and the update kinds of few-shot classification, against their equations.

In double precision, where a finite difference is a derivative to eight digits.
"""

import functools

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small_few_shot as small

from bmg_sweeps.core import gradient_descent
from bmg_sweeps.tasks import episodes
from trainers import _few_shot_data as data
from trainers import _few_shot_learner as learners
from trainers import _few_shot_updates as updates

SLOW = pytest.mark.slow  # Each compiles a program of its own.


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def problem(**values):
    """A config, an initialization and an episode, all in double precision."""
    config = small.make_config(**values)
    images = small.source()["train"]
    network = learners.network(config)
    meta_params = network.init(jax.random.key(1), jnp.zeros((1, *images.shape[2:])))
    # Offsets start at zero, where a ReLU may have none of its inputs above it.
    offsets = lambda module, name, x: x + 0.3 if name == "offset" else x  # noqa: E731
    meta_params = hk.data_structures.map(offsets, meta_params)
    episode = data.episode(config, jax.random.key(2), images, config.num_queries)
    doubled = jax.tree.map(
        lambda x: x.astype(jnp.float64) if x.dtype == jnp.float32 else x,
        (config, meta_params, episode),
    )
    return doubled


def meta_loss(config, meta_params, episode):
    return updates.UPDATE_KINDS[config.update_kind](config, meta_params, episode)[0]


meta_gradient = jax.jit(jax.grad(meta_loss, argnums=1))


def assert_close(actual, expected, **tolerances):
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for left, right in zip(
        jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(left, right, **tolerances)


@jax.jit
def plain_gradient(config, params, episode):
    """∇f on the support images, written out."""

    def loss(params):
        logits = learners.network(config).apply(params, episode.support_images)
        chosen = jax.nn.log_softmax(logits)[
            np.arange(len(logits)), episode.support_labels
        ]
        return -jnp.mean(chosen)

    return jax.grad(loss)(params)


def plain_steps(meta_params, episode, num_steps, adapted):
    """Gradient descent on the support images, in NumPy but for the gradients."""
    config, *_ = problem()
    rate, params = float(config.learning_rate), jax.tree.map(np.asarray, meta_params)
    for _ in range(num_steps):
        grads = jax.tree.map(np.asarray, plain_gradient(config, params, episode))
        params = hk.data_structures.map(
            lambda module, name, x, grads=grads: (
                x - rate * grads[module][name] if adapted(module, name) else x
            ),
            params,
        )
    return params


ADAPTED = {
    "weights": lambda module, name: name in ("w", "b"),
    "head": lambda module, name: module == "linear",
    "everything": lambda module, name: True,
}


@pytest.mark.parametrize("adapted", ADAPTED)
def test_adaptation_changes_what_it_says_and_nothing_else(adapted):
    """ANIL leaves the body as it is; the original MAML the offsets."""
    config, meta_params, episode = problem(adapted=adapted)

    @jax.jit
    def adapt(config, meta_params, episode):
        learner = learners.adapt(config, meta_params, learners.support(episode), 3)
        return hk.data_structures.merge(*learner)

    merged = adapt(config, meta_params, episode)
    expected = plain_steps(meta_params, episode, 3, ADAPTED[adapted])
    assert_close(merged, expected, rtol=1e-10, atol=1e-14)
    for module, name, value in hk.data_structures.traverse(meta_params):
        is_same = bool(jnp.all(merged[module][name] == value))
        assert is_same != ADAPTED[adapted](module, name), (module, name)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"inner_steps": 3}, id="MAML"),
        pytest.param(small.BMG, id="BMG"),
        pytest.param(
            {"inner_steps": 3, "adapted": "everything"}, id="MAML-all", marks=SLOW
        ),
        pytest.param({"inner_steps": 1}, id="MAML-1", marks=SLOW),
        pytest.param({"inner_steps": 3, "adapted": "head"}, id="ANIL", marks=SLOW),
        pytest.param(
            small.BMG | {"matching_function": "reverse_policy_kl"},
            id="BMG-reverse",
            marks=SLOW,
        ),
        pytest.param(
            small.BMG | {"matching_function": "squared_euclidean"},
            id="BMG-L2",
            marks=SLOW,
        ),
    ],
)
def test_the_meta_gradient_is_that_of_finite_differences(values):
    """Along a random direction; the target of BMG stands still meanwhile."""
    config, meta_params, episode = problem(**values)
    gradient = meta_gradient(config, meta_params, episode)
    loss = functools.partial(meta_loss, config, episode=episode)
    if config.update_kind == "bmg":
        loss = functools.partial(with_fixed_target, config, meta_params, episode)
    keys = iter(jax.random.split(jax.random.key(3), 20))
    direction = jax.tree.map(
        lambda x: jax.random.normal(next(keys), x.shape, x.dtype), meta_params
    )
    step = 1e-6

    @jax.jit
    def at(distance):
        moved = jax.tree.map(lambda w, d: w + distance * d, meta_params, direction)
        return loss(moved)

    difference = float(at(step) - at(-step)) / (2 * step)
    products = jax.tree.map(jnp.vdot, gradient, direction)
    slope = float(sum(jax.tree.leaves(products)))
    assert abs(difference) > 1e-4
    assert slope == pytest.approx(difference, rel=1e-5)


def target_of(config, meta_params, episode):
    """x̃: L − 1 steps of α and one of the target's own rate, on the query images."""
    support, query = learners.support(episode), learners.query(episode)
    learner = learners.adapt(config, meta_params, support, config.inner_steps)
    loss = functools.partial(learners.loss, config, data=query)
    rates = [config.learning_rate] * (config.target_steps - 1)
    for rate in [*rates, config.target_learning_rate]:
        grads = jax.grad(lambda p, c: loss(learners.Learner(p, c)))(*learner)
        params = jax.tree.map(
            lambda x, g, rate=rate: x - rate * g, learner.params, grads
        )
        learner = learner._replace(params=params)
    return learner


def with_fixed_target(config, start, episode, meta_params):
    """Algorithm 7's distance, with the target of `start`."""
    target = target_of(config, start, episode)
    learner = learners.adapt(
        config, meta_params, learners.support(episode), config.inner_steps
    )
    if config.matching_function == "squared_euclidean":
        squares = jax.tree.map(
            lambda x, y: jnp.sum((x - y) ** 2), target.params, learner.params
        )
        return sum(jax.tree.leaves(squares))
    images = episode.query_images
    ours = jax.nn.log_softmax(learners.logits(config, learner, images))
    theirs = jax.nn.log_softmax(learners.logits(config, target, images))
    if config.matching_function == "policy_kl":  # µ = 1.
        return jnp.mean(jnp.sum(jnp.exp(theirs) * (theirs - ours), axis=-1))
    return jnp.mean(jnp.sum(jnp.exp(ours) * (ours - theirs), axis=-1))


@pytest.mark.parametrize("target_bootstrap", ["objective_step", "update_rule"])
@pytest.mark.parametrize("target_steps", [pytest.param(1, marks=SLOW), 3])
def test_the_target_takes_its_steps_on_the_query_images(target_steps, target_bootstrap):
    """Algorithm 7; without the final gradient step all L steps have the rate α."""
    values = small.BMG | {"target_steps": target_steps, "target_learning_rate": 0.2}
    config, meta_params, episode = problem(target_bootstrap=target_bootstrap, **values)
    actual = float(jax.jit(meta_loss)(config, meta_params, episode))
    if target_bootstrap == "update_rule":
        config, *_ = problem(**values | {"target_learning_rate": 0.05})
    distance = jax.jit(with_fixed_target)
    expected = float(distance(config, meta_params, episode, meta_params))
    assert expected > 1e-6
    assert actual == pytest.approx(expected, rel=1e-8)


def test_bmg_with_half_a_gradient_step_and_squared_distance_is_maml():
    """Eq. 3: x̃ = x − ½ ∇f and µ = ‖·‖² give ∇_w f, where all variables adapt."""
    values = {"adapted": "everything", "inner_steps": 2}
    matched = {
        "update_kind": "bmg",
        "matching_function": "squared_euclidean",
        "target_learning_rate": 0.5,
    }
    config, meta_params, episode = problem(**values, **matched)
    actual = meta_gradient(config, meta_params, episode)
    config, *_ = problem(**values)
    assert_close(
        actual, meta_gradient(config, meta_params, episode), rtol=1e-9, atol=1e-14
    )


def test_fomaml_lacks_the_hessian_term_and_nothing_else():
    """K = 1: ∇MAML = v − α H v and ∇FOMAML = v, with v = ∇f(x⁽¹⁾), H that at w."""
    values = {"adapted": "everything"}
    config, meta_params, episode = problem(update_kind="maml", **values)
    exact = meta_gradient(config, meta_params, episode)
    config, *_ = problem(update_kind="fomaml", **values)
    first_order = meta_gradient(config, meta_params, episode)

    def support_loss(params):
        learner = learners.Learner(params, {})
        return learners.loss(config, learner, learners.support(episode))

    _, product = jax.jit(functools.partial(jax.jvp, jax.grad(support_loss)))(
        (meta_params,), (first_order,)
    )
    expected = jax.tree.map(
        lambda v, hv: v - config.learning_rate * hv, first_order, product
    )
    assert_close(exact, expected, rtol=1e-8, atol=1e-13)
    size = max(float(jnp.abs(hv).max()) for hv in jax.tree.leaves(product))
    assert size > 1e-2  # There is a Hessian to miss.


def test_fomaml_is_maml_where_the_inner_hessian_vanishes():
    """A loss that is linear in the parameters has none."""

    def linear(params, context, data):
        del context
        return jnp.mean(data[0]) * sum(map(jnp.sum, jax.tree.leaves(params)))

    descend = gradient_descent.descend
    first_order = gradient_descent.descend_first_order
    config, meta_params, episode = problem(inner_steps=3)
    support = learners.support(episode)

    def after(how, params):
        end = how(linear, params, {}, support, config.learning_rate, 3)
        learner = learners.Learner(end, {})
        return learners.loss(config, learner, learners.query(episode))

    exact, approximate = (
        jax.jit(jax.grad(functools.partial(after, how)))(meta_params)
        for how in (descend, first_order)
    )
    assert_close(exact, approximate, rtol=1e-10, atol=1e-14)


def test_the_target_passes_no_gradient():
    """It counts as if it were a constant, offsets and all: see finite differences."""
    config, meta_params, episode = problem(**small.BMG)
    fixed = jax.jit(jax.grad(with_fixed_target, argnums=3))
    assert_close(
        meta_gradient(config, meta_params, episode),
        fixed(config, meta_params, episode, meta_params),
        rtol=1e-8,
        atol=1e-14,
    )


def test_an_episode_has_the_size_of_the_config():
    _, _, episode = problem()
    assert isinstance(episode, episodes.Episode)
    shape = (small.SIZE, small.SIZE, 1)
    assert episode.support_images.shape == (3 * 2, *shape)
    assert episode.query_images.shape == (3 * 2, *shape)
