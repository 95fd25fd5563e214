"""What the parsed arguments of a command mean, and how commands answer."""

import argparse
import shlex

import rich.console

from bmg_sweeps import errors, formatting
from bmg_sweeps.analysis import results, selection
from bmg_sweeps.launching import planning
from bmg_sweeps.records import store
from bmg_sweeps.sweep import choices, grid, loading
from bmg_sweeps.sweep.point import Point

CONSOLE = rich.console.Console(highlight=False)


def choice(options: argparse.Namespace) -> choices.Choice:
    """Reads what the command line says about a sweep's points."""
    for flag, keys in (
        ("--where", [field for field, _ in options.where]),
        ("--stop", [axis for stop in options.stop for axis in stop]),
    ):
        for key in {key for key in keys if keys.count(key) > 1}:
            raise errors.UserError(f"{flag} {key}: given twice; expected once")
    return choices.Choice(
        scale=options.scale,
        where=dict(options.where),
        gin=tuple(options.gin),
        seeds=options.seeds,
        stop={axis: n for stop in options.stop for axis, n in stop.items()},
    )


def choose(options: argparse.Namespace) -> choices.Chosen:
    """Resolves the sweep that the command line names."""
    return choices.choose(options.sweep, choice(options))


def choose_all(options: argparse.Namespace) -> list[choices.Chosen]:
    """Resolves several sweeps, each once; "all" are those of the checkout."""
    names = loading.sweep_names() if options.sweeps == ["all"] else options.sweeps
    return [choices.choose(name, choice(options)) for name in dict.fromkeys(names)]


def find(chosen: choices.Chosen, point_id: str) -> Point:
    """Finds the point that an id, or the beginning of one, means."""
    found = [p for p in chosen.points if p.id.startswith(point_id)]
    if len(found) != 1:
        raise errors.UserError(
            f"--point {point_id}: expected the id of one point of {chosen.name}, "
            f"{len(found)} match"
        )
    return found[0]


def selected(options, chosen: choices.Chosen) -> results.Results:
    """Selects at the budget that was asked for, or at the last one."""
    axis, amount = _budget(options, chosen)
    budget = f"budget {formatting.amounts({axis: amount})}"
    found = results.load(options.storage, chosen, {axis: [amount]})
    reached = (one.record.progress.get(axis, 0) for one in found.trained)
    furthest = max(reached, default=0)
    if amount > furthest:
        raise errors.UserError(
            f"{budget}: expected at most {formatting.amount(furthest)}, the furthest "
            f"that a point has trained"
        )
    if found.first.refused:
        raise errors.UserError(f"{budget}: {found.first.refused}")
    if not found.first.best:
        one = found.first.left_out[0]
        raise errors.UserError(
            f"{budget}: no configuration is complete there; "
            f"{grid.name(chosen.sweep, one.configuration.values)}, "
            f"{one.reason}"
        )
    return found


def _budget(options, chosen) -> tuple[str, float]:
    """Returns the axis and amount that were asked for, or the last of the first."""
    if not options.budget:
        axis, amounts = next(
            iter(selection.budgets(chosen.sweep.select, chosen.stop).items())
        )
        return axis, amounts[-1]
    axis, amount = next(iter(options.budget.items()))
    if axis not in chosen.sweep.select.budgets and axis != "hours":
        raise errors.UserError(
            f"--budget {formatting.amounts(options.budget)}: "
            + errors.expected_one_of(axis, [*chosen.sweep.select.budgets, "hours"])
        )
    return axis, amount


def using(options: argparse.Namespace) -> str:
    """Says which storage and scale a command uses."""
    return f"Storage {options.storage.uri}, scale {options.scale}."


def command(options: argparse.Namespace, name: str, sweep: str) -> str:
    """Writes a command that means the same points."""
    words = [name, sweep, *choice(options).arguments()]
    words += ["--storage", options.storage.uri]
    return "python -m bmg_sweeps " + shlex.join(words)


def counted(plan: planning.Plan) -> str:
    """Counts a plan's points, in words."""
    counts = ", ".join(f"{n} {name}" for name, n in sorted(plan.counts().items()))
    partial = f" ({plan.num_partial} partly trained)" if plan.num_partial else ""
    return f"{len(plan.points)} points: {counts}{partial}"


def print_failures(plan: planning.Plan) -> None:
    """Names each point that is damaged, has failed, or had to begin again."""
    for record in plan.records.values():
        if record.damage:
            text = f"damaged, counted as missing: {record.damage}"
        elif record.failure:
            text = failure(record)
        elif "restarted" in record.provenance:
            text = f"began again: {record.provenance['restarted']}"
        else:
            continue
        print(f"  {record.id} {errors.one_line(text)}")


def failure(record: store.Record) -> str:
    """Says in one line why a point ended badly."""
    return f"{record.failure['kind']}: {store.reason(record.failure)}"


def say(text: str) -> None:
    """Prints a line as it is, however long, so that paths in it can be copied."""
    CONSOLE.print(text, soft_wrap=True, markup=False)
