"""Atari's agent: hyper-parameters, actions, and the loss worked out again here."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small_atari

from trainers import _atari_agent as agent

# No weight is at 1, so that one that is left out shows.
VALUES = {
    "loss_weight": 20.0,
    "reward_clip": 0.5,
    "discount": 0.9,
    "trace_decay": 0.8,
    "leak": 0.7,
    "max_rho": 1.1,
    "max_c": 0.9,
    "policy_gradient_weight": 0.6,
    "entropy_weight": 0.03,
    "value_weight": 0.4,
    "relevance_threshold": 0.3,
    "replay_entropy_weight": 0.25,
}
LENGTH, NUM_ONLINE, BATCH, ACTIONS, TASKS = 4, 2, 3, 4, 2
ALL_LEGAL = jnp.ones(ACTIONS, bool)


@pytest.fixture
def given_outputs(monkeypatch):
    """The network's parameters are what it says of the batch."""
    monkeypatch.setattr(agent, "apply", lambda config, params, *_: params)


def random_batch(random):
    """One life that is lost, and rewards beyond the clip."""
    continues = np.ones((LENGTH, BATCH), bool)
    continues[1, 1] = False
    return agent.Trajectories(
        observations=np.zeros((LENGTH + 1, BATCH, 1, 1, 1)),
        a_t=random.integers(0, ACTIONS, (LENGTH, BATCH)),
        r_t=random.normal(size=(LENGTH, BATCH)).astype(np.float32),
        continues_t=continues,
        behavior_logits_t=random.normal(size=(LENGTH, BATCH, ACTIONS)).astype("f4"),
        is_online=np.arange(BATCH) < NUM_ONLINE,
    )


def random_outputs(random):
    return agent.Outputs(
        logits=random.normal(size=(LENGTH + 1, BATCH, TASKS, ACTIONS)).astype("f4"),
        values=random.normal(size=(LENGTH + 1, BATCH, TASKS)).astype("f4"),
    )


def random_hyper_params(random):
    return agent.HyperParams(*random.uniform(0.2, 0.9, (6, TASKS)).astype("f4"))


def probabilities(logits):
    exps = [math.exp(x) for x in logits]
    return [x / sum(exps) for x in exps]


def is_relevant(config, pi, mu):
    """LASER: KL(π ‖ π̃) below b, π̃ ∝ min(ρ̄ µ, π)."""
    implied = [min(config.max_rho * m, p) for p, m in zip(pi, mu, strict=True)]
    mass = sum(implied)
    pairs = zip(pi, implied, strict=True)
    divergence = sum(p * math.log(p * mass / q) for p, q in pairs)
    return divergence < config.relevance_threshold


def expected_loss(config, logits, values, hyper, batch, b):
    """The loss of one task on one unroll, its terms and gradients; a plain loop."""
    gamma, decay, leak, *weights = hyper
    later = float(values[LENGTH])
    terms, is_kept = np.zeros(4), []
    by_logits, by_values = np.zeros((LENGTH + 1, ACTIONS)), np.zeros(LENGTH + 1)
    for t in reversed(range(LENGTH)):
        pi = probabilities(logits[t].tolist())
        mu = probabilities(batch.behavior_logits_t[t, b].tolist())
        action, v = int(batch.a_t[t, b]), float(values[t])
        eta = pi[action] / mu[action]
        rho = leak * min(eta, config.max_rho) + (1 - leak) * eta
        c = decay * (leak * min(eta, config.max_c) + (1 - leak) * eta)
        clip = config.reward_clip
        reward = min(max(float(batch.r_t[t, b]), -clip), clip)
        discount = gamma * bool(batch.continues_t[t, b])
        v_next = float(values[t + 1])
        kept = is_relevant(config, pi, mu)
        advantage = rho * (reward + discount * later - v)
        target = v
        if kept:
            target += rho * (reward + discount * v_next - v)
            target += discount * c * (later - v_next)
        negative_entropy = sum(p * math.log(p) for p in pi)
        explores = 1.0 if batch.is_online[b] else config.replay_entropy_weight
        is_kept.append(kept)
        terms += [
            -kept * advantage * math.log(pi[action]),
            kept * explores * negative_entropy,
            kept * 0.5 * (target - v) ** 2,
            negative_entropy,
        ]
        chosen = np.arange(ACTIONS) == action
        by_logits[t] = kept * (
            -weights[0] * advantage * (chosen - np.array(pi))
            + weights[1] * explores * np.array(pi) * (np.log(pi) - negative_entropy)
        )
        by_values[t] = kept * weights[2] * (v - target)
        later = target
    return np.dot(weights, terms[:3]), terms, is_kept, by_logits, by_values


