"""Weights: rows with weight 0 are ignored everywhere, and only the ratios of weights matter."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.records import assert_equal

import abstain as ab
from abstain import calibration, curves, metrics, streaming
from abstain._foundation.scored import validate_samples
from abstain.curves.bands import risk_coverage_band
from abstain.errors import DomainError
from abstain.metrics import METRICS, Need, metric_named
from abstain.metrics.intervals import interval_of_metric
from abstain.metrics.resampling import metric_bootstrap

PLAIN = [
    m
    for m in METRICS.values()
    if not m.measurement.needs - {Need.BINARY_LOSS, Need.UNIT_LOSS, Need.UNIT_CONFIDENCE}
]
FEW = settings(max_examples=8, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def columns(seed: int, n: int = 60) -> dict[str, np.ndarray]:
    """Columns of a file with ties, weights from 1 to 3, three classes and four sites."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(2) * 0.7, n).round(2)
    labels = (rng.random(n) > p[:, 0]).astype(int)
    confidence = p.max(axis=1)
    return {
        "p_0": p[:, 0],
        "p_1": 1.0 - p[:, 0],
        "label": labels,
        "prediction": (p[:, 1] > p[:, 0]).astype(int),
        "confidence": confidence,
        "other": rng.random(n).round(1),
        "loss": (rng.random(n) > confidence).astype(float),
        "site": rng.choice(["a", "b", "c", "d"], n),
        "weight": rng.integers(1, 4, n).astype(float),
    }


def with_ignored(data: dict[str, np.ndarray], seed: int, *, spread: bool = False) -> dict:
    """Append rows with weight 0 and any other values; with `spread`, insert them anywhere."""
    rng, k = np.random.default_rng(seed + 1), 25
    p = rng.random(k).round(3)
    more = {
        "p_0": p,
        "p_1": 1.0 - p,
        "label": rng.integers(-1, 2, k),
        "prediction": rng.integers(0, 2, k),
        "confidence": rng.normal(size=k) * 9,
        "other": rng.normal(size=k) * 9,
        "loss": rng.random(k) * 7,
        "site": rng.choice(["a", "z"], k),
        "weight": np.zeros(k),
    }
    joined = {name: np.concatenate([x, more[name]]) for name, x in data.items()}
    n = joined["weight"].size
    if not spread:
        return joined
    # The rows that count keep their order.
    place = np.argsort(np.concatenate([np.arange(n - k), rng.integers(0, n - k, k) - 0.5]))
    return {name: x[place] for name, x in joined.items()}


def predictions(data: dict, **more: object) -> ab.Predictions:
    return ab.Predictions(
        confidence={"confidence": data["confidence"], "other": data["other"]},
        loss=data["loss"],
        weight=data["weight"],
        group=data["site"],
        **more,
    )


def with_classes(data: dict, **more: object) -> ab.Predictions:
    p = np.stack([data["p_0"], data["p_1"]], axis=1)
    return ab.Predictions(
        probabilities=p,
        labels=data["label"],
        unknown_label=-1,
        weight=data["weight"],
        group=data["site"],
        **more,
    )


def with_new_classes(data: dict, **more: object) -> ab.Predictions:
    """The same, where a third of the samples that count belong to no known class."""
    rng = np.random.default_rng(0)
    is_new = np.zeros(data["label"].size, np.bool_)
    is_new[np.flatnonzero(data["weight"] > 0)] = rng.random(60) < 1 / 3
    return with_classes(data | {"label": np.where(is_new, -1, data["label"])}, **more)


# ------------------------------------------------------------------------ rows with weight 0
@pytest.mark.parametrize("metric", PLAIN, ids=lambda m: m.name)
def test_rows_of_weight_0_change_no_value_and_no_interval(metric) -> None:
    @FEW
    @given(seed=SEEDS)
    def check(seed: int) -> None:
        data = columns(seed)
        both = [data, with_ignored(data, seed, spread=True)]
        results = [validate_samples(d["confidence"], d["loss"], d["weight"]) for d in both]
        if not metric.reason_not_applicable(results[0]):
            for compute in (metric.compute, lambda s: interval_of_metric(metric, s)):
                assert_equal(
                    *(compute(replace(s, input_row_mask=None)) for s in results), at=metric.name
                )
        assert [s.n_rows for s in results] == [60, 60]

    check()


