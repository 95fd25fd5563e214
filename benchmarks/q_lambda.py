"""Speed of Q(λ) in two-colors against the bytes that a step must touch, in one run.

    NPROC=1 taskset -c 0 .venv/bin/python -m benchmarks.q_lambda

The agent updates on every step, so each step reads and writes five arrays of the
network's size: weights, trace, moving average, and Adam's two moments. The floor does
that and nothing else: it multiplies each number of the five by a constant. Products
with the weights, the arithmetic of Adam and the environment come on top.
"""

import argparse
import functools

import jax
import jax.numpy as jnp

from benchmarks import timing, two_colors

TRAINER = "two_colors_q_lambda"
SETTINGS = {
    "fixed": {"update_kind": "fixed_epsilon", "target_steps": 1},
    "BMG L=1": {"target_steps": 1},
    "BMG L=16": {"target_steps": 16},
    "BMG L=128, 'value' matching": {"target_steps": 128, "matching_function": "value"},
}


def main() -> None:
    """Prints the table, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="the fastest counts")
    options = parser.parse_args()
    print("| setting | steps/s | floor, steps/s | ratio | compile, s |")
    print("| --- | --- | --- | --- | --- |")
    floor = 0.0
    for name, values in SETTINGS.items():
        train, state, compile_seconds = two_colors.compiled(TRAINER, values)
        floor = floor or floor_steps_per_second(state.learner.params, options.repeats)
        rate = two_colors.steps_per_second(train, state, options.repeats)
        cells = (name, f"{rate:,.0f}", f"{floor:,.0f}", f"{floor / rate:.2f}")
        print("|", " | ".join((*cells, f"{compile_seconds:.1f}")), "|", flush=True)


def floor_steps_per_second(params, repeats: int, steps: int = 20_000) -> float:
    """Times five arrays of the network's size being read and written."""
    arrays = [jax.tree.map(lambda x, n=n: x + n, params) for n in range(5)]
    factor = jnp.asarray(0.999999)

    @functools.partial(jax.jit, donate_argnums=0)
    def touch(arrays, factor):
        def body(_, arrays):
            return jax.tree.map(lambda x: x * factor, arrays)

        return jax.lax.fori_loop(0, steps, body, arrays)

    touched = functools.partial(touch, factor=factor)
    return steps / timing.fastest(touched, arrays, repeats)


if __name__ == "__main__":
    main()
