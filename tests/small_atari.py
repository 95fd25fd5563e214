"""Atari's agents with tiny networks and batches, for their tests."""

import jax
import jax.numpy as jnp
import numpy as np

from bmg_sweeps.running import binding
from bmg_sweeps.sweep import point
from trainers import _atari_agent, _atari_updates, atari

MINATAR = {
    "game": "minatar_breakout",
    "frame_height": 0,
    "frame_width": 0,
    "sticky_action_probability": 0.1,
    "num_environments": 4,
    "unroll_length": 5,
    "num_online": 2,
    "num_replay": 3,
    "meta_replay": 3,
    "replay_capacity": 12,
    "channels": (),
    "num_blocks": 0,
    "feature_size": 16,
    "head_sizes": (),
    "learning_rate": 1e-3,
    "learning_rate_frames": 100_000,
    "entropy_weight": 0.03,
    "record_interval": 4,
    "score_rows": 2,
}
PONG = MINATAR | {
    "game": "pong",
    "frame_height": 24,
    "frame_width": 20,
    "frame_format": "grayscale",
    "sticky_action_probability": 0.0,
    "channels": (4,),
    "num_blocks": 1,
}
IMPALA = {"update_kind": "impala", "num_auxiliary_tasks": 0}
STACX = {"update_kind": "stacx"}
BMG = {"update_kind": "bmg"}
LARGEST = BMG | {
    "matching_function": "policy_and_value",
    "inner_steps": 2,
    "target_steps": 2,
}
NUM_ACTIONS = 3


def make_config(**values):
    """The values of the .gin, but for some."""
    gin_text = point.resolve("atari", MINATAR | values).gin_text()
    _, config = binding.bind("atari", gin_text)
    return jax.tree.map(jnp.asarray, config)


def start(config, seed=0):
    """A learner, before its first update."""
    observation = jnp.zeros((10, 10, 4), bool)
    key = jax.random.key(seed)
    params = _atari_agent.init(config, key, observation, NUM_ACTIONS)
    return _atari_updates.init(config, params)


def trajectories(config, number, seed=0, num_online=None):
    """Random ones: seen, done and earned without sense."""
    random = np.random.default_rng(seed)
    length = config.unroll_length
    num_online = config.num_online if num_online is None else num_online
    return _atari_agent.Trajectories(
        observations=jnp.asarray(random.random((length + 1, number, 10, 10, 4)) < 0.2),
        a_t=jnp.asarray(random.integers(0, NUM_ACTIONS, (length, number)), jnp.int32),
        r_t=jnp.asarray(random.normal(size=(length, number))),
        continues_t=jnp.asarray(random.random((length, number)) > 0.1),
        behavior_logits_t=jnp.asarray(
            random.normal(size=(length, number, NUM_ACTIONS))
        ),
        is_online=jnp.arange(number) < num_online,
    )


def given(config, seed=0, learning_rate=0.1):
    """What a meta-update reads, with batches of its own for every step."""
    further = config.inner_steps + config.target_steps - 2
    number = config.num_online + config.meta_replay + further * config.num_replay
    batches = atari.batches_of(config, trajectories(config, number, seed))
    return _atari_updates.Given(
        config=config,
        batches=batches,
        is_legal=jnp.ones(NUM_ACTIONS, bool),
        learning_rate=jnp.asarray(learning_rate),
    )
