"""Arrows between rooms run down only, and JAX stays in few of them."""

import ast
import functools
import pathlib
import subprocess
import sys

import pytest

from bmg_sweeps import paths

PROJECT = ("bmg_sweeps", "trainers", "sweeps", "tests", "benchmarks")
# What each room may import of the project. A room is a package, or a module of its own.
BASE = {"errors", "formatting", "paths", "privacy"}
BELOW_SWEEP = BASE | {"trainer"}
BELOW_ANALYSIS = BELOW_SWEEP | {"records", "sweep"}
BELOW_REPORTING = BELOW_ANALYSIS | {"analysis"}
MATHEMATICS = {"core", "environments", "tasks"}
MAY_IMPORT = {
    "errors": set(),
    "paths": set(),
    "formatting": set(),
    "privacy": {"paths"},
    "core": set(),
    "environments": {"atari_scores", "core"},
    "tasks": {"core", "errors", "formatting", "paths"},
    "trainer": BASE,
    "records": BELOW_SWEEP,
    "sweep": BELOW_SWEEP,
    "atari_scores": set(),
    "paper": {"atari_scores", "sweep"},
    "trainers": MATHEMATICS | {"atari_scores", "trainer"},
    "sweeps": {"atari_scores", "paper", "sweep"},
    "analysis": BELOW_ANALYSIS,
    "running": BELOW_SWEEP | MATHEMATICS | {"records"},
    "reporting": BELOW_REPORTING,
    "launching": BELOW_REPORTING | {"reporting", "running"},
    "tracking": BELOW_REPORTING | {"reporting", "launching"},
    "cli": BELOW_REPORTING | {"reporting", "launching", "running", "tracking"},
    "__main__": {"cli"},
    "__init__": {"records", "reporting", "sweep"},
}
JAX = {"core", "environments", "tasks", "trainers", "running"}
# What a process of the driver must not load when it starts: seconds, or a trainer.
SLOW = ("jax", "haiku", "optax", "trainers", "ray", "wandb", "matplotlib", "scipy")
FLOORS = 10


def room_of(module: str) -> str:
    """Names the room of a module: "bmg_sweeps.sweep.grid" is in sweep."""
    package, _, rest = module.partition(".")
    if package != "bmg_sweeps":
        return package
    return rest.partition(".")[0] or "__init__"


@functools.cache
def modules() -> dict[str, pathlib.Path]:
    """Finds every module of the project but tests, by its dotted name."""
    found = {}
    for folder in ("bmg_sweeps", "trainers", "sweeps"):
        for path in (paths.ROOT / folder).rglob("*.py"):
            parts = path.relative_to(paths.ROOT).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


@functools.cache
def imports(module: str) -> set[str]:
    """Names the modules that a module imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in modules() else node.module for name in inner}
    return names


@pytest.mark.parametrize("module", sorted(modules()))
def test_arrows_run_down_only(module):
    """No lower room knows a higher one; every module is in the table."""
    room = room_of(module)
    for name in imports(module):
        if name.partition(".")[0] in PROJECT and room_of(name) != room:
            assert room_of(name) in MAY_IMPORT[room], f"{module} imports {name}"


@pytest.mark.parametrize("module", sorted(modules()))
def test_jax_is_in_few_rooms(module):
    """So that planning and reports are instant, and a broken trainer breaks none."""
    packages = {name.partition(".")[0] for name in imports(module)}
    if room_of(module) not in JAX:
        assert not packages & {"jax", "jaxlib", "haiku", "optax", "chex", "trainers"}


def test_the_graph_has_no_circle_and_few_floors():
    """The longest way down through the rooms is shorter than ten arrows and rooms."""
    arrows = {room: set() for room in MAY_IMPORT}
    for module in modules():
        rooms = {
            room_of(name)
            for name in imports(module)
            if name.partition(".")[0] in PROJECT
        }
        arrows[room_of(module)] |= rooms - {room_of(module)}

    def height(room: str, above: tuple[str, ...] = ()) -> int:
        assert room not in above, f"a circle: {' → '.join((*above, room))}"
        return 1 + max((height(r, (*above, room)) for r in arrows[room]), default=0)

    assert max(map(height, arrows)) < FLOORS


def test_modules_of_a_room_import_each_other_in_no_circle():
    """Each can be read, and imported, without the ones above it."""

    def visit(module: str, above: tuple[str, ...] = ()) -> None:
        assert module not in above, f"a circle: {' → '.join((*above, module))}"
        if module not in seen:
            for name in sorted(imports(module) & modules().keys()):
                visit(name, (*above, module))
            seen.add(module)

    seen: set[str] = set()
    for module in modules():
        visit(module)


def test_the_driver_starts_at_once():
    """Importing any module of the driver loads nothing slow."""
    driver = [
        module
        for module in sorted(modules())
        if room_of(module) not in JAX | {"sweeps"}
        and not module.endswith(("__main__", ".figures", "_figures"))
    ]
    code = f"""if True:
        import importlib, sys
        for module in {driver}:
            importlib.import_module(module)
            loaded = [m for m in {SLOW} if m in sys.modules]
            assert not loaded, f"{{module}} loads {{loaded}}"
    """
    subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, check=True, timeout=60)