@pytest.mark.usefixtures("given_outputs")
def test_the_loss_is_that_of_a_plain_loop():
    """Leaky V-trace, LASER and all weights; and derivatives in u, worked out by hand.

    Targets, ratios and relevance are constants of u: the last value has no gradient.
    """
    config = small_atari.make_config(**VALUES, unroll_length=LENGTH)
    plain = jax.tree.map(float, config)
    random = np.random.default_rng(1)
    batch, outputs = random_batch(random), random_outputs(random)
    hyper = random_hyper_params(random)
    (loss, metrics), grads = jax.jit(
        jax.value_and_grad(agent.loss, argnums=1, has_aux=True)
    )(config, outputs, hyper, batch, ALL_LEGAL)

    found = {
        (b, i): expected_loss(
            plain,
            outputs.logits[:, b, i],
            outputs.values[:, b, i],
            [float(x[i]) for x in hyper],
            batch,
            b,
        )
        for b in range(BATCH)
        for i in range(TASKS)
    }
    scale = 20.0 / (LENGTH * BATCH)
    np.testing.assert_allclose(loss, scale * sum(f[0] for f in found.values()), 1e-5)
    for (b, i), (*_, by_logits, by_values) in found.items():
        for actual, expected in (
            (grads.logits[:, b, i], by_logits),
            (grads.values[:, b, i], by_values),
        ):
            np.testing.assert_allclose(actual, scale * expected, rtol=1e-4, atol=1e-5)
    main = [found[b, 0] for b in range(BATCH)]
    terms = sum(f[1] for f in main) / (LENGTH * BATCH)
    kept = np.array([f[2] for f in main])
    assert kept.any()
    assert not kept.all()
    assert (np.abs(batch.r_t) > 0.5).any()
    for name, expected in {
        "policy_gradient_loss": terms[0],
        "value_loss": terms[2],
        "entropy": -terms[3],
        "relevant": kept.mean(),
    }.items():
        np.testing.assert_allclose(metrics[name], expected, rtol=1e-4)


@pytest.mark.usefixtures("given_outputs")
def test_the_losss_gradient_moves_with_each_hyper_parameter():
    """∂²f/∂u∂w is zero for none, also of γ, λ and α, which are inside the targets."""
    config = small_atari.make_config(**VALUES, unroll_length=LENGTH)
    random = np.random.default_rng(2)
    batch, outputs = random_batch(random), random_outputs(random)

    def grads(hyper):
        of_params = jax.grad(agent.loss, argnums=1, has_aux=True)
        return of_params(config, outputs, hyper, batch, ALL_LEGAL)[0]

    moved = jax.jit(jax.jacfwd(grads))(random_hyper_params(random))
    for name in agent.HyperParams._fields:
        for i in range(TASKS):
            of_task = [
                getattr(moved.logits, name)[:, :, i, :, i],
                getattr(moved.values, name)[:, :, i, i],
            ]
            assert any(jnp.any(part != 0) for part in of_task), name


def test_meta_parameters_start_where_the_objective_says():
    """18 numbers: 0.99 of their bound each, and ε_EN where IMPALA has it."""
    config = small_atari.make_config(
        discount=0.995, entropy_weight=0.01, value_weight=0.25
    )
    start = agent.initial_meta_params(config)
    assert sum(x.size for x in start) == 18
    np.testing.assert_allclose(start.trace_decay, 4.59512, rtol=1e-5)  # logit(0.99).
    values = agent.decoded(config, start)
    for name, expected in {
        "discount": 0.99 * 0.995,
        "trace_decay": 0.99,
        "leak": 0.99,
        "policy_gradient_weight": 0.99,
        "entropy_weight": 0.01,
        "value_weight": 0.99 * 0.25,
    }.items():
        np.testing.assert_allclose(getattr(values, name), [expected] * 3, rtol=1e-5)


