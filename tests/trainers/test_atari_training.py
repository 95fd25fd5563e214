"""Whether Atari's agents learn: MinAtar Breakout, at the values of Table 9's sweep."""

import jax
import jax.numpy as jnp
import pytest

from bmg_sweeps.running import binding
from bmg_sweeps.sweep import choices, point
from trainers import atari

FRAMES = 115_200  # 960 updates, 12 rows.


def last_row(update_kind, seed):
    """What training has come to, at a learning rate that is near its start."""
    where = {"update_kind": update_kind, "game": "minatar_breakout", "seed": "0"}
    chosen = choices.choose("table_9", choices.Choice(scale="lite", where=where))
    values = {"score_rows": 2, "seed": seed}
    gin_text = point.resolve("atari", chosen.points[0].values | values).gin_text()
    config = jax.tree.map(jnp.asarray, binding.bind("atari", gin_text)[1])
    key = jax.random.key(seed)
    state = jax.jit(atari.init, static_argnums=2)(config, key, None)
    train = jax.jit(atari.train, static_argnums=2, donate_argnums=1)
    while atari.progress(config, state)["frames"] < FRAMES:
        state, rows = train(config, state, None)
    return {name: float(column[-1]) for name, column in rows.items()}


def test_impala_learns():
    """Random play has 0.39. Seeds 0 to 4 ended at scores of 2.43 to 2.89."""
    assert last_row("impala", seed=0)["score"] > 2


@pytest.mark.slow
@pytest.mark.parametrize("update_kind", ["stacx", "bmg"])
def test_meta_learners_learn(update_kind):
    """STACX's seeds 0 to 2 ended at 2.35 to 2.98, and BMG's seed 0 at 3.11."""
    assert last_row(update_kind, seed=0)["score"] > 2
