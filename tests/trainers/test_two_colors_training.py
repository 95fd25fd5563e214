"""Training in two-colors: checks, rows, and whether the agent learns."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small_q_lambda
import small_two_colors as small

from trainers import _two_colors_agent as agent
from trainers import _two_colors_meta, _two_colors_statistics, two_colors_q_lambda
from trainers import two_colors_actor_critic as trainer

BMG = {
    "inner_steps": 2,
    "target_steps": 2,
    "matching_function": "symmetric_policy_kl",
    "target_weight": "meta_learned_weight",
    "target_rollout": "next_rollout",
}
# Learns within the first cycle.
SMALL = {"hidden_sizes": (64, 64), "learning_rate": 0.3}


@pytest.mark.parametrize("weight", [0.5, 0.1])
def test_the_entropy_weight_starts_where_it_is_told(weight):
    """ε_w(0), of the untrained meta-network."""
    config = small.make_config(initial_entropy_weight=weight)
    meta_params = small.init(config, jax.random.key(0), None).meta_params
    start = small.entropy_weight(config, meta_params)(jnp.zeros(10))
    np.testing.assert_allclose(start, weight, rtol=1e-6)


@pytest.mark.parametrize(
    ("make_config", "length", "init", "wanted"),
    [
        (
            functools.partial(small.make_config, initial_entropy_weight=0.2),
            "num_recent_rollouts",
            trainer.init,
            0.2,
        ),
        (
            small_q_lambda.make_config,
            "num_recent_rewards",
            two_colors_q_lambda.init,
            0.5,
        ),
    ],
)
def test_pre_training_makes_epsilon_one_number(make_config, length, init, wanted):
    """Luketina et al. (2022): ε_w is what it starts with, at inputs in [−1, 1]."""
    num_rewards = 7
    inputs = np.random.default_rng(0).uniform(-1, 1, (200, num_rewards))

    def error(num_steps):
        values = {length: num_rewards, "meta_pretraining_steps": num_steps}
        config = make_config(meta_hidden_sizes=(32,), **values)
        meta_params = init(config, jax.random.key(0), None).meta_params
        epsilon = jax.vmap(_two_colors_meta.learned(config, meta_params))(inputs)
        return np.abs(epsilon - wanted).mean()

    assert error(0) > 0.03
    assert error(500) < 0.1 * error(0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        # 2,500 rollouts make a row: K + L − 1 of them must not make two.
        (
            {"inner_steps": 2500, "target_steps": 2},
            "inner_steps = 2500: expected at most 2499 at this L",
        ),
        (
            {"update_kind": "meta_gradient", "target_steps": 2},
            "target_steps = 2: expected 1, where there is no target",
        ),
        (
            {"meta_objective": "acting_policy"},
            "meta_objective = 'acting_policy': expected 'updated_policy', where MG",
        ),
        (
            {
                "update_kind": "meta_gradient",
                "inner_steps": 1,
                "target_steps": 1,
                "meta_objective": "acting_policy",
            },
            "inner_steps = 1: expected at least 2, as the first policy does not",
        ),
        (
            {
                "update_kind": "fixed_entropy_weight",
                "target_steps": 1,
                "target_rollout": "next_rollout",
            },
            "target_rollout = 'next_rollout': expected 'last_rollout', where there is",
        ),
        (
            {
                "update_kind": "fixed_entropy_weight",
                "target_steps": 1,
                "meta_input": "normalized_mean_rewards",
            },
            "meta_input = 'normalized_mean_rewards': expected 'mean_rewards', where ε",
        ),
        (
            {
                "update_kind": "fixed_entropy_weight",
                "target_steps": 1,
                "meta_pretraining_steps": 10,
            },
            "meta_pretraining_steps = 10: expected 0, where ε is fixed",
        ),
    ],
)
def test_fields_that_contradict_each_other_are_refused(values, message):
    """Style, "Errors": the field, its value and what was expected."""
    with pytest.raises(ValueError, match=f"^{message}"):
        small.make_config(**values)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"seed": 2**31 - 1, "discount": 0.0, "matching_weight": 0.0},
        {"inner_steps": 2499, "target_steps": 2},
    ],
)
def test_check_accepts_what_makes_sense(values):
    """`check` is no tighter than it says: values at its bounds pass."""
    small.make_config(**values)


def test_rows_are_at_exact_steps_and_count_every_reward(monkeypatch):
    """`train`: a row every 1,600 steps, though meta-updates of 7 · 16 cross them.

    Recounted from the update rule alone. Rates of 10⁻³⁰ leave a uniform policy uniform,
    and w as it is: no rounding can change an action. For two seeds, under `vmap`.
    """
    monkeypatch.setattr(_two_colors_statistics, "RECORD_EVERY", 1_600)
    monkeypatch.setattr(_two_colors_meta, "CHUNK_ENV_STEPS", 3_200)
    config = small.make_config(
        **BMG | {"inner_steps": 1, "target_steps": 7},
        rollout_length=16,
        learning_rate=1e-30,
        meta_learning_rate=1e-30,
    )
    starts = [
        small.with_uniform_policy(small.start(config, seed, experience=0))
        for seed in (0, 1)
    ]
    states = [small.prepared(config, state) for state in starts]
    states = jax.tree.map(lambda *x: jnp.stack(x), *states)
    train = jax.jit(
        jax.vmap(lambda config, state: trainer.train(config, state, None), (None, 0))
    )
    chunks = []
    for _ in range(3):
        states, chunk = train(config, states)
        chunks.append(chunk)
    rows = jax.tree.map(lambda *x: np.concatenate(x, axis=1), *chunks)
    # Chunks of 28 meta-updates end at 3,136, 6,272 and 9,408 steps: one row falls into
    # the first, which repeats it, and two into each of the others.
    due = np.array([1, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(rows["env_steps"], [1_600 * due] * 2)
    # The row is that of the meta-update in which it falls due.
    is_new = np.array([True, False, True, True, True, True])
    meta_updates = -(-1_600 * due // 112)
    np.testing.assert_array_equal(
        rows["meta_updates"][:, is_new], [meta_updates[is_new]] * 2
    )
    for i, state in enumerate(starts):
        rewards, weights = jax.jit(recount, static_argnums=2)(
            small.plain(config), state, 8_000 // 16
        )
        assert 0 < weights.min() < weights.max() < 1
        rewards, weights = (
            np.asarray(x, np.float64).reshape(5, -1) for x in (rewards, weights)
        )
        for name, column in {
            "total_reward": np.cumsum(rewards.sum(axis=1)),
            "reward_per_step": rewards.mean(axis=1),
            "entropy_weight": weights.mean(axis=1),
            "policy_entropy": np.full(5, np.log(4)),
        }.items():
            np.testing.assert_allclose(rows[name][i], column[due - 1], rtol=1e-5)


def recount(config, state, num_rollouts):
    """Rewards of every step, and ε_w(t) of every rollout."""
    weight = small.entropy_weight(config, state.meta_params)
    update = agent.update_rule(config, weight)

    def body(learner, _):
        learner = update(learner)
        return learner, (learner.rollout.rewards, weight(learner.recent_rewards))

    return jax.lax.scan(body, state.learner, length=num_rollouts)[1]


def trained(config, seed, env_steps):
    """The rows of a run, one every 10,000 steps."""
    train = jax.jit(trainer.train, static_argnums=2)
    state = small.start(config, seed, experience=0)
    rows = {}
    while trainer.progress(config, state)["env_steps"] < env_steps:
        state, chunk = train(config, state, None)
        for i, steps in enumerate(chunk["env_steps"].tolist()):
            rows[steps] = {name: float(column[i]) for name, column in chunk.items()}
    return [rows[steps] for steps in range(10_000, env_steps + 1, 10_000)]


def test_the_agent_learns_under_a_suitable_entropy_weight():
    """Section 5.1, the baseline: 100,000 steps before the first flip.

    Seeds 0 to 3 ended at a reward per step of 0.256 to 0.271 with ε = 0.1, of 0.279 at
    most, and at 0.017 to 0.030 with ½, which keeps the policy too random.
    """
    values = {"update_kind": "fixed_entropy_weight", "target_steps": 1} | SMALL
    last = {
        weight: trained(
            small.paper_config(entropy_weight=weight, **values), 0, 100_000
        )[-1]
        for weight in (0.1, 0.5)
    }
    assert last[0.1]["reward_per_step"] > 0.2
    assert last[0.5]["reward_per_step"] < 0.1


def test_bmg_learns_an_entropy_weight_that_lets_the_agent_learn():
    """Section 5.1: from ε = ½, under which the test above sees no learning, in time.

    Seeds 0 to 3 ended at a reward per step of 0.250 to 0.268, with ε at 0.10 to 0.14.
    """
    config = small.paper_config(target_steps=1, meta_learning_rate=1e-3, **SMALL)
    first, *_, last = trained(config, 0, 100_000)
    assert first["entropy_weight"] > 0.4
    assert 0.05 < last["entropy_weight"] < 0.25
    assert last["reward_per_step"] > 0.2


@pytest.mark.slow
@pytest.mark.usefixtures("optimized")
def test_a_longer_horizon_learns_an_adaptive_entropy_weight():
    """Section 5.1 and Figure 2, right, at the paper's sizes: BMG with K = 7, L = 2.

    In the tenth cycle seeds 0 to 2 ended at a reward per step of 0.270 to 0.276, and
    their ε fell from 0.226 to 0.283 after the flip to 0.079 to 0.118. (Seed 3 did as
    well for seven cycles, then its policy saturated.)
    """
    config = small.paper_config(inner_steps=7, target_steps=2)
    last = trained(config, 0, 1_000_000)[-1]
    assert last["reward_per_step"] > 0.2
    assert last["entropy_weight_after_flip"] > 1.5 * last["entropy_weight_cycle_end"]


@pytest.mark.slow
@pytest.mark.usefixtures("optimized")
def test_the_shortest_horizon_is_myopic():
    """B.2, "Ablation: meta-regularization": with K = L = 1 the weight collapses.

    Seeds 0 to 3 learned before the first flip, to 0.264 or more, and none did in the
    last five cycles, with ε below 0.005. Seed 0 came back once before them.
    """
    config = small.paper_config(inner_steps=1, target_steps=1)
    rows = trained(config, 0, 1_000_000)
    assert rows[9]["reward_per_step"] > 0.2
    assert all(row["reward_per_step"] < 0 for row in rows[50:])
    assert rows[-1]["entropy_weight"] < 0.02
