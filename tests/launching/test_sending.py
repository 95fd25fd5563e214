"""What workers get is what was checked: by a list of our own, and not git's."""

import os
import pathlib
import subprocess
import sys

import pytest

from bmg_sweeps import errors, paths
from bmg_sweeps.launching import sending, temporary
from bmg_sweeps.records import locks

FILES = {
    ".gitignore": "trainers/mine.py\nmylib/\n*.html\n",
    "trainers/mine.py": "import mylib",
    "trainers/.hidden/x.py": "",
    "trainers/__pycache__/mine.pyc": "",
    "mylib/__init__.py": "",
    "mylib/table.csv": "1,2",
    "bmg_sweeps/templates/page.html": "",
    "gin/mine.gin": "",
    "conf.py": "",
    "data/images.npz": "",
    "runs/mine/0/rows.json": "",
    ".venv/lib/x.py": "",
}
SENT = {
    "trainers/mine.py",
    "mylib/__init__.py",
    "mylib/table.csv",
    "bmg_sweeps/templates/page.html",
    "gin/mine.gin",
    "conf.py",
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    root = tmp_path / "checkout"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(paths, "ROOT", root)
    return root


def test_code_is_sent_whatever_git_ignores(checkout, tmp_path):
    """A trainer that is not to be committed, too; and no data, records or packages."""
    sending.copy(tmp_path / "sent")
    found = [p for p in (tmp_path / "sent").rglob("*") if p.is_file()]
    assert {str(p.relative_to(tmp_path / "sent")) for p in found} == SENT


def test_too_much_is_refused_by_the_name_of_the_largest_file(checkout, tmp_path):
    """Beside the code it does no harm; within it Ray would refuse it, at length."""
    for name in ("data/images.npz", "trainers/images.npz"):
        with open(checkout / name, "wb") as file:
            file.truncate(620 << 20)
    with pytest.raises(errors.UserError, match=r"620 MiB .* in trainers/images.npz;"):
        sending.copy(tmp_path / "sent")
    assert not (tmp_path / "sent").exists()
    (checkout / "trainers" / "images.npz").unlink()
    sending.copy(tmp_path / "sent")


def test_a_folder_that_is_being_made_is_nobodys_to_delete(tmp_path, monkeypatch):
    """Another launch may begin before its lock is there, or is held."""
    hold = locks.hold

    def another_begins(path):
        monkeypatch.setattr(locks, "hold", hold)
        path.touch()
        with temporary.folder("bmg_", str(tmp_path)):
            pass
        path.unlink()
        return hold(path)

    monkeypatch.setattr(locks, "hold", another_begins)
    with temporary.folder("bmg_", str(tmp_path)) as made:
        assert [p.name for p in tmp_path.iterdir()] == [os.path.basename(made)]
        assert os.path.basename(made).startswith("bmg_")
        assert locks.is_held(pathlib.Path(made, ".held"))
    assert not [*tmp_path.iterdir()]


def test_folders_of_dead_launches_are_deleted_and_no_others(tmp_path):
    """Those that live keep theirs, and what has no lock was made by somebody else."""
    code = (
        "import sys; from bmg_sweeps.launching import temporary\n"
        "with temporary.folder('bmg_', sys.argv[1]) as made:\n"
        "    print(made, flush=True); sys.stdin.readline()\n"
    )
    (tmp_path / "bmg_others").mkdir()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    dead, lives = (pathlib.Path(p.stdout.readline().strip()) for p in processes)
    processes[0].kill()
    processes[0].wait()
    assert dead.is_dir()
    with temporary.folder("bmg_", str(tmp_path)) as made:
        there = {p.name for p in tmp_path.iterdir()}
        assert there == {lives.name, os.path.basename(made), "bmg_others"}
    processes[1].communicate("\n", timeout=30)
    processes[0].communicate()
    assert {p.name for p in tmp_path.iterdir()} == {"bmg_others"}
