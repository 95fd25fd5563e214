"""MinAtar's games against the package of Young and Tian, step by step."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bmg_sweeps.environments.minatar import breakout, space_invaders, worlds

minatar = pytest.importorskip("minatar")

NUM_STEPS = 6_000  # Half of them at random, half played well.
STAY, LEFT, UP, RIGHT, DOWN, FIRE = range(6)  # The reference's n, l, u, r, d, f.


class Play(NamedTuple):
    """What the reference did; the first axis is steps."""

    actions: np.ndarray  # [N] in the minimal set, after sticking.
    uniforms: np.ndarray  # [N, U] that make our step draw what the reference drew.
    observations: np.ndarray  # [N, 10, 10, C] after the step, before the reset.
    rewards: np.ndarray  # [N].
    ends: np.ndarray  # [N] bool.
    ramps: np.ndarray  # [N] how often the game has become harder in its episode.
    fresh_uniforms: np.ndarray  # [N, U] of the reset after the step, if any.


class Recorded(np.random.RandomState):
    """Keeps what it gave since it was last asked."""

    def __init__(self, seed):
        super().__init__(seed)
        self.draws = []

    def rand(self, *shape):
        """Draws uniform numbers."""
        draw = super().rand(*shape)
        self.draws.append(draw)
        return draw

    def randint(self, low, high=None, size=None):
        """Draws one of `low`, or many from `low` to `high`."""
        draw = super().randint(low, high, size)
        # One of n is kept as the middle of its n-th part of [0, 1); of many we keep a
        # copy, as the reference changes them in place.
        self.draws.append((draw + 0.5) / low if high is None else draw.copy())
        return draw

    def taken(self):
        """Gives what was drawn since the last call."""
        draws, self.draws = self.draws, []
        return draws


def breakout_uniforms(draws):
    """One of two sides."""
    return draws or [0.5]


def space_invaders_uniforms(draws):
    """None."""
    assert not draws
    return []


def freeway_uniforms(draws):
    """Eight speeds 1 … 5 and eight directions: two times four digits."""
    if not draws:
        return [0.5, 0.5]
    speeds, signs = draws
    digits = (speeds - 1 + 5 * (signs > 0.5)).reshape(2, 4)
    return (digits @ [1, 10, 100, 1000] + 0.5) / 10_000


def asterix_uniforms(draws):
    """Side, kind, and one of the empty rows, unless none is empty."""
    if not draws:
        return [0.5]
    side, kind, place = (*draws, 0.5)[:3]
    return [((side >= 1 / 2) + 2 * (kind >= 1 / 3) + place) / 6]


def follow_the_ball(observation, rng):
    """Breakout: the paddle goes where the ball will be."""
    paddle = observation[9, :, 0].argmax()
    ball, last = (observation[:, :, i].any(0).argmax() for i in (1, 2))
    ahead = np.clip(ball + (ball - last), 0, 9)
    return [LEFT, STAY, RIGHT][np.sign(ahead - paddle) + 1]


def shoot_and_evade(observation, rng):
    """Space Invaders: under an alien, but not under a bullet that falls on it."""
    cannon = observation[9, :, 0].argmax()
    aliens = np.flatnonzero(observation[:, :, 1].any(0))
    goal = aliens[np.abs(aliens - cannon).argmin()]
    wishes = [[LEFT, FIRE], [FIRE], [RIGHT, FIRE]][np.sign(goal - cannon) + 1]
    for action in rng.permutation(wishes).tolist() + rng.permutation(4).tolist():
        action = {2: FIRE}.get(action, action)
        column = np.clip(cannon + (action == RIGHT) - (action == LEFT), 0, 9)
        if not observation[8, column, 5]:
            return action
    return STAY


def cross(observation, rng):
    """Freeway: up."""
    return UP


def evade(observation, rng):
    """Asterix: towards gold and the middle, but not near an enemy."""
    row, column = np.argwhere(observation[:, :, 0])[0]
    best, best_value = STAY, -np.inf
    for action, (down, right) in enumerate([(0, 0), (0, -1), (-1, 0), (0, 1), (1, 0)]):
        r, c = np.clip(row + down, 1, 8), np.clip(column + right, 0, 9)
        enemies = np.abs(np.flatnonzero(observation[r, :, 1]) - c)
        gold = np.argwhere(observation[:, :, 3]) - [r, c]
        value = -10 * np.any(enemies <= 2) - 5 * np.any(enemies <= 1)
        value -= np.abs(gold).sum(1).min(initial=20) * 0.2 + abs(c - 4.5) * 0.1
        value += rng.uniform(0, 0.1)
        if value > best_value:
            best, best_value = action, value
    return best


UNIFORMS = {
    "asterix": asterix_uniforms,
    "breakout": breakout_uniforms,
    "freeway": freeway_uniforms,
    "space_invaders": space_invaders_uniforms,
}
PLAYED_WELL = {
    "asterix": evade,
    "breakout": follow_the_ball,
    "freeway": cross,
    "space_invaders": shoot_and_evade,
}


# A return above 30 in Breakout needs new bricks, one above 24 in Space Invaders a new
# wave. Asterix gets faster eight or nine times until it is at its fastest.
COVERS = {
    "asterix": (40, 8),
    "breakout": (200, 0),
    "freeway": (15, 0),
    "space_invaders": (30, 0),
}


def play_reference(name, seed):
    """The uniforms of the first reset, the observation after it, what followed."""
    environment = minatar.Environment(name)  # Sticky actions at 0.1, and ramping.
    environment.seed(seed)
    recorded = environment.env.random = Recorded(seed)
    rng = np.random.default_rng(seed)
    actions = environment.minimal_action_set()

    def uniforms():
        return np.array(UNIFORMS[name](recorded.taken()), np.float32)

    environment.reset()
    first = uniforms(), environment.state()
    rows = []
    for i in range(NUM_STEPS):
        if i < NUM_STEPS / 2:
            action = rng.choice(actions)
        else:
            environment.sticky_action_prob = 0.0
            action = PLAYED_WELL[name](environment.state(), rng)
        reward, is_over = environment.act(action)
        row = [actions.index(environment.last_action), uniforms(), environment.state()]
        row += [reward, is_over, environment.env.difficulty_ramp() or 0]
        if is_over:
            environment.reset()
        rows.append([*row, uniforms()])
    return first, Play(*(np.array(column) for column in zip(*rows, strict=True)))


def play_ours(game, first_uniforms, play):
    """The same with our game: observations, rewards, ends; and the first observation.

    Jitted once a game, as all plays have the same length.
    """

    def act(state, inputs):
        action, uniforms, fresh_uniforms = inputs
        state, reward, is_over = game.step(state, action, uniforms)
        outcome = game.observe(state), reward, is_over
        fresh = game.reset(fresh_uniforms)
        return jax.tree.map(
            lambda x, y: jnp.where(is_over, x, y), fresh, state
        ), outcome

    state = game.reset(jnp.asarray(first_uniforms))
    inputs = play.actions, play.uniforms, play.fresh_uniforms
    return game.observe(state), jax.lax.scan(
        act, state, jax.tree.map(jnp.asarray, inputs)
    )[1]


def covered(play):
    """The best return of an episode, and how often a game became harder."""
    starts = np.concatenate([[0], np.flatnonzero(play.ends)[:-1] + 1])
    return np.add.reduceat(play.rewards, starts).max(), play.ramps.max()


@functools.cache
def jitted(name):
    return jax.jit(functools.partial(play_ours, worlds.GAMES[name]))


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted(worlds.GAMES))
def test_a_game_is_the_reference_step_by_step(name, seed):
    """Every cell of every observation, every reward and every end."""
    (first_uniforms, first_observation), play = play_reference(name, seed)
    first, (observations, rewards, ends) = jitted(name)(first_uniforms, play)
    np.testing.assert_array_equal(first, first_observation)
    np.testing.assert_array_equal(ends, play.ends)
    np.testing.assert_array_equal(rewards, play.rewards)
    np.testing.assert_array_equal(observations, play.observations)
    assert np.all(np.array(covered(play)) >= COVERS[name])


@functools.cache
def jitted_step(name):
    """A step and what is seen after it, of a game whose steps draw nothing."""
    game = worlds.GAMES[name]

    @jax.jit
    def step(state, action):
        after = game.step(state, action, jnp.zeros(game.NUM_UNIFORMS))
        return *after, game.observe(after[0])

    return step


def assert_same_step(reference, state, rng):
    """Takes one step in both, played well; gives our state and whether it ended."""
    name = reference.game_name()
    action = PLAYED_WELL[name](reference.state(), rng)
    done = reference.minimal_action_set().index(action)
    state, reward, is_over, observation = jitted_step(name)(state, done)
    assert (reward, is_over) == reference.act(action)
    np.testing.assert_array_equal(observation, reference.state())
    return state, bool(is_over)


def test_waves_get_faster_as_in_the_reference():
    """Space Invaders, where each wave has 40 steps to march, then is shot by us.

    The longest wait shows with 12 aliens or more; six waves bring it to its least.
    """
    reference = minatar.Environment("space_invaders", sticky_action_prob=0.0)
    rng = np.random.default_rng(0)
    state = space_invaders.reset(jnp.zeros(0))
    for i in range(400):
        if i % 40 == 39:
            # The last alien stands above a row of bullets.
            reference.env.alien_map[:] = reference.env.f_bullet_map[:] = 0
            reference.env.alien_map[4, 5] = reference.env.f_bullet_map[5] = 1
            state = state._replace(
                aliens=jnp.array(reference.env.alien_map, bool),
                bullets=jnp.array(reference.env.f_bullet_map, bool),
            )
        state, is_over = assert_same_step(reference, state, rng)
        assert not is_over
        assert state.longest_wait == max(12 - (i + 1) // 40, 6)


def test_aliens_land_as_in_the_reference():
    """Space Invaders from waves that are nearly down, in rows 6 to 9."""
    reference = minatar.Environment("space_invaders", sticky_action_prob=0.0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        reference.reset()
        reference.env.alien_map[:] = 0
        reference.env.alien_map[6:, 1:9] = rng.random((4, 8)) < 0.3
        aliens = jnp.array(reference.env.alien_map, bool)
        state = space_invaders.reset(jnp.zeros(0))._replace(aliens=aliens)
        is_over = False
        while not is_over:
            state, is_over = assert_same_step(reference, state, rng)


def test_bricks_break_as_in_the_reference_wherever_they_are():
    """Breakout from random bricks, among which a ball meets two in a row."""
    reference = minatar.Environment("breakout", sticky_action_prob=0.0)
    reference.seed(0)
    rng = np.random.default_rng(0)
    passes_through = 0
    for _ in range(40):
        reference.reset()
        reference.env.brick_map[1:4] = rng.random((3, 10)) < 0.5
        side = [0.25] if reference.env.ball_x == 0 else [0.75]
        bricks = jnp.array(reference.env.brick_map[1:4], bool)
        state = breakout.reset(jnp.array(side))._replace(bricks=bricks)
        for _ in range(60):
            was_striking = state.is_striking
            state, _ = assert_same_step(reference, state, rng)
            passes_through += was_striking & state.is_striking
    assert passes_through > 5
