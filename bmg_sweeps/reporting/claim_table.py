"""The table of a sweep's claims: what its points say about each of them."""

from bmg_sweeps import formatting
from bmg_sweeps.analysis import claims, selection
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.reporting.tables import Cell, Column, Described, Key, Kind, Table
from bmg_sweeps.sweep import display, grid

_COLUMNS = (
    Column("claim"),
    Column("by our points"),
    Column("difference", "interval"),
    Column("more", "described"),
    Column("less", "described"),
)


def table(results: Results) -> list[Table]:
    """Makes the table.

    Returns:
        One table; none of a sweep without claims.
    """
    rule = results.sweep.select
    if not results.sweep.claims:
        return []
    last = formatting.shown_amount(selection.last_budget(results.chosen, rule.axis))
    seeds = f"{rule.over[0]}s"
    notes = [
        f"Of what is best of each method at {last} {rule.axis}, "
        f"chosen by the same {seeds}: mean ± standard deviation over them, and 95 % "
        f"intervals of the difference by Student's t, of pairs where both are of the "
        f"same runs, else by Welch.",
    ]
    if any(claim.over_tasks for claim in results.sweep.claims):
        notes.append(
            f"A statistic over tasks is compared by a stratified bootstrap over "
            f"{seeds}, and its deviation is that of the statistic of each of them."
        )
    notes.append(
        "Supported or contradicted: at 5 % for all claims together (Holm); leans: by "
        "its own interval alone."
    )
    rows = tuple(_row(results.sweep, one) for one in claims.decide(results))
    return [Table(Key(Kind.CLAIMS), "Claims", _COLUMNS, rows, tuple(notes))]


def verdict(one: claims.Decided) -> str:
    """Writes a verdict, and why there is no other."""
    return f"{one.verdict}: {one.reason}" if one.reason else str(one.verdict)


def _row(sweep: grid.Sweep, one: claims.Decided) -> tuple[Cell, ...]:
    sides = [
        reading
        and Described(
            _what(sweep, one.claim, reading), reading.estimate(one.claim.over_tasks)
        )
        for reading in (one.more, one.less)
    ]
    return (one.claim.text, verdict(one), one.difference, *sides)


def _what(sweep: grid.Sweep, claim: display.Claim, reading: claims.Reading) -> str:
    """Names method, configuration, column, budget and statistic over tasks."""
    quantity, over_tasks = reading.quantity, claim.over_tasks
    parts = [grid.name(sweep, reading.score.configuration.values)]
    columns = filter(None, (quantity.metric, quantity.minus))
    parts += [" − ".join(columns)] if quantity.metric else []
    parts += [f"at {formatting.shown_amount(quantity.at)}"] if quantity.at else []
    parts += [f"over {formatting.shown_amount(quantity.last)}"] if quantity.last else []
    parts += [f"{over_tasks.replace('_', ' ')} over tasks"] if over_tasks else []
    return " ".join(parts)
