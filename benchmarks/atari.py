"""Speed and memory of Atari's agents against emulators and bare networks, in one run.

    NPROC=1 taskset -c 0 .venv/bin/python -m benchmarks.atari minatar
    NPROC=1 taskset -c 0 .venv/bin/python -m benchmarks.atari games
    NPROC=1 taskset -c 0 .venv/bin/python -m benchmarks.atari memory

`minatar`: frames a second of the agents of scale lite. The floor is the network alone:
of each loss one pass forwards and one backwards, and one forwards to act.

`games`: steps a second of Pong's emulators alone and of acting with a network, frames a
second of learning from what was acted, and of both, against the same floor.

`memory`: compile seconds, and bytes of the compiled program, by K and L.
"""

import argparse
import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bmg_sweeps.environments import atari as emulators
from bmg_sweeps.running import binding, pack
from bmg_sweeps.sweep import load_sweep, point
from trainers import _atari_agent, _atari_worlds, atari

LITE = load_sweep("table_9").scales["lite"].values | {"game": "minatar_breakout"}
SMALL_PONG = LITE | {
    "game": "pong",
    "frame_height": 84,
    "frame_width": 84,
    "sticky_action_probability": 0.0,
    "frame_format": "grayscale",
    "channels": (16, 32),
    "num_blocks": 1,
    "num_environments": 12,
    "record_interval": 2,
}
AGENTS = {
    "IMPALA": {"update_kind": "impala", "num_auxiliary_tasks": 0},
    "STACX": {"update_kind": "stacx"},
    "BMG KL": {"update_kind": "bmg"},
    "BMG KL, L=4": {"update_kind": "bmg", "target_steps": 4},
    "BMG KL, K=2": {"update_kind": "bmg", "inner_steps": 2},
}


def main() -> None:
    """Prints a table, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("minatar", "games", "memory"))
    parser.add_argument("--repeats", type=int, default=5, help="the fastest counts")
    options = parser.parse_args()
    {"minatar": minatar, "games": games, "memory": memory}[options.part](
        options.repeats
    )


def minatar(repeats: int) -> None:
    """Times whole chunks of training, and the network's passes alone."""
    print("| agent | frames/s | floor, frames/s | floor's share | compile, s |")
    print("| --- | --- | --- | --- | --- |")
    for name, values in AGENTS.items():
        config = make_config(LITE | values)
        train, state, seconds = compiled(config, None)
        chunk = _frames(config) * int(config.record_interval)
        rate = chunk / fastest(lambda state: train(state, None)[0], state, repeats)
        floor = _frames(config) / _floor(config, repeats)
        share = f"{rate / floor:.2f}"
        cells = (name, f"{rate:,.0f}", f"{floor:,.0f}", share, f"{seconds:.1f}")
        print("|", " | ".join(cells), "|", flush=True)


