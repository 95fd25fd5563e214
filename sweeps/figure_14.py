"""Figure 14: the last step of BMG's target with L = 4, on Ms Pacman.

Claim: online data in the last step ("L=4") is critical: only replay ("R") is worse, and
so is the meta-learned objective in place of the fixed one ("w").
"""

import dataclasses

from bmg_sweeps.sweep import Claim, Method, TaskCurves, arms, load_sweep

TABLE_9 = load_sweep("table_9")
DEFAULT = TABLE_9.methods["BMG KL&V, L=4"].values
AGENTS = {
    "L=4": DEFAULT | {"target_last_step": "on_all"},
    "L=4, R": DEFAULT | {"target_last_step": "on_replay"},
    "L=4, w": DEFAULT | {"target_last_step": "meta_learned"},
}
MINATAR = ("minatar_breakout", "minatar_space_invaders")
POINTS = {
    "smoke": arms(AGENTS.values(), game=MINATAR[:1], seed=range(2)),
    "lite": arms(AGENTS.values(), game=MINATAR, seed=range(5)),
    "paper": arms(AGENTS.values(), game=("ms_pacman",), seed=range(3)),
}

SWEEP = dataclasses.replace(
    TABLE_9,
    title="Atari: the last step of BMG's target",
    scales={
        name: dataclasses.replace(scale, points=POINTS[name])
        for name, scale in TABLE_9.scales.items()
    },
    methods={name: Method(values, tuned={}) for name, values in AGENTS.items()},
    curves=(TaskCurves(title="Score", metric="score"),),
    claims=tuple(
        Claim(text=f"L=4 scores more than {less}", more="L=4", less=less)
        for less in ("L=4, R", "L=4, w")
    ),
    tasks=dataclasses.replace(TABLE_9.tasks, baseline="L=4"),
    published=None,
)
