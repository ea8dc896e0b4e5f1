"""Agreement with torch-uncertainty and torchmetrics, and why ties make a difference."""

import importlib.util

import numpy as np
import pytest
from tests.peers import folder_of_peer

import abstain as ab

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

from torchmetrics.classification import (  # noqa: E402
    BinaryCalibrationError,
    MulticlassCalibrationError,
)

from abstain.integrations import torchmetrics as tm  # noqa: E402


@pytest.fixture(scope="module")
def theirs():
    """The one file of torch-uncertainty with its metrics; the package wants torchvision."""
    path = folder_of_peer("torch_uncertainty") / "metrics" / "classification" / "risk_coverage.py"
    alone = importlib.util.spec_from_file_location("torch_uncertainty_risk_coverage", path)
    module = importlib.util.module_from_spec(alone)
    alone.loader.exec_module(module)
    return module


def binary(n, seed, *, ties):
    """Distinct or tied probabilities of class 1 above 1/2, and labels."""
    rng = np.random.default_rng(seed)
    p = rng.permutation(np.linspace(0.5001, 0.9999, n)) if not ties else rng.choice([0.6, 0.9], n)
    return torch.tensor(p), torch.tensor((rng.random(n) < p).astype(np.int64))


@pytest.mark.peers
@pytest.mark.parametrize("n", [2, 30, 1001])
@pytest.mark.parametrize("name", ["AURC", "AUGRC"])
def test_torch_uncertainty_without_ties(theirs, name, n):
    p, target = binary(n, seed=n, ties=False)
    reference = getattr(theirs, name)()
    reference.update(p, target)
    c, wrong = p, target == 0
    ours = getattr(tm, name)()
    ours.update(c, wrong)
    # No segment below coverage 1/n, and divided by the width that is left.
    first = float(wrong[c.argmax()])
    missing = first / n if name == "AURC" else first / (2 * n * n)
    converted = (ours.compute().item() - missing) / (1 - 1 / n)
    # Theirs is in float32.
    assert converted == pytest.approx(float(reference.compute()), rel=2e-6)
    published = ab.published_aurc if name == "AURC" else ab.published_augrc
    assert converted == pytest.approx(
        published(c, wrong, convention="torch-uncertainty"), rel=1e-12
    )


@pytest.mark.peers
def test_torch_uncertainty_depends_on_the_order_of_tied_rows(theirs):
    # Ten predictions of one confidence, two of them wrong: no order is better than another.
    p = torch.full((10,), 0.75)
    wrong_first = torch.tensor([0, 0, 1, 1, 1, 1, 1, 1, 1, 1])
    values = {"theirs": [], "ours": [], "bounded": []}
    for target in (wrong_first, wrong_first.flip(0)):
        for name, metric in (("theirs", theirs.AUGRC()), ("ours", None), ("bounded", None)):
            bins = 256 if name == "bounded" else None
            given = (p, target) if metric is not None else (p, target == 0)
            one = metric or tm.AUGRC(bins=bins)
            one.update(*given)
            values[name].append(float(one.compute()))
    best, worst = sorted(values["theirs"])
    assert worst > 4 * best
    # Ours is the mean over all orders, here R/2, whatever the order of the rows.
    assert values["ours"] == values["bounded"] == [0.1, 0.1]
    limits = ab.tie_bounds(p, wrong_first == 0)
    assert limits.low < 0.1 < limits.high


@pytest.mark.parametrize("bins", [10, 15])
@pytest.mark.parametrize("norm", ["l1", "max"])
def test_calibration_error_of_torchmetrics(bins, norm):
    rng = np.random.default_rng(0)
    logits = torch.tensor(rng.normal(0, 2, (2000, 6)))
    target = torch.tensor(rng.integers(0, 6, 2000))
    target[:1200] = logits[:1200].argmax(1)
    theirs = MulticlassCalibrationError(num_classes=6, n_bins=bins, norm=norm)
    theirs.update(logits, target)
    top = logits.softmax(1).max(1)
    function = ab.ece if norm == "l1" else ab.mce
    ours = function(top.values, top.indices != target, bins=bins)
    assert ours == pytest.approx(float(theirs.compute()), abs=1e-6)
    if bins == 15:
        metric = tm.SelectiveMetric("ece" if norm == "l1" else "mce", inputs="logits")
        metric.update(logits, target)
        assert metric.compute().item() == pytest.approx(float(theirs.compute()), abs=1e-6)


def test_binary_calibration_error_of_torchmetrics():
    # theirs bins the probability of class 1, so it is ours where that is the confidence.
    p, target = binary(3000, seed=1, ties=False)
    theirs = BinaryCalibrationError(n_bins=15)
    theirs.update(p, target)
    assert ab.ece(p, target == 0) == pytest.approx(float(theirs.compute()), abs=1e-6)
