"""Figure 9: the range of the policy's entropy over time, of Figure 2's MG and BMG.

Claim: MG without entropy in its meta-objective shrinks the range until the policy no
longer adapts; BMG keeps it, with a large enough meta-learning horizon. That its range
even widens is our own question.
"""

import dataclasses

from bmg_sweeps.sweep import Claim, Curve, Quantity, load_sweep

FIGURE_2, FIGURE_8 = load_sweep("figure_2"), load_sweep("figure_8")
METHODS = {name: FIGURE_2.methods[name] for name in ("MG", "BMG")}
EARLY = 200_000  # The end of the first cycle after a flip.
RANGE = {"metric": "policy_entropy_after_flip", "minus": "policy_entropy_cycle_end"}


def points(scale):
    """Those of the two methods."""
    return tuple(
        point
        for point in scale.points
        for method in METHODS.values()
        if all(point.get(f) == value for f, value in method.values.items())
    )


def panel(title, method):
    """From 3,333 steps after a flip to the end of the cycle."""
    return Curve(
        title=title,
        metric=RANGE["metric"],
        to=RANGE["minus"],
        label="entropy of the policy (nats), line: after a flip",
        methods=(method,),
    )


SWEEP = dataclasses.replace(
    FIGURE_2,
    title="Two-colors: range of the policy's entropy over time",
    scales={
        name: dataclasses.replace(scale, points=points(scale))
        for name, scale in FIGURE_8.scales.items()
    },
    methods=METHODS,
    curves=(
        panel("Meta-gradients", "MG"),
        panel("Bootstrapped meta-gradients", "BMG"),
    ),
    claims=(
        Claim(
            text="MG shrinks the range over time",
            more=Quantity(method="MG", **RANGE, at=EARLY),
            less=Quantity(method="MG", **RANGE),
        ),
        Claim(
            text="BMG does not: its range is wider at the end",
            more=Quantity(method="BMG", **RANGE),
            less=Quantity(method="BMG", **RANGE, at=EARLY),
        ),
        Claim(
            text="BMG ends with a wider range than MG",
            more=Quantity(method="BMG", **RANGE),
            less=Quantity(method="MG", **RANGE),
        ),
    ),
    published=None,
)
