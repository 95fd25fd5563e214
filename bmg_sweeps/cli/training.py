"""The commands that train: launch, run, rerun.

They return an exit status, and raise `UserError` for what the user can mend. Ray and
JAX are imported where they are used.
"""

import dataclasses
import sys
import time
from collections.abc import Sequence

import click

from bmg_sweeps import errors, formatting
from bmg_sweeps.analysis import results
from bmg_sweeps.cli import answers, options, until_decided
from bmg_sweeps.launching import (
    checking,
    cluster,
    forecast,
    planning,
    revision,
    rungs,
)
from bmg_sweeps.records import files, leases, store
from bmg_sweeps.sweep import choices


@options.command
@options.sweeps
@options.points
@options.training
@click.option(
    "--promising-first",
    is_flag=True,
    help="All points to 1/8, 1/4, 1/2 of the stop rule first; those ahead go on first.",
)
def launch(
    storage: files.Storage,
    sweeps: tuple[str, ...],
    choice: choices.Choice,
    training: options.Training,
    promising_first: bool,
) -> int:
    """Run the points that are missing; of "all", those of every sweep.

    With --promising-first, points pause at 1/8, 1/4 and 1/2 of the stop rule, and those
    whose configurations are ahead there go on first. Nothing is dropped.
    """
    parts = rungs.PARTS if promising_first else rungs.PARTS[-1:]
    # Hours of training shall not leave out what an unfinished edit has broken.
    chosen = answers.choose(sweeps, choice, answers.refuse)
    return _launch(storage, chosen, training, parts=parts)


@options.command(raises=True)
@options.sweep
@options.points
@click.option("--point", metavar="ID", required=True, help="Or the beginning of it.")
@options.data
def run(
    storage: files.Storage,
    sweep: str,
    choice: choices.Choice,
    point: str,
    data: str | None,
) -> int:
    """Train one point here, in this process, without Ray: for debugging.

    A point that failed or diverged is tried again, and what it raises is seen with its
    traceback: python -m pdb -m bmg_sweeps run … stops there.
    """
    if sys.flags.optimize > 1:
        raise errors.UserError(
            "PYTHONOPTIMIZE=2: expected less, as libraries of trainers read docstrings"
        )
    chosen = choices.choose(sweep, choice)
    found = answers.find(chosen, point)
    if store.read(storage, found.trainer, found.id).reaches(chosen.stop):
        stop = formatting.amounts(chosen.stop)
        answers.say(f"point {found.id}: done already, trained to {stop}")
        return 0
    checking.check([found], [chosen], data=data, lets_fail=True)
    files.check_writable(storage)
    from bmg_sweeps.running import work_unit

    store.declare(storage, found.trainer, found.id, found.gin_text())
    code = revision.fingerprints([found.trainer])[found.trainer]
    revision.keep(storage, [code])
    holders = _watch(storage, found)
    task = work_unit.Task(
        trainer=found.trainer,
        stops={found.id: chosen.stop},
        retry=True,
        raises=True,
        data=data,
        lost=sorted(holders.lost),
        launch={
            "launch": "run",
            "revision": revision.revision(),
            "code": code,
        },
    )
    status = work_unit.run(storage, task)[found.id]
    record = store.read(storage, found.trainer, found.id)
    if status == "busy":
        owner = errors.one_line(record.owner)
        answers.say(f"point {found.id}: runs under {owner} already")
        return 1
    progress = formatting.amounts(record.progress)
    answers.say(f"point {found.id}: {status}, trained to {progress}")
    if record.failure:
        answers.say(errors.one_line(answers.failure(record)))
    return 0 if status == "done" else 1


def _watch(storage: files.Storage, point) -> leases.Watch:
    """Watches who holds a point, until the holder is seen to live or is lost."""
    holders, has_told = leases.Watch(storage), False
    while True:
        record = store.read(storage, point.trainer, point.id)
        if not record.is_leased() or holders.look(record.manifest.lease) != "unknown":
            return holders
        if not has_told:
            owner, seconds = errors.one_line(record.owner), leases.LOST_SECONDS
            answers.say(
                f"It is held by {owner}; looking for {seconds:.0f} s if that lives."
            )
        has_told = True
        time.sleep(1.0)


