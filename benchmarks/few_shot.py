"""Speed and memory of few-shot meta-updates against their bare matrix products.

    .venv/bin/python -m benchmarks.few_shot

For MAML and BMG in 5-way-5-shot on images of 84 × 84: seconds of a meta-update of four
tasks, those of the floor, their ratio, seconds of compiling `train`, and the memory
that the compiled program asks for. The floor is the matrix products that a meta-update
cannot do without, each [positions, 9 C] × [9 C, F] or one of its two derivatives: a
forward and backward pass of the support images in each of the K steps, as many again
twice for the product with the Hessian, and one pass of the query images for the
meta-loss and each of the L steps. Images are random; no data set is needed.
"""

import argparse
import resource
import time

import jax
import jax.numpy as jnp

from benchmarks import timing
from bmg_sweeps.running import binding, pack
from bmg_sweeps.sweep import point
from trainers import few_shot

_SIZE, _FILTERS, _TASKS, _IMAGES = 84, 32, 4, 25
SETTINGS = {
    "MAML K=1": {"inner_steps": 1},
    "MAML K=5": {"inner_steps": 5},
    "MAML K=10": {"inner_steps": 10},
    "ANIL K=1": {"inner_steps": 1, "adapted": "head"},
    "FOMAML K=1": {"inner_steps": 1, "update_kind": "fomaml"},
    "BMG K=1 L=10": {"update_kind": "bmg", "inner_steps": 1, "target_steps": 10},
    "BMG K=5 L=1": {"update_kind": "bmg", "inner_steps": 5, "target_steps": 1},
    "BMG K=5 L=5": {"update_kind": "bmg", "inner_steps": 5, "target_steps": 5},
}


def main() -> None:
    """Prints the table, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="the fastest counts")
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS))
    options = parser.parse_args()
    print("| setting | s | floor, s | ratio | compile, s | program, MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in options.settings:
        values = SETTINGS[name]
        seconds, compile_seconds, num_bytes = measure(values, options.repeats)
        cells = [name, f"{seconds:.2f}", "–", "–"]
        if values.get("adapted") != "head" and values.get("update_kind") != "fomaml":
            floor = floor_seconds(
                values["inner_steps"], values.get("target_steps", 0), options.repeats
            )
            cells[2:] = [f"{floor:.2f}", f"{seconds / floor:.2f}"]
        cells += [f"{compile_seconds:.0f}", f"{num_bytes / 1e6:.0f}"]
        print("|", " | ".join(cells), "|", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\nPeak memory of the process, all settings in turn: {peak:.1f} GB")


def measure(values: dict, repeats: int) -> tuple[float, float, int]:
    """Seconds of a meta-update and of compiling, and bytes beside the arguments."""
    fixed = {"record_interval": 1, "evaluation_interval": 1, "data_set": "glyphs"}
    gin_text = point.resolve("few_shot", fixed | values).gin_text()
    _, config = binding.bind("few_shot", gin_text)
    config, key = pack.as_arrays(config), jax.random.key(0)
    shape = (8, 50, _SIZE, _SIZE, 3)
    source = {"train": jax.random.randint(key, shape, 0, 256).astype(jnp.uint8)}
    state = jax.jit(few_shot.init)(config, key, source)
    began = time.perf_counter()
    train = jax.jit(few_shot.train).lower(config, state, source).compile()
    compile_seconds = time.perf_counter() - began
    seconds = timing.fastest(lambda _: train(config, state, source), None, repeats)
    seconds /= few_shot.chunk_length(config, shape[2:])
    return seconds, compile_seconds, train.memory_analysis().temp_size_in_bytes


def floor_seconds(inner_steps: int, target_steps: int, repeats: int) -> float:
    """Seconds of the products alone."""
    total, size, channels = 0.0, _SIZE, 3
    for block in range(4):
        rows, columns = _IMAGES * size * size, 9 * channels
        patches = jnp.ones((rows, columns))
        kernel, cotangent = jnp.ones((columns, _FILTERS)), jnp.ones((rows, _FILTERS))
        forward = timing.fastest(_compiled(jnp.matmul, patches, kernel), None, repeats)
        of_kernel = timing.fastest(
            _compiled(lambda p, g: p.T @ g, patches, cotangent), None, repeats
        )
        of_images = 0.0  # Which images themselves do not need.
        if block:
            of_images = timing.fastest(
                _compiled(lambda g, k: g @ k.T, cotangent, kernel), None, repeats
            )
        once = forward + of_kernel + of_images
        # Images need no derivative: a product with the Hessian has half the terms.
        hessian = 2 * once if block else once
        passes = inner_steps * (once + hessian) + (1 + target_steps) * once
        total += _TASKS * passes
        size, channels = size // 2, _FILTERS
    return total


def _compiled(function, *arrays):
    program = jax.jit(function).lower(*arrays).compile()
    return lambda _: program(*arrays)


if __name__ == "__main__":
    main()
