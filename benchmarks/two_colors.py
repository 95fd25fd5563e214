"""Speed and memory of two-colors against its bare matrix products, in one run.

    NPROC=1 taskset -c 0 .venv/bin/python -m benchmarks.two_colors

For each update kind: environment steps per second, the same for the floor, and their
ratio. The floor does nothing but the matrix products that the agent cannot do without:
one forward pass of the policy per environment step, and one forward and backward pass
of policy and critic per rollout. The meta-gradient and the environment come on top.
Then the growth of memory over as many chunks as there is patience for.
"""

import argparse
import functools
import time

import gin
import jax
import jax.numpy as jnp
import psutil

from bmg_sweeps.sweep import point
from trainers import two_colors_actor_critic as trainer

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
    floor = _floor_steps_per_second(options.repeats)
    print("| setting | steps/s | floor, steps/s | ratio | compile, s |")
    print("| --- | --- | --- | --- | --- |")
    for name, values in SETTINGS.items():
        train, state, compile_seconds = compiled(trainer, values)
        rate = steps_per_second(train, state, options.repeats)
        cells = (name, f"{rate:,.0f}", f"{floor:,.0f}", f"{floor / rate:.2f}")
        print("|", " | ".join((*cells, f"{compile_seconds:.1f}")), "|", flush=True)
    growth = _memory_growth(train, state, options.chunks)
    print(f"\nMemory over {options.chunks} chunks: {growth / 2**20:+.1f} MiB")


def compiled(trainer, values: dict) -> tuple:
    """Compiles the training of one point of a two-colors trainer.

    Args:
        trainer: its module.
        values: of the point; the others are those of the trainer's gin.

    Returns:
        `train` with its config, a state, and the seconds that it took.
    """
    resolved = point.resolve(trainer.__name__.rpartition(".")[2], values)
    gin.clear_config()
    gin.parse_config(resolved.gin_text())
    config = jax.tree.map(jnp.asarray, trainer.Config())
    began = time.perf_counter()
    state = jax.jit(trainer.init)(config, jax.random.key(0), None)
    train = jax.jit(trainer.train).lower(config, state, None).compile()
    seconds = time.perf_counter() - began
    return functools.partial(train, config), state, seconds


def steps_per_second(train, state, repeats: int) -> float:
    """Returns the environment steps that the fastest of some chunks makes a second."""
    rates = []
    for _ in range(repeats):
        before = int(state.learner.environment.steps)
        began = time.perf_counter()
        state, _ = jax.block_until_ready(train(state, None))
        seconds = time.perf_counter() - began
        rates.append((int(state.learner.environment.steps) - before) / seconds)
    return max(rates)


def _floor_steps_per_second(repeats: int, rollouts: int = 1000) -> float:
    """Times the products alone: x W₁ W₂ W₃, in turn and in a batch with gradients."""
    shapes = ((30, 256), (256, 256), (256, 4))
    keys = jax.random.split(jax.random.key(0), len(shapes))
    weights = [
        jax.random.normal(key, shape) / shape[0] ** 0.5
        for key, shape in zip(keys, shapes, strict=True)
    ]

    def forward(weights, x):
        return functools.reduce(jnp.matmul, weights, x)

    def rollout(networks, _):
        # Each product feeds the next, by a trace, so that none is optimized away.
        _, observations = jax.lax.scan(
            lambda x, _: (x + 1e-9 * jnp.sum(forward(networks[0], x)), x),
            jnp.ones(30),
            length=16,
        )
        grads = jax.grad(lambda n: sum(jnp.sum(forward(w, observations)) for w in n))
        return jax.tree.map(lambda w, g: w - 1e-9 * g, networks, grads(networks)), None

    products = jax.jit(lambda n: jax.lax.scan(rollout, n, length=rollouts))
    jax.block_until_ready(products((weights, weights)))
    fastest = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(products((weights, weights)))
        fastest = min(fastest, time.perf_counter() - began)
    return rollouts * 16 / fastest


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
