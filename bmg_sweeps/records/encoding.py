"""States and tables of rows as bytes, and back without trusting them.

A state is an .npz of plain arrays, a table is compressed JSON. Whatever the bytes are,
reading them runs no code, takes no more memory than they account for, and ends in what
was asked for or in a `ValueError` of one line.
"""

import io
import json
import math
import struct
import sys
import zipfile
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bmg_sweeps import errors

if TYPE_CHECKING:  # A list of sweeps shall not wait for it.
    import numpy as np

# Rows count upwards, so no real table shrinks to a hundredth, but a small one may.
_MOST_TABLE_BYTES = 1 << 26
_MOST_COMPRESSION = 100
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
    """Writes JSON for people; raises ValueError for what JSON does not have."""
    return json.dumps(value, indent=1, allow_nan=False).encode()


def json_value(data: bytes) -> Any:
    """Reads JSON.

    Raises:
        ValueError: it is none.
    """
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def pack_rows(rows: Rows) -> bytes:
    """Writes a table; the same rows are always the same bytes."""
    text = json.dumps(rows, separators=(",", ":"), allow_nan=False).encode()
    # Of digits, zlib's default strategy makes short matches that cost more than they
    # save: 1,000 rows of two-colors take 35.7 kB this way, 38.3 kB that way.
    deflate = zlib.compressobj(9, wbits=_GZIP, memLevel=9, strategy=zlib.Z_FILTERED)
    return deflate.compress(text) + deflate.flush()


def unpack_rows(data: bytes) -> Rows:
    """Reads a table.

    Raises:
        ValueError: it is none: columns of one length, of finite numbers or None.
    """
    most = max(_MOST_TABLE_BYTES, _MOST_COMPRESSION * len(data))
    try:
        inflate = zlib.decompressobj(wbits=_GZIP)
        text = inflate.decompress(data, most)
        if not inflate.eof:
            raise ValueError(f"not whole, or of more than {most} bytes")
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
