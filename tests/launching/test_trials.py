"""Trials through Ray Tune: what it is told, how they stop, and what dies with them."""

import contextlib
import dataclasses
import json
import os
import pathlib
import tempfile
from typing import NamedTuple

import pytest
import ray
from ray import cloudpickle

from bmg_sweeps import __main__, errors, paths
from bmg_sweeps.launching import (
    checking,
    cluster,
    planning,
    revision,
    temporary,
    trials,
)
from bmg_sweeps.records import attempts, files, leases, manifests, store
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
        code="",
        pack=pack,
        retry=False,
        ranks=ranks or {},
        provenance={"launch": "abc"},
        holders=leases.Watch(storage),
        records=dict(plan.records) if plan else {},
    )


def planned(points, records=None):
    """A plan of points, of which none but those named has a record."""
    records = {p.id: store.Record("toy", p.id) for p in points} | (records or {})
    return planning.Plan(
        stops={p.id: STOP for p in points},
        points=tuple(points),
        statuses={p.id: "missing" for p in points},
        to_run=tuple(points),
        records=records,
        codes={"toy": ""},
    )


@pytest.mark.parametrize(
    ("gpus", "pack", "expected"),
    [
        (0.0, None, 1),
        (0.0, 3, 3),
        (0.0, cluster.AUTO_PACK, None),
        (1.0, None, None),
        (1.0, cluster.AUTO_PACK, None),
        (1.0, 1, 1),
    ],
)
def test_the_device_decides_the_width_on_a_gpu_or_where_it_is_asked_to(
    storage, gpus, pack, expected
):
    points = [point(1, seed) for seed in range(6)]
    resources = cluster.Resources(gpus=gpus)
    made = launch(storage, planned(points), resources, pack)
    assert trials._dealer(made, points, slots=2).deal("a")["pack"] == expected


def test_a_batch_has_new_points_alone_of_one_program_and_stop_rule(storage):
    """Those that go on are shorter, and those that were in a death are tried alone."""
    points = [point(steps, seed) for steps in (1, 2) for seed in range(20)]
    dead, far, *begun = points[1:7]
    before = manifests.Manifest(
        progress={"env_steps": 50},
        attempt=1,
        provenance=manifests.Provenance(pack_width=1),
    )
    plan = planned(points, {p.id: store.Record("toy", p.id, before) for p in begun})
    plan.stops[far.id] = {"env_steps": 1000}
    made = launch(storage, plan, cluster.Resources())
    made.alone.add(dead.id)
    dealer = trials._dealer(made, points, slots=1)
    dealer.deal("a")
    dealer.ended("a", 0.01)
    dealt = []
    while (task := dealer.deal("b")) is not None:
        dealt.append([*task["stops"]])
    assert [p.id for p in points[7:13]] in dealt  # Of 13 that are left.
    assert all([p.id] in dealt for p in (dead, far, *begun, *points[20:]))


def test_tune_makes_each_trial_without_a_look_at_the_others(storage, monkeypatch):
    """It would copy a grid of all tasks once for each of them."""
    import ray.tune
    from ray.tune import search
    from ray.tune.experiment import Experiment

    asked = {}

    class Tuner:
        def __init__(self, trainable, **keywords):
            asked.update(keywords, trainable=trainable)

        def fit(self):
            return []

    monkeypatch.setattr(ray.tune, "Tuner", Tuner)
    points = [point(1, seed) for seed in range(3)]
    made = launch(storage, planned(points), cluster.Resources())
    dealer = trials._dealer(made, points, slots=2)
    trials._fit(ray.tune, dealer, {}, made, slots=2)
    assert asked["param_space"] == {"launch": {}}
    tune, told = asked["tune_config"], []
    experiment = Experiment(
        "launch",
        asked["trainable"],
        config=asked["param_space"],
        num_samples=tune.num_samples,
        storage_path=storage.root,
    )
    generator = search.SearchGenerator(tune.search_alg)
    generator.add_configurations([experiment])
    while (trial := generator.next_trial()) is not None:
        told.append(json.loads(trial.config["task"]))
        assert tune.trial_dirname_creator(trial) == min(told[-1]["stops"])
    expected = trials._dealer(made, points, slots=2)
    assert told == [expected.deal(str(i)) for i in range(3)]


