"""Which runs are read where some seeds choose and others are read: `held_out` has why.

A fold looks at its own seeds only. A configuration that diverged on one of them is not
chosen there; one that diverged on the seed that is read counts as `Select.floor`, as
whoever chose it would have got it. A run that was not started, or that failed for a
technical reason, tells nothing about its configuration. That configuration is in no
fold. With tasks beside the seeds, a seed is read on all of them. Where there are tests,
a fold chooses by validation and reads the tests of the runs that it has chosen.
"""

import dataclasses
import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bmg_sweeps.analysis import estimates
from bmg_sweeps.analysis.at_budget import Missing
from bmg_sweeps.records import store
from bmg_sweeps.sweep import grid
from bmg_sweeps.sweep.point import Point

if TYPE_CHECKING:  # A list of sweeps shall not wait for it.
    import numpy as np

# By seed. An empty tuple where no configuration was chosen.
Runs = Mapping[Any, tuple[Point, ...]]


class Candidate(NamedTuple):
    """A configuration that a method may choose at a budget."""

    configuration: Point
    points: tuple[Point, ...]
    values: tuple[float | Missing, ...]  # Of the metric that decides.


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeldOut:
    """What a method's choice has at a budget, on seeds that did not choose."""

    method: str
    budget: float
    num_configurations: int  # That were chosen among.
    by_all_but_one: Runs  # Runs that are read for each seed: all others chose them.
    by_halves: Runs  # The other half chose them. None below four seeds.
    estimate: estimates.Estimate | None = None  # Of what all but one chose.
    reason: str = ""  # Why there is none.
    # Configurations that cannot be told apart from the best, and whether that is rough.
    alike: tuple[Point, ...] = ()
    is_rough: bool = False
    test_rows: Mapping[str, store.Rows] = dataclasses.field(
        default_factory=dict, repr=False
    )  # By point id.

    @functools.cached_property
    def alike_ids(self) -> frozenset[str]:
        """The ids of the configurations that are like the best."""
        return frozenset(p.id for p in self.alike)

    @property
    def has_choice(self) -> bool:
        """Whether there was more than one configuration."""
        return self.num_configurations > 1

    @property
    def decisive(self) -> Runs:
        """The runs whose mean has a variance that is known: see `held_out.mean`."""
        return self.by_halves or self.by_all_but_one

    @property
    def points(self) -> tuple[Point, ...]:
        """All runs that are read, each once."""
        both = (*self.by_all_but_one.values(), *self.by_halves.values())
        return tuple({p.id: p for points in both for p in points}.values())


def make(
    rule: grid.Select, method: str, budget: float, candidates: Sequence[Candidate]
) -> HeldOut | None:
    """Chooses in folds, and reads the validation where there are no tests.

    Args:
        rule: how the best is chosen.
        method: whose configurations these are.
        budget: at which.
        candidates: those of which each run has a number, or diverged.

    Returns:
        The choices; None where there are no two seeds, or no candidates.
    """
    # Ties go to the smaller id, as in `selection`.
    ordered = sorted(candidates, key=lambda one: one.configuration.id)
    seeds = seeds_of(rule, ordered)
    if len(seeds) < 2:
        return None
    from bmg_sweeps.analysis import held_out

    scores = matrix(rule, ordered, seeds)
    halves = len(seeds) >= held_out.MIN_HALVES
    found = HeldOut(
        method=method,
        budget=budget,
        num_configurations=len(ordered),
        by_all_but_one=runs_of(rule, ordered, seeds, held_out.by_all_but_one(scores)),
        by_halves=runs_of(rule, ordered, seeds, held_out.by_halves(scores))
        if halves
        else {},
    )
    found = _with_alike(found, ordered, scores)
    if rule.test:
        return found
    values = values_of(ordered)
    return with_estimate(found, rule, lambda p: values[p.id])


