"""Names of methods: hyphens and underscores mean the same."""

import pytest

from abstain.errors import UnknownNameError
from abstain_bench.results.scope import asked_methods
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.selection import Chosen


@pytest.mark.parametrize("name", ["mcd_msr", "mcd-msr"])
def test_both_spellings_are_accepted(name):
    assert METHODS[name].name == "mcd-msr"


def test_reports_select_methods_in_both_spellings():
    chosen = [
        Chosen(method=name, metric="augrc", arm="cross-entropy", setting="a", value=None)
        for name in ("msr", "mcd-msr")
    ]
    assert asked_methods(chosen, ["mcd_msr"]) == (chosen[1],)
    with pytest.raises(UnknownNameError, match="no method named 'mcd_mcp'"):
        asked_methods(chosen, ["mcd_mcp"])
