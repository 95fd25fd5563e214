"""The live source of Atari goes on from what it saved, bitwise, in a new process."""

import contextlib
import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import psutil
import pytest

from bmg_sweeps.environments import atari, frame_ring
from trainers import _atari_emulators


class State(NamedTuple):
    """What the source looks at of a trainer's state."""

    key: jax.Array


STATE = State(jax.random.key(3))
# In Freeway, something moves in every frame. The third round fills the ring, which
# wraps in the middle of a round. Games of the short one have 7 steps, spans two games.
SMALL = _atari_emulators.Settings(
    atari.Settings(
        game="freeway",
        num_environments=2,
        frame_height=32,
        frame_width=24,
        is_grayscale=True,
    ),
    unroll_length=5,
    num_online=1,
    num_replay_samples=3,
    replay_capacity=5,
)
SHORT = SMALL._replace(
    emulators=dataclasses.replace(SMALL.emulators, max_episode_frames=28, span_steps=10)
)
# Games of Road Runner end after 70 steps or so, in each environment at another step.
UNEVEN = SMALL._replace(
    emulators=dataclasses.replace(SMALL.emulators, game="road_runner", span_steps=0),
    unroll_length=20,
)


@jax.jit
def act(recent, step):
    """Any policy that depends on all that it sees, and on the step."""
    observations = frame_ring.observed(recent)
    sums = jnp.sum(observations.astype(jnp.uint32), axis=(1, 2, 3)) + step
    actions = (sums % 3).astype(jnp.int32)
    return actions, jax.random.normal(jax.random.key(sums[0]), (len(actions), 18))


@contextlib.contextmanager
def played(settings, num_rounds):
    with _atari_emulators.opened(settings) as games:
        yield games, [games.read(act, STATE) for _ in range(num_rounds)]


def assert_same(actual, expected):
    jax.tree.map(np.testing.assert_array_equal, actual, expected)


@pytest.fixture(scope="module")
def saved():
    """What is saved after two rounds of the small game."""
    with played(SMALL, 2) as (games, _):
        return [array.copy() for array in games.save()]


CASES = [
    (SMALL, 0, 1),
    pytest.param(SMALL, 1, 2, marks=pytest.mark.slow),
    (SMALL, 3, 1),
    pytest.param(SHORT, 3, 1, marks=pytest.mark.slow),
    (SHORT, 7, 2),
    (UNEVEN, 8, 1),
]


@pytest.mark.parametrize(("settings", "num_rounds", "threads"), CASES)
def test_what_is_restored_goes_on_as_if_undisturbed(settings, num_rounds, threads):
    """With an empty ring, a full one and one that wraps; and what it saves next.

    The number of threads may change.
    """
    emulators = dataclasses.replace(settings.emulators, threads=threads)
    with (
        played(settings, num_rounds) as (undisturbed, _),
        _atari_emulators.opened(settings._replace(emulators=emulators)) as restored,
    ):
        restored.restore(undisturbed.save())
        for _ in range(2):
            assert_same(restored.save(), undisturbed.save())
            assert_same(restored.read(act, STATE), undisturbed.read(act, STATE))


def test_its_shapes_open_no_emulators(monkeypatch):
    """A launch asks many points for them, of 48 emulators each."""

    def emulators(_):
        raise AssertionError("opened")

    monkeypatch.setattr(atari, "Emulators", emulators)
    with _atari_emulators.opened(SMALL) as games:
        assert games.observes.frames[0].shape == (2, 32, 24, 1)
        with pytest.raises(AssertionError, match="opened"):
            games.read(act, STATE)


def test_a_round_delivers_what_it_says_and_each_new_trajectory_once():
    """And the online ones are those that were acted, in order."""
    with played(SHORT, 2) as (games, (_, batch)):
        assert_same(
            jax.tree.map(lambda x: (x.shape, str(x.dtype)), batch),
            jax.tree.map(lambda x: (x.shape, str(x.dtype)), games.delivers),
        )
    online = batch["rewards"][:, :1].reshape(2, 5)
    np.testing.assert_array_equal(online, batch["acted_rewards"].T)
    is_over = batch["acted_game_over"].T
    np.testing.assert_array_equal(
        is_over, batch["ages"][:, :1].reshape(2, 6)[:, 1:] == 0
    )
    assert is_over.any()
    assert not (is_over & batch["continues"][:, :1].reshape(2, 5)).any()


def test_actor_and_learner_see_the_same():
    """What `act` got and gave is what the learner gets, bitwise, at every step."""
    seen, steps, given = [], [], []

    def watched(recent, step):
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), recent)
        assert shapes == games.observes
        seen.append(np.asarray(frame_ring.observed(recent)))
        steps.append(int(step))
        given.append(act(recent, step))
        return given[-1]

    with _atari_emulators.opened(SHORT) as games:
        for _ in range(3):
            batch = games.read(watched, STATE)
            stacks = frame_ring.stacked(batch["frames"][:, :1], batch["ages"][:, :1])
            stacks = np.asarray(stacks).reshape(2, 6, *seen[0].shape[1:])
            np.testing.assert_array_equal(np.stack(seen, axis=1), stacks[:, :5])
            actions, logits = map(np.stack, zip(*given, strict=True))
            np.testing.assert_array_equal(batch["actions"][:, 0], actions.T)
            np.testing.assert_array_equal(
                batch["behavior_logits"][:, 0], logits.swapaxes(0, 1)
            )
            assert steps == [0, 1, 2, 3, 4]
            for values in (seen, steps, given):
                values.clear()


