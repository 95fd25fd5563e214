"""What a trainer notes with a record: the same in a check and in a trial, and JSON."""

import pytest
import toy_variants
from toy_points import assert_same, declare, outcome, read, run, run_all

from bmg_sweeps.core import convolutions
from bmg_sweeps.records import leases
from bmg_sweeps.running import check, machine

pytestmark = pytest.mark.usefixtures("toy")

STOP = {"env_steps": 20}
NAME = "toy_noting"
JSON = "text, finite numbers, True, False and None, in lists and mappings by text"
REFUSED = {
    "a NumPy scalar": (
        '{"share": __import__("numpy").float64(0.5)}',
        f"'share': np.float64(0.5); expected {JSON}",
    ),
    "an array": (
        '{"seeds": [jnp.int32(config.seed)]}',
        f"'seeds': [Array(0, dtype=int32)]; expected {JSON}",
    ),
    "a path": (
        '{"file": __import__("pathlib").Path("x")}',
        f"'file': PosixPath('x'); expected {JSON}",
    ),
    "NaN": ('{"mean": float("nan")}', f"'mean': nan; expected {JSON}"),
    "names that are no text": (
        '{"images": {10: 1}}',
        f"'images': {{10: 1}}; expected {JSON}",
    ),
    "a name of the records' own": (
        '{"revision": "3"}',
        "the name revision; expected another, as records use it",
    ),
    "no mapping": ('["x"]', "list; expected {name: value}"),
}


def noting(folder, returned):
    """A toy trainer that notes something."""
    change = (
        "def init(",
        f"def provenance(config):\n    return {returned}\n\n\ndef init(",
    )
    return toy_variants.importable(folder, NAME, change)


def train(storage, **keywords):
    return run_all(storage, {"a": STOP}, NAME, **keywords)["a"]


def test_a_trial_gets_plain_values_as_the_check_does(storage, tmp_path):
    """What is computed of a field is JSON in both, or in neither."""
    with noting(tmp_path, '{"split_seed": config.seed + 1, "of": (1, None)}') as name:
        asked = {"points": [(name, toy_variants.gin_text(name))], "stops": [{}]}
        answer = check.answer(asked | {"examples": [], "sweeps": []})
        assert answer["problem"] is None
        declare(storage, "a", name)
        assert train(storage) == "done"
    extra = read(storage, "a", NAME).provenance.extra
    assert extra == {"split_seed": 1, "of": [1, None]}


@pytest.mark.parametrize(("returned", "said"), REFUSED.values(), ids=REFUSED)
def test_what_no_manifest_can_hold_is_refused(storage, tmp_path, returned, said):
    """Before anything trains; and by a trial, should no launch have checked it."""
    with noting(tmp_path, returned) as name:
        asked = {"points": [(name, toy_variants.gin_text(name))], "stops": [{}]}
        problem = check.answer(asked | {"examples": [], "sweeps": []})["problem"]
        declare(storage, "a", name)
        assert train(storage) == "failed"
    message = f"trainer {NAME}: provenance returns {said}"
    assert problem == (0, message)
    assert read(storage, "a", NAME).failure.message == message


def go_on(storage, folder, before, after, **keywords):
    """Trains half of a point under one provenance, and goes on under another."""
    with noting(folder, before) as name:
        declare(storage, "a", name)
        run_all(storage, {"a": {"env_steps": 10}}, name)
    with noting(folder, after):
        return train(storage, **keywords)


