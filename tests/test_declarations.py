"""What is declared in one place agrees with what is declared in another."""

import functools
import importlib
import itertools
import re
import tomllib

import gin
import paper_values
import pytest

from bmg_sweeps import formatting, paper, paths
from bmg_sweeps.environments import atari, frame_ring
from bmg_sweeps.running import binding
from bmg_sweeps.sweep import choices, grid, loading, point
from bmg_sweeps.trainer import bindings, ranges, source

TRAINERS = sorted(path.stem for path in paths.TRAINERS.glob("[!_]*.py"))
SWEEPS = loading.sweep_names()
SCALES = [
    (sweep, scale) for sweep in SWEEPS for scale in loading.load_sweep(sweep).scales
]


@functools.cache
def choose(sweep, scale):
    """A sweep's points, which are thousands at paper scale."""
    return choices.choose(sweep, choices.Choice(scale=scale))


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
    _, config = binding.bind(trainer, resolved.gin_text())
    gin.clear_config()
    gin.parse_config_files_and_bindings([str(paths.GIN / f"{trainer}.gin")], [])
    assert binding.load(trainer).Config() == config
    for field, value in resolved.values.items():
        assert getattr(config, field) == value


@pytest.mark.parametrize("trainer", TRAINERS)
def test_fields_read_from_the_source_are_those_of_the_dataclass(trainer):
    """Names, order and which are static, without importing and with."""
    config = importlib.import_module(f"trainers.{trainer}").Config
    assert {name: f.is_structure for name, f in source.fields(trainer).items()} == {
        field.name: field.metadata.get("static", False)
        for field in config.__dataclass_fields__.values()
    }


@pytest.mark.parametrize("trainer", TRAINERS)
def test_every_field_has_a_range(trainer):
    """A sweep is told of a value that makes no sense before it trains for hours."""
    declared = ranges.of(binding.load(trainer).Config)
    assert [field for field, markers in declared.items() if not markers] == []


@pytest.mark.parametrize("trainer", TRAINERS)
def test_gins_runtime_binds_nothing_but_the_literals_of_the_text(trainer):
    """As `binding.bind` says."""
    text = point.resolve(trainer, {}).gin_text()
    literals = bindings.parse_bindings(trainer, text)
    assert binding.bind(trainer, text)[1] == binding.load(trainer).Config(**literals)


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
    chosen = choose(sweep, scale)
    examples = {p.structure: p for p in chosen.points}
    for example in examples.values():
        binding.bind(example.trainer, example.gin_text())


@pytest.mark.parametrize(("sweep", "scale"), SCALES)
def test_every_value_in_a_description_says_something(sweep, scale):
    """None is empty, such as the width of a network that has none."""
    chosen = choose(sweep, scale)
    descriptions = {grid.describe(chosen.sweep, p.values) for p in chosen.points}
    assert not [one for one in descriptions if re.search(r"=\W*( |$)", one)]


@pytest.mark.parametrize("sweep", [of for of, scale in SCALES if scale == "smoke"])
def test_every_smoke_scale_is_small(sweep):
    """At most four compilations and twelve points: about three minutes."""
    chosen = choose(sweep, "smoke")
    assert len({p.structure for p in chosen.points}) <= 4
    assert len(chosen.points) <= 12


@pytest.mark.parametrize("field", paper_values.TWO_COLORS_ACTOR_CRITIC)
def test_the_values_of_table_1_are_those_of_the_gin_file(field):
    """Flennerhag et al. (2022), Table 1, "Actor-critic"."""
    values = point.resolve("two_colors_actor_critic", {}).values
    assert values[field] == paper_values.TWO_COLORS_ACTOR_CRITIC[field]


@pytest.mark.parametrize("field", paper_values.TWO_COLORS_Q_LAMBDA)
def test_the_values_of_table_1_are_those_of_the_other_gin_file(field):
    """Flennerhag et al. (2022), Table 1, "Q(λ)"."""
    values = point.resolve("two_colors_q_lambda", {}).values
    assert values[field] == paper_values.TWO_COLORS_Q_LAMBDA[field]


