"""The examples in docstrings give what they say."""

import doctest
import importlib

import test_architecture


def test_the_examples_hold():
    """Of every module of bmg_sweeps, each in its own module's names."""
    names = [name for name in test_architecture.modules() if "bmg_sweeps" in name]
    modules = [importlib.import_module(n) for n in names if "__main__" not in n]
    results = {module.__name__: doctest.testmod(module) for module in modules}
    assert [name for name, result in results.items() if result.failed] == []
    assert sum(result.attempted for result in results.values()) >= 10
