"""Compare the conversions of docs/coming-from.md with the packages that the page names.

`make test-peers` installs torch-uncertainty, netcal and MAPIE in the versions that the page names. FD-Shifts is on
no package index: `fd_shifts_facts.py` stores its values. torch-uncertainty needs torchvision when it is imported as
a whole, so only its files with metrics are imported.
"""

import re

import numpy as np
import pytest
from tests.architecture.source import ROOT
from tests.peers import folder_of_peer, import_peer
from tests.references import fd_shifts_facts
from tests.references.import_files import import_files
from tests.references.random_predictions import draw_graded_losses, draw_predictions

import abstain as ab

PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
SEEDS = fd_shifts_facts.SEEDS
#: Where they compute in single precision.
SINGLE = {"rel": 2e-5, "abs": 2e-6}


def rows(heading):
    """The first cells of the table under a heading of the page."""
    part = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| (.*?) \|", part, re.MULTILINE)[2:]


def agree(found, **close):
    """Theirs, as the page has it from ours, for every row; fail with all that differ."""
    close = close or {"rel": 1e-9, "abs": 1e-9}
    wrong = {k: pair for k, pair in found.items() if pair[0] != pytest.approx(pair[1], **close)}
    assert not wrong


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_fd_shifts(seed, tied):
    d = draw_predictions(seed, tied=tied)
    theirs = fd_shifts_facts.load()[fd_shifts_facts.key(seed, tied=tied)]
    documented = set(re.findall(r"`([^`]+)`", " ".join(rows("FD-Shifts"))))
    assert set(theirs) <= documented
    agree(
        {
            "aurc": (theirs["aurc"], 1000 * ab.aurc(d.c, d.loss)),
            "augrc": (theirs["augrc"], 1000 * ab.augrc(d.c, d.loss)),
            "e-aurc": (theirs["e-aurc"], 1000 * ab.e_aurc(d.c, d.loss, optimum="analytic")),
            "e-augrc": (theirs["e-augrc"], 1000 * ab.excess_augrc(d.c, d.loss)),
            "aurc-ba": (theirs["aurc-ba"], 1000 * ab.balanced_aurc(d.c, d.loss, d.labels)),
            "augrc-ba": (theirs["augrc-ba"], 1000 * ab.balanced_augrc(d.c, d.loss, d.labels)),
            "aurc_achievable": (theirs["aurc_achievable"], 1000 * ab.achievable_aurc(d.c, d.loss)),
            "failauc": (theirs["failauc"], ab.failure_auroc(d.c, d.loss)),
            "failap_suc": (theirs["failap_suc"], ab.failure_ap_success(d.c, d.loss)),
            "failap_err": (theirs["failap_err"], ab.failure_ap_error(d.c, d.loss)),
            "fpr@95tpr": (theirs["fpr@95tpr"], ab.fpr_at_tpr(d.c, d.loss, tpr=0.9495)),
            "risk@80cov": (
                theirs["risk@80cov"],
                100 * ab.selective_risk(d.c, d.loss, coverage=0.8),
            ),
            "ece": (theirs["ece"], ab.ece(d.c, d.loss, bins=20)),
            "mce": (theirs["mce"], ab.mce(d.c, d.loss, bins=20)),
            "accuracy": (theirs["accuracy"], ab.accuracy(d.prediction, d.labels)),
            "b-accuracy": (theirs["b-accuracy"], ab.balanced_accuracy(d.prediction, d.labels)),
            "brier_score": (theirs["brier_score"], ab.brier(d.probabilities, d.labels)),
        }
    )
    assert theirs["nll"] == pytest.approx(ab.nll(d.probabilities, d.labels) / 4, abs=1e-6)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_excess_aurc_of_graded_losses_equals_that_of_fd_shifts(seed, tied):
    # Its formula, without the package: the trapezoid of the sorted losses at distinct confidences.
    d = draw_predictions(seed, tied=tied)
    loss = np.random.default_rng(seed).random(d.c.size) * d.loss
    risks = np.cumsum(np.sort(loss)) / np.arange(1, loss.size + 1)
    coverages = np.arange(loss.size + 1) / loss.size
    optimum = np.trapezoid(np.r_[risks[0], risks], coverages)
    assert ab.e_aurc(d.c, loss) == pytest.approx(ab.aurc(d.c, loss) - optimum, abs=1e-12)
    [row] = [line for line in PAGE.splitlines() if line.startswith("| `e-aurc` of other losses |")]
    assert "| `e_aurc` |" in row


