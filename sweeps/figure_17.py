"""Figure 17: time and memory by network width, and by horizon in K or in L.

Claims: with K = 1 and L = 1 BMG is about 20 % slower than STACX. A longer horizon in L
costs far less than in K: at 4x, L = 4 is twice as fast as STACX with K = 4. Neither
fits in memory at 4x with K = 8.
"""

import dataclasses

from bmg_sweeps.sweep import (
    Measure,
    Method,
    Scale,
    Select,
    Symbol,
    arms,
    load_sweep,
)

TABLE_9 = load_sweep("table_9")
STACX, BMG = {"update_kind": "stacx"}, {"update_kind": "bmg"}
HORIZONS = (1, 2, 4, 8)
WIDTHS = {(16, 32, 32, 16): "1x", (32, 64, 64, 32): "2x", (64, 128, 128, 64): "4x"}
SHAPE = {
    # MinAtar's network has no channels, and the paper's one has the same features.
    "channels": Symbol("width", WIDTHS | {(): None}),
    "feature_size": Symbol("features", {512: None}),
    "inner_steps": "K",
}


def grid(horizons, of_stacx=None, **axes):
    """STACX with each K, BMG with each K, and BMG with each L."""
    of_stacx = of_stacx or horizons
    return (
        *arms([STACX | {"target_steps": 1}], **axes, inner_steps=of_stacx),
        *arms([BMG | {"target_steps": 1}], **axes, inner_steps=horizons),
        *arms([BMG | {"inner_steps": 1}], **axes, target_steps=horizons[1:]),
    )


def on_minatar(name, frames, points):
    """A scale of MinAtar, whose network has no channels but features."""
    values = TABLE_9.scales[name].values | {"game": "minatar_breakout"}
    return Scale(points, {"frames": frames}, {"frames": 1}, values=values)


SWEEP = dataclasses.replace(
    TABLE_9,
    title="Atari: frames per second and memory",
    scales={
        "smoke": on_minatar("smoke", 48_000, grid((1, 2), of_stacx=(1,), seed=(0,))),
        "lite": on_minatar(
            "lite", 96_000, grid(HORIZONS, feature_size=(64, 128, 256), seed=(0,))
        ),
        "paper": Scale(
            grid(HORIZONS, channels=WIDTHS, seed=(0,)),
            {"frames": 20_000_000},
            values={"game": "pong"},
        ),
    },
    select=Select(metric="score", mode="max", budgets={"frames": 1}),
    methods={
        "STACX": Method(STACX, tuned=SHAPE),
        "BMG": Method(BMG, tuned=SHAPE | {"target_steps": "L"}),
    },
    measures=(
        Measure(metric="frames_per_second", label="frames/s"),
        Measure(metric="peak_memory_gib", label="GiB"),
    ),
    curves=(),
    claims=(),
    tasks=None,
    published=None,
)
