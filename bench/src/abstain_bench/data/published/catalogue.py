"""The catalogue of data sets, in the order in which they are listed."""

from abstain._foundation.catalogue import Catalogue
from abstain_bench.data import embedded
from abstain_bench.data.entry import DataSet
from abstain_bench.data.published import cifar, mnist, svhn, tiny_imagenet

#: Every data set by name.
DATASETS: Catalogue[DataSet] = Catalogue("data set", list_command="list datasets")

for _module in (embedded, cifar, svhn, tiny_imagenet, mnist):
    for _entry in _module.ENTRIES:
        DATASETS.add(_entry)
