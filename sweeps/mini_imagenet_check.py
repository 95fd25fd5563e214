"""A check that few-shot learning on miniImageNet gets off the ground, on two cores.

Claim: after some hundred meta-updates, MAML and BMG are more accurate than the nearest
centroid of raw pixels, 29.6 % of 5-way-5-shot test tasks. For accuracies, see Table 7.
"""

from bmg_sweeps.sweep import Method, Scale, Select, Sweep, arm

MAML = {"update_kind": "maml", "target_steps": 1}
BMG = {"update_kind": "bmg"}
VALUES = {"data_set": "mini_imagenet", "num_evaluation_tasks": 100,
          "evaluation_interval": 200, "record_interval": 20, "inner_steps": 1,
          "meta_learning_rate": 1e-3}  # fmt: skip


SWEEP = Sweep(
    title="Few-shot miniImageNet: a check that it learns",
    trainer="few_shot",
    scales={
        "lite": Scale(
            arm(VALUES | MAML, adapted=("weights", "head"), seed=range(2))
            + arm(VALUES | BMG, target_steps=(1,), seed=range(2)),
            stop={"meta_updates": 200},
        )
    },
    select=Select(
        metric="validation_accuracy",
        mode="max",
        budgets={"meta_updates": 1},
        test="test_accuracy",
    ),
    methods={
        "MAML": Method(MAML | {"adapted": "weights"}, tuned={}),
        "MAML + ANIL": Method(MAML | {"adapted": "head"}, tuned={}),
        "BMG": Method(BMG, tuned={}),
    },
)
