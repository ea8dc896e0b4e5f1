"""The other studies, the catalogue, and what all results have in common."""

from inspect import signature

import numpy as np
import pytest

import abstain as ab
from abstain.errors import InputError, MissingInputError, UnknownNameError
from abstain.evaluation import posterior_expectation
from abstain.metrics import population_weight, weight_bias, weight_mse
from abstain.plots.drawable import Drawable
from abstain_bench.studies import (
    STUDIES,
    StudyResult,
    study_convergence,
    study_population_forms,
    study_posterior,
    study_weights,
)
from abstain_bench.studies._study import require_package
from abstain_bench.studies.convergence import RATES, fit
from abstain_bench.studies.posterior import simulated


@pytest.fixture(scope="module")
def weights():
    return study_weights(sizes=[8, 64], points=19)


def test_the_catalogue():
    assert list(STUDIES)[:5] == [
        "estimators", "weights", "convergence", "population-forms", "posterior",
    ]  # fmt: skip
    with pytest.raises(UnknownNameError, match=r"Did you mean 'weights'.*abstain list studies"):
        STUDIES["weight"]


def test_a_study_that_needs_a_package_asks_for_it():
    with pytest.raises(MissingInputError, match=r"pip install no_such_package"):
        require_package("no_such_package")
    require_package("numpy")


def test_an_entry_runs_its_study(weights):
    result = STUDIES["weights"].run(sizes=[2], points=3)
    assert isinstance(result, StudyResult)
    entry = STUDIES["weights"]
    assert (weights.name, weights.captions, weights.glossary) == (
        entry.name, entry.captions, entry.glossary,
    )  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
def test_every_parameter_of_a_study_is_an_option_with_a_description(name):
    entry = STUDIES[name]
    parameters = signature(entry.run).parameters
    assert all(option.help for option in entry.options)
    # What every option means is in the docstring; what is not an option the command provides.
    provided = set(parameters) - {option.name for option in entry.options}
    assert provided == ({"data"} if entry.reads_files else set()) | (
        {"out", "on_outcome"} if entry.job_folders else set()
    )
    if entry.job_folders:
        assert {"out", "on_outcome"} <= set(parameters)


def test_weights_are_those_of_the_metrics(weights):
    u = np.arange(1, 20) / 20
    for n in (8, 64):
        for name in ("plugin", "log", "sele", "2sele"):
            mine = weights.frame().filter(n=n, estimator=name)
            np.testing.assert_array_equal(mine["rank"], u)
            np.testing.assert_array_equal(mine["weight"], population_weight(u))
            np.testing.assert_array_equal(mine["bias"], weight_bias(u, n, name))
            np.testing.assert_array_equal(mine["mse"], weight_mse(u, n, name))
    half = weights.frame("summary").filter(n=8, estimator="plugin").row(0, named=True)
    assert half["bias_at_half"] == weight_bias(0.5, 8)
    assert half["mean_weight"] == pytest.approx(1.0)


def test_a_result_answers_for_itself(weights):
    assert weights.displayed_tables == ("summary", "mean-error")
    assert weights.frame().height == 2 * 4 * 19
    assert all(isinstance(figure, Drawable) for figure in weights.figures.values())
    assert weights.seconds > 0
    with pytest.raises(UnknownNameError, match=r"has no table 'summry'\. Did you mean 'summary'"):
        weights.frame("summry")
    alone = StudyResult("a", "b", "c", {}, {"results": [{"x": 1}]})
    assert alone.displayed_tables == ("results",)


@pytest.mark.parametrize(("rate", "slope"), [("1/sqrt(n)", -0.5), ("sqrt(ln n / n)", -0.42)])
def test_a_rate_is_found_again(rate, slope):
    n = 2.0 ** np.arange(5, 18, 2)
    rng = np.random.default_rng(0)
    noise = np.full(n.size, 0.01)
    result = [
        fit(n, 0.7 * RATES[rate](n) * np.exp(rng.normal(0, 0.01, n.size)), noise)
        for _ in range(300)
    ]
    assert result[0].slope == pytest.approx(slope, abs=0.01)
    assert result[0].rates[rate].constant == pytest.approx(0.7, rel=0.03)
    assert all(
        f.rates[rate].misfit < min(to.misfit for name, to in f.rates.items() if name != rate)
        for f in result
    )
    # The 95 % interval of a line holds the slope of a rate that is one.
    if rate == "1/sqrt(n)":
        assert 0.9 < np.mean([f.low <= -0.5 <= f.high for f in result]) <= 1


def test_no_error_has_no_rate():
    n = np.array([8.0, 16.0, 32.0])
    assert np.isnan(fit(n, np.array([0.1, 0.0, 0.0]), np.ones(3)).slope)


