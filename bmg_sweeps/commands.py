"""What each command of the command line does.

A command is a function of the parsed arguments. It returns an exit status, or nothing
where that is 0, and raises `UserError` for what the user can mend. Modules that are
slow to import (Ray, matplotlib, W&B, and JAX above all) are imported where they are
used, so that listing, planning and status answer at once.
"""

import argparse
import dataclasses
import json
import pathlib
import shlex

import rich.console
import rich.table
import rich.text

from bmg_sweeps import errors, files, grid, paths, planning, selection, store
from bmg_sweeps import point as points_module

CONSOLE = rich.console.Console(highlight=False)


def list_(options: argparse.Namespace) -> None:
    """Lists every sweep, with the number of points that are done."""
    table = rich.table.Table(title=_using(options), title_justify="left")
    for name in ("sweep", "title", "trainer", "points", "done"):
        table.add_column(name)
    for name in paths.sweep_names():
        sweep = paths.load_sweep(name)
        counts = ("–", "–")  # Of a sweep without this scale.
        if options.scale in sweep.scales:
            chosen = planning.choose(name, planning.Choice(scale=options.scale))
            plan = planning.plan(options.storage, [chosen])
            counts = (str(len(plan.points)), str(plan.counts().get("done", 0)))
        cells = (name, sweep.title, sweep.trainer, *counts)
        table.add_row(*map(rich.text.Text, cells))  # Text is taken literally.
    CONSOLE.print(table)


def show(options: argparse.Namespace) -> None:
    """Shows a sweep's grid; or one point, with its gin text and its record."""
    chosen = _choose(options)
    if options.point is not None:
        point = _find(chosen, options.point)
        record = store.read(options.storage, point.trainer, point.id)
        print(points_module.gin_text(point))
        print(json.dumps({"damage": record.damage, **record.manifest}, indent=2))
        return
    plan = planning.plan(options.storage, [chosen])
    _say(_using(options))
    _say(f"{chosen.sweep.title}. Trainer: {chosen.sweep.trainer}.")
    _say(f"{_counted(plan)}; stop at {planning.amounts(chosen.stop)}.")
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


def launch(options: argparse.Namespace) -> int:
    """Runs the points that are missing."""
    names = paths.sweep_names() if options.sweeps == ["all"] else options.sweeps
    chosen = [planning.choose(name, _choice(options)) for name in dict.fromkeys(names)]
    return _launch(options, chosen)


def run(options: argparse.Namespace) -> int:
    """Trains one point here, in this process, without Ray."""
    chosen = _choose(options)
    point = _find(chosen, options.point)
    planning.check([point])
    files.check_writable(options.storage)
    from bmg_sweeps import work_unit  # Imports JAX.

    store.declare(
        options.storage, point.trainer, point.id, points_module.gin_text(point)
    )
    provenance = {"launch": "run"} | planning.provenance()
    task = work_unit.Task(
        trainer=point.trainer,
        stops={point.id: chosen.stop},
        retry=options.retry,
        launch=provenance,
    )
    status = work_unit.run(options.storage, task)[point.id]
    record = store.read(options.storage, point.trainer, point.id)
    print(f"point {point.id}: {status}, trained to {planning.amounts(record.progress)}")
    if record.failure:
        print(errors.one_line(_failure(record)))
    return 0 if status == "done" else 1


def status(options: argparse.Namespace) -> None:
    """Says how many points are done, running, failed or missing, and why."""
    names = [options.sweep] if options.sweep else paths.sweep_names()
    _say(_using(options))
    for name in names:
        chosen = planning.choose(name, _choice(options))
        plan = planning.plan(options.storage, [chosen])
        _say(f"{name}: {_counted(plan)}; stop at {planning.amounts(chosen.stop)}")
        _print_failures(plan)


