"""The commands that look at records: list, show, status, report, best, track.

They return an exit status, or nothing where that is 0, and raise `UserError` for what
the user can mend. Modules that are slow to import (rich, Ray, matplotlib, W&B, and JAX
above all) are imported where they are used, so that listing, planning and status answer
at once.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bmg_sweeps import errors, formatting, privacy
from bmg_sweeps.analysis import readings, results, selection
from bmg_sweeps.cli import answers, options
from bmg_sweeps.launching import near_records, planning
from bmg_sweeps.records import files, manifests, store
from bmg_sweeps.sweep import choices, grid, loading
from bmg_sweeps.sweep.point import Point

if TYPE_CHECKING:  # --help shall not wait for it.
    from bmg_sweeps.reporting.tables import Table

MIN_FOLDED = 20  # A column is folded to no fewer characters.


@options.command
@options.scale
@options.as_json
def list_(storage: files.Storage, scale: str | None, as_json: bool) -> None:
    """List every sweep, with the number of points that are done.

    JSON: {"storage", "scale", "sweeps": [{"name", "title", "trainer", "scales",
    "points", "done"}]}; points and done are null where a sweep has no such scale. A
    sweep is left out where its file or trainer has a mistake; the error output says so.
    """
    choice = choices.Choice(scale=scale or choices.DEFAULT_SCALE)
    chosen, skipped, broken = choices.choose_all(choice)
    answers.say_broken(broken)
    sweeps = {one.name: one.sweep for one in chosen} | skipped
    plans = {one.name: planning.plan(storage, [one]) for one in chosen}
    found = []
    for name in loading.in_order(sweeps):
        one, plan = sweeps[name], plans.get(name)
        about = {"name": name, "title": one.title, "trainer": one.trainer}
        about["scales"] = list(one.scales)
        about["points"] = len(plan.points) if plan else None
        about["done"] = plan.counts().get("done", 0) if plan else None
        found.append(about)
    if as_json:
        _print_json(storage, {"scale": choice.scale, "sweeps": found})
        return
    columns = ("sweep", "title", "trainer", "points", "done")
    keys = ("name", *columns[1:])
    rows = [tuple(_or_dash(one[key]) for key in keys) for one in found]
    answers.say(answers.using(storage, [choice.scale]))
    _print_columns(_folded([columns, *rows], columns.index("title")))


@options.command
@options.sweep
@options.points
@click.option("--point", metavar="ID", help="Show this point, and its record.")
@options.as_json
def show(
    storage: files.Storage,
    sweep: str,
    choice: choices.Choice,
    point: str | None,
    as_json: bool,
) -> None:
    """Show a sweep's grid; or one point, with its gin text and its record.

    JSON: {"storage", "sweep", "title", "trainer", "scale", "stop", "counts", "points":
    [{"id", "method", "values", "status"}]}; or of one point {"storage", "id",
    "trainer", "values", "gin", "damage", "record"}.
    """
    chosen = choices.choose(sweep, choice)
    if point is not None:
        _show_point(storage, answers.find(chosen, point), as_json)
        return
    plan = planning.plan(storage, [chosen])
    about = {"sweep": chosen.name, "title": chosen.sweep.title}
    about |= {"trainer": chosen.sweep.trainer, "scale": chosen.choice.scale}
    if as_json:
        about |= {"stop": chosen.stop, "counts": plan.counts()}
        about["points"] = [
            {
                "id": p.id,
                "method": grid.method_of(chosen.sweep, p.values),
                "values": p.values,
                "status": plan.statuses[p.id],
            }
            for p in chosen.points
        ]
        _print_json(storage, about)
        return
    answers.say(answers.using(storage, [chosen.choice.scale]))
    answers.say(f"{chosen.sweep.title}. Trainer: {chosen.sweep.trainer}.")
    answers.say(f"{answers.counted(plan)}; stop at {formatting.amounts(chosen.stop)}.")
    rows = [("point", "method", "configuration", "seed", "status")]
    for p in chosen.points:
        method = grid.method_of(chosen.sweep, p.values)
        over = ", ".join(str(p.values[field]) for field in chosen.sweep.select.over)
        configuration = grid.describe(chosen.sweep, p.values)
        rows.append((p.id, method, configuration, over, plan.statuses[p.id]))
    _print_columns(rows)


def _show_point(storage: files.Storage, point: Point, as_json: bool) -> None:
    record = store.read(storage, point.trainer, point.id)
    if as_json:
        about = {"id": point.id, "trainer": point.trainer, "values": point.values}
        about |= {"gin": point.gin_text(), "damage": record.damage}
        _print_json(storage, about | {"record": manifests.as_dict(record.manifest)})
        return
    print(point.gin_text())
    manifest = manifests.as_dict(record.manifest)
    print(json.dumps({"damage": record.damage, **manifest}, indent=2))


@options.command
@options.sweep(required=False)
@options.points
@options.as_json
def status(
    storage: files.Storage, sweep: str | None, choice: choices.Choice, as_json: bool
) -> None:
    """Say how many points are done, running, failed or missing, and why.

    JSON: {"storage", "skipped", "sweeps": [{"name", "scale", "stop", "points",
    "counts", "partly_trained", "by_other_code", "problems"}]}; problems has a line by
    point id.
    """
    if sweep:
        chosen, skipped = [choices.choose(sweep, choice)], {}
    else:
        chosen, skipped, broken = choices.choose_all(choice)
        answers.say_broken(broken)
    plans = [planning.plan(storage, [one]) for one in chosen]
    if as_json:
        found = [
            {
                "name": one.name,
                "scale": one.choice.scale,
                "stop": one.stop,
                "points": len(plan.points),
                "counts": plan.counts(),
                "partly_trained": plan.num_partial,
                "by_other_code": plan.num_by_other_code,
                "problems": answers.problems(plan),
            }
            for one, plan in zip(chosen, plans, strict=True)
        ]
        _print_json(storage, {"skipped": list(skipped), "sweeps": found})
        return
    answers.say(answers.using(storage, [one.choice.scale for one in chosen]))
    records = near_records.Records(storage)
    for one, plan in zip(chosen, plans, strict=True):
        stop = formatting.amounts(one.stop)
        answers.say(f"{one.name}: {answers.counted(plan)}; stop at {stop}")
        answers.print_problems(plan)
        for line in records.near(one, plan.unknown):
            answers.say(f"  {line}")
    answers.say_skipped(choice, skipped)


@options.command
@options.sweep
@options.points
@click.option(
    "--format",
    "form",
    type=options.OneOf((*answers.FORMS, "csv", "html")),
    default="text",
    help="text, unless given.",
)
@options.fresh
@options.backtest
def report_(
    storage: files.Storage,
    sweep: str,
    choice: choices.Choice,
    form: str,
    fresh: tuple[int, ...],
    backtest: selection.Rungs | None,
) -> None:
    """Print a sweep's tables, and draw its curves into the storage.

    "all" writes a page for every sweep that has the scale, and an index of them.
    --backtest adds a table, wherever tables are.

    JSON: {"storage", "sweep", "scale", "stop", "tables": [{"kind", "axis", "field",
    "title", "about", "columns", "rows", "notes"}]}; cells are numbers, texts, or
    objects of several numbers, such as {"what", "mean", "deviation", "held_out"} of a
    claim's side.
    """
    for option, is_given in (("--fresh", fresh), ("--backtest", backtest)):
        if is_given and sweep == "all":
            raise errors.UserError(f"{option}: expected one sweep, not all")
        if is_given and form == "csv":
            raise errors.UserError(
                f"{option}: expected another --format than csv, which has one table"
            )
    if sweep == "all":
        if form not in ("text", "html"):
            raise errors.UserError(
                f"--format {form}: expected html, as all makes a page of each sweep"
            )
        _report_all(storage, choice)
        return
    chosen = choices.choose(sweep, choice)
    loaded = results.load(storage, chosen)
    target = _target(storage)
    more = [] if form == "csv" else _by_fresh(storage, chosen, fresh)
    more += _backtest(storage, loaded, backtest) if backtest else []
    from bmg_sweeps.reporting import report

    asked = _asked(fresh, backtest)
    if form == "html":
        answers.say(f"Report: {_write_html(storage, target, loaded, more, asked)}")
        return
    names = _draw(target, loaded)  # First: what reads the tables may end before them.
    if form == "csv":
        print(report.comma_separated(loaded), end="")
    else:
        command = privacy.scrubbed(answers.command(storage, "report", chosen))
        command = " ".join((command, *asked))
        stored = privacy.scrubbed(storage.uri)
        about = {"storage": stored, "sweep": chosen.name}
        about |= {"scale": chosen.choice.scale, "stop": chosen.stop}
        made = [report.heading(loaded, stored, command), *report.make(loaded), *more]
        answers.print_tables(made, form, about)
    for name in names if form == "text" else ():
        answers.say(f"Curves: {_in_reports(target, name)}")


def _asked(fresh: Sequence[int], rungs: selection.Rungs | None) -> list[str]:
    """Writes the options that ask a report for more tables, as they can be typed."""
    words = ["--fresh", ",".join(map(str, fresh))] if fresh else []
    if rungs is not None:
        amounts = ",".join(map(formatting.amount, rungs.amounts))
        words += ["--backtest", f"{rungs.axis}={amounts}"]
        words += ["--keep-one-in", str(rungs.keep_one_in)]
    return words


def _by_fresh(
    storage: files.Storage, chosen: choices.Chosen, seeds: tuple[int, ...]
) -> list["Table"]:
    """Makes the tables of what fresh seeds say, of plans and of those that are named.

    Raises:
        UserError: one of them was used in the selection.
    """
    from bmg_sweeps.reporting import comparison, decision_table

    made = decision_table.make(storage, chosen)
    if seeds:
        before = answers.selected(storage, chosen, None)
        again = answers.on_fresh_seeds(before, seeds, "--fresh")
        budgets = {axis: [amount] for axis, amount in again.stop.items()}
        after = results.load(storage, again, budgets)
        made += [comparison.table(before, after), *comparison.claims(after)]
    return made


def _backtest(
    storage: files.Storage, loaded: results.Results, rungs: selection.Rungs
) -> list[Any]:
    """Makes the table of what successive halving would have chosen."""
    chosen = loaded.chosen
    text = f"--backtest {formatting.amounts({rungs.axis: rungs.amounts[-1]})}"
    if rungs.axis not in loaded.selections:
        expected = errors.expected_one_of(rungs.axis, loaded.selections)
        raise errors.UserError(f"{text}: {expected}")
    end = selection.last_budget(chosen, rungs.axis)
    if rungs.amounts[-1] >= end:
        raise errors.UserError(
            f"{text}: expected less than {formatting.amount(end)}, the last budget"
        )
    if refused := loaded.selections[rungs.axis].refused:
        raise errors.UserError(f"{text}: {refused}")
    from bmg_sweeps.reporting import backtest_table

    tests = functools.cache(lambda i: readings.tests(storage, loaded.by_id[i].record))
    return [backtest_table.table(loaded, rungs, tests)]


def _target(storage: files.Storage) -> files.Storage:
    """Returns where reports go: the storage, or the folder of the user, if it may not.

    Raises:
        StorageError: neither can be written.
    """
    try:
        files.check_writable(storage)
        return storage
    except files.StorageError as error:
        if storage.is_local and not os.path.isdir(storage.root):
            raise  # There is nothing to be read, either.
        here = files.open_storage(".")
        with contextlib.suppress(files.StorageError):
            files.check_writable(here)
            return here
        raise error


def _draw(target: files.Storage, loaded: results.Results) -> list[str]:
    """Draws a sweep's figures; returns the names of the files."""
    from bmg_sweeps.reporting import (
        expected_best,
        expected_best_figures,
        figures,
        task_curves,
        task_figures,
    )

    stem, shown = _report_name(loaded.chosen), task_curves.figures(loaded)
    drawn = {f"{stem}.png": figures.draw(loaded)}
    if panels := expected_best.panels(loaded):
        drawn[f"{stem}-expected-best.png"] = expected_best_figures.draw(loaded, panels)
    for panel, name in zip(shown, task_figures.file_names(shown), strict=True):
        drawn[f"{stem}-{name}.png"] = task_figures.draw(loaded, panel, "png")
    for name, png in drawn.items():
        target.replace(png, "reports", name)
    return list(drawn)


