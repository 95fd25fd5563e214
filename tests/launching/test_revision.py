"""Which code made a point: the hash of what its trainer computes by, and the commit."""

import io
import subprocess
import zipfile

import pytest

from bmg_sweeps import paths
from bmg_sweeps.launching import planning, revision
from bmg_sweeps.records import attempts, store
from bmg_sweeps.sweep import choices, grid
from bmg_sweeps.sweep.point import Point

FILES = {
    "trainers/one.py": "from trainers import _shared\nimport bmg_sweeps.core.sums\n",
    "trainers/two.py": "import bmg_sweeps.errors\n",
    "trainers/_shared.py": "def f():\n    from bmg_sweeps.environments import deep\n",
    "bmg_sweeps/__init__.py": "",
    "bmg_sweeps/errors.py": "",
    "bmg_sweeps/core/__init__.py": "",
    "bmg_sweeps/core/sums.py": "import numpy\n",
    "bmg_sweeps/environments/deep/__init__.py": "from bmg_sweeps.environments.deep "
    "import game\n",
    "bmg_sweeps/environments/deep/game.py": "",
    "trainers/three.py": "from . import _near\nfrom ._deep.inner import f\n",
    "trainers/_near.py": "import conf\n",
    "trainers/_deep/__init__.py": "",
    "trainers/_deep/inner.py": "from .. import _above\nimport mylib.losses\n",
    "trainers/_above.py": "",
    "conf.py": "",
    "mylib/__init__.py": "",
    "mylib/losses.py": "from .sums import f\n",
    "mylib/sums.py": "",
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout of three trainers, which share nothing that computes."""
    root = tmp_path / "checkout"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(paths, "ROOT", root)
    monkeypatch.setattr(paths, "TRAINERS", root / "trainers")
    return root


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("trainers/one.py", {"one"}),
        ("trainers/_shared.py", {"one"}),
        ("bmg_sweeps/core/sums.py", {"one"}),
        ("bmg_sweeps/environments/deep/game.py", {"one"}),
        ("bmg_sweeps/environments/deep/__init__.py", {"one"}),
        ("trainers/two.py", {"two"}),
        ("bmg_sweeps/errors.py", set()),
        ("trainers/_near.py", {"three"}),
        ("trainers/_deep/__init__.py", {"three"}),
        ("trainers/_deep/inner.py", {"three"}),
        ("trainers/_above.py", {"three"}),
        ("conf.py", {"three"}),
        ("mylib/__init__.py", {"three"}),
        ("mylib/sums.py", {"three"}),
    ],
)
def test_a_trainers_hash_is_of_what_it_imports(checkout, name, changed):
    """So a comment in one trainer says nothing of another's points."""
    before = revision.fingerprints(["one", "two", "three"])
    (checkout / name).write_text(FILES[name] + "# A comment.\n")
    after = revision.fingerprints(["one", "two", "three"])
    assert {
        trainer for trainer in before if before[trainer] != after[trainer]
    } == changed


def git(*arguments, at):
    by = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", at, *by, *arguments], check=True, capture_output=True)


def test_the_commit_is_that_of_the_checkout(checkout, tmp_path, monkeypatch):
    """And not of a repository that it lies in, or that a hook's environment names."""
    git("init", at=tmp_path)
    git("commit", "--allow-empty", "-m", "outer", at=tmp_path)
    assert revision.revision() == "unknown"
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(checkout))
    assert revision.revision() == "unknown"
    git("init", at=checkout)
    git("add", ".", at=checkout)
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_WORK_TREE")
    git("commit", "-m", "inner", at=checkout)
    commit = revision.revision()
    assert len(commit) == 12
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    assert revision.revision() == commit
    for name in ("bmg_sweeps-7.log", "results/table.csv", "reports/page.html"):
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text("")
    assert revision.revision() == commit
    (checkout / "trainers" / "two.py").write_text("")
    assert revision.revision() == f"{commit}+dirty"
    git("checkout", ".", at=checkout)
    (checkout / "mylib" / "new.py").write_text("")
    assert revision.revision() == f"{commit}+dirty"


@pytest.mark.parametrize(
    ("made_by", "number"),
    [
        (["today"], 0),
        (["before"], 1),
        (["before", "today"], 1),
        ([None], 0),  # Nothing was noted.
    ],
)
def test_points_by_other_code_are_counted(checkout, storage, made_by, number):
    """Also those that began under other code, and one that is done."""
    today = revision.fingerprints(["one"])["one"]
    p = Point("one", {"seed": 0})
    for i, code in enumerate(made_by):
        noted = {"code": today if code == "today" else code}
        if i:
            noted["codes"] = [*made_by[:i], noted["code"]]
        attempts.begin(storage, store.read(storage, "one", p.id)).commit(
            progress={"env_steps": 10 * i + 10, "hours": 0.1},
            rows={"env_steps": [10 * i + 10]},
            provenance=noted,
            release=True,
        )
    rule = grid.Select(metric="r", mode="max", budgets={"env_steps": 1})
    sweep = grid.Sweep(title="One", trainer="one", scales={}, select=rule, methods={})
    chosen = choices.Chosen("one", sweep, (p,), {"env_steps": 10})
    assert planning.plan(storage, [chosen]).num_by_other_code == number


def test_the_sources_are_kept_once_for_each_hash(checkout, storage, monkeypatch):
    """As they were at the first launch of the hash; nothing but sources is kept."""
    (checkout / "trainers" / "secret.env").write_text("TOKEN=1")
    revision.keep(storage, ["abc", "def"])
    assert sorted(storage.sizes(".code")) == ["abc.zip", "def.zip"]
    assert storage.read(".code", "abc.zip") == storage.read(".code", "def.zip")
    with zipfile.ZipFile(io.BytesIO(storage.read(".code", "abc.zip"))) as archive:
        assert archive.namelist() == sorted(FILES)
        assert archive.read("trainers/two.py").decode() == FILES["trainers/two.py"]
    (checkout / "trainers" / "two.py").write_text("")
    before = storage.read(".code", "abc.zip")
    revision.keep(storage, ["abc"])
    assert storage.read(".code", "abc.zip") == before
