"""The W&B run of a sweep, and its workspace: numbers of the records, made by code."""

import json
import pathlib
import types

import pytest
import tracked

from bmg_sweeps import __main__, errors, tracking
from bmg_sweeps.analysis import results
from bmg_sweeps.records import files
from bmg_sweeps.reporting import report
from bmg_sweeps.sweep import choices
from bmg_sweeps.tracking import points, runs, sweeps, workspace

BUDGETS = [40_000.0 * (i + 1) for i in range(10)]
NAME = "sweep-figure_2-smoke-"


@pytest.fixture(autouse=True)
def _machine(tmp_path, monkeypatch):
    tracked.plant(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Figure 2 at its smallest, done but for one point that failed, offline."""
    folder = tmp_path_factory.mktemp("exported")
    with pytest.MonkeyPatch.context() as monkeypatch:
        home = tracked.plant(folder, monkeypatch)
        storage = files.open_storage(str(home / "runs"))
        chosen = tracked.figure_2()
        _train(storage, chosen)
        line = tracking.export(storage, [chosen], "offline").line
    return types.SimpleNamespace(storage=storage, line=line, home=home, chosen=chosen)


@pytest.fixture
def run(exported):
    """What W&B's own reader finds in the sweep's run."""
    return tracked.inspect(exported.storage, _run_id(exported.storage))


def test_a_sweep_is_one_run_beside_those_of_its_points(exported):
    ids = tracked.folders(exported.storage)
    assert len([i for i in ids if i.startswith(NAME)]) == 1
    assert len(ids) == len(exported.chosen.points) + 1
    assert exported.line.startswith(f"W&B: {len(ids)} offline runs; ")


def test_a_run_is_described_by_its_sweep(run):
    (found,) = tracked.of_type(run, "run")
    assert found["run_group"] == "figure_2"
    assert found["job_type"] == "sweep"
    assert found["tags"] == ["figure_2", "figure_2-smoke"]
    assert found["notes"].splitlines() == [
        "python -m bmg_sweeps report figure_2 --scale smoke",
        "python -m bmg_sweeps launch figure_2 --scale smoke",
    ]
    config = found["config"]["update"]
    assert config["axes"]["seed"] == [0, 1]
    assert config["axes"]["entropy_weight"] == [0.1, 0.2]
    assert "discount" not in config["axes"]
    assert config["stop"] == {"env_steps": 400_000}
    assert config["select"]["budgets"] == {"env_steps": BUDGETS}
    assert config["methods"]["fixed"]["tuned"] == {"entropy_weight": "ε"}


def test_its_rows_are_the_best_of_each_method_at_each_budget(exported, run):
    """Of the configurations of a method, the one with the larger gain is best."""
    history = [one["item"] for one in tracked.of_type(run, "history")]
    rows = [item for item in history if "env_steps" in item]
    assert [item["env_steps"] for item in rows] == BUDGETS
    best = results.load(exported.storage, exported.chosen).first.best
    found = {(s.budget, s.method): s.estimate for s in best}
    assert len(found) == 40  # Four methods.
    for item in rows:
        for method, name in (
            ("fixed", "fixed"),
            ("MG", "MG"),
            ("MG + entropy", "MG_entropy"),
            ("BMG", "BMG"),
        ):
            estimate = found[item["env_steps"], method]
            key = f"best/env_steps/{name}"
            assert item[key] == estimate.mean
            assert item[f"{key}_deviation"] == pytest.approx(estimate.deviation)
    # By hand: seeds gain 3 and 4 a row; at 40,000 steps they have four rows, 0 to 3.
    assert rows[0]["best/env_steps/fixed"] == 3 * 3.5


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("fixed ε", "fixed_epsilon"),
        ("BMG K=1, L=7", "BMG_K_1_L_7"),
        ("α → β", "alpha_arrow_beta"),
    ],
)
def test_names_are_letters_digits_and_underscores(text, name):
    assert runs.name_of(text) == name


def test_its_metrics_are_drawn_over_the_budgets(run):
    metrics = tracked.of_type(run, "metric")
    axes = {one["name"]: one.get("step_metric") for one in metrics}
    for over in ("configurations", "device_hours"):
        stem = f"expected_best/{over}"
        assert axes.pop(stem) is None
        assert axes.pop(f"{stem}/fixed") == stem
        assert axes.pop(f"{stem}/fixed_plain") == stem
        axes = {n: axis for n, axis in axes.items() if not n.startswith(stem)}
    assert axes.pop("env_steps") is None
    assert set(axes.values()) == {"env_steps"}
    assert all(name.startswith("best/env_steps/") for name in axes)
    assert len(axes) == 8 + 2


def test_its_tables_are_those_of_the_report(exported, run):
    summary = tracked.summary(run)
    for table in report.make(results.load(exported.storage, exported.chosen)):
        data = _table(exported.storage, summary, *table.key)
        assert len(data["data"]) == len(table.rows), table.title
    best = _table(exported.storage, summary, "best", "env_steps")
    column = best["columns"].index
    last = [row for row in best["data"] if row[column("env_steps")] == 400_000]
    first = last[0]
    assert first[column("method")] == "fixed"
    assert first[column("total_reward")] == 39 * 3.5
    assert first[column("total_reward ±")] == pytest.approx(39 * 0.5**0.5)
    left_out = _table(exported.storage, summary, "left_out")
    (row,) = left_out["data"]
    assert "no file ~/x" in row[-1]
    assert summary["points/failed"] == 1


def test_published_numbers_stand_beside_ours(tmp_path):
    where = {"seed": "0", "update_kind": "fixed_entropy_weight"}
    chosen = choices.choose("figure_2", choices.Choice(scale="paper", where=where))
    storage = files.open_storage(str(tmp_path / "runs"))
    for p in chosen.points[:2]:
        tracked.commit(storage, p, 2, progress=10_000_000)
    tracking.export(storage, [chosen], "offline")
    run = tracked.inspect(storage, _run_id(storage, "sweep-figure_2-paper-"))
    best = _table(storage, tracked.summary(run), "best", "env_steps")
    (row,) = [r for r in best["data"] if r[0] == 10_000_000]
    cells = dict(zip(best["columns"], row, strict=True))
    assert (cells["published"], cells["published ±"]) == (1.24e6, 0.09e6)


def test_its_artifact_has_the_best_configurations(exported, run):
    (artifact,) = _artifacts(run, "configurations")
    assert artifact["name"] == "best-figure_2-smoke"
    texts = _contents(exported.storage, artifact)
    best = json.loads(texts["best.json"])
    assert len(best) == 40
    last = best[-4]
    assert last["method"] == "fixed"
    assert last["budget"] == {"env_steps": 400_000.0}
    assert last["mean"] == 39 * 3.5
    assert last["configuration"]["entropy_weight"] == 0.2
    assert len(texts) == 41
    for one in best:
        budget = one["budget"]["env_steps"]
        gin = texts[f"env_steps/{budget:g}/{runs.name_of(one['method'])}.gin"]
        for field in ("entropy_weight", "update_kind", "meta_entropy_weight"):
            value = one["configuration"][field]
            assert f"two_colors_actor_critic.{field} = {value!r}\n" in gin


def test_its_files_are_found_from_the_folder_of_runs(exported, run, monkeypatch):
    """`wandb sync .` there finds what is staged, also when the folder was moved."""
    for kind in ("configurations", "run_table"):
        for artifact in _artifacts(run, kind):
            for entry in artifact["manifest"]["contents"]:
                path = pathlib.Path(entry["local_path"])
                assert not path.is_absolute()
                folder = pathlib.Path(exported.storage.root, "wandb")
                assert (folder / path).stat().st_size == int(entry.get("size", 0))
    monkeypatch.chdir(pathlib.Path(exported.storage.root, "wandb"))
    number = len(tracked.folders(exported.storage))
    assert f"Would sync {number} run(s)" in tracked.wandb("sync", ".", "--dry-run")


def test_nothing_of_the_machine_is_in_the_files(exported):
    folder = pathlib.Path(exported.storage.root, "wandb")
    tracked.assert_nothing_of_the_machine(folder, exported.home)
    kinds = {path.suffix for path in folder.rglob("*") if path.is_file()}
    assert kinds == {".wandb", ".json", ""}  # The last: what is staged; the identity.


def test_a_second_export_changes_nothing(exported, monkeypatch):
    monkeypatch.setenv("HOME", str(exported.home))
    before = tracked.contents(exported.storage)
    line = tracking.export(exported.storage, [exported.chosen], "offline").line
    assert line == exported.line
    assert tracked.contents(exported.storage) == before


def test_it_is_replaced_when_a_record_has_changed(tmp_path):
    storage, chosen = files.open_storage(str(tmp_path / "runs")), tracked.figure_2()
    _train(storage, chosen)
    tracking.export(storage, [chosen], "offline")
    run_id, number = _run_id(storage), len(tracked.folders(storage))
    tracked.commit(storage, chosen.points[0], 40, gain=100.0)
    tracking.export(storage, [chosen], "offline")
    assert _run_id(storage) == run_id
    assert len(tracked.folders(storage)) == number
    run = tracked.inspect(storage, run_id)
    rows = [one["item"] for one in tracked.of_type(run, "history")]
    rows = [item for item in rows if "env_steps" in item]
    assert len(rows) == 10
    assert rows[-1]["best/env_steps/fixed"] == 39 * (100 + 2) / 2
    staged = pathlib.Path(storage.root, "wandb").glob(f"*-{run_id}*/artifacts/staging")
    assert len(list(staged)) == 1


def test_another_storage_or_choice_is_another_run(tmp_path):
    chosen = tracked.figure_2()
    some = choices.choose("figure_2", choices.Choice(where={"seed": "0"}))
    first = files.open_storage(str(tmp_path / "first"))
    second = files.open_storage(str(tmp_path / "second"))
    ids = [sweeps.run_id(s, c) for s in (first, second) for c in (chosen, some)]
    assert len(set(ids)) == 4
    assert ids[0] == sweeps.run_id(first, chosen)


def test_without_budgets_there_is_no_run(tmp_path):
    storage = files.open_storage(str(tmp_path / "runs"))
    chosen = choices.choose("figure_2", choices.Choice(stop={"hours": 1.0}))
    tracked.commit(storage, chosen.points[0], 3)
    line = tracking.export(storage, [chosen], "offline").line
    assert "not exported" not in line
    assert tracked.folders(storage) == [chosen.points[0].id]


def test_the_workspace_shows_what_the_runs_have(exported):
    chosen = exported.chosen
    made = workspace.workspace(chosen, "someone", "bmg-sweeps")
    spec = made._to_model().spec.model_dump(by_alias=True, exclude_none=True)
    bank = spec["section"]["panelBankConfig"]["sections"]
    assert [section["name"] for section in bank] == [
        "Learning curves by configuration",
        "Best per budget",
        "Grid",
        "Failures",
    ]
    names = _logged(exported) | {"entropy_weight"}  # Which the test's rows lack.
    for section in bank:
        for panel in section["panels"]:
            config = panel["config"]
            for name in [*config.get("metrics", ()), config.get("xAxis")]:
                assert name is None or name in names, name
    curves, best, grid, _ = (section["panels"] for section in bank)
    assert [p["config"]["metrics"] for p in curves] == [
        ["total_reward"],
        ["entropy_weight"],
    ]
    assert {p["config"]["xAxis"] for p in curves} == {"env_steps"}
    assert {p["config"]["groupBy"] for p in curves} == {"group"}
    assert best[0]["config"]["metrics"] == [
        f"best/env_steps/{name}" for name in ("fixed", "MG", "MG_entropy", "BMG")
    ]
    (columns,) = (p["config"]["columns"] for p in grid)
    assert [c["accessor"] for c in columns] == [
        "config:method.value",
        "config:entropy_weight.value",
        "config:inner_steps.value",
        "config:meta_learning_rate.value",
        "config:target_steps.value",
        "summary:total_reward",
    ]


def test_the_workspace_shows_the_sweeps_runs_failures_first(exported):
    made = workspace.workspace(exported.chosen, "someone", "bmg-sweeps")
    spec = made._to_model().spec.model_dump(by_alias=True, exclude_none=True)
    (runset,) = spec["section"]["runSets"]
    assert '"figure_2-smoke"' in json.dumps(runset["filters"])
    assert '"tags"' in json.dumps(runset["filters"])
    (key,) = runset["sort"]["keys"]
    assert key == {"key": {"section": "summary", "name": "failure"}, "ascending": False}
    assert "summary:status" in runset["runFeed"]["columnPinned"]


def test_validations_have_their_own_axis_in_the_workspace():
    assert points.key("validation_reward") == "validation/reward"
    assert points.key("test_reward") == "test/reward"
    assert points.key("total_reward") == "total_reward"


def test_a_workspace_needs_a_login(exported, monkeypatch):
    monkeypatch.delenv("WANDB_API_KEY")
    with pytest.raises(errors.UserError, match="expected a W&B login"):
        tracking.save_workspace(exported.storage, [exported.chosen])


def test_a_workspace_is_saved_in_place_of_the_former(exported, monkeypatch):
    import wandb_workspaces.workspaces as ws

    views = {}

    def save(self):
        self._internal_name = self._internal_name or f"nw-view{len(views)}-v"
        views[self._internal_name] = self.name

    monkeypatch.setenv("WANDB_ENTITY", "someone")
    monkeypatch.setattr(ws.Workspace, "save", save)
    url = property(lambda self: f"https://server/{self._internal_name}")
    monkeypatch.setattr(ws.Workspace, "url", url)

    def from_url(url):
        found = ws.Workspace(entity="someone", project="bmg-sweeps")
        found._internal_name = url.rpartition("/")[2]
        return found

    monkeypatch.setattr(ws.Workspace, "from_url", from_url)
    for _ in range(2):
        (line,) = tracking.save_workspace(exported.storage, [exported.chosen])
        assert line == "W&B workspace of figure_2: https://server/nw-view0-v"
    assert views == {"nw-view0-v": "figure_2 (smoke)"}


def test_the_command_makes_all_runs_again(exported, monkeypatch, capsys):
    """Also those whose memory was deleted; and says where they are."""
    monkeypatch.setenv("HOME", str(exported.home))
    sweep = tracked.figure_2().sweep
    monkeypatch.setattr(choices.loading, "load_sweep", lambda name: sweep)
    before = tracked.folders(exported.storage)
    for path in pathlib.Path(exported.storage.root, "wandb", "exported").iterdir():
        path.unlink()
    command = ["track", "figure_2", "--storage", exported.storage.uri]
    assert __main__.main([*command, "--wandb", "offline"]) == 0
    assert capsys.readouterr().out.strip() == exported.line
    assert tracked.folders(exported.storage) == before
    monkeypatch.delenv("WANDB_API_KEY")
    assert __main__.main([*command, "--workspace"]) == 2
    captured = capsys.readouterr()
    assert captured.out.strip() == exported.line
    assert captured.err.count("\n") == 1
    assert "wandb login" in captured.err


def _train(storage, chosen):
    """Seeds gain 1 and 2 a row, twice more with the second ε; the last point failed."""
    *done, last = chosen.points
    for p in done:
        gain = 1 + p.values["seed"] + 2 * (p.values["entropy_weight"] == 0.2)
        tracked.commit(storage, p, 40, gain=gain, evaluations=2)
    failure = tracked.failure("failed", f"no file {pathlib.Path.home()}/x")
    tracked.commit(storage, last, 3, failure=failure)


def _run_id(storage, start=NAME):
    (found,) = [i for i in tracked.folders(storage) if i.startswith(start)]
    return found


def _artifacts(run, kind):
    return [one for one in tracked.of_type(run, "artifact") if one["type"] == kind]


def _contents(storage, artifact):
    folder = pathlib.Path(storage.root, "wandb")
    return {
        entry["path"]: (folder / entry["local_path"]).read_text()
        for entry in artifact["manifest"]["contents"]
    }


def _table(storage, summary, *key):
    """Reads a table by its kind, axis and field."""
    path = summary[f"tables/{'_'.join(filter(None, key))}.path"]
    (file,) = pathlib.Path(storage.root, "wandb").glob(f"*/files/{path}")
    return json.loads(file.read_text())


def _logged(exported):
    """All keys of the exported runs' rows and summaries."""
    names = set()
    for run_id in tracked.folders(exported.storage):
        records = tracked.inspect(exported.storage, run_id)
        names |= tracked.summary(records).keys()
        for one in tracked.of_type(records, "history"):
            names |= one["item"].keys()
    return names
