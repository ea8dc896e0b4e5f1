"""Names of methods: hyphens and underscores mean the same."""

import numpy as np
import pytest

from abstain.errors import UnknownNameError
from abstain_bench.results.scope import select_methods
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.selection import SelectedSetting
from abstain_bench.runs.store import RunScores, ScoreFile, pack_scores


@pytest.mark.parametrize("name", ["mcd_msr", "mcd-msr"])
def test_both_spellings_are_accepted(name):
    assert METHODS[name].name == "mcd_msr"


def test_stored_scores_of_earlier_versions_are_read(tmp_path):
    codes = np.array([0, 1])
    confidence = {"mcd-msr": np.array([2.0, 1.0]), "their-own": np.array([0.0, 1.0])}
    part = RunScores("iid", codes, codes, codes, None, confidence, reasons={"dg-res": "none"})
    (tmp_path / "a.npz").write_bytes(pack_scores([part]))
    scores = ScoreFile(tmp_path / "a.npz").read("iid")
    assert list(scores.confidence) == ["mcd_msr", "their-own"]
    assert scores.reasons == {"dg_res": "none"}


def test_reports_select_methods_in_both_spellings():
    selected = [
        SelectedSetting(method=name, metric="augrc", arm="cross-entropy", setting="a", value=None)
        for name in ("msr", "mcd_msr")
    ]
    assert select_methods(selected, ["mcd-msr"]) == (selected[1],)
    with pytest.raises(UnknownNameError, match="no method named 'mcd_mcp'"):
        select_methods(selected, ["mcd_mcp"])
