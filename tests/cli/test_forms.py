"""What `report` prints in each form, through the command line's own `main`."""

import json

import pytest

from bmg_sweeps import __main__


@pytest.fixture
def report(tmp_path, capsys, monkeypatch):
    """Reports on figure_2, of which nothing has run; gives what was printed."""
    monkeypatch.chdir(tmp_path)

    def report_(form):
        assert __main__.main(["report", "figure_2", "--format", form]) == 0
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
    assert text.startswith("% In the preamble: \\usepackage{booktabs}")
    count = text.count(r"\begin{table}")
    assert count == len(json.loads(report("json"))["tables"])
