"""Read the *binary* version of CIFAR-10 and CIFAR-100, and their corrupted test images.

The Python version is not supported, because it consists of pickled objects, which can execute code.
"""

from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError

import numpy as np

from abstain._foundation import checks
from abstain.errors import FileFormatError, InputError
from abstain.typing import Array
from abstain_bench.data.corruptions import SEVERITIES
from abstain_bench.data.downloads import Layout, check_labels, expected_count, read_class_names
from abstain_bench.data.entry import DataSet
from abstain_bench.data.images import Images

_N_PIXEL_BYTES = 3 * 32 * 32


@dataclass(frozen=True)
class _Format:
    """The files of CIFAR-10 or CIFAR-100."""

    layout: Layout
    train_files: tuple[str, ...]
    test_files: tuple[str, ...]
    class_name_file: str
    n_classes: int
    #: Number of bytes before the pixels of an image. The last of them is the label.
    n_label_bytes: int
    #: Number of images in a training file and in a test file.
    n_images: tuple[int, int]


_CIFAR10 = _Format(
    Layout(
        "cifar10", "CIFAR-10", ("data_batch_1.bin",), pickled={"data_batch_1": "the binary one"}
    ),
    train_files=tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
    test_files=("test_batch.bin",),
    class_name_file="batches.meta.txt",
    n_classes=10,
    n_label_bytes=1,
    n_images=(10_000, 10_000),
)
CIFAR100 = _Format(
    Layout("cifar100", "CIFAR-100", ("train.bin",), pickled={"train": "the binary one"}),
    train_files=("train.bin",),
    test_files=("test.bin",),
    class_name_file="fine_label_names.txt",
    n_classes=100,
    n_label_bytes=2,
    n_images=(50_000, 10_000),
)


def read_cifar10(folder: str | Path, *, records: int | None = None) -> tuple[Images, Images]:
    """Read CIFAR-10, which has 50,000 training and 10,000 test images of 32 x 32 pixels.

    Parameters
    ----------
    folder : str or Path
        Folder ``cifar-10-batches-bin`` of ``cifar-10-binary.tar.gz``, or a folder that contains it.
    records : int, optional
        Number of images in each file, if it differs from the official version.

    Returns
    -------
    tuple of Images
        Training images and test images.

    Raises
    ------
    InputError
        If the folder or one of its files does not exist. If the folder contains the unsupported
        Python version, which consists of pickled objects.
    FileFormatError
        If the size of a file is not the expected size, for example after an incomplete extraction.
        If a label is invalid, or the classes have different numbers of images.

    References
    ----------
    .. [1] Krizhevsky (2009), Learning multiple layers of features from tiny images,
       https://www.cs.toronto.edu/~kriz/cifar.html

    Examples
    --------
    >>> from abstain_bench.data import read_cifar10
    >>> train, test = read_cifar10("data/cifar-10-batches-bin")  # doctest: +SKIP
    """
    return _read(Path(folder), _CIFAR10, records)


