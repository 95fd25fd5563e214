"""Ids of the shipped sweeps' points stay what they are: records lie under them."""

import hashlib
import json
import pathlib

import pytest

from bmg_sweeps.sweep import choices, loading

# By sweep and scale: how many points, and a hash of their ids in order.
KNOWN = json.loads(pathlib.Path(__file__).with_name("point_ids.json").read_text())


@pytest.mark.parametrize("name", KNOWN)
def test_points_keep_their_ids(name):
    """A change here would leave every user's records behind."""
    sweep, scale = name.split()
    points = choices.choose(sweep, choices.Choice(scale=scale)).points
    text = " ".join(p.id for p in points)
    found = [len(points), hashlib.sha256(text.encode()).hexdigest()[:16]]
    assert found == KNOWN[name]


def test_every_scale_of_every_sweep_is_pinned():
    """None is forgotten."""
    names = loading.sweep_names()
    assert [*KNOWN] == [f"{n} {s}" for n in names for s in loading.load_sweep(n).scales]
