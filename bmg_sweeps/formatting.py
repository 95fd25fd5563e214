"""Numbers as people read and type them: amounts, counts, ranges, spans of time."""

from collections.abc import Mapping, Sequence
from typing import Any


def amounts(by_axis: Mapping[str, float]) -> str:
    """Writes amounts as they can be typed.

    >>> amounts({"env_steps": 2e6, "hours": 0.25})
    'env_steps=2_000_000, hours=0.25'
    """
    return ", ".join(f"{axis}={amount(n)}" for axis, n in by_axis.items()) or "–"


def amount(number: float) -> str:
    """Writes one amount as it can be typed, to its last digit: 2_000_000 or 0.0125."""
    return _whole(number, "_") or f"{number:.12g}"


def shown_amounts(by_axis: Mapping[str, float]) -> str:
    """Writes amounts as people read them.

    >>> shown_amounts({"env_steps": 2e6, "hours": 0.25})
    '2,000,000 env_steps, 0.25 hours'
    """
    parts = (f"{shown_amount(n)} {axis}" for axis, n in by_axis.items())
    return ", ".join(parts) or "–"


def shown_amount(number: float) -> str:
    """Writes one amount as people read it.

    >>> [shown_amount(n) for n in (1e7, 0.5, 0.00113)]
    ['10,000,000', '0.50', '0.0011']
    """
    fraction = f"{number:,.2f}" if number >= 0.1 else f"{number:.2g}"
    return _whole(number, ",") or fraction


def _whole(number: float, separator: str) -> str | None:
    return f"{int(number):{separator}}" if number == int(number) else None


def short(value: Any) -> str:
    """Writes a value of a field: another value is written in another way.

    >>> [short(value) for value in (0.0001, 1e-05, 7, "fixed", (8, 8))]
    ['0.0001', '1e-05', '7', 'fixed', '(8, 8)']
    >>> short(0.1 + 0.2)
    '0.30000000000000004'
    """
    if not isinstance(value, float):
        return str(value)
    text = f"{value:g}"
    return text if float(text) == value else repr(value)


def counted(number: int, noun: str) -> str:
    """Writes a number of things.

    >>> counted(1, "image"), counted(6000, "class")
    ('1 image', '6,000 classes')
    """
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def duration(seconds: float) -> str:
    """Writes a span of time as people say it.

    >>> [duration(s) for s in (40, 2400, 7800, 110_000, 260_000)]
    ['40 s', '40 min', '2 h 10 min', '31 h', '3 days']
    """
    minutes = round(seconds / 60)
    if seconds < 59.5:
        return f"{max(1, round(seconds))} s"
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 600:
        return f"{minutes // 60} h {minutes % 60} min".removesuffix(" 0 min")
    if seconds < 48 * 3600:
        return f"{round(seconds / 3600)} h"
    return f"{round(seconds / 86400):,} days"


def memory(num_bytes: float) -> str:
    """Writes a size of memory.

    >>> memory(1_300_000_000), memory(350_000_000), memory(40_000)
    ('1.2 GiB', '330 MiB', '0.038 MiB')
    """
    mebibytes = num_bytes / 2**20
    if mebibytes >= 1000:
        return f"{float(f'{mebibytes / 1024:.2g}'):,g} GiB"
    return f"{float(f'{mebibytes:.2g}'):g} MiB"


def ranges(numbers: Sequence[Any]) -> str:
    """Writes ascending numbers.

    >>> ranges([0, 1, 2, 3, 4, 7])
    '0–4, 7'
    """
    parts: list[list[Any]] = []
    for number in numbers:
        is_next = parts and isinstance(number, int) and parts[-1][-1] == number - 1
        if is_next:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("–".join(map(str, part)) for part in parts) or "–"


def signed(difference: float) -> str:
    """Writes a difference with its sign and three digits.

    >>> signed(3100), signed(-0.25)
    ('+3.1k', '-0.25')
    """
    text = suffixed(difference)
    return text if text.startswith("-") else f"+{text}"


def suffixed(number: float, digits: int = 3) -> str:
    """Writes a few digits and a suffix.

    >>> suffixed(1_774_099), suffixed(999.6), suffixed(1_000_500, digits=6)
    ('1.77M', '1k', '1.0005M')
    """
    for factor, suffix in ((1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")):
        text = f"{number / factor:.{digits}g}"
        if abs(float(text)) < 1000:  # After rounding: 999.6 is 1k.
            return text + suffix
    return f"{number:.{digits}g}"
