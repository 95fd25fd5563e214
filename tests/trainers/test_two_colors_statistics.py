"""Statistics of two-colors, against a count of the same rollouts in plain Python."""

import fractions

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.core import networks
from bmg_sweeps.environments import two_colors
from trainers import _two_colors_statistics

ROLLOUT = 16  # Environment steps, as in the paper.


def make_rollouts(num_steps, length=ROLLOUT):
    """`collected` [R, length] with 30 % good and 10 % bad, and a measurement [R]."""
    generator = np.random.default_rng(0)
    shape = (num_steps // length, length)
    collected = generator.choice([1, -1, 0], p=[0.3, 0.1, 0.6], size=shape)
    return collected, generator.uniform(0.5, 1.5, size=shape[0]).astype(np.float32)


@jax.jit
def run(collected, measurements):
    """The statistics after each rollout, [R] of each."""
    length = collected.shape[1]

    def count(statistics, rollout):
        env_steps, collected, weight = rollout
        statistics = _two_colors_statistics.update(
            statistics, env_steps, collected, {"weight": weight}
        )
        return statistics, statistics

    env_steps = length * (1 + jnp.arange(collected.shape[0]))
    rollouts = env_steps, collected, measurements
    return jax.lax.scan(count, _two_colors_statistics.init(("weight",)), rollouts)[1]


def count_one(length, env_steps):
    """Statistics of zeros after one rollout with measurement 1, by its last step."""
    return _two_colors_statistics.update(
        _two_colors_statistics.init(("weight",)),
        jnp.int32(env_steps),
        jnp.zeros(length, jnp.int32),
        {"weight": jnp.ones(())},
    )


def recount(collected, measurements):
    """The row of every 10,000 steps, each from all that came before it."""
    length = collected.shape[1]
    rewards = np.where(collected == 0, -0.04, collected).ravel()
    weights = [float(weight) for weight in measurements]

    def weight_of_step(number):
        return weights[(number - 1) // length]

    def row(end):
        total_reward = float(rewards[:end].sum())
        since_row = range(end - 10_000 + 1, end + 1)
        # Of the current cycle if it has come to its step 3,333, as it has in every row.
        after_flip = (end - 1) // 100_000 * 100_000 + 3_333
        # Of the last full cycle; the first rollout before there is one.
        cycle_end = end // 100_000 * 100_000 or 1
        return {
            "env_steps": end,
            "total_reward": total_reward,
            "reward_per_step": float(rewards[end - 10_000 : end].mean()),
            "weight": float(np.mean([weight_of_step(n) for n in since_row])),
            "weight_after_flip": weight_of_step(after_flip),
            "weight_cycle_end": weight_of_step(cycle_end),
        }

    return [row(end) for end in range(10_000, rewards.size + 1, 10_000)]


def assert_rows_equal(actual, expected):
    """Column by column, to the rounding of a float32 sum."""
    assert actual.keys() == expected[0].keys()
    for name, column in actual.items():
        np.testing.assert_allclose(
            column, [row[name] for row in expected], rtol=1e-5, err_msg=name
        )


def test_good_and_bad_rewards_are_counted():
    """After every rollout, the +1 and the −1 of all steps so far."""
    collected, measurements = make_rollouts(1_600)
    statistics = run(collected, measurements)
    for count, value in [(statistics.good, 1), (statistics.bad, -1)]:
        expected = np.cumsum(np.sum(collected == value, axis=1))
        assert expected[-1] > 100
        np.testing.assert_array_equal(count, expected)


def test_rows_match_a_recount():
    """25 rows over two flips, at every multiple of 10,000 steps and only there."""
    collected, measurements = make_rollouts(250_000)
    latched = run(collected, measurements).row
    # 625 rollouts of 16 steps each; between them the last row stays.
    is_due = np.arange(1, 15_626) % 625 == 0
    assert_rows_equal(
        {name: column[is_due] for name, column in latched.items()},
        recount(collected, measurements),
    )
    for column in latched.values():
        changed = np.diff(np.asarray(column), prepend=0.0) != 0
        assert not np.any(changed & ~is_due)


@pytest.mark.parametrize(
    ("length", "env_steps", "expected"),
    [
        (16, 3_328, False),  # Steps 3,313 to 3,328.
        (16, 3_344, True),  # 3,329 to 3,344.
        (16, 3_360, False),
        (4, 3_332, False),
        (4, 3_336, True),  # 3,333 is its first.
        (1, 3_333, True),
        (1, 3_334, False),
        (16, 103_344, True),  # 103,329 to 103,344.
        (16, 203_328, False),
        (10_000, 110_000, True),
        (10_000, 100_000, False),
    ],
)
def test_after_flip_is_the_rollout_with_step_3333_of_a_cycle(
    length, env_steps, expected
):
    """One rollout, by the step that it ends at: kept or not."""
    assert count_one(length, env_steps).after_flip["weight"] == expected


@pytest.mark.parametrize(
    ("length", "env_steps", "expected"),
    [
        (16, 99_984, False),
        (16, 100_000, True),
        (16, 100_016, False),
        (1, 99_999, False),
        (1, 100_001, False),
        (16, 10_000_000, True),
    ],
)
def test_cycle_end_is_the_last_rollout_of_a_cycle(length, env_steps, expected):
    """One rollout, by the step that it ends at: kept or not."""
    assert count_one(length, env_steps).cycle_end["weight"] == expected


def test_before_the_first_flip_the_first_rollout_stands_in():
    """Until step 3,333 (rollout 209) and until step 100,000 (rollout 6,250)."""
    collected, measurements = make_rollouts(100_000)
    statistics = run(collected, measurements)
    after_flip, cycle_end = measurements.copy(), measurements.copy()
    after_flip[:208], after_flip[208:] = measurements[0], measurements[208]
    cycle_end[:-1] = measurements[0]
    np.testing.assert_array_equal(statistics.after_flip["weight"], after_flip)
    np.testing.assert_array_equal(statistics.cycle_end["weight"], cycle_end)


def test_total_reward_does_not_drift_in_ten_million_steps():
    """The counts are integers, so only the product with −0.04 and the sum round.

    Each by 2⁻²⁴ of its result at most, and −0.04 itself by as much. The sum is larger
    than the product here, so that 2⁻²³, one unit in the last place, bounds them all.
    """
    collected, measurements = make_rollouts(10_000_000)
    row = run(collected, measurements).row
    good, bad = np.sum(collected == 1), np.sum(collected == -1)
    other = 10_000_000 - good - bad
    expected = good - bad - fractions.Fraction(4, 100) * int(other)
    assert row["env_steps"][-1] == 10_000_000
    assert float(row["total_reward"][-1]) == pytest.approx(float(expected), rel=2**-23)


def test_rows_are_picked_from_meta_updates_longer_than_a_rollout():
    """Three chunks of 178 meta-updates of 7 · 16 = 112 steps, 19,936 steps each.

    No meta-update ends at a multiple of 10,000 but every 7 · 10,000th step. One row
    falls due in the first chunk, and is repeated; two in each of the others.
    """
    collected, measurements = make_rollouts(3 * 19_936)
    after_meta_update = {
        name: column[6::7] for name, column in run(collected, measurements).row.items()
    }
    picked = [
        _two_colors_statistics.rows(
            {
                name: column[178 * chunk : 178 * (chunk + 1)]
                for name, column in after_meta_update.items()
            },
            jnp.int32(19_936 * chunk),
            num_rows=2,
        )
        for chunk in range(3)
    ]
    picked = {name: np.ravel([chunk[name] for chunk in picked]) for name in picked[0]}
    one, *others = recount(collected, measurements)
    assert_rows_equal(picked, [one, one, *others])


def test_rows_repeat_the_row_before_where_none_fell_due():
    """89 meta-updates of 112 steps: 9,968 steps hold no multiple of 10,000.

    From the start that row is the one of zeros; the next 9,968 steps hold 10,000.
    """
    collected, measurements = make_rollouts(2 * 9_968)
    latched = {name: x[6::7] for name, x in run(collected, measurements).row.items()}
    first, second = (
        _two_colors_statistics.rows(
            {name: column[chunk] for name, column in latched.items()},
            jnp.int32(env_steps),
            num_rows=1,
        )
        for chunk, env_steps in [(slice(0, 89), 0), (slice(89, None), 9_968)]
    )
    for column in first.values():
        np.testing.assert_array_equal(column, [0])
    assert_rows_equal(second, recount(collected, measurements))


def test_no_derivative_flows_through_statistics():
    """Of anything they hold, at any time: 110 rollouts, with a flip among them."""
    collected, measurements = make_rollouts(110_000, length=1_000)

    def everything(measurements):
        leaves = jax.tree.leaves(run(collected, measurements))
        return sum(jnp.sum(leaf.astype(jnp.float32)) for leaf in leaves)

    value, gradient = jax.value_and_grad(everything)(jnp.asarray(measurements))
    assert value != everything(2 * measurements)  # They do hold the measurements.
    np.testing.assert_array_equal(gradient, 0.0)


def test_states_that_features_are_measured_on_are_distinct_and_the_same_always():
    """No two of agent, blue and red share a cell, and few states come twice."""
    cells = _two_colors_statistics._probed()
    assert cells.shape == (_two_colors_statistics.PROBED, 3)
    assert all(len(set(row)) == 3 for row in cells.tolist())
    assert len(np.unique(cells, axis=0)) > 0.9 * _two_colors_statistics.PROBED
    np.testing.assert_array_equal(cells, _two_colors_statistics._probed())


def test_dead_units_and_rank_are_those_of_the_last_hidden_layer():
    """Of eight units two never fire, and four are the same one."""
    network = networks.mlp((16, 8), 4)
    params = network.init(jax.random.key(0), jnp.zeros(two_colors.OBSERVATION_SIZE))
    last = params["mlp/~/linear_1"]
    last["b"] = jnp.array([-99.0, -99.0, *[1.0] * 6])
    last["w"] = last["w"].at[:, 4:8].set(last["w"][:, 4:5])
    found = _two_colors_statistics.of_features(params)
    assert found["dead_units"] == 0.25
    assert 1 <= found["feature_rank"] <= 3