@pytest.mark.parametrize(("raw", "share"), [(30.0, 1.0), (-30.0, 0.0), (0.0, 0.5)])
def test_hyper_parameters_stay_within_their_bounds(raw, share):
    """Which are the objective's values; 1 for λ and α; and a field of ε_EN's own."""
    config = small_atari.make_config(**VALUES, max_entropy_weight=0.8)
    bounds = agent.HyperParams(0.9, 1.0, 1.0, 0.6, 0.8, 0.4)
    values = agent.decoded(config, agent.HyperParams(*[jnp.full(3, raw)] * 6))
    for actual, bound in zip(values, bounds, strict=True):
        np.testing.assert_allclose(actual, [share * bound] * 3, atol=1e-6)


def network(is_legal, **values):
    """A small network, its parameters, and some states."""
    config = small_atari.make_config(num_auxiliary_tasks=1, **values)
    states = jnp.asarray(np.random.default_rng(1).random((5, 10, 10, 4)) < 0.3)
    params = jax.jit(agent.init, static_argnums=3)(
        config, jax.random.key(0), states[0], is_legal.size
    )
    return config, params, states


IS_LEGAL = jnp.arange(18) < 14


def test_the_main_task_is_the_first_head():
    """`main` cuts it out and `merged` puts it back; other heads keep theirs."""
    config, params, states = network(IS_LEGAL)
    apply = jax.jit(agent.apply)
    outputs = apply(config, params, states, IS_LEGAL)
    main = agent.main(params)
    alone = apply(config, main, states, IS_LEGAL)
    np.testing.assert_allclose(outputs.logits[:, :1], alone.logits, atol=1e-6)
    np.testing.assert_allclose(outputs.values[:, :1], alone.values, atol=1e-6)
    assert (outputs.logits[:, 0, :14] != outputs.logits[:, 1, :14]).any()
    other = jax.tree.map(lambda leaf: leaf + 1, main)
    both = agent.merged(params, other)
    jax.tree.map(np.testing.assert_array_equal, agent.main(both), other)
    jax.tree.map(
        np.testing.assert_array_equal,
        *(
            agent.with_heads(tree, lambda leaf: leaf[1:]) | {"torso": None}
            for tree in (both, params)
        ),
    )


def test_states_have_any_leading_axes_and_bytes_are_shares_of_255():
    config, params, states = network(IS_LEGAL)
    apply = jax.jit(agent.apply)
    flat = apply(config, params, states, IS_LEGAL)
    deep = apply(config, params, states.reshape(5, 1, 10, 10, 4), IS_LEGAL)
    np.testing.assert_allclose(deep.logits[:, 0], flat.logits, rtol=1e-5, atol=1e-6)
    bytes_ = apply(config, params, (states * 255).astype(jnp.uint8), IS_LEGAL)
    np.testing.assert_allclose(bytes_.values, flat.values, rtol=1e-5, atol=1e-6)


def test_actions_that_a_game_lacks_are_finite_everywhere():
    """Their probability is 0; loss and derivatives are finite, at any logits."""
    config, params, states = network(IS_LEGAL, unroll_length=2)
    params = jax.tree.map(lambda leaf: 50 * leaf, params)  # Saturated policies.
    trajectories = agent.Trajectories(
        observations=states[:3, None],
        a_t=jnp.array([[3], [13]]),
        r_t=jnp.ones((2, 1)),
        continues_t=jnp.ones((2, 1), bool),
        behavior_logits_t=jnp.where(IS_LEGAL, 0.0, agent.ILLEGAL)[None, None].repeat(
            2, 0
        ),
        is_online=jnp.ones(1, bool),
    )
    hyper = agent.decoded(config, agent.initial_meta_params(config))
    (loss, metrics), grads = jax.jit(
        jax.value_and_grad(agent.loss, argnums=(1, 2), has_aux=True)
    )(config, params, hyper, trajectories, IS_LEGAL)
    assert all(bool(jnp.all(jnp.isfinite(x))) for x in jax.tree.leaves(grads))
    assert np.isfinite(loss)
    assert metrics["entropy"] >= 0
    logits = jax.jit(agent.apply)(config, params, states, IS_LEGAL).logits
    assert (jax.nn.softmax(logits)[..., 14:] == 0).all()
    assert (jax.nn.softmax(logits)[..., :14].sum(-1) > 0.999).all()


