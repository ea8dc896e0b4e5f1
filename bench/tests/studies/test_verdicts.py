"""What the studies say is true of every kind of data: no loss, no error, few draws, any scale."""

import numpy as np
import pytest

import abstain as ab
from abstain.errors import InputError
from abstain_bench.studies import (
    study_convergence,
    study_estimators,
    study_population_forms,
    study_posterior,
    study_weights,
)
from abstain_bench.studies._area_estimators import error_summary

SIZES = (8, 32, 128)


def own(loss, confidence=None) -> ab.Predictions:
    loss = np.asarray(loss, dtype=float)
    order = np.arange(loss.size) if confidence is None else confidence
    return ab.Predictions(confidence=order, loss=loss)


def said(result) -> str:
    return " ".join(result.verdict)


def numbers_are_there(text: str) -> bool:
    return "nan" not in text and "inf " not in text


NOTHING = own(np.zeros(20))
CONSTANT = own(np.full(20, 0.3))
USUAL = own(np.random.default_rng(0).exponential(size=20))


# ------------------------------------------------------------------------------------ estimators
def test_where_all_rows_are_drawn_rounding_is_no_bias():
    result = study_estimators(USUAL, sizes=[20], repeats=5, estimators=["plugin", "log"])
    # The plug-in of all rows is the truth; log has a bias of its own.
    assert "standard errors in 1 of 2 pairs of estimator and case" in said(result)
    assert "plug-in +0 at n = 20; log" in said(result)
    assert "at n = 20 plug-in 0, log" in said(result)


def test_data_without_loss_have_no_shares():
    text = said(study_estimators(NOTHING, sizes=[8], repeats=5))
    assert text == "1 case has no loss, so errors relative to the AURC are undefined there."


def test_twice_the_augrc_may_be_the_aurc():
    # Equal, not above: one loss for all.
    text = said(study_estimators(CONSTANT, sizes=[8], repeats=5, replace=True))
    assert "never below the AURC here (1 case)" in text
    assert "above the AURC" not in text


def test_the_case_of_the_counterexample_is_named():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(60, 3))
    p = ab.Predictions(logits=z, labels=z.argmin(axis=1))
    text = said(study_estimators(p, scores=["msr"], losses=["cross_entropy"], sizes=[8], repeats=5))
    assert "on data (msr, cross-entropy) it converges to" in text


@pytest.mark.parametrize(("population", "tied"), [("discrete-scores", 1), ("beta-scores", 0)])
def test_the_limit_of_the_trapezoid_is_told_where_it_differs(population, tied):
    result = study_estimators(populations=[population], sizes=[8], repeats=5)
    assert sum("the trapezoid converges to another limit" in note for note in result.notes) == tied
    truth = ab.simulate.make(population)
    gap = abs(truth.aurc() - truth.aurc(ties="trapezoid"))
    assert (gap > 1e-4) == bool(tied)


def test_losses_whose_squares_overflow_are_refused():
    huge = own(1e200 * USUAL.loss)
    for study in (study_estimators, study_population_forms):
        with pytest.raises(InputError, match=r"at most 1e\+60.*largest 'own' loss of 'data' is"):
            study(huge)


@pytest.mark.parametrize("scale", [1e-90, 1e60])
def test_the_spread_has_no_scale(scale):
    values = np.random.default_rng(0).normal(1.2, 0.5, 50)
    one, other = error_summary(values, 1.0), error_summary(scale * values, scale)
    for name in ("sd", "sd_se", "bias", "bias_se", "mae_se"):
        assert other[name] / scale == pytest.approx(one[name], rel=1e-9), name


# ----------------------------------------------------------------------------------- convergence
@pytest.mark.parametrize("data", [NOTHING, CONSTANT])
def test_rates_of_no_error(data):
    result = study_convergence(data, sizes=SIZES, repeats=20)
    assert numbers_are_there(said(result))
    assert "fits have no slope" in said(result)
    slopes = dict(result.frame("rates").select("estimator", "slope").rows())
    # Not the slope of rounding errors.
    assert np.isnan(slopes["plugin"])


def test_a_rate_does_not_depend_on_the_scale_of_the_loss():
    small = own(1e-6 * USUAL.loss)
    rates = [study_convergence(p, sizes=SIZES, repeats=60).frame("rates") for p in (USUAL, small)]
    for column in ("slope", "slope_low", "slope_high"):
        np.testing.assert_allclose(rates[1][column], rates[0][column], rtol=1e-6)
    assert rates[0]["agrees_with"].to_list() == rates[1]["agrees_with"].to_list()


