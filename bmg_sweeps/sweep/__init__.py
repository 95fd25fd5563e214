"""What is wanted: grids of points, choices among them, and what is to be shown.

May import `trainer` and what is below; no platform. A sweep file needs one import line,
`from bmg_sweeps.sweep import …`. Begin at `grid`; `choices` resolves a sweep's points
under what the command line says.
"""

from bmg_sweeps.sweep.display import (
    Best,
    Claim,
    Curve,
    Measure,
    Published,
    PublishedBest,
    PublishedMeasure,
    PublishedSummary,
    PublishedTasks,
    Quantity,
    Symbol,
)
from bmg_sweeps.sweep.grid import (
    Method,
    Scale,
    Select,
    Sweep,
    arm,
    arms,
    product,
    with_methods,
    zipped,
)
from bmg_sweeps.sweep.loading import load_sweep
from bmg_sweeps.sweep.task_display import (
    TaskCurves,
    TaskDifferences,
    TaskDistribution,
    TaskProfile,
    Tasks,
    TaskSummary,
)

__all__ = [
    "Best",
    "Claim",
    "Curve",
    "Measure",
    "Method",
    "Published",
    "PublishedBest",
    "PublishedMeasure",
    "PublishedSummary",
    "PublishedTasks",
    "Quantity",
    "Scale",
    "Select",
    "Sweep",
    "Symbol",
    "TaskCurves",
    "TaskDifferences",
    "TaskDistribution",
    "TaskProfile",
    "TaskSummary",
    "Tasks",
    "arm",
    "arms",
    "load_sweep",
    "product",
    "with_methods",
    "zipped",
]