def _report_all(storage: files.Storage, choice: choices.Choice) -> None:
    """Writes a page for every sweep with this scale, and one that leads to them."""
    found, skipped, broken = choices.choose_all(choice)
    answers.say_broken(broken)
    target = _target(storage)
    from bmg_sweeps.reporting import index

    entries = []
    for chosen in found:
        loaded = results.load(storage, chosen)
        _write_html(storage, target, loaded, _by_fresh(storage, chosen, ()))
        entries.append(index.entry(f"{_report_name(chosen)}.html", loaded))
    using = answers.using(storage, [chosen.choice.scale for chosen in found])
    target.replace(index.write(entries, using).encode(), "reports", "index.html")
    answers.say(f"Reports: {_in_reports(target, 'index.html')}")
    answers.say_skipped(choice, skipped)


def _write_html(
    storage: files.Storage,
    target: files.Storage,
    loaded: results.Results,
    more: Sequence[Any],
    asked: Sequence[str] = (),
) -> str:
    """Writes the page of a sweep of a storage; returns where it is."""
    from bmg_sweeps.reporting import page

    name = f"{_report_name(loaded.chosen)}.html"
    data = page.page(loaded, privacy.scrubbed(storage.uri), more, asked).encode()
    target.replace(data, "reports", name)
    return _in_reports(target, name)