class Death(NamedTuple):
    """How Tune says that a trial's process died, or raised."""

    config: dict
    error: Exception = ray.exceptions.ActorDiedError()


class Ray:
    """A cluster of two nodes and one that went before; one more goes at each look."""

    tune = None
    exceptions = ray.exceptions

    def __init__(self, loses_nodes=False):
        self.loses_nodes = loses_nodes
        self.looks = 0

    def nodes(self):
        """As Ray lists them, with those that are gone."""
        self.looks += self.loses_nodes
        gone = [{"NodeID": f"gone-{i}", "Alive": False} for i in range(self.looks + 1)]
        left = [{"NodeID": f"gone-{self.looks + 1}", "Alive": True}]
        return [*gone, *left, {"NodeID": "stays", "Alive": True}]


class End(NamedTuple):
    """How Tune says that a trial has ended."""

    metrics: dict
    error: None = None


def ends(monkeypatch, tasks, cluster_of, error=None):
    """Has all trials of these tasks end by an error, which is a death unless given."""
    words = {} if error is None else {"error": error}
    results = [Death({"task": json.dumps(task)}, **words) for task in tasks]
    context = contextlib.nullcontext((cluster_of, 2))
    monkeypatch.setattr(cluster, "connect", lambda *_: context)
    monkeypatch.setattr(trials, "_fit", lambda *_: results)


def statuses(storage, points):
    return [store.status(store.read(storage, "toy", p.id), STOP) for p in points]


@pytest.mark.parametrize("is_node_lost", [False, True])
def test_the_others_of_a_batch_that_died_go_on_alone(
    storage, monkeypatch, is_node_lost
):
    """Who of them has killed the process shows when it does so again."""
    points = [point(1, seed) for seed in range(9)]
    made = launch(storage, planned(points), cluster.Resources())
    parts = [points[:1], points[1:]]
    tasks = [
        {"trainer": "toy", "stops": {p.id: STOP for p in part}, "pack": 1}
        for part in parts
    ]

    ends(monkeypatch, tasks, Ray(is_node_lost))
    again, lost = trials._run_trials(made, points)
    failed = {
        p.id
        for p in points
        if store.status(store.read(storage, "toy", p.id), STOP) == "failed"
    }
    if is_node_lost:
        assert (again, lost, failed) == (points, [], set())
        return
    assert again == parts[1]
    assert failed == {points[0].id}
    assert points[0].id in lost[0]
    dealer = trials._dealer(made, again, slots=1)
    for _ in again:
        assert len(dealer.deal("a")["stops"]) == 1
        dealer.ended("a", 0.01)


def test_a_point_that_dies_where_it_stands_is_given_up(storage, monkeypatch):
    """Though a node is lost each time; one that gets ahead in between goes on."""
    stuck, ahead = points = [point(1, seed) for seed in (0, 1)]
    made = launch(storage, planned(points), cluster.Resources())
    tasks = [{"trainer": "toy", "stops": {p.id: STOP}, "pack": 1} for p in points]
    ends(monkeypatch, tasks, Ray(loses_nodes=True))
    for time in range(trials.MAX_DEATHS):
        attempts.begin(storage, store.read(storage, "toy", ahead.id)).commit(
            progress={"env_steps": 10 * time + 1}, release=True
        )
        assert statuses(storage, points) == ["missing", "missing"]
        again, lost = trials._run_trials(made, points)
    assert again == [ahead]
    assert statuses(storage, points) == ["failed", "missing"]
    assert len(lost) == 1
    assert stuck.id in lost[0]


def test_what_a_trial_raises_is_told_and_is_no_points_failure(storage, monkeypatch):
    """As where a node lacks a package: any other point would have met it, too."""
    points = [point(1, seed) for seed in (0, 1)]
    made = launch(storage, planned(points), cluster.Resources())
    task = {"trainer": "toy", "stops": {p.id: STOP for p in points}, "pack": 2}
    reason = "ModuleNotFoundError: No module named 'optax'"
    error = ray.exceptions.RayTaskError("f", f"Traceback\n{reason}", ValueError())
    ends(monkeypatch, [task], Ray(loses_nodes=True), error)
    again, lost = trials._run_trials(made, points)
    assert again == []
    assert lost == [f"{points[0].id}, {points[1].id}: {reason}"]
    assert statuses(storage, points) == ["missing", "missing"]
    assert store.read(storage, "toy", points[0].id).manifest.attempt == 0


