"""What a launch runs: the points of sweeps, minus what their records already hold."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from bmg_sweeps.launching import revision
from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import choices
from bmg_sweeps.sweep.point import Point


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is to be run, how far, and where the other points stand."""

    stops: Mapping[str, Mapping[str, float]]  # Stop rules by point id.
    points: tuple[Point, ...]  # The points of all sweeps, each once.
    statuses: Mapping[str, str]  # By point id.
    to_run: tuple[Point, ...]  # Ordered by structure.
    records: Mapping[str, store.Record]  # By point id, as they were read.
    codes: Mapping[str, str]  # Fingerprints of the code that asked, by trainer.

    @property
    def num_partial(self) -> int:
        """How many of the missing points go on from a checkpoint."""
        missing = [i for i, status in self.statuses.items() if status == "missing"]
        return sum(bool(self.records[i].progress) for i in missing)

    @property
    def unknown(self) -> list[Point]:
        """The points of which there is no record."""
        return [p for p in self.points if self.records[p.id].manifest.attempt == 0]

    @property
    def num_by_other_code(self) -> int:
        """How many points were trained, in part or whole, by other code than asks."""
        codes = [
            {*record.codes, self.codes[record.trainer]} - {None}
            for record in self.records.values()
            if record.progress and record.codes
        ]
        return sum(len(several) > 1 for several in codes)

    def counts(self) -> dict[str, int]:
        """Counts the points by status."""
        counts: dict[str, int] = {}
        for status in self.statuses.values():
            counts[status] = counts.get(status, 0) + 1
        return counts


def plan(
    storage: files.Storage,
    chosen: Sequence[choices.Chosen],
    retry: bool = False,
    verify: bool = False,
) -> Plan:
    """Subtracts what is recorded from what is wanted.

    Args:
        storage: where the records are.
        chosen: sweeps. They may share points, which train as far as the longest asks.
        retry: whether failed and diverged points are wanted again.
        verify: whether tables are read, too, so that altered records are missing.

    Returns:
        The plan.
    """
    points = {p.id: p for one in chosen for p in one.points}
    stops = choices.stops_of(chosen)
    keys = [(p.trainer, p.id) for p in points.values()]
    records = store.scan(storage, keys, verify)
    codes = revision.fingerprints(p.trainer for p in points.values())
    statuses = {
        i: store.status(records[i], stops[i], codes[p.trainer])
        for i, p in points.items()
    }
    wanted = {"missing"} | ({"failed", "diverged"} if retry else set())
    by_structure: dict[tuple, list[Point]] = {}
    for i, p in points.items():
        if statuses[i] in wanted:
            by_structure.setdefault(p.structure, []).append(p)
    to_run = tuple(itertools.chain.from_iterable(by_structure.values()))
    return Plan(stops, tuple(points.values()), statuses, to_run, records, codes)
