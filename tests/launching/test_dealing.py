"""How points become trials: of one structure and width, small, and in a good order."""

import json

import pytest

from bmg_sweeps.launching import dealing
from bmg_sweeps.sweep.point import Point
from bmg_sweeps.trainer.source import Field

STOP = {"env_steps": 100}

# Points of one `steps` share a program.
FIELDS = {"steps": Field("int", True), "seed": Field("int", False)}


def point(steps, seed):
    return Point("toy", {"steps": steps, "seed": seed}, FIELDS)


def make(points, widths=None, pack=1, slots=2, ranks=None):
    """The trials of some points."""
    stops = {p.id: STOP for p in points}
    widths = dict.fromkeys(stops) | (widths or {})
    return dealing.tasks(
        points, stops, widths, slots=slots, pack=pack, ranks=ranks or {}
    )


def named(tasks, points):
    """Writes trials as (steps, seeds)."""
    by_id = {p.id: p.values for p in points}
    return [
        (by_id[min(t["stops"])]["steps"], sorted(by_id[i]["seed"] for i in t["stops"]))
        for t in tasks
    ]


def test_a_width_of_one_makes_each_point_a_trial():
    points = [point(1, seed) for seed in range(3)]
    tasks = make(points)
    assert [len(task["stops"]) for task in tasks] == [1, 1, 1]
    assert {task["pack"] for task in tasks} == {1}


def test_a_pack_holds_points_of_one_structure_only():
    """Five of one and two of another, three at a time."""
    points = [point(1, seed) for seed in range(5)] + [point(2, seed) for seed in (0, 1)]
    tasks = make(points, pack=3, slots=1)
    assert named(tasks, points) == [(1, [0, 1, 2]), (1, [3, 4]), (2, [0, 1])]


def test_where_the_trial_says_the_width_every_slot_gets_some():
    """Ten points in two slots are five each."""
    points = [point(1, seed) for seed in range(10)]
    tasks = make(points, pack=None)
    assert [len(task["stops"]) for task in tasks] == [5, 5]
    assert {task["pack"] for task in tasks} == {None}
    many = make([point(1, seed) for seed in range(1000)], pack=None)
    assert max(len(task["stops"]) for task in many) == dealing.MAX_PACK


def test_points_that_go_on_keep_their_width():
    """Two were in a pack of four, one is new: they are not put together."""
    points = [point(1, seed) for seed in range(3)]
    tasks = make(points, {p.id: 4 for p in points[:2]}, slots=1)
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


def alike(number):
    """Tasks of one point each, and a dealer that takes all of them for one kind."""
    tasks = make([point(1, seed) for seed in range(number)], slots=1)
    return tasks, dealing.Dealer(tasks, lambda task: "alike", slots=2)


def ids(tasks):
    return [i for task in tasks for i in task["stops"]]


def test_before_a_trial_has_ended_each_gets_one_point():
    tasks, dealer = alike(5)
    assert [dealer.deal(str(i)) for i in range(6)] == [*tasks, None]


def test_points_that_were_short_come_several_at_a_time():
    """By hand: of 100 points one is gone; at 0.5 s each, 2 s hold four."""
    tasks, dealer = alike(100)
    dealer.deal("a")
    dealer.ended("a", 0.5)
    dealt = dealer.deal("b")
    assert list(dealt["stops"]) == ids(tasks[1:5])
    assert dealing.is_batch(dealt)
    assert not dealing.is_batch(tasks[0])


def test_half_of_what_is_left_stays_for_later_trials():
    """Two slots share the rest: of 19 each gets 4, of 15 and so on, until one."""
    tasks, dealer = alike(20)
    dealer.deal("a")
    dealer.ended("a", 0.0)
    dealt = []
    while (task := dealer.deal("b")) is not None:
        dealt.append(task)
    assert [len(task["stops"]) for task in dealt] == [4, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1]
    assert ids(dealt) == ids(tasks[1:])


def test_a_batch_is_bounded_however_short_its_points_are():
    _, dealer = alike(1000)
    dealer.deal("a")
    dealer.ended("a", 1e-9)
    assert len(dealer.deal("b")["stops"]) == dealing.MAX_BATCH


@pytest.mark.parametrize("seconds", [None, dealing.BATCH_SECONDS + 1])
def test_points_that_failed_or_were_long_stay_single(seconds):
    """A point that raises at once says nothing about how long the others take."""
    _, dealer = alike(100)
    dealer.deal("a")
    dealer.ended("a", seconds)
    assert len(dealer.deal("b")["stops"]) == 1


def test_a_batch_is_of_one_kind_in_the_order_of_the_tasks():
    """Two structures alternate; a task of no kind is never joined."""
    points = [point(steps, seed) for steps in (1, 2) for seed in range(20)]
    structures = {p.id: p.values["steps"] for p in points}
    tasks = make(points)
    single = min(tasks[4]["stops"])

    def kind(task):
        first = min(task["stops"])
        return None if first == single else structures[first]

    dealer = dealing.Dealer(tasks, kind, slots=2)
    dealer.deal("a")
    dealer.ended("a", 0.01)  # Structure 1: two slots share 18 of a kind.
    of_two, of_one = dealer.deal("b"), dealer.deal("c")
    assert ids([of_two]) == ids([tasks[1]])
    assert ids([of_one]) == ids([tasks[2], *tasks[6:12:2]])
    dealer.deal("d")
    assert ids([dealer.deal("e")]) == [single]


def test_tune_gets_a_text_for_each_trial_and_an_end(storage):
    """And tells the dealer how long a trial took, unless it died."""
    from ray.tune import search
    from ray.tune.experiment import Experiment

    tasks, dealer = alike(100)
    asked = dealing.searcher(dealer)
    assert asked.set_search_properties(None, None, {"launch": {}})
    generator = search.SearchGenerator(asked)
    experiment = Experiment(
        "launch",
        lambda config: None,
        config={"launch": {"retry": False}},
        num_samples=len(tasks),
        storage_path=storage.root,
    )
    generator.add_configurations([experiment])
    first, second = generator.next_trial(), generator.next_trial()
    assert json.loads(first.config["task"]) == tasks[0]
    assert first.config["launch"] == {"retry": False}
    generator.on_trial_complete(first.trial_id, error=True)
    assert json.loads(generator.next_trial().config["task"]) == tasks[2]
    generator.on_trial_complete(second.trial_id, {"seconds": 0.5, "busy": []})
    dealt = [generator.next_trial()]
    assert len(json.loads(dealt[0].config["task"])["stops"]) == 4
    while not generator.is_finished():
        dealt.append(generator.next_trial())
    assert dealt.pop() is None
    told = [json.loads(trial.config["task"]) for trial in dealt]
    assert ids(told) == ids(tasks[3:])
