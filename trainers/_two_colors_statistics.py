"""Running statistics of an agent in two-colors, as rows at exact environment steps.

A meta-update may take the agent past a step at which a row is due. The statistics are
therefore carried through the scan and looked at after every rollout, and the row is
latched at the step itself; `rows` then picks what a scan over meta-updates latched.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from bmg_sweeps.core import diagnostics, recall
from bmg_sweeps.environments import two_colors

RECORD_EVERY = 10_000  # Environment steps between rows; budgets are its multiples.
PROBED = 1_000  # Of 13,800 states, on which a network's features are measured.
AFTER_FLIP = 3_333  # Environment steps after a flip at which Figure 9 looks.

Measurements = dict[str, jax.Array]


class Statistics(NamedTuple):
    """What has been counted so far, and the last row."""

    good: jax.Array  # [] int32, rewards of +1. Counted: a float32 sum would lose them.
    bad: jax.Array  # [] int32, rewards of −1.
    since_row: Measurements  # Sums over the rollouts since the last row.
    after_flip: Measurements  # `AFTER_FLIP` steps after the last flip.
    cycle_end: Measurements  # At the end of the last full cycle.
    row: dict[str, jax.Array]  # The last one; all zero before the first.


def init(names: tuple[str, ...]) -> Statistics:
    """Starts counting.

    Args:
        names: of the measurements that every rollout brings.

    Returns:
        Statistics of no steps. The start counts as a flip. Until a moment of the cycle
        has been seen, its measurements are those of the first rollout.
    """
    zeros = {name: jnp.zeros(()) for name in names}
    since_row = {"reward_per_step": jnp.zeros(())} | zeros
    count = jnp.zeros((), jnp.int32)
    row = {"env_steps": count, "total_reward": jnp.zeros(())} | since_row
    for moment in ("after_flip", "cycle_end"):
        row |= {f"{name}_{moment}": jnp.zeros(()) for name in names}
    return Statistics(count, count, since_row, zeros, zeros, row)


def update(
    statistics: Statistics,
    env_steps: jax.Array,
    collected: jax.Array,
    measurements: Measurements,
) -> Statistics:
    """Counts one rollout.

    Args:
        statistics: before the rollout.
        env_steps: [] int32, steps taken by its end.
        collected: [N] int32, as in `two_colors.Outcome`. N divides `RECORD_EVERY`.
        measurements: of this rollout, by name, each [].

    Returns:
        The statistics after it.
    """
    length = collected.shape[0]
    # Nothing that is only recorded may carry a derivative.
    measurements = jax.lax.stop_gradient(measurements)
    good, bad = (jnp.sum(collected == pays, dtype=jnp.int32) for pays in (1, -1))
    reward_per_step = _total_reward(good, bad, length) / length
    since_row = {"reward_per_step": reward_per_step} | measurements
    cycle_step = (env_steps - 1) % two_colors.CYCLE_STEPS + 1
    is_first = env_steps == length
    flipped = (cycle_step - length < AFTER_FLIP) & (cycle_step >= AFTER_FLIP)
    statistics = statistics._replace(
        good=statistics.good + good,
        bad=statistics.bad + bad,
        since_row=jax.tree.map(jnp.add, statistics.since_row, since_row),
        after_flip=_where(is_first | flipped, measurements, statistics.after_flip),
        cycle_end=_where(
            is_first | (cycle_step == two_colors.CYCLE_STEPS),
            measurements,
            statistics.cycle_end,
        ),
    )
    is_due = env_steps % RECORD_EVERY == 0
    since_row = jax.tree.map(
        lambda total: jnp.where(is_due, 0.0, total), statistics.since_row
    )
    return statistics._replace(
        row=_where(is_due, _row(statistics, env_steps, length), statistics.row),
        since_row=since_row,
    )


def rows(
    latched: dict[str, jax.Array], env_steps_before: jax.Array, num_rows: int
) -> dict[str, jax.Array]:
    """Picks each row from a scan that returned the last row after every meta-update.

    Args:
        latched: [M] of each column, `env_steps` among them.
        env_steps_before: [] int32, steps taken before the scan.
        num_rows: rows that may fall into the scan, at most.

    Returns:
        [num_rows] of each column. Where fewer rows fell due the last one is repeated.
    """
    due = env_steps_before // RECORD_EVERY * RECORD_EVERY + RECORD_EVERY * (
        1 + jnp.arange(num_rows)
    )
    at = jnp.searchsorted(latched["env_steps"], due)
    return {name: column.at[at].get(mode="clip") for name, column in latched.items()}


def of_features(
    params: recall.Params, leak: chex.Numeric | None = None
) -> dict[str, jax.Array]:
    """Measures the last hidden layer of a network, on `PROBED` random states.

    Args:
        params: of `networks.mlp`, with a hidden layer.
        leak: of its ReLUs, as in `recall.forward`.

    Returns:
        "dead_units", their share, and "feature_rank"; see `core.diagnostics`.
    """
    cells = _probed()
    states = two_colors.State(*cells.T, steps=jnp.zeros((), jnp.int32))
    axes = two_colors.State(0, 0, 0, None)
    observations = jax.vmap(two_colors.observe, (axes,))(states)
    *_, last_hidden, _ = recall.forward(params, observations, leak)
    return diagnostics.of_features(recall.leaky_relu(last_hidden, leak))


def _probed() -> np.ndarray:
    """Draws cells of agent, blue and red, distinct in each state; always the same."""
    generator = np.random.default_rng(0)
    order = generator.permuted(
        np.tile(np.arange(two_colors.NUM_CELLS, dtype=np.int32), (PROBED, 1)), axis=1
    )
    return order[:, :3]


def _row(
    statistics: Statistics, env_steps: jax.Array, length: int
) -> dict[str, jax.Array]:
    row = {
        "env_steps": env_steps,
        "total_reward": _total_reward(statistics.good, statistics.bad, env_steps),
    }
    for name, total in statistics.since_row.items():
        row[name] = total * length / RECORD_EVERY
    for name in statistics.after_flip:
        row[f"{name}_after_flip"] = statistics.after_flip[name]
        row[f"{name}_cycle_end"] = statistics.cycle_end[name]
    return row


def _total_reward(good: jax.Array, bad: jax.Array, steps: jax.Array) -> jax.Array:
    return (good - bad) + two_colors.STEP_REWARD * (steps - good - bad)


def _where(condition: jax.Array, new: dict, old: dict) -> dict:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)
