"""How a plan becomes trials: of one structure and width, small, and in a good order."""

import json
import os
import pathlib
import tempfile

import pytest
from ray import cloudpickle

from bmg_sweeps import __main__, errors
from bmg_sweeps.launching import cluster, planning, temporary, trials
from bmg_sweeps.records import attempts, leases, manifests, store
from bmg_sweeps.sweep.point import Point
from bmg_sweeps.trainer.source import Field

STOP = {"env_steps": 100}


# Points of one `steps` share a program.
FIELDS = {"steps": Field("int", True), "seed": Field("int", False)}


def point(steps, seed):
    return Point("toy", {"steps": steps, "seed": seed}, FIELDS)


def launch(storage, plan=None, resources=None, pack=None, ranks=None):
    """A launch that is called abc."""
    return trials._Launch(
        storage=storage,
        plan=plan,
        resources=resources,
        pack=pack,
        retry=False,
        ranks=ranks or {},
        provenance={"launch": "abc"},
        holders=leases.Watch(storage),
    )


def make(points, records=None, pack=None, gpus=0.0, slots=2, ranks=None):
    """The trials of some points, by the seeds in each."""
    records = {p.id: store.Record("toy", p.id) for p in points} | (records or {})
    plan = planning.Plan(
        stops={p.id: STOP for p in points},
        points=tuple(points),
        statuses={p.id: "missing" for p in points},
        to_run=tuple(points),
        records=records,
        codes={"toy": ""},
    )
    resources = cluster.Resources(gpus=gpus)
    made = launch(None, plan=plan, resources=resources, pack=pack, ranks=ranks)
    return trials._tasks(made, points, slots)


def named(tasks, points):
    """Writes trials as (steps, seeds)."""
    by_id = {p.id: p.values for p in points}
    return [
        (by_id[min(t["stops"])]["steps"], sorted(by_id[i]["seed"] for i in t["stops"]))
        for t in tasks
    ]


def test_on_cpus_each_point_is_a_trial():
    """Unless packs are asked for."""
    points = [point(1, seed) for seed in range(3)]
    tasks = make(points)
    assert [len(task["stops"]) for task in tasks] == [1, 1, 1]
    assert {task["pack"] for task in tasks} == {1}


def test_a_pack_holds_points_of_one_structure_only():
    """Five of one and two of another, three at a time."""
    points = [point(1, seed) for seed in range(5)] + [point(2, seed) for seed in (0, 1)]
    tasks = make(points, pack=3, slots=1)
    assert named(tasks, points) == [(1, [0, 1, 2]), (1, [3, 4]), (2, [0, 1])]


def test_on_a_gpu_the_device_decides_and_every_slot_gets_some():
    """Ten points in two slots are five each, the width left open."""
    points = [point(1, seed) for seed in range(10)]
    tasks = make(points, gpus=1.0)
    assert [len(task["stops"]) for task in tasks] == [5, 5]
    assert {task["pack"] for task in tasks} == {None}
    many = make([point(1, seed) for seed in range(1000)], gpus=1.0)
    assert max(len(task["stops"]) for task in many) == trials.MAX_PACK


def test_points_that_go_on_keep_their_width():
    """Two were in a pack of four, one is new: they are not put together."""
    points = [point(1, seed) for seed in range(3)]
    before = manifests.Manifest(
        progress=STOP, provenance=manifests.Provenance(pack_width=4)
    )
    records = {p.id: store.Record("toy", p.id, before) for p in points[:2]}
    tasks = make(points, records, pack=1, slots=1)
    found = [(len(task["stops"]), task["pack"]) for task in tasks]
    assert found == [(2, 4), (1, 1)]


def test_two_slots_compile_different_structures_at_the_same_time():
    """Each takes the next trial: the first two are of different structures."""
    points = [point(steps, seed) for steps in (1, 2) for seed in range(3)]
    order = [steps for steps, _ in named(make(points), points)]
    assert order == [1, 2] * 3


