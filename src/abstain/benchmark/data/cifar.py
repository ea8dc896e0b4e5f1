"""CIFAR-10 and CIFAR-100 from a local folder, in the official *binary* version.

The version for Python is made of pickles, which can run any code when they are read: it never is.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from abstain._foundation import checks
from abstain.benchmark.data.folders import Layout, needed, place
from abstain.benchmark.data.images import Images
from abstain.errors import FileFormatError
from abstain.typing import Array

_PIXELS = 3 * 32 * 32
_PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"


@dataclass(frozen=True)
class _Format:
    """One of the two data sets as files."""

    layout: Layout
    train: tuple[str, ...]
    test: tuple[str, ...]
    names: str
    classes: int
    #: Bytes before the pixels; the last is the label.
    head: int
    #: Records of a training and of a test file.
    records: tuple[int, int]


def _layout(title: str, folder: str, archive: str, mark: str, pickled: str) -> Layout:
    how = f"unpack {archive} from {_PAGE}"
    return Layout(title, (mark,), how, (folder,), (archive,), {pickled: f"the binary one: {how}"})


_CIFAR10 = _Format(
    layout=_layout(
        "CIFAR-10",
        "cifar-10-batches-bin",
        "cifar-10-binary.tar.gz",
        mark="data_batch_1.bin",
        pickled="data_batch_1",
    ),
    train=tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
    test=("test_batch.bin",),
    names="batches.meta.txt",
    classes=10,
    head=1,
    records=(10_000, 10_000),
)
_CIFAR100 = _Format(
    layout=_layout(
        "CIFAR-100",
        "cifar-100-binary",
        "cifar-100-binary.tar.gz",
        mark="train.bin",
        pickled="train",
    ),
    train=("train.bin",),
    test=("test.bin",),
    names="fine_label_names.txt",
    classes=100,
    head=2,
    records=(50_000, 10_000),
)


def read_cifar10(folder: str | Path, *, records: int | None = None) -> tuple[Images, Images]:
    """Read CIFAR-10, 50,000 and 10,000 pictures of 32 x 32 in color.

    Parameters
    ----------
    folder : str or Path
        ``cifar-10-batches-bin`` as it comes out of ``cifar-10-binary.tar.gz``, or the folder
        that holds it.
    records : int, optional
        Pictures in each file, where they are no longer those of the official version.

    Returns
    -------
    tuple of Images
        For training, and for testing.

    Raises
    ------
    InputError
        The folder or one of its files does not exist, or it is the version for Python, which is
        made of pickles and never read.
    FileFormatError
        A file has another size than it must have (half extracted), a label no class has, or
        classes of unequal size.

    References
    ----------
    .. [1] Krizhevsky (2009), Learning multiple layers of features from tiny images,
       https://www.cs.toronto.edu/~kriz/cifar.html

    Examples
    --------
    >>> from abstain.benchmark.data import read_cifar10
    >>> train, test = read_cifar10("data/cifar-10-batches-bin")  # doctest: +SKIP
    """
    return _read(Path(folder), _CIFAR10, records)


def read_cifar100(folder: str | Path, *, records: int | None = None) -> tuple[Images, Images]:
    """Read CIFAR-100 with its 100 fine classes, 50,000 and 10,000 pictures of 32 x 32 in color.

    Parameters
    ----------
    folder : str or Path
        ``cifar-100-binary`` as it comes out of ``cifar-100-binary.tar.gz``, or the folder that
        holds it.
    records : int, optional
        Pictures in each file, where they are no longer those of the official version.

    Returns
    -------
    tuple of Images
        For training, and for testing.

    Raises
    ------
    InputError
        The folder or one of its files does not exist, or it is the version for Python, which is
        made of pickles and never read.
    FileFormatError
        A file has another size than it must have (half extracted), a label no class has, or
        classes of unequal size.

    References
    ----------
    .. [1] Krizhevsky (2009), Learning multiple layers of features from tiny images,
       https://www.cs.toronto.edu/~kriz/cifar.html

    Examples
    --------
    >>> from abstain.benchmark.data import read_cifar100
    >>> train, test = read_cifar100("data/cifar-100-binary")  # doctest: +SKIP
    """
    return _read(Path(folder), _CIFAR100, records)


def _read(folder: Path, kind: _Format, records: int | None) -> tuple[Images, Images]:
    where = place(folder, kind.layout)
    if records is not None:
        checks.positive_int(records, "records")
    names = _class_names(where, kind)
    sizes = kind.records if records is None else (records, records)
    parts = []
    for files, count in zip((kind.train, kind.test), sizes, strict=True):
        read = [_records(needed(where, name, kind.layout), kind, count) for name in files]
        part = _images(np.concatenate(read), kind, names)
        if records is None:
            _refuse_unequal(part, kind, files)
        parts.append(part)
    return parts[0], parts[1]


def _records(path: Path, kind: _Format, count: int) -> Array:
    """Read one file as (records, bytes of a record)."""
    length = kind.head + _PIXELS
    size, wanted = path.stat().st_size, count * length
    if size != wanted:
        how = "is cut off (half extracted?)" if size < wanted else "is too long"
        msg = (
            f"{path.name} {how}: {count:,} pictures of {length:,} bytes make {wanted:,} bytes, "
            f"and it has {size:,}; {kind.layout.how} again"
        )
        raise FileFormatError(msg)
    found = np.fromfile(path, dtype=np.uint8).reshape(count, length)
    wrong = np.flatnonzero(found[:, kind.head - 1] >= kind.classes)
    if wrong.size:
        msg = (
            f"{path.name} is not of {kind.layout.title} in the binary version: picture "
            f"{wrong[0]:,} has the label {found[wrong[0], kind.head - 1]}, and the last class is "
            f"{kind.classes - 1}"
        )
        raise FileFormatError(msg)
    return found


def _images(found: Array, kind: _Format, names: tuple[str, ...]) -> Images:
    pixels = np.ascontiguousarray(found[:, kind.head :]).reshape(-1, 3, 32, 32)
    return Images(pixels, found[:, kind.head - 1].astype(np.int64), names)


def _class_names(where: Path, kind: _Format) -> tuple[str, ...]:
    """Read the names of the classes; numbers where their file is missing."""
    path = where / kind.names
    if not path.is_file():
        return tuple(str(number) for number in range(kind.classes))
    text = path.read_text(encoding="utf-8", errors="replace")
    names = tuple(line.strip() for line in text.splitlines() if line.strip())
    if len(names) != kind.classes:
        msg = f"{path.name} must name the {kind.classes} classes, one a line; got {len(names)}"
        raise FileFormatError(msg)
    return names


def _refuse_unequal(part: Images, kind: _Format, files: tuple[str, ...]) -> None:
    """Refuse files that are not the official ones, in which all classes are equally frequent."""
    counts = np.bincount(part.labels, minlength=kind.classes)
    if counts.min() != counts.max():
        msg = (
            f"{', '.join(files)} are not the files of {kind.layout.title}: every class has "
            f"{part.n // kind.classes:,} pictures there, and here class {counts.argmin()} has "
            f"{counts.min():,} and class {counts.argmax()} has {counts.max():,}"
        )
        raise FileFormatError(msg)
