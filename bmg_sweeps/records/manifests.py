"""The manifest of a record: what an attempt has committed, as JSON that checks itself.

A manifest is not trusted. It may have been cut short, altered, or written by somebody
else. `load` checks it once; what it returns has the types that are declared here, and
names only objects that lie beside the manifest. A manifest also keeps what the commit
before the last one held, so that a record can go back to it.
"""

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import msgspec

from bmg_sweeps import errors
from bmg_sweeps.records import encoding
from bmg_sweeps.trainer import contract

SPLITS = contract.SPLITS
TABLES = ("rows", *SPLITS)  # Rows of training, and of evaluations on each split.
PARTS = ("state", *TABLES)  # Each is an object beside the manifest.
MAX_BYTES = 1 << 24  # A larger manifest is refused; real ones have a few kilobytes.
_MAX_LEVELS = 64  # Lists and mappings that are nested deeper are refused.

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Amount = Count | Annotated[float, msgspec.Meta(ge=0, le=sys.float_info.max)]
Lines = tuple[str | None, ...]
_Pulse = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{32})?$")]
_Width = Annotated[int, msgspec.Meta(gt=0, lt=2**20)]


class Lease(msgspec.Struct, frozen=True):
    """The attempt that holds a record, and by what it is seen to live."""

    owner: str = ""
    token: str = ""  # The attempt's own.
    pulse: _Pulse = ""  # Of its process; older code wrote none.


class Failure(msgspec.Struct, frozen=True):
    """Why an attempt ended early."""

    kind: str  # "failed" where it raised, "diverged" where its numbers were lost.
    tries: Count
    type: str = ""
    message: str = ""
    frames: Lines = ()


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where and by what a record was made; None where no attempt has noted it."""

    launch: str | None = None
    node: str | None = None
    process: Count | None = None
    attempt: Count | None = None
    revision: str | None = None
    revisions: Lines | None = None  # Those of all attempts, if there were several.
    code: str | None = None  # Fingerprint of the code that decides the numbers.
    codes: Lines | None = None  # Those of all attempts, if there were several.
    device: str | None = None
    devices: Lines | None = None  # Those of all attempts, if there were several.
    threads: Count | None = None
    pack_width: _Width | None = None
    program_bytes: Count | None = None  # Device memory of `train`, of the whole pack.
    packages: dict[str, str] | None = None  # Versions by name.
    numerics: dict[str, str] | None = None  # What `numerics.noted` returned.
    compilations: Count | None = None
    compile_seconds: Amount | None = None
    evaluation_seconds: Amount | None = None
    began: Amount | None = None  # Seconds since 1970, like `ended`.
    ended: Amount | None = None
    left_pack: str | None = None  # Why the point goes on without its pack.
    restarted: str | None = None  # Why the point began again.
    extra: dict[str, Any] = {}  # All else: noted by a trainer, or by newer code.

    def __bool__(self) -> bool:
        """Whether anything was noted."""
        return self != _NOTHING_NOTED

    @classmethod
    def of(cls, noted: Mapping[str, Any]) -> "Provenance":
        """Sorts what an attempt noted, without checking it."""
        return cls(**_sorted_out(noted))

    def as_dict(self) -> dict[str, Any]:
        """Returns what attempts noted, by name."""
        fields = msgspec.to_builtins(self)
        extra = fields.pop("extra", {})
        return fields | extra


class StoredObject(msgspec.Struct, frozen=True, gc=False):
    """A file beside the manifest, as it was written."""

    name: str
    bytes: Count
    sha256: str


class Commit(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a commit changes together, and what a fallback brings back."""

    progress: dict[str, Amount] = {}  # By axis.
    state: StoredObject | None = None
    rows: StoredObject | None = None
    validation: StoredObject | None = None
    test: StoredObject | None = None


class Manifest(Commit, frozen=True):
    """An attempt's last commit, who made it, and the commit before."""

    attempt: Count = 0
    lease: Lease | None = None
    failure: Failure | None = None
    provenance: Provenance = Provenance()
    previous: Commit | None = None


EMPTY = Manifest()
_NOTHING_NOTED = Provenance()
NOTED = frozenset(Provenance.__struct_fields__) - {"extra"}  # By records themselves.


def name(attempt: int) -> str:
    """Names the manifest of an attempt."""
    return f"manifest-{attempt:04d}.json"


def object_name(part: str, attempt: int, commit: int) -> str:
    """Names an object of an attempt's n-th commit."""
    return f"{part}-{attempt:04d}-{commit:06d}." + ("npz", "json.gz")[part in TABLES]


def attempts(file_names: Iterable[str]) -> list[int]:
    """Returns the attempts that have a manifest among the files, the newest first."""
    matches = map(_MANIFEST_NAME.fullmatch, file_names)
    return sorted((int(match[1]) for match in matches if match), reverse=True)


def owner_of(file_name: str) -> int | None:
    """Returns the attempt that wrote an object; None where the file is no object."""
    match = _OBJECT_NAME.fullmatch(file_name)
    return int(match[2]) if match else None


