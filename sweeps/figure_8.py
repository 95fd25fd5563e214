"""Figure 8: total reward of every actor-critic in two-colors; Figure 2's points, apart.

Claim: MG collapses for any K unless its meta-objective has entropy in it. BMG does not
where its horizon K + L − 1 is long enough, and at one horizon a larger K is better.
"""

import dataclasses

from bmg_sweeps.sweep import Claim, Curve, Method, Scale, arm, load_sweep

FIGURE_2 = load_sweep("figure_2")
FIXED, MG, MG_ENTROPY, BMG = (method.values for method in FIGURE_2.methods.values())
RATE = {"meta_learning_rate": "β"}
WEIGHTS, K = (0.0, 0.1, 0.2, 0.4, 0.8), (1, 3, 7, 8, 15)
K_AND_L = [(k, n) for k in (1, 3, 7) for n in (1, 2, 3, 7, 9, 15)]

PANELS = {
    "Fixed entropy-regularization": {
        f"fixed ε={w:g}": Method(FIXED | {"entropy_weight": w}, {}) for w in WEIGHTS
    },
    "Meta-gradients": {f"MG K={k}": Method(MG | {"inner_steps": k}, RATE) for k in K},
    "Meta-gradients + regularization": {
        f"MG + entropy K={k}": Method(MG_ENTROPY | {"inner_steps": k}, RATE) for k in K
    },
    "Bootstrapped meta-gradients": {
        f"BMG K={k} L={n}": Method(BMG | {"inner_steps": k, "target_steps": n}, RATE)
        for k, n in K_AND_L
    },
}

SMOKE = (
    arm(FIXED, entropy_weight=(0.1, 0.2), seed=range(2))
    + arm(MG, inner_steps=(7,), seed=range(2))
    + arm(MG_ENTROPY, inner_steps=(7,), seed=range(2))
    + arm(BMG, inner_steps=(1,), target_steps=(7,), seed=range(2))
    + arm(BMG, inner_steps=(7,), target_steps=(2,), seed=range(2))
)

SWEEP = dataclasses.replace(
    FIGURE_2,
    scales=FIGURE_2.scales | {"smoke": Scale(SMOKE, stop={"env_steps": 400_000})},
    title="Two-colors: total reward of every actor-critic",
    methods={name: method for of in PANELS.values() for name, method in of.items()},
    curves=tuple(
        Curve(title=title, metric="total_reward", label="total reward", methods=(*of,))
        for title, of in PANELS.items()
    ),
    claims=tuple(
        Claim(text=text, more=more, less=less)
        for text, more, less in (
            *(
                (f"Entropy helps MG K={k}", f"MG + entropy K={k}", f"MG K={k}")
                for k in K
            ),
            ("Longer targets help, at K=1", "BMG K=1 L=7", "BMG K=1 L=1"),
            ("K=3 is better than K=1, at one horizon", "BMG K=3 L=7", "BMG K=1 L=9"),
            ("K=7 is better than K=3, at one horizon", "BMG K=7 L=3", "BMG K=3 L=7"),
            ("K=7 is better than K=1, at one horizon", "BMG K=7 L=9", "BMG K=1 L=15"),
            ("BMG is better than MG", "BMG K=1 L=7", "MG K=8"),
            ("BMG is better than MG with entropy", "BMG K=1 L=7", "MG + entropy K=8"),
        )
    ),
    published=None,
)