def test_the_meta_learning_rates_of_figure_2_are_the_papers_candidates():
    """Flennerhag et al. (2022), Table 1, "Learning rate candidates"."""
    points = choose("figure_2", "paper").points
    rates = {p.values["meta_learning_rate"] for p in points}
    assert rates == set(paper_values.TWO_COLORS_META_LEARNING_RATES)


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
    published = paper.FEW_SHOT_ACCURACY.best
    found = [a for a in published if (a.method, a.axis) == (method, axis)]
    assert [a.budget for a in found] == list(budgets)
    assert {tuple(a.selected) for a in found} == {
        tuple(paper_values.FEW_SHOT_GRID[method])
    }


@pytest.mark.parametrize("method", paper_values.FEW_SHOT_GRID)
@pytest.mark.parametrize("sweep", ["table_7", "table_8", "figure_6"])
def test_the_configurations_of_tables_7_and_8_are_those_of_table_4(sweep, method):
    """Flennerhag et al. (2022), Table 4: 24 of each, as the paper writes them."""
    chosen = choose(sweep, "paper")
    symbols = chosen.sweep.methods[method].symbols
    found = {
        frozenset((s.text, s.shown(p.values[field])) for field, s in symbols.items())
        for p in chosen.points
        if grid.method_of(chosen.sweep, p.values) == method
    }
    axes = paper_values.FEW_SHOT_GRID[method]
    expected = {
        frozenset(zip(axes, map(formatting.short, values), strict=True))
        for values in itertools.product(*axes.values())
    }
    assert found == expected
    assert len(found) == 24


@pytest.mark.parametrize("field", paper_values.ATARI)
def test_the_values_of_table_2_are_those_of_the_gin_file(field):
    """Flennerhag et al. (2022), Table 2, "Atari hyper-parameters"."""
    assert point.resolve("atari", {}).values[field] == paper_values.ATARI[field]


def test_the_values_of_table_2_that_are_no_fields_are_those_of_the_emulators():
    """Flennerhag et al. (2022), Table 2, "ALE"."""
    found = {name: getattr(atari, name) for name in paper_values.ATARI_EMULATORS}
    assert found == paper_values.ATARI_EMULATORS
    assert frame_ring.STACK == paper_values.ATARI_STACKED_FRAMES


@pytest.mark.parametrize("sweep", ["table_9", "figure_4", "figure_19"])
def test_the_sweeps_of_all_games_have_every_agent_game_and_seed(sweep):
    """And share them; no value but the agents' differs from the gin file."""
    points = choose(sweep, "paper").points
    assert len({p.id for p in points}) == paper_values.ATARI_POINTS == 1197
    rest = point.resolve("atari", {}).values
    changed = {f for p in points for f, v in p.values.items() if v != rest[f]}
    assert changed == {
        *("game", "seed", "update_kind"),
        *("matching_function", "target_steps", "meta_gradient_clip"),
    }


def test_the_weights_of_matched_values_are_the_papers_candidates():
    """Flennerhag et al. (2022), Appendix C, "Data and hyper-parameter selection"."""
    points = choose("atari_value_weights", "paper").points
    weights = {p.values["value_matching_weight"] for p in points}
    assert weights == set(paper_values.ATARI_VALUE_MATCHING_WEIGHTS)


def pins(name: str) -> dict[str, set[str]]:
    """Reads a file of requirements: of each package, its version and where it holds."""
    found: dict[str, set[str]] = {}
    for line in (paths.ROOT / name).read_text().splitlines():
        if line and not line.lstrip().startswith("#"):
            package, equal, version = line.partition("==")
            assert equal, f"{name}: {line!r} is not pinned"
            found.setdefault(package, set()).add(version)
    return found


def names(dependencies: list[str]) -> set[str]:
    """Names packages without their extras: "moto[s3]" is moto."""
    return {dependency.partition("[")[0] for dependency in dependencies}


def test_requirements_are_pinned_and_complete():
    """What running and tests need is in its file, at one version in both."""
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())
    running, tests = pins("requirements.txt"), pins("requirements-dev.txt")
    assert names(project["project"]["dependencies"]) <= running.keys()
    of_tests = names(project["dependency-groups"]["dev"])
    assert of_tests <= tests.keys()
    assert not of_tests & running.keys() - {"pyyaml"}  # Ray and W&B need that, too.
    assert {p: running[p] for p in running.keys() & tests.keys()} == {
        p: tests[p] for p in running.keys() & tests.keys()
    }
