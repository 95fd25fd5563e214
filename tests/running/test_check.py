"""What a launch refuses before it begins: trainers and sweeps that break the contract.

Each case is a toy trainer with one thing wrong, and the one line that names it.
"""

import pytest
import toy_variants

from bmg_sweeps.running import binding, check, numerics, tracing

pytestmark = pytest.mark.usefixtures("toy")

ROWS = "jax.tree.map(lambda column: column[jnp.array([4, 9, 9])], rows)"
RETURN = f"return state, {ROWS}"
LUCKY = (
    RETURN,
    "return state._replace(env_steps=state.env_steps + (state.walk[0] > 0).astype(int))"
    f", {ROWS}",
)
PROGRESS = '{"env_steps": state.env_steps}'
EVALUATION = '{"reward": sign * jnp.sum(state.walk)}'
BROKEN = {
    "a Config that is no pytree": (
        ("@jax.tree_util.register_dataclass\n", ""),
        "Config is no pytree; expected @jax.tree_util.register_dataclass above @gin.con"
        "figurable",
    ),
    "a Config that can change": (
        ("(frozen=True, ", "("),
        "Config is no frozen dataclass; expected one",
    ),
    "a default": (
        ("rate: Annotated[float, Gt(0)]", "rate: float = 0.1"),
        "Config.rate has a default; expected none; its value stands in gin/toy_broken."
        "gin",
    ),
    "no progress": (
        ("def progress(", "def _progress("),
        "trainers/toy_broken.py has no progress; expected progress(config, state) -> {"
        "axis: amount}",
    ),
    "progress that is no table": (
        (PROGRESS, "state.env_steps"),
        "progress returns int32[]; expected {axis: amount}",
    ),
    "progress in fractions": (
        (PROGRESS, '{"env_steps": state.env_steps / 2}'),
        "progress returns env_steps as float32[]; expected an integer []",
    ),
    "rows without their axis": (
        (RETURN, f'return state, {{"reward": {ROWS}["reward"]}}'),
        "the rows of train have no env_steps, the first axis of progress; expected it a"
        "mong reward",
    ),
    "rows of two lengths": (
        (RETURN, f'{RETURN} | {{"more": jnp.zeros(2)}}'),
        "train returns the column more as float32[2]; expected an array [R], as int32[3"
        "]",
    ),
    "rows of what no table holds": (
        (RETURN, f'{RETURN} | {{"turn": 1j * rows["reward"][:3]}}'),
        "train returns the column turn as complex64[3]; expected numbers",
    ),
    "no rows": (
        (RETURN, "return {}"),
        "train returns dict; expected (state, rows)",
    ),
    "a state of another shape": (
        (RETURN, f"return state._replace(walk=jnp.zeros(7)), {ROWS}"),
        "train returns state.walk as float32[7]; expected float32[3], as it got",
    ),
    "a state of another type": (
        (RETURN, f"return state._replace(env_steps=jnp.float32(0)), {ROWS}"),
        "train returns state.env_steps as float32[]; expected int32[], as it got",
    ),
    "a state of another tree": (
        (RETURN, f"return state._replace(walk=(state.walk,)), {ROWS}"),
        "train returns another tree of state; expected that of init",
    ),
}
EVALUATED = {
    "evaluations that are no table": (
        (EVALUATION, "sign * jnp.sum(state.walk)"),
        "evaluate returns float32[]; expected {name: []}",
    ),
    "evaluations of what no table holds": (
        (EVALUATION, '{"key": state.key}'),
        "evaluate returns key as key<fry>[]; expected a number []",
    ),
    "evaluations that are no numbers": (
        (EVALUATION, '{"walk": state.walk}'),
        "evaluate returns walk as float32[3]; expected a number []",
    ),
}
RAISING = {
    "a field that is not declared static": (
        ("width: Annotated[int, Ge(1)] = structure()", "width: int"),
        "the program needs width before it is compiled; expected the field declared wit"
        "h structure()",
    ),
    "a length that is not declared static": (
        ("length=10", "length=config.nan_at"),
        "the program needs nan_at before it is compiled; expected the field declared wi"
        "th structure()",
    ),
    "an import that fails": (
        ("import gin\n", "import gin\nimport no_width\n"),
        "ModuleNotFoundError: No module named 'no_width'",
    ),
    "an exception": (
        ("env_steps = state.env_steps + 1", "env_steps = state.env_steps + None"),
        "TypeError: unsupported operand type(s) for +: 'DynamicJaxprTracer' and 'NoneTy"
        "pe'",
    ),
}


