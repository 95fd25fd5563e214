"""A toy sweep of two methods on three tasks, whose numbers are worked out by hand.

Normalized scores at the end, of seeds 0 and 1; scores are ten times as large, and all
are half as large at half the training.

    task    A: seeds   mean      B: seeds   mean
    x          1, 3     2           2, 2     2
    y          5, 7     6           1, 1     1
    z          0, 1     0.5         2, 2     2
"""

from bmg_sweeps.analysis import results
from bmg_sweeps.records import attempts, store
from bmg_sweeps.sweep import choices, display, grid, task_display
from bmg_sweeps.sweep.point import Point

STOP = {"env_steps": 100}
NORMALIZED = {
    ("a", 0): {"x": 1, "y": 5, "z": 0},
    ("a", 1): {"x": 3, "y": 7, "z": 1},
    ("b", 0): {"x": 2, "y": 1, "z": 2},
    ("b", 1): {"x": 2, "y": 1, "z": 2},
}
TASKS = task_display.Tasks(
    field="task", score="score", normalized="normalized", baseline="B"
)
MEDIANS = task_display.TaskSummary(title="Median", label="of a human")
DIFFERENCES = task_display.TaskDifferences(
    title="A and B", label="of a human", more="A", less="B"
)
SCORES = task_display.TaskDistribution(title="All", label="of a human")
PROFILE = task_display.TaskProfile(title="Above", label="of a human")
CURVES = task_display.TaskCurves(title="Each", metric="score")
SWEEP = grid.Sweep(
    title="Toy",
    trainer="toy",
    scales={},
    select=grid.Select(
        metric="normalized", mode="max", budgets={"env_steps": 2}, over=("seed", "task")
    ),
    methods={
        "A": grid.Method({"kind": "a"}, tuned={}),
        "B": grid.Method({"kind": "b"}, tuned={}),
    },
    tasks=TASKS,
    curves=(MEDIANS, DIFFERENCES, SCORES, PROFILE, CURVES),
    claims=(
        display.Claim(text="Means", more="A", less="B", over_tasks="mean"),
        display.Claim(text="Medians", more="A", less="B", over_tasks="median"),
        display.Claim(text="Means of seeds", more="A", less="B"),
    ),
    published=display.Published(
        tasks=(
            display.PublishedTasks(
                method="A",
                axis="env_steps",
                budget=100,
                scores={"x": 30, "y": 40, "z": 90},
                normalized={"x": 3, "y": 4, "z": 9},
                source="Somebody, Table 1",
            ),
        ),
        summaries=(
            display.PublishedSummary(
                method="A", axis="env_steps", budget=100, median=5.0, source="Text"
            ),
            display.PublishedSummary(
                method="C",
                axis="env_steps",
                budget=100,
                median=8.0,
                interquartile_mean=9.5,
                source="Others",
            ),
        ),
    ),
)


def toy_point(kind, seed, task):
    """A point of the sweep."""
    return Point("toy", {"kind": kind, "seed": seed, "task": task})


def points(without=()):
    """All points of the sweep, but for some."""
    keys = [(*key, task) for key in NORMALIZED for task in "xyz"]
    return tuple(toy_point(*key) for key in keys if key not in without)


def record(storage, without=(), seeds=(0, 1)):
    """Commits points that have trained to the end; returns the storage."""
    for (kind, seed), by_task in NORMALIZED.items():
        for task, number in by_task.items():
            if seed in seeds and (kind, seed, task) not in without:
                _commit(storage, toy_point(kind, seed, task), number)
    return storage


def _commit(storage, p, number):
    axes = {"env_steps": [50, 100], "training_seconds": [1.0, 2.0]}
    rows = {"normalized": [number / 2, number], "score": [5 * number, 10 * number]}
    attempts.begin(storage, store.read(storage, p.trainer, p.id)).commit(
        progress=STOP,
        rows=axes | rows,
        provenance={"revision": "abc", "device": "cpu", "threads": 1},
        release=True,
    )


def load(storage, sweep=SWEEP, scale="mine", of=None):
    """Reads the records of the sweep's points, or of some."""
    choice = choices.Choice(scale=scale)
    chosen = choices.Chosen("toy", sweep, points() if of is None else of, STOP, choice)
    return results.load(storage, chosen)
