"""Several looks at fresh seeds: their level, and how often they are wrong.

A claim about nothing is simulated as 25 seeds of each of two sides, of the same mean.
They are looked at after 5, 10, 15, 20 and 25 seeds, until one of the looks decides.
"""

import numpy as np
import pytest
from scipy import stats

from bmg_sweeps.analysis import sequential
from bmg_sweeps.analysis.intervals import Interval
from bmg_sweeps.analysis.verdicts import Verdict

CLAIMS, SEEDS, LOOKS = 4_000, 25, (5, 10, 15, 20, 25)


@pytest.mark.parametrize(
    ("claims", "level"), [(1, 0.0158), (2, 0.0075), (4, 0.0036), (10, 0.0014)]
)
def test_the_level_of_five_looks(claims, level):
    """Pocock's, of 5 % for all claims together."""
    assert round(sequential.level(5, 0.05 / claims), 4) == level


@pytest.mark.parametrize(
    ("looks", "level"), [(2, 0.0294), (3, 0.0221), (4, 0.0182), (10, 0.0106)]
)
def test_the_level_of_other_numbers_of_looks(looks, level):
    """Pocock (1977), Table 1."""
    assert round(sequential.level(looks, 0.05), 4) == level


def test_of_one_look_the_level_is_its_own():
    assert sequential.level(1, 0.05) == 0.05


def test_the_level_of_two_looks_is_that_of_two_dimensions():
    """P(|Z₁| > c or |Z₂| > c), where the two correlate by √½."""
    bound = -stats.norm.ppf(sequential.level(2, 0.01) / 2)
    both = stats.multivariate_normal([0, 0], [[1, 0.5**0.5], [0.5**0.5, 1]])
    inside = both.cdf([bound] * 2, lower_limit=[-bound] * 2)
    assert 1 - inside == pytest.approx(0.01, abs=1e-7)


def test_the_level_of_many_looks_is_that_of_draws():
    """40 looks at 200,000 sums of normal steps."""
    random = np.random.default_rng(0)
    sums, most = np.zeros(200_000), np.zeros(200_000)
    for look in range(1, 41):
        sums += random.normal(size=sums.size)
        np.maximum(most, np.abs(sums) / look**0.5, out=most)
    bound = -stats.norm.ppf(sequential.level(40, 0.05) / 2)
    assert np.mean(most > bound) == pytest.approx(0.05, abs=0.002)


def decided(more, less, level):
    """Whether any look finds a difference between [claims, seeds], by Welch."""
    found = [
        stats.ttest_ind(more[:, :n], less[:, :n], axis=1, equal_var=False).pvalue
        for n in LOOKS
    ]
    return (np.array(found) < level).any(axis=0)


@pytest.fixture
def draw():
    """Draws normal seeds of 4,000 claims."""
    random = np.random.default_rng(0)
    return lambda *shape: random.normal(size=(*shape, CLAIMS, SEEDS))


LEVEL = sequential.level(len(LOOKS), 0.05)


def test_of_nothing_few_claims_are_decided(draw):
    assert decided(draw(), draw(), LEVEL).mean() <= 0.058


def test_looks_at_the_plain_level_decide_too_many(draw):
    """The check of above fails them by far."""
    share = decided(draw(), draw(), 0.05).mean()
    assert share == pytest.approx(0.135, abs=0.015)
    assert share > 0.058


def test_deviations_may_differ(draw):
    """3 : 1."""
    assert decided(3 * draw(), draw(), LEVEL).mean() <= 0.07


@pytest.mark.parametrize(("depth", "bound"), [(2, 0.07), (3, 0.07), (10, 0.25)])
def test_a_side_may_fail_at_times(draw, depth, bound):
    """In 25 % of its runs, by so many deviations; the other side never.

    From five deviations on it is wrong too often, which docs/how_sure.md says.
    """
    fails = np.random.default_rng(1).random((CLAIMS, SEEDS)) < 0.25
    ours = draw() - depth * (fails - 0.25)
    share = decided(ours, draw(), LEVEL).mean()
    assert share <= bound
    assert (share > 0.1) == (depth == 10)


def test_pooled_with_seeds_that_chose_they_support_too_much(draw):
    """The best of 30 by five seeds, which then count beside the fresh ones."""
    random = np.random.default_rng(1)
    old = random.normal(size=(CLAIMS, 30, 5))
    best = old[np.arange(CLAIMS), old.mean(axis=2).argmax(axis=1)]
    ours, theirs = draw(), np.hstack([random.normal(size=(CLAIMS, 5)), draw()])
    pooled = np.hstack([best, ours])
    found = [
        stats.ttest_ind(pooled[:, : n + 5], theirs[:, : n + 5], axis=1, equal_var=False)
        for n in LOOKS
    ]
    supported = [(one.pvalue < LEVEL) & (one.statistic > 0) for one in found]
    assert np.any(supported, axis=0).mean() > 0.07


@pytest.mark.parametrize("is_common", [False, True])
def test_of_four_claims_any_is_seldom_decided(draw, is_common):
    """Each against a side of its own, or all against one."""
    level = sequential.level(len(LOOKS), 0.05 / 4)
    ours, theirs = draw(4), draw(4)
    sides = [theirs[0]] * 4 if is_common else theirs
    found = [decided(*both, level) for both in zip(ours, sides, strict=True)]
    assert np.any(found, axis=0).mean() <= 0.058


@pytest.mark.parametrize(("effect", "share"), [(1, 0.84), (2, 0.99)])
def test_of_something_most_are_decided(draw, effect, share):
    assert decided(draw() + effect, draw(), LEVEL).mean() >= share


@pytest.mark.parametrize(
    ("low", "high", "within", "verdict"),
    [
        (1, 3, None, Verdict.SUPPORTED),
        (-3, -1, None, Verdict.CONTRADICTED),
        (-1, 3, None, Verdict.OPEN),
        (-1, 1, 2, Verdict.SUPPORTED),
        (-1, 3, 2, Verdict.OPEN),
        (1, 3, 2, Verdict.OPEN),
        (-3, -1, 2, Verdict.OPEN),
        (3, 4, 2, Verdict.CONTRADICTED),
        (-4, -3, 2, Verdict.CONTRADICTED),
    ],
)
def test_an_interval_decides(low, high, within, verdict):
    """Above or below 0; of a claim that two are equal inside or outside of ±δ."""
    found = sequential.verdict(Interval((low + high) / 2, low, high), within)
    assert found == verdict