def request(name, sweeps=(), stop=None, **values):
    """Asks for the check of one point, which is an example, too."""
    return {
        "points": [(name, toy_variants.gin_text(name, **values))],
        "stops": [stop or {}],
        "examples": [0],
        "sweeps": list(sweeps),
    }


@pytest.mark.parametrize(("change", "said"), BROKEN.values(), ids=BROKEN)
def test_a_trainer_that_breaks_the_contract_is_named(tmp_path, change, said):
    """By one line: the trainer, what is wrong, and what was expected."""
    with toy_variants.importable(tmp_path, "toy_broken", change) as name:
        place, problem = check.answer(request(name))["problem"]
    assert problem == f"trainer toy_broken: {said}"
    assert place in (0, None)


@pytest.mark.parametrize(("change", "said"), EVALUATED.values(), ids=EVALUATED)
def test_an_evaluation_that_breaks_the_contract_is_named(tmp_path, change, said):
    evaluated = {"of": "toy_evaluated"}
    with toy_variants.importable(tmp_path, "toy_broken", change, **evaluated) as name:
        found = check.answer(request(name, evaluation_interval=20))["problem"]
    assert found == (None, f"trainer toy_broken: {said}")


@pytest.mark.parametrize(("change", "said"), RAISING.values(), ids=RAISING)
def test_an_error_in_a_trainer_names_its_line(tmp_path, change, said):
    """The deepest one in trainers/, and none of the platform or of JAX."""
    with toy_variants.importable(tmp_path, "toy_broken", change) as name:
        place, problem = check.answer(request(name))["problem"]
    lines = (tmp_path / "toy_broken.py").read_text().splitlines()
    where, said_of_it = problem.split(": ", 1)
    assert place == 0
    assert where.startswith("trainers/toy_broken.py, line ")
    number = int(where.rpartition(" ")[2])
    assert any(part in lines[number - 1] for part in ("width", "nan_at", "None"))
    assert said_of_it == said


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("jax_enable_x64", True, False),
        ("jax_default_prng_impl", "rbg", "threefry2x32"),
    ],
)
def test_an_option_that_all_trainers_share_is_set_by_none(
    tmp_path, option, value, expected
):
    """It would hold for the first trial of a process, and not for the second."""
    sets = ("import jax\n", f"import jax\njax.config.update({option!r}, {value!r})\n")
    try:
        with toy_variants.importable(tmp_path, "toy_setting", sets) as name:
            problem = check.answer(request(name))["problem"]
    finally:
        numerics.fix()
    assert problem == (
        0,
        f"trainer toy_setting: its import sets {option} = {value!r}; expected "
        f"{expected!r}, as all trainers of a process share it",
    )


def test_an_evaluation_needs_its_interval(tmp_path):
    changed = (
        "    evaluation_interval: Annotated[int, Ge(1)]  # Environment steps.\n",
        "",
    )
    with toy_variants.importable(
        tmp_path, "toy_broken", changed, of="toy_evaluated"
    ) as name:
        found = check.answer(request(name))["problem"]
    assert found == (
        None,
        "trainer toy_broken: it has evaluate, and no field evaluation_interval; "
        "expected the field",
    )


@pytest.mark.parametrize("field", ["seed", "rate"])
def test_a_source_that_depends_on_a_data_field_is_refused(tmp_path, field):
    """Else points that train together would all train on the first one's."""
    seeded = ("structure.slope", f"structure.{field}")
    with toy_variants.importable(
        tmp_path, "toy_seeded", seeded, of="toy_sourced"
    ) as name:
        found = check.answer(request(name, slope=2))["problem"]
    assert found == (
        None,
        f"trainer toy_seeded: open_source reads {field}; expected fields declared with "
        "structure() only, as points of a pack share one source",
    )


@pytest.mark.parametrize("interval", [1, 9])
def test_an_interval_shorter_than_a_chunk_is_refused(interval):
    """A chunk of the toy is ten steps; how many is found out without training."""
    found = check.answer(request("toy_evaluated", evaluation_interval=interval))[
        "problem"
    ]
    assert found == (
        0,
        f"evaluation_interval = {interval}: expected at least 10, the env_steps of one "
        "chunk",
    )


def test_a_chunk_whose_length_depends_on_the_training_is_not_computed(tmp_path):
    """Then only training can say, and does."""
    with toy_variants.importable(tmp_path, "toy_lucky", LUCKY) as name:
        assert counts(name) is None
    assert counts("toy_trainer") == (10, 5)


