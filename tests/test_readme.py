"""What the README shows runs as it stands there."""

import re

from bmg_sweeps import paths
from bmg_sweeps.sweep import choices

README = (paths.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readmes_sweep_is_one(tmp_path):
    """The example under "How to add a sweep", saved to a file, can be shown."""
    (body,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    path = tmp_path / "mine.py"
    path.write_text(body)
    chosen = choices.choose(str(path), choices.Choice())
    assert len(chosen.points) == 6


def test_the_readme_has_no_placeholder_and_no_dead_link():
    """Every relative link leads to a file of the checkout."""
    assert not re.findall(r"\b(TODO|DEMO_OUTPUT|OURS)\b", README)
    links = re.findall(r"\]\((?!http)([^)]+)\)", README)
    assert links
    for link in links:
        assert (paths.ROOT / link).exists(), link
