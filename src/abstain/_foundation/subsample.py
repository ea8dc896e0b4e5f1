"""The subsample of the corrupted images of CIFAR that FD-Shifts tests."""

import numpy as np

from abstain.typing import IntArray


def subsampled_rows(n: int, n_classes: int, factor: int) -> IntArray:
    """Return the rows that FD-Shifts takes from each corruption and severity.

    The rows are divided into as many blocks of equal length as there are classes, and the first
    rows of each block are taken. FD-Shifts sorts the rows by class and does not use the result, so
    the classes are not equally frequent. Reference: `CorruptCIFAR.subsample_idx` in
    `fd_shifts/loaders/dataset_collection.py`.

    Parameters
    ----------
    n : int
        Number of images of each corruption and severity.
    n_classes : int
        Number of classes.
    factor : int
        One in this many rows is taken, and at least one of each block.

    Returns
    -------
    int64 ndarray
        Row numbers, increasing.

    Examples
    --------
    >>> subsampled_rows(40, n_classes=2, factor=10).tolist()
    [0, 1, 20, 21]
    """
    block = max(1, n // n_classes)
    rows = np.arange(n)
    return np.flatnonzero((rows % block < max(1, block // factor)) & (rows < block * n_classes))
