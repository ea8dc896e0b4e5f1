"""Who is shown beside ours does the same job: the numbers are the same."""

import os

import numpy as np
import pytest
from benchmarks.cases import files, peers, resampling, starting
from benchmarks.cases.entry import AbsentError
from benchmarks.inputs import draw_samples
from tests.peers import folder_of_peer, import_peer

import abstain as ab


@pytest.fixture(params=["float32", "float64, 55% tied"])
def one(request):
    return draw_samples(request.param, 3000)


@pytest.mark.peers
@pytest.mark.parametrize("name", ["polars", "duckdb"])
def test_tables_give_the_augrc(name, one):
    import_peer(name)
    result = getattr(peers, f"with_{name}")(one)()
    assert result == pytest.approx(ab.augrc(one.confidence, one.loss), rel=1e-12)


def test_scikit_learn_gives_the_failure_auroc(one):
    pytest.importorskip("sklearn")
    result = peers.scikit_learn("roc_auc_score")(one)()
    assert result == pytest.approx(ab.failure_auroc(one.confidence, one.loss), rel=1e-12)


@pytest.mark.peers
def test_torch_uncertainty_gives_the_augrc_without_ties():
    folder_of_peer("torch_uncertainty")
    one = draw_samples("float64", 3000)
    results = [peers.torch_uncertainty(columns)(one)() for columns in (1, 2)]
    assert results == pytest.approx([ab.augrc(one.confidence, one.loss)] * 2, rel=1e-2)


@pytest.mark.parametrize("kind", ["float32", "float64, 55% tied"])
def test_the_published_loop_and_sorting_again_give_both_areas(kind):
    one = draw_samples(kind, 800)
    order = np.argsort(one.confidence)
    ours = ab.risk_coverage_areas(one.confidence, one.loss)
    expected = pytest.approx((ours.aurc, ours.augrc), rel=1e-9)
    assert resampling.loop_areas(one.confidence[order], one.loss[order]) == expected
    assert resampling.areas(-one.confidence[order[::-1]], one.loss[order[::-1]]) == expected


def test_fd_shifts_is_told_to_be_absent(monkeypatch):
    monkeypatch.delenv(peers.FD_SHIFTS, raising=False)
    with pytest.raises(AbsentError, match="--fd-shifts FOLDER"):
        peers.fd_shifts_class()


@pytest.mark.skipif(not os.environ.get(peers.FD_SHIFTS), reason="a checkout of FD-Shifts is needed")
def test_fd_shifts_gives_both_areas(monkeypatch, one):
    monkeypatch.setattr(peers, "FD_SHIFTS_SHARE", 1.0)
    ours = ab.risk_coverage_areas(one.confidence, one.loss)
    result = peers.fd_shifts(one)()
    assert result == pytest.approx((1000 * ours.aurc, 1000 * ours.augrc), rel=1e-9)


def test_made_files_are_read(tmp_path):
    wide = files.class_scores(tmp_path / "wide.parquet", 50, 7)
    read = ab.read_predictions(wide, probabilities=["p_*"], label="label")
    (part,) = read.values()
    assert part.probabilities.shape == (50, 7)


def test_the_size_of_an_install_counts_what_it_asks_for():
    sizes = starting.sizes_of("scipy")
    assert {"scipy", "numpy"} <= set(sizes)
    assert sizes["numpy"] > 10**7
