"""The log of actions reaches back to the span that is needed, and no further."""

import numpy as np

from bmg_sweeps.environments import action_log


def acted(log, num_steps, begins):
    """Adds actions that are the number of their step; `begins` are steps by n."""
    for _ in range(num_steps):
        step = log.steps
        actions = np.full(len(begins), step)
        log.add(actions, np.array([step + 1 in steps for steps in begins]))


def test_it_forgets_the_spans_before_the_one_that_is_needed():
    """Spans begin at 0, 3, 6 and at 0, 5. Step 5 is in the second of each."""
    log = action_log.ActionLog(np.array([7, 0]))
    acted(log, 8, [{3, 6}, {5}])
    log.forget(np.array([5, 5]))
    saved = log.save()
    np.testing.assert_array_equal(saved.spans, [8, 1])
    np.testing.assert_array_equal(saved.lengths, [5, 3])
    np.testing.assert_array_equal(saved.actions, [3, 4, 5, 6, 7, 5, 6, 7])
    expected = [[3, 0], [4, 0], [5, 5], [6, 6], [7, 7]]
    np.testing.assert_array_equal(saved.aligned(), expected)


def test_forgetting_twice_and_too_early_changes_nothing():
    log = action_log.ActionLog(np.array([0]))
    acted(log, 6, [{3}])
    for step in (2, 4, 4, 1):
        log.forget(np.array([step]))
    np.testing.assert_array_equal(log.save().actions, [3, 4, 5])


def test_a_log_can_begin_anew():
    """As that of an environment which idled until its log begins."""
    log = action_log.ActionLog(np.array([4, 4]), steps=10)
    acted(log, 2, [{11}, set()])
    log.begin(np.array([True, False]), np.array([9, 9]))
    acted(log, 1, [set(), set()])
    saved = log.save()
    np.testing.assert_array_equal(saved.spans, [9, 4])
    np.testing.assert_array_equal(saved.lengths, [1, 3])
    np.testing.assert_array_equal(saved.actions, [12, 10, 11, 12])


def test_a_log_with_nothing_in_it_is_saved():
    saved = action_log.ActionLog(np.array([0, 2])).save()
    np.testing.assert_array_equal(saved.lengths, [0, 0])
    assert saved.aligned().shape == (0, 2)
