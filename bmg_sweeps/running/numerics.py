"""What of the environment changes numbers: some is fixed, the rest is noted.

A shell that sets JAX_ENABLE_X64 must not decide what a record holds. What a trainer is
written for is set as it should be, whatever the environment says. What a user may
choose is noted with a record, and a record goes on under the same only.
"""

import os
from collections.abc import Mapping

import jax

from bmg_sweeps import errors
from bmg_sweeps.records import attempts

# Options of JAX, as trainers are written for. None sets them on import: that happens
# once in a process, and trials of other trainers may come before and after.
_FIXED = {
    "jax_enable_x64": False,
    "jax_numpy_dtype_promotion": "standard",
    "jax_default_prng_impl": "threefry2x32",
    "jax_threefry_partitionable": True,
    "jax_random_seed_offset": 0,
}
_VARIABLES = ("XLA_FLAGS", "NVIDIA_TF32_OVERRIDE")
_OPTIONS = {  # With their defaults, which are not noted.
    "jax_default_matmul_precision": None,
    "jax_disable_jit": False,
    "jax_disable_most_optimizations": False,
}
_HARMLESS = "--xla_dump_"  # Flags that write files, and change no number.


def fix() -> None:
    """Sets options of JAX, before a trainer is imported."""
    for option, value in _FIXED.items():
        jax.config.update(option, value)


def check_fixed(trainer: str) -> None:
    """Refuses a trainer that has set one of the options itself.

    Args:
        trainer: that was imported last, after `fix`.

    Raises:
        UserError: an option is not as `fix` has set it.
    """
    for option, value in _FIXED.items():
        now = jax.config.values[option]
        if now != value:
            raise errors.UserError(
                f"trainer {trainer}: its import sets {option} = {now!r}; expected "
                f"{value!r}, as all trainers of a process share it"
            )


def noted() -> dict[str, str]:
    """Returns variables and options that may change numbers, as far as they are set."""
    found = {name: os.environ.get(name, "") for name in _VARIABLES}
    flags = found["XLA_FLAGS"].split()
    found["XLA_FLAGS"] = " ".join(f for f in flags if not f.startswith(_HARMLESS))
    for option, default in _OPTIONS.items():
        value = jax.config.values[option]
        found[option] = "" if value == default else str(value)
    return {name: value for name, value in found.items() if value}


def difference(before: Mapping[str, str] | None) -> str | None:
    """Says in what the environment differs from a record's, if it does.

    Args:
        before: what was noted with the record; older code noted nothing.
    """
    if before is None:
        return None
    now = attempts.as_kept(noted())  # A record keeps no folders.
    for name in (*_VARIABLES, *_OPTIONS):
        was, is_ = before.get(name, ""), now.get(name, "")
        if was != is_:
            return f"{name}={is_!r}: expected {was!r}, as it was trained so far"
    return None
