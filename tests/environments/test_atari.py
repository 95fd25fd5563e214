"""Emulators: what follows a seed depends on it and the actions alone."""

import dataclasses

import numpy as np
import pytest
from ale_py import roms

from bmg_sweeps import atari_scores
from bmg_sweeps.environments import atari

SEED = (0, 1)
SMALL = atari.Settings(
    game="freeway",  # Something moves in every frame.
    num_environments=2,
    frame_height=32,
    frame_width=24,
    is_grayscale=True,
)


def opened(**changes):
    return atari.Emulators(dataclasses.replace(SMALL, **changes))


def started(**changes):
    """Emulators in their first spans, and the frames."""
    emulators = opened(**changes)
    frames = emulators.start(SEED, np.zeros(emulators.settings.num_environments, int))
    return emulators, frames


def play(emulators, actions):
    """[T, N] actions; all steps, each field with a leading axis T."""
    steps = [emulators.step(a) for a in actions]
    return atari.Step(*map(np.stack, zip(*steps, strict=True)))


def random_actions(emulators, num_steps, seed=0):
    size = (num_steps, emulators.settings.num_environments)
    return np.random.default_rng(seed).integers(0, emulators.num_actions, size)


def assert_played_alike(monkeypatch, game, num_steps, **changes):
    """Spans give the same in other company, at other indices, after other play."""
    monkeypatch.setattr(atari, "span_seed", lambda seed, n, span: 100 + int(span))
    settings = {"game": game, "span_steps": 0} | changes
    one = opened(num_environments=2, threads=1, **settings)
    first = one.start(SEED, np.array([10, 20]))
    actions = random_actions(one, num_steps)
    expected = play(one, actions)

    other = opened(num_environments=3, threads=2, **settings)
    other.start(SEED, np.array([1, 2, 3]))
    play(other, random_actions(other, 40, seed=1))
    again = other.restart(np.array([True, False, True]), np.array([20, 0, 10]))
    np.testing.assert_array_equal(again[[2, 0]], first)
    filler = random_actions(other, num_steps, seed=2)[:, 1]
    actual = play(other, np.stack([actions[:, 1], filler, actions[:, 0]], axis=1))
    for field, name in zip(actual, actual._fields, strict=True):
        np.testing.assert_array_equal(
            field[:, [2, 0]], getattr(expected, name), err_msg=f"{game}: {name}"
        )
    return expected


def test_the_games_are_the_57_of_the_papers_table():
    """Names of ROMs; two rows as dqn_zoo's `atari_data.py` has them."""
    assert len(atari.GAMES) == 57
    assert set(atari.GAMES) <= set(roms.get_all_rom_ids())
    assert atari_scores.SCORES["pong"] == (-20.7, 14.6)
    assert atari_scores.SCORES["video_pinball"] == (16256.9, 17667.9)
    assert all(human > random for random, human in atari_scores.SCORES.values())


