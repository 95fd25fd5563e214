"""Figure 16: a longer target (L) against more updates to differentiate through (K).

Both make their further updates on replay of their own. Claim: L = 4 raises the score;
K = 2 lowers it, of STACX and of BMG. The paper's games are not in its text.

The paper does not say whether replay has an entropy loss. Here it has none, so the
first of two updates of the agent has none with K = 2, and the first three steps of the
target have none with L = 4: K and L change the weight of entropy, too.
"""

from bmg_sweeps.sweep import (
    Claim,
    TaskCurves,
    TaskSummary,
    arms,
    load_sweep,
    with_methods,
)

TABLE_9 = load_sweep("table_9")
DEFAULT = {
    name.removeprefix("BMG "): TABLE_9.methods[name].values | {"inner_steps": 1}
    for name in ("STACX", "BMG KL", "BMG KL&V")
}
AGENTS = {
    **{f"{name}, D": values for name, values in DEFAULT.items()},
    **{f"{name}, K=2": values | {"inner_steps": 2} for name, values in DEFAULT.items()},
    "KL&V, L=4": TABLE_9.methods["BMG KL&V, L=4"].values,
}
GAMES = ("ms_pacman", "assault", "asteroids", "jamesbond", "star_gunner")  # Our choice.
MINATAR = ("minatar_breakout", "minatar_space_invaders")
SMOKE = ("KL&V, D", "KL&V, K=2", "KL&V, L=4")
POINTS = {
    "smoke": arms([AGENTS[n] for n in SMOKE], game=MINATAR[:1], seed=range(2)),
    "lite": arms(AGENTS.values(), game=MINATAR, seed=range(5)),
    "paper": arms(AGENTS.values(), game=GAMES, seed=range(3)),
}

SWEEP = with_methods(
    TABLE_9,
    AGENTS,
    POINTS,
    baseline="KL&V, D",
    title="Atari: L against K",
    curves=(
        TaskSummary(title="Median over games", label="normalized score"),
        TaskCurves(title="Score", metric="score"),
    ),
    claims=(
        *(
            Claim(
                text=f"{name} scores more with K = 1 than with K = 2",
                more=f"{name}, D",
                less=f"{name}, K=2",
            )
            for name in DEFAULT
        ),
        Claim(
            text="KL&V scores more with L = 4 than with L = 1",
            more="KL&V, L=4",
            less="KL&V, D",
        ),
        Claim(
            text="KL&V scores more with L = 4 than with K = 2",
            more="KL&V, L=4",
            less="KL&V, K=2",
        ),
    ),
)
