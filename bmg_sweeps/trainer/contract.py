"""The contract of a trainer: which functions its module has, and what they keep to.

A trainer is a module in trainers/. `Module` says what it must have, `Trainer` adds the
defaults of what it may leave out, and `resolve` makes the one from the other. Nothing
else looks into a trainer's module.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from bmg_sweeps import errors
from bmg_sweeps.trainer import structures

if TYPE_CHECKING:  # A list of sweeps shall not wait for it.
    import numpy as np

SPLITS = ("validation", "test")  # `evaluate` is called on each of them.


class Module(Protocol):
    """What every trainer's module has. All functions but `Config` are pure.

    It may also have

    - `check(config)`, which raises ValueError where fields contradict each other;
    - `open_source(structure)`, a context manager around what training reads and does
      not change. It gets the static fields only, and all points of a pack share what it
      yields: what depends on a seed or a rate belongs in `init` and the state. It may
      yield a `LiveSource`;
    - `act(config, state, observation, step)`, which returns actions, and any other
      arrays, for a live source. `step` is an integer [], int32;
    - `evaluate(config, state, source, split)`, which returns numbers by name. It is
      called each time the first axis passes a multiple of `config.evaluation_interval`,
      and a chunk passes one multiple at most;
    - `provenance(config)`, which returns what the numbers depend on beside the config,
      such as a data set's checksum, and raises ValueError where that is missing. It
      gets plain values, and returns JSON by names that records do not use themselves.
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


@runtime_checkable
class LiveSource(Protocol):
    """A world outside JAX, such as emulators, for one point and one attempt on it.

    Opening it depends on no seed: all its randomness comes from the state that its
    first `read` is given, and from what it has saved. `init` gets None as its source.
    A trainer whose source is live evaluates nothing, and its points train alone.
    """

    observes: Any  # Shapes and types of an observation, as jax.ShapeDtypeStruct.
    delivers: Any  # The same of what `read` returns.

    def read(self, act: Callable[[Any, int], Any], state: Any) -> Any:
        """Acts in its world, before each call of `train`.

        Args:
            act: (observation, step) ↦ what the trainer's `act` returns for them under
                this state. Like `state`, it must not be kept: `train` overwrites it.
            state: that the call begins with.

        Returns:
            What the call gets as its source, of the shapes in `delivers`. The next
            `read` may write over it.
        """

    def save(self) -> "list[np.ndarray]":
        """Returns all that `restore` needs; it is committed with the state."""

    def restore(self, arrays: "list[np.ndarray]") -> None:
        """Makes a source that was just opened go on, bitwise, from what another saved.

        Raises:
            ValueError: they are not what was saved, in one line. The point then begins
                anew, with a source that is opened for it.
        """


class Handed(NamedTuple):
    """What functions of a trainer are handed of a source; of a live one, shapes."""

    to_init: Any
    to_train: Any
    to_act: Any = None  # None where the source is not live.


def handed(source: Any) -> Handed:
    """Says what `init`, `train` and `act` are handed of a source."""
    if isinstance(source, LiveSource):
        return Handed(None, source.delivers, source.observes)
    return Handed(source, source)


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
    act: Callable[..., Any] | None  # None where no source is live.

    @contextlib.contextmanager
    def source(self, config: Any) -> Iterator[Any]:
        """Opens what training reads and does not change, for all of a structure.

        Args:
            config: of any point of the structure.

        Yields:
            The source.

        Raises:
            UserError: it is live, and the trainer is not made for that; or the reverse.
        """
        with self.open_source(structures.of(self.name, config)) as source:
            self._check(source)
            yield source

    def _check(self, source: Any) -> None:
        is_live = isinstance(source, LiveSource)
        needs_one = source is not None or self.open_source is _no_source
        problem = None
        if is_live and self.act is None:
            problem = f"its source is live, and it has no act; expected {_FORMS['act']}"
        elif is_live and self.evaluate is not None:
            problem = "its source is live, and it has evaluate; expected one of them"
        elif self.act is not None and not is_live and needs_one:
            problem = (
                "it has act, and its source is not live; expected one with observes, "
                "delivers, read, save and restore"
            )
        if problem:
            raise errors.UserError(f"trainer {self.name}: {problem}")


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
    "act": "act(config, state, observation, step) -> actions",
}
_DEFAULTS: dict[str, Callable[..., Any] | None] = {
    "check": _accept,
    "open_source": _no_source,
    "provenance": _no_provenance,
    "evaluate": None,
    "act": None,
}
