"""What a trainer notes with a record: the same in a check and in a trial, and JSON."""

import pytest
import toy_variants
from toy_points import declare, read, run, run_all

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


def train(storage):
    return run_all(storage, {"a": STOP}, NAME)["a"]


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
