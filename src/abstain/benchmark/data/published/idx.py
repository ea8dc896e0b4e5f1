"""IDX files, arrays of bytes with a short head, plain or compressed with gzip."""

import gzip
import math
import zlib
from pathlib import Path
from typing import IO, cast

import numpy as np

from abstain.errors import FileFormatError, InputError
from abstain.typing import Array

_UBYTE = 8
_MAX_AXES = 4
#: gzip makes nothing smaller than this.
_MOST_COMPRESSED = 1100


def read_idx(path: str | Path) -> Array:
    """Read one IDX file of bytes.

    Parameters
    ----------
    path : str or Path
        The file; a name that ends in ``.gz`` is decompressed.

    Returns
    -------
    uint8 ndarray
        With the axes that the file states.

    Raises
    ------
    InputError
        There is no such file.
    FileFormatError
        It is no IDX file of bytes, or cut off, or longer than it says.

    References
    ----------
    .. [1] LeCun, Cortes, Burges, The MNIST database, http://yann.lecun.com/exdb/mnist/

    Examples
    --------
    >>> from abstain.benchmark.data.published import read_idx
    >>> read_idx("t10k-labels-idx1-ubyte.gz").shape  # doctest: +SKIP
    (10000,)
    """
    where = Path(path)
    if not where.is_file():
        msg = f"there is no file {str(where)!r}"
        raise InputError(msg)
    try:
        compressed = where.name.endswith(".gz")
        with gzip.open(where, "rb") if compressed else where.open("rb") as file:
            return _content(cast("IO[bytes]", file), where)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        msg = f"{where.name} is cut off or no gzip file ({error}); get it again"
        raise FileFormatError(msg) from None


def _content(file: IO[bytes], path: Path) -> Array:
    head = file.read(4)
    axes = head[3] if len(head) == 4 else 0
    if head[:3] != bytes([0, 0, _UBYTE]) or not 1 <= axes <= _MAX_AXES:
        shown = head.hex() or "nothing"
        msg = f"{path.name} is no IDX file of bytes: it begins with {shown}, not with 000008"
        raise FileFormatError(msg)
    lengths = file.read(4 * axes)
    if len(lengths) < 4 * axes:
        msg = f"{path.name} is cut off inside its first {4 + 4 * axes} bytes; get it again"
        raise FileFormatError(msg)
    shape = tuple(int(x) for x in np.frombuffer(lengths, ">u4"))
    count = math.prod(shape)
    size = path.stat().st_size * (_MOST_COMPRESSED if path.name.endswith(".gz") else 1)
    # A damaged length may ask for more memory than there is. One byte more than there must be
    # tells of a file that is too long.
    found = file.read(min(count, size) + 1)
    if len(found) != count:
        how = "is cut off (half extracted?)" if len(found) < count else "is too long"
        there = f"it has {len(found):,}" if len(found) < count else "it has more"
        sides = " x ".join(f"{x:,}" for x in shape)
        msg = f"{path.name} {how}: it promises {sides} = {count:,} bytes, and {there}; get it again"
        raise FileFormatError(msg)
    return np.frombuffer(found, np.uint8).reshape(shape).copy()