@options.command
@options.sweep
@options.points
@options.training
@options.budget
@options.looks
def rerun(
    storage: files.Storage,
    sweep: str,
    choice: choices.Choice,
    training: options.Training,
    budget: tuple[str, float] | None,
    looks: until_decided.Looks | None,
) -> int:
    """Run the best configurations on fresh seeds, and compare.

    With --until-decided, run seeds that nothing was run on until the sweep's open
    claims are decided. The plan is stored first: which configurations, which seeds, how
    often they are looked at, and at which level. The same command goes on with it.
    """
    if looks is not None:
        _check_planned(choice, budget)
        planned = choices.choose(sweep, choice)
        return until_decided.run(
            storage,
            planned,
            looks,
            lambda again: _launch(storage, [again], training, like=planned),
            training.dry_run,
        )
    if not choice.seeds:
        raise errors.UserError("--seeds: expected fresh seeds to run, such as 10-14")
    chosen = choices.choose(sweep, dataclasses.replace(choice, seeds=()))
    before = answers.selected(storage, chosen, budget)
    again = answers.on_fresh_seeds(before, choice.seeds)
    code = _launch(storage, [again], training, like=chosen)
    if training.dry_run:
        return code
    after = results.load(storage, again, {axis: [n] for axis, n in again.stop.items()})
    from bmg_sweeps.reporting import comparison, tables

    tables.text([comparison.table(before, after)], answers.console())
    answers.say(comparison.sentence(before, after))
    return code


def _check_planned(choice: choices.Choice, budget: tuple[str, float] | None) -> None:
    """Refuses what a plan decides by itself."""
    if choice.seeds:
        raise errors.UserError(
            "--seeds: expected none with --until-decided, which takes seeds that "
            "nothing was run on"
        )
    if budget is not None:
        raise errors.UserError(
            "--budget: expected none with --until-decided, as claims are of the last "
            "one; --stop names another"
        )


def _launch(
    storage: files.Storage,
    chosen: list[choices.Chosen],
    training: options.Training,
    parts: Sequence[float] = rungs.PARTS[-1:],
    like: choices.Chosen | None = None,
) -> int:
    """Runs a plan, exports it, and says what came of it.

    Fresh seeds of another choice (`like`) take as long as that one's, and are reported
    by the command itself.
    """
    plan = planning.plan(storage, chosen, training.retry, verify=True)
    pack = _pack(training, plan)
    _say_plan(storage, chosen, training, plan, like)
    if _loses_hours(chosen, training, pack):
        answers.say(
            "Budgets in hours leave out points that train in a pack; --pack 1 trains "
            "each alone."
        )
    if not training.dry_run:
        cluster.check_address(training.resources)
        files.check_writable(storage)
        files.clear(storage)
        if plan.to_run:
            cluster.import_ahead(training.resources)
    if plan.to_run:
        answers.say("Checking them: values, trainers and data sets.")
    data = training.resources.data
    platform = "gpu" if training.resources.gpus else "cpu"
    estimates = checking.check(plan.to_run, chosen, data, training.pack, platform)
    if num_bytes := forecast.memory_bytes(plan, estimates):
        answers.say(f"Memory of a point: about {formatting.memory(num_bytes)}")
    if training.dry_run:
        answers.say("A dry run: nothing is wrong with them, and nothing was run.")
        return 0
    from bmg_sweeps import tracking

    with tracking.following(
        storage, chosen, training.wandb, with_sweeps=like is None
    ) as follower:
        is_stopped = _train(storage, chosen, training, plan, pack, parts)
        after = planning.plan(storage, chosen)
        answers.print_problems(after)
        answers.say(follower.finish())
    missing = after.counts().get("missing", 0)
    if is_stopped:
        answers.say("Stopped; the same command goes on from here.")
    elif missing:
        points = formatting.counted(missing, "point")
        answers.say(f"{points} missing; the same command goes on from here.")
    elif like is None:
        for one in chosen:
            knows = not one.stop.keys().isdisjoint(one.sweep.select.budgets)
            verb = "report" if knows else "status"
            answers.say(f"Next: {answers.command(storage, verb, one)}")
    return 0 if set(after.counts()) <= {"done", "diverged"} else 1


