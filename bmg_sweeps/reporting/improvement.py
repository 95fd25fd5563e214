"""How probably one method is better than another, by the runs of what was selected."""

from collections.abc import Mapping

import numpy as np

from bmg_sweeps import formatting
from bmg_sweeps.analysis import estimates, intervals
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score
from bmg_sweeps.reporting.tables import Cell, Column, Key, Kind, Table
from bmg_sweeps.sweep import grid

MAX_ABREAST = 8  # Methods that are all compared with each other.
# Runs below which P(better) says nothing: of two equal methods its interval leaves ½
# out in 35 % of cases at 2 runs.
MIN_RUNS = 5
# Of a percentile bootstrap. Over many tasks, whose means have the variance s²/N, it has
# s²(N − 1)/N², so that 1.96 deviations of it are 1.39, 1.60 and 1.75 of the right ones.
TOO_NARROW = (
    "Few runs make wide intervals, and very few too narrow ones: of 2, 3 and 5 runs "
    "those that are called 95 % hold the truth in about 50, 74 and 91 %, and over many "
    "tasks in 83, 89 and 92 %."
)


def table(results: Results, axis: str) -> list[Table]:
    """Compares the methods' best at the last budget, where there are runs enough.

    Returns:
        One table; none of fewer than two methods with several runs, or where neither of
        its columns says anything. Of many methods each is compared with the best only.
    """
    rule, selected = results.sweep.select, results.selections[axis].best
    last = max((s.budget for s in selected), default=None)
    best = {s.method: s for s in selected if s.budget == last}
    found = {method: _matrix(rule, score) for method, score in best.items()}
    matrices = {m: x for m, x in found.items() if x is not None and len(x) > 1}
    if last is None or len(matrices) < 2:
        return []
    rivals = _rivals(rule, {m: best[m] for m in matrices}, matrices)
    is_one_scale = _is_one_scale(results)
    if not rivals and not is_one_scale:
        return []
    tasks = {m: {estimates.task(rule.over, p) for p in best[m].points} for m in best}
    sign = 1 if rule.mode == "max" else -1
    rows = []
    for method, scores in matrices.items():
        row: list[Cell] = [method]
        row += [intervals.interquartile_mean(scores)] if is_one_scale else []
        for rival in rivals:
            if method == rival or len(scores) < MIN_RUNS:
                row.append(None)
            elif tasks[method] != tasks[rival]:
                row.append("other tasks")
            else:
                pair = sign * scores, sign * matrices[rival]
                row.append(intervals.probability_of_improvement(*pair))
        rows.append(tuple(row))
    columns = [Column("method")]
    columns += [Column("interquartile mean", "interval")] if is_one_scale else []
    columns += [Column(f"P(better than {m})", "probability") for m in rivals]
    title = f"Methods at {formatting.shown_amount(last)} {axis}"
    notes = (_how(rule), *_without(results, found))
    key = Key(Kind.IMPROVEMENT, axis)
    return [Table(key, title, tuple(columns), tuple(rows), notes)]


def _matrix(rule: grid.Select, score: Score) -> np.ndarray | None:
    """The numbers of seeds and tasks; None where a test is missing."""
    values = score.test_values if rule.test else score.values
    return estimates.matrix(rule.over, score.points, values)


def _rivals(
    rule: grid.Select, best: Mapping[str, Score], matrices: Mapping[str, np.ndarray]
) -> list[str]:
    """The methods that all are compared with: of many, only the best one."""
    if len(matrices) <= MAX_ABREAST:
        compared = list(matrices)
    else:
        extreme = max if rule.mode == "max" else min
        compared = [extreme(matrices, key=lambda m: best[m].estimate.mean)]
    enough = [m for m, scores in matrices.items() if len(scores) >= MIN_RUNS]
    return [m for m in compared if m in enough] if len(enough) > 1 else []


def _is_one_scale(results: Results) -> bool:
    """Whether runs have numbers that can be pooled: of one task, or normalized."""
    rule, tasks = results.sweep.select, results.sweep.tasks
    metric = rule.test or rule.metric
    is_normalized = tasks is not None and metric == tasks.normalized
    return len(rule.over) == 1 or is_normalized


def _how(rule: grid.Select) -> str:
    seed = rule.over[0]
    return (
        f"{rule.test or rule.metric} of each method's best at that budget, with 95 % "
        f"intervals of a stratified bootstrap over {seed}s. {TOO_NARROW} P(better) is "
        f"left out below {MIN_RUNS} {seed}s, where it says nothing."
    )


def _without(results: Results, found: Mapping[str, np.ndarray | None]) -> list[str]:
    """Names the methods that are not in the table, and says why."""
    rule, notes = results.sweep.select, []
    for method in results.methods:
        if method not in found:
            notes.append(f"{method} is left out: no configuration of it is complete.")
            continue
        scores = found[method]
        if scores is None:
            reason = f"not every {rule.over[0]} has {rule.test}"
            notes.append(f"{method} is left out: {reason}.")
        elif len(scores) < 2:
            notes.append(f"{method} is left out: it has one {rule.over[0]}.")
    return notes