def report_(options: argparse.Namespace) -> None:
    """Prints a sweep's tables, and draws its curves into the storage."""
    if options.sweep == "all":
        _report_all(options)
        return
    chosen = _choose(options)
    trained = selection.load(options.storage, chosen)
    results = _results(options, chosen, trained)
    files.check_writable(options.storage)
    from bmg_sweeps import figures, report, tables

    if options.format == "html":
        _say(f"Report: {_write_html(options, chosen, trained, results)}")
        return
    if options.format == "csv":
        print(report.comma_separated(chosen, results), end="")
    else:
        made = [_heading(options, chosen), *report.make(chosen, trained, results)]
        if options.format == "markdown":
            print(tables.markdown(made))
        else:
            tables.text(made, CONSOLE)
    png = figures.draw(chosen, trained, results[0])
    name = f"{_report_name(options, chosen)}.png"
    options.storage.replace(png, "reports", name)
    if options.format == "text":
        _say(f"Curves: {options.storage.path('reports', name)}")


def _report_all(options: argparse.Namespace) -> None:
    """Writes a page for every sweep with this scale, and one that leads to them."""
    files.check_writable(options.storage)
    entries = []
    for name in paths.sweep_names():
        if options.scale not in paths.load_sweep(name).scales:
            continue
        chosen = planning.choose(name, _choice(options))
        trained = selection.load(options.storage, chosen)
        _write_html(options, chosen, trained, _results(options, chosen, trained))
        entries.append((f"{_report_name(options, chosen)}.html", chosen, trained))
    from bmg_sweeps import page

    data = page.index(entries, _using(options)).encode()
    options.storage.replace(data, "reports", "index.html")
    _say(f"Reports: {options.storage.path('reports', 'index.html')}")


def _write_html(options, chosen, trained, results) -> str:
    """Writes a sweep's page into the storage; returns where it is."""
    from bmg_sweeps import page

    name = f"{_report_name(options, chosen)}.html"
    data = page.page(chosen, trained, results, _heading(options, chosen)).encode()
    options.storage.replace(data, "reports", name)
    return options.storage.path("reports", name)


def _report_name(options: argparse.Namespace, chosen: planning.Chosen) -> str:
    is_part = options.where or options.gin or options.seeds or options.stop
    part = "-part" if is_part else ""
    return f"{pathlib.Path(chosen.name).stem}-{options.scale}{part}"


def best(options: argparse.Namespace) -> None:
    """Prints the selected configurations, as gin text or as JSON."""
    chosen = _choose(options)
    trained = selection.load(options.storage, chosen)
    scores = _selected(options, chosen, trained)
    if options.format == "json":
        print(json.dumps([_as_json(chosen, s) for s in scores], indent=2))
        return
    for s in scores:
        ids = ", ".join(p.id for p in s.points)
        metric = chosen.sweep.select.metric
        budget = planning.amounts({s.axis: s.budget})
        print(
            f"# {s.method} at {budget}: {metric} {s.estimate.mean:.6g}, points {ids}."
        )
        print(points_module.gin_text(s.points[0]))


def rerun(options: argparse.Namespace) -> int:
    """Runs the best configurations on fresh seeds and compares."""
    if not options.seeds:
        raise errors.UserError("--seeds: expected fresh seeds to run, such as 10-14")
    choice = dataclasses.replace(_choice(options), seeds=())
    chosen = planning.choose(options.sweep, choice)
    trained = selection.load(options.storage, chosen)
    scores = _selected(options, chosen, trained)
    axis = scores[0].axis
    old = {p.id for s in scores for p in s.points}
    fresh = [
        points_module.Point(p.trainer, p.values | {"seed": seed})
        for p in (s.points[0] for s in scores)
        for seed in options.seeds
    ]
    if known := [p for p in fresh if p.id in old]:
        raise errors.UserError(
            f"--seeds: seed {known[0].values['seed']} was used in the selection; "
            f"expected fresh ones"
        )
    amount = scores[0].budget
    again = dataclasses.replace(
        chosen, points=tuple(fresh), stop={axis: amount}, choice=_choice(options)
    )
    code = _launch(options, [again], say_report=False)
    if options.dry_run:
        return code
    trained_again = selection.load(options.storage, again)
    result = selection.select(chosen.sweep, trained_again, axis, [amount])
    from bmg_sweeps import report, tables

    tables.text([report.comparison(chosen, scores, result)], CONSOLE)
    return code


