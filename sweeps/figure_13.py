"""Figure 13: where BMG's gain comes from, one change to STACX after the other.

Claim: each change raises the score: RMSProp in the target for plain gradient descent
("RMS, L2" for "SGD, L2", which is STACX), policies matched in place of parameters (KL),
values as well (KL&V), and L = 4. Section 5.2 says that the first is about 45 % of the
gain, the matching function 25 % and L 30 %.
"""

from bmg_sweeps import atari_scores
from bmg_sweeps.sweep import (
    Claim,
    TaskDistribution,
    TaskProfile,
    TaskSummary,
    arms,
    load_sweep,
    with_methods,
)

TABLE_9 = load_sweep("table_9")
STEPS = {
    "SGD, L2 (STACX)": "STACX",
    "RMS, L2": "BMG L2",
    "RMS, KL": "BMG KL",
    "RMS, KL&V": "BMG KL&V",
    "RMS, KL&V, L=4": "BMG KL&V, L=4",
}
AGENTS = {name: TABLE_9.methods[agent].values for name, agent in STEPS.items()}
MINATAR = ("minatar_breakout", "minatar_space_invaders")
POINTS = {
    "smoke": arms([*AGENTS.values()][:2], game=MINATAR[:1], seed=range(2)),
    "lite": arms(AGENTS.values(), game=MINATAR, seed=range(5)),
    "paper": arms(AGENTS.values(), game=tuple(atari_scores.SCORES), seed=range(3)),
}

SWEEP = with_methods(
    TABLE_9,
    AGENTS,
    POINTS,
    baseline="SGD, L2 (STACX)",
    title="Atari: what BMG adds to STACX",
    curves=(
        TaskSummary(title="Median over games", label="normalized score"),
        TaskDistribution(title="All runs", label="normalized score"),
        TaskProfile(title="Performance profile", label="normalized score"),
    ),
    claims=tuple(
        Claim(
            text=f"{more} has the higher median over games than {less}",
            more=more,
            less=less,
            over_tasks="median",
        )
        for less, more in zip(AGENTS, [*AGENTS][1:], strict=False)
    ),
)
