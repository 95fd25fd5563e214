"""Toy trainers with something changed, each for one test."""

import contextlib
import importlib
import pathlib
import sys

import gin

import trainers

GIN = {"seed": 0, "rate": 0.1, "nan_at": 0, "width": 3}


@contextlib.contextmanager
def importable(folder, name, *changes, of="toy_trainer"):
    """Writes a changed copy of a toy trainer where trainers are looked for.

    Args:
        folder: to write it to.
        name: of the copy.
        *changes: pairs of text that is there and what stands in its place.
        of: the toy that is copied.

    Yields:
        The name.
    """
    text = (pathlib.Path(__file__).parent / f"{of}.py").read_text()
    text = text.replace(f'"{of}"', f'"{name}"')
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (folder / f"{name}.py").write_text(text)
    importlib.invalidate_caches()
    trainers.__path__.append(str(folder))
    try:
        with gin.config.interactive_mode():  # The name may have been taken before.
            yield name
    finally:
        trainers.__path__.remove(str(folder))
        sys.modules.pop(f"trainers.{name}", None)


def gin_text(name, **values):
    """Binds every field of a copy; what is not said does no harm."""
    return "".join(f"{name}.{k} = {v!r}\n" for k, v in (GIN | values).items())
