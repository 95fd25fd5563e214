"""The memory of a program: told from its equations, and by a compiler."""

import jax
import jax.numpy as jnp
import pytest
import small_few_shot
import small_two_colors

from bmg_sweeps.running import binding, memory, pack, programs
from bmg_sweeps.sweep import point

KB = jnp.zeros(256)  # An array of 1024 bytes, as all in the programs below.


def kilobytes(function, *arguments, donated=range(0)):
    """Estimates a program of such arrays."""
    num_bytes = memory.estimate(jax.make_jaxpr(function)(*arguments), donated)
    return num_bytes / 1024


def chain(x):
    """Each array is over when the next is there."""
    return jnp.exp(jnp.sin(jnp.cos(x)))


def fork(x):
    """The first array waits for the third."""
    first = jnp.sin(x)
    return first * jnp.tanh(jnp.cos(first))


def dot(x):
    """A scalar is made of two arrays."""
    return jnp.sin(x) @ jnp.cos(x)


def test_an_array_is_alive_from_its_equation_to_the_last_that_reads_it():
    """The input stays; of a chain one more array is there, and of a fork two."""
    assert kilobytes(chain, KB) == 2
    assert kilobytes(fork, KB) == 3
    assert kilobytes(dot, KB) == 3 + 4 / 1024


def test_a_donated_input_is_overwritten():
    """So a state counts once."""
    assert kilobytes(chain, KB, donated=range(1)) == 1
    assert kilobytes(lambda x, y: x + chain(y), KB, KB, donated=range(1, 2)) == 2
    assert kilobytes(lambda x, y: x + chain(y), KB, KB) == 3


def loop(x):
    return jax.lax.scan(lambda x, _: (fork(x), None), x, length=5)[0]


def history(x):
    return jax.lax.scan(lambda x, _: (chain(x), x), x, length=5)[1]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (loop, 3),
        (jax.jit(fork), 3),
        (jax.checkpoint(fork), 3),
        (lambda x: jax.lax.cond(x[0] > 0, fork, chain, x), 3),
        (history, 1 + 1 + 5),
    ],
)
def test_what_is_inside_counts_once(function, expected):
    """Bodies of loops, calls and the larger branch; and all rows of a scan."""
    assert kilobytes(function, KB) == pytest.approx(expected, abs=0.1)


def test_keys_have_a_size():
    """Two words of 4 bytes."""
    assert kilobytes(lambda key: key, jax.random.key(0)) * 1024 == 8


TRAINERS = {
    "two_colors_actor_critic": small_two_colors.VALUES,
    "few_shot": small_few_shot.VALUES
    | small_few_shot.BMG
    | {"inner_steps": 1, "target_steps": 2},
}


@pytest.mark.parametrize("name", TRAINERS)
def test_an_estimate_is_near_what_the_compiler_counts(name):
    """Within a factor of 2; of larger programs, too: 0.8 to 2.0 of nine were seen."""
    trainer, config = binding.bind(name, point.resolve(name, TRAINERS[name]).gin_text())
    config = pack.as_arrays(config)
    with trainer.source(config) as source:
        state = jax.eval_shape(trainer.init, config, jax.random.key(0), source)
        train = jax.jit(trainer.train, donate_argnums=1).trace(config, state, source)
    first = len(jax.tree.leaves(config))
    donated = range(first, first + len(jax.tree.leaves(state)))
    counted = programs._num_bytes(train.lower().compile())
    assert 0.5 < memory.estimate(train.jaxpr, donated) / counted < 2