def test_frames_before_the_episode_are_empty():
    """Games have 7 steps: the fourth trajectory, at 15, is preceded by one of its own.

    What went before may be too old to be acted again.
    """
    with played(SHORT, 4) as (_, batches):
        frames, ages = batches[3]["frames"][:, 0], batches[3]["ages"][:, 0]
    np.testing.assert_array_equal(ages[:, 0], 1)
    assert not frames[:, :2].any()
    assert frames[:, 2].any()


def test_a_lost_life_ends_what_counts_but_not_the_game():
    """Breakout's own: `continues` is False where no game was over."""
    breakout = dataclasses.replace(SMALL.emulators, game="breakout")
    settings = SMALL._replace(unroll_length=60, emulators=breakout)
    with played(settings, 1) as (_, (batch,)):
        continues = batch["continues"][:, :1].reshape(2, 60)
        assert (~continues & ~batch["acted_game_over"].T).any()


def test_the_run_decides_what_is_seen():
    """Another key, other no-ops."""
    with played(SMALL, 1) as (_, (one,)), _atari_emulators.opened(SMALL) as games:
        other = games.read(act, State(jax.random.key(4)))
    assert (one["frames"] != other["frames"]).any()


def test_rounds_draw_from_generators_of_their_own(monkeypatch):
    """Which are those of a run's key and the number of the round."""
    sample, drawn = frame_ring.Ring.sample, []

    def watched(ring, generator, batch):
        drawn.append(str(generator.bit_generator.state))
        sample(ring, generator, batch)

    monkeypatch.setattr(frame_ring.Ring, "sample", watched)
    for state in (STATE, STATE, State(jax.random.key(4))):
        with _atari_emulators.opened(SMALL) as games:
            for _ in range(2):
                games.read(act, state)
    assert drawn[:2] == drawn[2:4]
    assert len(set(drawn)) == 4


def damaged(arrays):
    """Every array of a save, with one number changed; and one that is missing."""
    for index, array in enumerate(arrays):
        changed = array.copy()
        changed.flat[-1] += 1
        yield [*arrays[:index], changed, *arrays[index + 1 :]]
        yield [*arrays[:index], *arrays[index + 1 :]]
    yield []


def test_what_was_not_saved_is_refused_in_one_line(saved):
    """A changed number in any array, one that is missing, other settings."""
    other = SMALL._replace(replay_capacity=6)
    with (
        _atari_emulators.opened(SMALL) as fresh,
        _atari_emulators.opened(other) as stranger,
    ):
        for damage in damaged(saved):
            with pytest.raises(ValueError, match="saved games: ") as caught:
                fresh.restore(damage)
            assert "\n" not in str(caught.value)
        with pytest.raises(ValueError, match="under the same settings"):
            stranger.restore(saved)
        fresh.restore(saved)  # Refusals leave nothing behind.
        assert_same(fresh.save(), saved)


def test_emulators_that_lead_elsewhere_are_noticed(saved, monkeypatch):
    """As those of another version of ale-py would."""
    monkeypatch.setattr(atari, "span_seed", lambda *_: 1)
    with (
        _atari_emulators.opened(SMALL) as fresh,
        pytest.raises(ValueError, match="acted again, they lead elsewhere"),
    ):
        fresh.restore(saved)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_online", 3, "num_online: 3; expected a divisor of the 2 environments"),
        ("unroll_length", 0, "unroll_length: 0; expected at least 1"),
        ("num_replay_samples", -1, "num_replay_samples: -1; expected at least 0"),
        ("replay_capacity", 0, "replay_capacity: 0; expected at least 1"),
        ("emulators", dataclasses.replace(SMALL.emulators, game="pongg"), "'pongg'"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        _atari_emulators.check(SMALL._replace(**{field: value}))


def test_the_log_is_as_long_as_the_ring_and_a_span():
    """It does not grow with the rounds: 3 rounds of 5 steps, a span of 14, a game."""
    with played(SHORT, 9) as (games, _):
        lengths = games.save()[3]
        assert lengths.max() <= 3 * 5 + 14 + 7


@pytest.mark.slow
def test_memory_is_flat():
    """Over 50,000 frames in the game's own size, 1.3 GB: a full ring grows no more."""
    emulators = atari.Settings(game="pong", num_environments=4)
    settings = _atari_emulators.Settings(emulators, 20, 2, 4, replay_capacity=80)
    process = psutil.Process()
    with _atari_emulators.opened(settings) as games:
        sizes = []
        for _ in range(50_000 // (4 * 4 * 20)):
            games.read(act, STATE)
            sizes.append(process.memory_info().rss)
    assert abs(sizes[-1] - sizes[40]) < 30e6
