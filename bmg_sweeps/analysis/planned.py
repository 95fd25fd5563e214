"""Plans of fresh seeds that are to decide a sweep's claims: how one is made and found.

Seeds that chose a configuration flatter it, and pooled with fresh ones they still do: a
claim about nothing is then supported in 5 to 10 % of cases, and not in 2.5 %. So a plan
freezes the configurations, and takes seeds that none of them has been run on. It is
found again by its claims, whatever else the sweep's file says by then.
"""

import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bmg_sweeps import errors
from bmg_sweeps.analysis import claims, selection, sequential, verdicts
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.records import encoding, files, plans
from bmg_sweeps.records.plans import Plan
from bmg_sweeps.sweep import point
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.sweep.display import Claim
from bmg_sweeps.sweep.point import Point
from bmg_sweeps.trainer import source


def identify(chosen: Chosen) -> dict[str, Claim]:
    """Names the claims of a sweep by what they compare, whatever their words.

    Args:
        chosen: the sweep, at a scale and to a stop rule.

    Returns:
        Claims by their ids; of two that say the same, the first.
    """
    rule, found = chosen.sweep.select, {}
    budgets = selection.budgets(rule, chosen.stop)
    axis = selection.first_axis(chosen)
    for claim in chosen.sweep.claims:
        what = [
            *(chosen.sweep.trainer, chosen.choice.scale, chosen.choice.gin),
            *(axis, budgets[axis][-1], rule.metric, rule.mode, rule.test),
            *(rule.over, claim.over_tasks, claims.is_equality(claim)),
            claim.equal_within,
            [
                [chosen.sweep.methods[q.method].values, q.metric, q.minus, q.at, q.last]
                for q in claim.quantities
            ],
        ]
        found.setdefault(encoding.json_hash(what)[:12], claim)
    return found


def find(storage: files.Storage, chosen: Chosen) -> list[Plan]:
    """Reads the plans that have any of a sweep's claims.

    Raises:
        DamagedPlan: a plan of the storage cannot be read.
    """
    ids = identify(chosen)
    return plans.find(storage, ids) if ids else []


def make(
    storage: files.Storage,
    before: Results,
    looks: Sequence[int],
    revision: str | None = None,
) -> Plan:
    """Plans to decide the claims that are open.

    Args:
        storage: where the records are.
        before: the sweep, selected at its last budget.
        looks: numbers of seeds, ascending, after each of which it is looked.
        revision: of the code that plans.

    Returns:
        The plan; it is not stored.

    Raises:
        UserError: no claim can be decided by seeds, or the sweep has no field of seeds.
    """
    chosen, rule = before.chosen, before.sweep.select
    by_id = _open(before)
    sides = [side for one in by_id.values() for side in (one.more, one.less)]
    scores = {side.score.configuration.id: side.score for side in sides}
    amounts = [side.quantity.at or 0.0 for side in sides]
    first = next(iter(scores.values()))
    axis, budget = first.axis, first.budget
    return Plan(
        sweep=chosen.name.rpartition("/")[2].removesuffix(".py"),
        scale=chosen.choice.scale or "",
        trainer=chosen.sweep.trainer,
        stop={axis: max(budget, *amounts)},
        axis=axis,
        budget=budget,
        claims=tuple(plans.NamedClaim(i, one.claim.text) for i, one in by_id.items()),
        configurations=tuple(
            plans.Configuration(_runs(rule.over[0], score)) for score in scores.values()
        ),
        seeds=_unused(storage, chosen, [*scores.values()], looks[-1]),
        looks=tuple(looks),
        level=sequential.level(len(looks), verdicts.LEVEL / len(by_id)),
        floor=rule.floor,
        made=time.time(),
        revision=revision,
    )


