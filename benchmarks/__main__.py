"""Speed against its goals, in one table: `make bench`, within ten minutes.

    NPROC=1 taskset -c 0 .venv/bin/python -m benchmarks [PART …]

Each row has a number of ours, that of a floor which was measured beside it, and their
ratio. The goal is one of the ratio, of the slope, or, where it has a unit, of our own
number. Packs have one point alone as their floor, and their ratio is a gain. Parts:
two-colors, q-lambda, few-shot, atari, growth and packs. `platform` has a table of its
own. The modules of the parts say what their floors are.
"""

import argparse
import functools
from collections.abc import Iterator

from benchmarks import atari, few_shot, packs, products, q_lambda, timing, two_colors

LENGTHS = (1, 4, 16)  # K, L and chunks, whose growth is measured.
HEADS = ("what", "ours", "floor", "ratio", "goal")
Row = tuple[str, str, str, str, str]


def main() -> None:
    """Prints the table, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--repeats", type=int, default=5, help="the fastest counts")
    options = parser.parse_args()
    print("|", " | ".join(HEADS), "|")
    print("| --- | --- | --- | --- | --- |")
    for part in options.parts or PARTS:
        for row in PARTS[part](options.repeats):
            print("|", " | ".join(row), "|", flush=True)


def of_two_colors(repeats: int) -> Iterator[Row]:
    """Steps a second against matrix products."""
    goals = {
        "BMG K=1 L=7": ("1.15", "–"),
        "MG K=7": ("–", "1.3"),
        "BMG K=7 L=2": ("–", "1.3"),
    }
    for name, goals_of_floors in goals.items():
        values = two_colors.SETTINGS[name]
        train, state, _ = two_colors.compiled(two_colors.TRAINER, values)
        rate = two_colors.steps_per_second(train, state, repeats)
        floors = two_colors.floors_of(values, repeats)
        whats = ("fixed ε's products", "all products")
        for what, floor, goal in zip(whats, floors, goals_of_floors, strict=True):
            yield _rates(f"two-colors {name}, {what}", rate, floor, goal)


def of_q_lambda(repeats: int) -> Iterator[Row]:
    """Steps a second against five arrays that are read and written."""
    for name in ("fixed", "BMG L=16"):
        values = q_lambda.SETTINGS[name]
        train, state, _ = two_colors.compiled(q_lambda.TRAINER, values)
        rate = two_colors.steps_per_second(train, state, repeats)
        floor = q_lambda.floor_steps_per_second(state.learner.params, repeats)
        yield _rates(f"Q(λ) {name}", rate, floor, "3.3")


def of_few_shot(repeats: int) -> Iterator[Row]:
    """Seconds of a meta-update against matrix products."""
    for name in ("MAML K=1", "MAML K=5", "BMG K=1 L=10", "BMG K=5 L=5"):
        values = few_shot.SETTINGS[name]
        seconds, _, _ = few_shot.measure(values, min(repeats, 3))
        steps = values["inner_steps"], values.get("target_steps", 0)
        floor = few_shot.floor_seconds(*steps, min(repeats, 3))
        cells = f"{seconds:.2f} s", f"{floor:.2f} s", f"{seconds / floor:.2f}"
        yield f"few-shot {name}", *cells, "1.15"
    _, _, num_bytes = few_shot.measure(few_shot.SETTINGS["MAML K=10"], 1)
    yield "few-shot MAML K=10, memory", f"{num_bytes / 1e6:.0f} MB", "–", "–", "–"


def of_atari(repeats: int) -> Iterator[Row]:
    """Frames a second on MinAtar against the network's passes."""
    for name in ("STACX", "BMG KL"):
        rate, floor, _ = atari.minatar_rates(atari.AGENTS[name], repeats)
        yield _rates(f"MinAtar {name}", rate, floor, "30,000/s")


def of_growth(repeats: int) -> Iterator[Row]:
    """Seconds for 1, 4 and 16 times as much, and the slopes of their logarithms."""
    grown = {
        "K, MG": [_inner(k, "meta_gradient", 1) for k in LENGTHS],
        "K, BMG": [_inner(k, "bootstrapped_meta_gradient", 7) for k in LENGTHS],
        "L, BMG": [_inner(7, "bootstrapped_meta_gradient", n) for n in LENGTHS],
    }
    for name, settings in grown.items():
        seconds = [_meta_update_seconds(values, repeats) for values in settings]
        yield _growth(name, seconds)
    seconds = []
    for number in LENGTHS:
        train, state, _ = two_colors.compiled(two_colors.TRAINER, {})
        chunks = functools.partial(_chunks, train, number)
        seconds.append(timing.fastest(chunks, state, repeats))
    yield _growth("chunks of training", seconds)


def of_packs(repeats: int) -> Iterator[Row]:
    """Steps a second of points together, against one alone on the same cores."""
    alone, _ = packs.measure(1, repeats)
    for width in (2, 4, 8):
        rate, _ = packs.measure(width, repeats)
        rates = f"{rate:,.0f}/s", f"{alone:,.0f}/s"
        yield f"pack of {width}", *rates, f"{rate / alone:.2f} times", "–"


PARTS = {
    "two-colors": of_two_colors,
    "q-lambda": of_q_lambda,
    "few-shot": of_few_shot,
    "atari": of_atari,
    "growth": of_growth,
    "packs": of_packs,
}


def _rates(what: str, rate: float, floor: float, goal: str) -> Row:
    return what, f"{rate:,.0f}/s", f"{floor:,.0f}/s", f"{floor / rate:.2f}", goal


def _growth(what: str, seconds: list[float]) -> Row:
    shown = ", ".join(f"{1e3 * s:.2f}" for s in seconds)
    slope = timing.slopes(LENGTHS, seconds)
    return f"growth in {what}", f"{shown} ms", "–", f"slope {slope}", "1"


def _inner(inner_steps: int, update_kind: str, target_steps: int) -> dict:
    return {
        "update_kind": update_kind,
        "inner_steps": inner_steps,
        "target_steps": target_steps,
    }


def _meta_update_seconds(values: dict, repeats: int) -> float:
    train, state, _ = two_colors.compiled(two_colors.TRAINER, values)
    rate = two_colors.steps_per_second(train, state, repeats)
    rollouts = values["inner_steps"] + values["target_steps"] - 1
    return rollouts * products.LENGTH / rate


def _chunks(train, number: int, state):
    """Trains for a number of chunks."""
    for _ in range(number):
        state, _ = train(state, None)
    return state


if __name__ == "__main__":
    main()
