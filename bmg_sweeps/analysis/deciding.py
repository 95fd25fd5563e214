"""What fresh seeds say of a sweep's claims, look by look, as their plan has it.

A claim is judged after so many seeds as the plan's looks have, in their order, and the
first look that decides it is the last one. So the decision is a function of the plan
and the records alone: it does not matter when, and how often, a command was killed.
Separate runs are compared by Welch's t, and two numbers of the same runs by Student's t
of their differences, at the level of one look. Of a statistic over tasks, that of each
seed is compared.

A run that diverged counts as the floor that the plan has. Without one the claim stays
open, as nobody can say what it is worth.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bmg_sweeps.analysis import (
    claims,
    differences,
    estimates,
    folds,
    planned,
    readings,
    sequential,
)
from bmg_sweeps.analysis.at_budget import Missing
from bmg_sweeps.analysis.estimates import Estimate
from bmg_sweeps.analysis.intervals import Interval
from bmg_sweeps.analysis.readings import Trained
from bmg_sweeps.analysis.verdicts import Verdict
from bmg_sweeps.records import files, plans, store
from bmg_sweeps.records.plans import Plan
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.choices import Chosen
from bmg_sweeps.sweep.display import Claim, Quantity
from bmg_sweeps.sweep.point import Point


class Side(NamedTuple):
    """A quantity of a configuration, over the seeds of a look."""

    quantity: Quantity
    configuration: Point
    estimate: Estimate


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """A claim, and the last look at it."""

    claim: Claim
    verdict: Verdict = Verdict.OPEN
    seeds: int = 0  # Of each side, that were looked at.
    difference: Interval | float | None = None  # Its interval is of the look's level.
    reason: str = ""  # Why it is open.
    more: Side | None = None
    less: Side | None = None
    lacking: tuple[Point, ...] = ()  # Runs that the next look at it waits for.


@dataclasses.dataclass(frozen=True)
class Decision:
    """A plan, and what its seeds say."""

    plan: Plan
    chosen: Chosen  # The sweep, with the plan's points.
    outcomes: tuple[Outcome, ...]
    trained: tuple[Trained, ...]  # Those points, as far as they are.

    @property
    def lacking(self) -> tuple[Point, ...]:
        """The runs that the next look at each claim waits for, each once."""
        return tuple({p.id: p for one in self.outcomes for p in one.lacking}.values())


def load(storage: files.Storage, chosen: Chosen) -> list[Decision]:
    """Reads what the seeds of a sweep's plans say.

    Args:
        storage: where plans and records are.
        chosen: the sweep.

    Returns:
        One for each plan that has any of its claims.

    Raises:
        UserError: a plan cannot be read, or its points cannot be made.
    """
    found = planned.find(storage, chosen)
    return [decide(storage, chosen, plan) for plan in found]


def decide(storage: files.Storage, chosen: Chosen, plan: Plan) -> Decision:
    """Looks at the runs of a plan, as far as they are there.

    Args:
        storage: where the records are.
        chosen: the sweep; the plan need not be stored yet.
        plan: of its claims.

    Returns:
        What the looks say.
    """
    by_seed = planned.by_seed(plan, chosen)
    choice = dataclasses.replace(chosen.choice, seeds=plan.seeds, where={})
    fresh = dataclasses.replace(
        chosen, points=planned.points(by_seed), stop=plan.stop, choice=choice
    )
    trained = {one.point.id: one for one in readings.load(storage, fresh)}
    tests: Mapping[str, store.Rows] = {}
    if chosen.sweep.select.test:
        tests = {i: readings.tests(storage, one.record) for i, one in trained.items()}
    runs = _Runs(plan, chosen.sweep, _by_method(chosen.sweep, by_seed), trained, tests)
    ids = planned.identify(chosen)
    there = [ids[claim.id] for claim in plan.claims if claim.id in ids]
    for quantity in (q for claim in there for q in claim.quantities):
        if quantity.method not in runs.by_method:
            raise plans.DamagedPlan(
                f"plan {plans.FOLDER}/{plan.name}: expected a configuration of "
                f"{quantity.method}, which is in its claims"
            )
    outcomes = tuple(_outcome(runs, claim) for claim in there)
    return Decision(plan, fresh, outcomes, tuple(trained.values()))


class _Runs(NamedTuple):
    """The runs of a plan, as far as they are there."""

    plan: Plan
    sweep: grid.Sweep
    by_method: Mapping[str, folds.Runs]  # Then by seed.
    trained: Mapping[str, Trained]  # By point id.
    tests: Mapping[str, store.Rows]  # By point id.

    def of(self, quantity: Quantity, number: int) -> folds.Runs:
        """Returns the runs of a quantity on the first seeds of the plan."""
        runs = self.by_method[quantity.method]
        return {seed: runs[seed] for seed in self.plan.seeds[:number]}

    def value(self, quantity: Quantity, p: Point) -> float | Missing:
        """Reads a quantity of a run."""
        rule, tests = self.sweep.select, self.tests.get(p.id, {})
        at = self.plan.axis, self.plan.budget
        return claims.value(rule, quantity, self.trained[p.id], tests, at)

    def lacks(self, quantity: Quantity, p: Point) -> bool:
        """Whether a run has to go on before it can be read."""
        value, record = self.value(quantity, p), self.trained[p.id].record
        has_none = isinstance(value, Missing) and not value.is_divergence
        return has_none and (bool(record.damage) or not record.reaches(self.plan.stop))


def _by_method(
    sweep: grid.Sweep, by_seed: Sequence[Mapping[int, tuple[Point, ...]]]
) -> dict[str, folds.Runs]:
    firsts = [next(iter(one.values()))[0] for one in by_seed]
    methods = [grid.method_of(sweep, p.values) for p in firsts]
    return dict(zip(methods, by_seed, strict=True))


def _outcome(runs: _Runs, claim: Claim) -> Outcome:
    """Looks at a claim until a look decides it, or waits for runs."""
    found = Outcome(claim=claim)
    refused = claims.refusal(
        runs.sweep.select, runs.plan.axis, claim, runs.trained.values()
    )
    if refused:
        return dataclasses.replace(found, reason=refused)
    for number in runs.plan.looks:
        lacking = {
            p.id: p
            for quantity in claim.quantities
            for points in runs.of(quantity, number).values()
            for p in points
            if runs.lacks(quantity, p)
        }
        if lacking:
            return dataclasses.replace(found, lacking=tuple(lacking.values()))
        found = _look(runs, claim, number)
        if found.verdict.is_decided or found.more is None or found.less is None:
            return found
    return found


def _look(runs: _Runs, claim: Claim, number: int) -> Outcome:
    """Judges a claim by the first seeds of a plan, all of which are over."""
    found, sides = Outcome(claim=claim, seeds=number), []
    for quantity in claim.quantities:
        by_seed = _read(runs, quantity, claim.over_tasks, number)
        if isinstance(by_seed, str):
            reason = f"{quantity.method}: {by_seed}"
            return dataclasses.replace(found, reason=reason)
        sides.append(by_seed)
    more, less = (
        _side(runs, *both) for both in zip(claim.quantities, sides, strict=True)
    )
    found = dataclasses.replace(found, more=more, less=less)
    if more.configuration.id == less.configuration.id:
        pairs, size = claims.pairs(*sides)
        difference = differences.of_pairs(differences.mean(pairs, size=size))
    else:
        difference = differences.of_means(
            *(differences.mean([*by_seed.values()]) for by_seed in sides)
        )
    if not isinstance(difference, differences.Difference):
        return dataclasses.replace(
            found, difference=difference, reason=claims.NO_SPREAD
        )
    interval = difference.interval(1 - runs.plan.level)
    within = (claim.equal_within or 0.0) if claims.is_equality(claim) else None
    verdict = sequential.verdict(interval, within)
    return dataclasses.replace(found, difference=interval, verdict=verdict)


def _read(
    runs: _Runs, quantity: Quantity, statistic: str | None, number: int
) -> dict[object, float] | str:
    """Reads a quantity of each seed; or says why there is none."""
    is_deciding = claims.is_deciding(runs.sweep.select, quantity)
    return claims.read_seeds(
        runs.of(quantity, number),
        functools.partial(runs.value, quantity),
        runs.plan.floor if is_deciding else None,
        statistic,
        "seeds",
    )


def _side(runs: _Runs, quantity: Quantity, by_seed: Mapping[object, float]) -> Side:
    first = runs.by_method[quantity.method][runs.plan.seeds[0]][0]
    configuration = first.configuration(runs.sweep.select.over)
    return Side(quantity, configuration, estimates.estimate(by_seed.values()))
