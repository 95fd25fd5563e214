"""Figure 14: the last step of BMG's target with L = 4, on Ms Pacman.

Claim: online data in the last step ("L=4") is critical: only replay ("R") is worse, and
so is the meta-learned objective in place of the fixed one ("w").

The paper does not say whether replay has an entropy loss. Here it has none, so the
last step of "R" has none: it may be worse for that, and not for want of online data.
The first L − 1 steps of all three targets have none, either.
"""

from bmg_sweeps.sweep import Claim, TaskCurves, arms, load_sweep, with_methods

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

SWEEP = with_methods(
    TABLE_9,
    AGENTS,
    POINTS,
    baseline="L=4",
    title="Atari: the last step of BMG's target",
    curves=(TaskCurves(title="Score", metric="score"),),
    claims=tuple(
        Claim(text=f"L=4 scores more than {less}", more="L=4", less=less)
        for less in ("L=4, R", "L=4, w")
    ),
)
