"""CIFAR-10 and CIFAR-100 in the official *binary* version, and their corrupted test images.

The version for Python is made of pickles, which can run any code when they are read: it never is.
"""

from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError

import numpy as np

from abstain._foundation import checks
from abstain.errors import FileFormatError, InputError
from abstain.typing import Array
from abstain_bench.data.corruptions import SEVERITIES
from abstain_bench.data.downloads import Layout, check_labels, class_names
from abstain_bench.data.entry import DataSet
from abstain_bench.data.images import Images

_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class Format:
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


CIFAR10 = Format(
    layout=Layout(
        "cifar10", "CIFAR-10", ("data_batch_1.bin",), pickled={"data_batch_1": "the binary one"}
    ),
    train=tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
    test=("test_batch.bin",),
    names="batches.meta.txt",
    classes=10,
    head=1,
    records=(10_000, 10_000),
)
CIFAR100 = Format(
    layout=Layout("cifar100", "CIFAR-100", ("train.bin",), pickled={"train": "the binary one"}),
    train=("train.bin",),
    test=("test.bin",),
    names="fine_label_names.txt",
    classes=100,
    head=2,
    records=(50_000, 10_000),
)


def read_cifar10(folder: str | Path, *, records: int | None = None) -> tuple[Images, Images]:
    """Read CIFAR-10, 50,000 and 10,000 images of 32 x 32 in color.

    Parameters
    ----------
    folder : str or Path
        ``cifar-10-batches-bin`` as it comes out of ``cifar-10-binary.tar.gz``, or the folder
        that holds it.
    records : int, optional
        Images in each file, where they are no longer those of the official version.

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
    >>> from abstain_bench.data import read_cifar10
    >>> train, test = read_cifar10("data/cifar-10-batches-bin")  # doctest: +SKIP
    """
    return _read(Path(folder), CIFAR10, records)


def read_cifar100(folder: str | Path, *, records: int | None = None) -> tuple[Images, Images]:
    """Read CIFAR-100 with its 100 fine classes, 50,000 and 10,000 images of 32 x 32 in color.

    Parameters
    ----------
    folder : str or Path
        ``cifar-100-binary`` as it comes out of ``cifar-100-binary.tar.gz``, or the folder that
        holds it.
    records : int, optional
        Images in each file, where they are no longer those of the official version.

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
    >>> from abstain_bench.data import read_cifar100
    >>> train, test = read_cifar100("data/cifar-100-binary")  # doctest: +SKIP
    """
    return _read(Path(folder), CIFAR100, records)


def _read(folder: Path, kind: Format, records: int | None) -> tuple[Images, Images]:
    where = kind.layout.place(folder)
    if records is not None:
        checks.positive_int(records, "records")
    path = where / kind.names
    # Numbers where their file is missing.
    names = class_names(path, kind.classes) if path.is_file() else _numbers(kind.classes)
    sizes = kind.records if records is None else (records, records)
    parts = []
    for files, count in zip((kind.train, kind.test), sizes, strict=True):
        read = [_records(kind.layout.needed(where, name), kind, count) for name in files]
        found = np.concatenate(read)
        pixels = np.ascontiguousarray(found[:, kind.head :]).reshape(-1, 3, 32, 32)
        part = Images(pixels, found[:, kind.head - 1].astype(np.int64), names)
        if records is None:
            _refuse_unequal(part, kind, files)
        parts.append(part)
    return parts[0], parts[1]


def _records(path: Path, kind: Format, count: int) -> Array:
    """Read one file as (records, bytes of a record)."""
    length = kind.head + _PIXELS
    size, wanted = path.stat().st_size, count * length
    if size != wanted:
        how = "is cut off (half extracted?)" if size < wanted else "is too long"
        raise FileFormatError(
            f"{path.name} {how}: {count:,} images of {length:,} bytes make {wanted:,} bytes, "
            f"and it has {size:,}; {kind.layout.how} again"
        )
    found = np.fromfile(path, dtype=np.uint8).reshape(count, length)
    labels, what = found[:, kind.head - 1], f"{path.name} is not of {kind.layout.title} in the "
    rule = f"and the last class is {kind.classes - 1}"
    check_labels(f"{what}binary version", labels, labels >= kind.classes, rule)
    return found


