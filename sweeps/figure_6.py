"""Figure 6: few-shot accuracy of what was selected, by meta-updates, hours and K.

Claim: BMG is more efficient than MAML in data and in time, and better with the same K.
"""

import dataclasses

from bmg_sweeps.sweep import Best, Scale, load_sweep

TABLE_7, TABLE_8 = load_sweep("table_7"), load_sweep("table_8")


def both(name):
    """The points of both tables at a scale, trained as far as either asks."""
    by_data, by_time = TABLE_7.scales[name], TABLE_8.scales[name]
    budgets = (by_data.budgets or TABLE_7.select.budgets) | by_time.budgets
    return Scale(by_data.points, by_data.stop | by_time.stop, budgets)


SWEEP = dataclasses.replace(
    TABLE_7,
    title="Few-shot classification: accuracy by data, time and K",
    scales={name: both(name) for name in TABLE_7.scales},
    select=dataclasses.replace(
        TABLE_7.select, budgets=TABLE_7.select.budgets | TABLE_8.select.budgets
    ),
    curves=(
        Best(title="By meta-updates", label="test accuracy (%)", axis="meta_updates"),
        Best(title="By hours of training", label="test accuracy (%)", axis="hours"),
        Best(
            title="Best of each K",
            label="test accuracy (%)",
            axis="meta_updates",
            by="inner_steps",
        ),
    ),
)
