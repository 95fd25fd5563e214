"""What the README, CONTRIBUTING and the pages of docs/ show runs as it stands there."""

import os
import re
import shlex
import subprocess
import sys

import checked_here
import command_words
import pytest
import toy_checkout
import yaml

from bmg_sweeps import __main__, paths
from bmg_sweeps.cli import app
from bmg_sweeps.sweep import choices, loading, point

TEXTS = {
    path.relative_to(paths.ROOT).as_posix(): path.read_text(encoding="utf-8")
    for pattern in ("*.md", "docs/*.md", "deploy/*.md", "results/*.md")
    for path in sorted(paths.ROOT.glob(pattern))
}
PAGES = [page for page in TEXTS if not page.startswith(("deploy/", "results/"))]
FOLDERS = "bmg_sweeps|benchmarks|deploy|docs|gin|results|sweeps|tests|trainers"
COMMAND = re.compile(
    r"(?:^|[ (])(?:bmg|\S*python -m (?:pdb -m )?bmg_sweeps) ((?:\"[^\"]*\"|[^#>|)])+)"
)


def blocks(page: str, *languages: str) -> list[str]:
    """Reads the code blocks of a page that are in one of some languages."""
    found = re.findall(r"^```(\w*)\n(.*?)^```", TEXTS[page], re.DOTALL | re.MULTILINE)
    return [body for language, body in found if language in languages]


def commands(page: str) -> list[str]:
    """Reads what follows the program's name in each command of a page."""
    lines = "\n".join(blocks(page, "", "console")).splitlines()
    return [match.strip() for line in lines for match in COMMAND.findall(line)]


def slugs(text: str) -> set[str]:
    """Names the anchors that a page's headings have."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


def files_of(page: str) -> dict[str, str]:
    """Reads the blocks of a page that are whole files, which their first line names."""
    found = {}
    for body in blocks(page, "python", "gin"):
        if match := re.match(r"# ([\w/]+\.(?:py|gin))\n", body):
            found[match[1]] = body
    return found


def test_the_readme_is_one_page():
    """At most 120 lines; what is not there stands before what is."""
    text = TEXTS["README.md"]
    assert len(text.splitlines()) <= 120
    order = [
        "is not there yet",
        "make demo",
        "| item |",
        "Six commands",
        "Where to read",
    ]
    order += ["## Goals", "## Non-goals"]
    assert sorted(order, key=text.index) == order
    assert not re.findall(r"\b(TODO|DEMO_OUTPUT|OURS)\b", text)


def test_every_sweep_is_in_the_readmes_table_with_its_status():
    """In the paper's order, and each once; the status is one of four, or results."""
    rows = re.findall(
        r"^\| .* \| \[(\w+)\]\(sweeps/\1\.py\) \| .* \| (.*) \|$",
        TEXTS["README.md"],
        re.MULTILINE,
    )
    assert sorted(name for name, _ in rows) == sorted(loading.sweep_names())
    for _, status in rows:
        assert re.match(
            r"(reproduced|partly|not supported|not run|\[results\])", status
        )


def test_every_page_of_docs_is_linked_from_the_readme():
    """A reader finds each from the first page."""
    for page in PAGES:
        assert page == "README.md" or f"]({page}" in TEXTS["README.md"], page