@pytest.mark.parametrize("seed", SEEDS)
def test_fd_shifts_of_graded_losses(seed):
    d = draw_predictions(seed)
    loss = draw_graded_losses(seed, d)
    theirs = fd_shifts_facts.load()[f"seed {seed}, graded losses"]
    agree(
        {
            "e-aurc": (theirs["e-aurc"], 1000 * ab.e_aurc(d.c, loss)),
            "e-augrc": (theirs["e-augrc"], 1000 * ab.excess_augrc(d.c, loss)),
        }
    )


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:Metric:UserWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_torch_uncertainty(seed):
    torch = import_peer("torch")
    import_peer("torchmetrics")
    folder_of_peer("torch_uncertainty")
    whole = "torch_uncertainty.metrics"
    names = ("risk_coverage", "scod_risk_coverage", "fpr", "brier_score", "categorical_nll")
    risk, scod, fpr, brier, nll, classwise, errors, sparse = import_files(
        [
            *(f"{whole}.classification.{name}" for name in names),
            f"{whole}.classification.calibration.classwise_calibration_error",
            f"{whole}.classification.calibration.calibration_error",
            f"{whole}.sparsification",
        ]
    )
    d = draw_predictions(seed)
    p, labels, c = torch.tensor(d.probabilities), torch.tensor(d.labels), torch.tensor(d.c)
    unknown = np.random.default_rng(seed).random(d.c.size) < 0.2
    costs = ab.scod_loss(d.loss, unknown, outlier_cost=0.25)
    published = {"convention": "torch-uncertainty"}

    def of(metric, *given):
        metric.update(*given)
        return float(metric.compute())

    seen = (-c, torch.tensor(d.loss).bool(), torch.tensor(unknown))
    graded = np.random.default_rng(seed).random(d.c.size)
    gap = (graded[d.c.argmax()] - graded.min()) / (d.c.size * graded.mean())
    results = {
        "AURC": (of(risk.AURC(), p, labels), ab.published_aurc(d.c, d.loss, **published)),
        "AUGRC": (of(risk.AUGRC(), p, labels), ab.published_augrc(d.c, d.loss, **published)),
        "CovAtxRisk(x)": (
            of(risk.CovAtxRisk(0.2), p, labels),
            ab.coverage_at_risk(d.c, d.loss, max_risk=0.2) or np.nan,
        ),
        "RiskAtxCov(x)": (
            of(risk.RiskAtxCov(0.7), p, labels),
            ab.selective_risk(d.c, d.loss, coverage=0.7, rule="first"),
        ),
        "SCODAURC(ood_cost=q)": (
            of(scod.SCODAURC(ood_cost=0.25), *seen),
            ab.published_aurc(d.c, costs, **published),
        ),
        "SCODAUGRC(ood_cost=q)": (
            of(scod.SCODAUGRC(ood_cost=0.25), *seen),
            ab.published_augrc(d.c, costs, **published),
        ),
        "FPR95(pos_label=1)": (
            of(fpr.FPR95(pos_label=1), c, torch.tensor(d.correct)),
            ab.fpr_at_tpr(d.c, d.loss),
        ),
        "AUSE": (
            of(sparse.AUSE(), -c, torch.tensor(graded)),
            ab.ause(d.c, graded) - gap,
        ),
        "BrierScore": (
            of(brier.BrierScore(num_classes=4), p, labels),
            ab.brier(d.probabilities, d.labels),
        ),
        "CategoricalNLL": (
            of(nll.CategoricalNLL(), p, labels),
            ab.nll(d.probabilities, d.labels),
        ),
        "CalibrationError": (
            of(errors.CalibrationError(task="multiclass", num_classes=4, num_bins=15), p, labels),
            ab.ece(d.c, d.loss, bins=15, convention="right_open"),
        ),
        "ClasswiseCalibrationError": (
            of(classwise.ClasswiseCalibrationError(num_classes=4), p, labels),
            ab.classwise_ece(d.probabilities, d.labels, bins=15),
        ),
    }
    compared(results, "torch-uncertainty", **SINGLE)


