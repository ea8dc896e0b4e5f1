"""The torchmetrics classes give the numbers of the plain functions, and say no in plain words."""

import warnings

import numpy as np
import pytest

import abstain as ab
from abstain.errors import (
    DomainError,
    InputError,
    ShapeError,
    UndefinedMetricWarning,
    UnknownNameError,
)
from abstain.metrics import METRICS, Need

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

from abstain.integrations import torchmetrics as tm  # noqa: E402

NAMED = [
    (tm.AUGRC(), ab.augrc, {}),
    (tm.AURC(), ab.aurc, {}),
    *[
        (tm.AURC(estimator=e), ab.aurc, {"estimator": e})
        for e in ("plugin", "log", "sele", "2sele")
    ],
    (tm.FailureAUROC(), ab.failure_auroc, {}),
    (tm.SelectiveRiskAtCoverage(coverage=0.8), ab.selective_risk, {"coverage": 0.8}),
    (tm.SelectiveRiskAtCoverage(coverage=0.29), ab.selective_risk, {"coverage": 0.29}),
    (tm.CoverageAtRisk(max_risk=0.15), ab.coverage_at_risk, {"max_risk": 0.15}),
    (tm.CWSA(threshold=0.7), ab.cwsa, {"threshold": 0.7}),
    (tm.CWSA(threshold=1e-5), ab.cwsa, {"threshold": 1e-5}),
    (tm.CWSAPlus(threshold=0.7), ab.cwsa_plus, {"threshold": 0.7}),
]


def data(n=500, seed=0, *, dtype=torch.float32, ties=True):
    rng = np.random.default_rng(seed)
    c = rng.beta(4, 1.5, n)
    c = np.round(c, 2) if ties else c
    wrong = rng.random(n) > c
    return torch.tensor(c).to(dtype), torch.tensor(wrong)


def added(metric, c, x, w=None, *, batches=7):
    metric.reset()
    for part in torch.arange(len(c)).tensor_split(batches):
        metric.update(c[part], x[part], None if w is None else w[part])
    return metric


@pytest.mark.parametrize(("metric", "function", "options"), NAMED)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_the_numbers_are_those_of_the_functions(metric, function, options, dtype):
    c, x = data(dtype=dtype)
    w = torch.tensor(np.random.default_rng(1).integers(1, 4, len(c)))
    value = added(metric, c, x).compute()
    assert value.shape == ()
    assert value.dtype == torch.float64
    assert value.item() == function(c, x, **options)
    assert added(metric, c, x, w).compute().item() == function(c, x, weight=w, **options)
    assert metric.error_bound == 0


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_of_the_catalogue_is_there_or_says_what_it_lacks(name):
    if METRICS[name].measurement.needs & {Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES}:
        with pytest.raises(InputError, match=r"needs (labels|class prob|a task)"):
            tm.SelectiveMetric(name)
        return
    c, x = data()
    metric = tm.SelectiveMetric(name)
    from abstain._foundation.scored import validate_samples

    expected = METRICS[name].compute(validate_samples(c, x)).value
    assert added(metric, c, x).compute().item() == expected
    assert metric.higher_is_better is not METRICS[name].lower_is_better


@pytest.mark.parametrize("losses", [torch.float32, torch.float64, torch.float16])
def test_any_loss(losses):
    c, _ = data()
    x = torch.rand(len(c), generator=torch.Generator().manual_seed(0)).to(losses) * 5
    assert added(tm.AUGRC(), c, x).compute().item() == pytest.approx(ab.augrc(c, x), rel=1e-14)
    whole = (x * 10).to(torch.int64)
    assert added(tm.AUGRC(), c, whole).compute().item() == ab.augrc(c, whole)


@pytest.mark.parametrize("batches", [1, 2, 500])
@pytest.mark.parametrize("bins", [None, 4096])
def test_batches_and_row_order_do_not_matter(batches, bins):
    c, x = data(ties=False)
    order = torch.randperm(len(c), generator=torch.Generator().manual_seed(1))
    metric = tm.AURC(bins=bins)
    first = added(metric, c, x, batches=3).compute()
    assert added(metric, c[order], x[order], batches=batches).compute() == first


