"""Figure 18: what the agent goes on from after a meta-update of BMG with L = 1.

"NS" makes its update again under the new meta-parameters; "DB" goes on from the target.
Claim: NS is on par with the default, and DB fails completely. The paper's games are not
in its text.
"""

from bmg_sweeps.sweep import (
    Claim,
    TaskCurves,
    TaskProfile,
    TaskSummary,
    arms,
    load_sweep,
    with_methods,
)

TABLE_9 = load_sweep("table_9")
DEFAULT = TABLE_9.methods["BMG KL&V"].values
AGENTS = {
    "default": DEFAULT | {"next_params": "learned"},
    "NS": DEFAULT | {"next_params": "recomputed"},
    "DB": DEFAULT | {"next_params": "bootstrapped"},
}
GAMES = ("ms_pacman", "assault", "asteroids", "jamesbond", "star_gunner")  # Our choice.
MINATAR = ("minatar_breakout", "minatar_space_invaders")
POINTS = {
    "smoke": arms(AGENTS.values(), game=MINATAR[:1], seed=range(2)),
    "lite": arms(AGENTS.values(), game=MINATAR, seed=range(5)),
    "paper": arms(AGENTS.values(), game=GAMES, seed=range(3)),
}

SWEEP = with_methods(
    TABLE_9,
    AGENTS,
    POINTS,
    baseline="default",
    title="Atari: what the agent goes on from",
    curves=(
        TaskSummary(title="Median over games", label="normalized score"),
        TaskProfile(title="Performance profile", label="normalized score"),
        TaskCurves(title="Score", metric="score"),
    ),
    claims=(
        Claim(text="NS is on par", more="NS", less="default", are_equal=True),
        Claim(text="DB scores less", more="default", less="DB"),
    ),
)
