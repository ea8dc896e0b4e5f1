"""Balanced accuracy where a class is rare: when there is no interval, and that others hold.

The simulations are a small part of the tables in docs/validation.md.
"""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain._foundation.scored import ClassView, Scored
from abstain.metrics import METRICS
from abstain.metrics.classes import reason_few_of_either_kind
from abstain.metrics.intervals import difference_of_metric, interval_of_metric

BALANCED = METRICS["balanced_accuracy"]
REASON = "a class is too rare: the variance is based on about"


def scored_of(label, loss, **options):
    """A classifier that confuses each class with the next where it fails."""
    classes = int(label.max()) + 1
    prediction = np.where(loss, (label + 1) % classes, label)
    view = ClassView(label, prediction, tuple(range(classes)))
    return Scored(
        np.linspace(1, 0, label.size), np.asarray(loss, float), class_view=view, **options
    )


def counts(*failures_of_sizes):
    """Failures and sizes of the classes 0, 1, ..."""
    label = np.repeat(np.arange(len(failures_of_sizes)), [size for _, size in failures_of_sizes])
    loss = np.concatenate([np.arange(size) < failed for failed, size in failures_of_sizes])
    return scored_of(label, loss)


def random_classes(rng, n, share, rate):
    label = (rng.random(n) < share).astype(np.int64)
    label[0] = 1
    return label, rng.random(n) < np.where(label, rate, 0.1)


# --------------------------------------------------------------------- no interval and no p-value
@pytest.mark.parametrize("failed", [0, 1, 3, 27, 29, 30])
def test_few_failures_or_successes_of_a_rare_class_allow_no_interval(failed):
    first, second = counts((97, 970), (failed, 30)), counts((90, 970), (failed, 30))
    interval, gap = (
        interval_of_metric(BALANCED, first),
        difference_of_metric(BALANCED, (first, second)),
    )
    assert np.isnan([interval.low, interval.high, gap.low, gap.high, gap.p_value]).all()
    assert gap.value == BALANCED.compute(first).value - BALANCED.compute(second).value
    for note in (interval.note, gap.note):
        assert note.startswith(f"{REASON} {min(failed, 30 - failed)} failures or successes")
        assert note.endswith("need at least 4")


@pytest.mark.parametrize("failed", [4, 15, 26])
def test_more_of_both_allow_an_interval(failed):
    assert interval_of_metric(BALANCED, counts((97, 970), (failed, 30))).low > 0


def test_few_failures_in_all_classes_are_a_warning():
    interval = interval_of_metric(BALANCED, counts((1, 500), (2, 500)))
    assert interval.low > 0
    assert interval.note.startswith("only 3 failures")


@pytest.mark.parametrize(("classes", "n"), [(2, 100), (10, 400), (100, 2000)])
def test_classes_of_the_same_size_allow_an_interval(classes, n):
    rng = np.random.default_rng(4)
    s = scored_of(np.arange(n) % classes, rng.random(n) < 0.1)
    assert interval_of_metric(BALANCED, s).low > 0


@pytest.mark.parametrize("name", ["balanced_accuracy", "augrc_ba"])
def test_many_classes_of_few_samples_allow_no_interval(name):
    """With three samples of each class, 88% to 91% of the intervals held the truth."""
    rng = np.random.default_rng(0)
    s = scored_of(np.arange(300) % 100, rng.random(300) < 0.2)
    interval = interval_of_metric(METRICS[name], s)
    assert np.isnan(interval.low)
    reason = "classes are too rare: their few samples miss about 33% of the variance"
    assert interval.note.startswith(reason)


def test_weights_rows_without_weight_and_unknown_classes():
    s = counts((50, 500), (2, 12))
    reason = reason_few_of_either_kind(s)
    assert reason.startswith(REASON)
    assert reason_few_of_either_kind(replace(s, weight=np.full(s.n_rows, 1e-3))) == reason
    # Rows that count for nothing: half of the second class without weight, a hundred of no class.
    label = np.concatenate([s.class_view.labels, np.full(12, 1), np.full(100, -1)])
    loss = np.concatenate([s.loss, np.arange(12) % 2, np.ones(100)])
    weight = np.concatenate([np.full(s.n_rows, 2.0), np.zeros(12), np.full(100, 2.0)])
    assert reason_few_of_either_kind(scored_of(label, loss > 0, weight=weight)) == reason
    # Rows that stand for several samples, as of a stream.
    times = np.array([50.0, 450.0, 2.0, 10.0])
    rows = scored_of(np.array([0, 0, 1, 1]), np.array([True, False, True, False]))
    assert reason_few_of_either_kind(replace(rows, weight=times, row_counts=times)) == reason