def with_estimate(
    found: HeldOut, rule: grid.Select, value_of: Callable[[Point], float | Missing]
) -> HeldOut:
    """Averages what the choices of all seeds but one have on that seed."""
    by_seed = read(found.by_all_but_one, value_of, rule.floor)
    if isinstance(by_seed, str):
        return dataclasses.replace(found, reason=by_seed)
    return dataclasses.replace(found, estimate=estimates.estimate(by_seed.values()))


def read(
    runs: Runs,
    value_of: Callable[[Point], float | Missing],
    floor: float | None,
    combine: Callable[[Sequence[float]], float] = statistics.fmean,
    noun: str = "folds",
) -> dict[Any, float] | str:
    """Reads the runs of each seed.

    Args:
        runs: of each seed.
        value_of: reads a run.
        floor: what counts where a run has diverged.
        combine: makes one number of those of a seed's tasks.
        noun: what the seeds are where they diverge.

    Returns:
        A number by seed; or why there is none.
    """
    found, diverged = {}, 0
    for seed, points in runs.items():
        values = [value_of(p) for p in points]
        missing = [v for v in values if isinstance(v, Missing)]
        if other := next((one for one in missing if not one.is_divergence), None):
            return other.reason
        diverged += not points or bool(missing and floor is None)
        numbers = [floor if isinstance(v, Missing) else v for v in values]
        known = [number for number in numbers if number is not None]
        if known:
            found[seed] = combine(known)
    return f"diverged in {diverged} of {len(runs)} {noun}" if diverged else found


def seeds_of(rule: grid.Select, candidates: Sequence[Candidate]) -> list[Any]:
    """Returns the seeds that candidates have, in order."""
    return sorted({p.values[rule.over[0]] for one in candidates for p in one.points})


def values_of(candidates: Sequence[Candidate]) -> dict[str, float | Missing]:
    """Returns what each run of candidates has, by the run's id."""
    return {
        p.id: value
        for one in candidates
        for p, value in zip(one.points, one.values, strict=True)
    }


def matrix(
    rule: grid.Select,
    candidates: Sequence[Candidate],
    seeds: Sequence[Any],
    diverged: float = math.nan,
) -> "np.ndarray":
    """Arranges means of seeds, more being better.

    Args:
        rule: says what is averaged over, and whether more is better.
        candidates: N configurations.
        seeds: of each of them.
        diverged: what a run counts that diverged.

    Returns:
        [N, S].
    """
    import numpy as np

    sign = 1 if rule.mode == "max" else -1
    rows = []
    for one in candidates:
        values = [diverged if isinstance(v, Missing) else v for v in one.values]
        by_seed = estimates.by_seed(rule.over, one.points, values)
        rows.append([sign * by_seed[seed] for seed in seeds])
    return np.array(rows)


def runs_of(
    rule: grid.Select,
    candidates: Sequence[Candidate],
    seeds: Sequence[Any],
    places: "np.ndarray",
) -> Runs:
    """Finds the runs that are read for each seed.

    Args:
        rule: says what the seed is.
        candidates: that were chosen among.
        seeds: in order.
        places: for each seed that of what was chosen, as `held_out` has them.

    Returns:
        The chosen configuration's runs of each seed; none where the place is -1.
    """
    found = {}
    for seed, place in zip(seeds, places.tolist(), strict=True):
        points = candidates[place].points if place >= 0 else ()
        found[seed] = tuple(p for p in points if p.values[rule.over[0]] == seed)
    return found


def _with_alike(
    found: HeldOut, candidates: Sequence[Candidate], scores: "np.ndarray"
) -> HeldOut:
    """Finds which of the complete configurations the best cannot be told apart from."""
    import numpy as np

    from bmg_sweeps.analysis import held_out

    complete = np.flatnonzero(~np.isnan(scores).any(axis=1))
    if len(complete) < 2:
        return found
    alike = held_out.alike(scores[complete])
    if alike is None:
        return found
    places = complete[list(alike.places)].tolist()
    points = tuple(candidates[place].configuration for place in places)
    return dataclasses.replace(found, alike=points, is_rough=alike.is_rough)
