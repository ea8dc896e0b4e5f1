"""Every curve and metric gives the same numbers in every array library, where the arrays lie.

A metric is tested by being registered, a public function by being exported.
"""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.properties.backends import (
    BACKENDS,
    drawn,
    made,
    numbers,
    refuse_to_come_home,
    with_view,
)
from tests.properties.on_host import ON_HOST

from abstain import curves, metrics
from abstain._foundation.arrays import carries_gradient
from abstain._foundation.scored import validate_samples
from abstain.metrics import METRICS

PUBLIC = {
    name: getattr(package, name)
    for package in (curves, metrics)
    for name in package.__all__
    if callable(getattr(package, name)) and not isinstance(getattr(package, name), type)
}
_RULES = ("usable", "first", "expected")


def _at_points(f, d, w):
    points = [{"threshold": 0.55}, *({"coverage": 0.6, "rule": r} for r in _RULES)]
    return tuple(f(d.confidence, d.loss, weight=w, **at) for at in points)


#: How each public function that takes arrays is called: `d` holds the arrays, `w` the weights.
CALLS = {
    "accepted_auroc": lambda f, d, w: f(d.confidence, d.labels, d.score, weight=w),
    "accuracy": lambda f, d, w: f(d.prediction, d.labels, weight=w),
    "auprc_retention": lambda f, d, w: f(d.confidence, d.labels, d.score, weight=w),
    "auroc_retention": lambda f, d, w: f(d.confidence, d.labels, d.score, weight=w),
    "ause": lambda f, d, w: (f(d.confidence, d.loss, weight=w), f(d.confidence, d.errors)),
    "balanced_accuracy": lambda f, d, w: f(d.prediction, d.labels, weight=w),
    "balanced_augrc": lambda f, d, w: f(d.confidence, d.loss, d.labels, weight=w),
    "balanced_aurc": lambda f, d, w: f(d.confidence, d.loss, d.labels, weight=w),
    "brier": lambda f, d, w: f(d.probabilities, d.labels, weight=w),
    "classwise_ece": lambda f, d, w: f(d.probabilities, d.labels, weight=w),
    "coverage_at_risk": lambda f, d, w: f(d.confidence, d.loss, max_risk=0.45, weight=w),
    "cwsa": lambda f, d, w: tuple(
        f(d.confidence, d.loss, threshold=0.35, ramp=ramp, weight=w)
        for ramp in ("linear", "quadratic", "sqrt", "step", lambda u: u * 0.5)
    ),
    "cwsa_plus": lambda f, d, w: f(d.confidence, d.loss, threshold=0.35, weight=w),
    "e_aurc": lambda f, d, w: tuple(
        f(d.confidence, d.errors, estimator=estimator, optimum=optimum, weight=w)
        for estimator in ("trapezoid", "plugin", "log", "sele", "2sele")
        for optimum in ("same", "analytic")
    ),
    "ece": lambda f, d, w: (
        *(
            f(d.confidence, d.loss, bins=bins, binning=binning, weight=w)
            for bins in (1, 7, 15)
            for binning in ("equal_width", "equal_mass")
        ),
        f(d.confidence, d.loss, bins=10, convention="right_open", weight=w),
    ),
    "failure_ap_error": lambda f, d, w: f(d.confidence, d.errors, weight=w),
    "failure_ap_success": lambda f, d, w: f(d.confidence, d.errors, weight=w),
    "failure_auroc": lambda f, d, w: f(d.confidence, d.errors, weight=w),
    "failure_roc_curve": lambda f, d, w: f(d.confidence, d.errors, weight=w),
    "fpr_at_tpr": lambda f, d, w: f(d.confidence, d.errors, weight=w),
    "generalized_risk": _at_points,
    "group_contributions": lambda f, d, w: f(d.confidence, d.loss, d.labels, weight=w),
    "metric_bootstrap": lambda f, d, w: f(d.confidence, d.loss, resamples=64, weight=w, rng=0),
    "metric_coverage_curve": lambda f, d, w: (
        f(d.confidence, d.loss, weight=w),
        f(d.confidence, d.loss, thresholds=[0.2, 0.7, 2.0], weight=w),
        f(d.confidence, d.loss, metric=metrics.cwsa, thresholds=[0.2, 0.7], weight=w),
    ),
    "metric_difference": lambda f, d, w: f(d.confidence, d.score, d.errors, weight=w),
    # Weights that are whole numbers: they count samples.
    "monte_carlo_aurc": lambda f, d, w: f(
        d.confidence, d.loss, draws=9, rng=0, weight=None if w is None else w * 4 / 3
    ),
    "multiclass_oc_auc": lambda f, d, w: f(
        d.confidence, d.labels, d.probabilities, review=0.3, weight=w
    ),
    "nll": lambda f, d, w: f(d.probabilities, d.labels, weight=w),
    "oc_accuracy": lambda f, d, w: f(d.confidence, d.loss, review=0.37, weight=w),
    "oc_ap": lambda f, d, w: f(d.confidence, d.labels, d.score, weight=w),
    "oc_auc": lambda f, d, w: f(d.confidence, d.labels, d.score, weight=w),
    "oscr": lambda f, d, w: f(d.confidence, d.prediction, d.labels - 1, weight=w),
    "partial_augrc": lambda f, d, w: f(d.confidence, d.loss, low=0.13, high=0.77, weight=w),
    "partial_aurc": lambda f, d, w: tuple(
        f(d.confidence, d.loss, low=0.13, high=0.77, interpolation=how, weight=w)
        for how in ("linear", "hyperbolic")
    ),
    "population_aurc": lambda f, d, w: tuple(
        f(d.confidence, d.loss, form=form, weight=w) for form in ("reweighted", "definition")
    ),
    "population_weight": lambda f, d, w: f(d.confidence * 0.9),
    "published_achievable_aurc": lambda f, d, w: (f(d.confidence, d.loss), f(d.score, d.errors)),
    "published_augrc": lambda f, d, w: tuple(
        f(d.confidence, d.loss, convention=name) for name in ("fd-shifts", "torch-uncertainty")
    ),
    "published_aurc": lambda f, d, w: tuple(
        f(d.confidence, d.loss, convention=name)
        for name in (
            "fd-shifts",
            "fd-shifts-legacy",
            "torch-uncertainty",
            "geifman",
            "plugin",
            "cwsa",
        )
    ),
    "published_e_aurc": lambda f, d, w: f(d.confidence, d.errors),
    "reliability_curve": lambda f, d, w: tuple(
        f(d.confidence, d.loss, binning=binning, weight=w)
        for binning in ("equal_width", "equal_mass")
    ),
    "risk_coverage_band": lambda f, d, w: f(d.confidence, d.loss, draws=50, weight=w),
    "scod_loss": lambda f, d, w: f(d.loss, d.errors, outlier_cost=0.7),
    "selective_accuracy": lambda f, d, w: f(d.confidence, d.loss, threshold=0.35, weight=w),
    "selective_confusion_matrix": lambda f, d, w: f(
        d.labels, d.prediction, d.errors == 0, weight=w
    ),
    "selective_risk": _at_points,
    "thin": lambda f, d, w: f(curves.risk_coverage_curve(d.confidence, d.loss), vertices=5),
    "tie_bounds": lambda f, d, w: (
        f(d.confidence, d.loss, weight=w),
        f(d.confidence, d.errors, metric="aurc"),
    ),
    "mean_weight_error_scale": lambda f, d, w: f(0 * d.confidence + 50),
    "weight_bias": lambda f, d, w: f(d.confidence * 0.9, 50),
    "weight_error_scale": lambda f, d, w: f(d.confidence * 0.9, 50),
    "weight_mse": lambda f, d, w: f(d.confidence * 0.9, 50, "log"),
    "weight_mse_given_rank": lambda f, d, w: f(0 * d.confidence + 7, 50, "log"),
    "weight_variance": lambda f, d, w: f(d.confidence * 0.9, 50, "monte-carlo"),
    "working_point": lambda f, d, w: tuple(
        f(d.confidence, d.loss, weight=w, **at)
        for at in ({"threshold": 0.55}, {"coverage": 0.6}, {"max_risk": 0.6})
    ),
}
#: These take no arrays.
_OTHERS = {"metric_named", "metrics_named", "rank_weights"}


