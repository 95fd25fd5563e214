"""Runs of toy sweeps that are only in memory: what each has at its one budget."""

from bmg_sweeps.analysis import readings, results
from bmg_sweeps.records import manifests, store
from bmg_sweeps.sweep import choices, grid
from bmg_sweeps.sweep.point import Point

BUDGET = 100
DIVERGED, FAILED = "diverged", "failed"


def sweep(methods, mode="max", over=("seed",), floor=None, **keywords):
    """A sweep of methods by their kind, which is their name."""
    floors = {} if floor is None else {"floor": floor}
    rule = grid.Select(
        metric="reward", mode=mode, budgets={"env_steps": 1}, over=over, **floors
    )
    methods = {m: grid.Method({"kind": m}, tuned={"rate": "rate"}) for m in methods}
    return grid.Sweep(
        title="Toy", trainer="toy", scales={}, select=rule, methods=methods, **keywords
    )


def toy_point(kind, rate, seed, **values):
    return Point("toy", {"kind": kind, "rate": rate, "seed": seed, **values})


def trained(p, reward, **columns):
    """A point that has trained to the budget; or how it ended half-way to it."""
    columns = {"reward": reward} | columns
    if reward in (DIVERGED, FAILED):
        failure = manifests.Failure(reward, 2, "ValueError", "no")
        manifest = manifests.Manifest(progress={"env_steps": 50}, failure=failure)
        return readings.Trained(p, store.Record("toy", p.id, manifest), {})
    manifest = manifests.Manifest(progress={"env_steps": BUDGET})
    rows = {"env_steps": [BUDGET]} | {name: [x] for name, x in columns.items()}
    return readings.Trained(p, store.Record("toy", p.id, manifest), rows)


def table(rewards):
    """Points of rewards by method, configuration and seed: {"A": [[1, 2], [3, 4]]}."""
    return [
        trained(toy_point(kind, rate, seed), reward)
        for kind, configurations in rewards.items()
        for rate, by_seed in enumerate(configurations)
        for seed, reward in enumerate(by_seed)
    ]


def load(of, runs, stop=BUDGET):
    """The results of a sweep's points."""
    points, choice = tuple(one.point for one in runs), choices.Choice(scale="mine")
    chosen = choices.Chosen("toy", of, points, {"env_steps": stop}, choice)
    return results.without_tests(chosen, runs)