def unplanned(before: Results, found: Sequence[Plan]) -> list[Claim]:
    """Finds the claims that are open, that seeds can decide, and that are in no plan.

    Args:
        before: the sweep, selected at its last budget.
        found: its plans.

    Returns:
        Those that were added once the plans had been made.
    """
    known = {claim.id for plan in found for claim in plan.claims}
    by_id = _decidable(before, _named(before))
    return [one.claim for i, one in by_id.items() if i not in known]


def by_seed(plan: Plan, chosen: Chosen) -> list[dict[int, tuple[Point, ...]]]:
    """Makes the points of a plan.

    Args:
        plan: of claims of a sweep.
        chosen: that sweep.

    Returns:
        For each configuration its points by seed, one on each task.

    Raises:
        UserError: the trainer no longer has a field of theirs.
    """
    seed = chosen.sweep.select.over[0]
    # A field that was added since has the value that it had in effect.
    fields = source.fields(plan.trainer)
    old = {name: f.was for name, f in fields.items() if f.was is not None}
    return [
        {
            n: tuple(
                point.resolve_all(
                    plan.trainer, [old | run | {seed: n} for run in one.runs]
                )
            )
            for n in plan.seeds
        }
        for one in plan.configurations
    ]


def points(by_seed: Sequence[Mapping[int, tuple[Point, ...]]]) -> tuple[Point, ...]:
    """Returns all points that the function `by_seed` has made."""
    return tuple(p for one in by_seed for some in one.values() for p in some)


def _open(before: Results) -> dict[str, claims.Decided]:
    """Returns the claims, by id, that are open and that seeds can decide.

    Raises:
        UserError: there are none.
    """
    named = _named(before)
    found = _decidable(before, named)
    if found:
        return found
    reasons = (one.reason or str(one.verdict) for one in named.values())
    said = "; ".join(dict.fromkeys(reasons)) or "none"
    raise errors.UserError(
        f"--until-decided: expected a claim of {before.chosen.name} that is open and "
        f"that seeds can decide; its claims are: {said}"
    )


def _named(before: Results) -> dict[str, claims.Decided]:
    decided = {one.claim: one for one in claims.decide(before)}
    return {i: decided[claim] for i, claim in identify(before.chosen).items()}


def _decidable(
    before: Results, named: Mapping[str, claims.Decided]
) -> dict[str, claims.Decided]:
    over = before.sweep.select.over
    return {i: one for i, one in named.items() if _is_decidable(over, one)}


def _is_decidable(over: Sequence[str], one: claims.Decided) -> bool:
    if one.verdict.is_decided or one.more is None or one.less is None:
        return False
    needs_margin = claims.is_equality(one.claim) and one.claim.equal_within is None
    more, less = (claims.tasks(over, side.score) for side in (one.more, one.less))
    return more == less and not needs_margin


def _runs(seed: str, score: Score) -> tuple[dict[str, Any], ...]:
    """Returns the values of a configuration's run on each task, without its seed."""
    runs = {p.configuration((seed,)).id: p for p in score.points}
    return tuple(
        {field: value for field, value in p.values.items() if field != seed}
        for p in runs.values()
    )


def _unused(
    storage: files.Storage, chosen: Chosen, scores: Sequence[Score], number: int
) -> tuple[int, ...]:
    """Finds seeds above all of the sweep's, on which no configuration has a record."""
    known = storage.folders(chosen.sweep.trainer)
    found: list[int] = []
    for seed in itertools.count(1 + max(_seeds(chosen), default=-1)):
        points = selection.on_fresh_seeds(chosen, scores, [seed], "--until-decided")
        if not known & {p.id for p in points}:
            found.append(seed)
        if len(found) == number:
            return tuple(found)
    raise AssertionError("unreachable")


def _seeds(chosen: Chosen) -> Iterable[int]:
    """Returns the seeds of a sweep at all of its scales."""
    field = chosen.sweep.select.over[0]
    rows: list[Mapping[str, Any]] = [p.values for p in chosen.points]
    rows += [row for scale in chosen.sweep.scales.values() for row in scale.rows]
    return [row[field] for row in rows if type(row.get(field)) is int]
