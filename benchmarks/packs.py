"""Speed of points in a pack against the same points alone, in one run.

    .venv/bin/python -m benchmarks.packs

For each width: environment steps per second of all points together, and the ratio to a
point alone. A pack pays where one point leaves a device idle: on a GPU, and on CPUs not
at all where a point fills them.
"""

import argparse
import time

import jax

from bmg_sweeps.running import binding, pack, programs
from bmg_sweeps.sweep import point

_TRAINER = "two_colors_actor_critic"


def main() -> None:
    """Prints the table, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--repeats", type=int, default=5, help="the fastest counts")
    options = parser.parse_args()
    print("| points in a pack | steps/s of all | ratio to one alone | compile, s |")
    print("| --- | --- | --- | --- |")
    alone = None
    for width in options.widths:
        rate, compile_seconds = measure(width, options.repeats)
        alone = alone or rate
        cells = (str(width), f"{rate:,.0f}", f"{rate / alone:.2f}")
        print("|", " | ".join((*cells, f"{compile_seconds:.1f}")), "|", flush=True)


def measure(width: int, repeats: int) -> tuple[float, float]:
    """Environment steps per second of all points, and the seconds of compiling."""
    texts = [point.resolve(_TRAINER, {"seed": i}).gin_text() for i in range(width)]
    trainer, _ = binding.bind(_TRAINER, texts[0])
    configs = [pack.as_arrays(binding.bind(_TRAINER, text)[1]) for text in texts]
    compiled, seconds = programs.compiled(trainer, configs, None)
    config = programs.stack(configs)
    keys = programs.stack([jax.random.key(i) for i in range(width)])
    state = compiled.init(config, keys, None)
    rates = []
    for _ in range(repeats + 1):
        before = int(state.learner.environment.steps.sum())
        began = time.perf_counter()
        state, _ = jax.block_until_ready(compiled.train(config, state, None))
        taken = time.perf_counter() - began
        rates.append((int(state.learner.environment.steps.sum()) - before) / taken)
    return max(rates[1:]), seconds


if __name__ == "__main__":
    main()
