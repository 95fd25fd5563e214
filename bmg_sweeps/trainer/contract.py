"""The contract of a trainer: which functions its module has, and what they keep to.

A trainer is a module in trainers/. `Module` says what it must have, `Trainer` adds the
defaults of what it may leave out, and `resolve` makes the one from the other. Nothing
else looks into a trainer's module.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from bmg_sweeps import errors
from bmg_sweeps.trainer import structures

SPLITS = ("validation", "test")  # `evaluate` is called on each of them.


class Module(Protocol):
    """What every trainer's module has. All functions but `Config` are pure.

    It may also have

    - `check(config)`, which raises ValueError where fields contradict each other;
    - `open_source(structure)`, a context manager around what training reads and does
      not change. It gets the static fields only, and all points of a pack share what it
      yields: what depends on a seed or a rate belongs in `init` and the state;
    - `evaluate(config, state, source, split)`, which returns numbers by name. It is
      called each time the first axis passes a multiple of `config.evaluation_interval`,
      and a chunk passes one multiple at most;
    - `provenance(config)`, which returns what the numbers depend on beside the config,
      such as a data set's checksum, and raises ValueError where that is missing.
    """

    Config: type  # A frozen dataclass without defaults; see `config`.

    def init(self, config: Any, key: Any, source: Any) -> Any:
        """Returns the state before the first chunk, any pytree of arrays."""

    def train(self, config: Any, state: Any, source: Any) -> tuple[Any, Any]:
        """Returns the state after one chunk, of the same shapes, and its rows.

        Rows are columns by name, each [R]. One of them is the first axis of `progress`.
        A row that is repeated counts once.
        """

    def progress(self, config: Any, state: Any) -> Mapping[str, Any]:
        """Returns the amount of training on each axis of budgets, integers []."""


@dataclasses.dataclass(frozen=True)
class Trainer:
    """A trainer as the loop uses it: its own functions, and defaults for the others."""

    name: str
    Config: Callable[..., Any]
    init: Callable[..., Any]
    train: Callable[..., Any]
    progress: Callable[..., Any]
    check: Callable[[Any], None]
    open_source: Callable[..., contextlib.AbstractContextManager]
    provenance: Callable[[Any], Mapping[str, Any]]
    evaluate: Callable[..., Any] | None  # None where it evaluates nothing.

    def source(self, config: Any) -> contextlib.AbstractContextManager:
        """Opens what training reads and does not change, for all of a structure.

        Args:
            config: of any point of the structure.

        Returns:
            A context manager that yields the source.
        """
        return self.open_source(structures.of(self.name, config))


def resolve(name: str, module: Module) -> Trainer:
    """Takes a trainer's functions from its module.

    Args:
        name: of the module in trainers/.
        module: itself.

    Returns:
        The trainer.

    Raises:
        UserError: it lacks a function, or has something else of that name.
    """
    found = {}
    for function, form in _FORMS.items():
        found[function] = getattr(module, function, _DEFAULTS.get(function))
        is_left_out = found[function] is None and function in _DEFAULTS
        if not callable(found[function]) and not is_left_out:
            raise errors.UserError(
                f"trainer {name}: trainers/{name}.py has no {function}; expected {form}"
            )
    return Trainer(name, **found)


def _accept(config: Any) -> None:
    del config


@contextlib.contextmanager
def _no_source(structure: Any) -> Iterator[None]:
    del structure
    yield None


def _no_provenance(config: Any) -> Mapping[str, Any]:
    del config
    return {}


_FORMS = {
    "Config": "a frozen dataclass",
    "init": "init(config, key, source) -> state",
    "train": "train(config, state, source) -> (state, rows)",
    "progress": "progress(config, state) -> {axis: amount}",
    "check": "check(config)",
    "open_source": "open_source(structure), a context manager",
    "provenance": "provenance(config) -> {name: value}",
    "evaluate": "evaluate(config, state, source, split) -> {name: number}",
}
_DEFAULTS: dict[str, Callable[..., Any] | None] = {
    "check": _accept,
    "open_source": _no_source,
    "provenance": _no_provenance,
    "evaluate": None,
}