def _train(storage, chosen, training: options.Training, plan, pack, parts) -> bool:
    """Trains to each part of the stop rule; returns whether the user stopped it."""
    at_rungs = [[rungs.at(one, part) for one in chosen] for part in parts]
    for rung, here in enumerate(at_rungs):
        ranks: dict[str, int] = {}
        # What had failed is tried again once, and not at each rung.
        retry = training.retry and rung == 0
        if len(parts) > 1:
            plan = planning.plan(storage, here, retry, verify=True)
            _say_rung(here, rung, parts, plan)
        if rung > 0:
            ranks = rungs.ranks(storage, at_rungs[rung - 1])
        if _train_to(storage, here, training, plan, pack, ranks, retry):
            return True
    return False


def _say_rung(here: list[choices.Chosen], rung: int, parts, plan) -> None:
    """Prints how far points train now, and how many do."""
    stops = "; ".join(dict.fromkeys(formatting.amounts(one.stop) for one in here))
    points = formatting.counted(len(plan.to_run), "point")
    answers.say(f"Rung {rung + 1} of {len(parts)}, to {stops}: {points} to run")


def _train_to(storage, chosen, training, plan, pack, ranks, retry) -> bool:
    """Runs the trials of a plan; returns whether the user stopped them."""
    if not plan.to_run and "running" not in plan.counts():
        return False
    from bmg_sweeps.launching import progress, trials

    outcome = trials.run(
        storage,
        plan,
        training.resources,
        pack=pack,
        retry=retry,
        ranks=ranks,
        watch=lambda: progress.watch(storage, plan, chosen, answers.console()),
    )
    for line in outcome.lost:
        answers.say(f"  {line}")
    return outcome.is_stopped


def _say_plan(storage, chosen, training: options.Training, plan, like) -> None:
    """Prints what will be run, how long that may take, and what others run."""
    structures = formatting.counted(
        len({p.structure for p in plan.to_run}), "structure"
    )
    answers.say(answers.using(storage, [one.choice.scale for one in chosen]))
    for one in chosen:
        answers.say(f"{one.name}: stop at {formatting.amounts(one.stop)}")
        for line in choices.twins(one):
            answers.say(f"  {line}")
    to_run = f"{len(plan.to_run):,} to run, of {structures}"
    to_run += _forecast(storage, plan, cluster.own_slots(training.resources), like)
    answers.say(f"{answers.counted(plan)}; {to_run}")
    if "failed" in plan.counts() and not training.retry:
        answers.say("What has failed is tried again with --retry only.")
    owners: dict[str, int] = {}
    for i, status in plan.statuses.items():
        if status == "running":
            owner = errors.one_line(plan.records[i].owner)
            owners[owner] = owners.get(owner, 0) + 1
    for owner, number in owners.items():
        answers.say(
            f"{number} of them run under {owner}; this launch waits for them, and runs "
            f"what they leave"
        )


def _forecast(storage, plan: planning.Plan, slots: int | None, like) -> str:
    """Says how long a plan may take, if anything like it has been trained."""
    if not plan.to_run:
        return ""
    seconds = forecast.seconds(plan, slots or 1)
    if seconds is None and like is not None:
        known = planning.plan(storage, [like])
        seconds = forecast.seconds(plan, slots or 1, known)
    if seconds is None:
        return ", time unknown: nothing like them has been trained"
    at_once = "if trials ran one by one"
    if slots:
        at_once = f"{formatting.counted(slots, 'trial')} at a time"
    return f", about {formatting.duration(seconds)} ({at_once})"


def _loses_hours(
    chosen: list[choices.Chosen], training: options.Training, pack: int | None
) -> bool:
    """Whether points may train in packs, and somebody asks what they reach by time."""
    may_pack = training.resources.gpus > 0 if pack is None else pack != 1
    return may_pack and any("hours" in one.sweep.select.budgets for one in chosen)


def _pack(training: options.Training, plan: planning.Plan) -> int | None:
    """Returns how many points train together; None is for the device to decide."""
    if not any("hours" in stop for stop in plan.stops.values()):
        return training.pack
    if (training.pack or 1) > 1:
        raise errors.UserError(
            f"--pack {training.pack}: expected 1, as the stop rule counts hours, and "
            f"those of a pack are not its points' own"
        )
    return 1