def _in_reports(storage: files.Storage, name: str) -> str:
    """Says where a report is, from where the user is."""
    return f"{storage.uri.rstrip('/')}/reports/{name}"


def _report_name(chosen: choices.Chosen) -> str:
    """Names a report's files by sweep and scale, and what else was chosen by a hash."""
    choice = chosen.choice
    words = dataclasses.replace(choice, scale=None).arguments()
    digest = hashlib.sha256("\n".join(words).encode()).hexdigest()[:6]
    part = f"-part-{digest}" if words else ""
    return f"{pathlib.Path(chosen.name).stem}-{choice.scale}{part}"


@options.command
@options.sweep
@options.points
@options.budget
@click.option(
    "--format",
    "form",
    type=options.OneOf(("gin", "json")),
    default="gin",
    help="gin, unless given.",
)
def best(
    storage: files.Storage,
    sweep: str,
    choice: choices.Choice,
    budget: tuple[str, float] | None,
    form: str,
) -> None:
    """Print the selected configurations, as gin text or as JSON.

    JSON: a list of {"method", "budget", "metric", "mean", "deviation", "test",
    "held_out", "trainer", "configuration", "points"}; test and held_out are objects,
    or null.
    """
    chosen = choices.choose(sweep, choice)
    selected = answers.selected(storage, chosen, budget).first
    if form == "json":
        written = [selection.as_json(chosen.sweep, selected, s) for s in selected.best]
        print(json.dumps(written, indent=2))
        return
    for s in selected.best:
        ids = ", ".join(p.id for p in s.points)
        metric = chosen.sweep.select.metric
        at = formatting.amounts({s.axis: s.budget})
        print(f"# {s.method} at {at}: {metric} {s.estimate.mean:.6g}, points {ids}.")
        for line in answers.how_sure(chosen.sweep, selected.apart(s)):
            print(f"# {line}")
        print(s.points[0].gin_text())


