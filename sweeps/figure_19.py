"""Figure 19: learning curves of every agent on every Atari game."""

import dataclasses

from bmg_sweeps.sweep import TaskCurves, load_sweep

SWEEP = dataclasses.replace(
    load_sweep("table_9"),
    title="Atari: learning curves by game",
    curves=(TaskCurves(title="Score", metric="score"),),
    claims=(),
)
