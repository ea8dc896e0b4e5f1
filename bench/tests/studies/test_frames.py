"""Tables of a study in each library."""

import pytest
from tests.foundation.test_frames import has_the_same_table

from abstain_bench.studies import STUDIES


@pytest.mark.parametrize("backend", ["pandas", "pyarrow"])
def test_a_study_has_the_same_table_in_each_library(backend):
    has_the_same_table(STUDIES["precision"].run().frame, backend)
