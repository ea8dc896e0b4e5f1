"""Networks side by side: the published tables, and folders of runs."""

import numpy as np
import pytest
from bench.tests.runs.made_store import made_store

from abstain.errors import InputError
from abstain.plots import SpreadDisplay, SpreadValues
from abstain_bench.published import table
from abstain_bench.results import results_of
from abstain_bench.studies import study_backbones


@pytest.fixture(scope="module")
def printed():
    return study_backbones()


def test_the_published_tables_say_what_the_paper_says(printed):
    """ViT is better by AURC on all data sets but iWildCam."""
    summary = printed.frame("summary").filter(metric="aurc")
    behind = summary.filter(second_better=False)["data"].to_list()
    assert behind == ["iWildCam"]
    assert "better on 5 of 6 data sets (not on iWildCam)" in printed.verdict[0]
    assert "due more to a higher accuracy" in printed.verdict[-1]


def test_medians_and_pairs_by_hand(printed):
    cells = [c for c in table("fd_shifts_table_9") if c["dataset"] == "BREEDS"]
    by = {
        name: {(c["study"], c["printed"]): c["number"] for c in cells if c["classifier"] == name}
        for name in ("CNN", "ViT")
    }
    (row,) = printed.frame("summary").filter(data="BREEDS", metric="failure_auroc").rows(named=True)
    assert row["first_median"] == pytest.approx(np.median(list(by["CNN"].values())))
    assert row["second_median"] == pytest.approx(np.median(list(by["ViT"].values())))
    both = [key for key in by["CNN"] if key in by["ViT"]]
    assert row["pairs"] == len(both) == 16
    assert row["pairs_better"] == sum(by["ViT"][k] > by["CNN"][k] for k in both)


def test_folders_of_runs(tmp_path):
    stores = [made_store(tmp_path / name, n=60, severities=(1,)) for name in "ab"]
    result = study_backbones(runs=[tmp_path / name for name in "ab"])
    assert len(result.parameters["networks"]) == 2
    expected = {
        (dict(e.data)["study"], e.method): e.value
        for e in results_of(stores[0], metrics=["aurc"]).comparisons["aurc"].estimates
        if e.run == "mean"
    }
    first = result.parameters["networks"][0]
    rows = result.frame().filter(network=first, metric="aurc").rows(named=True)
    assert rows
    for row in rows:
        assert row["value"] == pytest.approx(expected[row["study"], row["score"]], abs=1e-12)
    # The two folders hold the same numbers, so neither is better in any pair.
    assert result.frame("summary")["pairs_better"].sum() == 0
    with pytest.raises(InputError, match="at least two folders"):
        study_backbones(runs=[tmp_path / "a"])


def test_dots_boxes_and_their_table(printed):
    display = printed.figures["networks"]
    assert display.frame().height == 3 * 483
    display.plot()
    assert display.ax_.get_yticklabels()[0].get_text() == "iWildCam"
    few = SpreadDisplay((SpreadValues("a", "r", "n", (1.0, 2.0, np.nan)),), "Few").plot()
    assert not few.ax_.patches
    many = SpreadDisplay((SpreadValues("a", "r", "n", (1.0, 2.0, 3.0, 4.0, 5.0)),), "Many").plot()
    (box,) = many.ax_.patches
    assert (box.get_x(), box.get_width()) == (2.0, 2.0)
    with pytest.raises(InputError, match="at least one value"):
        SpreadDisplay((SpreadValues("a", "r", "n", (np.nan,)),), "None")
