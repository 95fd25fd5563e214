"""What a shell is told that could follow, and that bash asks as it should."""

import subprocess
import sys

import pytest

from bmg_sweeps import __main__, paths
from bmg_sweeps.cli import completion
from bmg_sweeps.sweep import loading


def asked(monkeypatch, capsys, *words):
    """What bash is told about the last of some words."""
    monkeypatch.setenv(completion.VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["bmg", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert __main__.main([]) == 0
    lines = capsys.readouterr().out.split()
    return [line.partition(",")[2] for line in lines]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["st"], ["status"]),
        (["show", "figure_1"], [f"figure_{i}" for i in range(10, 20)]),
        (["launch", "figure_2", "tab"], [f"table_{i}" for i in (3, 5, 6, 7, 8, 9)]),
        (["show", "--sc"], ["--scale"]),
        (["show", "figure_2", "--scale", "p"], ["paper"]),
        (["show", "two_colors_check", "--scale", ""], ["lite"]),
        (["show", "figure_2", "--where", "inner"], ["inner_steps="]),
        (["launch", "table_7", "figure_3", "--where", "data"], ["data_set="]),
        (
            ["show", "figure_2", "--gin", "two_colors_actor_critic.disc"],
            ["two_colors_actor_critic.discount="],
        ),
        (["report", "figure_2", "--format", "m"], ["markdown"]),
        (["diff", "figure_2", "figure_1"], [f"figure_{i}" for i in range(10, 20)]),
        (["diff", "figure_2", "al"], []),
        (["show", "nosuch", "--where", "inner"], []),
        (["show", "sweeps/fi"], ["sweeps/fi"]),  # A path, which the shell completes.
    ],
)
def test_what_could_follow(monkeypatch, capsys, words, expected):
    """Commands, sweeps, options, scales and fields."""
    assert asked(monkeypatch, capsys, *words) == expected


def test_a_sweep_is_completed_to_all_of_them(monkeypatch, capsys):
    """Or to every one of them."""
    expected = [*loading.sweep_names(), "all"]
    assert asked(monkeypatch, capsys, "report", "") == expected


def test_a_point_is_completed_to_those_of_the_storage(monkeypatch, capsys, tmp_path):
    """Of any trainer; no other folder is one."""
    monkeypatch.chdir(tmp_path)
    for folder in ("a/abc000000000", "b/abc111111111", "b/abd000000000", "b/abcd"):
        (tmp_path / "runs" / folder).mkdir(parents=True)
    expected = ["abc000000000", "abc111111111"]
    assert asked(monkeypatch, capsys, "diff", "abc") == expected
    there = asked(monkeypatch, capsys, "diff", "--storage", "none", "abc")
    assert there == []


@pytest.mark.parametrize("shell", completion.SCRIPTS)
def test_a_script_names_this_python(shell, capsys):
    """So that it works wherever the environment has not been activated."""
    assert __main__.main(["completion", shell]) == 0
    output = capsys.readouterr().out
    assert output.count(f"{sys.executable} -m bmg_sweeps") == 2
    assert "PYTHON" not in output


def test_bash_completes():
    """The function that the script defines, as bash calls it."""
    code = f"""
        eval "$({sys.executable} -m bmg_sweeps completion bash)"
        COMP_WORDS=(bmg show figure_2 --where inner); COMP_CWORD=4
        _bmg_completion
        printf '%s\\n' "${{COMPREPLY[@]}}"
        COMP_WORDS=(bmg show figure_1); COMP_CWORD=2
        _bmg_completion
        printf '%s\\n' "${{COMPREPLY[@]}}"
        bmg nosuch
    """
    done = subprocess.run(
        ["bash", "-c", code],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    figures = [f"figure_{i}" for i in range(10, 20)]
    assert done.stdout.split() == ["inner_steps=", *figures]
    assert done.stderr.startswith("error: command 'nosuch'")