def compared(found, heading, **close):
    """Every row of the page's table is among what is compared, and agrees."""
    agree(found, **close)
    for row in rows(heading):
        assert row.startswith("prediction sets") or any(f"`{name}" in row for name in found), row


def of_right_open(d, bins):
    """The ECE of torchmetrics, from ours."""
    beside = np.mean(d.loss * (d.c == 1))
    return ab.ece(d.c, d.loss, bins=bins, convention="right_open") + beside


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_scikit_learn_and_torchmetrics(seed, tied):
    from sklearn import metrics
    from sklearn.calibration import calibration_curve

    d = draw_predictions(seed, tied=tied)
    # Rounded to single precision, rows do not sum to 1 in double.
    p = d.probabilities / d.probabilities.sum(axis=1, keepdims=True)
    right, confidence = calibration_curve(d.correct, d.c, n_bins=10)
    ours = ab.curves.reliability_curve(d.c, d.loss, bins=10)
    held = ours.count > 0
    np.testing.assert_allclose(right, ours.accuracy[held], rtol=0, atol=1e-12)
    np.testing.assert_allclose(confidence, ours.confidence[held], rtol=0, atol=1e-12)
    auroc, success = ab.failure_auroc(d.c, d.loss), ab.failure_ap_success(d.c, d.loss)
    results = {
        "roc_auc_score(1 - loss, c)": (metrics.roc_auc_score(d.correct, d.c), auroc),
        "average_precision_score(1 - loss, c)": (
            metrics.average_precision_score(d.correct, d.c),
            success,
        ),
        "average_precision_score(loss, -c)": (
            metrics.average_precision_score(d.loss, -d.c),
            ab.failure_ap_error(d.c, d.loss),
        ),
        "balanced_accuracy_score": (
            metrics.balanced_accuracy_score(d.labels, d.prediction),
            ab.balanced_accuracy(d.prediction, d.labels),
        ),
        "log_loss": (metrics.log_loss(d.labels, p), ab.nll(p, d.labels)),
        "brier_score_loss(..., scale_by_half=False)": (
            metrics.brier_score_loss(d.labels, p, labels=range(4), scale_by_half=False),
            ab.brier(p, d.labels),
        ),
        "calibration_curve": (0, 0),
        "multiclass_calibration_error": (0, 0),
    }
    compared(results, "torchmetrics and scikit-learn")
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.classification")
    c, correct = torch.tensor(d.c), torch.tensor(d.correct)
    given = torch.tensor(d.probabilities), torch.tensor(d.labels)
    agree(
        {
            "binary_auroc": (float(functional.binary_auroc(c, correct)), auroc),
            "binary_average_precision": (
                float(functional.binary_average_precision(c, correct)),
                success,
            ),
            "multiclass_calibration_error": (
                float(functional.multiclass_calibration_error(*given, num_classes=4, n_bins=10)),
                of_right_open(d, 10),
            ),
        },
        **SINGLE,
    )


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_netcal(seed, tied):
    metrics = import_peer("netcal.metrics")
    binning = import_peer("netcal.binning")
    scaling = import_peer("netcal.scaling")
    d = draw_predictions(seed, tied=tied)
    c = np.minimum(d.c, np.nextafter(1, 0))
    fit = slice(0, 100)
    fresh = d.c[100:]

    def ours(method, scale=lambda c: c):
        held = ab.Predictions(confidence=scale(d.c[fit]), loss=d.loss[fit].astype(float))
        return ab.calibrate("confidence", held, method=method).calibration.apply(scale(fresh))

    def theirs(made):
        made.fit(d.c[fit], d.correct[fit])
        return made.transform(fresh)

    gaps = ab.curves.reliability_curve(d.c, d.loss, bins=10)
    ace = np.abs(gaps.accuracy - gaps.confidence)[gaps.count > 0].mean()
    classes = ab.Predictions(probabilities=d.probabilities[fit], labels=d.labels[fit])
    temperature = ab.calibrate("msr", classes, method="temperature").calibration.temperature
    # In a bin that held nothing.
    place = np.searchsorted(np.arange(1, 15) / 15, fresh)
    fell = np.isin(place, np.searchsorted(np.arange(1, 15) / 15, d.c[fit]))
    middle = (place + 0.5) / 15
    scaled = scaling.TemperatureScaling()
    scaled.fit(d.probabilities[fit], d.labels[fit])
    results = {
        "ECE(bins=b)": (
            metrics.ECE(bins=10).measure(d.c, d.correct),
            ab.ece(c, d.loss, bins=10, convention="right_open"),
        ),
        "MCE(bins=b)": (metrics.MCE(bins=10).measure(d.c, d.correct), ab.mce(d.c, d.loss, bins=10)),
        "ACE(bins=b)": (metrics.ACE(bins=10).measure(d.c, d.correct), ace),
        "TemperatureScaling": (0, 0),
        "LogisticCalibration": (0, 0),
        "HistogramBinning(bins=b)": (
            theirs(binning.HistogramBinning(bins=15)),
            np.where(fell, ours("histogram"), middle),
        ),
        "IsotonicRegression": (theirs(binning.IsotonicRegression()), ours("isotonic")),
    }
    compared(results, "netcal", rel=1e-6, abs=1e-6)
    # It stops its descent earlier, and smooths no labels.
    assert scaled.temperature.item() == pytest.approx(1 / temperature, rel=1e-4)
    platt = ours("platt", lambda c: np.log(c / (1 - c)))
    np.testing.assert_allclose(theirs(scaling.LogisticCalibration()), platt, rtol=0, atol=0.03)