def track(options: argparse.Namespace) -> None:
    """Makes the W&B runs of sweeps from the records, or brings them up to date."""
    names = paths.sweep_names() if options.sweeps == ["all"] else options.sweeps
    chosen = [planning.choose(name, _choice(options)) for name in dict.fromkeys(names)]
    files.check_writable(options.storage)
    from bmg_sweeps import tracking

    _say(tracking.export(options.storage, chosen, options.wandb))
    if options.workspace:
        for line in tracking.save_workspace(options.storage, chosen):
            _say(line)


def _launch(options, chosen, say_report: bool = True) -> int:
    """Runs a plan, exports it, and says what came of it."""
    plan = planning.plan(options.storage, chosen, options.retry, whole=True)
    pack = _pack(options, plan)
    _say_plan(options, chosen, plan)
    planning.check(plan.to_run)
    if options.dry_run:
        return 0
    files.check_writable(options.storage)
    from bmg_sweeps import launch as launching
    from bmg_sweeps import progress, tracking

    outcome = None
    following = tracking.following(
        options.storage, chosen, options.wandb, with_sweeps=say_report
    )
    with following as follower:
        if plan.to_run or "running" in plan.counts():
            outcome = launching.run(
                options.storage,
                plan,
                _resources(options),
                pack=pack,
                retry=options.retry,
                watch=lambda: progress.watch(options.storage, plan, chosen, CONSOLE),
            )
            for line in outcome.lost:
                _say(f"  {line}")
        after = planning.plan(options.storage, chosen)
        _print_failures(after)
        _say(follower.finish())
    if outcome and outcome.is_stopped:
        _say("Stopped; the same command goes on from here.")
    elif say_report:
        for one in chosen:
            knows = one.sweep.select.axis in one.stop
            verb = "report" if knows else "status"
            _say(f"Next: {_command(options, verb, one.name)}")
    return 0 if set(after.counts()) <= {"done", "diverged"} else 1


def _resources(options: argparse.Namespace):
    from bmg_sweeps import cluster

    return cluster.Resources(
        address=options.address,
        cpus=options.cpus,
        gpus=options.gpus,
        autoscaling=options.autoscaling,
    )


def _say_plan(options, chosen, plan: planning.Plan) -> None:
    """Prints what will be run, how long that may take, and what others run."""
    structures = len({points_module.structure(p) for p in plan.to_run})
    _say(_using(options))
    for one in chosen:
        _say(f"{one.name}: stop at {planning.amounts(one.stop)}")
    hours = planning.hours_to_run(plan) if plan.to_run else None
    about = f", about {hours:.2g} h of training in all" if hours else ""
    to_run = f"{len(plan.to_run)} to run, of {structures} structures{about}"
    _say(f"{_counted(plan)}; {to_run}")
    owners: dict[str, int] = {}
    for i, status_ in plan.statuses.items():
        if status_ == "running":
            owner = errors.one_line(plan.records[i].owner)
            owners[owner] = owners.get(owner, 0) + 1
    for owner, number in owners.items():
        _say(
            f"{number} of them run under {owner}; this launch waits for them, and runs "
            f"what they leave"
        )


def _pack(options: argparse.Namespace, plan: planning.Plan) -> int | None:
    """Returns how many points train together; None is for the device to decide."""
    if not any("hours" in stop for stop in plan.stops.values()):
        return options.pack
    if (options.pack or 1) > 1:
        raise errors.UserError(
            f"--pack {options.pack}: expected 1, as the stop rule counts hours, and "
            f"those of a pack are not its points' own"
        )
    return 1


def _results(options, chosen, trained) -> list[selection.Selection]:
    """Selects on every axis, then reads the tests of what was selected."""
    return [
        selection.with_tests(options.storage, chosen.sweep, trained, result)
        for result in selection.at_budgets(chosen, trained).values()
    ]


