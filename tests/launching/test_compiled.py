"""The cache of compiled programs goes on after a kill."""

import os
import subprocess
import sys

from bmg_sweeps.launching import compiled

COMPILE = """
import sys, warnings, jax
warnings.simplefilter("error")
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_compilation_cache_max_size", 1 << 30)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
jax.jit(lambda x: x * 3 + 1)(float(sys.argv[2]))
"""


def compile_in(folder):
    """Compiles a program in a process; returns whether JAX had no complaint."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, str(folder), "1"],
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def test_an_orphan_in_the_cache_does_not_turn_it_off(tmp_path):
    """A kill between two files leaves one, and JAX then caches nothing more."""
    orphan = tmp_path / "jit_f-0123-cache"
    orphan.write_bytes(b"half of it")
    assert not compile_in(tmp_path)
    compiled.mend(tmp_path)
    assert orphan.exists()  # Its partner may be about to come.
    os.utime(orphan, (0, 0))
    compiled.mend(tmp_path)
    assert not orphan.exists()
    assert compile_in(tmp_path)
    kept = {path.name for path in tmp_path.glob("*-cache")}
    assert kept
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    compiled.mend(tmp_path)
    assert {path.name for path in tmp_path.glob("*-cache")} == kept
    compiled.mend(tmp_path / "none")