@pytest.mark.peers
@pytest.mark.parametrize("seed", SEEDS)
def test_mapie(seed):
    uncertainty = import_peer("mapie.metrics.uncertainty")
    errors = import_peer("mapie.metrics.calibration")
    d = draw_predictions(seed)
    split = {"num_bins": 11, "split_strategy": "uniform"}
    each = [
        ab.ece(d.c[of], d.loss[of], bins=10) for k in range(4) if (of := d.prediction == k).any()
    ]
    results = {
        "auroc(correct, c)": (uncertainty.auroc(d.correct, d.c), ab.failure_auroc(d.c, d.loss)),
        "auarc(correct, c)": (
            uncertainty.auarc(d.correct, d.c),
            1 - ab.aurc(d.c, d.loss, estimator="plugin"),
        ),
        "expected_calibration_error(correct, c, num_bins=b": (
            errors.expected_calibration_error(d.correct, d.c, **split),
            ab.ece(d.c, d.loss, bins=10),
        ),
        "classwise=True": (
            errors.expected_calibration_error(
                d.labels, d.probabilities, classwise=True, class_labels=d.labels, **split
            ),
            ab.classwise_ece(d.probabilities, d.labels, bins=10),
        ),
        "top_label_ece(...": (
            errors.top_label_ece(d.labels, d.c, d.prediction, **split),
            np.mean(each),
        ),
        "BinaryClassificationController": (0, 0),
        "MultiClassificationLTTController": (0, 0),
    }
    compared(results, "MAPIE")
