"""The compared libraries and algorithms compute the same values as abstain."""

import os

import numpy as np
import pytest
from benchmarks.cases import files, peers, resampling, starting
from benchmarks.cases.entry import AbsentError
from benchmarks.inputs import draw_samples
from tests.peers import folder_of_peer, import_peer

import abstain as ab


@pytest.fixture(params=["float32", "float64, 55% tied"])
def samples(request):
    return draw_samples(request.param, 3000)


@pytest.mark.peers
@pytest.mark.parametrize("name", ["polars", "duckdb"])
def test_query_computes_the_augrc(name, samples):
    import_peer(name)
    result = getattr(peers, f"with_{name}")(samples)()
    assert result == pytest.approx(ab.augrc(samples.confidence, samples.loss), rel=1e-12)


def test_scikit_learn_computes_the_failure_auroc(samples):
    pytest.importorskip("sklearn")
    result = peers.scikit_learn("roc_auc_score")(samples)()
    assert result == pytest.approx(ab.failure_auroc(samples.confidence, samples.loss), rel=1e-12)


@pytest.mark.peers
def test_torch_uncertainty_computes_the_augrc_without_ties():
    folder_of_peer("torch_uncertainty")
    samples = draw_samples("float64", 3000)
    results = [peers.torch_uncertainty(columns)(samples)() for columns in (1, 2)]
    assert results == pytest.approx([ab.augrc(samples.confidence, samples.loss)] * 2, rel=1e-2)


@pytest.mark.parametrize("kind", ["float32", "float64, 55% tied"])
def test_published_loop_and_numpy_compute_both_areas(kind):
    samples = draw_samples(kind, 800)
    order = np.argsort(samples.confidence)
    areas = ab.risk_coverage_areas(samples.confidence, samples.loss)
    expected = pytest.approx((areas.aurc, areas.augrc), rel=1e-9)
    assert resampling.loop_areas(samples.confidence[order], samples.loss[order]) == expected
    assert resampling.areas(-samples.confidence[order[::-1]], samples.loss[order[::-1]]) == expected


def test_missing_fd_shifts_raises_an_error(monkeypatch):
    monkeypatch.delenv(peers.FD_SHIFTS, raising=False)
    with pytest.raises(AbsentError, match="--fd-shifts FOLDER"):
        peers.fd_shifts_class()


@pytest.mark.skipif(not os.environ.get(peers.FD_SHIFTS), reason="a checkout of FD-Shifts is needed")
def test_fd_shifts_computes_both_areas(monkeypatch, samples):
    monkeypatch.setattr(peers, "FD_SHIFTS_SHARE", 1.0)
    areas = ab.risk_coverage_areas(samples.confidence, samples.loss)
    result = peers.fd_shifts(samples)()
    assert result == pytest.approx((1000 * areas.aurc, 1000 * areas.augrc), rel=1e-9)


def test_written_files_can_be_read(tmp_path):
    path = files.class_scores(tmp_path / "wide.parquet", 50, 7)
    groups = ab.read_predictions(path, probabilities=["p_*"], label="label")
    (predictions,) = groups.values()
    assert predictions.probabilities.shape == (50, 7)


def test_install_size_includes_dependencies():
    sizes = starting.sizes_of("scipy")
    assert {"scipy", "numpy"} <= set(sizes)
    assert sizes["numpy"] > 10**7
