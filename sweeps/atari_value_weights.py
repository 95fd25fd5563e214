"""Appendix C: the weight of the values in what BMG matches, tuned on four games.

Claim: of 0.25, 0.5 and 0.75 the first is best.
"""

from bmg_sweeps.sweep import Claim, TaskCurves, arms, load_sweep, with_methods

TABLE_9 = load_sweep("table_9")
WEIGHTS = (0.25, 0.5, 0.75)
AGENTS = {
    f"λ={weight}": TABLE_9.methods["BMG KL&V"].values
    | {"value_matching_weight": weight}
    for weight in WEIGHTS
}
GAMES = ("ms_pacman", "zaxxon", "wizard_of_wor", "seaquest")
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
    baseline="λ=0.25",
    title="Atari: the weight of the values that are matched",
    curves=(TaskCurves(title="Score", metric="score"),),
    claims=tuple(
        Claim(text=f"λ=0.25 scores more than {less}", more="λ=0.25", less=less)
        for less in ("λ=0.5", "λ=0.75")
    ),
)
