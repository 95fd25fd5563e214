"""Table 6: how meta-gradients agree with the last one, and how they vary over tasks.

Claim: with L grows the cosine similarity of consecutive meta-gradients, and those of
BMG vary far less than MAML's: the ratio of norm to variance is ten times larger.
"""

import dataclasses

from bmg_sweeps import paths
from bmg_sweeps.grid import Measure, Scale, Select

TABLE_5 = paths.load_sweep("table_5")
INTERVALS = {"smoke": 30, "lite": 500, "paper": 10_000}
STOPS = {"smoke": 30, "lite": 1_500, "paper": 150_000}


def scale(name):
    """Those of Table 5's points with K of 1 and 5, trained for longer."""
    points = [p for p in TABLE_5.scales[name].points if p["inner_steps"] in (1, 5)]
    more = {"evaluation_interval": INTERVALS[name]}
    return Scale([p | more for p in points], stop={"meta_updates": STOPS[name]})


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
    anchors="few_shot_meta_gradients",
)