def called(name, d, w):
    f = PUBLIC[name]
    with warnings.catch_warnings():
        # Undefined values are compared too.
        warnings.simplefilter("ignore")
        return CALLS.get(name, lambda f, d, w: f(d.confidence, d.loss, weight=w))(f, d, w)


@pytest.fixture(params=BACKENDS)
def backend(request):
    if request.param != "jax":
        yield BACKENDS[request.param]()
        return
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield BACKENDS["jax"]()
    jax.config.update("jax_enable_x64", before)


def close(got, expected):
    for a, b in zip(numbers(got), numbers(expected), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - _OTHERS))
def test_functions_give_the_numbers_of_numpy(name, weighted, backend, monkeypatch):
    data = drawn()
    expected = called(name, data, data.weight if weighted else None)
    given = made(backend, data)
    if name not in ON_HOST:
        refuse_to_come_home(monkeypatch)
    got = called(name, given, given.weight if weighted else None)
    monkeypatch.undo()
    close(got, expected)
    assert_kind(got, given, name)


def assert_kind(got, given, name):
    """Arrays are those of the caller, numbers are Python's where no gradient flows."""
    if isinstance(got, tuple):
        for part in got:
            assert_kind(part, given, name)
    elif hasattr(got, "__dataclass_fields__"):
        for field in vars(got).values():
            if hasattr(field, "dtype") and name not in ON_HOST:
                assert type(field) is type(given.confidence)
    elif not hasattr(got, "shape") or got.shape == ():
        assert isinstance(got, float) or carries_gradient(got)
    else:
        assert type(got) is type(given.confidence)


def of_data(data, *, binary=False):
    s = validate_samples(
        data.confidence, data.errors if binary else data.loss, data.weight, uses_values=True
    )
    return replace(s, class_view=with_view(s, data))


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda m: m.name)
def test_the_catalogue_gives_the_numbers_of_numpy(metric, binary, backend, monkeypatch):
    data = drawn(seed=1)
    s = of_data(data, binary=binary)
    given = of_data(made(backend, data), binary=binary)
    assert metric.reason_not_applicable(given) == metric.reason_not_applicable(s)
    if metric.reason_not_applicable(s):
        return
    if metric.name not in ON_HOST:
        refuse_to_come_home(monkeypatch)
    got = metric.compute(given)
    monkeypatch.undo()
    expected = metric.compute(s)
    assert (got.n_accepted, got.reason) == (expected.n_accepted, expected.reason)
    close(got.value, expected.value)
    flows = backend.grads and bool(metric.measurement.gradients) and not got.reason
    assert isinstance(got.value, float) != flows


@pytest.mark.parametrize("name", ON_HOST)
def test_what_needs_the_host_says_so(name, monkeypatch):
    given = made(BACKENDS["strict_device"](), drawn())
    refuse_to_come_home(monkeypatch)
    with pytest.raises(AssertionError, match="left its device"):
        called(name, given, None)
    pages = Path(__file__).parents[2] / "docs"
    assert f"`{name}`" in (pages / "conventions.md").read_text()