def _refuse_unequal(part: Images, kind: Format, files: tuple[str, ...]) -> None:
    """Refuse files that are not the official ones, in which all classes are equally frequent."""
    counts = np.bincount(part.labels, minlength=kind.classes)
    if counts.min() != counts.max():
        raise FileFormatError(
            f"{', '.join(files)} are not the files of {kind.layout.title}: every class has "
            f"{part.n // kind.classes:,} images there, and here class {counts.argmin()} has "
            f"{counts.min():,} and class {counts.argmax()} has {counts.max():,}"
        )


# -------------------------------------------------------------------------- corrupted test images
#: The 15 corruptions of the benchmark, by the names of their files.
CORRUPTIONS = (
    "gaussian_noise", "shot_noise", "impulse_noise",
    "defocus_blur", "glass_blur", "motion_blur", "zoom_blur",
    "snow", "frost", "fog", "brightness",
    "contrast", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
#: Four more, which the authors keep for choosing settings.
EXTRA_CORRUPTIONS = ("speckle_noise", "gaussian_blur", "spatter", "saturate")

#: What NumPy raises at damaged files; it reads their head as Python's tokenizer does.
_DAMAGE = (ValueError, TypeError, KeyError, EOFError, OSError, SyntaxError, MemoryError, TokenError)
_RECORDS = 10_000
_NAMES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


def read_cifar10_c(
    folder: str | Path, corruption: str, severity: int, *, records: int | None = None
) -> Images:
    """Read the test images of CIFAR-10 under one corruption at one severity.

    Parameters
    ----------
    folder : str or Path
        ``CIFAR-10-C`` as it comes out of ``CIFAR-10-C.tar``, or the folder that holds it.
    corruption : str
        A name of `CORRUPTIONS` or `EXTRA_CORRUPTIONS`, such as "fog".
    severity : int
        1 to 5. Only these images are taken into memory.
    records : int, optional
        Images of each severity, where they are no longer the 10,000 of the official version.

    Returns
    -------
    Images
        In the order of CIFAR-10's test images.

    Raises
    ------
    InputError
        The folder or the file does not exist, or there is no such corruption or severity.
    FileFormatError
        A file is cut off, of another shape or type, or made of pickles; or a label no class has.

    References
    ----------
    .. [1] Hendrycks & Dietterich (2019), Benchmarking neural network robustness to common
       corruptions and perturbations, https://arxiv.org/abs/1903.12261

    Examples
    --------
    >>> from abstain_bench.data.published import read_cifar10_c
    >>> foggy = read_cifar10_c("data/CIFAR-10-C", "fog", 3)  # doctest: +SKIP
    """
    return _read_corrupted(Path(folder), "CIFAR-10-C", corruption, severity, (_NAMES, records))


def read_cifar100_c(
    folder: str | Path,
    corruption: str,
    severity: int,
    *,
    classes: tuple[str, ...] | None = None,
    records: int | None = None,
) -> Images:
    """Read the test images of CIFAR-100 under one corruption at one severity.

    Parameters
    ----------
    folder : str or Path
        ``CIFAR-100-C`` as it comes out of ``CIFAR-100-C.tar``, or the folder that holds it.
    corruption : str
        A name of `CORRUPTIONS` or `EXTRA_CORRUPTIONS`, such as "fog".
    severity : int
        1 to 5. Only these images are taken into memory.
    classes : tuple of str, optional
        The names of the 100 classes, which the files do not have (`read_cifar100` returns them);
        by default their numbers.
    records : int, optional
        Images of each severity, where they are no longer the 10,000 of the official version.

    Returns
    -------
    Images
        In the order of CIFAR-100's test images, with its fine labels.

    Raises
    ------
    InputError
        The folder or the file does not exist, or there is no such corruption or severity.
    FileFormatError
        A file is cut off, of another shape or type, or made of pickles; or a label no class has.

    References
    ----------
    .. [1] Hendrycks & Dietterich (2019), Benchmarking neural network robustness to common
       corruptions and perturbations, https://arxiv.org/abs/1903.12261

    Examples
    --------
    >>> from abstain_bench.data.published import read_cifar100_c
    >>> foggy = read_cifar100_c("data/CIFAR-100-C", "fog", 3)  # doctest: +SKIP
    """
    names = _numbers(100) if classes is None else tuple(classes)
    if len(names) != 100:
        raise InputError(f"`classes` must name the 100 classes of CIFAR-100; got {len(names)}")
    return _read_corrupted(Path(folder), "CIFAR-100-C", corruption, severity, (names, records))


def _numbers(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def _read_corrupted(
    folder: Path,
    title: str,
    corruption: str,
    severity: int,
    expected: tuple[tuple[str, ...], int | None],
) -> Images:
    checks.one_of(corruption, "corruption", (*CORRUPTIONS, *EXTRA_CORRUPTIONS))
    if checks.positive_int(severity, "severity") > SEVERITIES:
        raise InputError(f"`severity` must be 1 to {SEVERITIES}; got {severity}")
    classes, records = expected
    count = _RECORDS if records is None else checks.positive_int(records, "records")
    marks = ("labels.npy", *(f"{name}.npy" for name in CORRUPTIONS))
    layout = Layout(title.lower().replace("-", "", 1), title, marks)
    where = layout.place(folder)
    whole = (SEVERITIES * count, 32, 32, 3)
    pixels = _array(layout.needed(where, f"{corruption}.npy"), whole, layout)
    labels = _array(layout.needed(where, "labels.npy"), whole[:1], layout)
    part = slice((severity - 1) * count, severity * count)
    own = np.asarray(labels[part]).astype(np.int64)
    wrong, rule = (own < 0) | (own >= len(classes)), f"and the last class is {len(classes) - 1}"
    check_labels(f"labels.npy is not of {title}", own, wrong, rule, first=part.start)
    # The files have the channels last.
    return Images(np.ascontiguousarray(pixels[part].transpose(0, 3, 1, 2)), own, classes)


def _array(path: Path, shape: tuple[int, ...], layout: Layout) -> Array:
    """Map one file into memory, without reading it whole and without unpickling anything."""
    again = f"{layout.how}, again"
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except _DAMAGE as error:
        words = " ".join(str(error).split())
        if "pickle" in words.lower() or "object" in words.lower():
            msg = (
                f"{path.name} is no array of numbers or is made of pickles, which are never read, "
                f"as they can run any code; take the official version: {again}"
            )
        else:
            msg = f"{path.name} is cut off or damaged (half extracted?); {again} ({words})"
        raise FileFormatError(msg) from None
    if not isinstance(found, np.ndarray) or found.shape != shape or found.dtype.kind not in "iu":
        there = f"{found.dtype} {found.shape}" if isinstance(found, np.ndarray) else "an archive"
        raise FileFormatError(
            f"{path.name} must hold whole numbers of shape {shape}, and it holds {there}; {again}"
        )
    if found.ndim > 1 and found.dtype != np.uint8:
        raise FileFormatError(
            f"{path.name} must hold bytes (uint8), and it holds {found.dtype}; {again}"
        )
    return found


ENTRIES = (
    DataSet(
        "cifar10",
        "CIFAR-10",
        "60,000 color images, 32 x 32, of 10 classes, from a folder in the binary version.",
        "Krizhevsky 2009",
        lambda folder, records: read_cifar10(folder, records=records),
        needs_folder=True,
        new={
            "cifar100": "new-class",
            "svhn": "far-new-class",
            # Cats, dogs and trucks among them: FD-Shifts counts all as new, and so do we.
            "tiny-imagenet": "far-new-class",
        },
        load_corrupted=read_cifar10_c,
    ),
    DataSet(
        "cifar100",
        "CIFAR-100",
        "60,000 color images, 32 x 32, of 100 classes, from a folder in the binary version.",
        "Krizhevsky 2009",
        lambda folder, records: read_cifar100(folder, records=records),
        needs_folder=True,
        new={"cifar10": "new-class", "svhn": "far-new-class", "tiny-imagenet": "far-new-class"},
        load_corrupted=read_cifar100_c,
    ),
)
