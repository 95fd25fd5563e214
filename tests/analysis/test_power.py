"""How many fresh seeds an open claim lacks: the power of a test, and the range."""

import numpy as np
import pytest
import toy_runs
from scipy import stats

from bmg_sweeps.analysis import claims, power
from bmg_sweeps.analysis.verdicts import Verdict
from bmg_sweeps.sweep import Claim, Quantity


@pytest.mark.parametrize(("effect", "seeds"), [(1, 17), (0.5, 64), (3, 3), (0.1, 1000)])
def test_the_power_is_that_of_the_noncentral_t(effect, seeds):
    """Two sides of variance 1: λ = δ √(n/2), 2n − 2 freedoms; Cohen has 17 at 1."""
    freedom = 2 * seeds - 2
    bound = stats.t.isf(0.025, freedom)
    expected = stats.nct.sf(bound, freedom, effect * (seeds / 2) ** 0.5)
    found = power.power(effect, [1, 1], seeds, 0.05)
    assert found == pytest.approx(expected, abs=1e-4)


def test_the_power_is_how_often_fresh_seeds_decide():
    """20,000 pairs of samples of variances 9 and 1, by Welch."""
    random = np.random.default_rng(0)
    ours = 2.5 + 3 * random.normal(size=(20_000, 15))
    found = stats.ttest_ind(ours, random.normal(size=ours.shape), axis=1,
                            equal_var=False)  # fmt: skip
    share = np.mean((found.pvalue < 0.05) & (found.statistic > 0))
    assert power.power(2.5, [9, 1], 15, 0.05) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("variances", [[1.0], [1.0, 0.0], [1.0, 100.0]])
def test_the_power_is_a_number_and_grows(variances):
    """From the level's half to 1, however far the effect is."""
    for seeds in (2, 5, 1000):
        found = [
            power.power(effect, variances, seeds, 0.001)
            for effect in (0, *np.geomspace(1e-3, 1e6, 50))
        ]
        assert found[0] == pytest.approx(0.0005, rel=0.05)
        assert found == sorted(found)
        assert found[-1] == pytest.approx(1)


def test_the_range_is_from_the_deviation_to_its_upper_limit():
    """Four freedoms: χ²₀.₂ = 1.649, so variances 2.43 times as large."""
    found = power.seeds_to_decide(1.0, [1, 1], 4, 0.05)
    larger = [4 / stats.chi2.ppf(0.2, 4)] * 2
    assert found == (17, 40)
    for seeds, variances in zip(found, ([1, 1], larger), strict=True):
        assert power.power(1.0, variances, seeds, 0.05) >= 0.8
        assert power.power(1.0, variances, seeds - 1, 0.05) < 0.8


def test_a_range_of_few_seeds_is_wide_and_one_of_many_is_not():
    assert power.seeds_to_decide(1.0, [1, 1], 4, 0.05).is_wide
    assert not power.seeds_to_decide(1.0, [1, 1], 40, 0.05).is_wide
    assert power.Range(900, None).is_wide
    assert not power.Range(None, None).is_wide


def test_of_no_effect_no_number_is_told():
    assert power.seeds_to_decide(0.0, [1, 1], 4, 0.05) == (None, None)


def decide(rewards, *all_claims):
    sweep = toy_runs.sweep("AB", claims=all_claims)
    return claims.decide(toy_runs.load(sweep, toy_runs.table(rewards)))


REWARDS = {"A": [[3, 6, 1], [0, 0, 0]], "B": [[2, 4, 3]]}
MORE = Claim(text="So", more="A", less="B")


def test_an_open_claim_says_how_many_it_lacks():
    """By what is held out, with the variances 19/3 and 1 of what is chosen."""
    (one,) = decide(REWARDS, MORE)
    assert one.verdict == Verdict.OPEN
    variances = [np.var(x, ddof=1) for x in ([3, 6, 1], [2, 4, 3])]
    freedom = sum(variances) ** 2 / sum(v**2 / 2 for v in variances)
    effect = one.difference.estimate
    assert one.lacking == power.seeds_to_decide(effect, variances, freedom, 0.05)


def test_beside_other_claims_it_lacks_more():
    """Two that are not decided: 5 % / 2 for each."""
    (alone,), (first, second) = decide(REWARDS, MORE), decide(REWARDS, MORE, MORE)
    assert first.lacking == second.lacking
    assert first.lacking.low > alone.lacking.low


def test_of_the_same_runs_the_deviation_is_that_of_pairs():
    """Rewards − others: 1, 2, 4."""
    other = Quantity(method="B", metric="other")
    claim = Claim(text="So", more="B", less=other)
    runs = [
        toy_runs.trained(toy_runs.toy_point("B", 0, seed), 5, other=5 - pair)
        for seed, pair in enumerate((-1, 2, 4))
    ]
    found = toy_runs.load(toy_runs.sweep("B", claims=(claim,)), runs)
    (one,) = claims.decide(found)
    variances = [np.var([-1, 2, 4], ddof=1)]
    assert one.lacking == power.seeds_to_decide(5 / 3, variances, 2, 0.05)


@pytest.mark.parametrize(
    ("rewards", "keywords"),
    [
        ({"A": [[90, 91, 92]], "B": [[2, 4, 3]]}, {}),  # It is decided.
        ({"A": [[1, 1]], "B": [[2, 2]]}, {}),  # Nothing varies.
        ({"A": [[1]], "B": [[2]]}, {}),
        ({"A": [[1, 2, 3]]}, {}),
        ({"A": [[1, 9, 3]], "B": [[2, 4, 3]]}, {"equal_within": 0.1}),
    ],
)
def test_else_it_says_nothing(rewards, keywords):
    (one,) = decide(rewards, Claim(text="So", more="A", less="B", **keywords))
    assert one.lacking is None
