"""What several commands look up, and how they say what they found."""

import dataclasses
import json
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bmg_sweeps import errors, formatting
from bmg_sweeps.analysis import folds, results, selection
from bmg_sweeps.launching import planning
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import choices, grid
from bmg_sweeps.sweep.point import Point

FORMS = ("text", "markdown", "latex", "json")  # In which tables are printed.


_Broken = Mapping[str, errors.UserError]  # What is wrong, by the names of sweeps.


def choose(
    names: Sequence[str], choice: choices.Choice, on_broken: Callable[[_Broken], None]
) -> list[choices.Chosen]:
    """Resolves the sweeps that are named, each once.

    Args:
        names: as typed. "all" are those of the checkout that have the scale; a line
            says which do not.
        choice: which points of them.
        on_broken: is told of which of all a file is broken; `say_broken` or `refuse`.

    Returns:
        The sweeps.
    """
    if "all" in names and len(set(names)) > 1:
        raise errors.UserError(f"{' '.join(names)}: expected all alone, or sweeps")
    if "all" not in names:
        return [choices.choose(name, choice) for name in dict.fromkeys(names)]
    chosen, skipped, broken = choices.choose_all(choice)
    on_broken(broken)
    say_skipped(choice, skipped)
    return chosen


def refuse(broken: _Broken) -> None:
    """Raises what is wrong with the first sweep of which a file is broken."""
    for error in broken.values():
        raise error


def say_broken(broken: _Broken) -> None:
    """Prints which sweeps are left out because of which file, apart from the answer."""
    names: dict[str, list[str]] = {}
    for name, error in broken.items():
        names.setdefault(errors.one_line(str(error)), []).append(name)
    for text, of_text in names.items():
        print(f"Skipped {', '.join(of_text)}: {text}", file=sys.stderr)


def say_skipped(choice: choices.Choice, skipped: Iterable[str]) -> None:
    """Prints which sweeps lack the scale, if any do."""
    if names := ", ".join(skipped):
        scale = choice.scale or choices.DEFAULT_SCALE
        say(f"Skipped, as they have no scale {scale}: {names}.")


def find(chosen: choices.Chosen, point_id: str) -> Point:
    """Finds the point that an id, or the beginning of one, means."""
    found = [p for p in chosen.points if p.id.startswith(point_id)]
    if len(found) != 1:
        raise errors.UserError(
            f"--point {point_id}: expected the id of one point of {chosen.name} at "
            f"scale {chosen.choice.scale}, {len(found)} match"
        )
    return found[0]


def selected(
    storage: files.Storage,
    chosen: choices.Chosen,
    budget: tuple[str, float] | None,
) -> results.Results:
    """Selects at a budget, or where it is None at the last one."""
    axis, amount = _budget(chosen, budget)
    text = f"budget {formatting.amounts({axis: amount})}"
    found = results.load(storage, chosen, {axis: [amount]})
    reached = (one.record.progress.get(axis, 0) for one in found.trained)
    furthest = max(reached, default=0)
    if not furthest:
        reasons = (store.status(one.record, chosen.stop) for one in found.trained)
        known = ", ".join(sorted(set(reasons)))
        raise errors.UserError(
            f"sweep {chosen.name}: no point has trained yet (they are {known}); "
            f"expected a launch before"
        )
    if amount > furthest:
        raise errors.UserError(
            f"{text}: expected at most {formatting.amount(furthest)}, the furthest "
            f"that a point has trained"
        )
    if found.first.refused:
        raise errors.UserError(f"{text}: {found.first.refused}")
    if not found.first.best:
        one = found.first.left_out[0]
        raise errors.UserError(
            f"{text}: no configuration is complete there; "
            f"{grid.name(chosen.sweep, one.configuration.values)}, "
            f"{one.reason}"
        )
    return found


def on_fresh_seeds(
    before: results.Results, seeds: Sequence[int], option: str = "--seeds"
) -> choices.Chosen:
    """Makes a sweep of what was selected, on seeds that did not choose it.

    Args:
        before: selected at one budget.
        seeds: the fresh ones.
        option: that says them.

    Returns:
        Its points train to that budget.

    Raises:
        UserError: a seed was used in the selection.
    """
    chosen, scores = before.chosen, before.first.best
    return dataclasses.replace(
        chosen,
        points=selection.on_fresh_seeds(chosen, scores, seeds, option),
        stop={scores[0].axis: scores[0].budget},
        choice=dataclasses.replace(chosen.choice, seeds=tuple(seeds)),
    )


