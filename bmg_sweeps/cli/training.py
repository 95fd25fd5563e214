"""The commands that train: launch, run, rerun.

A command is a function of the parsed arguments. It returns an exit status, and raises
`UserError` for what the user can mend. Ray and JAX are imported where they are used.
"""

import argparse
import dataclasses

from bmg_sweeps import errors, formatting
from bmg_sweeps.analysis import results, selection
from bmg_sweeps.cli import asking
from bmg_sweeps.launching import checking, planning, progress, revision
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import choices


def launch(options: argparse.Namespace) -> int:
    """Runs the points that are missing."""
    return _launch(options, asking.choose_all(options))


def run(options: argparse.Namespace) -> int:
    """Trains one point here, in this process, without Ray."""
    chosen = asking.choose(options)
    point = asking.find(chosen, options.point)
    checking.check([point])
    files.check_writable(options.storage)
    from bmg_sweeps.running import work_unit

    store.declare(options.storage, point.trainer, point.id, point.gin_text())
    provenance = {"launch": "run"} | revision.provenance()
    task = work_unit.Task(
        trainer=point.trainer,
        stops={point.id: chosen.stop},
        retry=options.retry,
        launch=provenance,
    )
    status = work_unit.run(options.storage, task)[point.id]
    record = store.read(options.storage, point.trainer, point.id)
    print(
        f"point {point.id}: {status}, trained to {formatting.amounts(record.progress)}"
    )
    if record.failure:
        print(errors.one_line(asking.failure(record)))
    return 0 if status == "done" else 1


def rerun(options: argparse.Namespace) -> int:
    """Runs the best configurations on fresh seeds and compares."""
    if not options.seeds:
        raise errors.UserError("--seeds: expected fresh seeds to run, such as 10-14")
    choice = dataclasses.replace(asking.choice(options), seeds=())
    chosen = choices.choose(options.sweep, choice)
    before = asking.selected(options, chosen)
    scores, axis = before.first.best, before.first.axis
    budget = scores[0].budget
    again = dataclasses.replace(
        chosen,
        points=selection.on_fresh_seeds(chosen, scores, options.seeds),
        stop={axis: budget},
        choice=asking.choice(options),
    )
    code = _launch(options, [again], say_report=False)
    if options.dry_run:
        return code
    after = results.load(options.storage, again, {axis: [budget]})
    from bmg_sweeps.reporting import report, tables

    tables.text([report.comparison(before, after)], asking.CONSOLE)
    return code


def _launch(options, chosen, say_report: bool = True) -> int:
    """Runs a plan, exports it, and says what came of it."""
    plan = planning.plan(options.storage, chosen, options.retry, whole=True)
    pack = _pack(options, plan)
    _say_plan(options, chosen, plan)
    if plan.to_run:
        asking.say("Checking them: values, trainers and data sets.")
    checking.check(plan.to_run)
    if options.dry_run:
        return 0
    files.check_writable(options.storage)
    from bmg_sweeps import tracking
    from bmg_sweeps.launching import trials as launching

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
                watch=lambda: progress.watch(
                    options.storage, plan, chosen, asking.CONSOLE
                ),
            )
            for line in outcome.lost:
                asking.say(f"  {line}")
        after = planning.plan(options.storage, chosen)
        asking.print_failures(after)
        asking.say(follower.finish())
    if outcome and outcome.is_stopped:
        asking.say("Stopped; the same command goes on from here.")
    elif say_report:
        for one in chosen:
            knows = one.sweep.select.axis in one.stop
            verb = "report" if knows else "status"
            asking.say(f"Next: {asking.command(options, verb, one.name)}")
    return 0 if set(after.counts()) <= {"done", "diverged"} else 1


def _resources(options: argparse.Namespace):
    from bmg_sweeps.launching import cluster

    return cluster.Resources(
        address=options.address,
        cpus=options.cpus,
        gpus=options.gpus,
        autoscaling=options.autoscaling,
    )


def _say_plan(options, chosen, plan: planning.Plan) -> None:
    """Prints what will be run, how long that may take, and what others run."""
    structures = len({p.structure for p in plan.to_run})
    asking.say(asking.using(options))
    for one in chosen:
        asking.say(f"{one.name}: stop at {formatting.amounts(one.stop)}")
    hours = planning.hours_to_run(plan) if plan.to_run else None
    about = f", about {hours:.2g} h of training in all" if hours else ""
    to_run = f"{len(plan.to_run)} to run, of {structures} structures{about}"
    asking.say(f"{asking.counted(plan)}; {to_run}")
    owners: dict[str, int] = {}
    for i, status_ in plan.statuses.items():
        if status_ == "running":
            owner = errors.one_line(plan.records[i].owner)
            owners[owner] = owners.get(owner, 0) + 1
    for owner, number in owners.items():
        asking.say(
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