def table(failed):
    """The rare class has 20 samples, so many of which fail."""
    s = counts((98, 980), (failed, 20))
    view = s.class_view
    return {"label": view.labels, "prediction": view.prediction, "confidence": s.confidence}


def predictions(columns):
    return ab.Predictions(
        confidence=columns["confidence"], labels=columns["label"], prediction=columns["prediction"]
    )


@pytest.mark.parametrize("interval", ["analytic", "bootstrap"])
def test_evaluate_gives_the_reason_instead_of_an_interval(interval):
    columns = table(2)
    p = predictions(columns)
    evaluation = ab.evaluate(p, metrics=["balanced_accuracy"], interval=interval, bootstrap=100)
    (result,) = evaluation.results
    assert np.isfinite(result.value)
    assert np.isnan(result.interval.low)
    assert result.interval.note.startswith(REASON)


@pytest.mark.parametrize(("failed", "given"), [(2, False), (18, False), (10, True)])
def test_a_stream_gives_the_same_reason_or_interval(tmp_path, failed, given):
    columns = table(failed)
    pl.DataFrame(columns).write_parquet(tmp_path / "rows.parquet")
    scan = ab.scan_predictions(tmp_path / "rows.parquet")
    p = predictions(columns)
    streamed, read = (
        ab.evaluate(data, metrics=["balanced_accuracy"]).results[0] for data in (scan, p)
    )
    assert streamed.interval.note == read.interval.note
    assert read.interval.note.startswith(REASON) is not given
    assert (streamed.interval.low > 0) is given
    assert streamed.interval.low == pytest.approx(read.interval.low, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    "options",
    [{}, {"bootstrap": 100}, {"test": "bootstrap"}, {"margin": 0.1, "reference": "first"}],
)
def test_compare_gives_the_reason_instead_of_a_p_value(options):
    classifiers = {
        (("model", name),): predictions(table(failed))
        for name, failed in (("first", 2), ("second", 3))
    }
    comparison = ab.compare(classifiers, methods="model", metrics=["balanced_accuracy"], **options)
    assert comparison.pairs
    for row in comparison.pairs:
        assert np.isnan([row.p_value, row.low, row.high]).all()
        assert not row.better
        assert row.note.startswith(REASON)
    assert all(np.isfinite(row.value) and np.isnan(row.low) for row in comparison.estimates)
    assert all(np.isnan(row.p_value) for row in comparison.non_inferiority)
    assert [f.kind for f in comparison.notes].count("no_interval") == 1


# ------------------------------------------------------------------------------------ simulation
def share_of_misses(n, share, rate, draws=400):
    """The share of draws with an interval, and of intervals without the truth among all draws."""
    rng, true = np.random.default_rng(0), 1 - (0.1 + rate) / 2
    results = []
    for _ in range(draws):
        interval = interval_of_metric(BALANCED, scored_of(*random_classes(rng, n, share, rate)))
        results.append((interval.low, interval.high))
    low, high = np.array(results).T
    return np.isfinite(low).mean(), ((low > true) | (high < true)).mean()


@pytest.mark.parametrize("rate", [0.1, 0.9])
def test_intervals_of_a_class_of_one_percent_are_withheld(rate):
    """They held the truth in 66% of the draws."""
    given, misses = share_of_misses(1000, 0.01, rate)
    assert given < 0.05
    assert misses < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.03, 0.1])
@pytest.mark.parametrize("rate", [0.03, 0.1, 0.4, 0.9, 0.97])
@pytest.mark.parametrize("n", [400, 1000, 4000])
def test_intervals_of_rare_classes_are_withheld_or_hold_the_truth(share, rate, n):
    given, misses = share_of_misses(n, share, rate)
    assert misses < 0.08
    if n * share * min(rate, 1 - rate) >= 12:
        assert given > 0.98
