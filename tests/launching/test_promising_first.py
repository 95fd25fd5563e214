"""`launch --promising-first`: rung by rung, to what a plain launch comes to."""

import re

import pytest
import toy_checkout

from bmg_sweeps import __main__
from bmg_sweeps.launching import trials
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import choices


def command(*words):
    return __main__.main([*words, "mine.py", "--wandb", "off"])


def points():
    return choices.choose("mine.py", choices.Choice()).points


def steps(storage):
    """How far each point has trained, by id."""
    opened = files.open_storage(storage)
    return {
        p.id: store.read(opened, p.trainer, p.id).progress["env_steps"]
        for p in points()
    }


@pytest.fixture
def launched(toy_here, monkeypatch):
    """Notes, before each call of `trials.run`, whom it puts first and how far to."""
    found, train = [], trials.run

    def run(storage, plan, resources, **keywords):
        stops = {stop["env_steps"] for stop in plan.stops.values()}
        found.append((stops, [p.id for p in plan.to_run], keywords["ranks"]))
        return train(storage, plan, resources, **keywords)

    monkeypatch.setattr(trials, "run", run)
    return found


def test_all_points_reach_a_rung_before_any_goes_on(launched, capsys):
    """At an eighth, a quarter and half of 60 steps, and then to the end."""
    assert command("launch", "--promising-first", "--storage", "rungs") == 0
    assert [stops for stops, _, _ in launched] == [{8}, {15}, {30}, {60}]
    ids = {p.id for p in points()}
    assert all(set(todo) == ids for _, todo, _ in launched)
    said = re.findall(r"Rung .*", capsys.readouterr().out)
    assert said[0] == "Rung 1 of 4, to env_steps=8: 4 points to run"
    assert said[-1] == "Rung 4 of 4, to env_steps=60: 4 points to run"


def test_who_is_ahead_at_a_rung_goes_first_from_there(launched):
    """By the rewards at that rung, of both seeds; at first nobody is ahead."""
    assert command("launch", "--promising-first", "--storage", "rungs") == 0
    ranks = [ranks for _, _, ranks in launched]
    assert ranks[0] == {}
    opened = files.open_storage("rungs")
    for amount, found in zip((8, 15, 30), ranks[1:], strict=True):
        rewards = {}
        for p in points():
            rows = store.rows(opened, store.read(opened, p.trainer, p.id))
            known = [
                reward
                for step, reward in zip(rows["env_steps"], rows["reward"], strict=True)
                if step <= amount
            ]
            rewards.setdefault(p.values["rate"], []).append(known[-1])
        means = {rate: sum(both) / 2 for rate, both in rewards.items()}
        order = sorted(means, key=means.get, reverse=True)
        assert found == {p.id: order.index(p.values["rate"]) for p in points()}


def test_the_records_are_those_of_a_plain_launch(toy_here, capsys):
    """Each bit of the states, each row, and the choice as it is printed."""
    chosen = {}
    for storage, words in {"plain": (), "rungs": ("--promising-first",)}.items():
        assert command("launch", *words, "--storage", storage) == 0
        capsys.readouterr()
        assert __main__.main(["best", "mine.py", "--storage", storage]) == 0
        chosen[storage] = capsys.readouterr().out
    assert chosen["rungs"] == chosen["plain"]
    found, expected = (
        toy_checkout.records(toy_here / storage, "toy_trainer", 60)
        for storage in ("rungs", "plain")
    )
    toy_checkout.assert_undisturbed(found, expected)


def test_a_stop_ends_it_at_its_rung(toy_here, monkeypatch, capsys):
    """The rungs after it are not begun, and the same command goes on."""
    train = trials.run

    def stopped(*positional, **keywords):
        train(*positional, **keywords)
        return trials.Outcome(is_stopped=True, lost=())

    with monkeypatch.context() as patch:
        patch.setattr(trials, "run", stopped)
        assert command("launch", "--promising-first", "--storage", "rungs") == 1
    assert set(steps("rungs").values()) == {10}
    assert "Stopped; the same command goes on from here." in capsys.readouterr().out
    assert command("launch", "--promising-first", "--storage", "rungs") == 0
    assert set(steps("rungs").values()) == {60}


def test_what_fails_is_tried_again_once_and_not_at_each_rung(toy_here, toy, capsys):
    """With --retry the first rung that trains it does; without, none does."""
    toy.FAILURES += [RuntimeError("no")] * store.TRIES
    words = ("launch", "--promising-first", "--storage", "rungs")
    assert command(*words) == 1
    assert not toy.FAILURES
    opened = files.open_storage("rungs")
    stop = {"env_steps": 60}
    statuses = [
        store.status(store.read(opened, p.trainer, p.id), stop) for p in points()
    ]
    assert sorted(statuses) == ["done", "done", "done", "failed"]
    assert command(*words) == 1
    toy.FAILURES += [RuntimeError("no")] * 4 * store.TRIES
    assert command(*words, "--retry") == 1
    assert len(toy.FAILURES) == 3 * store.TRIES
    toy.FAILURES.clear()
    assert command(*words, "--retry") == 0
    assert set(steps("rungs").values()) == {60}


def test_rungs_are_planned_in_a_dry_run_as_elsewhere(launched, capsys):
    """Nothing is run, and the plan is that of the whole."""
    words = ("--promising-first", "--dry-run", "--storage", "rungs")
    assert command("launch", *words) == 0
    output = capsys.readouterr().out
    assert "4 points: 4 missing; 4 to run" in output
    assert "env_steps=60" in output
    assert not launched
