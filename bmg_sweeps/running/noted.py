"""What a trainer notes with a record: checked before anything is trained, and compared.

A launch asks its trainers for it before it begins, and each trial asks again: both hand
them plain values, so that both get the same. A record goes on under the same only, such
as the same data.
"""

import math
from collections.abc import Mapping
from typing import Any

from bmg_sweeps import errors
from bmg_sweeps.core import convolutions
from bmg_sweeps.records import attempts, manifests
from bmg_sweeps.trainer import contract

_JSON = "text, finite numbers, True, False and None, in lists and mappings by text"


def by_trainer(trainer: contract.Trainer, config: Any) -> dict[str, Any]:
    """Asks a trainer what a point's numbers depend on beside the config.

    Args:
        trainer: of the point.
        config: the point's values, as plain Python.

    Returns:
        What a manifest can hold, by name.

    Raises:
        UserError: it is not JSON, or has a name that records use themselves.
        Exception: whatever the trainer's `provenance` raises.
    """
    noted = trainer.provenance(config)
    if not isinstance(noted, Mapping):
        raise _refusal(trainer, type(noted).__name__, "{name: value}")
    for name, value in noted.items():
        if name in manifests.NOTED:
            raise _refusal(trainer, f"the name {name}", "another, as records use it")
        if not _is_json({name: value}):
            raise _refusal(
                trainer, f"{errors.shown(name)}: {errors.shown(value)}", _JSON
            )
    return dict(noted)


def difference(
    trainer: contract.Trainer, config: Any, before: manifests.Provenance
) -> str | None:
    """Says in what a trainer notes something else than a record has, if it does.

    A record may go on on another device, so its trainer is asked as for the record's:
    the form of convolutions that a platform gets changes numbers as a device does.

    Args:
        trainer: of the point.
        config: the point's values, as plain Python.
        before: of the record. Names that only one of them has are not compared: other
            code noted them, or did not.
    """
    if not before.extra:
        return None
    platform = "cpu" if (before.device or "cpu").startswith("cpu") else "gpu"
    with convolutions.traced_for(platform):
        now = attempts.as_kept(by_trainer(trainer, config))
    for name, was in before.extra.items():
        if name in now and now[name] != was:
            return (
                f"{name}={errors.shown(now[name])}: expected {errors.shown(was)}, "
                f"as it was trained so far"
            )
    return None


def _refusal(trainer: contract.Trainer, what: str, expected: str) -> errors.UserError:
    return errors.UserError(
        f"trainer {trainer.name}: provenance returns {what}; expected {expected}"
    )


def _is_json(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(type(k) is str and _is_json(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    # Exact types: NumPy's scalars are floats that not every writer of JSON takes.
    is_plain = type(value) in (str, int, float, bool, type(None))
    return is_plain and (type(value) is not float or math.isfinite(value))
