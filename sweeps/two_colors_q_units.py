"""Two-colors with Q(λ): dead units, and what keeps them alive.

With the paper's values most units of q's second layer never fire after some hundred
thousand steps. BMG by policy and by 'value' matching as it is shipped, and with one
thing changed: Adam's ε inside its root, from the paper's 1e-4 down, with 1e-8 outside
(the paper does not say where it stands); leaky ReLUs, where the paper has plain ones,
alone and with a small ε inside; and the input t of the exploration rate, normalized
(the network of ε pre-trained, too) or none, as in Luketina et al. (2022). It tests no
claim of the paper.
"""

from bmg_sweeps.sweep import Curve, Method, Scale, Select, Sweep, arms, load_sweep

INSIDE = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
CHOICES = {
    "": {},
    **{f", ε̄={root:.0e}": {"adam_eps": 1e-8, "adam_eps_root": root} for root in INSIDE},
    ", leaky": {"hidden_leak": 0.01},
    ", leaky, ε̄=1e-06": {
        "hidden_leak": 0.01,
        "adam_eps": 1e-8,
        "adam_eps_root": 1e-6,
    },
    ", normalized t": {"meta_input": "normalized_recent_rewards"},
    ", normalized t, pre-trained": {
        "meta_input": "normalized_recent_rewards",
        "meta_pretraining_steps": 1_000,
    },
    ", no t": {"meta_input": "no_rewards"},
}
PLAIN = {
    "adam_eps": 1e-4,
    "adam_eps_root": 0.0,
    "hidden_leak": 0.0,
    "meta_input": "recent_rewards",
    "meta_pretraining_steps": 0,
}
TARGETS = load_sweep("two_colors_q_choices").methods
SHOWN = ("policy L=16", "policy L=128", "value L=16")
METHODS = {
    target + choice: TARGETS[target].values | PLAIN | changed
    for target in SHOWN
    for choice, changed in CHOICES.items()
}


def panels(metric, label):
    """A column of all variants of each target."""
    return tuple(
        Curve(
            title=f"{target}: {label}",
            metric=metric,
            label=label,
            methods=tuple(target + choice for choice in CHOICES),
        )
        for target in SHOWN
    )


SWEEP = Sweep(
    title="Two-colors with Q(λ): dead units, and what keeps them alive",
    trainer="two_colors_q_lambda",
    scales={
        "lite": Scale(
            arms(METHODS.values(), seed=range(2)), stop={"env_steps": 1_000_000}
        )
    },
    select=Select(
        metric="total_reward", mode="max", budgets={"env_steps": 2}, is_sum=True
    ),
    methods={name: Method(values, tuned={}) for name, values in METHODS.items()},
    curves=(
        *panels("total_reward", "total reward"),
        *panels("dead_units", "share of dead units"),
    ),
)
