"""The catalogue of methods, read by the runner, the documentation and the tests."""

from abstain._foundation.catalogue import Catalogue
from abstain.benchmark.methods import dropout, ensembles, feature_space, learned, post_hoc
from abstain.benchmark.methods._entry import Method

#: Every method, in the order of tables.
METHODS: Catalogue[Method] = Catalogue("method", listed="list scores")
for _part in (post_hoc, dropout, learned, feature_space, ensembles):
    for _entry in _part.ENTRIES:
        METHODS.add(_entry)