@pytest.mark.parametrize(
    ("game", "expected"), [("freeway", 3), ("breakout", 4), ("pong", 6), ("boxing", 18)]
)
def test_actions_are_those_that_do_something(game, expected):
    """Breakout: nothing, FIRE, right, left."""
    assert atari.num_actions(game) == expected


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("game", "MsPacman", "game: 'MsPacman'; expected one of the 57 of Atari"),
        ("num_environments", 0, "num_environments: 0; expected at least 1"),
        ("threads", 0, "threads: 0; expected at least 1"),
        ("span_steps", -1, "span_steps: -1; expected at least 0"),
        ("sticky_action_probability", 1.5, "sticky_action_probability: 1.5; expected"),
    ],
)
def test_a_setting_that_makes_no_sense_is_one_line(field, value, message):
    with pytest.raises(ValueError, match=message) as caught:
        opened(**{field: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", ["folder", "file", "content"])
def test_a_rom_that_cannot_be_read_is_one_line(damage, tmp_path, monkeypatch):
    """There is no folder, no file in it, or another file than ale-py knows."""
    folder = tmp_path if damage != "folder" else tmp_path / "none"
    if damage == "content":
        (tmp_path / "freeway.bin").write_bytes(b"no game")
    monkeypatch.setenv("ALE_ROMS_DIR", str(folder))
    with pytest.raises(ValueError, match="game: 'freeway'; expected a ROM") as caught:
        opened()
    assert "\n" not in str(caught.value)


def test_an_action_that_the_game_lacks_is_refused():
    """Freeway has three."""
    emulators, _ = started()
    with pytest.raises(ValueError, match="actions: 0 to 3; expected 0 to 2"):
        emulators.step(np.array([0, 3]))


def test_seeds_differ_by_run_environment_and_span():
    """And are what ale-py takes: 31 bits."""
    seeds = {
        atari.span_seed((0, run), environment, span)
        for run in range(10)
        for environment in range(10)
        for span in range(10)
    }
    assert len(seeds) == 1_000
    assert all(0 <= seed < 2**31 for seed in seeds)


@pytest.mark.parametrize("game", ["breakout", "ms_pacman"])
def test_what_follows_a_seed_is_a_function_of_the_actions(game, monkeypatch):
    """Whatever the threads, the neighbors, the index and the play before."""
    assert_played_alike(monkeypatch, game, num_steps=120)


def test_sticky_actions_are_functions_of_the_seed_as_well(monkeypatch):
    """And change what happens."""
    sticky = assert_played_alike(
        monkeypatch, "freeway", num_steps=60, sticky_action_probability=0.25
    )
    plain = opened()
    plain.start(SEED, np.array([10, 20]))
    assert (play(plain, random_actions(plain, 60)).frames != sticky.frames).any()


def test_a_span_is_whole_games_until_enough_steps():
    """Games of 5 steps and spans of at least 8 end at 5, 10, 15, 20; 10 and 20 seed.

    The games of a span differ in their no-ops.
    """
    emulators, first = started(max_episode_frames=20, span_steps=8)
    steps = play(emulators, random_actions(emulators, 20))
    ends, seeded = np.arange(1, 21) % 5 == 0, np.arange(1, 21) % 10 == 0
    for n in range(2):
        np.testing.assert_array_equal(steps.is_game_over[:, n], ends)
        np.testing.assert_array_equal(steps.is_span_begun[:, n], seeded)
    assert (steps.frames[4] != first).any()


def test_a_game_that_is_over_is_followed_by_the_next_at_once():
    """Frames are the next span's first, and the next action counts in it."""
    emulators, _ = started(max_episode_frames=20, span_steps=0)
    steps = play(emulators, random_actions(emulators, 9))
    fresh = opened(max_episode_frames=20)
    first = fresh.start(SEED, np.ones(2, int))
    np.testing.assert_array_equal(steps.frames[4], first)
    expected = play(fresh, random_actions(emulators, 9)[5:])
    np.testing.assert_array_equal(steps.frames[5:], expected.frames)


def test_a_lost_life_is_told_and_the_game_goes_on():
    """Breakout has five lives: four are lost, the fifth is the end of the game."""
    emulators, _ = started(game="breakout", num_environments=1)
    steps = play(emulators, random_actions(emulators, 300))
    end = int(np.flatnonzero(steps.is_game_over[:, 0])[0])
    assert steps.is_life_lost[: end + 1].sum() == 4
    assert not steps.is_life_lost[end]
    assert emulators.lives.shape == (1,)


def test_rewards_are_the_games_points():
    """A pellet of Ms. Pac-Man is worth ten."""
    emulators, _ = started(game="ms_pacman")
    rewards = play(emulators, random_actions(emulators, 100)).rewards
    assert rewards.dtype == np.float32
    assert rewards.max() >= 10


def test_frames_have_the_size_and_the_colors_asked_for():
    """By default the game's own, 210 × 160 in three colors."""
    _, gray = started()
    assert gray.shape == (2, 32, 24, 1)
    emulators = atari.Emulators(atari.Settings(game="pong", num_environments=1))
    frames = emulators.start(SEED, np.zeros(1, int))
    assert frames.shape == (1, 210, 160, 3)
    assert frames.dtype == np.uint8
    assert (frames[..., 0] != frames[..., 2]).any()


@pytest.mark.slow
@pytest.mark.parametrize("game", atari.GAMES)
def test_every_game_starts_goes_on_and_ends(game, monkeypatch):
    """150 steps are functions of the seed and the actions, over ends of games."""
    steps = assert_played_alike(
        monkeypatch, game, num_steps=150, max_episode_frames=480
    )
    assert steps.is_game_over.any()
    assert (steps.frames[:1] != steps.frames).any()


@pytest.mark.slow
@pytest.mark.parametrize("game", ["ice_hockey", "surround", "time_pilot", "breakout"])
def test_spans_of_several_games_are_functions_of_the_seed(game, monkeypatch):
    """In the first three a game begins differently after different play."""
    steps = assert_played_alike(
        monkeypatch, game, num_steps=400, max_episode_frames=240, span_steps=150
    )
    assert steps.is_span_begun.any()
    assert (steps.is_game_over & ~steps.is_span_begun).any()