def test_convergence_of_consistent_estimators_only():
    result = study_convergence(populations=["uniform-scores"], sizes=[64, 512, 4096], repeats=150)
    slopes = dict(result.frame("rates").select("estimator", "slope").rows())
    for name in ("plugin", "log", "trapezoid", "augrc"):
        assert -0.6 < slopes[name] < -0.4
    assert slopes["2sele"] > -0.25
    assert set(result.frame("fits")["rate"]) == set(RATES)
    assert any("converge to AUGRC" in sentence for sentence in result.verdict)
    with pytest.raises(InputError, match="at least 3 different `sizes`"):
        study_convergence(sizes=[64, 128])


def test_rows_of_a_file_are_drawn_independently():
    rng = np.random.default_rng(0)
    p = ab.Predictions(confidence=rng.random(40), loss=rng.random(40) < 0.3)
    result = study_convergence({"small": p}, sizes=[16, 64, 256], repeats=20)
    assert result.frame()["n"].max() > p.n
    assert list(result.frame("rates").columns)[:2] == ["data", "estimator"]


def test_both_forms_without_ties_and_with():
    rng = np.random.default_rng(0)
    free = rng.random(500)
    tied = np.floor(5 * free) / 5
    loss = rng.random(500) < 0.6 * (1 - free)
    parts = {
        name: ab.Predictions(confidence=c, loss=loss)
        for name, c in (("free", free), ("tied", tied))
    }
    result = study_population_forms(parts)
    rows = {row["data"]: row for row in result.rows()}
    assert rows["free"]["AURC_p"] == pytest.approx(ab.aurc(free, loss, estimator="plugin"))
    assert rows["free"]["AURC_a"] == ab.aurc(free, loss, estimator="log")
    assert rows["tied"]["tied_share"] == pytest.approx(0.99)
    # The definition: the mean over samples of the selective risk at their own threshold.
    risk = [loss[tied >= c].mean() for c in tied]
    assert rows["tied"]["AURC_p"] == pytest.approx(np.mean(risk))
    assert abs(rows["free"]["relative_difference"]) < 0.02
    assert abs(rows["tied"]["relative_difference"]) > 0.02
    assert {row["ties"] for row in result.rows("differences")} == {"no ties", "with ties"}
    assert "unpaired t-test" in result.notes[0]
    assert set(result.figures) == {"agreement", "difference"}


def test_forms_of_data_without_loss():
    p = ab.Predictions(confidence=[0.1, 0.2, 0.3], loss=[0.0, 0.0, 0.0])
    result = study_population_forms(p)
    assert result.figures == {}
    assert np.isnan(result.rows()[0]["relative_difference"])


def test_the_expectation_over_a_posterior():
    p = simulated(150, 12, rng=3)
    result = study_posterior({"draws": p}, metrics=["augrc"], repeats=60)
    whole = posterior_expectation(p, metric="augrc")
    row = result.rows("expectations")[0]
    assert (row["expectation"], row["expectation_se"]) == (whole.mean, whole.standard_error)
    assert row["mean_predictor"] == whole.mean_predictor_value
    rows = {row["draws"]: row for row in result.rows()}
    assert list(rows) == [1, 2, 4, 8, 12]
    assert rows[12]["sd"] < 1e-12
    assert rows[12]["mean"] == pytest.approx(whole.mean)
    assert rows[12]["mean_predictor"] == pytest.approx(whole.mean_predictor_value)
    # Without replacement: sd^2 / k (1 - k / draws).
    expected = whole.standard_deviation * np.sqrt(1 / 4 - 1 / 12)
    assert rows[4]["sd"] == pytest.approx(expected, rel=0.35)


def test_a_posterior_needs_draws():
    with pytest.raises(MissingInputError, match="Monte-Carlo samples"):
        study_posterior(ab.Predictions(logits=[[1.0, 0.0]], labels=[0]))
    with pytest.raises(InputError, match="needs at least 4"):
        study_posterior(simulated(20, 3), metrics=["augrc"])


def test_the_simulated_posterior_turns_the_logits():
    p = simulated(30, 4, rng=0)
    assert p.logit_samples.shape == (30, 4, 5)
    # Each draw is one linear map of the same logits, so all draws span five dimensions.
    assert np.linalg.matrix_rank(p.logit_samples.reshape(30, -1)) == 5
    assert not np.allclose(p.logit_samples[:, 0], p.logit_samples[:, 1])
    again = simulated(30, 4, rng=0)
    np.testing.assert_array_equal(p.logit_samples, again.logit_samples)
