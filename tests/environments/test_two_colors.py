"""Two-colors against its docstring, and against its exact dynamic program."""

import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.environments import two_colors

UP, DOWN, LEFT, RIGHT = range(4)
compiled_step = jax.jit(two_colors.step)
HALF = np.float32(0.5)  # A uniform, where any will do.
BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))  # 1 − 2⁻²⁴.
# All 25 · 24 · 23 = 13,800 places of the three objects: [13800] each.
AGENT, BLUE, RED = np.array(list(itertools.permutations(range(25), 3))).T
# [4, 25]: the cell that each action leads to from each cell; a wall keeps it.
DESTINATION = np.array(
    [
        [
            5 * min(max(cell // 5 + down, 0), 4) + min(max(cell % 5 + right, 0), 4)
            for cell in range(25)
        ]
        for down, right in [(-1, 0), (1, 0), (0, -1), (0, 1)]
    ]
)


def make_state(agent, blue, red, steps=0):
    """The state of one environment, or of as many as the cells have rows."""
    steps = np.broadcast_to(steps, np.shape(agent))
    return two_colors.State(*(jnp.int32(x) for x in (agent, blue, red, steps)))


def all_reaching_moves():
    """Every layout and action that reaches a square: the state, the action."""
    layout, action = np.meshgrid(np.arange(AGENT.size), np.arange(4), indexing="ij")
    target = DESTINATION[action, AGENT[layout]]
    reaches = (target == BLUE[layout]) | (target == RED[layout])
    layout, action = layout[reaches], action[reaches]
    return make_state(AGENT[layout], BLUE[layout], RED[layout]), jnp.int32(action)


def chi_square(counts):
    """Σ (observed − expected)² / expected under equal chances."""
    counts = np.asarray(counts)
    expected = counts.sum(-1, keepdims=True) / counts.shape[-1]
    return np.sum((counts - expected) ** 2 / expected, axis=-1)


def chi_square_bound(num_cells):
    """Mean and five standard deviations: d and √(2d) with d = cells − 1."""
    freedom = num_cells - 1
    return freedom + 5 * np.sqrt(2 * freedom)


def solve_average_reward(combine):
    """Reward per step and relative values, by relative value iteration.

        h(s) ← combineₐ E[r + h(s′)] − the same in a reference state

    Args:
        combine: np.max over actions for the optimal policy, np.mean for the random one.

    Returns:
        The gain; h [25, 25, 25] by cell of agent, good and bad square; the values of
        the four actions [4, 25, 25, 25].
    """
    agent, good, bad = np.ogrid[:25, :25, :25]
    is_layout = (agent != good) & (agent != bad) & (good != bad)
    h = np.zeros((25, 25, 25))
    while True:
        # What arriving on a cell is worth. A reached square goes to one of the 23 free
        # cells; the other two entries of the sum are no layouts, and zero.
        arrival = np.where(
            agent == good,
            1.0 + h.sum(axis=1, keepdims=True) / 23,
            np.where(agent == bad, -1.0 + h.sum(axis=2, keepdims=True) / 23, -0.04 + h),
        )
        action_values = arrival[DESTINATION]
        backup = combine(action_values, axis=0)
        # The gain lies between the smallest and the largest change.
        change = (backup - h)[is_layout]
        if np.ptp(change) < 1e-8:
            return change.mean(), h, action_values
        h = np.where(is_layout, backup - backup[0, 1, 2], 0.0)


def mean_rewards(choose_action, num_streams=128, num_steps=two_colors.CYCLE_STEPS):
    """[num_streams] rewards per step of independent streams in their first cycle."""

    def act(state, key):
        noise, respawn = jax.random.uniform(key, (2, num_streams))
        action = choose_action(state, noise)
        state, outcome = jax.vmap(two_colors.step)(state, action, respawn)
        return state, outcome.reward

    @jax.jit
    def run(key):
        reset_key, key = jax.random.split(key)
        state = jax.vmap(two_colors.reset)(jax.random.split(reset_key, num_streams))
        return jax.lax.scan(act, state, jax.random.split(key, num_steps))[1]

    rewards = np.asarray(run(jax.random.key(0)))
    return rewards.mean(axis=0, dtype=np.float64)  # float32 would lose digits.


def assert_earns(rewards, gain, h):
    """The mean of independent streams is the gain, to five standard errors.

    Σ r = T · gain + h(s₀) − h(s_T) + a martingale of mean zero: the choice of s₀ biases
    a stream's mean by at most span(h) / T, and the rest averages out over streams, with
    a standard error of std / √streams.
    """
    error = 5 * rewards.std(ddof=1) / np.sqrt(rewards.size)
    error += np.ptp(h) / two_colors.CYCLE_STEPS
    assert error < 0.01 * abs(gain)  # Or the next line would say little.
    assert abs(rewards.mean() - gain) < error


def test_observations_are_six_one_hots_of_blue_red_and_agent():
    """Appendix B.1: 2 · 3 · 5 = 30 numbers; here (row, column) of each, in order."""
    observations = jax.vmap(two_colors.observe)(make_state(AGENT, BLUE, RED))
    chex.assert_shape(observations, (13_800, 30))
    chex.assert_type(observations, jnp.float32)
    blocks = np.asarray(observations).reshape(-1, 6, 5)
    assert set(np.unique(blocks)) == {0.0, 1.0}
    np.testing.assert_array_equal(blocks.sum(-1), 1.0)
    decoded = blocks.argmax(-1).T
    expected = [BLUE // 5, BLUE % 5, RED // 5, RED % 5, AGENT // 5, AGENT % 5]
    np.testing.assert_array_equal(decoded, expected)


def test_reset_puts_three_objects_on_distinct_cells_uniformly():
    """No steps taken, no shared cell, and each object on each cell equally often."""
    keys = jax.random.split(jax.random.key(0), 25_000)
    state = jax.jit(jax.vmap(two_colors.reset))(keys)
    np.testing.assert_array_equal(state.steps, 0)
    agent, blue, red = (np.asarray(cells) for cells in state[:3])
    assert np.all((agent != blue) & (agent != red) & (blue != red))
    # 1,000 expected on each cell, 1,000 / 24 on each ordered pair of cells.
    counts = [np.bincount(cells, minlength=25) for cells in (agent, blue, red)]
    assert np.all(chi_square(counts) < chi_square_bound(25))
    for one, other in [(agent, blue), (agent, red), (blue, red)]:
        pairs = np.bincount(25 * one + other, minlength=625).reshape(25, 25)
        pairs = pairs[~np.eye(25, dtype=bool)]
        assert chi_square(pairs) < chi_square_bound(600)


@pytest.mark.parametrize(
    ("action", "expected"), [(UP, 7), (DOWN, 17), (LEFT, 11), (RIGHT, 13)]
)
def test_actions_move_the_agent_one_cell(action, expected):
    """From the center, cell 2 · 5 + 2 = 12: a row is 5 cells, a column is 1."""
    state, _ = compiled_step(make_state(12, 0, 24), action, HALF)
    assert state.agent == expected


@pytest.mark.parametrize(
    ("action", "wall"),
    [
        (UP, range(0, 5)),
        (DOWN, range(20, 25)),
        (LEFT, range(0, 25, 5)),
        (RIGHT, range(4, 25, 5)),
    ],
)
def test_a_move_into_a_wall_stays_and_pays_a_step(action, wall):
    """Of the five cells at the wall, with the squares anywhere else."""
    at_wall = np.isin(AGENT, wall)  # 5 · 24 · 23 layouts.
    assert at_wall.sum() == 2_760
    before = make_state(AGENT[at_wall], BLUE[at_wall], RED[at_wall])
    step = jax.vmap(compiled_step, in_axes=(0, None, None))
    after, outcome = step(before, action, HALF)
    chex.assert_trees_all_equal(after[:3], before[:3])
    np.testing.assert_array_equal(outcome.reward, np.float32(-0.04))
    np.testing.assert_array_equal(outcome.collected, 0)


@pytest.mark.parametrize("action", [UP, DOWN, LEFT, RIGHT])
def test_only_the_reached_square_moves(action):
    """From every layout: who moves, and that no two objects ever share a cell."""
    before = make_state(AGENT, BLUE, RED)
    uniforms = jax.random.uniform(jax.random.key(0), AGENT.shape)
    step = jax.vmap(compiled_step, in_axes=(0, None, 0))
    after, _ = step(before, action, uniforms)
    agent, blue, red = (np.asarray(cells) for cells in after[:3])
    np.testing.assert_array_equal(agent, DESTINATION[action, AGENT])
    # A reached square cannot come back to its cell, where the agent now stands.
    np.testing.assert_array_equal(blue != BLUE, agent == BLUE)
    np.testing.assert_array_equal(red != RED, agent == RED)
    assert np.all((agent != blue) & (agent != red) & (blue != red))
    for cells in (agent, blue, red):
        assert np.all((cells >= 0) & (cells < 25))


def test_a_reached_square_goes_to_each_free_cell_equally_often():
    """Exactly: 230 equally spaced uniforms, from every layout next to a square.

    The uniforms are the midpoints of 230 intervals, so ten fall into each of the 23
    cells that hold neither the agent nor the other square.
    """
    before, action = all_reaching_moves()
    assert action.size == 80 * 23 * 2  # Pairs of neighbors, other square, which color.
    uniforms = (jnp.arange(230) + 0.5) / 230
    step = jax.vmap(two_colors.step, in_axes=(0, 0, None))
    after, _ = jax.jit(jax.vmap(step, in_axes=(None, None, 0)))(
        before, action, uniforms
    )
    agent = np.asarray(after.agent[0])
    reaches_blue = agent == before.blue
    moved = np.where(reaches_blue, after.blue, after.red)  # [230, moves].
    other = np.where(reaches_blue, before.red, before.blue)
    counts = np.sum(moved[..., None] == np.arange(25, dtype=np.int32), axis=0)
    expected = np.full_like(counts, 10)
    np.put_along_axis(expected, agent[:, None], 0, axis=1)
    np.put_along_axis(expected, other[:, None], 0, axis=1)
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize(
    ("uniform", "expected"),
    [
        (0.0, 0),  # The first free cell.
        (1 / 23 - 1e-6, 0),
        (1 / 23 + 1e-6, 3),  # The second: 1 holds the agent, and 2 the other square.
        (BELOW_ONE, 24),  # The last.
    ],
)
def test_the_extreme_uniforms_reach_the_first_and_the_last_free_cell(uniform, expected):
    """0 ≤ uniform < 1: both ends of the float32 numbers in it, and one cell's edge."""
    state, _ = compiled_step(make_state(6, 1, 2), UP, jnp.float32(uniform))
    assert state.blue == expected


def test_a_reached_square_is_uniform_over_drawn_numbers():
    """With jax.random's own uniforms: 1,000 expected on each of 23 cells."""
    uniforms = jax.random.uniform(jax.random.key(0), (23_000,))
    step = jax.vmap(compiled_step, in_axes=(None, None, 0))
    state, _ = step(make_state(agent=17, blue=3, red=12), UP, uniforms)
    counts = np.bincount(state.red, minlength=25)
    np.testing.assert_array_equal(counts[[3, 12]], 0)
    assert chi_square(np.delete(counts, [3, 12])) < chi_square_bound(23)


@pytest.mark.parametrize(
    ("step_number", "blue_pays"),
    [
        (1, 1),
        (100_000, 1),  # The last of the first cycle.
        (100_001, -1),
        (200_000, -1),
        (200_001, 1),
        (10_000_000, -1),  # The last of the 100th cycle.
    ],
)
def test_rewards_flip_after_every_100_000_steps(step_number, blue_pays):
    """Step number n starts with n − 1 steps taken; red pays the opposite of blue."""
    state = make_state(agent=12, blue=7, red=17, steps=step_number - 1)
    for action, expected in [(UP, blue_pays), (DOWN, -blue_pays), (LEFT, -0.04)]:
        after, outcome = compiled_step(state, action, HALF)
        assert outcome.reward == np.float32(expected)
        assert outcome.collected == round(expected)  # Neither: round(−0.04) = 0.
        assert after.steps == step_number
        chex.assert_type([outcome.reward, outcome.collected], [jnp.float32, jnp.int32])


def test_step_is_the_same_under_jit_and_vmap():
    """Purity: 5 states at once, or one at a time without jit."""
    before, action = all_reaching_moves()
    before, action = jax.tree.map(lambda x: x[::736], (before, action))
    uniforms = jax.random.uniform(jax.random.key(0), action.shape)
    together = jax.jit(jax.vmap(two_colors.step))(before, action, uniforms)
    for i in range(action.size):
        one_state = jax.tree.map(lambda x, i=i: x[i], before)
        with jax.disable_jit():
            alone = two_colors.step(one_state, action[i], uniforms[i])
        chex.assert_trees_all_equal(
            alone, jax.tree.map(lambda x, i=i: x[i], together), strict=True
        )


def test_a_random_policy_earns_its_exact_average():
    """−3.86k per 100,000 steps, by the dynamic program and in the environment."""
    gain, h, _ = solve_average_reward(np.mean)
    assert gain == pytest.approx(-0.0386, abs=5e-5)  # As many digits as are known.
    rewards = mean_rewards(lambda state, noise: (4 * noise).astype(jnp.int32))
    assert_earns(rewards, gain, h)


def test_the_optimal_policy_earns_its_exact_average():
    """27.9k per 100,000 steps; 26.9k if both squares moved, or all three objects."""
    gain, h, action_values = solve_average_reward(np.max)
    assert gain == pytest.approx(0.2789, abs=5e-5)
    policy = jnp.asarray(action_values.argmax(axis=0))  # Blue is good in cycle 1.
    rewards = mean_rewards(
        lambda s, noise: policy[s.agent, s.blue, s.red], num_streams=32
    )
    assert_earns(rewards, gain, h)