def test_who_is_ahead_goes_first_and_who_has_no_rank_last():
    """Also in packs, which take those that are ahead together."""
    points = [point(steps, seed) for steps in (1, 2) for seed in range(3)]
    order = [(2, 1), (1, 2), (2, 0), (1, 0), (1, 1)]  # (2, 2) has no rank.
    by_values = {(p.values["steps"], p.values["seed"]): p.id for p in points}
    ranks = {by_values[pair]: rank for rank, pair in enumerate(order)}
    alone = named(make(points, ranks=ranks), points)
    assert alone == [(steps, [seed]) for steps, seed in [*order, (2, 2)]]
    packs = named(make(points, ranks=ranks, pack=2), points)
    assert packs == [(2, [0, 1]), (1, [0, 2]), (1, [1]), (2, [2])]


def test_a_trial_is_told_no_more_than_which_points():
    """Tune writes its configs again and again: ids and stop rules, 150 bytes each."""
    points = [point(1, seed) for seed in range(100)]
    assert len(json.dumps(make(points))) < 150 * len(points)


def test_tune_makes_each_trial_without_a_look_at_the_others(storage, monkeypatch):
    """It would copy a grid of all tasks once for each of them."""
    import ray.tune
    from ray.tune.experiment import Experiment

    asked = {}

    class Tuner:
        def __init__(self, trainable, **keywords):
            asked.update(keywords, trainable=trainable)

        def fit(self):
            return []

    monkeypatch.setattr(ray.tune, "Tuner", Tuner)
    points = [point(1, seed) for seed in range(3)]
    tasks = make(points)
    resources = cluster.Resources()
    trials._fit(ray.tune, tasks, {}, launch(storage, resources=resources))
    assert asked["param_space"] == {"task": None, "launch": {}}
    tune, told = asked["tune_config"], []
    experiment = Experiment(
        "launch",
        asked["trainable"],
        config=asked["param_space"],
        num_samples=tune.num_samples,
        storage_path=storage.root,
    )
    tune.search_alg.add_configurations([experiment])
    while (trial := tune.search_alg.next_trial()) is not None:
        told.append(json.loads(trial.config["task"]))
        assert tune.trial_dirname_creator(trial) == min(told[-1]["stops"])
    assert told == tasks


def test_tune_writes_no_snapshots_of_its_trials(storage, monkeypatch):
    """Each would have all of them, a few kilobytes a trial, and none is ever read."""
    import ray
    from ray.tune import constants

    def init(**_):
        raise ConnectionError

    name = "TUNE_GLOBAL_CHECKPOINT_S"
    assert name in constants.TUNE_ENV_VARS
    monkeypatch.setattr(ray, "init", init)
    resources = cluster.Resources(address="nowhere:1")
    with pytest.raises(errors.UserError), cluster.connect(resources, storage):
        pass
    assert float(os.environ[name]) > 1e7  # Seconds.


def test_what_is_sent_to_workers_can_be():
    """A trainable that held a gin configurable, or a lock, could not be pickled."""
    data = cloudpickle.dumps(trials.train_points)
    assert cloudpickle.loads(data) is trials.train_points
    import ray.tune

    callback = trials._end_when_stopped(ray.tune, "abc")
    again = cloudpickle.loads(cloudpickle.dumps(callback))
    trials._STOPPED.add("abc")
    try:
        with pytest.raises(trials._Stopped):
            again.on_step_end(1, [])
    finally:
        trials._STOPPED.discard("abc")


def test_a_stop_waits_for_what_runs_and_for_nothing_else():
    """The trials that ran when the user asked; those that still wait never start."""
    import ray.tune

    class Trial:
        def __init__(self, status):
            self.status = status

        def is_finished(self):
            return self.status == "TERMINATED"

    running, waiting = Trial("RUNNING"), Trial("PENDING")
    callback = trials._end_when_stopped(ray.tune, "def")
    callback.on_step_end(1, [running, waiting])
    trials._STOPPED.add("def")
    try:
        callback.on_step_end(2, [running, waiting])
        waiting.status = "RUNNING"
        callback.on_step_end(3, [running, waiting])
        running.status = "TERMINATED"
        with pytest.raises(trials._Stopped):
            callback.on_step_end(4, [running, waiting])
    finally:
        trials._STOPPED.discard("def")


