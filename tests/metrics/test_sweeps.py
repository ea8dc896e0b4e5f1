"""Many metrics from one name: low:high:count in the place of a number, computed together."""

import dataclasses

import numpy as np
import pytest

import abstain as ab
from abstain._foundation.scored import Scored
from abstain.errors import InputError, UnknownNameError
from abstain.metrics import METRICS, Metric, metric_named, metrics_named
from abstain.metrics.catalogue import FAMILIES, RANGE_EXAMPLE
from abstain.metrics.entry import BatchableComputation, compute_metrics


def data(n=3000, *, weighted=False):
    rng = np.random.default_rng(3)
    c = np.round(rng.random(n), 3)
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    return Scored(c, (rng.random(n) > c).astype(float), weight)


def names(name):
    return [metric.name for metric in metrics_named(name)]


def test_even_steps_with_both_ends():
    assert names("cwsa@0.5:0.9:3") == ["cwsa@0.5", "cwsa@0.7", "cwsa@0.9"]
    assert names("coverage@1:10:2risk") == ["coverage@1risk", "coverage@10risk"]
    assert names("cwsa_plus@0.5") == ["cwsa_plus@0.5"]
    assert names("partial_aurc@0:20:2-80:100:2cov") == [
        "partial_aurc@0-80cov",
        "partial_aurc@0-100cov",
        "partial_aurc@20-80cov",
        "partial_aurc@20-100cov",
    ]


def test_the_published_thresholds():
    at = [float(name.removeprefix("cwsa@")) for name in names(RANGE_EXAMPLE)]
    np.testing.assert_allclose(at, np.linspace(0.5, 0.99, 20), rtol=0, atol=5e-13)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.pattern)
def test_every_family_takes_a_range(family):
    first, *rest = family.example_numbers
    low = f"{float(first) / 2:g}"
    result = family.parse_range(family.pattern.format(f"{low}:{first}:3", *rest))
    assert [metric.name for metric in result[:: len(result) - 1]] == [
        family.pattern.format(low, *rest),
        family.example_name,
    ]
    # The middle of two halves is whole where numbers must be.
    assert len(result) == 3


@pytest.mark.parametrize("name", ["cwsa@0.9:0.5:3", "cwsa@0.5:0.9:1", "cwsa@0.5:0.9:2.5"])
def test_a_range_without_steps_raises_an_error(name):
    with pytest.raises(InputError, match="low:high:count"):
        metrics_named(name)


def test_numbers_without_meaning_are_named():
    with pytest.raises(InputError, match=r"contains 'cwsa@1'"):
        metrics_named("cwsa@0.5:1:3")


def test_where_one_is_requested_many_raise_an_error():
    with pytest.raises(UnknownNameError, match="represents 3 metrics, but one metric is required"):
        metric_named("cwsa@0.5:0.9:3")
    with pytest.raises(UnknownNameError, match="low:high:count"):
        metric_named("nothing@5")


@pytest.mark.parametrize("weighted", [False, True])
def test_together_they_are_what_each_is_alone(weighted):
    s = data(weighted=weighted)
    values = [
        *metrics_named("selective_risk@5:100:20cov"),
        *metrics_named("cwsa@0.05:0.99:25"),
        METRICS["augrc"],
        *metrics_named("cwsa_plus@0:0.999:8"),
        *metrics_named("generalized_risk@10:90:4cov"),
        *metrics_named("rejection_quality@50:90:3cov"),
    ]
    together = compute_metrics(values, s)
    alone = [metric.compute(s) for metric in values]
    for metric, a, b in zip(values, together, alone, strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-13, nan_ok=True), metric.name
        assert (a.n_accepted, a.reason) == (b.n_accepted, b.reason)


def test_what_is_shared_is_done_once(monkeypatch):
    from abstain.metrics.confidence_weighted import cwsa

    calls = []
    passes = cwsa.accepted_sums_at_thresholds
    monkeypatch.setattr(
        cwsa, "accepted_sums_at_thresholds", lambda *given: calls.append(1) or passes(*given)
    )
    monkeypatch.setattr(cwsa, "accepted_sums", lambda *_: pytest.fail("a pass for one threshold"))
    p = ab.Predictions(confidence=[0.9, 0.8, 0.7], loss=[0.0, 1.0, 0.0])
    evaluation = ab.evaluate(
        p,
        metrics=[RANGE_EXAMPLE, RANGE_EXAMPLE.replace("@", "_plus@")],
        interval="none",
        curves=False,
    )
    assert len(evaluation.results) == 40
    assert len(calls) == 1


def test_a_metric_with_a_computation_of_its_own_keeps_it():
    s = data()
    identity = dataclasses.replace(METRICS["cwsa@0.9"].identity, name="mine")
    mine = Metric(identity, METRICS["augrc"].measurement)
    both = compute_metrics([METRICS["cwsa@0.5"], mine, METRICS["cwsa_plus@0.5"]], s)
    assert both[1].value == ab.augrc(s.confidence, s.loss)
    assert isinstance(METRICS["cwsa@0.5"].compute, BatchableComputation)


def test_evaluate_sweeps_as_cwsa_sweep_does():
    s = data()
    p = ab.Predictions(confidence=s.confidence, loss=s.loss)
    evaluation = ab.evaluate(p, metrics=[RANGE_EXAMPLE], interval="none")
    values = [result.value for result in evaluation.results]
    np.testing.assert_allclose(values, ab.cwsa_sweep(s.confidence, s.loss).cwsa, atol=1e-9)
    assert evaluation.results[0].metric.name == "cwsa@0.5"
    # A metric that is named twice comes once.
    again = ab.evaluate(p, metrics=["cwsa@0.5:0.9:2", "cwsa@0.90"], interval="none")
    assert [result.metric.name for result in again.results] == ["cwsa@0.5", "cwsa@0.9"]


def test_compare_takes_a_range():
    rng = np.random.default_rng(0)
    c = rng.random((2, 200))
    p = ab.Predictions(confidence={"a": c[0], "b": c[1]}, loss=(rng.random(200) > c[0]) * 1.0)
    comparison = ab.compare(p, metrics=["selective_risk@80:100:3cov"])
    assert {row["metric"] for row in comparison.frame().to_dicts()} == {
        "selective_risk@80cov",
        "selective_risk@90cov",
        "selective_risk@100cov",
    }