def how_sure(sweep: grid.Sweep, apart: folds.HeldOut | None) -> list[str]:
    """Says how sure a choice among several configurations is.

    Args:
        sweep: that was selected from.
        apart: what is held out of the choice; None with one seed.

    Returns:
        What is held out, and which configurations are like the best.
    """
    if apart is None or not apart.has_choice:
        return []
    number = f"{apart.estimate.mean:.6g}" if apart.estimate else apart.reason
    lines = [f"Held out, of {apart.num_configurations} configurations: {number}."]
    if apart.alike:
        names = "; ".join(grid.describe(sweep, p.values) for p in apart.alike)
        rough = ", roughly" if apart.is_rough else ""
        lines.append(f"Not told apart from the best{rough}: {names}.")
    return lines


def _budget(chosen: choices.Chosen, budget) -> tuple[str, float]:
    """Returns the axis and amount that were asked for, or the last of the first."""
    budgets = chosen.sweep.select.budgets
    if budget is None:
        found = selection.budgets(chosen.sweep.select, chosen.stop)
        axis, amounts = next(iter(found.items()))
        return axis, amounts[-1]
    axis, amount = budget
    if axis not in budgets and axis != "hours":
        raise errors.UserError(
            f"--budget {formatting.amounts({axis: amount})}: "
            + errors.expected_one_of(axis, [*budgets, "hours"])
        )
    return axis, amount


def using(storage: files.Storage, scales: Sequence[str]) -> str:
    """Says which storage and which scales a command uses."""
    return f"Storage {storage.uri}, scale {', '.join(dict.fromkeys(scales))}."


def command(storage: files.Storage, name: str, chosen: choices.Chosen) -> str:
    """Writes a command that means the same points."""
    words = [name, chosen.name, *chosen.choice.arguments()]
    words += ["--storage", storage.uri]
    return "python -m bmg_sweeps " + shlex.join(words)


def counted(plan: planning.Plan) -> str:
    """Counts a plan's points, in words."""
    counts = ", ".join(f"{n:,} {name}" for name, n in sorted(plan.counts().items()))
    partial = f" ({plan.num_partial:,} partly trained)" if plan.num_partial else ""
    text = f"{formatting.counted(len(plan.points), 'point')}: {counts}{partial}"
    others = plan.num_by_other_code
    return text + (f"; {others:,} trained by other code than today's" if others else "")


def problems(plan: planning.Plan) -> dict[str, str]:
    """Says, by point, what is wrong with those that did not simply train.

    Returns:
        One line for each point that is damaged, has failed, or had to begin again.
    """
    found = {}
    for record in plan.records.values():
        if record.damage:
            text = f"damaged, counted as missing: {record.damage}"
        elif record.failure:
            text = failure(record)
        elif record.provenance.restarted is not None:
            text = f"began again: {record.provenance.restarted}"
        else:
            continue
        found[record.id] = errors.one_line(text)
    return found


def print_problems(plan: planning.Plan) -> None:
    """Prints what `problems` says, a line for each point."""
    for point_id, text in problems(plan).items():
        say(f"  {point_id} {text}")


def failure(record: store.Record) -> str:
    """Says in one line why a point ended badly."""
    return f"{record.failure.kind}: {store.reason(record.failure)}"


def print_tables(made: Sequence[Any], form: str, about: Mapping[str, Any]) -> None:
    """Prints tables.

    Args:
        made: the tables.
        form: one of `FORMS`.
        about: what JSON has beside the tables.
    """
    from bmg_sweeps.reporting import latex, tables

    if form == "json":
        found = [tables.as_json(table) for table in made]
        print(json.dumps({**about, "tables": found}, indent=2, allow_nan=False))
    elif form == "text":
        tables.text(made, console())
    else:
        print((latex.write if form == "latex" else tables.markdown)(made))


def say(text: str) -> None:
    """Prints a line as it is, however long, so that paths in it can be copied."""
    print(text, flush=True)


def console():
    """Opens the terminal for tables and progress."""
    import rich.console

    return rich.console.Console(highlight=False)