def test_points_that_storage_refused_are_told(storage, monkeypatch):
    """In one line, not hundreds; a launch that was stopped has left them on purpose."""
    points = [point(1, seed) for seed in range(7)]
    made = launch(storage, planned(points), cluster.Resources())
    context = contextlib.nullcontext((Ray(), 2))
    results = [End({"busy": [], "left": [p.id]}) for p in points]
    monkeypatch.setattr(cluster, "connect", lambda *_: context)
    monkeypatch.setattr(trials, "_fit", lambda *_: results)
    again, (line,) = trials._run_trials(made, points)
    assert again == []
    first = ", ".join(p.id for p in points[:5])
    assert line.startswith(f"{first} and 2 more: storage refused for 60 s")
    trials._STOPPED.add("abc")
    try:
        assert trials._run_trials(made, points) == ([], [])
    finally:
        trials._STOPPED.discard("abc")


def test_a_pack_that_died_is_dealt_anew_point_by_point(storage, monkeypatch):
    """In the same launch, once their records have been looked at again."""
    points = [point(1, seed) for seed in range(3)]
    made = launch(storage, planned(points), cluster.Resources(), pack=3)
    (task,) = [trials._dealer(made, points, slots=1).deal("a")]
    assert len(task["stops"]) == 3
    ends(monkeypatch, [task], Ray())
    again, lost = trials._run_trials(made, points)
    assert again == points
    assert len(lost) == 1
    free, elsewhere = trials._wait(made, again)
    assert (free, elsewhere) == (points, [])
    dealer = trials._dealer(made, free, slots=1)
    assert [len(dealer.deal("a")["stops"]) for _ in free] == [1, 1, 1]


def test_code_that_changed_since_the_plan_is_refused(storage, tmp_path, monkeypatch):
    """And what is copied stays as it is, whatever is edited later."""
    (tmp_path / "trainers").mkdir()
    toy = tmp_path / "trainers" / "toy.py"
    toy.write_text("X = 1")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "TRAINERS", tmp_path / "trainers")
    points = [point(1, 0)]
    codes = revision.fingerprints(["toy"])
    plan = dataclasses.replace(planned(points), codes=codes)
    with trials._copied_code(storage, plan) as code:
        toy.write_text("X = 2")
        assert pathlib.Path(code, "trainers", "toy.py").read_text() == "X = 1"
    with (
        pytest.raises(errors.UserError, match="trainer toy: its code has changed"),
        trials._copied_code(storage, plan),
    ):
        pass
    assert [*storage.sizes(".code")] == [f"{codes['toy']}.zip"]


def test_a_storage_that_refuses_is_asked_again_while_others_work(storage, monkeypatch):
    """A launch of hours does not end for it."""
    points = [point(1, 0)]
    made = launch(storage, planned(points), cluster.Resources())
    scan, refusals = store.scan, iter([files.StorageError("no answer")])

    def refusing(*arguments):
        for error in refusals:
            raise error
        return scan(*arguments)

    monkeypatch.setattr(store, "scan", refusing)
    assert trials._wait(made, points) == (points, [])


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
    with pytest.raises(errors.UserError), cluster.connect(resources, storage, ""):
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


def test_ray_is_imported_while_points_are_checked(toy_here, monkeypatch):
    """Only where trials will follow: not for a dry run, nor when all is done."""
    events = []
    monkeypatch.setattr(cluster, "import_ahead", lambda _: events.append("import"))
    monkeypatch.setattr(
        checking, "check", lambda points, *_: events.append(len(points)) or {}
    )
    for words, expected in (
        (["--dry-run"], [4]),
        ([], ["import", 4]),
        ([], [0]),
    ):
        events.clear()
        assert __main__.main(["launch", "mine.py", "--wandb", "off", *words]) == 0
        assert events == expected
