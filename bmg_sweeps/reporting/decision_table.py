"""The table of what fresh seeds decide of a sweep's claims, as a plan has it."""

from collections.abc import Iterator

from bmg_sweeps import errors, formatting
from bmg_sweeps.analysis import deciding
from bmg_sweeps.analysis.deciding import Decision, Outcome
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.records import files, plans
from bmg_sweeps.reporting import claim_table, report
from bmg_sweeps.reporting.tables import Cell, Column, Described, Key, Kind, Table
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.choices import Chosen

_TITLE = "Claims by fresh seeds"
_COLUMNS = (
    Column("claim"),
    Column("by fresh seeds"),
    Column("seeds", "count"),
    Column("difference", "interval"),
    Column("more", "described"),
    Column("less", "described"),
)


def make(storage: files.Storage, chosen: Chosen) -> list[Table]:
    """Makes the tables of a sweep's plans.

    Returns:
        One of each plan that there is; an empty one that says why a plan is not read.
    """
    found = read(storage, chosen)
    if isinstance(found, str):
        return [Table(Key(Kind.DECISION), _TITLE, _COLUMNS, (), (found,))]
    return [table(one) for one in found]


def read(storage: files.Storage, chosen: Chosen) -> list[Decision] | str:
    """Reads what the seeds of a sweep's plans say; or says why a plan is not read."""
    try:
        return deciding.load(storage, chosen)
    except errors.UserError as error:
        return str(error)


def table(decision: Decision) -> Table:
    """Makes the table of a plan, with what it says of all claims that are decided."""
    plan, sweep = decision.plan, decision.chosen.sweep
    rows = tuple(_row(sweep, plan, one) for one in decision.outcomes)
    at = formatting.shown_amounts({plan.axis: plan.budget})
    key, notes = Key(Kind.DECISION, field=plan.name), tuple(_notes(decision))
    about = report.context(Results(decision.chosen, decision.trained, {}))
    return Table(key, f"{_TITLE}, at {at}", _COLUMNS, rows, notes, about)


def verdict(plan: plans.Plan, one: Outcome) -> str:
    """Writes a verdict, and why there is no other yet."""
    why = reason(plan, one)
    return f"{one.verdict}: {why}" if why else str(one.verdict)


def reason(plan: plans.Plan, one: Outcome) -> str:
    """Says why a claim is not decided yet; "" where it is."""
    if one.lacking:
        looks = [number for number in plan.looks if number > one.seeds]
        return f"the look at {looks[0]} seeds lacks runs"
    is_over = not one.verdict.is_decided and one.seeds == plan.looks[-1]
    return one.reason or ("all looks were made" if is_over else "")


def described(plan: plans.Plan) -> str:
    """Says in a sentence which seeds a plan has, and how they are looked at."""
    looks = [str(number) for number in plan.looks]
    after = " and ".join(filter(None, (", ".join(looks[:-1]), looks[-1])))
    number = formatting.counted(len(plan.claims), "claim")
    return (
        f"{number}, seeds {formatting.ranges(plan.seeds)}, looked at after {after} of "
        f"them, each time at the level {plan.level:.2g} (Pocock's, two-sided, of 5 % "
        f"for all looks and claims)"
    )


def _notes(decision: Decision) -> Iterator[str]:
    plan, sweep = decision.plan, decision.chosen.sweep
    yield f"Planned before the first of these runs: {described(plan)}."
    percent = f"{100 * (1 - plan.level):.4g} %"
    yield (
        f"Configurations were chosen before, by other seeds, and these seeds alone "
        f"count. Welch's t, of the same runs Student's t of pairs; intervals are of "
        f"{percent}. Looking stops when a claim is decided, so the difference at that "
        f"look is a little too large."
    )
    if len(decision.outcomes) < len(plan.claims):
        missing = len(plan.claims) - len(decision.outcomes)
        yield f"{formatting.counted(missing, 'claim')} of the plan no longer there."
    if sweep.select.test:
        yield f"By {sweep.select.test}."


def _row(sweep: grid.Sweep, plan: plans.Plan, one: Outcome) -> tuple[Cell, ...]:
    sides = [
        side and Described(_what(sweep, one, side), side.estimate)
        for side in (one.more, one.less)
    ]
    return (one.claim.text, verdict(plan, one), one.seeds, one.difference, *sides)


def _what(sweep: grid.Sweep, one: Outcome, side: deciding.Side) -> str:
    name = grid.name(sweep, side.configuration.values)
    return claim_table.what(name, one.claim, side.quantity)