@pytest.mark.parametrize("inputs", ["logits", "probabilities"])
@pytest.mark.parametrize("score", ["msr", "pe", "msr@T=2"])
def test_outputs_of_a_classifier(inputs, score):
    rng = np.random.default_rng(3)
    logits = torch.tensor(rng.normal(0, 2, (200, 5)), dtype=torch.float32)
    target = torch.tensor(rng.integers(0, 5, 200))
    target[:120] = logits[:120].argmax(1)
    given = logits if inputs == "logits" else logits.softmax(1)
    p = ab.Predictions(**{inputs: given, "labels": target})
    evaluation = ab.evaluate(p, scores=[score], metrics=["augrc", "failure_auroc"], interval="none")
    for result in evaluation:
        metric = tm.SelectiveMetric(result.metric.name, inputs=inputs, score=score)
        assert added(metric, given, target).compute().item() == pytest.approx(
            result.value, abs=1e-12
        )


def test_a_score_that_means_a_probability_has_cwsa_and_ece():
    rng = np.random.default_rng(3)
    logits, target = torch.tensor(rng.normal(0, 2, (200, 5))), torch.tensor(rng.integers(0, 5, 200))
    top = logits.softmax(1).max(1)
    wrong = top.indices != target
    options = {"inputs": "logits", "score": "msr"}
    cwsa = added(tm.CWSA(0.5, **options), logits, target)
    assert cwsa.compute().item() == pytest.approx(ab.cwsa(top.values, wrong, threshold=0.5))
    ece = added(tm.SelectiveMetric("ece", **options), logits, target)
    assert ece.compute().item() == pytest.approx(ab.ece(top.values, wrong), abs=1e-12)
    bounded = added(tm.CWSA(0.5, bins=65536, **options), logits, target)
    result = bounded.compute_bounds()
    assert result.low <= cwsa.compute().item() <= result.high
    assert bounded.scale == "log-odds"
    with pytest.raises(DomainError, match="needs a confidence in"):
        added(tm.CWSA(0.5, inputs="logits", score="energy"), logits, target).compute()


def test_forward_gives_the_value_of_the_batch():
    c, x = data(90, ties=False)
    for metric in (tm.AUGRC(), tm.AUGRC(bins=256), tm.AUGRC(dist_sync_on_step=True)):
        for part in torch.arange(90).split(30):
            assert metric(c[part], x[part]).item() == ab.augrc(c[part], x[part])
        assert metric.update_count == 3
        assert metric.compute_bounds().low <= ab.augrc(c, x) <= metric.compute_bounds().high


def test_an_undefined_metric_is_nan_and_says_why():
    metric = tm.FailureAUROC()
    metric.update(torch.tensor([0.5, 0.6]), torch.tensor([0, 0]))
    with pytest.warns(UndefinedMetricWarning, match="there are no failures"):
        assert torch.isnan(metric.compute())
    for bins in (None, 256):
        metric = tm.AUGRC(bins=bins)
        metric.update(torch.empty(0), torch.empty(0))
        with pytest.warns(UndefinedMetricWarning, match="no samples"):
            assert torch.isnan(metric.compute())
        metric.update(torch.tensor(0.5), torch.tensor(1.0), torch.tensor(0.0))
        with pytest.warns(UndefinedMetricWarning, match="no samples"):
            assert torch.isnan(metric.compute())
        metric.update(torch.tensor(0.5), torch.tensor(1.0), torch.tensor(2.0))
        assert metric.compute().item() == 0.5


