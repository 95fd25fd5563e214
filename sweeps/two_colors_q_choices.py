"""Two-colors with Q(λ): what the choices matter that the paper leaves to its reader.

BMG with each matching function and three L; and one thing changed: the rates α of the
agent and β of the meta-learner, and the values of the authors' later study of the same
setting, Luketina et al. (2022). It tests no claim of the paper.
"""

from bmg_sweeps.sweep import Curve, Method, Scale, Select, Sweep, arms, load_sweep

FIGURE_3 = load_sweep("figure_3")
BMG = FIGURE_3.methods["BMG"].values | {
    "learning_rate": 3e-5,
    "meta_learning_rate": 1e-4,
}
MATCHING = {"policy": "policy_kl", "value": "value"}
CHOICES = {
    ", α=1e-4": {"learning_rate": 1e-4},
    ", α=1e-5": {"learning_rate": 1e-5},
    ", β=1e-3": {"meta_learning_rate": 1e-3},
    ", λ=0.9 and its net": FIGURE_3.methods["BMG, λ=0.9"].values,
}


def bmg(matching, target_steps):
    """One of the matching functions, with its L."""
    return BMG | {
        "matching_function": MATCHING[matching],
        "target_steps": target_steps,
    }


TARGETS = {f"{name} L={n}": bmg(name, n) for name in MATCHING for n in (16, 32, 128)}
CHANGED = {
    name + choice: TARGETS[name] | changed
    for name in ("policy L=128", "value L=16")
    for choice, changed in CHOICES.items()
}
METHODS = TARGETS | CHANGED


def panel(title, names):
    """Total reward of some of the methods."""
    return Curve(
        title=title,
        metric="total_reward",
        label="total reward",
        methods=tuple(names),
    )


SWEEP = Sweep(
    title="Two-colors with Q(λ): choices that the paper leaves open",
    trainer="two_colors_q_lambda",
    scales={
        "lite": Scale(
            arms(METHODS.values(), seed=range(2)),
            stop={"env_steps": 2_000_000},
        )
    },
    select=Select(
        metric="total_reward", mode="max", budgets={"env_steps": 2}, is_sum=True
    ),
    methods={name: Method(values, tuned={}) for name, values in METHODS.items()},
    curves=(
        panel("Matching functions and L", TARGETS),
        panel("Policy matching", [n for n in METHODS if n.startswith("policy L=128")]),
        panel("'Value' matching", [n for n in METHODS if n.startswith("value L=16")]),
    ),
)
