"""Manifests of any content that vouch for themselves, as an altered record's would."""

import hashlib
import json


def manifest(fields):
    """Writes a manifest with its check: the hash of its fields, sorted and compact."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
    check = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({**fields, "check": check}, indent=1).encode()
