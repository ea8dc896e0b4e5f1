"""Readers of MNIST, Fashion-MNIST and EMNIST from IDX files."""

import gzip
import math
import zlib
from pathlib import Path
from typing import IO, Literal, cast

import numpy as np

from abstain._foundation import checks
from abstain.errors import FileFormatError, InputError
from abstain.typing import Array
from abstain_bench.data.downloads import Layout, check_labels
from abstain_bench.data.embedded import DIGITS
from abstain_bench.data.entry import DataSet
from abstain_bench.data.images import Images

#: Code of the type of unsigned bytes in IDX files.
_UBYTE = 8
_MAX_AXES = 4
#: Upper bound of the compression ratio of gzip.
_MAX_COMPRESSION = 1100


def read_idx(path: str | Path) -> Array:
    """Read an IDX file that contains an array of unsigned bytes.

    References
    ----------
    .. [1] LeCun, Cortes, Burges, The MNIST database, http://yann.lecun.com/exdb/mnist/

    Examples
    --------
    >>> from abstain_bench.data.published import read_idx
    >>> read_idx("t10k-labels-idx1-ubyte.gz").shape  # doctest: +SKIP
    (10000,)
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    is_compressed = path.name.endswith(".gz")
    try:
        with gzip.open(path, "rb") if is_compressed else path.open("rb") as file:
            return _read_content(cast("IO[bytes]", file), path, is_compressed=is_compressed)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileFormatError(
            f"{path.name} is cut off or no gzip file ({error}); get it again"
        ) from None


def _read_content(file: IO[bytes], path: Path, *, is_compressed: bool) -> Array:
    """Read the header and the array of an open IDX file."""
    head = file.read(4)
    n_axes = head[3] if len(head) == 4 else 0
    if head[:3] != bytes([0, 0, _UBYTE]) or not 1 <= n_axes <= _MAX_AXES:
        raise FileFormatError(
            f"{path.name} is no IDX file of bytes: it begins with {head.hex() or 'nothing'}, not "
            "with 000008"
        )
    lengths = file.read(4 * n_axes)
    if len(lengths) < 4 * n_axes:
        raise FileFormatError(
            f"{path.name} is cut off inside its first {4 + 4 * n_axes} bytes; get it again"
        )
    shape = tuple(np.frombuffer(lengths, ">u4").tolist())
    count = math.prod(shape)
    # A damaged length must not exceed the memory. One additional byte reveals a file that is too
    # long.
    max_size = path.stat().st_size * (_MAX_COMPRESSION if is_compressed else 1)
    content = file.read(min(count, max_size) + 1)
    if len(content) != count:
        is_cut_off = len(content) < count
        problem = "is cut off (half extracted?)" if is_cut_off else "is too long"
        size = f"it has {len(content):,}" if is_cut_off else "it has more"
        sides = " x ".join(f"{side:,}" for side in shape)
        raise FileFormatError(
            f"{path.name} {problem}: its header states {sides} = {count:,} bytes, and {size}; "
            "get it again"
        )
    return np.frombuffer(content, np.uint8).reshape(shape).copy()


EmnistSplit = Literal["balanced", "byclass", "bymerge", "digits", "letters", "mnist"]

_CLOTHES = (
    "T-shirt/top", "trouser", "pullover", "dress", "coat",
    "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip
_EMNIST_SPLITS = ("balanced", "byclass", "bymerge", "digits", "letters", "mnist")
#: Names of the splits in the files of MNIST.
_PARTS = ("train", "t10k")
#: Files in which other libraries store the digits as pickled objects.
_PICKLED = ("training.pt", "mnist.pkl.gz", "mnist.pkl")


def read_mnist(folder: str | Path) -> tuple[Images, Images]:
    """Read MNIST, which has 60,000 training and 10,000 test images of handwritten digits.

    Parameters
    ----------
    folder : str or Path
        Folder with ``train-images-idx3-ubyte`` and the three other files, uncompressed or
        compressed with gzip.

    Returns
    -------
    tuple of Images
        Training images and test images.

    Raises
    ------
    InputError
        If the folder or one of its files does not exist.
    FileFormatError
        If a file is incomplete or is not an IDX file, or if the numbers of images and labels
        differ.

    References
    ----------
    .. [1] LeCun et al. (1998), Gradient-based learning applied to document recognition

    Examples
    --------
    >>> from abstain_bench.data.published import read_mnist
    >>> train, test = read_mnist("data/mnist")  # doctest: +SKIP
    """
    return _read_splits(folder, "MNIST", DIGITS)


def read_fashion_mnist(folder: str | Path) -> tuple[Images, Images]:
    """Read Fashion-MNIST, which has 60,000 training and 10,000 test images of clothing.

    Parameters
    ----------
    folder : str or Path
        Folder with ``train-images-idx3-ubyte`` and the three other files, uncompressed or
        compressed with gzip. The Debian package ``dataset-fashion-mnist`` installs the files in
        ``/usr/share/datasets/fashion-mnist``.

    Returns
    -------
    tuple of Images
        Training images and test images.

    Raises
    ------
    InputError
        If the folder or one of its files does not exist.
    FileFormatError
        If a file is incomplete or is not an IDX file, or if the numbers of images and labels
        differ.

    Notes
    -----
    The files of MNIST have the same names and sizes, so the function cannot detect that the folder
    contains MNIST.

    References
    ----------
    .. [1] Xiao et al. (2017), Fashion-MNIST, https://arxiv.org/abs/1708.07747

    Examples
    --------
    >>> from abstain_bench.data.published import read_fashion_mnist
    >>> train, test = read_fashion_mnist("/usr/share/datasets/fashion-mnist")  # doctest: +SKIP
    """
    return _read_splits(folder, "Fashion-MNIST", _CLOTHES)


def read_emnist(folder: str | Path, *, split: EmnistSplit = "balanced") -> tuple[Images, Images]:
    """Read a split of EMNIST, which contains handwritten letters and digits.

    Parameters
    ----------
    folder : str or Path
        Folder ``gzip`` of ``gzip.zip``, or a folder that contains it.
    split : str, default="balanced"
        Name of the split, which is "balanced", "byclass", "bymerge", "digits", "letters" or
        "mnist".

    Returns
    -------
    tuple of Images
        Training images and test images. The stored images are transposed, and the function returns
        them upright.

    Raises
    ------
    InputError
        If the folder, one of its files or the split does not exist.
    FileFormatError
        If a file is incomplete or is not an IDX file. If the images, the labels and the mapping of
        labels to characters are inconsistent.

    References
    ----------
    .. [1] Cohen et al. (2017), EMNIST: extending MNIST to handwritten letters,
       https://arxiv.org/abs/1702.05373

    Examples
    --------
    >>> from abstain_bench.data.published import read_emnist
    >>> train, test = read_emnist("data/emnist", split="letters")  # doctest: +SKIP
    """
    checks.one_of(split, "split", _EMNIST_SPLITS)
    stem = f"emnist-{split}-"
    layout = Layout(
        "emnist",
        f"EMNIST ({split})",
        (f"{stem}mapping.txt", f"{stem}train-images-idx3-ubyte.gz"),
        archives=("emnist.zip",),
    )
    data_folder = layout.find_folder(folder)
    mapping_path = layout.require(data_folder, f"{stem}mapping.txt")
    codes, names = _read_mapping(mapping_path)
    splits = []
    for part in ("train", "test"):
        pixels, labels = _read_images_and_labels(data_folder, f"{stem}{part}", layout)
        description = f"{stem}{part}-labels-idx1-ubyte does not belong to {mapping_path.name}"
        check_labels(description, labels, ~np.isin(labels, codes), "which it does not name")
        upright = np.ascontiguousarray(pixels.transpose(0, 2, 1))
        splits.append(Images(upright[:, None], np.searchsorted(codes, labels), names))
    return splits[0], splits[1]


def _read_splits(folder: str | Path, title: str, classes: tuple[str, ...]) -> tuple[Images, Images]:
    """Read the training and test images of a data set with the file names of MNIST."""
    layout = Layout(
        title.lower(),
        title,
        tuple(f"{part}-images{suffix}" for part in _PARTS for suffix in _idx_suffixes(3)),
        subfolders=("raw",),
        pickled=dict.fromkeys(_PICKLED, "the IDX files (train-images-idx3-ubyte and three more)"),
    )
    data_folder = layout.find_folder(folder)
    splits = []
    for part in _PARTS:
        pixels, labels = _read_images_and_labels(data_folder, part, layout)
        check_labels(
            f"the labels of {part} are not those of {title}",
            labels,
            labels >= len(classes),
            f"and the last class is {len(classes) - 1}",
        )
        splits.append(Images(pixels[:, None], labels.astype(np.int64), classes))
    return splits[0], splits[1]


def _read_images_and_labels(folder: Path, stem: str, layout: Layout) -> tuple[Array, Array]:
    """Read the images and the labels of a split, and check that their numbers match."""
    pixels = read_idx(_find_idx_file(folder, f"{stem}-images", 3, layout))
    labels = read_idx(_find_idx_file(folder, f"{stem}-labels", 1, layout))
    if pixels.ndim != 3 or pixels.shape[1:] != (28, 28) or labels.ndim != 1:
        raise FileFormatError(
            f"the files {stem} in {str(folder)!r} are not those of {layout.title}: images have "
            f"28 x 28 pixels, and these have the axes {pixels.shape} and labels {labels.shape}"
        )
    if len(pixels) != len(labels):
        raise FileFormatError(
            f"the files {stem} in {str(folder)!r} do not belong together: {len(pixels):,} images "
            f"and {len(labels):,} labels"
        )
    return pixels, labels


def _find_idx_file(folder: Path, stem: str, n_axes: int, layout: Layout) -> Path:
    """Return the path of an IDX file, or raise InputError if it does not exist."""
    for suffix in _idx_suffixes(n_axes):
        if (folder / f"{stem}{suffix}").is_file():
            return folder / f"{stem}{suffix}"
    raise InputError(
        f"{stem}-idx{n_axes}-ubyte (or .gz) is missing in {str(folder)!r}; "
        f"{layout.download_command}, again"
    )


def _idx_suffixes(n_axes: int) -> tuple[str, ...]:
    """Return the possible endings of the names of IDX files."""
    return tuple(f"{dot}idx{n_axes}-ubyte{gz}" for dot in "-." for gz in ("", ".gz"))


def _read_mapping(path: Path) -> tuple[Array, tuple[str, ...]]:
    """Read a mapping file, and return the sorted labels and the character of each label."""
    lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    rows = [line.split() for line in lines if line.strip()]
    is_valid = [len(row) >= 2 and all(number.isdigit() for number in row) for row in rows]
    if not rows or not all(is_valid):
        raise FileFormatError(
            f"{path.name} must have a label and its character codes in every line"
        )
    rows.sort(key=lambda row: int(row[0]))
    labels = np.array([int(row[0]) for row in rows])
    characters = tuple("/".join(chr(int(code)) for code in row[1:]) for row in rows)
    return labels, characters


ENTRIES = (
    DataSet(
        "mnist",
        "MNIST",
        "70,000 handwritten digits, 28 x 28, from a folder with its IDX files.",
        "LeCun et al. 1998",
        lambda folder, _: read_mnist(folder),
        needs_folder=True,
        # Some letters look like digits.
        new={"fashion-mnist": "far-new-class", "emnist-letters": "new-class"},
    ),
    DataSet(
        "fashion-mnist",
        "Fashion-MNIST",
        "70,000 pieces of clothing, 28 x 28, from a folder with its IDX files.",
        "Xiao et al. 2017",
        lambda folder, _: read_fashion_mnist(folder),
        needs_folder=True,
        new={"mnist": "far-new-class", "emnist-letters": "far-new-class"},
    ),
    DataSet(
        "emnist-letters",
        "EMNIST, letters",
        "145,600 handwritten letters, 28 x 28, from a folder with the IDX files of EMNIST.",
        "Cohen et al. 2017",
        lambda folder, _: read_emnist(folder, split="letters"),
        needs_folder=True,
        download_name="emnist",
    ),
)
