"""Define the catalogue of data sets, in the order of `abstain list datasets`."""

from abstain._foundation.catalogue import Catalogue
from abstain_bench.data import embedded
from abstain_bench.data.entry import DataSet
from abstain_bench.data.published import cifar, mnist, svhn, tiny_imagenet

#: All data sets by name.
DATASETS: Catalogue[DataSet] = Catalogue("data set", list_command="list datasets")

for _module in (embedded, cifar, svhn, tiny_imagenet, mnist):
    for _entry in _module.ENTRIES:
        DATASETS.add(_entry)