def of_arrays(d: dict) -> dict[str, object]:
    """Everything else that takes a confidence, a loss and weights."""
    c, x, w, site = d["confidence"], d["loss"], d["weight"], d["site"]
    here = c.clip(0, 1)
    rule = ab.thresholds.for_risk(c, x, max_risk=0.3, weight=w)
    return {
        "interval by site": metrics.metric_interval(c, x, weight=w, group=site),
        "difference": metrics.metric_difference(c, d["other"], x, weight=w, group=site),
        "bootstrap": metric_bootstrap(c, x, weight=w, resamples=50, rng=0).replicates,
        "bootstrap by site": metric_bootstrap(c, x, weight=w, resamples=50, group=site, rng=0),
        "selective": curves.risk_coverage_curve(c, x, weight=w),
        "generalized": curves.generalized_risk_coverage_curve(c, x, weight=w),
        "retention": curves.error_retention_curve(c, x, weight=w),
        "band": risk_coverage_band(c, x, weight=w, group=site),
        "roc": curves.failure_roc_curve(c, d["label"] == 1, weight=w),
        "ties": ab.tie_bounds(c, x, metric="augrc", weight=w),
        "point": ab.working_point(c, x, coverage=0.7, weight=w),
        "sites": ab.group_contributions(c, x, site, weight=w),
        "balanced": metrics.balanced_aurc(c, x, d["label"], weight=w),
        "accuracy": metrics.balanced_accuracy(d["prediction"], d["label"], weight=w),
        "confusion": metrics.selective_confusion_matrix(
            d["label"], d["prediction"], c > 0.7, weight=w
        ),
        "retained": metrics.auroc_retention(c, d["label"] == 1, d["p_1"], weight=w),
        "reliability": curves.reliability_curve(here, d["label"] == 1, weight=w),
        "platt": calibration.fit_platt(c, d["label"] == 1, weight=w),
        "isotonic": calibration.fit_isotonic(c, d["label"] == 1, weight=w),
        "binning": calibration.fit_binning(here, d["label"] == 1, weight=w),
        "for_risk": rule,
        "for_cost": ab.thresholds.for_cost(c, x, abstention_cost=0.2, weight=w),
        "for_coverage": ab.thresholds.for_coverage(c, coverage=0.7, weight=w),
        "check": ab.thresholds.check(rule, c, x, weight=w),
        "check sites": ab.thresholds.check_groups(rule, c, x, site, weight=w),
    }


@pytest.mark.parametrize("spread", [False, True])
def test_rows_of_weight_0_change_no_curve_rule_or_table(spread: bool) -> None:
    for seed in range(3):
        data = columns(seed)
        assert_equal(of_arrays(data), of_arrays(with_ignored(data, seed, spread=spread)))


def test_contributions_of_rows_of_weight_0_are_0() -> None:
    data = columns(0)
    more = with_ignored(data, 0, spread=True)
    each = ab.sample_contributions(more["confidence"], more["loss"], weight=more["weight"])
    own = ab.sample_contributions(data["confidence"], data["loss"], weight=data["weight"])
    np.testing.assert_array_equal(each[more["weight"] > 0], own)
    assert not each[more["weight"] == 0].any()


@pytest.mark.parametrize("make", [predictions, with_classes, with_new_classes])
@pytest.mark.parametrize(
    "options", [{}, {"interval": "bootstrap", "bootstrap": 30}, {"clustered": True}]
)
def test_rows_of_weight_0_change_nothing_in_an_evaluation(make, options) -> None:
    data = columns(5)
    for more in (with_ignored(data, 5), with_ignored(data, 5, spread=True)):
        ids = np.arange(60), np.cumsum(more["weight"] > 0) - 1
        evaluations = [
            ab.evaluate(make(d, ids=names), **options)
            for d, names in zip((data, more), ids, strict=True)
        ]
        assert_equal(*evaluations)
        assert {result.n for result in evaluations[1].results} == {60}


def test_an_evaluation_names_samples_by_the_rows_that_were_passed() -> None:
    data = columns(5)
    more = with_ignored(data, 5, spread=True)
    passed = np.flatnonzero(more["weight"] > 0)
    first, second = (ab.evaluate(predictions(d)).curves[0].overconfident for d in (data, more))
    assert [sample.id for sample in second] == [str(passed[int(s.id)]) for s in first]


