"""Select the corrupted CIFAR images on which FD-Shifts evaluates."""

import numpy as np

from abstain.typing import IntArray


def subsampled_rows(n: int, n_classes: int, factor: int) -> IntArray:
    """Return the rows that FD-Shifts selects for each corruption and severity.

    The rows are divided into as many blocks of equal length as there are classes. FD-Shifts selects
    the first rows of each block. FD-Shifts sorts the rows by class but does not use the sorted
    rows, so the classes are not equally frequent. Reference: `CorruptCIFAR.subsample_idx` in
    `fd_shifts/loaders/dataset_collection.py`.

    Parameters
    ----------
    n : int
        Number of images for each corruption and severity.
    n_classes : int
        Number of classes.
    factor : int
        Ratio of all rows to selected rows. At least one row of each block is selected.

    Returns
    -------
    int64 ndarray
        Row numbers in ascending order.

    Examples
    --------
    >>> subsampled_rows(40, n_classes=2, factor=10).tolist()
    [0, 1, 20, 21]
    """
    block = max(1, n // n_classes)
    rows = np.arange(n)
    return np.flatnonzero((rows % block < max(1, block // factor)) & (rows < block * n_classes))
