"""What is drawn of the agreement of budgets: a line for each method, over budgets."""

from typing import NamedTuple

from bmg_sweeps.analysis import agreement
from bmg_sweeps.analysis.results import Results

LABEL = "τ_b with the last budget"


class Agreeing(NamedTuple):
    """τ_b at each budget where there is one, and as it is without each seed."""

    method: str
    is_of_increments: bool
    at: list[float]
    taus: list[float]
    without: list[list[float]]  # By budget.


def make(results: Results, axis: str) -> list[Agreeing]:
    """Collects the lines of an axis.

    Args:
        results: of the sweep.
        axis: of the budgets.

    Returns:
        For each method that has any, its scores' line, and that of their increments.
    """
    found: dict[tuple[str, bool], Agreeing] = {}
    for one in agreement.of_axis(results, axis):
        for of_increments, said in ((False, one.scores), (True, one.increments)):
            if said is None:
                continue
            blank = Agreeing(one.method, of_increments, [], [], [])
            line = found.setdefault((one.method, of_increments), blank)
            line.at.append(one.budget)
            line.taus.append(said.tau)
            line.without.append([*said.without])
    return [*found.values()]