def test_losses_that_are_passed_have_one_entry_for_each_row() -> None:
    data = columns(6)
    more = with_ignored(data, 6, spread=True)
    results = [
        ab.evaluate(
            with_classes(d, ids=np.arange(d["loss"].size) * (d["weight"] > 0)),
            loss=d["loss"],
            curves=False,
        )
        for d in (data, more)
    ]
    assert_equal(*results)


def test_rows_of_weight_0_change_nothing_in_a_comparison() -> None:
    data = columns(7)
    more = with_ignored(data, 7, spread=True)
    for options in ({}, {"test": "bootstrap", "bootstrap": 200}, {"clustered": True}):
        assert_equal(*(ab.compare(predictions(d), **options) for d in (data, more)))


def test_rows_of_weight_0_change_no_calibration_and_no_rule() -> None:
    data = columns(8)
    more = with_ignored(data, 8, spread=True)
    for method in ("platt", "isotonic", "histogram", "temperature"):
        fits = [ab.calibrate("msr", with_classes(d), method=method) for d in (data, more)]
        assert fits[0].calibration == fits[1].calibration
        checks = [ab.calibration_check(fits[0], with_classes(d)) for d in (data, more)]
        assert_equal(*checks, at=method)
    rules = [
        ab.set_threshold(predictions(d), score="other", method="risk", max_risk=0.3)
        for d in (data, more)
    ]
    assert_equal(*rules)
    assert_equal(*(ab.check_rule(rules[0], predictions(d)) for d in (data, more)))


# ------------------------------------------------------------------------ batches and files
def states(folder) -> list:
    return [
        streaming.init(scale="real"),
        streaming.init(bins=256, scale="real"),
        streaming.sorted_runs(folder),
    ]


def batches(state, d: dict, size: int):
    for start in range(0, d["weight"].size, size):
        rows = slice(start, start + size)
        state = streaming.update(state, d["confidence"][rows], d["loss"][rows], d["weight"][rows])
    return state


@pytest.mark.parametrize("kind", range(3))
def test_batches_with_only_zeros_change_nothing_in_a_stream(tmp_path, kind: int) -> None:
    data = columns(9)
    more = with_ignored(data, 9)
    plain, other = (batches(states(tmp_path)[kind], d, 10) for d in (data, more))
    first = batches(states(tmp_path)[kind], {k: x[::-1] for k, x in more.items()}, 5)
    assert (plain.n, other.n, first.n) == (60, 60, 60)
    for name in ("augrc", "aurc", "aurc_plugin", "failure_auroc", "coverage@20risk"):
        expected = streaming.compute(plain, name)
        assert streaming.compute(other, name) == expected
        assert streaming.compute(first, name).value == pytest.approx(expected.value, rel=1e-12)


def test_a_file_with_only_zeros_is_valid_if_others_have_weight(tmp_path) -> None:
    data = columns(10)
    rows = with_ignored(data, 10)
    names = ("confidence", "loss", "weight", "site")
    for file, part in (("a", slice(60, None)), ("b", slice(0, 60)), ("c", slice(60, 70))):
        frame = pl.DataFrame({name: rows[name][part] for name in names})
        frame.write_csv(tmp_path / f"{file}.csv")
    options = {"confidence": "confidence", "loss": "loss", "weight": "weight", "group": "site"}
    alone = ab.evaluate(ab.scan_predictions(str(tmp_path / "b.csv"), **options))
    together = ab.evaluate(ab.scan_predictions(str(tmp_path / "*.csv"), **options))
    assert_equal(alone.results, together.results)
    read = ab.evaluate(ab.read_predictions(tmp_path / "b.csv", **options))
    for result, two in zip(read.results, alone.results, strict=True):
        assert (result.metric.name, result.n, result.failures) == (
            two.metric.name,
            two.n,
            two.failures,
        )
        numbers = [[r.value, r.interval.low, r.interval.high] for r in (result, two)]
        assert_equal(*numbers, rtol=1e-9)
    both = {(("file", f),): ab.read_predictions(tmp_path / f"{f}.csv", **options) for f in "ab"}
    parts = {split: found[()] for split, found in both.items()}
    assert_equal([r.value for r in ab.evaluate(parts).results], [r.value for r in read.results])
    nothing = ab.scan_predictions(str(tmp_path / "a.csv"), **options)
    for source in (nothing, parts[("file", "a"),]):
        with pytest.raises(DomainError, match="`weight` must not be zero everywhere"):
            ab.evaluate(source)


