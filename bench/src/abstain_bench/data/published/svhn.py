"""SVHN, house numbers from street views, in the format of cropped digits (MATLAB 5 files)."""

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
# SciPy reads these files too, but a damaged one can end the whole process (a crash in compiled
# code, SciPy 1.17), and files come damaged. Only arrays of real numbers are read, nothing else.
_HEAD = 128
_MATRIX, _COMPRESSED = 14, 15
#: How numbers are stored, by the number of the type.
_STORED = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
#: What they are, by the number of the class of the array.
_CLASSES = {
    6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8",
}  # fmt: skip
_COMPLEX = 0x08
#: Arrays above this are none of those that are read here.
_MOST_BYTES = 1 << 31


class _DamageError(Exception):
    """What is wrong inside a file."""


def read_matlab5(path: Path, names: tuple[str, ...]) -> dict[str, Array]:
    """Return the arrays of these names that a file holds; refuse a file that is damaged."""
    content = path.read_bytes()
    order = {b"IM": "<", b"MI": ">"}.get(content[126:_HEAD])
    if order is None:
        shown = " ".join(content[:8].hex(" ").split()) or "nothing"
        raise FileFormatError(
            f"{path.name} ({len(content):,} bytes) is no MATLAB 5 file: it begins with {shown}"
        )
    if struct.unpack(f"{order}H", content[124:126])[0] == 0x0200:
        raise FileFormatError(f"{path.name} is a MATLAB 7.3 file, and it must be one of MATLAB 5")
    try:
        found = dict(_arrays(memoryview(content)[_HEAD:], names, order))
    except (_DamageError, zlib.error, struct.error, ValueError, MemoryError) as error:
        words = " ".join(str(error).split())
        raise FileFormatError(
            f"{path.name} ({len(content):,} bytes) is cut off or damaged ({words})"
        ) from None
    return found


def _arrays(rest: memoryview, names: tuple[str, ...], order: str) -> Iterator[tuple[str, Array]]:
    while len(rest):
        kind, body, rest = _element(rest, order, padded=False)
        if kind == _COMPRESSED:
            kind, body = _inflated(body, order)
        if kind != _MATRIX:
            raise _DamageError(f"a variable has the type {kind}")
        named = _matrix(body, names, order)
        if named is not None:
            yield named


def _element(
    rest: memoryview, order: str, *, padded: bool = True
) -> tuple[int, memoryview, memoryview]:
    """Return the type and the content of the first element, and what follows it."""
    if len(rest) < 8:
        raise _DamageError("it ends inside a tag")
    kind, count = struct.unpack(f"{order}II", rest[:8])
    if kind >> 16:  # up to four bytes, inside the tag
        count, kind = kind >> 16, kind & 0xFFFF
        if count > 4:
            raise _DamageError(f"{count} bytes are said to fit into four")
        return kind, rest[4 : 4 + count], rest[8:]
    end = 8 + count
    if len(rest) < end:
        raise _DamageError(f"the header states {count:,} bytes, and {len(rest) - 8:,} follow")
    return kind, rest[8:end], rest[end + (-count % 8 if padded else 0) :]


def _inflated(body: memoryview, order: str) -> tuple[int, memoryview]:
    """Decompress one variable; its checksum is checked."""
    machine = zlib.decompressobj()
    head = machine.decompress(body, 8)
    if len(head) < 8:
        raise _DamageError("a compressed variable ends early")
    kind, count = struct.unpack(f"{order}II", head)
    if count > _MOST_BYTES:
        raise _DamageError(f"a variable of {count:,} bytes is too large")
    # One byte more than there must be, so that the end with its checksum is reached.
    found = machine.decompress(machine.unconsumed_tail, count + 1)
    if len(found) != count or not machine.eof:
        raise _DamageError(
            f"the header of a compressed variable states {count:,} bytes, and it has {len(found):,}"
        )
    return kind, memoryview(found)


def _matrix(body: memoryview, names: tuple[str, ...], order: str) -> tuple[str, Array] | None:
    """Return name and array of one variable, or None for a name that was not asked for."""
    _, flags, body = _element(body, order)
    _, sides, body = _element(body, order)
    _, label, body = _element(body, order)
    name = bytes(label).decode("latin-1")
    if name not in names:
        return None
    word = struct.unpack(f"{order}I", flags[:4])[0]
    kind = _CLASSES.get(word & 0xFF)
    if kind is None or (word >> 8) & _COMPLEX:
        raise _DamageError(f"{name} is no array of real numbers")
    shape = tuple(int(x) for x in np.frombuffer(sides, f"{order}i4"))
    stored, values, _ = _element(body, order)
    if stored not in _STORED:
        raise _DamageError(f"{name} is stored as the type {stored}")
    flat = np.frombuffer(values, np.dtype(f"{order}{_STORED[stored]}"))
    if min(shape, default=-1) < 0 or flat.size != np.prod(shape, dtype=object):
        raise _DamageError(f"{name} has the shape {shape}, and {flat.size:,} numbers")
    return name, flat.astype(kind).reshape(shape, order="F")


_N_IMAGES = {"train_32x32.mat": 73_257, "test_32x32.mat": 26_032}
_LAYOUT = Layout("svhn", "SVHN", tuple(_N_IMAGES))


def read_svhn(folder: str | Path, *, records: int | None = None) -> tuple[Images, Images]:
    """Read SVHN, 73,257 and 26,032 digits of 32 x 32 in color.

    Parameters
    ----------
    folder : str or Path
        The folder with ``train_32x32.mat`` and ``test_32x32.mat``.
    records : int, optional
        Images in each file, where they are no longer those of the official version.

    Returns
    -------
    tuple of Images
        For training, and for testing. The files call a zero 10; here it is 0.

    Raises
    ------
    InputError
        The folder or one of its files does not exist.
    FileFormatError
        A file is cut off, no MATLAB 5 file, of another shape, or has a label that is no digit.

    References
    ----------
    .. [1] Netzer et al. (2011), Reading digits in natural images with unsupervised feature
       learning, http://ufldl.stanford.edu/housenumbers/

    Examples
    --------
    >>> from abstain_bench.data.published import read_svhn
    >>> train, test = read_svhn("data/svhn")  # doctest: +SKIP
    """
    folder = _LAYOUT.find_folder(folder)
    train, test = (
        _read(_LAYOUT.require(folder, name), expected_count(n_official, records))
        for name, n_official in _N_IMAGES.items()
    )
    return train, test


def _read(path: Path, count: int) -> Images:
    try:
        variables = read_matlab5(path, ("X", "y"))
    except FileFormatError as error:
        raise FileFormatError(
            f"{error}; take the official file: {_LAYOUT.download_command}"
        ) from None
    if "X" not in variables or "y" not in variables:
        raise FileFormatError(f"{path.name} is not of SVHN: it must hold the variables X and y")
    pixels, labels = variables["X"], variables["y"].ravel()
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