def test_a_record_goes_on_under_the_data_that_it_began_with(storage, tmp_path):
    """Other data are told, and nothing is lost: with the old ones it goes on."""
    old, new = '{"data_set": ("glyphs", "ab")}', '{"data_set": ("glyphs", "cd")}'
    assert go_on(storage, tmp_path, old, new) == "failed"
    record = read(storage, "a", NAME)
    assert record.failure.message == (
        "data_set=['glyphs', 'cd']: expected ['glyphs', 'ab'], as it was trained so "
        "far; --retry begins anew, and loses what there is"
    )
    assert record.provenance.extra == {"data_set": ["glyphs", "ab"]}
    assert record.progress["env_steps"] == 10
    with noting(tmp_path, old):
        assert train(storage, retry=True) == "done"
        declare(storage, "b", NAME)
        assert run_all(storage, {"b": STOP}, NAME)["b"] == "done"
    assert_same(outcome(storage, "a", NAME), outcome(storage, "b", NAME))
    assert read(storage, "a", NAME).provenance.restarted is None


def test_a_retry_under_other_data_begins_anew(storage, tmp_path):
    """As it was said; the record names the data that it is made of now."""
    old, new = '{"data_set": "ab"}', '{"data_set": "cd"}'
    assert go_on(storage, tmp_path, old, new) == "failed"
    with noting(tmp_path, new):
        assert train(storage, retry=True) == "done"
    noted = read(storage, "a", NAME).provenance
    assert noted.extra == {"data_set": "cd"}
    assert noted.restarted.startswith("data_set='cd': expected 'ab'")


def test_a_kill_before_the_first_commit_anew_mixes_no_data(
    storage, tmp_path, monkeypatch
):
    """Until then the record holds what the old data made, and says so."""
    old, new = '{"data_set": "ab"}', '{"data_set": "cd"}'
    assert go_on(storage, tmp_path, old, new) == "failed"
    asked = iter([False])

    def die():
        if next(asked, None) is None:
            raise KeyboardInterrupt
        return False

    with noting(tmp_path, new), pytest.raises(KeyboardInterrupt):
        train(storage, retry=True, should_stop=die)
    record = read(storage, "a", NAME)
    assert record.progress["env_steps"] == 10
    assert record.provenance.extra == {"data_set": "ab"}
    monkeypatch.setattr(leases, "has_ended", lambda lease: True)
    with noting(tmp_path, new):
        assert train(storage) == "failed"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{"data_set": "ab"}'),
        ('{"data_set": "ab"}', "{}"),
        ('{"file": "/data/of/me/x.npz"}', '{"file": "/else/where/x.npz"}'),
    ],
    ids=["of older code", "of newer code", "in another folder"],
)
def test_what_only_one_of_them_notes_is_not_compared(storage, tmp_path, before, after):
    """Nor is where the data lie, which a record does not keep."""
    assert go_on(storage, tmp_path, before, after) == "done"
    assert read(storage, "a", NAME).provenance.restarted is None


def test_what_the_platform_decides_may_change_with_the_device(
    storage, tmp_path, monkeypatch
):
    """A point may go on on a CPU, whose form of convolutions is another."""
    module = '__import__("bmg_sweeps.core.convolutions", fromlist=["_"])'
    form = f'{{"written_out": {module}.is_written_out_faster()}}'
    with noting(tmp_path, form) as name, monkeypatch.context() as patch:
        patch.setattr(machine, "_device", lambda: "H200")
        with convolutions.traced_for("gpu"):
            run_all(storage, {declare(storage, "a", name): {"env_steps": 10}}, name)
    assert read(storage, "a", NAME).provenance.extra == {"written_out": False}
    with noting(tmp_path, form):
        assert train(storage) == "done"
    noted = read(storage, "a", NAME).provenance
    assert (noted.extra, noted.restarted) == ({"written_out": True}, None)


@pytest.mark.parametrize("threads", [{1}, object()], ids=["of a type", "no JSON"])
def test_a_point_whose_provenance_cannot_be_written_is_let_go_of(
    storage, monkeypatch, threads
):
    """Else its pulse goes on, and every launch waits for it."""
    made_by = machine.provenance
    monkeypatch.setattr(
        machine, "provenance", lambda *given: made_by(*given) | {"threads": threads}
    )
    assert run(storage, declare(storage, "a")) == "failed"
    assert not leases.PULSES
    assert read(storage, "a").failure.type in ("TypeError", "ValueError")
