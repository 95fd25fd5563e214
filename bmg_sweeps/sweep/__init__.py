"""What is wanted: grids of points, how the best is chosen, and what is shown of it.

A sweep file needs one import line: `from bmg_sweeps.sweep import …`.
"""

from bmg_sweeps.sweep.grid import (
    Best,
    Claim,
    Curve,
    Measure,
    Method,
    Quantity,
    Scale,
    Select,
    Sweep,
    Symbol,
    arm,
    product,
    zipped,
)

__all__ = [
    "Best",
    "Claim",
    "Curve",
    "Measure",
    "Method",
    "Quantity",
    "Scale",
    "Select",
    "Sweep",
    "Symbol",
    "arm",
    "product",
    "zipped",
]