BAD = [
    (([0.5], torch.tensor([1])), InputError, "must be a torch.Tensor; got list"),
    ((torch.tensor([0.5, 0.6]), torch.tensor([1])), ShapeError, "same length"),
    ((torch.rand(2, 3), torch.rand(2, 3)), ShapeError, "Flatten"),
    ((torch.tensor([0.5, np.nan]), torch.tensor([0, 1])), DomainError, "`confidence`.* at index 1"),
    ((torch.tensor([0.5, 0.6]), torch.tensor([0, -1])), DomainError, "`loss` must not be negative"),
    (
        (torch.tensor([0.5]), torch.tensor([0]), torch.tensor([-1.0])),
        DomainError,
        "`weight` must not be negative",
    ),
    ((torch.empty(1, device="meta"), torch.tensor([0])), InputError, r"metric.to\('meta'\)"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD)
@pytest.mark.parametrize("bins", [None, 256])
def test_bad_batches_raise_an_error_and_change_nothing(arguments, error, message, bins):
    metric = tm.AUGRC(bins=bins)
    metric.update(torch.tensor([0.9, 0.1]), torch.tensor([0, 1]))
    with pytest.raises(error, match=message):
        metric.update(*arguments)
    assert metric.compute().item() == 0.125


def test_confidences_outside_the_scale_raise_an_error():
    metric = tm.AUGRC(bins=256)
    with pytest.raises(DomainError, match=r"lie in \[0, 1\]; got 3.0 at index 1.*scale='real'"):
        metric.update(torch.tensor([0.5, 3.0]), torch.tensor([0, 1]))
    metric = tm.AUGRC(bins=256, scale="real")
    metric.update(torch.tensor([0.5, 3.0]), torch.tensor([0, 1]))
    assert metric.compute().item() == 0.375


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"metric": "augcr"}, UnknownNameError, "Did you mean 'augrc'"),
        ({"metric": "brier"}, InputError, "'brier' needs class probabilities"),
        ({"metric": "e_aurc", "bins": 256}, InputError, "bounded memory"),
        ({"inputs": "logit"}, InputError, "`inputs` must be one of"),
        ({"inputs": "logits", "score": "mrs"}, UnknownNameError, "Did you mean 'msr'"),
        ({"inputs": "logits", "score": "mcd_msr"}, InputError, "needs Monte-Carlo samples"),
        ({"inputs": "probabilities", "score": "mls"}, InputError, "needs logits"),
        ({"bins": 1000}, InputError, "power of two"),
        ({"bins": 256, "scale": "logit"}, InputError, "`scale` must be one of"),
    ],
)
def test_bad_options_raise_an_error_at_once(options, error, message):
    with pytest.raises(error, match=message):
        tm.SelectiveMetric(**options)


def test_bad_options_of_the_named_classes():
    with pytest.raises(DomainError, match=r"`coverage` must lie in \[0, 1\]"):
        tm.SelectiveRiskAtCoverage(coverage=80)
    with pytest.raises(DomainError, match="`max_risk`"):
        tm.CoverageAtRisk(max_risk=-0.1)
    with pytest.raises(DomainError, match="`threshold`"):
        tm.CWSA(threshold=1.0)
    with pytest.raises(InputError, match="`estimator`"):
        tm.AURC(estimator="plug-in")


def test_shapes_of_outputs():
    metric = tm.AUGRC(inputs="logits")
    with pytest.raises(ShapeError, match=r"`logits` must have shape \(n, K\) and `target` \(n,\)"):
        metric.update(torch.rand(3), torch.tensor([0, 1, 0]))
    metric.update(torch.empty(0, 3), torch.empty(0, dtype=torch.int64))
    with pytest.raises(InputError, match=r"`target` must be a torch\.Tensor"):
        metric.update(torch.rand(3, 2), [0, 1, 0])


def test_needs_are_checked():
    metric = tm.FailureAUROC()
    metric.update(torch.tensor([0.5, 0.6]), torch.tensor([0.5, 1.0]))
    with pytest.raises(DomainError, match="'failure_auroc' needs a 0/1 loss"):
        metric.compute()
    metric = tm.FailureAUROC(bins=256)
    metric.update(torch.tensor([0.5, 0.6]), torch.tensor([0.5, 1.0]))
    with pytest.raises(DomainError, match="'failure_auroc' needs a 0/1 loss"):
        metric.compute()


def test_a_value_can_be_plotted():
    import matplotlib.pyplot as plt

    c, x = data()
    metric = added(tm.AUGRC(), c, x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure, axes = metric.plot()
    assert figure is axes.figure
    plt.close(figure)
