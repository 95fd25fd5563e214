"""What is declared in one place agrees with what is declared in another."""

import ast
import importlib
import itertools
import pathlib
import re
import subprocess
import sys

import gin
import pytest

from bmg_sweeps import paper, paths
from bmg_sweeps.launching import planning
from bmg_sweeps.sweep import grid, point

TRAINERS = sorted(path.stem for path in paths.TRAINERS.glob("[!_]*.py"))
SWEEPS = paths.sweep_names()
SCALES = [
    (sweep, scale) for sweep in SWEEPS for scale in paths.load_sweep(sweep).scales
]


def test_gin_is_the_library_and_the_folder_holds_no_python():
    """Without gin-config installed `import gin` would find the folder, and succeed."""
    assert callable(gin.configurable)
    assert not [*paths.GIN.rglob("*.py")]


@pytest.mark.parametrize("folder", ["gin", "sweeps", "tests"])
def test_folders_that_would_shadow_a_package_are_not_packages(folder):
    """W&B imports a package named sweeps, and everyone one named gin."""
    assert not (paths.ROOT / folder / "__init__.py").exists()


def test_sweeps_are_in_the_papers_order():
    """Numbers in their own order, where the alphabet has figure_10 before figure_2."""
    figures = [int(n.removeprefix("figure_")) for n in SWEEPS if n.startswith("fig")]
    assert len(figures) > 2
    assert figures == sorted(figures)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_trainers_gin_binds_every_field_and_passes_its_check(trainer):
    """Its .gin alone makes a point, and gin makes the same `Config` of it."""
    resolved = point.resolve(trainer, {})
    module = importlib.import_module(f"trainers.{trainer}")
    gin.parse_config_files_and_bindings([str(paths.GIN / f"{trainer}.gin")], [])
    config = module.Config()
    module.check(config)
    for field, value in resolved.values.items():
        assert getattr(config, field) == value


@pytest.mark.parametrize("trainer", TRAINERS)
def test_fields_read_from_the_source_are_those_of_the_dataclass(trainer):
    """Names, order and which are static, without importing and with."""
    config = importlib.import_module(f"trainers.{trainer}").Config
    assert {name: f.is_structure for name, f in point.fields(trainer).items()} == {
        field.name: field.metadata.get("static", False)
        for field in config.__dataclass_fields__.values()
    }


@pytest.mark.parametrize("trainer", TRAINERS)
def test_every_gin_line_says_its_unit_or_source(trainer):
    """A value without a word on where it comes from is a value nobody can judge."""
    text = (paths.GIN / f"{trainer}.gin").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith(f"{trainer}.")]
    silent = [line for line in lines if not re.search(r"  # \S+", line)]
    assert not silent


@pytest.mark.parametrize(("sweep", "scale"), SCALES)
def test_every_point_of_every_sweep_is_valid(sweep, scale):
    """One point of each structure passes its trainer's check; all resolve."""
    chosen = planning.choose(sweep, planning.Choice(scale=scale))
    examples = {point.structure(p): p for p in chosen.points}
    module = importlib.import_module(f"trainers.{chosen.sweep.trainer}")
    for example in examples.values():
        gin.clear_config()
        gin.parse_config(point.gin_text(example))
        module.check(module.Config())


@pytest.mark.parametrize("sweep", [of for of, scale in SCALES if scale == "smoke"])
def test_every_smoke_scale_is_small(sweep):
    """At most four compilations and twelve points: about three minutes."""
    chosen = planning.choose(sweep, planning.Choice(scale="smoke"))
    assert len({point.structure(p) for p in chosen.points}) <= 4
    assert len(chosen.points) <= 12


@pytest.mark.parametrize("sweep", SWEEPS)
def test_every_sweep_is_in_the_readme(sweep):
    """A reader finds the command for each table and figure."""
    readme = (paths.ROOT / "README.md").read_text(encoding="utf-8")
    assert f"launch {sweep}" in readme


@pytest.mark.parametrize("field", paper.TWO_COLORS_ACTOR_CRITIC)
def test_the_values_of_table_1_are_those_of_the_gin_file(field):
    """Flennerhag et al. (2022), Table 1, "Actor-critic"."""
    values = point.resolve("two_colors_actor_critic", {}).values
    assert values[field] == paper.TWO_COLORS_ACTOR_CRITIC[field]


@pytest.mark.parametrize("field", paper.TWO_COLORS_Q_LAMBDA)
def test_the_values_of_table_1_are_those_of_the_other_gin_file(field):
    """Flennerhag et al. (2022), Table 1, "Q(λ)"."""
    values = point.resolve("two_colors_q_lambda", {}).values
    assert values[field] == paper.TWO_COLORS_Q_LAMBDA[field]


