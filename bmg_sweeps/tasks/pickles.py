"""Pickles that are read and not run.

A pickle is a program: it names functions and calls them. Here a call is written down
as a `Record` and never made, so that no pickle, whatever it holds, reaches any code;
`array` then makes an array of the records that NumPy's own pickles leave.
"""

import math
import pathlib
import pickle
import re
from typing import Any

import numpy as np

from bmg_sweeps import errors
from bmg_sweeps.tasks import sources

# What NumPy 1 and 2 name in the pickle of an array of numbers, under any protocol.
_ADMITTED = {
    *(
        f"numpy.{core}.{name}"
        for core in ("core", "_core")
        for name in (
            "multiarray._reconstruct",
            "multiarray.scalar",
            "numeric._frombuffer",
        )
    ),
    "numpy.ndarray",
    "numpy.dtype",
    "_codecs.encode",  # Bytes, in a Python 3 pickle of protocol 0 to 2.
}


class Record:
    """A call that a pickle asks for, written down and not made."""

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: str, arguments: tuple = ()):
        self.name, self.arguments, self.state = name, arguments, None

    def __call__(self, *arguments: Any) -> "Record":
        """Records what the named function would be given."""
        return Record(self.name, arguments)

    def __setstate__(self, state: Any) -> None:
        self.state = state


# The unpickler in Python, since the one in C makes room for as many memo entries as a
# pickle of a few bytes says it has: 64 GB.
class _Reader(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Record:
        if f"{module}.{name}" not in _ADMITTED:
            raise _Refused(f"{module}.{name}")
        return Record(name)


class _Refused(Exception):
    pass


def load(path: pathlib.Path) -> Any:
    """Reads a pickle of dicts, lists, tuples, numbers, strings and NumPy arrays.

    Args:
        path: of the file; nobody need have checked it.

    Returns:
        Its value, with a `Record` for each array and bytes for Python 2's strings.

    Raises:
        UserError: it is no pickle, or asks for anything else.
    """
    try:
        with path.open("rb") as file:
            return _Reader(file, encoding="bytes").load()
    except _Refused as error:
        raise sources.refused(
            path,
            f"asks for {errors.shown(str(error))}; "
            f"expected NumPy arrays, dicts and lists only, and nothing is run",
        ) from error
    except Exception as error:  # An unpickler raises all kinds.
        raise sources.refused(
            path, f"expected a whole pickle ({errors.described(error)})"
        ) from error


def array(value: Any) -> np.ndarray:
    """Makes an array of what an unread pickle has in its place.

    Args:
        value: a `Record` of an array of integers, or a list of integers.

    Returns:
        The array; its numbers are not copied.

    Raises:
        ValueError: it is something else, or does not fit together.
    """
    if isinstance(value, list | tuple):
        numbers = [_number(item) for item in value]
        return np.asarray(numbers, np.int64)
    name = value.name if isinstance(value, Record) else type(value).__name__
    if name == "_reconstruct" and value.state:
        _, shape, dtype, is_fortran, data = value.state
    elif name == "_frombuffer":
        data, dtype, shape, order = value.arguments
        is_fortran = order in ("F", b"F")
    else:
        raise ValueError(f"found {name}")
    return _array(shape, _dtype(dtype), "F" if is_fortran else "C", _bytes(data))


def text(value: Any) -> str:
    """Returns a string of either Python; raises ValueError for anything else."""
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise ValueError(f"found {type(value).__name__}")
    return value


def _number(value: Any) -> int:
    if isinstance(value, Record) and value.name == "scalar":
        dtype, data = value.arguments
        return int(_array((), _dtype(dtype), "C", _bytes(data)))
    if type(value) is not int:
        raise ValueError(f"found {type(value).__name__}")
    return value


def _array(shape: Any, dtype: np.dtype, order: str, data: bytes) -> np.ndarray:
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError("found a shape that is none")
    if math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"found {len(data):,} bytes for {dtype} {list(shape)}")
    return np.frombuffer(data, dtype).reshape(shape, order=order)


def _dtype(value: Any) -> np.dtype:
    if not isinstance(value, Record) or value.name != "dtype":
        raise ValueError("found an array without a type")
    kind, order = text(value.arguments[0]), text(value.state[1])
    if not re.fullmatch("[iu][1248]", kind) or order not in "<>|=":
        raise ValueError(f"found an array of {errors.shown(kind)}")
    return np.dtype(order + kind)


def _bytes(value: Any) -> bytes:
    if isinstance(value, Record) and value.name == "encode":
        string, encoding = value.arguments
        if text(encoding) != "latin1":
            raise ValueError(f"found bytes in {errors.shown(encoding)}")
        return text(string).encode("latin1")
    if not isinstance(value, bytes | bytearray):
        raise ValueError("found an array without bytes")
    return value
