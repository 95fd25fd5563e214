"""What is known of a sweep's points before any has been run."""

import pytest
import toy_runs

from bmg_sweeps.sweep import choices


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([("A", 0, 0), ("A", 0, 1), ("B", 0, 0)], False),
        ([("A", 0, 0), ("B", 0, 0), ("B", 1, 0)], True),
        ([("other", 0, 0), ("C", 0, 0)], True),
        ([], False),
    ],
    ids=["seeds and methods", "two rates", "two without a method", "nothing"],
)
def test_there_is_a_choice_where_a_method_has_several_configurations(points, expected):
    """Points that differ in their seed alone are one configuration."""
    sweep, made = toy_runs.sweep("AB"), (toy_runs.toy_point(*p) for p in points)
    chosen = choices.Chosen("toy", sweep, tuple(made), {"env_steps": 1})
    assert chosen.has_choice is expected