def test_the_meta_learning_rates_of_figure_2_are_the_papers_candidates():
    """Flennerhag et al. (2022), Table 1, "Learning rate candidates"."""
    points = planning.choose("figure_2", planning.Choice(scale="paper")).points
    rates = {p.values["meta_learning_rate"] for p in points}
    assert rates == set(paper.TWO_COLORS_META_LEARNING_RATES)


@pytest.mark.parametrize(
    ("method", "axis", "budgets"),
    [
        ("BMG", "meta_updates", range(10_000, 300_001, 10_000)),
        ("MAML", "meta_updates", range(10_000, 300_001, 10_000)),
        ("BMG", "hours", range(1, 25)),
        ("MAML", "hours", range(1, 24)),  # At 24 hours none is printed.
    ],
)
def test_the_budgets_of_tables_7_and_8_are_the_papers(method, axis, budgets):
    """Each once, though two hours are printed twice; and every symbol has a value."""
    anchors = paper.ANCHORS["few_shot_accuracy"]
    found = [a for a in anchors if (a.method, a.axis) == (method, axis)]
    assert [a.budget for a in found] == list(budgets)
    assert {tuple(a.selected) for a in found} == {tuple(paper.FEW_SHOT_GRID[method])}


@pytest.mark.parametrize("method", paper.FEW_SHOT_GRID)
@pytest.mark.parametrize("sweep", ["table_7", "table_8", "figure_6"])
def test_the_configurations_of_tables_7_and_8_are_those_of_table_4(sweep, method):
    """Flennerhag et al. (2022), Table 4: 24 of each, as the paper writes them."""
    chosen = planning.choose(sweep, planning.Choice(scale="paper"))
    symbols = chosen.sweep.methods[method].symbols
    found = {
        frozenset((s.text, s.shown(p.values[field])) for field, s in symbols.items())
        for p in chosen.points
        if grid.method_of(chosen.sweep, p.values) == method
    }
    axes = paper.FEW_SHOT_GRID[method]
    expected = {
        frozenset(zip(axes, map(grid.short, values), strict=True))
        for values in itertools.product(*axes.values())
    }
    assert found == expected
    assert len(found) == 24


# What each part may import of the project: core ← worlds ← trainers ← work_unit.
CORE = {"bmg_sweeps.core"}
WORLDS = CORE | {"bmg_sweeps.environments", "bmg_sweeps.tasks"}
ALLOWED = {
    "bmg_sweeps/core": CORE,
    "bmg_sweeps/environments": WORLDS,
    # Of the platform, what users are told, and where caches are.
    "bmg_sweeps/tasks": WORLDS | {"bmg_sweeps.errors", "bmg_sweeps.paths"},
    "trainers": WORLDS | {"trainers", "bmg_sweeps.trainer"},
    "sweeps": {"bmg_sweeps.sweep", "bmg_sweeps.paths"},
}


@pytest.mark.parametrize("folder", ALLOWED)
def test_imports_point_one_way(folder):
    """No lower layer knows a higher one."""
    for path in (paths.ROOT / folder).glob("*.py"):
        for name in imported(path):
            if name.split(".")[0] in ("bmg_sweeps", "trainers", "sweeps"):
                is_allowed = any(
                    name == a or name.startswith(f"{a}.") for a in ALLOWED[folder]
                )
                assert is_allowed, f"{path.name} imports {name}"


PLATFORM = (
    "__main__",
    "cli.viewing",
    "records.encoding",
    "errors",
    "reporting.figures",
    "records.files",
    "sweep.grid",
    "launching.trials",
    "records.manifests",
    "paper",
    "paths",
    "launching.planning",
    "sweep.point",
    "launching.progress",
    "reporting.report",
    "analysis.selection",
    "records.store",
    "tracking",
)


def imported(path: pathlib.Path) -> set[str]:
    """Names of the modules that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            is_package = node.module in ("bmg_sweeps", "bmg_sweeps.core", "trainers")
            for alias in node.names:
                dotted = f"{node.module}.{alias.name}" if is_package else node.module
                names.add(dotted)
    return names


@pytest.mark.parametrize(
    "module",
    PLATFORM,
)
def test_the_platform_imports_neither_jax_nor_a_trainer(module):
    """Listing, planning and reports are instant, whatever a trainer does."""
    code = (
        f"import sys, bmg_sweeps.{module}; "
        "print([m for m in ('jax', 'haiku', 'trainers', 'ray', 'wandb') "
        "if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]"


def test_requirements_are_pinned():
    """Every line of requirements.txt names one version."""
    lines = (paths.ROOT / "requirements.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.lstrip().startswith("#")]
    assert pins
    assert all("==" in line for line in pins)