@pytest.mark.parametrize(
    ("row", "first"),
    [
        ("jnp.where(state.env_steps % 40 == 0, state.env_steps, 0)", 40),
        ("jnp.zeros((), jnp.int32)", None),
    ],
    ids=["after four chunks", "never"],
)
def test_the_first_row_is_looked_for_over_many_chunks(tmp_path, row, first):
    rows = f'{{"env_steps": {row}[None], "reward": state.walk[:1]}}'
    with toy_variants.importable(
        tmp_path, "toy_slow", (RETURN, f"return state, {rows}")
    ) as name:
        assert counts(name) == (10, first)


@pytest.mark.parametrize(
    ("stop", "problem"),
    [
        ({"env_steps": 5}, None),
        ({"hours": 0.001}, None),
        (
            {"env_steps": 4},
            "stop: env_steps=4: expected at least env_steps=5, where the first row "
            "stands",
        ),
    ],
    ids=["a row", "another axis", "no row"],
)
def test_a_stop_rule_without_a_row_is_refused(stop, problem):
    """Else the point would train to its end and have nothing to show."""
    found = check.answer(request("toy_trainer", stop=stop))["problem"]
    assert found == (problem and (0, problem))


@pytest.mark.parametrize("stop", [2**31 - 8, 2**31 - 7, 3e9])
def test_a_stop_rule_beyond_what_an_axis_counts_is_refused(stop):
    """Else the counter wraps round, and the point trains for ever or is lost."""
    found = check.answer(request("toy_trainer", stop={"env_steps": stop}))["problem"]
    most = 2**31 - 8  # In whole chunks of ten.
    assert found == (
        (
            0,
            f"stop: env_steps={int(stop):_}: expected at most env_steps={most:_}, as "
            "far as its int32 counts",
        )
        if stop > most
        else None
    )


def test_an_axis_that_depends_on_the_training_has_its_bound_too(tmp_path):
    """Its chunks are not known, and its integers are."""
    with toy_variants.importable(tmp_path, "toy_lucky", LUCKY) as name:
        asked = [request(name, stop={"env_steps": 2**31 - 1 + n}) for n in (0, 1)]
        problems = [check.answer(one)["problem"] for one in asked]
    assert [problem is None for problem in problems] == [True, False]


def counts(name):
    return tracing.outline(*binding.bind(name, toy_variants.gin_text(name))).counts


def sweep(**named):
    """A sweep of the evaluated toy that names what it has, but for some."""
    text = toy_variants.gin_text("toy_evaluated", evaluation_interval=20)
    columns = {
        "select.metric": "validation_reward",
        "select.test": "test_reward",
        "measures": "env_steps_per_second",
        "measures, too": "peak_memory_gib",
        "curves, metric": "reward",
        "curves, to": "training_seconds",
        "claims, metric": "env_steps",
        "claims, minus": "hours",
    }
    axes = {"stop": named.pop("stop", "env_steps"), "select.budgets": "hours"}
    part = {"name": "mine", "trainer": "toy_evaluated", "examples": [text]}
    return part | {"axes": [*axes.items()], "columns": [*(columns | named).items()]}


def problem_of(**named):
    asked = request("toy_evaluated", [sweep(**named)], evaluation_interval=20)
    return check.answer(asked)["problem"]


def test_a_sweep_may_name_every_column_and_axis_that_there_is():
    assert problem_of() is None


@pytest.mark.parametrize(
    ("where", "column", "expected"),
    [
        ("select.metric", "val_reward", "did you mean validation_reward?"),
        ("select.metric", "test_rewards", "did you mean reward?"),
        ("select.test", "validation_reward", "expected one of: test_reward"),
        ("curves, metric", "test_reward", "did you mean reward?"),
        (
            "curves, to",
            "loss",
            "expected one of: env_steps, env_steps_per_second, ",
        ),
        ("measures", "hours_per_second", "did you mean env_steps_per_second?"),
        ("claims, metric", "rewrad", "did you mean reward?"),
        ("claims, minus", "rewrad", "did you mean reward?"),
    ],
)
def test_a_column_that_the_trainer_lacks_is_named(where, column, expected):
    """Else its tables would be empty, after hours of training."""
    place, problem = problem_of(**{where: column})
    assert place is None
    said = f"sweep mine, {where}: toy_evaluated has no column '{column}'; {expected}"
    assert problem.startswith(said)


def test_an_axis_that_the_trainer_lacks_is_named():
    assert problem_of(stop="env_step") == (
        None,
        "sweep mine, stop: toy_evaluated has no axis 'env_step'; did you mean env_steps"
        "?",
    )
