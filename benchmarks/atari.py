"""Speed and memory of Atari's agents against emulators and bare networks, in one run.

    NPROC=1 taskset -c 0 .venv/bin/python -m benchmarks.atari minatar
    NPROC=1 taskset -c 0 .venv/bin/python -m benchmarks.atari games
    NPROC=1 taskset -c 0 .venv/bin/python -m benchmarks.atari memory

`minatar`: frames a second of the agents of scale lite. The floor is the network alone:
of each loss one pass forwards and one backwards, and one forwards to act.

`games`: steps a second, which are four frames each, of Pong and of agents on it.
Emulators: told what to do, and nobody looks. Acting: rounds of the live source, whose
trajectories are written down and packed; without the network's passes, and without
trajectories from the replay. Its share is of the emulators' rate. Round: with both, in
small gray frames. Learning: from one round; its floor is that of `minatar`, less the
acting. Both: a round and its updates.

`memory`: seconds of compiling a trial's programs, and the bytes that training takes.
"""

import argparse
import functools
import time
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import timing
from bmg_sweeps.environments import atari as emulated
from bmg_sweeps.environments import frame_ring
from bmg_sweeps.running import binding, pack, programs
from bmg_sweeps.sweep import load_sweep, point
from trainers import _atari_agent, _atari_emulators, _atari_worlds

LITE = load_sweep("table_9").scales["lite"].values | {"game": "minatar_breakout"}
PONG = LITE | {
    "game": "pong",
    "frame_height": 84,
    "frame_width": 84,
    "frame_format": "grayscale",
    "sticky_action_probability": 0.0,
    "channels": (16, 32),
    "num_blocks": 1,
    "num_environments": 12,
    "record_interval": 2,
}
FRAMES = {
    "84 × 84 gray": {},
    "210 × 160 RGB": {"frame_height": 210, "frame_width": 160, "frame_format": "rgb"},
}
AGENTS = {
    "IMPALA": {"update_kind": "impala", "num_auxiliary_tasks": 0},
    "STACX": {"update_kind": "stacx"},
    "BMG KL": {"update_kind": "bmg"},
    "BMG KL, L=4": {"update_kind": "bmg", "target_steps": 4},
    "BMG KL, K=2": {"update_kind": "bmg", "inner_steps": 2},
}
HORIZONS = (
    *(("stacx", k, 1) for k in (1, 2, 4, 8)),
    *(("bmg", k, 1) for k in (1, 2, 4, 8)),
    *(("bmg", 1, n) for n in (2, 4, 8)),
)


def main() -> None:
    """Prints a table, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("minatar", "games", "memory"))
    parser.add_argument("--repeats", type=int, default=5, help="the fastest counts")
    options = parser.parse_args()
    parts = {"minatar": minatar, "games": games, "memory": memory}
    parts[options.part](options.repeats)


def minatar(repeats: int) -> None:
    """Times whole chunks of training, and the network's passes alone."""
    _print_row("agent", "frames/s", "floor, frames/s", "floor's share", "compile, s")
    _print_row(*["---"] * 5)
    for name, values in AGENTS.items():
        rate, floor, seconds = minatar_rates(values, repeats)
        _print_row(
            *(name, f"{rate:,.0f}", f"{floor:,.0f}", f"{rate / floor:.2f}"),
            f"{seconds:.1f}",
        )


def minatar_rates(values: dict, repeats: int) -> tuple[float, float, float]:
    """Returns frames a second of training, of its floor, and seconds of compiling."""
    trainer, config = bound(LITE | values)
    compiled, seconds = programs.compiled(trainer, [config], None)
    learn = functools.partial(_learned, compiled, config)
    state = compiled.init(config, jax.random.key(0), None)
    frames = _steps(config) * config.record_interval
    rate = frames / timing.fastest(learn, state, repeats)
    return rate, _steps(config) / floor_seconds(config, repeats), seconds


def games(repeats: int) -> None:
    """Times Pong: emulators alone, acting, and learning from one round."""
    _print_row("frames", "emulators", "acting", "its share")
    _print_row(*["---"] * 4)
    for seen, frames in FRAMES.items():
        _, config = bound(PONG | frames)
        steps = config.num_environments * config.unroll_length
        alone = steps / emulators_seconds(config, repeats)
        acting = steps / acting_seconds(config, repeats)
        _print_row(seen, f"{alone:,.0f}", f"{acting:,.0f}", f"{acting / alone:.2f}")
    print()
    _print_row("agent", "round", "learning", "floor's share", "both")
    _print_row(*["---"] * 5)
    for name, values in AGENTS.items():
        trainer, config = bound(PONG | values)
        reading, learning = round_seconds(trainer, config, repeats)
        floor = floor_seconds(config, repeats, is_acting=False)
        floor *= _atari_worlds.updates_per_round(config)
        _print_row(
            *(name, f"{steps / reading:,.0f}", f"{steps / learning:,.0f}"),
            *(f"{floor / learning:.2f}", f"{steps / (reading + learning):,.0f}"),
        )


def memory(repeats: int) -> None:
    """Compiles training for several K and L."""
    del repeats
    _print_row("agent", "K", "L", "compile, s", "program, MiB")
    _print_row(*["---"] * 5)
    for kind, inner_steps, target_steps in HORIZONS:
        steps = {"inner_steps": inner_steps, "target_steps": target_steps}
        trainer, config = bound(LITE | steps | {"update_kind": kind})
        compiled, seconds = programs.compiled(trainer, [config], None)
        size = f"{compiled.num_bytes / 2**20:.1f}"
        _print_row(kind, inner_steps, target_steps, f"{seconds:.1f}", size)