@pytest.mark.parametrize("page", TEXTS)
def test_every_link_leads_somewhere(page):
    """To a file of the checkout, and to a heading in it where one is named."""
    here = (paths.ROOT / page).parent
    for link in re.findall(r"\]\((?!http)([^)]+)\)", TEXTS[page]):
        name, _, anchor = link.partition("#")
        path = here / name if name else paths.ROOT / page
        assert path.exists(), link
        if anchor:
            assert anchor in slugs(path.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_is_there(page):
    """Or is one that the page itself shows."""
    for name in re.findall(rf"`((?:{FOLDERS})/[\w./]*)`", TEXTS[page]):
        assert (paths.ROOT / name).exists() or name in files_of(page), name


@pytest.mark.parametrize("page", [p for p in TEXTS if p != "deploy/README.md"])
def test_every_command_parses(page, tmp_path, monkeypatch):
    """And those that only look at records run; `test_deploy` has those of clusters."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for folder in ("data", "DIR"):
        (tmp_path / folder).mkdir()
    for command in commands(page):
        words = shlex.split(command)
        command_words.parsed(words)
        looks = words[0] in ("list", "show", "status") and "--point" not in words
        if looks and "--storage" not in words:
            assert __main__.main([*words, "--storage", str(tmp_path)]) == 0


def test_the_table_of_commands_has_all_of_them():
    """In the order of `--help`."""
    found = re.findall(r"^\| `(\w+)[^`]*` \|", TEXTS["docs/tour.md"], re.MULTILINE)
    assert found == [command.name for command in app.COMMANDS]


def test_the_reference_has_every_option_and_no_other():
    """Each in the first column of one of its tables."""
    text = TEXTS["docs/reference.md"]
    cells = re.findall(r"^\| (`--.*?) \|", text, re.MULTILINE)
    written = sorted(re.findall(r"(?<=`)--[a-z-]+", " ".join(cells)))
    options = {
        name
        for command in app.COMMANDS
        for parameter in command.params
        for name in parameter.opts
        if name.startswith("--")
    }
    assert written == sorted(options)


def test_commands_are_found():
    """In blocks, behind an alias, in a subshell and in a debugger."""
    found = [words.split()[0] for page in PAGES for words in commands(page)]
    expected = {"list", "launch", "status", "report", "best", "rerun", "show", "run"}
    assert expected <= set(found)
    assert len(found) > 25


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run(page):
    """But for those that are whole files, which other tests run."""
    for body in blocks(page, "python"):
        if body not in files_of(page).values():
            exec(compile(body, page, "exec"), {"__name__": "example"})


def test_the_sweeps_that_are_shown_can_be_launched(tmp_path, monkeypatch):
    """They pass the checks of a launch, and resolve at each of their scales."""
    monkeypatch.chdir(tmp_path)
    checked_here.patch(monkeypatch)
    files = files_of("docs/sweeps.md")
    for name, body in files.items():
        (tmp_path / name).write_text(body)
        for scale in loading.load_sweep(name).scales:
            assert choices.choose(name, choices.Choice(scale=scale)).points
    assert __main__.main(["launch", *files, "--dry-run"]) == 0


@pytest.fixture(scope="module")
def with_trainer(tmp_path_factory):
    """A copy of the checkout with what the page on trainers shows."""
    folder = toy_checkout.make(tmp_path_factory.mktemp("documents") / "checkout")
    for name, body in files_of("docs/trainers.md").items():
        (folder / name).write_text(body)
    return folder


def test_the_trainer_that_is_shown_keeps_to_the_contract(with_trainer):
    """By the class of tests, used as the page says."""
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_quadratic.py"],
        cwd=with_trainer,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tests.returncode == 0, tests.stdout


def test_the_trainer_that_is_shown_trains(with_trainer):
    """A point of its sweep passes the checks of a launch, and runs to its end."""
    folder = with_trainer
    status, output = toy_checkout.run(folder, "show", "bowl.py")
    assert status == 0, output
    point_id = output.splitlines()[-1].split()[0]
    status, output = toy_checkout.run(folder, "run", "bowl.py", "--point", point_id)
    assert status == 0, output
    assert output.startswith(f"point {point_id}: done, trained to meta_updates=300")


def test_the_world_that_is_shown_is_the_toys():
    """And the toy keeps to the contract."""
    toy = (paths.ROOT / "tests" / "toy_live.py").read_text(encoding="utf-8")
    (shown,) = [b for b in blocks("docs/trainers.md", "python") if "# Parts of" in b]
    parts = re.split(r"\n\n\n(?=def |class |@)", shown.removesuffix("\n"))
    assert len(parts) == 4
    for part in parts[1:]:
        assert part in toy


def test_the_example_of_every_part_has_every_part():
    """Whatever `bmg_sweeps.sweep` offers is shown on the page of sweeps."""
    from bmg_sweeps import sweep

    shown = "".join(blocks("docs/sweeps.md", "python"))
    assert [name for name in sweep.__all__ if f"{name}(" not in shown] == []


def test_the_table_of_sweeps_says_how_many_points_there_are():
    """And how far they train, at the scales that cost hours."""
    rows = re.findall(
        r"^\| \[(\w+)\]\(\S+\) \| (\w+) \| (.*) \| (.*) \|$",
        TEXTS["docs/sweeps.md"],
        re.MULTILINE,
    )
    assert [name for name, *_ in rows] == loading.sweep_names()
    for name, trainer, *cells in rows:
        sweep = loading.load_sweep(name)
        assert trainer == sweep.trainer
        for scale, cell in zip(("lite", "paper"), cells, strict=True):
            assert cell == _written(sweep.scales.get(scale))


def _written(scale) -> str:
    if scale is None:
        return "–"
    stop = ", ".join(f"{amount:,} {axis}" for axis, amount in scale.stop.items())
    return f"{len(scale.points):,}; {stop}"


def test_a_renamed_field_keeps_its_records(tmp_path):
    """The recipe gives each record the id that it has under the new name."""
    names = {}
    (body,) = [b for b in blocks("docs/recipes.md", "python") if "rename_field" in b]
    exec(compile(body, "docs/recipes.md", "exec"), names)
    trainer = "two_colors_actor_critic"
    points = [point.resolve(trainer, {"seed": seed}) for seed in range(2)]
    for i, one in enumerate(points):
        folder = tmp_path / trainer / f"before-{i}"
        folder.mkdir(parents=True)
        text = one.gin_text().replace(f"{trainer}.discount", f"{trainer}.gamma")
        (folder / "point.gin").write_text(text)
        (folder / "manifest-0001.json").write_text(str(i))
    assert names["rename_field"](str(tmp_path), trainer, "gamma", "discount") == 2
    for i, one in enumerate(points):
        copy = tmp_path / trainer / one.id
        assert (copy / "point.gin").read_text() == one.gin_text()
        assert (copy / "manifest-0001.json").read_text() == str(i)
    assert names["rename_field"](str(tmp_path), trainer, "zeta", "discount") == 0


def test_ten_questions_are_answered_by_the_files_that_are_named():
    """Each answer's name is in its file."""
    rows = re.findall(
        r"^\| (.*\?) \| \[(\S+)\]\(\2\) \| `(\S+)` \|$",
        TEXTS["CONTRIBUTING.md"],
        re.MULTILINE,
    )
    assert len(rows) == 10
    for _, file, name in rows:
        text = (paths.ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"\b{re.escape(name)}\b", text), (file, name)


def test_the_citation_names_software_license_and_paper():
    """In the fields that CFF 1.2 requires."""
    citation = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert citation["authors"] == [{"name": "The bmg_sweeps developers"}]
    assert {"message", "title"} <= citation.keys()
    assert citation["license"] == "Apache-2.0"
    assert "Apache License" in (paths.ROOT / "LICENSE").read_text()
    (paper,) = citation["references"]
    assert {"type", "title", "authors"} <= paper.keys()
    assert len(paper["authors"]) == 6
