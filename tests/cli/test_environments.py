"""Commands in environments that are poorer than ours."""

import io
import json
import os
import pathlib
import subprocess
import sys

import pytest
import toy_checkout

from bmg_sweeps import __main__, paths
from bmg_sweeps.records import files

COMMANDS = {
    "list": ["list"],
    "show": ["show", "figure_3", "--scale", "lite"],
    "status": ["status", "figure_3"],
    "report": ["report", "figure_3"],
    "help": ["launch", "--help"],
}


def with_storage(words, folder):
    """Of the test's own; help takes none."""
    return words if "--help" in words else [*words, "--storage", str(folder / "runs")]


def run(arguments, given="", **environment):
    """Runs Python in a process; returns what it printed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        input=given.encode(),
        cwd=paths.ROOT,
        env=os.environ | environment,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_output_that_cannot_write_every_letter(tmp_path, monkeypatch, words, encoding):
    """What it cannot write is a question mark, and ends no command."""
    output, errors = (io.TextIOWrapper(io.BytesIO(), encoding) for _ in range(2))
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(sys, "stderr", errors)
    status = __main__.main(with_storage(words, tmp_path))
    monkeypatch.undo()
    for stream in (output, errors):
        stream.flush()
    assert (status, errors.buffer.getvalue()) == (0, b"")
    shown = output.buffer.getvalue().decode(encoding)
    assert shown
    if words == ["list"]:
        assert "with Q(?)" in shown


def test_output_of_a_process_that_cannot_write_every_letter(tmp_path):
    """The streams are those of Python's own start."""
    words = ["-m", "bmg_sweeps", *with_storage(["list"], tmp_path)]
    assert b"with Q(?)" in run(words, PYTHONIOENCODING="ascii")


ALL = """
import json, sys
from bmg_sweeps import __main__
sys.exit(any([__main__.main(words) for words in json.load(sys.stdin)]))
"""


def test_python_that_keeps_no_docstrings(tmp_path):
    """All commands in one process, which takes a second to start."""
    commands = [with_storage(words, tmp_path) for words in COMMANDS.values()]
    assert run(["-c", ALL], json.dumps(commands), PYTHONOPTIMIZE="2")


def test_without_docstrings_points_are_checked_all_the_same(tmp_path):
    """By a process that has them: the libraries of trainers need theirs."""
    words = with_storage(["launch", "figure_3", "--dry-run"], tmp_path)
    shown = run(["-m", "bmg_sweeps", *words], PYTHONOPTIMIZE="2")
    assert b"nothing is wrong" in shown


def test_a_user_without_a_home(tmp_path, monkeypatch):
    """As in a container whose user has no entry: HOME is not set, nor found out."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(pathlib.Path, "home", no_home)
    assert __main__.main(with_storage(["status", "figure_3"], tmp_path)) == 0
    assert paths.cache() == paths.own_temporary() / "bmg_sweeps"


@pytest.fixture
def read_only(tmp_path, monkeypatch):
    """A storage that may only be read; root may write where modes forbid it."""
    storage = tmp_path / "runs"
    storage.mkdir()
    monkeypatch.chdir(tmp_path)
    replace = files.Storage.replace

    def refuse(self, data, *parts):
        if self.root == str(storage):
            raise files.StorageError("Read-only file system")
        replace(self, data, *parts)

    create = files.Storage.create

    def refuse_new(self, data, *parts):
        if self.root == str(storage):
            raise files.StorageError("Read-only file system")
        create(self, data, *parts)

    monkeypatch.setattr(files.Storage, "replace", refuse)
    monkeypatch.setattr(files.Storage, "create", refuse_new)
    return storage


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "html"])
def test_a_report_of_a_storage_that_may_only_be_read(read_only, capsys, form):
    """Tables go to the terminal, and files to where the user is."""
    words = ["report", "figure_3", "--format", form, "--storage", str(read_only)]
    assert __main__.main(words) == 0
    suffix = ".html" if form == "html" else ".png"
    assert (pathlib.Path("reports") / f"figure_3-smoke{suffix}").is_file()
    assert list(read_only.iterdir()) == []
    if form == "html":
        assert "Report: ./reports/figure_3-smoke.html" in capsys.readouterr().out


def test_status_of_a_storage_that_may_only_be_read(read_only):
    assert __main__.main(["status", "figure_3", "--storage", str(read_only)]) == 0


def test_another_package_of_the_name_trainers_is_not_taken(tmp_path):
    """`run` imports trainers in its own process, wherever it is typed."""
    folder = toy_checkout.make(tmp_path / "c", commit_seconds=0.0)
    toy_checkout.write_sweep(folder, "product(seed=(0,))", 60)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "trainers").mkdir(parents=True)
    (elsewhere / "trainers" / "__init__.py").write_text("raise SystemExit('foreign')")
    environment = os.environ | {"PYTHONPATH": str(folder), "HOME": str(folder)}
    any_point = ""  # There is one, and its id begins so.
    done = subprocess.run(
        [sys.executable, "-m", "bmg_sweeps", "run", "toy", "--point", any_point],
        cwd=elsewhere,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "done" in done.stdout


def test_outside_of_its_environment_it_says_where_that_is():
    """As typed in a new shell; -S leaves out what is installed."""
    done = subprocess.run(
        [sys.executable, "-S", "-m", "bmg_sweeps", "list"],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert line.endswith("source .venv/bin/activate")
