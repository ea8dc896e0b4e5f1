"""SVHN, house numbers from street views, in the format of cropped digits (MATLAB 5 files)."""

from pathlib import Path

import numpy as np

from abstain._foundation import checks
from abstain.benchmark.data.images import Images
from abstain.benchmark.data.published.matlab5 import read_matlab5
from abstain.benchmark.data.published.places import Layout, needed, place
from abstain.errors import FileFormatError

_LAYOUT = Layout(
    title="SVHN",
    marks=("train_32x32.mat", "test_32x32.mat"),
    how="`abstain data fetch svhn --folder DIR`",
    inside=("svhn", "SVHN"),
)
_RECORDS = {"train_32x32.mat": 73_257, "test_32x32.mat": 26_032}
_DIGITS = tuple(str(digit) for digit in range(10))


def read_svhn(folder: str | Path, *, records: int | None = None) -> tuple[Images, Images]:
    """Read SVHN, 73,257 and 26,032 digits of 32 x 32 in color.

    Parameters
    ----------
    folder : str or Path
        The folder with ``train_32x32.mat`` and ``test_32x32.mat``.
    records : int, optional
        Pictures in each file, where they are no longer those of the official version.

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
    >>> from abstain.benchmark.data.published import read_svhn
    >>> train, test = read_svhn("data/svhn")  # doctest: +SKIP
    """
    where = place(folder, _LAYOUT)
    if records is not None:
        checks.positive_int(records, "records")
    parts = []
    for name, official in _RECORDS.items():
        path = needed(where, name, _LAYOUT)
        parts.append(_read(path, official if records is None else records))
    return parts[0], parts[1]


def _read(path: Path, count: int) -> Images:
    try:
        variables = read_matlab5(path, ("X", "y"))
    except FileFormatError as error:
        msg = f"{error}; take the official file: {_LAYOUT.how}"
        raise FileFormatError(msg) from None
    if "X" not in variables or "y" not in variables:
        msg = f"{path.name} is not of SVHN: it must hold the variables X and y"
        raise FileFormatError(msg)
    pixels, labels = variables["X"], variables["y"].ravel()
    if pixels.dtype != np.uint8 or pixels.shape[:-1] != (32, 32, 3) or pixels.ndim != 4:
        msg = (
            f"{path.name} is not of SVHN: X must hold bytes of shape (32, 32, 3, n), and it holds "
            f"{pixels.dtype} {pixels.shape}"
        )
        raise FileFormatError(msg)
    if not pixels.shape[-1] == labels.size == count:
        msg = (
            f"{path.name} must hold {count:,} pictures with a label each, and it holds "
            f"{pixels.shape[-1]:,} and {labels.size:,} labels; {_LAYOUT.how}, again"
        )
        raise FileFormatError(msg)
    wrong = np.flatnonzero(~np.isin(labels, np.arange(1, 11)))
    if wrong.size:
        msg = (
            f"{path.name} is not of SVHN: labels are 1 to 9, and 10 for a zero; picture "
            f"{wrong[0]:,} has the label {labels[wrong[0]]}"
        )
        raise FileFormatError(msg)
    digits = labels.astype(np.int64) % 10
    return Images(np.ascontiguousarray(pixels.transpose(3, 2, 0, 1)), digits, _DIGITS)
