"""States and tables of rows as bytes, and back without trusting them.

A state is an .npz of plain arrays, a table is compressed JSON. Whatever the bytes are,
reading them runs no code and takes no more memory than they account for. It returns
what was asked for, or raises a `ValueError` of one line.
"""

import contextlib
import hashlib
import io
import json
import math
import struct
import sys
import zipfile
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bmg_sweeps import errors

if TYPE_CHECKING:  # A list of sweeps shall not wait for it.
    import numpy as np

# A table is unpacked up to the larger of these two sizes. A real table never shrinks to
# a hundredth, since its rows count upwards, but a small one may.
_MAX_TABLE_BYTES = 1 << 26
_MAX_COMPRESSION = 100
_GZIP = zlib.MAX_WBITS | 16
_MALFORMED = (
    ArithmeticError,
    EOFError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)

Rows = dict[str, list]
"""Values by column; None stands for a number that was not finite."""


def json_bytes(value: Any) -> bytes:
    """Writes JSON for people; raises ValueError for a number that is not finite."""
    return json.dumps(value, indent=1, allow_nan=False).encode()


def json_hash(value: Any) -> str:
    """Hashes what `json_bytes` writes, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def json_value(data: bytes) -> Any:
    """Reads JSON.

    Raises:
        ValueError: it is not JSON, or a number in it is not finite.
    """
    # msgspec is four times as fast. What it refuses, json judges: json reads half of a
    # surrogate pair, and its messages say more.
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        return msgspec.json.decode(data)
    try:
        value = json.loads(data)
        json.dumps(value, allow_nan=False)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def pack_rows(rows: Rows) -> bytes:
    """Writes a table; the same rows are always the same bytes."""
    text = json.dumps(rows, separators=(",", ":"), allow_nan=False).encode()
    # With its default strategy, zlib makes short matches of digits that cost more than
    # they save: 1,000 rows of two-colors then take 38.3 kB, and 35.7 kB with this one.
    deflate = zlib.compressobj(9, wbits=_GZIP, memLevel=9, strategy=zlib.Z_FILTERED)
    return deflate.compress(text) + deflate.flush()


def unpack_rows(data: bytes) -> Rows:
    """Reads a table.

    Raises:
        ValueError: it is not columns of one length, of finite numbers and None.
    """
    max_bytes = max(_MAX_TABLE_BYTES, _MAX_COMPRESSION * len(data))
    try:
        inflate = zlib.decompressobj(wbits=_GZIP)
        text = inflate.decompress(data, max_bytes)
        if not inflate.eof:
            raise ValueError(f"not whole, or of more than {max_bytes} bytes")
        rows = json_value(text)
        if not all(map(_is_column, rows.values())):
            raise ValueError("a column is no list of numbers")
        if len({len(column) for column in rows.values()}) > 1:
            raise ValueError("columns differ in length")
    except (*_MALFORMED, AttributeError) as error:
        raise ValueError(f"not a table ({errors.first_line(error)})") from error
    return rows


def pack_arrays(arrays: "Sequence[np.ndarray]") -> bytes:
    """Writes arrays in their order."""
    import numpy as np

    buffer = io.BytesIO()
    np.savez(buffer, **{str(i): array for i, array in enumerate(arrays)})
    return buffer.getvalue()


def unpack_arrays(data: bytes) -> "list[np.ndarray]":
    """Reads what `pack_arrays` wrote.

    Raises:
        ValueError: it is something else, such as arrays of pickled objects.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            members = file.infolist()
            if sum(member.file_size for member in members) > len(data):
                raise ValueError("more bytes inside than there are")
            names = [f"{i}.npy" for i in range(len(members))]
            if [member.filename for member in members] != names:
                raise ValueError("arrays are not numbered from 0")
            return [_array(file.read(name)) for name in names]
    except _MALFORMED as error:
        raise ValueError(f"not a state ({errors.first_line(error)})") from error


def _array(data: bytes) -> "np.ndarray":
    """Reads an .npy file after making sure that it is as long as it says."""
    import numpy as np

    headers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    stream = io.BytesIO(data)
    shape, _, dtype = headers[np.lib.format.read_magic(stream)](stream)
    if math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        raise ValueError("an array is not as long as it says")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


def _is_column(column: Any) -> bool:
    if not isinstance(column, list):
        return False
    numbers = [value for value in column if value is not None]
    return set(map(type, numbers)) <= {int, float} and all(
        abs(value) <= sys.float_info.max for value in numbers
    )