def _selected(options, chosen, trained) -> list[selection.Score]:
    """Selects at the budget that was asked for, or at the last one."""
    axis, amount = _budget(options, chosen)
    budget = f"budget {planning.amounts({axis: amount})}"
    furthest = max((t.record.progress.get(axis, 0) for t in trained), default=0)
    if amount > furthest:
        raise errors.UserError(
            f"{budget}: expected at most {planning.amount(furthest)}, the furthest "
            f"that a point has trained"
        )
    result = selection.select(chosen.sweep, trained, axis, [amount])
    if result.refused:
        raise errors.UserError(f"{budget}: {result.refused}")
    if not result.best:
        one = result.left_out[0]
        raise errors.UserError(
            f"{budget}: no configuration is complete there; "
            f"{one.method} {grid.describe(chosen.sweep, one.configuration.values)}, "
            f"{one.reason}"
        )
    result = selection.with_tests(options.storage, chosen.sweep, trained, result)
    return list(result.best)


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
            f"--budget {planning.amounts(options.budget)}: "
            + errors.expected_one_of(axis, [*chosen.sweep.select.budgets, "hours"])
        )
    return axis, amount


def _as_json(chosen: planning.Chosen, score: selection.Score) -> dict:
    return {
        "method": score.method,
        "budget": {score.axis: score.budget},
        "metric": chosen.sweep.select.metric,
        "mean": score.estimate.mean,
        "deviation": score.estimate.deviation,
        "test": dataclasses.asdict(score.test) if score.test else None,
        "trainer": score.configuration.trainer,
        "configuration": score.configuration.values,
        "points": [p.id for p in score.points],
    }


def _choice(options: argparse.Namespace) -> planning.Choice:
    for flag, keys in (
        ("--where", [field for field, _ in options.where]),
        ("--stop", [axis for stop in options.stop for axis in stop]),
    ):
        for key in {key for key in keys if keys.count(key) > 1}:
            raise errors.UserError(f"{flag} {key}: given twice; expected once")
    return planning.Choice(
        scale=options.scale,
        where=dict(options.where),
        gin=tuple(options.gin),
        seeds=options.seeds,
        stop={axis: n for stop in options.stop for axis, n in stop.items()},
    )


def _choose(options: argparse.Namespace) -> planning.Chosen:
    return planning.choose(options.sweep, _choice(options))


def _find(chosen: planning.Chosen, point_id: str) -> points_module.Point:
    found = [p for p in chosen.points if p.id.startswith(point_id)]
    if len(found) != 1:
        raise errors.UserError(
            f"--point {point_id}: expected the id of one point of {chosen.name}, "
            f"{len(found)} match"
        )
    return found[0]


def _using(options: argparse.Namespace) -> str:
    return f"Storage {options.storage.uri}, scale {options.scale}."


def _heading(options: argparse.Namespace, chosen: planning.Chosen):
    from bmg_sweeps import tables

    command = _command(options, "report", chosen.name)
    return tables.Table(
        title=chosen.sweep.title,
        columns=("what", "value"),
        rows=(
            ("scale", options.scale),
            ("trained to", planning.amounts(chosen.stop)),
            ("storage", errors.public(options.storage.uri)),
            ("command", errors.public(command)),
        ),
    )


def _command(options: argparse.Namespace, name: str, sweep: str) -> str:
    """Writes a command that means the same points."""
    words = [name, sweep, *_choice(options).arguments()]
    words += ["--storage", options.storage.uri]
    return "python -m bmg_sweeps " + shlex.join(words)


def _counted(plan: planning.Plan) -> str:
    counts = ", ".join(f"{n} {name}" for name, n in sorted(plan.counts().items()))
    partial = f" ({plan.num_partial} partly trained)" if plan.num_partial else ""
    return f"{len(plan.points)} points: {counts}{partial}"


def _print_failures(plan: planning.Plan) -> None:
    """Names each point that is damaged, has failed, or had to begin again."""
    for record in plan.records.values():
        if record.damage:
            text = f"damaged, counted as missing: {record.damage}"
        elif record.failure:
            text = _failure(record)
        elif "restarted" in record.provenance:
            text = f"began again: {record.provenance['restarted']}"
        else:
            continue
        print(f"  {record.id} {errors.one_line(text)}")


def _failure(record: store.Record) -> str:
    failure = record.failure
    where = f" ({failure['frames'][-1]})" if failure["frames"] else ""
    type_ = "" if failure["kind"] == "diverged" else f"{failure['type']}: "
    return f"{failure['kind']}: {type_}{failure['message']}{where}"


def _say(text: str) -> None:
    """Prints a line as it is, however long, so that paths in it can be copied."""
    CONSOLE.print(text, soft_wrap=True, markup=False)