def test_faster_is_said_only_where_intervals_say_so():
    # Three sizes close together: no interval is narrow enough to tell the rates apart.
    result = study_convergence(populations=["beta-scores"], sizes=[8, 9, 10], repeats=60)
    assert ", 0 are below" in said(result)
    assert "upper bound" not in said(result)


def test_an_estimated_truth_limits_what_a_rate_can_be():
    result = study_convergence(
        populations=["logits"], scores=["mls"], losses=["zero_one"], sizes=SIZES, repeats=20
    )
    assert any("Smaller errors cannot be detected" in note for note in result.notes)


# ------------------------------------------------------------------------------ population forms
def test_forms_of_nothing_and_of_one_tie():
    assert said(study_population_forms(NOTHING)) == "No case has any loss, so both forms are 0."
    tied = own(USUAL.loss, np.zeros(20))
    result = study_population_forms(tied)
    row = result.rows()[0]
    # The definition is the other population form; only the weights of a finite sample differ.
    assert row["AURC_p"] == pytest.approx(row["reweighted"])
    assert abs(row["difference"]) > 1e-3
    assert "With ties (1 case), the relative difference" in said(result)


# ------------------------------------------------------------------------------------- posterior
def posterior(draws: int, *, right: bool = False) -> ab.Predictions:
    rng = np.random.default_rng(2)
    labels = rng.integers(3, size=40)
    center = (20.0 if right else 1.0) * np.eye(3)[labels][:, None]
    return ab.Predictions(logit_samples=center + rng.normal(size=(40, draws, 3)), labels=labels)


@pytest.mark.parametrize("draws", [8, 16])
def test_eight_draws_tell_what_independent_draws_do(draws):
    result = study_posterior(posterior(draws), metrics=["augrc"], repeats=20)
    sd = result.rows("expectations")[0]["sd_over_draws"]
    told = f"The standard error with 8 draws is {sd / np.sqrt(8):.2g}."
    # All eight draws there are agree with themselves, which tells nothing.
    assert (told in said(result)) == (draws > 8)
    assert "e-1" not in said(result)


def test_a_mean_predictor_that_is_equal_or_undefined():
    text = said(study_posterior(posterior(8, right=True), metrics=["augrc"], repeats=5))
    assert "The mean predictor has the same value." in text
    text = said(study_posterior(posterior(8), score="mls", metrics=["augrc"], repeats=5))
    assert "The metric of the mean predictor is undefined." in text
    assert numbers_are_there(text)


def test_draws_without_a_value_are_not_counted():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(12, 12, 2))
    draws[:, :7, 0] = np.abs(draws[:, :7, 0]) + 9  # no failure: the AUROC is undefined
    p = ab.Predictions(logit_samples=draws, labels=np.zeros(12, dtype=int))
    result = study_posterior(p, metrics=["failure_auroc"], repeats=5)
    assert "the expectation over 5 draws is" in said(result)


# --------------------------------------------------------------------------------------- weights
def test_weights_name_the_rank_that_they_speak_of():
    text = said(study_weights(sizes=[8], points=5))
    assert "u = 0.833 it is \u22120.083" in text
    assert "at n = 8 and" not in text


def test_ratios_where_no_rank_is_between_the_ends():
    # Ranks 1/3 and 2/3: none from 1/2 to 1/2, but both from 1/8 to 7/8.
    assert "at the ranks of the table" not in said(study_weights(sizes=[2], points=2)).lower()
    both = said(study_weights(sizes=[2, 8], points=2))
    assert "At the ranks of the table" in both
    assert numbers_are_there(both)


# --------------------------------------------------------------------------------------- figures
def test_figures_of_no_error_can_be_drawn():
    options = {"sizes": SIZES, "repeats": 5}
    one, none = study_estimators(USUAL, sizes=[8], repeats=5), study_estimators(NOTHING, sizes=[8])
    assert {"mean", "bias", "mse", "mae"} == {key.split("-")[0] for key in one.figures}
    assert {"mean", "bias"} == {key.split("-")[0] for key in none.figures}
    assert study_convergence(NOTHING, **options).figures == {}
    # Lines of an error beside one of none; a panel without any is left out.
    both = study_convergence({"none": NOTHING, "some": CONSTANT}, **options).figures["rmse"]
    assert both.panels == ["some"]
    sure = study_posterior(posterior(8, right=True), metrics=["augrc"], repeats=5)
    assert set(sure.figures) == {"draws"}
    for figure in (*none.figures.values(), both, sure.figures["draws"]):
        assert figure.plot().figure_ is not None


def test_the_estimator_of_another_number_alone_has_no_figure_of_means():
    result = study_estimators(USUAL, sizes=[8], repeats=5, estimators=["augrc"])
    assert {"bias", "mse", "mae"} == {key.split("-")[0] for key in result.figures}