def read_cifar100(folder: str | Path, *, records: int | None = None) -> tuple[Images, Images]:
    """Read CIFAR-100 with its 100 fine-grained classes.

    The data set has 50,000 training and 10,000 test images of 32 x 32 pixels in color.

    Parameters
    ----------
    folder : str or Path
        Folder ``cifar-100-binary`` of ``cifar-100-binary.tar.gz``, or a folder that contains it.
    records : int, optional
        Number of images in each file, if it differs from the official version.

    Returns
    -------
    tuple of Images
        Training images and test images.

    Raises
    ------
    InputError
        If the folder or one of its files does not exist. If the folder contains the unsupported
        Python version, which consists of pickled objects.
    FileFormatError
        If the size of a file is not the expected size, for example after an incomplete extraction.
        If a label is invalid, or the classes have different numbers of images.

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


def _read(folder: Path, file_format: _Format, records: int | None) -> tuple[Images, Images]:
    """Read the training and test images of CIFAR-10 or CIFAR-100."""
    layout = file_format.layout
    data_folder = layout.find_folder(folder)
    names_path = data_folder / file_format.class_name_file
    if names_path.is_file():
        names = read_class_names(names_path, file_format.n_classes)
    else:
        names = _class_numbers(file_format.n_classes)
    n_label_bytes = file_format.n_label_bytes
    file_names = (file_format.train_files, file_format.test_files)
    splits = []
    for files, n_official in zip(file_names, file_format.n_images, strict=True):
        count = expected_count(n_official, records)
        blocks = [
            _read_rows(layout.require(data_folder, name), file_format, count) for name in files
        ]
        rows = np.concatenate(blocks)
        pixels = np.ascontiguousarray(rows[:, n_label_bytes:]).reshape(-1, 3, 32, 32)
        labels = rows[:, n_label_bytes - 1].astype(np.int64)
        images = Images(pixels, labels, names)
        if records is None:
            _check_equal_class_sizes(images, layout.title, files)
        splits.append(images)
    train, test = splits
    return train, test


def _read_rows(path: Path, file_format: _Format, count: int) -> Array:
    """Read a file as a uint8 array of shape (images, bytes per image)."""
    layout = file_format.layout
    length = file_format.n_label_bytes + _N_PIXEL_BYTES
    size = path.stat().st_size
    expected_size = count * length
    if size != expected_size:
        problem = "is cut off (half extracted?)" if size < expected_size else "is too long"
        raise FileFormatError(
            f"{path.name} {problem}: {count:,} images of {length:,} bytes make "
            f"{expected_size:,} bytes, and it has {size:,}; {layout.download_command} again"
        )
    rows = np.fromfile(path, dtype=np.uint8).reshape(count, length)
    labels = rows[:, file_format.n_label_bytes - 1]
    check_labels(
        f"{path.name} is not of {layout.title} in the binary version",
        labels,
        labels >= file_format.n_classes,
        f"and the last class is {file_format.n_classes - 1}",
    )
    return rows


def _check_equal_class_sizes(images: Images, title: str, files: tuple[str, ...]) -> None:
    """Raise an error if the classes have different numbers of images."""
    counts = np.bincount(images.labels, minlength=images.n_classes)
    if counts.min() != counts.max():
        raise FileFormatError(
            f"{', '.join(files)} are not the files of {title}: every class has "
            f"{images.n // images.n_classes:,} images there, and here class {counts.argmin()} has "
            f"{counts.min():,} and class {counts.argmax()} has {counts.max():,}"
        )


def _class_numbers(count: int) -> tuple[str, ...]:
    """Return consecutive numbers as text, which replace missing class names."""
    return tuple(map(str, range(count)))


# -------------------------------------------------------------------------- corrupted test images
#: Names of the files of the 15 corruptions of the benchmark.
CORRUPTIONS = (
    "gaussian_noise", "shot_noise", "impulse_noise",
    "defocus_blur", "glass_blur", "motion_blur", "zoom_blur",
    "snow", "frost", "fog", "brightness",
    "contrast", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
#: Names of the files of four further corruptions, which the authors intend for selecting settings.
EXTRA_CORRUPTIONS = ("speckle_noise", "gaussian_blur", "spatter", "saturate")

#: Errors that NumPy raises for damaged files. Some come from the tokenizer of Python, with which
#: NumPy reads the header.
_DAMAGE = (ValueError, TypeError, KeyError, EOFError, OSError, SyntaxError, MemoryError, TokenError)
_N_TEST_IMAGES = 10_000
_NAMES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


def read_cifar10_c(
    folder: str | Path, corruption: str, severity: int, *, records: int | None = None
) -> Images:
    """Read the CIFAR-10 test images with one corruption at one severity.

    Parameters
    ----------
    folder : str or Path
        Folder ``CIFAR-10-C`` of ``CIFAR-10-C.tar``, or a folder that contains it.
    corruption : str
        Name in `CORRUPTIONS` or `EXTRA_CORRUPTIONS`, such as "fog".
    severity : int
        Severity from 1 to 5. Only the images with this severity are read.
    records : int, optional
        Number of images per severity, if it differs from the 10,000 of the official version.

    Returns
    -------
    Images
        Corrupted images in the order of the test images of CIFAR-10.

    Raises
    ------
    InputError
        If the folder, the file, the corruption or the severity does not exist.
    FileFormatError
        If a file is incomplete, contains pickled objects, or has an unexpected shape or type. If a
        label is invalid.

    References
    ----------
    .. [1] Hendrycks & Dietterich (2019), Benchmarking neural network robustness to common
       corruptions and perturbations, https://arxiv.org/abs/1903.12261

    Examples
    --------
    >>> from abstain_bench.data.published import read_cifar10_c
    >>> foggy = read_cifar10_c("data/CIFAR-10-C", "fog", 3)  # doctest: +SKIP
    """
    return _read_corrupted(folder, "CIFAR-10-C", corruption, severity, _NAMES, records)


def read_cifar100_c(
    folder: str | Path,
    corruption: str,
    severity: int,
    *,
    classes: tuple[str, ...] | None = None,
    records: int | None = None,
) -> Images:
    """Read the CIFAR-100 test images with one corruption at one severity.

    Parameters
    ----------
    folder : str or Path
        Folder ``CIFAR-100-C`` of ``CIFAR-100-C.tar``, or a folder that contains it.
    corruption : str
        Name in `CORRUPTIONS` or `EXTRA_CORRUPTIONS`, such as "fog".
    severity : int
        Severity from 1 to 5. Only the images with this severity are read.
    classes : tuple of str, optional
        Names of the 100 fine classes, which the files do not contain. `read_cifar100` returns the
        names. The default names are the numbers of the classes.
    records : int, optional
        Number of images per severity, if it differs from the 10,000 of the official version.

    Returns
    -------
    Images
        Corrupted images in the order of the test images of CIFAR-100, with fine labels.

    Raises
    ------
    InputError
        If the folder, the file, the corruption or the severity does not exist.
    FileFormatError
        If a file is incomplete, contains pickled objects, or has an unexpected shape or type. If a
        label is invalid.

    References
    ----------
    .. [1] Hendrycks & Dietterich (2019), Benchmarking neural network robustness to common
       corruptions and perturbations, https://arxiv.org/abs/1903.12261

    Examples
    --------
    >>> from abstain_bench.data.published import read_cifar100_c
    >>> foggy = read_cifar100_c("data/CIFAR-100-C", "fog", 3)  # doctest: +SKIP
    """
    names = _class_numbers(100) if classes is None else tuple(classes)
    if len(names) != 100:
        raise InputError(f"`classes` must name the 100 classes of CIFAR-100; got {len(names)}")
    return _read_corrupted(folder, "CIFAR-100-C", corruption, severity, names, records)


def _read_corrupted(  # noqa: PLR0917  the arguments of the two readers
    folder: str | Path,
    title: str,
    corruption: str,
    severity: int,
    classes: tuple[str, ...],
    records: int | None,
) -> Images:
    """Read the CIFAR-10 or CIFAR-100 test images with one corruption at one severity."""
    checks.one_of(corruption, "corruption", (*CORRUPTIONS, *EXTRA_CORRUPTIONS))
    if checks.positive_int(severity, "severity") > SEVERITIES:
        raise InputError(f"`severity` must be 1 to {SEVERITIES}; got {severity}")
    count = expected_count(_N_TEST_IMAGES, records)
    marks = ("labels.npy", *(f"{name}.npy" for name in CORRUPTIONS))
    layout = Layout(title.lower().replace("-", "", 1), title, marks)
    data_folder = layout.find_folder(folder)
    # A file contains the images of all severities, sorted by severity, with the channels last.
    n_rows = SEVERITIES * count
    pixels_path = layout.require(data_folder, f"{corruption}.npy")
    pixels = _map_array(pixels_path, (n_rows, 32, 32, 3), layout)
    all_labels = _map_array(layout.require(data_folder, "labels.npy"), (n_rows,), layout)
    rows = slice((severity - 1) * count, severity * count)
    labels = np.asarray(all_labels[rows]).astype(np.int64)
    check_labels(
        f"labels.npy is not of {title}",
        labels,
        (labels < 0) | (labels >= len(classes)),
        f"and the last class is {len(classes) - 1}",
        first=rows.start,
    )
    return Images(np.ascontiguousarray(pixels[rows].transpose(0, 3, 1, 2)), labels, classes)


def _map_array(path: Path, shape: tuple[int, ...], layout: Layout) -> Array:
    """Memory-map a file that contains an integer array, without unpickling objects."""
    remedy = f"{layout.download_command}, again"
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except _DAMAGE as error:
        text = " ".join(str(error).split())
        if "pickle" in text.lower() or "object" in text.lower():
            msg = (
                f"{path.name} is no array of numbers or is made of pickles, which are never read, "
                f"as they can run any code; take the official version: {remedy}"
            )
        else:
            msg = f"{path.name} is cut off or damaged (half extracted?); {remedy} ({text})"
        raise FileFormatError(msg) from None
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype.kind not in "iu":
        content = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else "an archive"
        raise FileFormatError(
            f"{path.name} must hold whole numbers of shape {shape}, and it holds {content}; "
            f"{remedy}"
        )
    if array.ndim > 1 and array.dtype != np.uint8:
        raise FileFormatError(
            f"{path.name} must hold bytes (uint8), and it holds {array.dtype}; {remedy}"
        )
    return array


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
            # TinyImageNet also contains cats, dogs and trucks. As in FD-Shifts, all its classes are
            # new classes.
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