@pytest.mark.parametrize(
    ("nodes", "cpus", "gpus", "expected"),
    [
        ([{"CPU": 4}], 1, 0, 4),
        ([{"CPU": 4}, {"CPU": 3}], 2, 0, 3),
        ([{"CPU": 8, "GPU": 1}], 1, 0.1, 8),
        ([{"CPU": 16, "GPU": 1}], 1, 0.1, 10),
        ([{"CPU": 16, "GPU": 0.3}], 1, 0.1, 3),
        ([{"CPU": 16}, {"CPU": 2, "GPU": 2}], 1, 1, 2),
        ([], 1, 0, 0),
    ],
)
def test_slots_are_counted_node_by_node(nodes, cpus, gpus, expected):
    """A trial does not spread over nodes; ten tenths of a GPU are one."""
    nodes = [{"Resources": resources} for resources in nodes]
    resources = cluster.Resources(cpus=cpus, gpus=gpus)
    assert cluster._count_slots(nodes, resources) == expected


def test_the_folder_of_ray_is_closed_to_others():
    """And short enough for the names of sockets."""
    with temporary.folder("bmg_ray_", cluster._short()) as folder:
        assert pathlib.Path(folder).stat().st_mode & 0o777 == 0o700
        assert len(folder) < 30 or tempfile.gettempdir() != "/tmp"


@pytest.mark.parametrize("owner", ["launch abc", "launch def"])
def test_a_point_that_died_elsewhere_is_this_launchs_to_fail(storage, owner):
    """Ray knows that the process is gone, before a minute of its pulse has passed."""
    p = point(1, 0)
    attempts.begin(storage, store.read(storage, "toy", p.id), owner)
    task = {"trainer": "toy", "stops": {p.id: STOP}}
    trials._fail(launch(storage), task, p.id, "no memory")
    status = store.status(store.read(storage, "toy", p.id), STOP)
    assert status == ("failed" if owner == "launch abc" else "running")


@pytest.mark.parametrize("left_pack", [{}, {"left_pack": "it raised"}])
def test_a_point_that_died_alone_has_failed(storage, left_pack):
    """Also where it had left a pack before: there is nothing left to take apart."""
    p = point(1, 0)
    attempts.begin(storage, store.read(storage, "toy", p.id)).commit(
        provenance=left_pack, release=True
    )
    task = {"trainer": "toy", "stops": {p.id: STOP}}
    trials._fail(launch(storage), task, p.id, "no memory")
    record = store.read(storage, "toy", p.id)
    assert store.status(record, STOP) == "failed"
    assert record.failure.message == "no memory"


def test_points_of_a_pack_that_died_go_on_alone(storage):
    """None of them is to blame yet."""
    points = [point(1, seed) for seed in (0, 1)]
    task = {"trainer": "toy", "stops": {p.id: STOP for p in points}}
    for p in points:
        trials._fail(launch(storage), task, p.id, "no memory")
        record = store.read(storage, "toy", p.id)
        assert store.status(record, STOP) == "missing"
        assert record.pack_width == 1


def test_auto_leaves_the_width_to_trials_on_cpus_too():
    """Every slot gets some; the points are tried out there."""
    points = [point(1, seed) for seed in range(10)]
    tasks = make(points, pack=cluster.AUTO_PACK)
    assert [len(task["stops"]) for task in tasks] == [5, 5]
    assert {task["pack"] for task in tasks} == {None}


@pytest.mark.parametrize(
    ("words", "expected"),
    [((), None), (("--pack", "2"), 2), (("--pack", "auto"), cluster.AUTO_PACK)],
)
def test_the_command_line_says_the_width(toy_here, monkeypatch, words, expected):
    """A number, or "auto"; None without the option."""
    widths, train = [], trials.run

    def run(*positional, pack, **keywords):
        widths.append(pack)
        return train(*positional, **keywords)

    monkeypatch.setattr(trials, "run", run)
    assert __main__.main(["launch", "mine.py", "--wandb", "off", *words]) == 0
    assert widths == [expected]
