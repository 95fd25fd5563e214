"""`rerun --until-decided`: fresh seeds, look by look, until claims are decided.

The plan is stored before the first run. Whoever types the command again goes on with
the stored one: what a look says depends on it and on the records alone.
"""

import dataclasses
from collections.abc import Callable

from bmg_sweeps import errors
from bmg_sweeps.cli import answers
from bmg_sweeps.launching import revision
from bmg_sweeps.records import files, plans
from bmg_sweeps.sweep import choices

BY, LOOKS = 5, 5  # Seeds from one look to the next, and looks, unless given.
MIN_BY, MAX_LOOKS = 2, 100  # One seed has no deviation; each look costs level.


@dataclasses.dataclass(frozen=True)
class Looks:
    """How many seeds are looked at, as typed; None is not typed."""

    by: int | None
    at_most: int | None

    @property
    def is_typed(self) -> bool:
        """Whether any number is."""
        return (self.by, self.at_most) != (None, None)

    def are_of(self, plan: plans.Plan) -> bool:
        """Whether a plan has the numbers that are typed."""
        by, at_most = plan.looks[0], plan.looks[-1]
        return self.by in (None, by) and self.at_most in (None, at_most)

    def numbers(self) -> tuple[int, ...]:
        """Returns the numbers of seeds, ascending.

        Raises:
            UserError: they are too small, too many, or do not divide.
        """
        by = self.by or BY
        at_most = self.at_most or LOOKS * by
        if by < MIN_BY:
            raise errors.UserError(
                f"--by {by}: expected at least {MIN_BY}, as one seed has no deviation"
            )
        if at_most % by or at_most > MAX_LOOKS * by:
            raise errors.UserError(
                f"--at-most {at_most}: expected a multiple of --by {by}, up to "
                f"{MAX_LOOKS} times"
            )
        return tuple(range(by, at_most + 1, by))


def run(
    storage: files.Storage,
    chosen: choices.Chosen,
    looks: Looks,
    launch: Callable[[choices.Chosen], int],
    dry_run: bool,
) -> int:
    """Runs the seeds of a plan until its claims are decided, or all looks are made.

    Args:
        storage: where plan and records are.
        chosen: the sweep.
        looks: how many seeds are looked at, where there is no plan yet.
        launch: runs points, and returns an exit status.
        dry_run: whether nothing is stored or run.

    Returns:
        The exit status: 0 where each claim is decided or was looked at to the end.
    """
    from bmg_sweeps.analysis import deciding  # It needs NumPy.
    from bmg_sweeps.reporting import decision_table, tables

    plan = _stored(storage, chosen, looks)
    if plan is None:
        plan = _made(storage, chosen, looks, dry_run)
    else:
        _say_unplanned(storage, chosen)
    answers.say(f"Plan: {decision_table.described(plan)}.")
    status, decision = 0, deciding.decide(storage, chosen, plan)
    while decision.lacking and not status:
        before = {p.id for p in decision.lacking}
        again = dataclasses.replace(decision.chosen, points=decision.lacking)
        status = launch(again)
        if dry_run:
            return status
        decision = deciding.decide(storage, chosen, plan)
        if before & {p.id for p in decision.lacking}:
            status = 1  # They have failed; the launch said so.
    tables.text([decision_table.table(decision)], answers.console())
    return status


def _stored(
    storage: files.Storage, chosen: choices.Chosen, looks: Looks
) -> plans.Plan | None:
    """Returns the plan that there is for a sweep's claims.

    Raises:
        UserError: another one was asked for.
    """
    from bmg_sweeps.analysis import planned

    found = planned.find(storage, chosen)
    if not found:
        return None
    plan = found[0]
    if not looks.are_of(plan):
        by, at_most = plan.looks[0], plan.looks[-1]
        raise errors.UserError(
            f"--until-decided: these claims have a plan already, {plans.FOLDER}/"
            f"{plan.name}; expected --by {by} --at-most {at_most}, which goes on with "
            f"it: of a second one the levels would not hold"
        )
    return plan


def _say_unplanned(storage: files.Storage, chosen: choices.Chosen) -> None:
    """Says which open claims no plan will ever decide, as they were added later."""
    from bmg_sweeps.analysis import planned, results

    found = planned.find(storage, chosen)
    added = planned.unplanned(results.load(storage, chosen), found)
    if added:
        texts = "; ".join(claim.text for claim in added)
        answers.say(
            f"In no plan, and to be declared in a sweep file of its own: {texts}"
        )


def _made(
    storage: files.Storage, chosen: choices.Chosen, looks: Looks, dry_run: bool
) -> plans.Plan:
    """Makes a plan of the claims that are open, and stores it."""
    from bmg_sweeps.analysis import planned

    numbers = looks.numbers()
    before = answers.selected(storage, chosen, None)
    plan = planned.make(storage, before, numbers, revision.revision())
    if dry_run:
        return plan
    files.check_writable(storage)
    try:
        plans.create(storage, plan)
    except FileExistsError:  # Another process was faster.
        plan = planned.find(storage, chosen)[0]
    return plan
