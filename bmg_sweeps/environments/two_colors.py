"""Two-colors: a grid world whose rewards flip, for agents without memory.

The agent walks a 5 × 5 grid with a blue and a red square. Reaching one pays +1 and the
other −1, and that square moves to a free cell; every other step pays −0.04. Every
100,000 steps the two rewards change places. There are no episodes. A memory-less agent
cannot see the flip: it must raise its exploration to notice it.

Source: Flennerhag et al. (2022), Appendix B.1. Not stated there, and chosen here:
the three objects start on distinct random cells; a move into a wall leaves the agent
in place; only the square that was reached moves, uniformly over the cells that hold
neither the agent nor the other square; the step that follows the 100,000th is the
first to pay the flipped rewards.
"""

from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

SIZE = 5  # Cells along each side.
NUM_CELLS = SIZE * SIZE
NUM_ACTIONS = 4
OBSERVATION_SIZE = 2 * 3 * SIZE  # Two coordinates of three objects, one-hot.
CYCLE_STEPS = 100_000  # Environment steps between flips.
STEP_REWARD = -0.04

_MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))  # Up, down, left, right: (row, column).


class State(NamedTuple):
    """Where everything is. A cell is row · SIZE + column."""

    agent: jax.Array  # [] int32 cell.
    blue: jax.Array  # [] int32 cell; pays +1 in even cycles, −1 in odd ones.
    red: jax.Array  # [] int32 cell; pays the opposite.
    steps: jax.Array  # [] int32 environment steps taken.


class Outcome(NamedTuple):
    """What one step paid, and why."""

    reward: jax.Array  # [] float32.
    collected: jax.Array  # [] int32: 1 the good square, −1 the bad one, 0 neither.


class Rollout(NamedTuple):
    """τ: what an agent saw, did and was paid in N steps."""

    observations: jax.Array  # [N + 1, 30] s_0 … s_N.
    actions: jax.Array  # [N] int32.
    rewards: jax.Array  # [N].
    collected: jax.Array  # [N] int32, as in `Outcome`.


def reset(key: chex.PRNGKey) -> State:
    """Places the agent and both squares on distinct random cells.

    Args:
        key: consumed here.

    Returns:
        A state with no steps taken.
    """
    cells = jax.random.choice(key, NUM_CELLS, (3,), replace=False)
    agent, blue, red = cells.astype(jnp.int32)
    return State(agent, blue, red, steps=jnp.zeros((), jnp.int32))


def observe(state: State) -> jax.Array:
    """Encodes the coordinates of blue, red and agent as six one-hot vectors.

    Source: Flennerhag et al. (2022), Appendix B.1.

    Args:
        state: of one environment.

    Returns:
        [30] float32: row and column of blue, of red, of the agent.
    """
    cells = jnp.stack([state.blue, state.red, state.agent])
    coordinates = jnp.stack([cells // SIZE, cells % SIZE], axis=-1)
    return jax.nn.one_hot(coordinates, SIZE).reshape(OBSERVATION_SIZE)


def step(state: State, action: jax.Array, uniform: jax.Array) -> tuple[State, Outcome]:
    """Moves the agent; pays; moves the square that was reached.

    Args:
        state: before the step.
        action: [] int, 0 … 3 for up, down, left, right.
        uniform: [] a uniform number in [0, 1): where a reached square goes. Drawn by
            the caller, so that a rollout draws all of its numbers at once.

    Returns:
        The state after the step, and its outcome.
    """
    agent = _move(state.agent, action)
    reached_blue, reached_red = agent == state.blue, agent == state.red
    blue = jnp.where(reached_blue, _free_cell(uniform, agent, state.red), state.blue)
    red = jnp.where(reached_red, _free_cell(uniform, agent, state.blue), state.red)
    blue_pays = 1 - 2 * ((state.steps // CYCLE_STEPS) % 2)
    collected = blue_pays * (reached_blue.astype(jnp.int32) - reached_red)
    reward = jnp.where(collected == 0, STEP_REWARD, collected.astype(jnp.float32))
    return State(agent, blue, red, state.steps + 1), Outcome(reward, collected)


def collect(
    key: chex.PRNGKey,
    state: State,
    policy: Callable[[jax.Array], tuple[jax.Array, chex.ArrayTree]],
    length: int,
) -> tuple[State, Rollout, chex.ArrayTree]:
    """Acts for a number of steps, a ~ π(· | s).

    Source: Flennerhag et al. (2022), Algorithm 1.

    Args:
        key: consumed here.
        state: to go on from.
        policy: observation [30] ↦ logits [4], and what is to be kept of them.
        length: N, environment steps.

    Returns:
        The state after them, what happened, and what was kept, [N, ...].

    Gradient: none; callers stop it at what `policy` holds.
    """
    action_key, respawn_key = jax.random.split(key)
    # A categorical sample is the largest of logits plus Gumbel noise; drawn here for
    # all steps at once, which is faster than a draw a step.
    gumbels = jax.random.gumbel(action_key, (length, NUM_ACTIONS))
    uniforms = jax.random.uniform(respawn_key, (length,))

    def act(state: State, noise: tuple[jax.Array, jax.Array]):
        gumbel, uniform = noise
        observation = observe(state)
        logits, kept = policy(observation)
        action = jnp.argmax(logits + gumbel)
        state, outcome = step(state, action, uniform)
        return state, (observation, action, outcome, kept)

    state, (observations, actions, outcomes, kept) = jax.lax.scan(
        act, state, (gumbels, uniforms)
    )
    observations = jnp.concatenate([observations, observe(state)[jnp.newaxis]])
    rollout = Rollout(observations, actions, outcomes.reward, outcomes.collected)
    return state, rollout, kept


def empty_rollout(length: int) -> Rollout:
    """Returns a rollout of zeros, shaped like those of `collect`.

    Args:
        length: N, environment steps.

    Returns:
        A placeholder for a state that has not seen a rollout yet.
    """
    return Rollout(
        observations=jnp.zeros((length + 1, OBSERVATION_SIZE)),
        actions=jnp.zeros(length, jnp.int32),
        rewards=jnp.zeros(length),
        collected=jnp.zeros(length, jnp.int32),
    )


def _move(cell: jax.Array, action: jax.Array) -> jax.Array:
    row_change, column_change = jnp.array(_MOVES, jnp.int32)[action]
    row = jnp.clip(cell // SIZE + row_change, 0, SIZE - 1)
    column = jnp.clip(cell % SIZE + column_change, 0, SIZE - 1)
    return row * SIZE + column


def _free_cell(uniform: jax.Array, taken: jax.Array, other: jax.Array) -> jax.Array:
    """Counts up to a random one of the 23 cells that are neither `taken` nor `other`.

    The two differ: the agent never stands on the square that it has not reached.
    """
    cell = (uniform * (NUM_CELLS - 2)).astype(jnp.int32)
    cell += cell >= jnp.minimum(taken, other)
    return cell + (cell >= jnp.maximum(taken, other))
