"""What a case holds beside its curves: the band, as the curves module makes it."""

import numpy as np
import pytest
from scipy.special import softmax

import abstain as ab
from abstain._foundation.scored import scored
from abstain.curves.bands import band_of
from abstain.evaluation import cases


def made_up(n, *, groups=0):
    rng = np.random.default_rng(n)
    confidence = rng.random(n)
    wrong = rng.random(n) < 0.4 * (1 - confidence)
    group = [f"g{i}" for i in np.arange(n) % groups] if groups else None
    return ab.Predictions(confidence=confidence, loss=wrong.astype(float), group=group)


def band(predictions, **options):
    return ab.evaluate(predictions, metrics=["augrc"], **options).cases[0].band


@pytest.mark.parametrize("interval", ["analytic", "bootstrap"])
def test_a_case_has_the_band_of_its_samples(interval):
    p = made_up(400)
    found = band(p, interval=interval, level=0.9, bootstrap=50)
    s = scored(p.confidence["confidence"], p.loss)
    known = band_of(s, "selective", level=0.9, coverage=found.coverage, rng=0)
    assert found.level == 0.9
    for name in ("risk", "low", "high", "low_all", "high_all"):
        assert np.array_equal(getattr(found, name), getattr(known, name))
    assert (found.low <= found.risk).all()
    assert (found.risk <= found.high).all()


def test_no_intervals_no_band():
    assert band(made_up(50), interval="none") is None


def test_the_seed_is_that_of_the_evaluation():
    p = made_up(200)
    assert np.array_equal(band(p, rng=7).high_all, band(p, rng=7).high_all)
    assert not np.array_equal(band(p, rng=7).high_all, band(p, rng=8).high_all)


def test_clusters_are_those_of_the_evaluation():
    p = made_up(300, groups=30)
    s = scored(p.confidence["confidence"], p.loss)
    found = band(p, clustered=True)
    codes = np.unique(p.group, return_inverse=True)[1]
    known = band_of(s, "selective", coverage=found.coverage, cluster=codes)
    assert np.allclose(found.high, known.high)
    assert not np.allclose(found.high, band(p).high)


def test_many_clustered_samples_take_fewer_coverages(monkeypatch):
    p = made_up(300, groups=30)
    fine = band(p, clustered=True).coverage
    monkeypatch.setattr(cases, "_STEPS", 1000)
    coarse = band(p, clustered=True).coverage
    assert set(coarse) < set(fine)
    assert coarse[-1] == 1
    assert band(p).coverage.size == fine.size  # without clusters it costs little


@pytest.mark.parametrize("n", [1, 2, 3, 7, 60])
def test_few_samples(n):
    found = band(made_up(n))
    assert found.coverage[0] >= 1 / n
    assert found.coverage[-1] == 1
    assert bool(found.note) == (n == 1)


def test_the_bins_that_are_drawn_are_those_of_the_ece_beside_them():
    # Right and wrong take turns along the confidence, so that other bins have another ECE.
    rng = np.random.default_rng(4)
    logits = rng.normal(size=(3000, 4))
    guess, order = (
        logits.argmax(axis=1),
        np.argsort(np.argsort(softmax(logits, axis=1).max(axis=1))),
    )
    p = ab.Predictions(logits=logits, labels=(guess + order // 170 % 2) % 4)
    found = ab.evaluate(p, scores=["msr"], metrics=["ece"], interval="none")
    curve = found.cases[0].reliability
    gap = np.abs(curve.accuracy - curve.confidence)
    assert np.nansum(curve.weight * gap) / curve.total == pytest.approx(found.value("ece"))