@options.command
@options.sweeps
@options.points
@options.wandb
@click.option(
    "--workspace", is_flag=True, help="Save a W&B workspace of each sweep, too."
)
def track(
    storage: files.Storage,
    sweeps: tuple[str, ...],
    choice: choices.Choice,
    wandb: str,
    workspace: bool,
) -> int:
    """Make the W&B runs of sweeps from the records, or bring them up to date."""
    chosen = answers.choose(sweeps, choice, answers.say_broken)
    files.check_writable(storage)
    from bmg_sweeps import tracking

    exported = tracking.export(storage, chosen, wandb)
    answers.say(exported.line)
    if workspace:
        for line in tracking.save_workspace(storage, chosen):
            answers.say(line)
    return int(exported.has_failed)


def _print_json(storage: files.Storage, about: Mapping[str, Any]) -> None:
    print(json.dumps({"storage": storage.uri, **about}, indent=2))


def _or_dash(value: Any) -> str:
    return "–" if value is None else str(value)


def _print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Prints columns of text, each as wide as its widest cell.

    By hand: a table of rich takes ten seconds for ten thousand points.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (c.ljust(width) for c, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _folded(rows: Sequence[Sequence[str]], place: int) -> list[Sequence[str]]:
    """Folds a column so that rows fit the terminal; a pipe gets them as they are."""
    if not sys.stdout.isatty():
        return list(rows)
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    room = shutil.get_terminal_size().columns - sum(widths) + widths[place]
    folded: list[Sequence[str]] = []
    for row in rows:
        first, *others = textwrap.wrap(row[place], max(room, MIN_FOLDED))
        folded.append((*row[:place], first, *row[place + 1 :]))
        blank = ("",) * (len(row) - 1)
        folded += [(*blank[:place], line, *blank[place:]) for line in others]
    return folded
