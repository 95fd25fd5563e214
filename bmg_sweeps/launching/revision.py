"""Which code a launch runs."""

import hashlib
import subprocess

from bmg_sweeps import paths


def fingerprint() -> str:
    """Hashes the sources that decide a point's numbers.

    Returns:
        A short hash of trainers/ and of the parts of bmg_sweeps/ that they use.
    """
    folders = (paths.TRAINERS, *(paths.ROOT / "bmg_sweeps" / d for d in _NUMERIC))
    digest = hashlib.sha256()
    for path in sorted(p for folder in folders for p in folder.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def provenance() -> dict[str, str]:
    """Names the code that runs: its commit, "+dirty" where files differ, and its hash.

    Returns:
        `revision` for the reader, and `code`, the fingerprint.
    """
    try:
        revision = _git("rev-parse", "--short=12", "HEAD")
        revision += "+dirty" if _git("status", "--porcelain") else ""
    except (OSError, subprocess.CalledProcessError):
        revision = "unknown"
    return {"revision": revision, "code": fingerprint()}


_NUMERIC = ("core", "environments", "tasks")


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(paths.ROOT), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()
