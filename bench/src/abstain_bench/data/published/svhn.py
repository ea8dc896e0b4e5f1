"""Read SVHN, which contains digits of house numbers, from MATLAB 5 files."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from abstain.errors import FileFormatError
from abstain.typing import Array
from abstain_bench.data.downloads import Layout, check_labels, expected_count
from abstain_bench.data.embedded import DIGITS
from abstain_bench.data.entry import DataSet
from abstain_bench.data.images import Images

# ------------------------------------------------------------------------------- MATLAB 5 files
# `scipy.io` also reads these files, but a damaged file can crash the process in compiled code
# (SciPy 1.17). The reader in this module supports only arrays of real numbers.
#: Number of bytes of the header of a file.
_HEAD = 128
#: Type code of a variable.
_MATRIX = 14
#: Type code of a compressed variable.
_COMPRESSED = 15
#: Data type of the stored numbers by the type code of the element.
_STORED = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
#: Data type of an array by its class code.
_CLASSES = {
    6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8",
}  # fmt: skip
_COMPLEX = 0x08
#: Largest size of a variable in bytes.
_MAX_BYTES = 1 << 31


class _DamageError(Exception):
    """Raised if a file is damaged. The message describes the damage."""


def read_matlab5(path: Path, names: tuple[str, ...]) -> dict[str, Array]:
    """Read the named arrays from a MATLAB 5 file, or raise FileFormatError."""
    content = path.read_bytes()
    order = {b"IM": "<", b"MI": ">"}.get(content[126:_HEAD])
    if order is None:
        first_bytes = content[:8].hex(" ") or "nothing"
        raise FileFormatError(
            f"{path.name} ({len(content):,} bytes) is no MATLAB 5 file: "
            f"it begins with {first_bytes}"
        )
    if struct.unpack(f"{order}H", content[124:126])[0] == 0x0200:
        raise FileFormatError(f"{path.name} is a MATLAB 7.3 file, and it must be one of MATLAB 5")
    try:
        return dict(_arrays(memoryview(content)[_HEAD:], names, order))
    except (_DamageError, zlib.error, struct.error, ValueError, MemoryError) as error:
        damage = " ".join(str(error).split())
        raise FileFormatError(
            f"{path.name} ({len(content):,} bytes) is cut off or damaged ({damage})"
        ) from None


def _arrays(data: memoryview, names: tuple[str, ...], order: str) -> Iterator[tuple[str, Array]]:
    """Yield the name and the array of each requested variable of a MATLAB 5 file."""
    remaining = data
    while len(remaining):
        type_code, body, remaining = _element(remaining, order, padded=False)
        if type_code == _COMPRESSED:
            type_code, body = _decompress(body, order)
        if type_code != _MATRIX:
            raise _DamageError(f"a variable has the type {type_code}")
        name_and_array = _matrix(body, names, order)
        if name_and_array is not None:
            yield name_and_array


def _element(
    data: memoryview, order: str, *, padded: bool = True
) -> tuple[int, memoryview, memoryview]:
    """Return the type and the content of the first data element, and the remaining bytes."""
    if len(data) < 8:
        raise _DamageError("it ends inside a tag")
    type_code, n_bytes = struct.unpack(f"{order}II", data[:8])
    # A small element stores its size in the upper half of the type code. Its content is in the tag.
    small_size = type_code >> 16
    if small_size:
        if small_size > 4:
            raise _DamageError(f"a small element has {small_size} bytes, and its limit is 4")
        return type_code & 0xFFFF, data[4 : 4 + small_size], data[8:]
    end = 8 + n_bytes
    if len(data) < end:
        raise _DamageError(f"the header states {n_bytes:,} bytes, and {len(data) - 8:,} follow")
    # Elements begin at multiples of 8 bytes.
    padding = -n_bytes % 8 if padded else 0
    return type_code, data[8:end], data[end + padding :]


def _decompress(body: memoryview, order: str) -> tuple[int, memoryview]:
    """Decompress a variable, verify its checksum, and return its type code and content."""
    decompressor = zlib.decompressobj()
    tag = decompressor.decompress(body, 8)
    if len(tag) < 8:
        raise _DamageError("a compressed variable ends early")
    type_code, n_bytes = struct.unpack(f"{order}II", tag)
    if n_bytes > _MAX_BYTES:
        raise _DamageError(f"a variable of {n_bytes:,} bytes is too large")
    # The limit has one additional byte, so that the decompressor reads the checksum at the end.
    content = decompressor.decompress(decompressor.unconsumed_tail, n_bytes + 1)
    if len(content) != n_bytes or not decompressor.eof:
        raise _DamageError(
            f"the header of a compressed variable states {n_bytes:,} bytes, and it has "
            f"{len(content):,}"
        )
    return type_code, memoryview(content)


def _matrix(body: memoryview, names: tuple[str, ...], order: str) -> tuple[str, Array] | None:
    """Return the name and the array of a variable, or None if it is not requested."""
    _, flags, after_flags = _element(body, order)
    _, dimensions, after_dimensions = _element(after_flags, order)
    _, encoded_name, after_name = _element(after_dimensions, order)
    name = bytes(encoded_name).decode("latin-1")
    if name not in names:
        return None
    # The lowest byte is the class code, and the next byte contains the flags.
    class_and_flags = struct.unpack(f"{order}I", flags[:4])[0]
    dtype = _CLASSES.get(class_and_flags & 0xFF)
    if dtype is None or (class_and_flags >> 8) & _COMPLEX:
        raise _DamageError(f"{name} is no array of real numbers")
    shape = tuple(np.frombuffer(dimensions, f"{order}i4").tolist())
    type_code, values, _ = _element(after_name, order)
    if type_code not in _STORED:
        raise _DamageError(f"{name} is stored as the type {type_code}")
    flat = np.frombuffer(values, np.dtype(f"{order}{_STORED[type_code]}"))
    if min(shape, default=-1) < 0 or flat.size != np.prod(shape, dtype=object):
        raise _DamageError(f"{name} has the shape {shape}, and {flat.size:,} numbers")
    return name, flat.astype(dtype).reshape(shape, order="F")


_N_IMAGES = {"train_32x32.mat": 73_257, "test_32x32.mat": 26_032}
_LAYOUT = Layout("svhn", "SVHN", tuple(_N_IMAGES))


def read_svhn(folder: str | Path, *, records: int | None = None) -> tuple[Images, Images]:
    """Read SVHN, which has 73,257 training and 26,032 test images of digits of 32 x 32 pixels.

    Parameters
    ----------
    folder : str or Path
        Folder with ``train_32x32.mat`` and ``test_32x32.mat``.
    records : int, optional
        Number of images in each file, if it differs from the official version.

    Returns
    -------
    tuple of Images
        Training images and test images. The files label the digit 0 as 10; the function labels it
        as 0.

    Raises
    ------
    InputError
        If the folder or one of its files does not exist.
    FileFormatError
        If a file is incomplete or is not a MATLAB 5 file, if an array has an unexpected shape, or
        if a label is not a digit.

    References
    ----------
    .. [1] Netzer et al. (2011), Reading digits in natural images with unsupervised feature
       learning, http://ufldl.stanford.edu/housenumbers/

    Examples
    --------
    >>> from abstain_bench.data.published import read_svhn
    >>> train, test = read_svhn("data/svhn")  # doctest: +SKIP
    """
    data_folder = _LAYOUT.find_folder(folder)
    train, test = [
        _read(_LAYOUT.require(data_folder, name), expected_count(n_official, records))
        for name, n_official in _N_IMAGES.items()
    ]
    return train, test


def _read(path: Path, count: int) -> Images:
    """Read the images and labels of a file, and validate their shapes, types and values."""
    try:
        variables = read_matlab5(path, ("X", "y"))
    except FileFormatError as error:
        raise FileFormatError(
            f"{error}; take the official file: {_LAYOUT.download_command}"
        ) from None
    if "X" not in variables or "y" not in variables:
        raise FileFormatError(f"{path.name} is not of SVHN: it must hold the variables X and y")
    pixels = variables["X"]
    labels = variables["y"].ravel()
    if pixels.dtype != np.uint8 or pixels.shape[:-1] != (32, 32, 3):
        raise FileFormatError(
            f"{path.name} is not of SVHN: X must hold bytes of shape (32, 32, 3, n), and it holds "
            f"{pixels.dtype} {pixels.shape}"
        )
    if not pixels.shape[-1] == labels.size == count:
        raise FileFormatError(
            f"{path.name} must hold {count:,} images with a label each, and it holds "
            f"{pixels.shape[-1]:,} and {labels.size:,} labels; {_LAYOUT.download_command}, again"
        )
    rule = "and labels are 1 to 9, and 10 for a zero"
    check_labels(f"{path.name} is not of SVHN", labels, ~np.isin(labels, np.arange(1, 11)), rule)
    digits = labels.astype(np.int64) % 10
    return Images(np.ascontiguousarray(pixels.transpose(3, 2, 0, 1)), digits, DIGITS)


ENTRIES = (
    DataSet(
        "svhn",
        "SVHN",
        "99,289 house numbers in color, 32 x 32, from a folder with its MATLAB files.",
        "Netzer et al. 2011",
        lambda folder, records: read_svhn(folder, records=records),
        needs_folder=True,
        new=dict.fromkeys(("cifar10", "cifar100", "tiny-imagenet"), "far-new-class"),
    ),
)
