"""The catalogue of data sets, in the order in which they are listed."""

from collections.abc import Mapping
from types import MappingProxyType

from abstain._foundation import checks
from abstain._foundation.catalogue import Catalogue
from abstain_bench.data import embedded
from abstain_bench.data.entry import DataSet, NewClass
from abstain_bench.data.published import cifar, mnist, svhn, tiny_imagenet

#: Every data set by name.
DATASETS: Catalogue[DataSet] = Catalogue("data set", list_command="list datasets")

for _module in (embedded, cifar, svhn, tiny_imagenet, mnist):
    for _entry in _module.ENTRIES:
        DATASETS.add(_entry)

#: Data set -> data sets with images of new classes, in the order of the tables of FD-Shifts.
#: FD-Shifts has no such data sets for TinyImageNet, MNIST and Fashion-MNIST.
NEW_CLASS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {name: tuple(entry.new) for name, entry in DATASETS.items() if entry.new}
)


def new_class_kind(inliers: str, outliers: str) -> NewClass:
    """Return whether the images of another data set are near or far new classes.

    Parameters
    ----------
    inliers : str
        The data set that was trained on, a key of `NEW_CLASS`.
    outliers : str
        The data set of the new classes, one of that entry.

    Returns
    -------
    str
        "new-class" where only the meaning differs (a semantic shift: CIFAR-100 for CIFAR-10),
        "far-new-class" where the images are of another kind too (a non-semantic shift: SVHN).

    Raises
    ------
    InputError
        The two are no pair of `NEW_CLASS`.

    Examples
    --------
    >>> from abstain_bench.data.published import NEW_CLASS, new_class_kind
    >>> {name: new_class_kind("cifar10", name) for name in NEW_CLASS["cifar10"]}
    {'cifar100': 'new-class', 'svhn': 'far-new-class', 'tiny-imagenet': 'far-new-class'}
    """
    checks.one_of(inliers, "inliers", tuple(NEW_CLASS))
    checks.one_of(outliers, "outliers", NEW_CLASS[inliers])
    return DATASETS[inliers].new[outliers]
