"""Plans of seeds that are to decide claims, stored before the first of them is run.

A plan says which configurations are run, on which seeds, when these are looked at, and
at which level. None of it can be changed afterwards: a plan is created once, under a
name that its claims have. It lies beside the records:

    <storage>/.plans/<hash of its claims>.json

A plan is not trusted when it is read: `load` checks its own hash and every field.
"""

import hashlib
import itertools
from collections.abc import Iterable
from typing import Annotated

import msgspec

from bmg_sweeps import errors
from bmg_sweeps.records import encoding, files, manifests

FOLDER = ".plans"
MAX_BYTES = 1 << 24  # A larger plan is refused; real ones have a few kilobytes.
_ENDING = ".json"

_Level = Annotated[float, msgspec.Meta(gt=0, le=0.05)]
_Seeds = Annotated[tuple[manifests.Count, ...], msgspec.Meta(min_length=2)]
_Values = dict[str, bool | int | float | str | tuple[int, ...]]


class DamagedPlan(errors.UserError):
    """A plan cannot be read; the message names it and says why."""


class NamedClaim(msgspec.Struct, frozen=True):
    """A claim that the seeds decide."""

    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{12}$")]  # Hash of what it says.
    text: str


class Configuration(msgspec.Struct, frozen=True):
    """A configuration that was selected, and is not selected again."""

    runs: Annotated[tuple[_Values, ...], msgspec.Meta(min_length=1)]
    # All values of one run on each task, but for the seed.


class Plan(msgspec.Struct, frozen=True):
    """Which seeds decide claims, and how."""

    sweep: str  # Its name, without folders.
    scale: str
    trainer: str
    stop: dict[str, manifests.Amount]  # How far each run trains.
    axis: str  # Of the budget at which configurations were selected.
    budget: manifests.Amount
    claims: Annotated[tuple[NamedClaim, ...], msgspec.Meta(min_length=1)]
    configurations: Annotated[tuple[Configuration, ...], msgspec.Meta(min_length=1)]
    seeds: _Seeds  # None of them had a record when the plan was made.
    looks: Annotated[tuple[manifests.Count, ...], msgspec.Meta(min_length=1)]
    # Numbers of seeds, ascending, of which each look is at so many of the first.
    level: _Level  # Of each look, two-sided.
    # What a run counts as that diverged, in the unit of the metric or the test.
    floor: float | None
    made: manifests.Amount  # Seconds since 1970.
    revision: str | None = None

    @property
    def name(self) -> str:
        """The name of its file."""
        ids = sorted(claim.id for claim in self.claims)
        return hashlib.sha256(" ".join(ids).encode()).hexdigest()[:12] + _ENDING


def create(storage: files.Storage, plan: Plan) -> None:
    """Stores a plan.

    Raises:
        FileExistsError: there is one for these claims.
    """
    storage.create(dump(plan), FOLDER, plan.name)


def find(storage: files.Storage, claims: Iterable[str]) -> list[Plan]:
    """Reads the plans that have any of some claims.

    Args:
        storage: where the records are.
        claims: ids of the claims.

    Returns:
        The plans, in the order of their names.

    Raises:
        DamagedPlan: a plan cannot be read, and so its claims are not known.
    """
    wanted = set(claims)
    sizes = storage.sizes(FOLDER)
    names = sorted(name for name in sizes if name.endswith(_ENDING))
    plans = [_read(storage, name, sizes[name]) for name in names]
    return [p for p in plans if wanted & {claim.id for claim in p.claims}]


def _read(storage: files.Storage, name: str, size: int) -> Plan:
    try:
        if size > MAX_BYTES:
            raise ValueError(f"expected at most {MAX_BYTES} bytes, got {size}")
        return load(storage.read(FOLDER, name), name)
    except (FileNotFoundError, ValueError) as error:
        raise DamagedPlan(
            f"plan {FOLDER}/{errors.one_line(name)}: {errors.first_line(error)}; "
            f"expected it as rerun --until-decided wrote it"
        ) from error


def dump(plan: Plan) -> bytes:
    """Writes a plan, with a check of its own content."""
    fields = msgspec.to_builtins(plan)
    return encoding.json_bytes({**fields, "check": encoding.json_hash(fields)})


def load(data: bytes, name: str) -> Plan:
    """Reads a plan.

    Args:
        data: all of the file.
        name: of the file.

    Raises:
        ValueError: a field is not what it should be, or not what was written.
    """
    fields = encoding.json_value(data)
    if not isinstance(fields, dict):
        raise ValueError(f"expected fields by name, got {type(fields).__name__}")
    check = fields.pop("check", None)
    if check != encoding.json_hash(fields):
        raise ValueError("not the content that was written")
    try:
        plan = msgspec.convert(fields, Plan)
    except msgspec.ValidationError as error:
        raise ValueError(manifests.explained(error)) from error
    if len(set(plan.seeds)) < len(plan.seeds):
        raise ValueError("seeds: expected each once")
    ascends = all(a < b for a, b in itertools.pairwise((1, *plan.looks)))
    if not ascends or plan.looks[-1] != len(plan.seeds):
        raise ValueError("looks: expected ascending numbers from 2 to that of seeds")
    if plan.axis not in plan.stop or plan.stop[plan.axis] < plan.budget:
        raise ValueError("stop: expected to reach the budget")
    if plan.name != name:
        raise ValueError("claims: expected those that the file is named for")
    return plan
