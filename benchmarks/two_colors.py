"""Speed and memory of two-colors against its bare matrix products, in one run.

    NPROC=1 taskset -c 0 .venv/bin/python -m benchmarks.two_colors

For each update kind: environment steps per second, the same for two floors, and their
ratios. The floors do nothing but matrix products that the agent cannot do without, as
`products` has them: those of an agent whose ε is fixed, and with those of the
meta-gradient. Then the growth of memory over as many chunks as there is patience for.
"""

import argparse
import functools
import time

import jax
import jax.numpy as jnp
import psutil

from benchmarks import products
from bmg_sweeps.running import binding, pack, programs
from bmg_sweeps.sweep import point

TRAINER = "two_colors_actor_critic"
SETTINGS = {
    "fixed": {"update_kind": "fixed_entropy_weight", "target_steps": 1},
    "MG K=7": {"update_kind": "meta_gradient", "inner_steps": 7, "target_steps": 1},
    "BMG K=1 L=7": {"inner_steps": 1, "target_steps": 7},
    "BMG K=7 L=2": {"inner_steps": 7, "target_steps": 2},
    "BMG K=1 L=7, next rollout": {"target_rollout": "next_rollout"},
}


def main() -> None:
    """Prints the table, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="the fastest counts")
    parser.add_argument("--chunks", type=int, default=50, help="for the memory")
    options = parser.parse_args()
    columns = ("setting", "steps/s", "of fixed ε's products", "of all its products")
    print("|", " | ".join((*columns, "compile, s")), "|")
    print("| --- | --- | --- | --- | --- |")
    for name, values in SETTINGS.items():
        train, state, compile_seconds = compiled(TRAINER, values)
        rate = steps_per_second(train, state, options.repeats)
        floors = floors_of(values, options.repeats)
        cells = (name, f"{rate:,.0f}", *(f"{floor / rate:.2f}" for floor in floors))
        print("|", " | ".join((*cells, f"{compile_seconds:.1f}")), "|", flush=True)
    growth = _memory_growth(train, state, options.chunks)
    print(f"\nMemory over {options.chunks} chunks: {growth / 2**20:+.1f} MiB")


def floors_of(values: dict, repeats: int) -> tuple[float, float]:
    """Returns the steps per second of a fixed ε's products, and of all of a point's."""
    found = point.resolve(TRAINER, values).values
    steps = found["inner_steps"], found["target_steps"]
    every = products.of(found["update_kind"], *steps)
    return (
        products.steps_per_second(products.fixed, 1, repeats),
        products.steps_per_second(every, sum(steps) - 1, repeats),
    )


def compiled(trainer_name: str, values: dict) -> tuple:
    """Compiles the training of one point of a two-colors trainer, as a trial does.

    Args:
        trainer_name: of the trainer.
        values: of the point; the others are those of the trainer's gin.

    Returns:
        `train` with its config, a state, and the seconds that it took.
    """
    text = point.resolve(trainer_name, values).gin_text()
    trainer, config = binding.bind(trainer_name, text)
    config = pack.as_arrays(config)
    made, seconds = programs.compiled(trainer, [config], None)
    state = made.init(config, jax.random.key(0), None)
    return functools.partial(made.train, config), state, seconds


def steps_per_second(train, state, repeats: int) -> float:
    """Returns the environment steps that the fastest of some chunks makes a second."""
    state = jax.tree.map(jnp.copy, state)  # Training consumes it.
    rates = []
    for _ in range(repeats):
        before = int(state.learner.environment.steps)
        began = time.perf_counter()
        state, _ = jax.block_until_ready(train(state, None))
        seconds = time.perf_counter() - began
        rates.append((int(state.learner.environment.steps) - before) / seconds)
    return max(rates)


def _memory_growth(train, state, chunks: int) -> int:
    """Counts the bytes that the process grew by, after it has warmed up."""
    process = psutil.Process()
    for _ in range(5):
        state, _ = jax.block_until_ready(train(state, None))
    before = process.memory_info().rss
    for _ in range(chunks):
        state, _ = jax.block_until_ready(train(state, None))
    return process.memory_info().rss - before


if __name__ == "__main__":
    main()
