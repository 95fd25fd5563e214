"""What the paper's table of games adds up to, beside what its text says."""

import numpy as np
import pytest
from scipy import stats

from bmg_sweeps import atari_scores, paper

TASKS = {one.method: one for one in paper.ATARI_SCORES.tasks}
SUMMARIES = paper.ATARI_SCORES.summaries


def test_a_human_has_one_and_random_play_none():
    """Pong: random −20.7, human 14.6; halfway is ½."""
    assert atari_scores.normalized("pong", -20.7) == 0
    assert atari_scores.normalized("pong", 14.6) == 1
    assert atari_scores.normalized("pong", (14.6 - 20.7) / 2) == pytest.approx(0.5)


@pytest.mark.parametrize("method", TASKS)
def test_every_method_has_all_57_games(method):
    """By the names of the table of human and random scores."""
    assert len(atari_scores.SCORES) == 57
    assert TASKS[method].scores.keys() == atari_scores.SCORES.keys()
    assert TASKS[method].normalized.keys() == atari_scores.SCORES.keys()


@pytest.mark.parametrize(
    ("method", "median", "mean", "middle", "above", "wins"),
    [
        # The text says 500, 520 and 610 % for the first three, and 350 for STACX.
        ("BMG KL", 502, 2063, 7.57, 47, 34),
        ("BMG KL&V", 509, 2380, 6.67, 47, 38),
        ("BMG KL&V, L=4", 543, 2505, 7.81, 45, 41),
        ("BMG KL-S", 290, 2141, 4.86, 44, 32),
        ("BMG L2", 410, 1934, 4.53, 47, 34),
        ("STACX", 301, 2003, 5.68, 42, 0),
        ("BMG V", 202, 867, 2.49, 41, 12),
    ],
)
def test_what_the_table_of_games_adds_up_to(method, median, mean, middle, above, wins):
    """In percent of a human; the interquartile mean in humans."""
    values = np.array([*TASKS[method].normalized.values()])
    assert round(100 * np.median(values)) == median
    assert round(100 * values.mean()) == mean
    assert stats.trim_mean(values, 0.25) == pytest.approx(middle, abs=0.005)
    assert (values > 1).sum() == above
    stacx = TASKS["STACX"].scores
    assert sum(n > stacx[g] for g, n in TASKS[method].scores.items()) == wins


def test_the_text_states_other_medians():
    """Flennerhag et al. (2022), Section 5.2; DiscoRL's table has the same STACX."""
    printed = {s.method: s.median for s in SUMMARIES if "5.2" in s.source}
    assert printed == {
        "BMG KL": 5.0, "BMG KL&V": 5.2, "BMG KL&V, L=4": 6.1, "STACX": 3.5
    }  # fmt: skip
    (other,) = [s for s in SUMMARIES if s.method == "STACX" and s.median != 3.5]
    assert (other.median, other.interquartile_mean) == (3.01, 5.68)


def test_table_3_has_three_columns_of_three_games():
    """For four agents each."""
    measures = paper.ATARI_META_GRADIENTS.measures
    assert len(measures) == 3 * 3 * 4
    by_kind = {(m.method, m.metric): m for m in measures}
    assert len(by_kind) == 36
    one = by_kind["STACX, ms_pacman", "cosine_similarity"]
    assert (one.mean, one.deviation) == (-0.005, 0.01)
