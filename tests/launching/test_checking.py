"""Which points a launch traces before it begins, and what it asks of sweeps."""

import pytest

from bmg_sweeps.launching import checking
from bmg_sweeps.sweep import choices


def test_examples_have_every_name_and_are_few():
    """Numbers do not count: the points that differ in them run the same lines."""
    rows = [
        {"kind": "a", "steps": 1},
        {"kind": "a", "steps": 2},
        {"kind": "b", "steps": 1},
        {"kind": "a", "rollout": "last"},
        {"kind": "b", "rollout": "last"},
    ]
    assert checking.examples(rows) == [0, 2, 3]
    assert checking.examples([{"steps": 1}, {"steps": 2}]) == [0]
    assert checking.examples([]) == []


@pytest.mark.parametrize("where", [{}, {"update_kind": "fixed_entropy_weight"}])
def test_the_columns_of_a_sweep_are_looked_up_in_all_of_its_kinds(where):
    """Also of those that are not about to run: some may have columns of their own."""
    chosen = choices.choose("figure_2", choices.Choice(scale="paper", where=where))
    asked = checking._names(chosen)
    assert len(asked["examples"]) == 3
    assert ("select.metric", "total_reward") in asked["columns"]
    assert ("curves, metric", "entropy_weight") in asked["columns"]
    assert ("stop", "env_steps") in asked["axes"]
