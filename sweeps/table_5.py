"""Table 5: meta-training steps per second of MAML and BMG, by K and L.

Claim: a step's time grows with K, which is backpropagated through, more than with L;
so BMG looks K + L steps ahead in less time than MAML needs for as many.

To be measured on an idle device, one point at a time.
"""

from bmg_sweeps import paper
from bmg_sweeps.sweep import Measure, Method, Scale, Select, Sweep, Symbol, arm

DATA = Symbol("data", {"glyphs": "glyphs, a stand-in"})
SMOKE = {"data_set": "glyphs", "num_evaluation_tasks": 20, "evaluation_interval": 30,
         "record_interval": 10}  # fmt: skip
LITE = {"data_set": "omniglot", "num_ways": 20, "num_shots": 1, "num_queries": 1,
        "num_evaluation_queries": 1, "num_evaluation_tasks": 100,
        "evaluation_interval": 50, "record_interval": 50,
        "learning_rate": 0.5, "target_learning_rate": 0.5}  # fmt: skip
PAPER = {"data_set": "mini_imagenet", "evaluation_interval": 500}
MAML = {"update_kind": "maml", "target_steps": 1}
BMG = {"update_kind": "bmg"}


SWEEP = Sweep(
    title="Few-shot classification: meta-training steps per second",
    trainer="few_shot",
    scales={
        "smoke": Scale(
            arm(SMOKE | MAML, inner_steps=(1, 5), seed=range(2))
            + arm(SMOKE | BMG, inner_steps=(1,), target_steps=(1, 5), seed=range(2)),
            stop={"meta_updates": 30},
        ),
        "lite": Scale(
            arm(LITE | MAML, inner_steps=(1, 5, 10), seed=range(2))
            + arm(
                LITE | BMG,
                inner_steps=(1, 5, 10),
                target_steps=(1, 5, 10),
                seed=range(2),
            ),
            stop={"meta_updates": 50},
        ),
        "paper": Scale(
            arm(PAPER | MAML, inner_steps=(1, 5, 10, 15, 20), seed=range(5))
            + arm(
                PAPER | BMG,
                inner_steps=(1, 5, 10),
                target_steps=(1, 5, 10),
                seed=range(5),
            ),
            stop={"meta_updates": 500},
        ),
    },
    select=Select(
        metric="meta_updates_per_second", mode="max", budgets={"meta_updates": 1}
    ),
    methods={
        "MAML": Method(MAML, tuned={"inner_steps": "K"}),
        "BMG": Method(BMG, tuned={"inner_steps": "K", "target_steps": "L"}),
    },
    measures=(Measure(metric="meta_updates_per_second", label="steps/s"),),
    shown={"data_set": DATA, "num_ways": "ways", "num_shots": "shots"},
    published=paper.FEW_SHOT_SPEED,
)
