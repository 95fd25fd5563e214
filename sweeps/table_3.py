"""Table 3: how consecutive meta-gradients agree, and how they scatter over batches.

Claim: with the divergence matched, the cosine similarity of consecutive meta-gradients
is two orders of magnitude above that of STACX; the ratio of their norm to their
variance is alike. The paper does not define the variance's scale; see `trainers.atari`.
A game is part of a method here, as in the paper's table: cosines of two games are not
compared, and each claim is of one game. Scales other than the paper's are shorter than
the 100 M frames whose rows are averaged.
"""

import dataclasses

from bmg_sweeps import paper
from bmg_sweeps.sweep import Claim, Measure, Method, Quantity, Select, arms, load_sweep

TABLE_9 = load_sweep("table_9")
AGENTS = {
    name: TABLE_9.methods[name].values
    for name in ("BMG KL", "BMG KL&V", "BMG L2", "STACX")
}
GAMES = ("kangaroo", "ms_pacman", "star_gunner")
MINATAR = ("minatar_breakout", "minatar_space_invaders")
POINTS = {
    "smoke": arms(AGENTS.values(), game=MINATAR[:1], seed=range(2)),
    "lite": arms(AGENTS.values(), game=MINATAR, seed=range(5)),
    "paper": arms(AGENTS.values(), game=GAMES, seed=range(3)),
}
# Of 200 M frames the paper has those from 50 M to 150 M.
END = {"smoke": 72_000, "lite": 750_000, "paper": 150_000_000}


def scale(name):
    """As Table 9's, to three quarters of it."""
    there = TABLE_9.scales[name]
    end = {"frames": END[name]}
    budgets = {"frames": (END[name],)}
    return dataclasses.replace(there, points=POINTS[name], stop=end, budgets=budgets)


def similarity(agent, game):
    """How consecutive meta-gradients of an agent agree on a game."""
    method = f"{agent}, {game}"
    return Quantity(method=method, metric="cosine_similarity", last=100_000_000)


SWEEP = dataclasses.replace(
    TABLE_9,
    title="Atari: meta-gradients of BMG and STACX",
    scales={name: scale(name) for name in TABLE_9.scales},
    select=Select(metric="score", mode="max", budgets={"frames": 1}),
    methods={
        f"{name}, {game}": Method(values | {"game": game}, tuned={})
        for name, values in AGENTS.items()
        for game in (*MINATAR, *GAMES)
    },
    measures=tuple(
        Measure(metric=metric, label=label, last=100_000_000)
        for metric, label in (
            ("cosine_similarity", "cosine similarity"),
            ("meta_gradient_variance", "variance"),
            ("norm_to_variance", "norm/variance"),
        )
    ),
    curves=(),
    claims=tuple(
        Claim(
            text=f"On {game}, consecutive meta-gradients of {name} agree more than "
            f"those of STACX",
            more=similarity(name, game),
            less=similarity("STACX", game),
        )
        for name in ("BMG KL", "BMG KL&V")
        for game in (*MINATAR, *GAMES)
    ),
    tasks=None,
    published=paper.ATARI_META_GRADIENTS,
)