# ------------------------------------------------------------------------ scales
SCALES = (1e200, 1e-200)
#: Metrics for which weights are numbers of samples have the limit of many samples, or that of as
#: many samples as there are rows, so that their values move by about 1/n.
EXACT, LIMIT = (
    [m for m in PLAIN if m.measurement.duplication == kind] for kind in ("exact", "limit")
)
FAMILIES = ("selective_risk@37cov", "generalized_risk@60cov", "coverage@20risk", "cwsa@0.6")


@pytest.mark.parametrize("metric", [*EXACT, *map(metric_named, FAMILIES)], ids=lambda m: m.name)
@pytest.mark.parametrize("scale", SCALES)
def test_the_scale_of_the_weights_changes_no_value_and_no_interval(metric, scale: float) -> None:
    for seed in range(3):
        d = columns(seed, 80)
        results = [
            validate_samples(d["confidence"], d["loss"], d["weight"] * k) for k in (1.0, scale)
        ]
        if metric.reason_not_applicable(results[0]):
            continue
        assert_equal(*(metric.compute(s) for s in results), rtol=1e-9, at=metric.name)
        assert_equal(*(interval_of_metric(metric, s) for s in results), rtol=1e-9, at=metric.name)


@pytest.mark.parametrize("metric", LIMIT, ids=lambda m: m.name)
@pytest.mark.parametrize("scale", SCALES)
def test_numbers_that_depend_on_the_number_of_samples_stay_near(metric, scale: float) -> None:
    d = columns(3, 400)
    near, far, further = (
        validate_samples(d["confidence"], d["loss"], d["weight"] * k)
        for k in (1.0, scale, scale**1.1)
    )
    assert metric.compute(far).value == pytest.approx(metric.compute(near).value, rel=0.02)
    assert_equal(metric.compute(far), metric.compute(further), rtol=1e-9)
    assert_equal(interval_of_metric(metric, far), interval_of_metric(metric, further), rtol=1e-9)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("make", [predictions, with_classes, with_new_classes])
def test_an_evaluation_is_the_same_on_every_scale(make, scale: float) -> None:
    data = columns(11)
    names = [m.name for m in METRICS.values() if m.measurement.duplication == "exact"]
    first, second = (
        ab.evaluate(make(data | {"weight": data["weight"] * k}), interval="analytic", curves=False)
        for k in (1.0, scale)
    )
    for result, two in zip(first.results, second.results, strict=True):
        if result.metric.name in names:
            assert_equal(result, two, rtol=1e-9)
    assert [f.message for f in first.notes] == [f.message for f in second.notes]


@pytest.mark.parametrize("scale", SCALES)
def test_curves_and_rules_are_the_same_on_every_scale(scale: float) -> None:
    data = columns(12)
    first, second = (of_arrays(data | {"weight": data["weight"] * k}) for k in (1.0, scale))
    # Masses have the unit of the weights; smoothed targets and bins count samples.
    first_curve, second_curve = first.pop("selective"), second.pop("selective")
    for name in ("coverage", "risk", "thresholds", "accepted"):
        np.testing.assert_allclose(
            getattr(second_curve, name), getattr(first_curve, name), rtol=1e-9
        )
    for name in ("generalized", "point", "confusion", "platt", "binning", "reliability", "roc"):
        first.pop(name), second.pop(name)
    assert_equal(first, second, rtol=1e-9)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", range(3))
def test_streams_that_are_merged_are_the_same_on_every_scale(
    tmp_path, kind: int, scale: float
) -> None:
    data = columns(13)
    results = []
    for k in (1.0, scale):
        own = data | {"weight": data["weight"] * k}
        halves = [
            {name: x[rows] for name, x in own.items()} for rows in (slice(20), slice(20, None))
        ]
        results.append(streaming.merge(*(batches(states(tmp_path)[kind], d, 10) for d in halves)))
    for name in ("augrc", "aurc", "failure_auroc", "selective_risk@80cov", "coverage@20risk"):
        first, second = (streaming.compute(state, name) for state in results)
        assert_equal(first, second, rtol=1e-9, at=name)
    if kind == 2:
        for metric in EXACT:
            pair = [streaming.scored(state) for state in results]
            if not metric.reason_not_applicable(pair[0]):
                assert_equal(
                    *(interval_of_metric(metric, s) for s in pair), rtol=1e-9, at=metric.name
                )
