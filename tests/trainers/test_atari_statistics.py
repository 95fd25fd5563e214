"""What Atari's rows say, against the same counted by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import small_atari

from trainers import _atari_statistics as statistics
from trainers import _atari_updates

NUM_INTERVALS = 3  # R.
NUM_ENVIRONMENTS = 2
RANDOM = -20.5  # Score of random play.


def start():
    """Two episodes that begin, and intervals in which none has ended."""
    return statistics.init_scores(NUM_ENVIRONMENTS, NUM_INTERVALS, jnp.float32(RANDOM))


def played(scores, rewards, is_game_over):
    """Adds steps, [T, N], with rewards that are plain numbers."""
    return statistics.acted(
        scores, jnp.array(rewards, jnp.float32), jnp.array(is_game_over, bool)
    )


def recorded(scores, is_due=True):
    """Goes on to the next interval."""
    state = statistics.Statistics(scores, sums={"loss": jnp.float32(3)}, row={})
    return statistics.recorded(state, {}, jnp.array(is_due)).scores


def test_the_score_is_of_the_episodes_that_ended_in_the_last_intervals():
    """R = 3: one episode of k ends in interval k; and in the fourth, one of 100."""
    scores = start()
    expected = [1, 1.5, 2, (2 + 3 + 100) / 3, (3 + 100 + 5) / 3]
    for reward, score in zip([1, 2, 3, 100, 5], expected, strict=True):
        scores = played(scores, [[reward, 0]], [[True, False]])
        np.testing.assert_allclose(statistics.score(scores), score, rtol=1e-6)
        scores = recorded(scores)
    assert scores.episodes == 5


def test_episodes_count_by_their_number_and_not_by_interval():
    """Three of 1 in one interval and one of 9 in the next have a mean of 3."""
    scores = start()
    scores = played(scores, [[1, 1], [1, 0]], [[True, True], [True, False]])
    scores = played(recorded(scores), [[9, 0]], [[True, False]])
    assert statistics.score(scores) == 3
    assert scores.episodes == 4


def test_an_episodes_return_spans_rounds_and_rows():
    """It is counted whole where it ends: 1 + 2 + 4 before, 8 after."""
    scores = start()
    scores = played(scores, [[1, 0], [2, 0]], [[False, False]] * 2)
    scores = recorded(played(scores, [[4, 0]], [[False, False]]))
    scores = played(scores, [[0, 0], [8, 0]], [[True, False], [False, False]])
    assert statistics.score(scores) == 7
    np.testing.assert_array_equal(scores.running, [8, 0])


def test_where_no_episode_has_ended_the_score_stays_what_it_was():
    """At first that of random play, whatever the running ones have by then."""
    scores = played(start(), [[4, 2]], [[False, False]])
    assert statistics.score(scores) == RANDOM
    assert statistics.score(recorded(scores)) == RANDOM
    scores = played(scores, [[6, 0]], [[True, False]])
    for _ in range(2 * NUM_INTERVALS):
        assert statistics.score(scores) == 10
        scores = recorded(scores)


def test_between_rows_sums_and_the_last_row_stay():
    """And at a row the sums begin anew."""
    scores = played(
        start(),
        [[5, 0]],
        [[True, False]],
    )
    before = statistics.Statistics(
        scores, sums={"loss": jnp.float32(3)}, row={"loss": jnp.float32(1)}
    )
    new = {"loss": jnp.float32(2)}
    for is_due, total, row in ((False, 3, 1), (True, 0, 2)):
        after = statistics.recorded(before, new, jnp.array(is_due))
        assert after.sums["loss"] == total
        assert after.row["loss"] == row
        assert statistics.score(after.scores) == 5
    np.testing.assert_array_equal(after.scores.returns, [0, 0, 5, 0])


def test_meta_gradients_are_described_as_numpy_would():
    """Over an interval of 7 updates: their variance, norms, and consecutive cosines."""
    every = 7
    config = small_atari.make_config(**small_atari.STACX)
    learner = jax.eval_shape(lambda: small_atari.start(config))
    random = np.random.default_rng(0)
    grads = random.normal(0.5, 1, (every + 1, 18)).astype(np.float32)
    learners = [
        learner._replace(
            meta_gradient=type(learner.meta_params)(*jnp.array(g).reshape(6, 3))
        )
        for g in grads
    ]
    sums = statistics.no_metrics(learners[0])
    sums = jax.tree.map(jnp.zeros_like, sums)
    for i in range(every):
        metrics = {name: jnp.float32(i) for name in (*statistics.METRICS, "meta_loss")}
        found = statistics.of_update(metrics, learners[i], learners[i + 1])
        sums = jax.tree.map(jnp.add, sums, found)
    means = statistics.means(sums, every)
    norms = np.linalg.norm(grads, axis=1)
    cosines = np.sum(grads[1:] * grads[:-1], axis=1) / (norms[1:] * norms[:-1])
    variance = np.sum(np.var(grads[1:], axis=0, ddof=1))
    for name, expected in {
        "meta_gradient_variance": variance,
        "meta_gradient_norm": norms[1:].mean(),
        "norm_to_variance": norms[1:].mean() / variance,
        "cosine_similarity": cosines.mean(),
        "meta_loss": 3,
        "policy_gradient_loss": 3,
    }.items():
        np.testing.assert_allclose(means[name], expected, rtol=1e-4)


def test_of_impala_there_is_nothing_to_say_of_meta_gradients():
    """Its rows are shorter; what is in them are means."""
    learner = _atari_updates.Learner(None, None, (), None)
    metrics = dict.fromkeys(statistics.METRICS, jnp.float32(6))
    assert statistics.of_update(metrics, learner, learner) == metrics
    assert statistics.no_metrics(learner).keys() == metrics.keys()
    assert set(map(float, statistics.means(metrics, 3).values())) == {2}
    assert statistics.hyper_params(None, learner) == {}
