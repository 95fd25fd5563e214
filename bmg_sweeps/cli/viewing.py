"""The commands that look at records: list, show, status, report, best, track.

A command is a function of the parsed arguments. It returns an exit status, or nothing
where that is 0, and raises `UserError` for what the user can mend. Modules that are
slow to import (Ray, matplotlib, W&B, and JAX above all) are imported where they are
used, so that listing, planning and status answer at once.
"""

import argparse
import json
import pathlib

import rich.console
import rich.table
import rich.text

from bmg_sweeps import formatting, privacy
from bmg_sweeps.analysis import results, selection
from bmg_sweeps.cli import asking
from bmg_sweeps.launching import planning
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import choices, grid, loading


def list_(options: argparse.Namespace) -> None:
    """Lists every sweep, with the number of points that are done."""
    table = rich.table.Table(title=asking.using(options), title_justify="left")
    for name in ("sweep", "title", "trainer", "points", "done"):
        table.add_column(name)
    for name in loading.sweep_names():
        sweep = loading.load_sweep(name)
        counts = ("–", "–")  # Of a sweep without this scale.
        if options.scale in sweep.scales:
            chosen = choices.choose(name, choices.Choice(scale=options.scale))
            plan = planning.plan(options.storage, [chosen])
            counts = (str(len(plan.points)), str(plan.counts().get("done", 0)))
        cells = (name, sweep.title, sweep.trainer, *counts)
        table.add_row(*map(rich.text.Text, cells))  # Text is taken literally.
    asking.CONSOLE.print(table)


def show(options: argparse.Namespace) -> None:
    """Shows a sweep's grid; or one point, with its gin text and its record."""
    chosen = asking.choose(options)
    if options.point is not None:
        point = asking.find(chosen, options.point)
        record = store.read(options.storage, point.trainer, point.id)
        print(point.gin_text())
        print(json.dumps({"damage": record.damage, **record.manifest}, indent=2))
        return
    plan = planning.plan(options.storage, [chosen])
    asking.say(asking.using(options))
    asking.say(f"{chosen.sweep.title}. Trainer: {chosen.sweep.trainer}.")
    asking.say(f"{asking.counted(plan)}; stop at {formatting.amounts(chosen.stop)}.")
    rows = [("point", "method", "configuration", "seed", "status")]
    for p in chosen.points:
        method = grid.method_of(chosen.sweep, p.values)
        over = ", ".join(str(p.values[field]) for field in chosen.sweep.select.over)
        configuration = grid.describe(chosen.sweep, p.values)
        rows.append((p.id, method, configuration, over, plan.statuses[p.id]))
    # By hand: a table of rich takes ten seconds for ten thousand points.
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (c.ljust(width) for c, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def status(options: argparse.Namespace) -> None:
    """Says how many points are done, running, failed or missing, and why."""
    names = [options.sweep] if options.sweep else loading.sweep_names()
    asking.say(asking.using(options))
    for name in names:
        chosen = choices.choose(name, asking.choice(options))
        plan = planning.plan(options.storage, [chosen])
        asking.say(
            f"{name}: {asking.counted(plan)}; stop at {formatting.amounts(chosen.stop)}"
        )
        asking.print_failures(plan)


def report_(options: argparse.Namespace) -> None:
    """Prints a sweep's tables, and draws its curves into the storage."""
    if options.sweep == "all":
        _report_all(options)
        return
    chosen = asking.choose(options)
    loaded = results.load(options.storage, chosen)
    files.check_writable(options.storage)
    from bmg_sweeps.reporting import figures, report, tables

    if options.format == "html":
        asking.say(f"Report: {_write_html(options, loaded)}")
        return
    if options.format == "csv":
        print(report.comma_separated(loaded), end="")
    else:
        command = privacy.public(asking.command(options, "report", chosen.name))
        storage = privacy.public(options.storage.uri)
        heading = report.heading(loaded, storage, command)
        made = [heading, *report.make(loaded)]
        if options.format == "markdown":
            print(tables.markdown(made))
        else:
            tables.text(made, asking.CONSOLE)
    png = figures.draw(loaded)
    name = f"{_report_name(options, chosen)}.png"
    options.storage.replace(png, "reports", name)
    if options.format == "text":
        asking.say(f"Curves: {_in_reports(options, name)}")


def _report_all(options: argparse.Namespace) -> None:
    """Writes a page for every sweep with this scale, and one that leads to them."""
    files.check_writable(options.storage)
    from bmg_sweeps.reporting import index

    entries = []
    for name in loading.sweep_names():
        if options.scale not in loading.load_sweep(name).scales:
            continue
        chosen = choices.choose(name, asking.choice(options))
        loaded = results.load(options.storage, chosen)
        _write_html(options, loaded)
        entries.append(index.entry(f"{_report_name(options, chosen)}.html", loaded))
    data = index.write(entries, asking.using(options)).encode()
    options.storage.replace(data, "reports", "index.html")
    asking.say(f"Reports: {_in_reports(options, 'index.html')}")


def _write_html(options: argparse.Namespace, loaded: results.Results) -> str:
    """Writes a sweep's page into the storage; returns where it is."""
    from bmg_sweeps.reporting import page

    name = f"{_report_name(options, loaded.chosen)}.html"
    data = page.page(loaded, privacy.public(options.storage.uri)).encode()
    options.storage.replace(data, "reports", name)
    return _in_reports(options, name)


def _in_reports(options: argparse.Namespace, name: str) -> str:
    """Says where a report is, from where the user is."""
    return f"{options.storage.uri.rstrip('/')}/reports/{name}"


def _report_name(options: argparse.Namespace, chosen: choices.Chosen) -> str:
    is_part = options.where or options.gin or options.seeds or options.stop
    part = "-part" if is_part else ""
    return f"{pathlib.Path(chosen.name).stem}-{options.scale}{part}"


def best(options: argparse.Namespace) -> None:
    """Prints the selected configurations, as gin text or as JSON."""
    chosen = asking.choose(options)
    scores = asking.selected(options, chosen).first.best
    if options.format == "json":
        written = [selection.as_json(chosen.sweep, s) for s in scores]
        print(json.dumps(written, indent=2))
        return
    for s in scores:
        ids = ", ".join(p.id for p in s.points)
        metric = chosen.sweep.select.metric
        budget = formatting.amounts({s.axis: s.budget})
        print(
            f"# {s.method} at {budget}: {metric} {s.estimate.mean:.6g}, points {ids}."
        )
        print(s.points[0].gin_text())


def track(options: argparse.Namespace) -> None:
    """Makes the W&B runs of sweeps from the records, or brings them up to date."""
    chosen = asking.choose_all(options)
    files.check_writable(options.storage)
    from bmg_sweeps import tracking

    asking.say(tracking.export(options.storage, chosen, options.wandb))
    if options.workspace:
        for line in tracking.save_workspace(options.storage, chosen):
            asking.say(line)