@pytest.fixture
def given_logits(monkeypatch):
    """A policy whose logits are the observations."""
    monkeypatch.setattr(agent, "main", lambda params: params)
    monkeypatch.setattr(
        agent,
        "apply",
        lambda config, params, logits, _: agent.Outputs(logits[:, None], None),
    )


def compiled_act():
    """Compiled anew, as what it calls was replaced."""
    return jax.jit(lambda *given: agent.act(None, None, *given))


@pytest.mark.usefixtures("given_logits")
def test_actions_are_drawn_by_their_probabilities():
    """Evenly spread uniforms: each action's share is its probability, to one draw."""
    pi = jnp.array([0.5, 0.125, 0.25, 0.125])
    logits = jnp.tile(jnp.log(pi), (4_000, 1))
    uniforms = (jnp.arange(4_000) + 0.5) / 4_000
    actions, drawn_by = compiled_act()(logits, ALL_LEGAL, uniforms)
    np.testing.assert_allclose(np.bincount(actions, minlength=4), 4_000 * pi, atol=1)
    np.testing.assert_array_equal(drawn_by, logits)


@pytest.mark.usefixtures("given_logits")
@pytest.mark.parametrize("order", ["as here", "pairwise"])
def test_an_action_that_a_game_lacks_is_never_drawn(monkeypatch, order):
    """At the ends of the uniforms; sums in pairs are rounded in other places."""
    if order == "pairwise":
        scan = jax.lax.associative_scan
        monkeypatch.setattr(jnp, "cumsum", lambda x, axis: scan(jnp.add, x, axis=axis))
    logits = np.random.default_rng(0).normal(scale=2, size=(5_000, 18)).astype("f4")
    logits = jnp.where(IS_LEGAL[None], logits, agent.ILLEGAL)
    act = compiled_act()
    for uniform in (0.0, 1 - 2**-23):
        uniforms = jnp.full(5_000, uniform)
        actions, _ = act(logits, IS_LEGAL, uniforms)
        assert actions.max() < 14
        if uniform == 0.0:
            assert (actions == 0).all()


@pytest.mark.usefixtures("given_logits")
@pytest.mark.parametrize(
    ("uniform", "pi", "expected"),
    [
        (0.0, [0.0, 1e-12, 0.25, 0.75], 2),
        (0.0, [1.0, 0.0, 0.0, 0.0], 0),
        (1 - 2**-23, [0.75, 0.25, 1e-12, 0.0], 1),
        (1 - 2**-23, [0.0, 0.0, 0.0, 1.0], 3),
    ],
)
def test_the_ends_of_the_uniforms_draw_no_improbable_action(uniform, pi, expected):
    """They are multiples of 2⁻²³ = 1.2e-7, with 0."""
    logits = jnp.log(jnp.array([pi]) + 1e-30)
    actions, _ = agent.act(None, None, logits, ALL_LEGAL, jnp.array([uniform]))
    assert actions.tolist() == [expected]


@pytest.mark.usefixtures("given_logits")
def test_the_largest_uniform_draws_an_action_also_where_sums_are_rounded(monkeypatch):
    """Behind the game's own 14 the sum grows by a bit; the last one's is the total."""

    def rounded_up(x, axis):
        total = np.cumsum(np.asarray(x), axis=axis)
        total[:, 14:] = np.nextafter(total[:, 14:], np.float32(2))
        return jnp.asarray(total)

    monkeypatch.setattr(jnp, "cumsum", rounded_up)
    logits = jnp.where(IS_LEGAL[None], jnp.zeros((1, 18)), agent.ILLEGAL)
    largest = jnp.array([1 - 2**-23])
    actions, _ = agent.act(None, None, logits, IS_LEGAL, largest)
    assert actions.tolist() == [13]


def test_precision_is_that_of_the_network_alone():
    """In bfloat16 parameters and outputs are float32; these are nearly the same."""
    config, params, states = network(IS_LEGAL)
    half = dataclasses.replace(config, precision="bfloat16")
    exact = jax.jit(agent.apply)(config, params, states, IS_LEGAL)
    rough = jax.jit(agent.apply)(half, params, states, IS_LEGAL)
    assert {x.dtype for x in jax.tree.leaves((params, rough))} == {jnp.dtype("float32")}
    assert (exact.values != rough.values).any()
    np.testing.assert_allclose(exact.values, rough.values, atol=0.05)
