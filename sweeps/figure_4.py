"""Figure 4: human-normalized scores of BMG and STACX over the games of Atari.

Claim: BMG with policy matching and L = 1 has a median score of 500 %, with value
matching of 520 % and with L = 4 of 610 %, where STACX has 350 %; and it is ahead of
STACX on almost all games.
"""

import dataclasses

from bmg_sweeps.sweep import TaskDifferences, load_sweep

TABLE_9 = load_sweep("table_9")

SWEEP = dataclasses.replace(
    TABLE_9,
    title="Atari: normalized scores over the games",
    curves=(
        TaskDifferences(
            title="BMG KL&V less STACX, by game",
            label="normalized score",
            more="BMG KL&V",
            less="STACX",
        ),
        TABLE_9.curves[0],  # The median over games.
    ),
)
