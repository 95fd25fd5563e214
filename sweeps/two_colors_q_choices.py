"""Two-colors with Q(λ): what the choices matter that the paper leaves to its reader.

BMG with policy matching and L = 128, and with one thing changed: L, the rates α of the
agent and β of the meta-learner, and the values of the authors' later study of the same
setting, Luketina et al. (2022).
"""

from bmg_sweeps import paths
from bmg_sweeps.grid import Curve, Method, Scale, Select, Sweep, arm

FIGURE_3 = paths.load_sweep("figure_3")
BMG = FIGURE_3.methods["BMG"].values | {
    "target_steps": 128,
    "learning_rate": 3e-5,
    "meta_learning_rate": 1e-4,
}
CHOICES = {
    "": {},
    ", L=16": {"target_steps": 16},
    ", L=32": {"target_steps": 32},
    ", α=1e-4": {"learning_rate": 1e-4},
    ", α=1e-5": {"learning_rate": 1e-5},
    ", β=1e-3": {"meta_learning_rate": 1e-3},
    ", λ=0.9 and its net": FIGURE_3.methods["BMG, λ=0.9"].values,
}
METHODS = {f"BMG{choice}": BMG | changed for choice, changed in CHOICES.items()}

SWEEP = Sweep(
    title="Two-colors with Q(λ): choices that the paper leaves open",
    trainer="two_colors_q_lambda",
    scales={
        "lite": Scale(
            tuple(p for values in METHODS.values() for p in arm(values, seed=range(3))),
            stop={"env_steps": 3_000_000},
        )
    },
    select=Select(metric="total_reward", mode="max", budgets={"env_steps": 3}),
    methods={name: Method(values, tuned={}) for name, values in METHODS.items()},
    curves=(
        Curve(title="Total reward", metric="total_reward", label="total reward"),
        Curve(
            title="Exploration over the last four reward cycles",
            metric="epsilon",
            label="ε",
            last=400_000,
        ),
    ),
)