def bound(values: dict) -> tuple[Any, Any]:
    """Binds a point of the trainer; values that are not given are its gin's."""
    text = point.resolve("atari", values).gin_text()
    trainer, config = binding.bind("atari", text)
    return trainer, pack.as_arrays(config)


def emulators_seconds(config: Any, repeats: int) -> float:
    """Times the emulators of a round that are told what to do."""
    settings = _atari_worlds.emulator_settings(config)
    games = emulated.Emulators(settings)
    games.start([0], np.zeros(config.num_environments, np.int64))
    actions = _actions(config)

    def play(state: None) -> None:
        for chosen in actions:
            games.step(chosen)

    seconds = timing.fastest(play, None, repeats)
    games.close()
    return seconds


def acting_seconds(config: Any, repeats: int) -> float:
    """Times a round of the live source without a network, and without samples."""
    settings = _atari_emulators.Settings(
        emulators=_atari_worlds.emulator_settings(config),
        unroll_length=config.unroll_length,
        num_online=config.num_online,
        num_replay_samples=0,
        replay_capacity=config.replay_capacity,
    )
    actions = _actions(config)
    logits = np.zeros((config.num_environments, emulated.MAX_ACTIONS), np.float32)

    def act(recent: frame_ring.Recent, step: int) -> tuple[np.ndarray, np.ndarray]:
        return actions[step], logits

    def read(state: Any) -> Any:
        source.read(act, state)
        return state

    with _atari_emulators.opened(settings) as source:
        state = types.SimpleNamespace(key=jax.random.key(0))
        return timing.fastest(read, state, repeats)


def round_seconds(trainer: Any, config: Any, repeats: int) -> tuple[float, float]:
    """Times whole rounds, and the updates that learn from each."""
    reading, learning = [], []
    with trainer.source(config) as source:
        compiled, _ = programs.compiled(trainer, [config], source)
        state = compiled.init(config, jax.random.key(0), None)
        for _ in range(repeats + 1):
            began = time.perf_counter()
            act = functools.partial(compiled.act, config, state)
            given = source.read(act, state)
            reading.append(time.perf_counter() - began)
            began = time.perf_counter()
            state, _ = jax.block_until_ready(compiled.train(config, state, given))
            learning.append(time.perf_counter() - began)
    return min(reading[1:]), min(learning[1:])


def floor_seconds(config: Any, repeats: int, is_acting: bool = True) -> float:
    """Times the passes of the network that one meta-update cannot do without."""
    world = _atari_worlds.of(config.game)
    is_legal, observation = world.game(config.game).is_legal, world.observation(config)
    params = _atari_agent.init(config, jax.random.key(0), observation, len(is_legal))
    number = (config.unroll_length + 1) * (config.num_online + config.num_replay)
    seen = jax.random.bits(jax.random.key(1), (number, *observation.shape), jnp.uint8)
    seen = seen.astype(observation.dtype)

    def descended(params: Any, states: jax.Array) -> Any:
        """One pass forwards and one backwards, which depend on those before."""
        grads = jax.grad(_total, argnums=1)(config, params, states, is_legal)
        return jax.tree.map(lambda x, g: x - NOTHING * g, params, grads)

    def update(given: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        params, seen = given
        for is_main, batch in _losses(config):
            states = seen[: (config.unroll_length + 1) * batch]
            if is_main:
                part = descended(_atari_agent.main(params), states)
                params = _atari_agent.merged(params, part)
            else:
                params = descended(params, states)
        if is_acting:
            states = seen[: _steps(config)]
            total = _total(config, _atari_agent.main(params), states, is_legal)
            params = jax.tree.map(lambda x: x + NOTHING * total, params)
        return params, seen

    return timing.fastest(jax.jit(update), (params, seen), 5 * repeats)


NOTHING = 1e-9  # Times a number: it must be computed, and changes little.


def _losses(config: Any) -> list[tuple[bool, int]]:
    """Of each loss whether it is of the main task alone, and its trajectories."""
    whole = config.num_online + config.num_replay
    num_on_replay = config.inner_steps - 1 + config.target_steps - 1
    # STACX's objective; of BMG that of the target, and what it matches.
    num_main = {"impala": 0, "stacx": 1, "bmg": 2}[config.update_kind]
    return [
        (False, whole),
        *[(False, config.num_replay)] * num_on_replay,
        *[(True, whole)] * num_main,
    ]


def _total(config: Any, params: Any, states: jax.Array, is_legal: jax.Array) -> Any:
    outputs = _atari_agent.apply(config, params, states, is_legal)
    return jnp.sum(outputs.logits) + jnp.sum(outputs.values)


def _learned(compiled: programs.Programs, config: Any, state: Any) -> Any:
    return compiled.train(config, state, None)[0]


def _actions(config: Any) -> np.ndarray:
    """[T, N] any actions that every game has."""
    shape = (config.unroll_length, config.num_environments)
    return np.random.default_rng(0).integers(0, 3, shape, np.int32)


def _steps(config: Any) -> int:
    """Counts the agent's steps of an update; on MinAtar they are frames."""
    return config.num_online * config.unroll_length


def _print_row(*cells: Any) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main()
