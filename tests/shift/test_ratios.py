"""Density ratios: what they are worth, what is drawn by them, what a classifier makes of them."""

import numpy as np
import pytest

from abstain import shift, thresholds
from abstain.errors import DomainError, InputError, ShapeError


def test_effective_size_is_kishs():
    values = np.array([1.0, 2.0, 3.0])
    ratios = shift.density_ratios(values)
    assert ratios.effective_size == pytest.approx(36 / 14)
    assert shift.density_ratios(values * 1e300 / 3).effective_size == pytest.approx(36 / 14)
    assert shift.density_ratios(np.ones(7)).effective_size == pytest.approx(7)
    assert ratios.expected_draws == pytest.approx(2)
    assert (ratios.largest, ratios.bounded, ratios.heaviest) == (3.0, False, 2)
    assert "effective size of 3 by the density ratios given" in str(ratios)
    assert "largest ratio, of sample 2, is 1.5 times the mean" in str(ratios)


def test_what_is_drawn_has_the_other_law():
    """Each value is kept with the chance ratio / largest: counts are binomial."""
    values = np.repeat([0.0, 0.25, 0.5, 1.0], 4000)
    kept = shift.density_ratios(values, largest=2.0).draw(5).reshape(4, -1).sum(axis=1)
    expected = 4000 * np.array([0.0, 0.125, 0.25, 0.5])
    assert kept[0] == 0
    assert (np.abs(kept - expected) <= 4 * np.sqrt(expected)).all()


def test_a_seed_of_the_data_draws_other_numbers():
    """A uniform confidence drawn with the same seed must not decide which samples are kept."""
    x = np.random.default_rng(0).random(2000)
    kept = shift.density_ratios(np.ones(2000), largest=2.0).draw(0)
    assert abs(x[kept].mean() - 0.5) < 0.03


def test_clipping_says_what_it_cut():
    values = np.append(np.ones(99), 101.0)  # a mean of 2
    ratios = shift.density_ratios(values, clip=5.0)
    assert ratios.largest == ratios.values.max() == 10.0
    assert ratios.bounded
    assert ratios.cut == pytest.approx(91 / 200)
    assert "clipping removed 45% of the weight" in str(ratios)
    assert "except for clipped ratios" in ratios.target


def test_clipping_what_is_below_changes_nothing():
    ratios = shift.density_ratios([1.0, 2.0, 3.0], clip=5.0)
    assert (ratios.largest, ratios.bounded, ratios.cut) == (3.0, False, 0.0)


@pytest.mark.parametrize(
    ("given", "options", "error", "says"),
    [
        ([1.0, -1.0], {}, DomainError, "`ratio` must not be negative"),
        ([0.0, 0.0], {}, DomainError, "zero everywhere"),
        ([1.0, float("nan")], {}, DomainError, "`ratio` must be finite"),
        ([[1.0]], {}, ShapeError, "`ratio`"),
        ([1.0, 3.0], {"largest": 2.0}, DomainError, "3 at index 1"),
        ([1.0, 3.0], {"clip": 1.0}, DomainError, "`clip` must be above 1"),
        ([1.0, 3.0], {"clip": 2.0, "largest": 4.0}, InputError, "`largest` or `clip`"),
    ],
)
def test_bad_ratios_raise_an_error(given, options, error, says):
    with pytest.raises(error, match=says):
        shift.density_ratios(given, **options)


@pytest.mark.parametrize(
    ("values", "largest", "says"),
    [
        ([5.0, 1.0], 1.0, "5 at index 0"),
        ([-1.0, 1.0], 1.0, "must not be negative"),
        ([float("nan"), 1.0], 1.0, "must be finite"),
        ([0.0, 0.0], 1.0, "zero everywhere"),
    ],
)
def test_ratios_made_by_hand_raise_an_error_too(values, largest, says):
    """They would void the guarantee without a word."""
    with pytest.raises(DomainError, match=says):
        shift.DensityRatios(np.array(values), largest)


def test_what_holds_ratios_is_not_taken_for_them():
    fit = shift.fit_ratios(np.arange(40), np.arange(40))
    with pytest.raises(InputError, match=r"a FittedRatios: pass its \.ratios"):
        thresholds.learn_then_test(np.arange(40), np.zeros(40), max_risk=0.2, delta=0.1, ratio=fit)
    with pytest.raises(InputError, match="`origin` must be one of"):
        shift.density_ratios([1.0], origin="guess")
    with pytest.raises(DomainError, match="zero everywhere"):
        shift.density_ratios([0.0, 1.0]).rows([0])


def test_fitted_ratios_are_near_the_truth():
    rng = np.random.default_rng(1)
    x, new = rng.normal(0, 1, (6000, 2)), rng.normal([0.5, 0.0], 1, (5000, 2))
    fit = shift.fit_ratios(x, new, rng=0)
    truth = np.exp(0.5 * x[:, 0] - 0.125)
    own = fit.ratios.values
    assert np.abs(own / own.mean() - truth).mean() < 0.08
    # Of two normal laws half a standard deviation apart: the normal law at 0.5 / sqrt(2).
    assert fit.auroc == pytest.approx(0.638, abs=0.02)
    assert "that a classifier estimated" in fit.ratios.target


def test_without_a_shift_all_samples_are_worth_about_one():
    rng = np.random.default_rng(2)
    fit = shift.fit_ratios(rng.random(2000), rng.random(1000), rng=0)
    assert fit.ratios.effective_size > 1950
    assert abs(fit.auroc - 0.5) < 0.04


def test_a_sample_is_not_rated_by_a_model_that_saw_it():
    """A classifier that knows its training data by heart finds nothing in data of one law."""
    neighbors = pytest.importorskip("sklearn.neighbors")
    rng = np.random.default_rng(3)
    model = neighbors.KNeighborsClassifier(1)
    fit = shift.fit_ratios(rng.random(800), rng.random(800), classifier=model, rng=0)
    assert abs(fit.auroc - 0.5) < 0.06


@pytest.mark.parametrize(
    ("one", "other", "options", "says"),
    [
        (np.ones((9, 2)), np.ones((9, 3)), {}, "2 columns"),
        (np.ones(9), np.ones(20), {}, "at least 10 samples for 5 folds; got 9"),
        (np.ones(20), np.ones(20), {"folds": 1}, "`folds`"),
        (np.ones(20), np.ones(20), {"classifier": "tree"}, "predict_proba"),
        (np.full(20, np.nan), np.ones(20), {}, "`calibration` must be finite"),
    ],
)
def test_bad_data_of_a_classifier_raise_an_error(one, other, options, says):
    with pytest.raises(InputError, match=says):
        shift.fit_ratios(one, other, **options)
