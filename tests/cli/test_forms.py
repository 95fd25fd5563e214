"""What `report` prints in each form, through the command line's own `main`."""

import json

import pytest

from bmg_sweeps import __main__


@pytest.fixture
def report(tmp_path, capsys, monkeypatch):
    """Reports on figure_2, of which nothing has run; gives what was printed."""
    monkeypatch.chdir(tmp_path)

    def report_(form, *more):
        assert __main__.main(["report", "figure_2", "--format", form, *more]) == 0
        return capsys.readouterr().out

    return report_


def test_json_is_all_that_is_printed(report):
    """With the keys that the help names, and the tables that Markdown has."""
    found = json.loads(report("json"))
    assert found.keys() == {"storage", "sweep", "scale", "stop", "tables"}
    assert (found["sweep"], found["scale"]) == ("figure_2", "smoke")
    titles = [line[4:] for line in report("markdown").splitlines() if line[:3] == "###"]
    assert [table["title"] for table in found["tables"]] == titles
    (claims,) = [table for table in found["tables"] if table["kind"] == "claims"]
    assert claims["rows"]


def test_latex_is_all_that_is_printed(report):
    """One table for each of those that JSON has."""
    text = report("latex")
    assert text.startswith("% In the preamble: \\usepackage{array,booktabs,graphicx}")
    count = text.count(r"\begin{table}")
    assert count == len(json.loads(report("json"))["tables"])


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html"])
def test_a_backtest_is_a_table_more_in_every_form(report, form, tmp_path):
    """Only where it is asked for; of what has not run it says so."""
    words = ("--backtest", "env_steps=1e5,1_000_000", "--keep-one-in", "4")
    title = "Successive halving at 100,000 and 1,000,000"

    def printed(*more):
        out = report(form, *more)
        pages = tmp_path.glob("runs/reports/*.html")
        return out + "".join(path.read_text("utf-8") for path in pages)

    assert title not in printed()
    assert title in printed(*words)
    *_, table = json.loads(report("json", *words))["tables"]
    assert (table["kind"], table["axis"], table["rows"]) == (
        "backtest",
        "env_steps",
        [],
    )
    assert table["notes"][-1] == "Without a choice there: fixed, BMG."


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_the_command_in_a_report_asks_for_the_same(report, form, tmp_path, monkeypatch):
    """Also for a backtest, as it is typed; a third is kept where nothing is said."""
    monkeypatch.setenv("COLUMNS", "200")

    def command(*words):
        out = report(form, *words)
        pages = tmp_path.glob("runs/reports/*.html")
        out += "".join(path.read_text("utf-8") for path in pages)
        return next(x for x in out.splitlines() if "bmg_sweeps report figure_2" in x)

    amounts = "--backtest env_steps=100_000,1_000_000 --keep-one-in"
    assert "--backtest" not in command()
    assert f"{amounts} 3" in command("--backtest", "env_steps=1e5,1e6")
    assert f"{amounts} 4" in command(
        "--backtest", "env_steps=1e5,1e6", "--keep-one-in", "4"
    )
