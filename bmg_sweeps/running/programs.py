"""Compiled programs: one for each structure and pack width. The only user of `jax.jit`.

A pack is W points of one structure, their configs and states stacked under `vmap`:
`[W, …]` for every leaf. A pack of one point is that point itself, nothing stacked.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bmg_sweeps.trainer import contract

MAX_MEMORY_SHARE = 0.8  # A pack plans to fill at most this share of a device.
# XLA's own choice is 256 where a core has more. Q(λ), whose steps update five arrays
# element by element, takes a sixth less time with it; matrix products take the same.
_COMPILER_OPTIONS = {"cpu": {"xla_cpu_prefer_vector_width": 512}}
MAX_PROGRAMS = 4  # Structures whose programs a process keeps; trials come by structure.


@dataclasses.dataclass(frozen=True)
class Programs:
    """What a structure compiles to, at one pack width."""

    width: int
    init: Callable[..., Any]
    train: Callable[..., Any]
    evaluate: Mapping[str, Callable[..., Any]]  # By split; empty without `evaluate`.
    act: Callable[..., Any] | None  # None where the source is not live.
    is_finite: Callable[[Any], jax.Array]  # [W] of a state, or [] of a single one.
    take: Callable[[Any, int], Any]  # The state of one of the points.
    state: Any  # Shapes and types of one point's state.
    num_bytes: int  # Device memory that `train` needs, as the compiler counts it.


_COMPILED: dict[Any, Programs] = {}  # The one that was used last is last.


def compiled(
    trainer: contract.Trainer, configs: Sequence[Any], source: Any
) -> tuple[Programs, float | None]:
    """Compiles the programs of a pack, unless this process has.

    Args:
        trainer: of the points.
        configs: of the pack's points, which share one structure; arrays in the leaves.
        source: what training reads, or a live source.

    Returns:
        The programs, and the seconds that compiling took; None where they were there.
    """
    width = len(configs)
    leaves = jax.tree.leaves(contract.handed(source))
    shapes = [(leaf.shape, leaf.dtype) for leaf in leaves]
    name = (trainer.name, width, jax.tree.structure(configs[0]), str(shapes))
    if name in _COMPILED:
        _COMPILED[name] = _COMPILED.pop(name)  # It is the last to go now.
        return _COMPILED[name], None
    while len(_COMPILED) >= MAX_PROGRAMS:
        del _COMPILED[next(iter(_COMPILED))]
        jax.clear_caches()  # What was traced for it is tens of megabytes, too.
    began = time.perf_counter()
    _COMPILED[name] = _compile(trainer, configs, source)
    return _COMPILED[name], time.perf_counter() - began


def _compile(trainer, configs, source) -> Programs:
    width, config = len(configs), stack(configs)
    handed = contract.handed(source)
    key = stack([jax.random.key(0)] * width)

    def mapped(function: Callable, in_axes: tuple) -> Callable:
        return jax.vmap(function, in_axes) if width > 1 else function

    init = jax.jit(mapped(trainer.init, (0, 0, None)))
    state = jax.eval_shape(init, config, key, handed.to_init)
    single = jax.eval_shape(trainer.init, configs[0], jax.random.key(0), handed.to_init)
    train = jax.jit(mapped(trainer.train, (0, 0, None)), donate_argnums=1)
    train = train.lower(config, state, handed.to_train).compile(
        compiler_options=_COMPILER_OPTIONS.get(jax.default_backend())
    )
    act = None
    if isinstance(source, contract.LiveSource):
        step = jax.ShapeDtypeStruct((), jnp.int32)
        act = jax.jit(trainer.act).lower(config, state, handed.to_act, step).compile()
    evaluate = {
        split: jax.jit(mapped(_evaluating(trainer, split), (0, 0, None)))
        .lower(config, state, source)
        .compile()
        for split in (contract.SPLITS if trainer.evaluate else ())
    }
    is_finite = jax.jit(mapped(all_finite, (0,))).lower(state).compile()
    take = jax.jit(lambda tree, i: jax.tree.map(lambda leaf: leaf[i], tree))
    return Programs(
        width=width,
        init=init.lower(config, key, handed.to_init).compile(),
        train=train,
        evaluate=evaluate,
        act=act,
        is_finite=is_finite,
        take=take.lower(state, 0).compile() if width > 1 else lambda tree, i: tree,
        state=single,
        num_bytes=_num_bytes(train),
    )


def _evaluating(trainer: contract.Trainer, split: str) -> Callable[..., Any]:
    return lambda config, state, source: trainer.evaluate(config, state, source, split)


def stack(trees: Sequence[Any]) -> Any:
    """Stacks the leaves of trees of one structure; a single tree stays as it is.

    Args:
        trees: W of them.

    Returns:
        One tree with [W, …] leaves.
    """
    if len(trees) == 1:
        return trees[0]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def all_finite(tree: Any) -> jax.Array:
    """Whether every floating-point number of a tree is finite, []."""
    return jnp.array(
        [
            jnp.all(jnp.isfinite(leaf))
            for leaf in jax.tree.leaves(tree)
            if jnp.issubdtype(leaf.dtype, jnp.floating)
        ]
    ).all()


def fitting_width(single: Programs, device: Any) -> int:
    """Says how many points fit the memory of a device, if each needs what one does.

    Args:
        single: the programs of a pack of one.
        device: that is to run the pack.

    Returns:
        At least 1; exactly 1 where the device does not tell its memory, as CPUs do not.
    """
    statistics = device.memory_stats() or {}
    limit = statistics.get("bytes_limit", 0)
    free = MAX_MEMORY_SHARE * limit - statistics.get("bytes_in_use", 0)
    return max(1, int(free // max(single.num_bytes, 1)))


def fastest_width(
    trainer: contract.Trainer, config: Any, source: Any, most: int
) -> int:
    """Tries out how many points to train together, by the time of a chunk.

    Args:
        trainer: of the points.
        config: of one of them; arrays in the leaves.
        source: what training reads, not a live one.
        most: the largest width that is wanted.

    Returns:
        The last power of 2 up to which each trains more points a second than the one
        before.
    """
    best, rate = 1, 0.0
    for width in (2**i for i in range(most.bit_length())):
        now = width / _chunk_seconds(trainer, [config] * width, source)
        if now <= rate:
            break
        best, rate = width, now
    return best


def _chunk_seconds(trainer, configs: Sequence[Any], source: Any) -> float:
    """Times the second chunk of new points; the first one warms up."""
    made, _ = compiled(trainer, configs, source)
    handed, config = contract.handed(source), stack(configs)
    keys = stack([jax.random.key(0)] * len(configs))
    state, seconds = made.init(config, keys, handed.to_init), 0.0
    for _ in range(2):
        began = time.perf_counter()
        state, _ = jax.block_until_ready(made.train(config, state, handed.to_train))
        seconds = time.perf_counter() - began
    return seconds


def _num_bytes(program: Any) -> int:
    memory = program.memory_analysis()
    if memory is None:
        return 0
    return int(
        memory.temp_size_in_bytes
        + memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        - memory.alias_size_in_bytes  # The state after lies where that before did.
    )


def flatten(state: Any) -> list[np.ndarray]:
    """Turns a state into arrays that a file can hold; keys become their data.

    What NumPy has no type for, such as bfloat16, becomes integers of the same bits.
    """
    return [
        _of_numpy(np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf))
        for leaf in jax.tree.leaves(state)
    ]


def unflatten(arrays: list[np.ndarray], shapes: Any) -> Any | None:
    """Rebuilds a state from what `flatten` gave.

    Args:
        arrays: of a checkpoint.
        shapes: the state's tree, with a shape and a type in each leaf.

    Returns:
        The state; None where the arrays do not have the shapes it needs.
    """
    leaves, tree = jax.tree.flatten(shapes)
    if len(leaves) != len(arrays):
        return None
    state = []
    for array, leaf in zip(arrays, leaves, strict=True):
        if _is_key(leaf):
            data = jax.eval_shape(jax.random.key_data, leaf)
            if (array.shape, array.dtype) != (data.shape, data.dtype):
                return None
            kind = jax.random.key_impl(jnp.empty(leaf.shape, leaf.dtype))
            array = jax.random.wrap_key_data(jnp.asarray(array), impl=kind)
        elif _of_numpy(array).dtype == _of_numpy(np.empty((), leaf.dtype)).dtype:
            array = array.view(leaf.dtype)
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            return None
        state.append(jnp.asarray(array))
    return jax.tree.unflatten(tree, state)


def _of_numpy(array: np.ndarray) -> np.ndarray:
    """Views as integers what a file would hold as bytes without a type."""
    is_foreign = array.dtype.kind == "V"
    return array.view(f"u{array.dtype.itemsize}") if is_foreign else array


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