def as_dict(manifest: Manifest) -> dict[str, Any]:
    """Returns the fields of a manifest as they are written."""
    always = {"attempt": manifest.attempt, "lease": None, "failure": None}
    noted = {"provenance": manifest.provenance.as_dict()}
    return always | msgspec.to_builtins(manifest) | noted


def dump(manifest: Manifest) -> bytes:
    """Writes a manifest, with a check of its own content.

    Raises:
        ValueError: `load` would refuse it.
        TypeError: something in it is not JSON.
    """
    fields = as_dict(manifest)
    _checked(fields)
    return encoding.json_bytes({**fields, "check": encoding.json_hash(fields)})


def load(data: bytes, attempt: int) -> Manifest:
    """Reads the manifest of an attempt; fields that are not known are left out.

    Args:
        data: all of the file.
        attempt: as the file's name says.

    Raises:
        ValueError: a field is not what it should be, or not what was written.
    """
    fields = encoding.json_value(data)
    if not isinstance(fields, dict):
        raise ValueError(f"expected fields by name, got {type(fields).__name__}")
    check = fields.pop("check", None)  # Old manifests have none.
    if data.count(b"[") + data.count(b"{") > _MAX_LEVELS and not _is_shallow(fields):
        raise ValueError("nested too deeply")
    if not _is_as_written(fields, check):
        raise ValueError("not the content that was written")
    manifest = _checked(fields)
    if manifest.attempt != attempt:
        raise ValueError(f"expected attempt {attempt}, got another")
    return manifest


def commits(manifest: Manifest) -> Iterator[Manifest]:
    """Yields the manifest as it is, and as it would be had its last commit not been."""
    yield manifest
    previous = manifest.previous
    if previous and objects(previous):
        changes = {field: getattr(previous, field) for field in _COMMIT}
        yield msgspec.structs.replace(manifest, previous=None, **changes)


def commit_of(manifest: Manifest) -> Commit:
    """Returns what a later manifest keeps as the commit before it."""
    return Commit(**{field: getattr(manifest, field) for field in _COMMIT})


def objects(commit: Commit) -> dict[str, StoredObject]:
    """Returns the objects that a commit has, by part."""
    return {p: item for p in PARTS if (item := getattr(commit, p)) is not None}


_COMMIT = Commit.__struct_fields__
_MANIFEST_NAME = re.compile(r"manifest-([0-9]{4,9})\.json")
_OBJECT_NAME = re.compile(
    rf"({'|'.join(PARTS)})-([0-9]{{4,9}})-[0-9]{{6,9}}\.(?:npz|json\.gz)"
)


def _sorted_out(noted: Mapping[str, Any]) -> dict[str, Any]:
    """Puts aside what `Provenance` has no field for."""
    known = {field: noted[field] for field in noted if field in NOTED}
    return known | {"extra": {f: noted[f] for f in noted if f not in NOTED}}


def _is_as_written(fields: Mapping[str, Any], check: Any) -> bool:
    """Compares fields with the check that was written beside them."""
    # msgspec writes most manifests as json does, in a tenth of the time. Where it does
    # not, as with 1e-05 and with letters outside of ASCII, json decides.
    try:
        text = msgspec.json.encode(fields, order="sorted")
    except UnicodeEncodeError:  # Half of a surrogate pair.
        text = b""
    is_same = hashlib.sha256(text).hexdigest() == check
    return is_same or check in (None, encoding.json_hash(fields))


def explained(error: msgspec.ValidationError) -> str:
    """Says which field is malformed, and how."""
    what, _, field = str(error).rstrip("`").rpartition(" - at `$.")
    return f"{field}: {what[:1].lower()}{what[1:]}" if what else str(error)


def _checked(fields: Mapping[str, Any]) -> Manifest:
    """Makes a manifest of its fields; raises ValueError where one is malformed."""
    noted = fields.get("provenance")
    if isinstance(noted, dict):
        fields = {**fields, "provenance": _sorted_out(noted)}
    try:
        manifest = msgspec.convert(fields, Manifest)
    except msgspec.ValidationError as error:
        raise ValueError(explained(error)) from error
    _check_names(manifest)
    if manifest.previous:
        _check_names(manifest.previous)
    return manifest


def _check_names(commit: Commit) -> None:
    """Raises ValueError where an object's name is not one of its part."""
    for part, item in objects(commit).items():
        match = _OBJECT_NAME.fullmatch(item.name)
        if match is None or match[1] != part:
            raise ValueError(
                f"{part}.name: expected such as {object_name(part, 1, 1)}, "
                f"got {errors.shown(item.name)}"
            )


def _is_shallow(value: Any, levels: int = _MAX_LEVELS) -> bool:
    inner = value.values() if isinstance(value, dict) else value
    is_leaf = not isinstance(value, dict | list)
    return levels > 0 and (is_leaf or all(_is_shallow(v, levels - 1) for v in inner))
