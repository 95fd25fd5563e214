"""The manifest of a record: what an attempt has committed, as JSON that checks itself.

A manifest is not trusted. It may have been cut short, altered, or written by somebody
else: what `load` returns has the types that its users rely on, and names objects that
lie beside it. It also tells what the commit before it held, to go back to.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bmg_sweeps.records import encoding
from bmg_sweeps.trainer import contract

SPLITS = contract.SPLITS
TABLES = ("rows", *SPLITS)  # Of training, and of evaluations on each split.
PARTS = ("state", *TABLES)  # Each an object beside the manifest.
MOST_BYTES = 1 << 24  # Of a manifest; real ones have a thousandth of it.
_MOST_LEVELS = 64  # Of lists and mappings in one another.
_DATA = ("progress", *PARTS)  # What a commit changes, and a fallback brings back.

Manifest = dict[str, Any]


def name(attempt: int) -> str:
    """Names the manifest of an attempt."""
    return f"manifest-{attempt:04d}.json"


def object_name(part: str, attempt: int, commit: int) -> str:
    """Names an object of an attempt's n-th commit."""
    return f"{part}-{attempt:04d}-{commit:06d}." + ("npz", "json.gz")[part in TABLES]


def attempt_of(file_name: str) -> int | None:
    """Returns the attempt whose manifest a file is; None where it is none."""
    match = re.fullmatch(r"manifest-([0-9]{4,9})\.json", file_name)
    return int(match[1]) if match else None


def attempts(file_names: Iterable[str]) -> list[int]:
    """Returns the attempts of which there are manifests, the newest first."""
    numbers = map(attempt_of, file_names)
    return sorted((n for n in numbers if n is not None), reverse=True)


def owner_of(file_name: str) -> int | None:
    """Returns the attempt that wrote an object; None where the file is no such one."""
    match = _OBJECT_NAME.fullmatch(file_name)
    return int(match[2]) if match else None


def dump(manifest: Mapping[str, Any]) -> bytes:
    """Writes a manifest, with a check of its own content."""
    return encoding.json_bytes({**manifest, "check": _check(manifest)})


def load(data: bytes, attempt: int) -> Manifest:
    """Reads the manifest of an attempt.

    Args:
        data: all of the file.
        attempt: as the file's name says.

    Returns:
        Its known fields, each of the type that it should have.

    Raises:
        ValueError: they are not, or not what was written.
    """
    manifest = encoding.json_value(data)
    if not isinstance(manifest, dict):
        raise ValueError(f"expected fields by name, got {type(manifest).__name__}")
    check = manifest.pop("check", None)  # None: written before there was one.
    if data.count(b"[") + data.count(b"{") > _MOST_LEVELS and not _is_shallow(manifest):
        raise ValueError("nested too deeply")
    if check not in (None, _check(manifest)):
        raise ValueError("not the content that was written")
    for field, is_valid in _FIELDS.items():
        if field in manifest and not is_valid(manifest[field]):
            raise ValueError(f"{field} is malformed")
    if manifest.get("attempt") != attempt:
        raise ValueError(f"expected attempt {attempt}, got another")
    return {field: manifest[field] for field in _FIELDS if field in manifest}


def commits(manifest: Manifest) -> Iterator[Manifest]:
    """Yields the manifest as it is, and as it would be had its last commit not been."""
    yield manifest
    previous = manifest.get("previous") or {}
    if objects(previous):
        dropped = (*_DATA, "previous")
        yield {k: v for k, v in manifest.items() if k not in dropped} | previous


def data_of(manifest: Mapping[str, Any]) -> Manifest:
    """Returns what a later commit keeps as the one before it."""
    return {field: manifest[field] for field in _DATA if field in manifest}


def objects(manifest: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns name, size and hash of each object that a commit has, by part."""
    return {part: manifest[part] for part in PARTS if manifest.get(part)}


def _check(manifest: Mapping[str, Any]) -> str:
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


_OBJECT_NAME = re.compile(
    rf"({'|'.join(PARTS)})-([0-9]{{4,9}})-[0-9]{{6,9}}\.(?:npz|json\.gz)"
)


def _is_shallow(value: Any, levels: int = _MOST_LEVELS) -> bool:
    inner = value.values() if isinstance(value, dict) else value
    is_leaf = not isinstance(value, dict | list)
    return levels > 0 and (is_leaf or all(_is_shallow(v, levels - 1) for v in inner))


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_amount(value: Any) -> bool:
    return _is_count(value) or (
        type(value) is float and math.isfinite(value) and value >= 0
    )


def _is_width(value: Any) -> bool:
    return _is_count(value) and 0 < value < 2**20


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_lines(value: Any) -> bool:
    return isinstance(value, list) and all(v is None or _is_text(v) for v in value)


def _has(
    needed: Mapping[str, Callable[[Any], bool]],
    optional: Mapping[str, Callable[[Any], bool]] | None = None,
) -> Callable[[Any], bool]:
    """Makes a test of whether a value has fields of the right types, or is null."""
    optional = optional or {}

    def is_valid(value: Any) -> bool:
        return value is None or (
            isinstance(value, dict)
            and all(
                field in value and test(value[field]) for field, test in needed.items()
            )
            and all(test(value[f]) for f, test in optional.items() if f in value)
        )

    return is_valid


def _names_part(part: str) -> Callable[[Any], bool]:
    def is_valid(value: Any) -> bool:
        match = _OBJECT_NAME.fullmatch(value) if _is_text(value) else None
        return match is not None and match[1] == part

    return is_valid


def _is_progress(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_amount, value.values()))


_DATA_FIELDS = {
    "progress": _is_progress,
    **{
        part: _has({"name": _names_part(part), "bytes": _is_count, "sha256": _is_text})
        for part in PARTS
    },
}
_FIELDS = {
    "attempt": _is_count,
    "lease": _has(
        {
            "host": _is_text,
            "pid": lambda value: _is_count(value) and 0 < value < 2**31,
            "started": _is_amount,
            "expires": _is_amount,
        },
        {"owner": _is_text},
    ),
    "failure": _has(
        {"kind": _is_text, "tries": _is_count},
        {"type": _is_text, "message": _is_text, "frames": _are_lines},
    ),
    **_DATA_FIELDS,
    "previous": _has({}, _DATA_FIELDS),
    "provenance": lambda value: (
        isinstance(value, dict)
        and _has(
            {},
            {"revision": _is_text, "code": _is_text, "device": _is_text}
            | {"restarted": _is_text, "revisions": _are_lines, "devices": _are_lines}
            | {"left_pack": _is_text, "pack_width": _is_width}
            | {"compile_seconds": _is_amount, "evaluation_seconds": _is_amount},
        )(value)
    ),
}
