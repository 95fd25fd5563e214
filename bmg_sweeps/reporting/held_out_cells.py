"""What a table of the best says of how sure a choice is: its columns, cells and notes.

Beside the score of what was chosen stands what is held out, and how many configurations
are so near to it that the seeds do not tell them apart. Where no method had a choice
there is nothing to be said.
"""

from bmg_sweeps.analysis.folds import HeldOut
from bmg_sweeps.analysis.results import Results
from bmg_sweeps.analysis.selection import Score, Selection
from bmg_sweeps.reporting.tables import Cell, Column, Share

NAME, ALIKE = "held out", "like the best"
ROUGH = "rough"


def is_shown(selected: Selection) -> bool:
    """Whether a method had a choice that can be read on other seeds."""
    return any(one.has_choice for one in selected.held_out.values())


def columns(selected: Selection) -> list[Column]:
    """The columns of `cells`."""
    shown = [Column(NAME, "estimate"), Column(ALIKE, "share")]
    return shown if is_shown(selected) else []


def cells(selected: Selection, score: Score) -> list[Cell]:
    """What is held out, and how many are like the best."""
    if not is_shown(selected):
        return []
    apart = selected.apart(score)
    return [number(apart), _share(selected, score, apart)]


def number(apart: HeldOut | None) -> Cell:
    """The number that is held out, or why there is none; None with one seed."""
    return (apart.estimate or apart.reason or None) if apart else None


def notes(results: Results, axis: str) -> list[str]:
    """Says what the columns are; or that one seed tells nothing."""
    rule, selected = results.sweep.select, results.selections[axis]
    seed = rule.over[0]
    if not is_shown(selected):
        methods = [(score.method, score.budget) for score in selected.scores]
        is_choice = len(set(methods)) < len(methods)
        single = f"One {seed} holds nothing out: nobody can say how sure the choice is."
        return [single] if is_choice else []
    what = f"{rule.test} of what" if rule.test else "what"
    return [
        f"{NAME.capitalize()}: {what} all {seed}s but one choose, read on that one, "
        f"and averaged over all such {seed}s; it is what a choice by one {seed} fewer "
        f"earns. {ALIKE.capitalize()}: configurations that cannot be distinguished "
        f"from the best with this number of {seed}s, at 95 %."
    ]


def is_alike(selected: Selection, score: Score) -> bool | None:
    """Whether a configuration is like the best; None where that is not known."""
    apart = selected.apart(score)
    if not apart or not apart.alike:
        return None
    return score.configuration.id in apart.alike_ids


def _share(selected: Selection, score: Score, apart: HeldOut | None) -> Cell:
    if not apart or not apart.alike:
        return None
    at = (score.budget, score.method)
    whole = sum((s.budget, s.method) == at for s in selected.scores)
    share = Share(len(apart.alike), whole)
    return f"{share.part} / {share.whole}, {ROUGH}" if apart.is_rough else share
