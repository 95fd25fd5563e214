"""The cache of compiled programs goes on after a kill."""

import os
import pathlib
import subprocess
import sys

import pytest
import toy_points

from bmg_sweeps import paths
from bmg_sweeps.launching import cluster, compiled

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


TRAIN = """
import sys, tempfile
from bmg_sweeps.launching import compiled
compiled.use_cache()
import jax
counts = dict.fromkeys(("compile_requests_use_cache", "cache_hits"), 0)

def count(name, **_):
    name = name.rpartition("/")[2]
    counts[name] = counts.get(name, 0) + 1

jax.monitoring.register_event_listener(count)
import toy_points
from bmg_sweeps.records import files
with toy_points.importable(), tempfile.TemporaryDirectory() as folder:
    storage = files.open_storage(folder)
    toy_points.declare(storage, "a", seed=int(sys.argv[1]), rate=float(sys.argv[2]))
    assert toy_points.run(storage, "a") == "done"
print(counts["compile_requests_use_cache"], counts["cache_hits"])
"""


def train_in(folder, *values):
    """Trains a toy point as a worker does; returns programs asked for, and found."""
    environment = os.environ | cluster.worker_environment(cluster.Resources())
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    tests = str(pathlib.Path(toy_points.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, *values],
        env=environment | {"PYTHONPATH": tests, "XDG_CACHE_HOME": str(folder)},
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(map(int, done.stdout.split()))


def test_a_second_process_compiles_nothing_of_a_known_structure(tmp_path):
    """Whatever the seed and the rate, and however fast a program compiles."""
    asked, found = train_in(tmp_path, "0", "0.1")
    assert found < asked
    assert train_in(tmp_path, "1", "0.2") == (asked, asked)


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


@pytest.mark.parametrize("is_own", [True, False])
def test_a_cache_of_the_users_is_left_as_it_is(tmp_path, monkeypatch, is_own):
    """JAX itself keeps entries there that look like orphans of ours."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "users"))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_MAX_SIZE", "")
    monkeypatch.delenv("JAX_COMPILATION_CACHE_MAX_SIZE")
    if is_own:
        monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    folder = paths.cache() if is_own else tmp_path / "users"
    folder.mkdir()
    entry = folder / "jit_f-0123-cache"
    entry.write_bytes(b"a program")
    os.utime(entry, (0, 0))
    for _ in range(2):  # A process runs many trials.
        compiled.use_cache()
        assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(folder)
        assert entry.exists() != is_own
        assert ("JAX_COMPILATION_CACHE_MAX_SIZE" in os.environ) == is_own


def test_programs_that_another_user_could_have_put_there_are_not_run(
    tmp_path, monkeypatch
):
    """Among the temporary files, where whoever comes first makes a folder."""
    temporary = tmp_path / "temporary"
    monkeypatch.setattr(paths, "own_temporary", lambda: temporary)
    monkeypatch.setattr(paths, "home", lambda: None)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    name = "JAX_COMPILATION_CACHE_DIR"
    for mode, is_used in ((0o777, False), (0o700, True)):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
        temporary.mkdir(exist_ok=True)
        temporary.chmod(mode)
        compiled.use_cache()
        assert (os.environ.get(name) == str(paths.cache())) == is_used
