"""Select the subset of corrupted CIFAR images that FD-Shifts evaluates."""

import numpy as np

from abstain.typing import IntArray


def subsampled_rows(n: int, n_classes: int, factor: int) -> IntArray:
    """Return the indices of the images that FD-Shifts selects for each corruption and severity.

    The images are divided into one block of equal size per class, and the first images of each
    block are selected. The images are not sorted by class, so the class frequencies in the subset
    vary. Reference: `CorruptCIFAR.subsample_idx` in `fd_shifts/loaders/dataset_collection.py`.

    Parameters
    ----------
    n : int
        Number of images for each corruption and severity.
    n_classes : int
        Number of classes.
    factor : int
        Ratio of all images to selected images. At least one image of each block is selected.

    Returns
    -------
    int64 ndarray
        Indices of the selected images in ascending order.

    Examples
    --------
    >>> subsampled_rows(40, n_classes=2, factor=10).tolist()
    [0, 1, 20, 21]
    """
    block_size = max(1, n // n_classes)
    n_per_block = max(1, block_size // factor)
    index = np.arange(n)
    is_first_of_block = index % block_size < n_per_block
    is_in_block = index < block_size * n_classes
    return np.flatnonzero(is_first_of_block & is_in_block)
