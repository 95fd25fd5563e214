"""Numbers as people read and type them: amounts, counts, ranges, spans of time."""

from collections.abc import Mapping, Sequence
from typing import Any


def amounts(by_axis: Mapping[str, float]) -> str:
    """Writes amounts as they can be typed, such as "env_steps=2_000_000"."""
    return ", ".join(f"{axis}={amount(n)}" for axis, n in by_axis.items()) or "–"


def amount(number: float) -> str:
    """Writes one amount, whole numbers with underscores."""
    return f"{int(number):_}" if number == int(number) else f"{number:.12g}"


def counted(number: int, noun: str) -> str:
    """Writes a number of things: "1 image", "600 images"."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def ranges(numbers: Sequence[Any]) -> str:
    """Writes ascending numbers as "0–4, 7"."""
    parts: list[list[Any]] = []
    for number in numbers:
        is_next = parts and isinstance(number, int) and parts[-1][-1] == number - 1
        if is_next:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("–".join(map(str, part)) for part in parts) or "–"


def signed(difference: float) -> str:
    """Writes a difference with its sign and three digits: +3.1k."""
    text = suffixed(difference)
    return text if text.startswith("-") else f"+{text}"


def suffixed(number: float, digits: int = 3) -> str:
    """Writes a few digits and a suffix: 1.77M."""
    for factor, suffix in ((1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")):
        text = f"{number / factor:.{digits}g}"
        if abs(float(text)) < 1000:  # After rounding: 999.6 is 1k.
            return text + suffix
    return f"{number:.{digits}g}"
