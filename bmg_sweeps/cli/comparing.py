"""The command that compares two points, or what two sweeps have selected."""

import re
from collections.abc import Sequence

import click

from bmg_sweeps import errors, formatting
from bmg_sweeps.analysis import diff, selection
from bmg_sweeps.analysis.diff import Side
from bmg_sweeps.cli import answers, completion, options
from bmg_sweeps.records import files
from bmg_sweeps.sweep import choices, loading

MAX_LISTED = 5  # Ids that are named where several match.


@options.command
@click.argument(
    "sweeps", nargs=-1, metavar="A B", shell_complete=completion.sweeps_and_points
)
@options.scale
@options.budget
@click.option(
    "--format",
    "form",
    type=options.OneOf(answers.FORMS),
    default="text",
    help="text, unless given.",
)
def diff_(
    storage: files.Storage,
    sweeps: tuple[str, ...],
    scale: str | None,
    budget: tuple[str, float] | None,
    form: str,
) -> None:
    """Say how two points differ, or what two sweeps have selected.

    A and B are two points, each by its id or the beginning of it; or two sweeps, of
    which the best of each method of both are compared.

    JSON: {"storage", "of", "tables": […]}, as of report.
    """
    if len(sweeps) != 2:
        raise errors.UserError(
            f"{' '.join(sweeps) or 'nothing'}: expected two points, or two sweeps"
        )
    are_sweeps = [_is_sweep(name) for name in sweeps]
    if all(are_sweeps):
        found = _of_sweeps(storage, sweeps, scale, budget)
    elif any(are_sweeps):
        raise errors.UserError(
            f"{' and '.join(sweeps)}: expected two sweeps, or two points"
        )
    else:
        for flag, value in (("--scale", scale), ("--budget", budget)):
            if value is not None:
                raise errors.UserError(f"{flag}: expected two sweeps; these are points")
        keys = [_find(storage, name) for name in sweeps]
        one, other = (diff.of_point(storage, *key) for key in keys)
        found = [diff.compare(one, other)]
    from bmg_sweeps.reporting import diff_tables

    made = [table for one in found for table in diff_tables.make(one)]
    answers.print_tables(made, form, {"storage": storage.uri, "of": list(sweeps)})


def _is_sweep(name: str) -> bool:
    return name in loading.sweep_names() or name.endswith(".py")


def _find(storage: files.Storage, name: str) -> tuple[str, str]:
    """Finds the point that the beginning of an id means, of any trainer."""
    if not re.fullmatch("[0-9a-f]{1,12}", name):
        expected = errors.expected_one_of(name, loading.sweep_names())
        raise errors.UserError(
            f"{errors.shown(name)}: no sweep, nor the beginning of a point's id; "
            f"{expected}"
        )
    found = completion.points(storage, name)
    if len(found) == 1:
        return found[0]
    ids = ", ".join(point_id for _, point_id in found[:MAX_LISTED])
    raise errors.UserError(
        f"point {name}: expected the beginning of the id of one point in "
        f"{storage.uri}, {len(found)} match{f' ({ids})' if ids else ''}"
    )


def _of_sweeps(
    storage: files.Storage,
    names: Sequence[str],
    scale: str | None,
    budget: tuple[str, float] | None,
) -> list[diff.Difference]:
    """Compares the best of each method that both sweeps have."""
    chosen = [choices.choose(name, choices.Choice(scale=scale)) for name in names]
    at = budget or _last_of_both(*chosen)
    loaded = [answers.selected(storage, one, at) for one in chosen]
    sides: list[dict[str, Side]] = [
        {score.method: diff.of_score(one, score) for score in one.first.best}
        for one in loaded
    ]
    methods = [method for method in sides[0] if method in sides[1]]
    if not methods:
        lists = " and ".join(", ".join(side) for side in sides)
        raise errors.UserError(
            f"{' and '.join(names)}: expected a method of both; they have {lists}"
        )
    return [diff.compare(sides[0][m], sides[1][m], at) for m in methods]


def _last_of_both(one: choices.Chosen, other: choices.Chosen) -> tuple[str, float]:
    """The lesser of the last budgets of two sweeps, on the first axis of both."""
    last = [
        {
            a: amounts[-1]
            for a, amounts in selection.budgets(c.sweep.select, c.stop).items()
        }
        for c in (one, other)
    ]
    for axis in last[0]:
        if axis in last[1]:
            return axis, min(last[0][axis], last[1][axis])
    raise errors.UserError(
        f"{one.name} and {other.name}: expected budgets on an axis of both; they have "
        f"{formatting.amounts(last[0])} and {formatting.amounts(last[1])}"
    )
