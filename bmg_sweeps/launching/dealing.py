"""Which points each trial of a launch gets.

Points of a pack train together, in one trial. A point that trains alone has a trial of
its own, unless the last trial has shown that such points are short. Then a trial gets a
batch of them, and runs one after the other: Tune takes some 20 ms for each trial. As
joblib does, a batch is made as large as the seconds of the one before allow.
"""

import collections
import itertools
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from bmg_sweeps.launching import rungs
from bmg_sweeps.sweep.point import Point

MAX_PACK = 64  # Points that a trial is given where the memory decides the width.
MAX_BATCH = 64  # Points that a trial is given to run one after the other.
BATCH_SECONDS = 2.0  # That these may take: a hundred times what Tune takes.


def tasks(
    points: Sequence[Point],
    stops: Mapping[str, Mapping[str, float]],
    widths: Mapping[str, int | None],
    *,
    slots: int,
    pack: int | None,
    ranks: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Divides points among trials, by structure and pack width, and orders these.

    Args:
        points: what is to be trained.
        stops: their stop rules, by id.
        widths: of the packs that they have trained in, by id; None where they have not.
        slots: trials that run at once.
        pack: width of new packs; None is for the trial to say.
        ranks: by point id, who goes first. Unless there are any, points of one
            structure go one after the other.

    Returns:
        For each trial its points' trainer and stop rules, and the width of its packs.
    """
    groups: dict[tuple, list[Point]] = {}
    for p in sorted(points, key=lambda p: rungs.best_rank([p.id], ranks)):
        groups.setdefault((p.structure, widths[p.id]), []).append(p)
    made = []
    for (_, width), alike in groups.items():
        asked = width or pack
        size = asked or min(MAX_PACK, -(-len(alike) // slots))
        for i in range(0, len(alike), size):
            part = {p.id: dict(stops[p.id]) for p in alike[i : i + size]}
            made.append({"trainer": alike[0].trainer, "stops": part, "pack": asked})
    if ranks:
        return sorted(made, key=lambda task: rungs.best_rank(task["stops"], ranks))
    return _in_lanes(made, slots)


def _in_lanes(made: Sequence[dict], slots: int) -> list[dict]:
    """Orders trials so that actors, which each take the next one, see few structures.

    The trials come ordered by structure. Each slot gets a part of them, and the parts
    are dealt out in turn, so that the actors compile different structures at the same
    time.
    """
    length = -(-len(made) // slots)
    return [task for i in range(length) for task in made[i::length]]


def is_batch(task: Mapping[str, Any]) -> bool:
    """Whether the points of a trial run one after the other."""
    return task["pack"] == 1 and len(task["stops"]) > 1


class Dealer:
    """Deals tasks out to trials, those of short points several at a time."""

    def __init__(
        self,
        tasks: Sequence[Mapping[str, Any]],
        kind: Callable[[Mapping[str, Any]], Hashable | None],
        slots: int,
    ) -> None:
        """Takes the tasks.

        Args:
            tasks: of one or more points each, in their order.
            kind: says of a task what kind it is. Tasks of one kind have one point each
                and take about as long; None is for a task that is not to be joined.
            slots: trials that run at once.
        """
        self._waiting = dict(enumerate(tasks))
        self._kinds = {i: kind(task) for i, task in self._waiting.items()}
        self._slots = slots
        self._alike: dict[Hashable, dict[int, None]] = collections.defaultdict(dict)
        for i, kind_of_task in self._kinds.items():
            self._alike[kind_of_task][i] = None
        self._seconds: dict[Hashable, float] = {}  # Of a point, by the last trial.
        self._dealt: dict[str, Hashable] = {}  # Kinds, by trial.

    def deal(self, trial: str) -> dict[str, Any] | None:
        """Returns the next task, joined with others of its kind; None after the last.

        At least half of what is left stays for later trials, so that all slots end at
        about the same time.

        Args:
            trial: who gets it.
        """
        if not self._waiting:
            return None
        first = next(iter(self._waiting))
        kind = self._kinds[first]
        alike, number = self._alike[kind], 1
        if kind in self._seconds:
            seconds = max(self._seconds[kind], BATCH_SECONDS / MAX_BATCH)
            share = len(alike) // (2 * self._slots)
            number = max(1, min(int(BATCH_SECONDS / seconds), share))
        taken = []
        for i in list(itertools.islice(alike, number)):
            del alike[i]
            taken.append(self._waiting.pop(i))
        if kind is not None:
            self._dealt[trial] = kind
        stops = {i: stop for task in taken for i, stop in task["stops"].items()}
        return {**taken[0], "stops": stops}

    def ended(self, trial: str, seconds: float | None) -> None:
        """Notes how long a trial has taken for a point.

        Args:
            trial: who had it.
            seconds: of the mean of its points; None where not all are done.
        """
        kind = self._dealt.pop(trial, None)
        if kind is not None and seconds is not None:
            self._seconds[kind] = seconds


def searcher(dealer: Dealer) -> Any:
    """Makes of a dealer what Tune asks for trials.

    Args:
        dealer: of the tasks; each is given to a trial as a text, under "task". What a
            trial returns under "seconds" is how long a point took.

    Returns:
        A `ray.tune.search.Searcher`.
    """
    from ray.tune import search

    class Deals(search.Searcher):
        def set_search_properties(self, *_: Any, **__: Any) -> bool:
            return True  # There is no space to be searched.

        def suggest(self, trial_id: str) -> Any:
            task = dealer.deal(trial_id)
            return self.FINISHED if task is None else {"task": json.dumps(task)}

        def on_trial_complete(
            self, trial_id: str, result: dict | None = None, error: bool = False
        ) -> None:
            if result and not error:
                dealer.ended(trial_id, result["seconds"])

    return Deals()
