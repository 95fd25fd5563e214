"""What Atari's rows say: scores of the episodes that ended, and means of metrics."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from bmg_sweeps.core import diagnostics
from trainers import _atari_agent, _atari_updates

Row = dict[str, jax.Array]
METRICS = (
    "policy_gradient_loss",
    "value_loss",
    "entropy",
    "relevant",
    "gradient_norm",
    "policy_lag",
)
META_METRICS = (
    "meta_loss",
    "meta_gradient_norm",
    "meta_gradient_squared",
    "cosine_similarity",
)


class Scores(NamedTuple):
    """Returns of episodes, in the units of the game."""

    running: jax.Array  # [N] so far, of each environment's episode.
    episodes: jax.Array  # [] int32, all that have ended.
    # [R + 1] sums of the returns that ended in each interval, oldest first; the last
    # entry is the running interval, the first is no longer scored.
    returns: jax.Array
    ended: jax.Array  # [R + 1] int32, how many ended in it.
    last: jax.Array  # [] the score of the last row; before it, that of random play.


class Statistics(NamedTuple):
    """What there is to say since the last row, and of some intervals before it."""

    scores: Scores
    sums: Any  # Of each update's metrics since the last row.
    row: Row  # The last row.


def init_scores(num_environments: int, num_intervals: int, random: jax.Array) -> Scores:
    """Starts N episodes, and R intervals in which none has ended.

    Args:
        num_environments: N.
        num_intervals: R.
        random: [] the score of random play.
    """
    return Scores(
        running=jnp.zeros(num_environments),
        episodes=jnp.zeros((), jnp.int32),
        returns=jnp.zeros(num_intervals + 1),
        ended=jnp.zeros(num_intervals + 1, jnp.int32),
        last=random,
    )


def acted(scores: Scores, rewards: jax.Array, is_game_over: jax.Array) -> Scores:
    """Adds what was acted.

    Args:
        scores: before it.
        rewards: [T, N] as the game gives them.
        is_game_over: [T, N] bool.

    Returns:
        The scores after it.
    """

    def step(running, now):
        reward, is_over = now
        running = running + reward
        return jnp.where(is_over, 0.0, running), jnp.where(is_over, running, 0.0)

    running, returns = jax.lax.scan(step, scores.running, (rewards, is_game_over))
    ended = jnp.sum(is_game_over, dtype=jnp.int32)
    return scores._replace(
        running=running,
        episodes=scores.episodes + ended,
        returns=scores.returns.at[-1].add(jnp.sum(returns)),
        ended=scores.ended.at[-1].add(ended),
    )


def score(scores: Scores) -> jax.Array:
    """Returns the mean return of the episodes that ended in the last R intervals, [].

    Where none has, the score stays what it was; at first it is that of random play.
    """
    ended = jnp.sum(scores.ended[1:])
    mean = jnp.sum(scores.returns[1:]) / jnp.maximum(ended, 1)
    return jnp.where(ended > 0, mean, scores.last)


def no_metrics(learner: _atari_updates.Learner) -> Any:
    """Returns sums of `of_update` over no updates."""
    zeros = {name: jnp.zeros(()) for name in METRICS}
    if learner.meta_gradient is None:
        return zeros
    return (
        zeros
        | {name: jnp.zeros(()) for name in META_METRICS}
        | {"meta_gradient": learner.meta_gradient}
    )


def of_update(
    metrics: Row, before: _atari_updates.Learner, after: _atari_updates.Learner
) -> Any:
    """Returns what rows need of a meta-update: metrics, and its meta-gradient."""
    if after.meta_gradient is None:
        return metrics
    squared = optax.tree.norm(after.meta_gradient, squared=True)
    return metrics | {
        "meta_gradient": after.meta_gradient,
        "meta_gradient_squared": squared,
        "meta_gradient_norm": jnp.sqrt(squared),
        "cosine_similarity": diagnostics.cosine_similarity(
            after.meta_gradient, before.meta_gradient
        ),
    }


def recorded(statistics: Statistics, row: Row, is_due: jax.Array) -> Statistics:
    """Goes on from a round; at the end of an interval there is a new row.

    Args:
        statistics: with the scores and the metrics of the round.
        row: the row, should the interval end here.
        is_due: [] bool, whether it does.

    Returns:
        The statistics after the round.
    """
    scores = statistics.scores
    shifted = scores._replace(
        returns=jnp.append(scores.returns[1:], 0.0),
        ended=jnp.append(scores.ended[1:], 0),
        last=score(scores),
    )
    choose = functools.partial(jnp.where, is_due)
    return Statistics(
        scores=jax.tree.map(choose, shifted, scores),
        sums=jax.tree.map(lambda total: choose(0.0, total), statistics.sums),
        row=jax.tree.map(choose, row, statistics.row),
    )


def hyper_params(config: Any, learner: _atari_updates.Learner) -> Row:
    """Returns the hyper-parameters of each task, as `discount_0` and so on."""
    if learner.meta_params is None:
        return {}
    values = _atari_agent.decoded(config, learner.meta_params)._asdict()
    return {
        f"{name}_{i}": v
        for name, column in values.items()
        for i, v in enumerate(column)
    }


def means(sums: Any, every: int) -> Row:
    """Returns means over an interval's updates, and how its meta-gradients scatter.

    Their variance is the trace of the sample covariance, Σ‖g − ḡ‖² / (n − 1), with one
    g a batch.
    """
    means = jax.tree.map(lambda total: total / every, sums)
    if "meta_gradient" not in means:
        return means
    mean_squared = optax.tree.norm(means.pop("meta_gradient"), squared=True)
    scatter = jnp.maximum(means.pop("meta_gradient_squared") - mean_squared, 0.0)
    variance = scatter * every / jnp.maximum(every - 1, 1)
    return means | {
        "meta_gradient_variance": variance,
        "norm_to_variance": diagnostics.norm_to_variance(
            means["meta_gradient_norm"], variance
        ),
    }
