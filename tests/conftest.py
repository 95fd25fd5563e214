"""What every test runs under: strict broadcasting, and no gin left over."""

import os

import gin
import jax
import psutil
import pytest
import toy_points

from bmg_sweeps.records import files

jax.config.update("jax_numpy_rank_promotion", "raise")
# Compiling is most of the time of all but a few tests, and takes half as long without
# XLA's newer emitters of code. Launches are processes of their own: they inherit the
# flags, and compile as users' do else.
FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1 "
os.environ["XLA_FLAGS"] = FLAGS + os.environ.get("XLA_FLAGS", "")
jax.config.update("jax_disable_most_optimizations", True)
# Ray gives trials a niceness of 15: beside other tests they would hardly run at all.
os.environ.update(RAY_worker_niceness="0")

LONG = ("launching", "trainers")  # Folders of files that take longest.
MAX_BYTES = 2 << 30  # Of a process; `make test` has three.


def pytest_collection_modifyitems(items):
    """Runs long files first, so that no process is left with one at the end."""
    items.sort(key=lambda item: item.path.parent.name not in LONG)


@pytest.fixture(autouse=True, scope="module")
def _forget_programs(request):
    """Those that files have compiled: of all files they would take gigabytes.

    Tests of trainers change what programs are traced with, such as the length of a
    chunk: no other file may find theirs, nor they another's.
    """
    is_apart = request.path.parent.name == "trainers"
    if is_apart:
        jax.clear_caches()
    yield
    if is_apart or psutil.Process().memory_info().rss > MAX_BYTES:
        jax.clear_caches()


@pytest.fixture
def optimized():
    """What trains for long is compiled as users' programs are."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(autouse=True)
def _clear_gin():
    yield
    gin.clear_config()


@pytest.fixture(autouse=True)
def _end_pulses():
    """Of attempts that a test has dropped, as a process that dies does."""
    yield
    toy_points.end_pulses()


@pytest.fixture
def toy():
    """The toy trainer, where trainers are looked for."""
    with toy_points.importable():
        from trainers import toy_trainer

        yield toy_trainer
        toy_trainer.FAILURES.clear()


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are drawn, in order, and left open until the test is over."""
    from matplotlib import pyplot

    figures, close = [], pyplot.close
    monkeypatch.setattr(pyplot, "close", figures.append)
    yield figures
    close("all")


@pytest.fixture
def storage(tmp_path):
    """An empty storage of the test's own."""
    return files.open_storage(str(tmp_path / "runs"))
