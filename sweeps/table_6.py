"""Table 6: how meta-gradients agree with the last one, and how they vary over tasks.

Claim: with L grows the cosine similarity of consecutive meta-gradients, and those of
BMG vary far less than MAML's: the ratio of norm to variance is ten times larger.
"""

import dataclasses

from bmg_sweeps import paper
from bmg_sweeps.sweep import Claim, Measure, Quantity, Scale, Select, load_sweep

TABLE_5, TABLE_7 = load_sweep("table_5"), load_sweep("table_7")
SEEDS = {"smoke": 2, "lite": 2, "paper": 5}
STOPS = {"smoke": 30, "lite": 1_000, "paper": 150_000}
SHOWN = {
    "update_kind": ("maml", "bmg"),
    "adapted": ("weights",),
    "matching_function": ("policy_kl", None),  # MAML has none.
    "inner_steps": (1, 5),
    "meta_learning_rate": (1e-3,),  # Not stated.
}


def scale(name):
    """Table 7's points that Table 6 has, with as many seeds."""
    points = [
        point | {"seed": seed}
        for point in TABLE_7.scales[name].points
        if point["seed"] == 0
        and all(point.get(field) in values for field, values in SHOWN.items())
        for seed in range(SEEDS[name])
    ]
    return Scale(points, stop={"meta_updates": STOPS[name]})


SWEEP = dataclasses.replace(
    TABLE_5,
    title="Few-shot classification: meta-gradients of MAML and BMG",
    scales={name: scale(name) for name in TABLE_5.scales},
    select=Select(
        metric="validation_accuracy",
        mode="max",
        budgets={"meta_updates": 1},
        test="test_accuracy",
    ),
    measures=(
        Measure(metric="cosine_similarity", label="θ", last=50_000),
        Measure(metric="meta_gradient_variance", label="V", last=50_000),
        Measure(metric="norm_to_variance", label="ρ", last=50_000),
    ),
    claims=(
        Claim(
            text="BMG's meta-gradients have the larger ratio of norm to variance",
            more=Quantity(method="BMG", metric="norm_to_variance", last=50_000),
            less=Quantity(method="MAML", metric="norm_to_variance", last=50_000),
        ),
    ),
    published=paper.FEW_SHOT_META_GRADIENTS,
)
