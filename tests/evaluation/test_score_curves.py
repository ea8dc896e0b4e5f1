"""What a case holds beside its curves: the band, as the curves module makes it."""

import numpy as np
import pytest
from scipy.special import softmax

import abstain as ab
from abstain._foundation.scored import validate_samples
from abstain.curves.bands import compute_band
from abstain.curves.risk_coverage import thin
from abstain.evaluation import notes, results
from abstain.evaluation.scored_split import MAX_SAMPLES


def made_up(n, *, groups=0):
    rng = np.random.default_rng(n)
    confidence = rng.random(n)
    wrong = rng.random(n) < 0.4 * (1 - confidence)
    group = [f"g{i}" for i in np.arange(n) % groups] if groups else None
    return ab.Predictions(confidence=confidence, loss=wrong.astype(float), group=group)


def band(predictions, **options):
    return ab.evaluate(predictions, metrics=["augrc"], **options).curves[0].band


@pytest.mark.parametrize("interval", ["analytic", "bootstrap"])
def test_a_case_has_the_band_of_its_samples(interval):
    p = made_up(400)
    result = band(p, interval=interval, level=0.9, bootstrap=50)
    s = validate_samples(p.confidence["confidence"], p.loss)
    known = compute_band(s, "selective", level=0.9, coverage=result.coverage, rng=0)
    assert result.level == 0.9
    for name in ("risk", "low", "high", "low_all", "high_all"):
        assert np.array_equal(getattr(result, name), getattr(known, name))
    assert (result.low <= result.risk).all()
    assert (result.risk <= result.high).all()


def test_no_intervals_no_band():
    assert band(made_up(50), interval="none") is None


def test_the_seed_equals_that_of_the_evaluation():
    p = made_up(200)
    assert np.array_equal(band(p, rng=7).high_all, band(p, rng=7).high_all)
    assert not np.array_equal(band(p, rng=7).high_all, band(p, rng=8).high_all)


def test_clusters_equal_those_of_the_evaluation():
    p = made_up(300, groups=30)
    s = validate_samples(p.confidence["confidence"], p.loss)
    result = band(p, clustered=True)
    codes = np.unique(p.group, return_inverse=True)[1]
    known = compute_band(s, "selective", coverage=result.coverage, cluster=codes)
    assert np.allclose(result.high, known.high)
    assert not np.allclose(result.high, band(p).high)


def test_many_clustered_samples_take_fewer_coverages(monkeypatch):
    p = made_up(300, groups=30)
    fine = band(p, clustered=True).coverage
    monkeypatch.setattr(results, "_MAX_VISITS", 1000)
    coarse = band(p, clustered=True).coverage
    assert set(coarse) < set(fine)
    assert coarse[-1] == 1
    assert band(p).coverage.size == fine.size  # without clusters it costs little


@pytest.mark.parametrize("n", [1, 2, 3, 7, 60])
def test_few_samples(n):
    result = band(made_up(n))
    assert result.coverage[0] >= 1 / n
    assert result.coverage[-1] == 1
    assert bool(result.note) == (n == 1)


def test_the_bins_that_are_drawn_equal_those_of_the_ece_beside_them():
    # Right and wrong take turns along the confidence, so that other bins have another ECE.
    rng = np.random.default_rng(4)
    logits = rng.normal(size=(3000, 4))
    guess, order = (
        logits.argmax(axis=1),
        np.argsort(np.argsort(softmax(logits, axis=1).max(axis=1))),
    )
    p = ab.Predictions(logits=logits, labels=(guess + order // 170 % 2) % 4)
    evaluation = ab.evaluate(p, scores=["msr"], metrics=["ece"], interval="none")
    curve = evaluation.curves[0].reliability
    gap = np.abs(curve.accuracy - curve.confidence)
    assert np.nansum(curve.weight * gap) / curve.total == pytest.approx(evaluation.value("ece"))


def test_a_long_curve_keeps_what_is_drawn_of_it():
    rng = np.random.default_rng(11)
    confidence = rng.permutation(59_999) / 59_999
    loss = rng.random(59_999) < 0.3 * (1 - confidence)
    case = ab.evaluate(ab.Predictions(confidence=confidence, loss=loss), metrics=["augrc"]).curves[
        0
    ]
    whole = ab.risk_coverage_curve(confidence, loss)
    assert len(case.selective) == len(case.generalized) <= 20_002 < len(whole)
    for vertices in (400, 200):
        drawn, known = thin(case.selective, vertices=vertices), thin(whole, vertices=vertices)
        for name in ("thresholds", "coverage", "risk", "accepted", "failures", "usable"):
            assert np.array_equal(getattr(drawn, name), getattr(known, name)), name
    generalized = ab.generalized_risk_coverage_curve(confidence, loss)
    at = np.isin(generalized.thresholds, case.generalized.thresholds)
    assert case.generalized.kind == "generalized"
    assert np.array_equal(case.generalized.risk, generalized.risk[at])


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_the_samples_shown_equal_those_of_a_whole_sort(share):
    rng = np.random.default_rng(5)
    for dtype in (np.float16, np.float32, np.float64):
        confidence = rng.integers(0, 40, 300).astype(dtype) / dtype(64)
        loss = (rng.random(300) < share).astype(float)
        case = ab.evaluate(
            ab.Predictions(confidence=confidence, loss=loss), metrics=["augrc"], interval="none"
        ).curves[0]
        rows = sorted(range(300), key=lambda i: (confidence[i], i))
        wrong = sorted(range(300), key=lambda i: (-confidence[i], i))
        assert [x.id for x in case.underconfident] == [str(i) for i in rows if not loss[i]][
            :MAX_SAMPLES
        ]
        assert [x.id for x in case.overconfident] == [str(i) for i in wrong if loss[i]][
            :MAX_SAMPLES
        ]


def test_the_spread_of_ranks_equals_that_of_every_sample():
    rng = np.random.default_rng(6)
    for seed in range(60):
        n, kinds = int(rng.integers(1, 50)), int(rng.integers(1, 70))
        confidence = rng.integers(0, kinds, n) / 7
        loss = (rng.random(n) < 0.3) if seed % 3 else rng.random(n)
        weight = None if seed % 2 else rng.random(n) + 0.1
        s = validate_samples(confidence, loss, weight)
        mass = np.ones(n) if weight is None else weight
        above = (mass * (confidence > confidence[:, None])).sum(axis=1)
        tied = (mass * (confidence == confidence[:, None])).sum(axis=1)
        rank = (above + tied / 2) / mass.sum()
        known = np.average((rank - 0.5) ** 2, weights=mass)
        assert notes._rank_variance(s.merged_groups) == pytest.approx(known, rel=1e-12, abs=1e-14)
        assert notes._count_extreme_confidences(s.merged_groups) == (
            (confidence == confidence.max()).sum(),
            (confidence == confidence.min()).sum(),
        )
