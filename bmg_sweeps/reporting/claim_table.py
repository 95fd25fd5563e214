"""The table of a sweep's claims: what its points say about each of them."""

from collections.abc import Iterator

from bmg_sweeps import formatting
from bmg_sweeps.analysis import claims, held_out, power, selection
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting.tables import Cell, Column, Described, Key, Kind, Table
from bmg_sweeps.sweep import display, grid

_CLAIM = (Column("claim"), Column("by our points"), Column("difference", "interval"))
_PLAIN = (Column("plain verdict"), Column("plain difference", "interval"))
_SIDES = (Column("more", "described"), Column("less", "described"))


def table(results: Results) -> list[Table]:
    """Makes the table.

    Returns:
        One table; none of a sweep without claims.
    """
    if not results.sweep.claims:
        return []
    decided = claims.decide(results)
    has_plain = any(one.plain for one in decided)
    rows = tuple(_row(results.sweep, one, has_plain) for one in decided)
    columns = (*_CLAIM, *(_PLAIN if has_plain else ()), *_SIDES)
    has_lacking = any(one.lacking for one in decided)
    notes = tuple(_notes(results, has_plain, has_lacking))
    return [Table(Key(Kind.CLAIMS), "Claims", columns, rows, notes)]


def _notes(results: Results, has_plain: bool, has_lacking: bool) -> Iterator[str]:
    seed, axis = results.sweep.select.over[0], results.first.axis
    last = formatting.shown_amount(selection.last_budget(results.chosen, axis))
    yield (
        f"Of what is best of each method at {last} {axis}, chosen by the same "
        f"{seed}s: mean ± standard deviation over them, and 95 % intervals of the "
        f"difference by Student's t, of pairs where both are of the same runs, else by "
        f"Welch."
    )
    if has_plain:
        yield (
            f"Where a method had a choice, the difference is of what is held out: all "
            f"{seed}s but one choose, and that one is read; from {held_out.MIN_HALVES} "
            f"{seed}s on each half of them is read by what the other chose. Intervals "
            f"are as wide as that takes (Nadeau and Bengio, 2003). The plain verdict "
            f"is by the {seed}s that chose, which flatter it."
        )
    yield (
        "Supported or contradicted: at 5 % for all claims together (Holm); leans: by "
        "its own interval alone."
    )
    if any(claim.over_tasks for claim in results.sweep.claims):
        yield (
            f"A statistic over tasks is worked out for each {seed}; mean, deviation "
            f"and difference are over {seed}s."
        )
    if has_lacking:
        yield (
            f"More {seed}s: this many new {seed}s for each side would decide the claim "
            f"with 80 % power, corrected for the other open claims, if the difference "
            f"is what it is now. The first number takes the deviation as it is, the "
            f"second its upper 80 % limit. Few {seed}s make a wide range. "
            f"`rerun --until-decided` runs them."
        )


def verdict(one: claims.Decided) -> str:
    """Writes a verdict, and why there is no other, or how many seeds it lacks."""
    reason = one.reason or (lacking(one.lacking) if one.lacking else "")
    return f"{one.verdict}: {reason}" if reason else str(one.verdict)


def lacking(seeds: power.Range) -> str:
    """Writes how many fresh seeds a claim lacks.

    >>> lacking(power.Range(5, 8)), lacking(power.Range(5, 11))
    ('5 to 8 more seeds', '5 to 11 more seeds, a wide range')
    >>> lacking(power.Range(None, None))
    'over 1,000 more seeds'
    """
    over = f"over {power.MAX_SEEDS:,}"
    low, high = (over if n is None else f"{n:,}" for n in seeds)
    numbers = low if low == high else f"{low} to {high}"
    wide = ", a wide range" if seeds.is_wide else ""
    return f"{numbers} more seeds{wide}"


def _row(sweep: grid.Sweep, one: claims.Decided, has_plain: bool) -> tuple[Cell, ...]:
    sides = [
        reading
        and Described(
            _what(sweep, one.claim, reading),
            reading.estimate(one.claim.over_tasks),
            reading.held_out,
        )
        for reading in (one.more, one.less)
    ]
    plain: list[Cell] = []
    if has_plain:
        shown = one.plain
        plain = [verdict(shown), shown.difference] if shown else [None, None]
    return (one.claim.text, verdict(one), one.difference, *plain, *sides)


def what(name: str, claim: display.Claim, quantity: display.Quantity) -> str:
    """Names configuration, column, budget and statistic over tasks of a quantity."""
    over_tasks, parts = claim.over_tasks, [name]
    columns = filter(None, (quantity.metric, quantity.minus))
    parts += [" − ".join(columns)] if quantity.metric else []
    parts += [f"at {formatting.shown_amount(quantity.at)}"] if quantity.at else []
    parts += [f"over {formatting.shown_amount(quantity.last)}"] if quantity.last else []
    parts += [f"{over_tasks.replace('_', ' ')} over tasks"] if over_tasks else []
    return " ".join(parts)


def _what(sweep: grid.Sweep, claim: display.Claim, reading: claims.Reading) -> str:
    name = grid.name(sweep, reading.score.configuration.values)
    return what(name, claim, reading.quantity)