def games(repeats: int) -> None:
    """Times Pong: emulators alone, acting, and learning from one round."""
    print(
        "| agent | emulators | acting | its share | learning | floor's share | both |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, values in AGENTS.items():
        config = make_config(SMALL_PONG | values)
        alone = _emulator_steps_per_second(config, repeats)
        with atari.open_source(config) as source:
            acting, learning = _round_seconds(config, source, repeats)
        steps = config.num_environments * config.unroll_length
        rate = steps / learning
        floor = _steps(config) / _floor(config, repeats, is_acting=False)
        cells = (f"{alone:,.0f}", f"{steps / acting:,.0f}")
        cells += (
            f"{steps / acting / alone:.2f}",
            f"{rate:,.0f}",
            f"{rate / floor:.2f}",
        )
        print(
            "|",
            " | ".join((name, *cells, f"{steps / (acting + learning):,.0f}")),
            "|",
            flush=True,
        )
    print("\nIn steps a second; a step is four frames.")


def memory(repeats: int) -> None:
    """Compiles training for several K and L."""
    del repeats
    print("| agent | K | L | compile, s | program, MiB |")
    print("| --- | --- | --- | --- | --- |")
    for kind, inner, target in _horizons():
        shape = {"update_kind": kind, "inner_steps": inner, "target_steps": target}
        train, _, seconds = compiled(make_config(LITE | shape), None)
        used = train.func.memory_analysis()
        size = used.temp_size_in_bytes + used.argument_size_in_bytes
        cells = (kind, inner, target, f"{seconds:.1f}", f"{size / 2**20:.1f}")
        print("|", " | ".join(map(str, cells)), "|", flush=True)


def make_config(values: dict) -> Any:
    """Binds a point of the trainer; values that are not given are its gin's."""
    text = point.resolve("atari", values).gin_text()
    return pack.as_arrays(binding.bind("atari", text)[1])


def compiled(config: Any, source: Any) -> tuple[Callable, atari.State, float]:
    """Compiles the training of one point.

    Returns:
        `train` with its config, a state, and the seconds that it took.
    """
    began = time.perf_counter()
    state = jax.jit(atari.init)(config, jax.random.key(0), None)
    train = jax.jit(atari.train, donate_argnums=1)
    train = train.lower(config, state, source).compile()
    return functools.partial(train, config), state, time.perf_counter() - began


def fastest(step: Callable[[Any], Any], state: Any, repeats: int) -> float:
    """Returns the seconds of the fastest step; the first, which warms up, is left out."""
    seconds = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        state = jax.block_until_ready(step(state))
        seconds.append(time.perf_counter() - began)
    return min(seconds[1:])


def _floor(config: Any, repeats: int, is_acting: bool = True) -> float:
    """Times the passes of the network that one meta-update cannot do without, in s."""
    game = _atari_worlds.of(config.game).game(config.game)
    observation = _atari_worlds.of(config.game).observation(config)
    key, num_actions = jax.random.key(0), len(game.is_legal)
    params = _atari_agent.init(config, key, observation, num_actions)
    apply = functools.partial(_atari_agent.apply, config)

    def passes(params, observations, times):
        def total(params):
            outputs = apply(params, observations, game.is_legal)
            return jnp.sum(outputs.logits) + jnp.sum(outputs.values)

        def step(params, _):
            grads = jax.grad(total)(params)
            return jax.tree.map(lambda x, g: x - 1e-9 * g, params, grads), None

        return jax.lax.scan(step, params, length=times)[0]

    def forwards(params, observations):
        return jnp.sum(apply(params, observations, game.is_legal).logits)

    def update(params):
        for part, batch, times in _losses(config):
            taken = _atari_agent.main(params) if part == "main" else params
            states = _states(config, observation, batch)
            taken = passes(taken, states, times)
            params = _atari_agent.merged(params, taken) if part == "main" else taken
        if is_acting:
            acted = _states(config, observation, config.num_online, -1)
            params["policy"] = jax.tree.map(
                lambda x: x + 1e-9 * forwards(_atari_agent.main(params), acted),
                params["policy"],
            )
        return params

    return fastest(jax.jit(update), params, repeats * 5)


def _losses(config: Any) -> list[tuple[str, int, int]]:
    """The losses that are differentiated: of which tasks, how large, how often."""
    whole, replay = config.num_online + config.num_replay, config.num_replay
    losses = [("all", whole, 1)]
    losses += [("all", replay, config.inner_steps - 1)]
    losses += [("all", replay, config.target_steps - 1)]
    # STACX's objective, or the target's; and what BMG matches.
    losses += [("main", whole, {"impala": 0, "stacx": 1, "bmg": 2}[config.update_kind])]
    return [loss for loss in losses if loss[2]]


def _states(
    config: Any, observation: jax.Array, batch: int, more: int = 0
) -> jax.Array:
    number = (config.unroll_length + 1 + more) * batch
    return jnp.broadcast_to(observation + 1, (number, *observation.shape)).astype(
        observation.dtype
    )


def _round_seconds(config: Any, source: Any, repeats: int) -> tuple[float, float]:
    """Times acting and learning of whole rounds."""
    state = jax.jit(atari.init)(config, jax.random.key(0), None)
    step = jax.ShapeDtypeStruct((), jnp.int32)
    act = jax.jit(atari.act).lower(config, state, source.observes, step).compile()

    def read() -> Any:
        return source.read(functools.partial(act, config, state), state)

    train = jax.jit(atari.train).lower(config, state, read()).compile()
    acting, learning = [], []
    for _ in range(repeats):
        began = time.perf_counter()
        given = read()
        acting.append(time.perf_counter() - began)
        began = time.perf_counter()
        state, _ = jax.block_until_ready(train(config, state, given))
        learning.append(time.perf_counter() - began)
    return min(acting), min(learning)


def _emulator_steps_per_second(config: Any, repeats: int) -> float:
    """Times emulators that are told what to do, and whose frames nobody looks at."""
    settings = _atari_worlds.emulator_settings(config)
    games, count = emulators.Emulators(settings), config.num_environments
    games.start([0], np.zeros(count, np.int64))
    actions = np.random.default_rng(0).integers(0, 3, (config.unroll_length, count))
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        for chosen in actions.astype(np.int32):
            games.step(chosen)
        seconds.append(time.perf_counter() - began)
    games.close()
    return actions.size / min(seconds)


def _horizons() -> list[tuple[str, int, int]]:
    sizes = (1, 2, 4, 8)
    return (
        [("stacx", inner, 1) for inner in sizes]
        + [("bmg", inner, 1) for inner in sizes]
        + [("bmg", 1, target) for target in sizes[1:]]
    )


def _steps(config: Any) -> int:
    return config.num_online * config.unroll_length


def _frames(config: Any) -> int:
    return _steps(config) * _atari_worlds.of(config.game).frames_per_step


if __name__ == "__main__":
    main()
