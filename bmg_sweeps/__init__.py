"""Meta-learning sweeps: declare a grid, launch, select per budget, rerun."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bmg_sweeps.reporting.frames import Frames


def load(
    sweep: str,
    *,
    scale: str | None = None,
    storage: str = "runs",
    tests: Sequence[str] = (),
    **choice: Any,
) -> "Frames":
    """Reads what came out of a sweep into pandas frames; neither JAX nor Ray is needed.

    Args:
        sweep: its name, or the path of its file.
        scale: of the sweep; None is "smoke", or the first that it has.
        storage: folder or fsspec URI of the records.
        tests: columns of tests whose rows are wanted of all points. Without them there
            are tests in `best` and `scores` only, of what was chosen.
        **choice: `where`, `gin`, `seeds` and `stop`, which choose points as the options
            of the command line do: `where={"inner_steps": 7}, seeds=range(10, 15)`.

    Returns:
        `runs`, `rows`, `scores`, `best`, `tasks`, `claims` and `decisions`. The `attrs`
        of each have its units by column, and say of what its numbers are numbers.

    Raises:
        UserError: there is no such sweep, scale, field, axis or column.
    """
    from bmg_sweeps.records import files
    from bmg_sweeps.reporting import frames
    from bmg_sweeps.sweep import choices

    where = {field: str(value) for field, value in choice.pop("where", {}).items()}
    for name in ("gin", "seeds"):
        choice[name] = tuple(choice.get(name, ()))
    chosen = choices.choose(sweep, choices.Choice(scale=scale, where=where, **choice))
    return frames.load(files.open_storage(storage), chosen, tests)
