"""The time between two trials of one process, from the records of a launch.

    python -m bmg_sweeps launch figure_2 --stop env_steps=20_000 --storage runs/gaps
    .venv/bin/python -m benchmarks.trials runs/gaps

A gap runs from a point's last commit to the moment at which the next point of the same
process starts to train: the record, the lease, gin and initialization are in it.
"""

import itertools
import statistics
import sys

from bmg_sweeps.records import files, store


def main(uri: str) -> None:
    """Prints the gaps with and without a compilation in between."""
    storage = files.open_storage(uri)
    processes: dict[int, list] = {}
    for trainer in storage.folders():
        for point_id in storage.folders(trainer):
            provenance = store.read(storage, trainer, point_id).provenance
            if provenance.ended is not None:
                processes.setdefault(provenance.process, []).append(provenance)
    gaps: dict[str, list[float]] = {"same structure": [], "new structure": []}
    for points in processes.values():
        points.sort(key=lambda p: p.began)
        for before, after in itertools.pairwise(points):
            kind = "new structure" if after.compilations else "same structure"
            gaps[kind].append(after.began - before.ended)
    print("| next point | gaps | median, s | largest, s |")
    print("| --- | --- | --- | --- |")
    for kind, seconds in gaps.items():
        if seconds:
            median = statistics.median(seconds)
            print(f"| {kind} | {len(seconds)} | {median:.3f} | {max(seconds):.3f} |")


if __name__ == "__main__":
    main(sys.argv[1])
