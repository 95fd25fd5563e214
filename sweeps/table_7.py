"""Table 7: few-shot accuracy by meta-updates, of what is best by validation at each.

Claim: from 50,000 meta-updates on, bootstrapped meta-gradients (BMG) reach a higher
accuracy than MAML and its approximations, and the gap widens.
"""

from bmg_sweeps import paper
from bmg_sweeps.sweep import Claim, Method, Scale, Select, Sweep, Symbol, arm

BMG = {"update_kind": "bmg", "adapted": "weights"}
MAML = {"target_steps": 1}  # And whatever is not BMG.
RATE_AND_K = {"meta_learning_rate": "β", "inner_steps": "K"}
FOMAML, ANIL = {"maml": "False", "fomaml": "True"}, {"weights": "False", "head": "True"}
KL = {"policy_kl": "1", "reverse_policy_kl": "2"}  # KL(x̃ ‖ ·) and KL(· ‖ x̃).

DATA = Symbol("data", {"glyphs": "glyphs, a stand-in"})
SMOKE = {"data_set": "glyphs", "num_evaluation_tasks": 20, "evaluation_interval": 10,
         "record_interval": 10, "meta_learning_rate": 1e-3}  # fmt: skip
# One shot needs a larger rate than five; queries and shots alike, as in Finn et al.
LITE = {"data_set": "omniglot", "num_ways": 20, "num_shots": 1, "num_queries": 1,
        "num_evaluation_queries": 1, "num_evaluation_tasks": 100,
        "evaluation_interval": 250, "record_interval": 50, "meta_learning_rate": 1e-3,
        "learning_rate": 0.5, "target_learning_rate": 0.5}  # fmt: skip
# Evaluated every 20 minutes or so by the slowest on a V100, for budgets of an hour.
PAPER = {"data_set": "mini_imagenet", "evaluation_interval": 2_500}


def maml(scale, seeds, kinds=tuple(FOMAML), adapted=tuple(ANIL), **axes):
    """MAML, its first-order approximation, and both with only the head adapted."""
    return arm(
        scale | MAML, update_kind=kinds, adapted=adapted, **axes, seed=range(seeds)
    )


def bmg(scale, seeds, directions=tuple(KL), **axes):
    """BMG, with both directions of the matching function."""
    return arm(scale | BMG, matching_function=directions, **axes, seed=range(seeds))


RATES = {"meta_learning_rate": (1e-3, 1e-4)}
SMOKE_POINTS = (
    maml(SMOKE, 2, ("maml",), ("weights",), inner_steps=(1, 5))
    + bmg(SMOKE, 2, ("policy_kl",), inner_steps=(1,), target_steps=(5,))
    + bmg(SMOKE, 2, ("policy_kl",), inner_steps=(5,), target_steps=(1,))
)
LITE_POINTS = (
    maml(LITE, 2, ("maml",), inner_steps=(1, 5))
    + maml(LITE, 2, ("fomaml",), ("weights",), inner_steps=(1, 5))
    + bmg(LITE, 2, ("policy_kl",), inner_steps=(1, 5), target_steps=(1, 5))
    + bmg(LITE, 2, ("reverse_policy_kl",), inner_steps=(1, 5), target_steps=(1,))
    + bmg(LITE, 2, ("policy_kl",), inner_steps=(1,), target_steps=(10,))
)
PAPER_POINTS = maml(PAPER, 3, inner_steps=(1, 5, 10), **RATES) + bmg(
    PAPER, 3, inner_steps=(1, 5), target_steps=(1, 5, 10), **RATES
)

SWEEP = Sweep(
    title="Few-shot classification: accuracy by meta-updates",
    trainer="few_shot",
    scales={
        "smoke": Scale(SMOKE_POINTS, {"meta_updates": 30}, {"meta_updates": 3}),
        "lite": Scale(LITE_POINTS, {"meta_updates": 1_000}, {"meta_updates": 4}),
        "paper": Scale(PAPER_POINTS, {"meta_updates": 300_000}),
    },
    select=Select(
        metric="validation_accuracy",
        mode="max",
        budgets={"meta_updates": 30},
        test="test_accuracy",
    ),
    methods={
        "BMG": Method(
            BMG,
            RATE_AND_K | {"target_steps": "L", "matching_function": Symbol("μ", KL)},
        ),
        "MAML": Method(
            MAML,
            RATE_AND_K
            | {
                "update_kind": Symbol("FOMAML", FOMAML),
                "adapted": Symbol("ANIL", ANIL),
            },
        ),
    },
    claims=(Claim(text="BMG is more accurate than MAML", more="BMG", less="MAML"),),
    shown={"data_set": DATA, "num_ways": "ways", "num_shots": "shots"},
    published=paper.FEW_SHOT_ACCURACY,
)
