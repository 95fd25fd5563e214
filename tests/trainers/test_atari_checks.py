"""What a launch refuses of Atari's points: one line each, before anything starts."""

import pytest
import small_atari

from bmg_sweeps.environments import atari
from bmg_sweeps.running import check
from bmg_sweeps.sweep import point

SECTIONS = {"channels": (4,), "num_blocks": 1}


def problem(**values):
    """What the check of a launch says of a point; nothing is traced."""
    gin_text = point.resolve("atari", small_atari.MINATAR | values).gin_text()
    points = [("atari", gin_text)]
    found = check.answer(
        {"points": points, "stops": [{}], "examples": [], "sweeps": []}
    )["problem"]
    return found and found[1]


REFUSED = {
    "an unknown game": (
        {"game": "minatar_breakot"},
        "game = 'minatar_breakot': did you mean minatar_breakout?",
    ),
    "no environments": (
        {"num_environments": 0},
        "num_environments = 0: expected an integer of at least 1",
    ),
    "environments that do not come out even": (
        {"num_environments": 5},
        "num_environments = 5: expected a multiple of num_online = 2",
    ),
    "rows that do not": (
        {"record_interval": 3},
        "record_interval = 3: expected a multiple of num_environments / num_online = 2",
    ),
    "a replay smaller than a batch": (
        {"replay_capacity": 4, "num_replay": 5, "meta_replay": 5},
        "replay_capacity = 4: expected at least 5, the trajectories of a round and of "
        "a batch",
    ),
    "a replay smaller than a round": (
        {"replay_capacity": 3},
        "replay_capacity = 3: expected at least 4, the trajectories of a round and of "
        "a batch",
    ),
    "a meta-objective that sees less than the agent": (
        {"meta_replay": 2},
        "meta_replay = 2: expected at least num_replay = 3",
    ),
    "frames below an unroll": (
        {"learning_rate_frames": 4},
        "learning_rate_frames = 4: expected at least 5, the frames of an unroll",
    ),
    "frames below an unroll, four a step": (
        small_atari.PONG | {"learning_rate_frames": 19},
        "learning_rate_frames = 19: expected at least 20, the frames of an unroll",
    ),
    "an entropy weight without room": (
        {"entropy_weight": 0.9},
        "max_entropy_weight = 0.9: expected more than entropy_weight = 0.9",
    ),
    "pixels of MinAtar": (
        {"frame_height": 84},
        "frame_height = 84: expected 0, where MinAtar has cells, not pixels",
    ),
    "colors of MinAtar": (
        {"frame_format": "grayscale"},
        "frame_format = 'grayscale': expected 'rgb', where MinAtar has cells, not "
        "pixels",
    ),
    "a real game without pixels": (
        small_atari.PONG | {"frame_width": 0},
        "frame_width = 0: expected at least 1 pixel",
    ),
    "auxiliary tasks of IMPALA": (
        {"update_kind": "impala"},
        "num_auxiliary_tasks = 2: expected 0, where nothing is meta-learned",
    ),
    "replay for IMPALA's meta-objective": (
        small_atari.IMPALA | {"meta_replay": 4},
        "meta_replay = 4: expected 3, where nothing is meta-learned",
    ),
    **{
        f"{field} of STACX": (
            small_atari.STACX | {field: value},
            f"{field} = {value!r}: expected {unused!r}, where there is no target",
        )
        for field, value, unused in (
            ("target_steps", 2, 1),
            ("target_optimizer", "sgd", "rmsprop"),
            ("target_last_step", "on_replay", "on_all"),
            ("matching_function", "value", "policy_kl"),
            ("next_params", "recomputed", "learned"),
        )
    },
    "an optimizer that the target does not use": (
        {"target_last_step": "meta_learned", "target_optimizer": "sgd"},
        "target_optimizer = 'sgd': expected 'rmsprop', where the target's last step is "
        "the agent's own",
    ),
    "blocks of no section": (
        {"num_blocks": 1},
        "num_blocks = 1: expected 0, where there are no sections",
    ),
    "rematerialization of no section": (
        {"rematerialization": "sections"},
        "rematerialization = 'sections': expected 'none', where there are no sections",
    ),
}


@pytest.mark.parametrize(("values", "said"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(values, said):
    """Style, "Errors": the field, its value and what was expected."""
    assert problem(**values) == said


@pytest.mark.parametrize(
    "values",
    [
        {"replay_capacity": 4, "learning_rate_frames": 5, "record_interval": 2},
        small_atari.IMPALA | SECTIONS | {"rematerialization": "sections"},
        small_atari.STACX | {"meta_replay": 12},
        small_atari.PONG | {"learning_rate_frames": 20, "frame_width": 1},
        {"target_optimizer": "sgd", "target_last_step": "on_replay"},
        {"target_last_step": "meta_learned", "next_params": "bootstrapped"},
    ],
)
def test_what_makes_sense_is_not(values):
    """Values at their bounds pass."""
    assert problem(**values) is None


def test_a_rom_that_is_missing_is_refused(monkeypatch):
    """As a point says it, and not only where the emulators are opened."""

    def missing(game):
        raise FileNotFoundError(f"no ROM\nof {game}")

    atari.num_actions.cache_clear()
    monkeypatch.setattr(atari.roms, "get_rom_path", missing)
    assert problem(**small_atari.PONG) == (
        "game: 'pong'; expected a ROM that can be read: no ROM of pong"
    )
