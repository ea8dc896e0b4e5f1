"""The expectation of a metric over a posterior is the mean of the metrics of its draws."""

import dataclasses

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

import abstain as ab
from abstain.confidence import fit
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError, UnknownNameError
from abstain.evaluation import PosteriorExpectation, posterior_expectation

N, DRAWS, CLASSES = 80, 12, 3


@pytest.fixture(scope="module")
def logits():
    rng = np.random.default_rng(1)
    labels = rng.integers(CLASSES, size=N)
    shared = 1.5 * np.eye(CLASSES)[labels][:, None] + rng.normal(size=(N, 1, CLASSES))
    return labels, shared + rng.normal(size=(N, DRAWS, CLASSES))


@pytest.fixture(scope="module")
def drawn(logits):
    return ab.Predictions(logit_samples=logits[1], labels=logits[0])


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
@pytest.mark.parametrize("score", ["msr", "pe", "margin"])
@pytest.mark.parametrize("loss", ["zero_one", "cross_entropy"])
@pytest.mark.parametrize("metric", ["aurc_plugin", "two_sele", "selective_risk@80cov"])
def test_it_is_the_mean_of_evaluating_each_draw(logits, kind, score, loss, metric):
    labels, samples = logits
    samples = samples if kind == "logits" else softmax(samples, axis=2)
    given = {f"{'logit' if kind == 'logits' else 'probability'}_samples": samples}
    predictions = ab.Predictions(labels=labels, **given)
    expectation = posterior_expectation(predictions, score=score, metric=metric, loss=loss)
    each = [
        ab.evaluate(
            ab.Predictions(labels=labels, **{kind: samples[:, s]}),
            scores=[score], metrics=[metric], loss=loss,
        ).value(metric)
        for s in range(DRAWS)
    ]  # fmt: skip
    np.testing.assert_allclose(expectation.values, each, rtol=1e-13)
    assert expectation.mean == pytest.approx(np.mean(each))
    assert expectation.standard_deviation == pytest.approx(np.std(each, ddof=1))
    assert expectation.standard_error == pytest.approx(np.std(each, ddof=1) / np.sqrt(DRAWS))
    mean = ab.evaluate(predictions, scores=[score], metrics=[metric], loss=loss).value(metric)
    assert expectation.mean_predictor_value == pytest.approx(mean, rel=1e-12)
    assert (expectation.score, expectation.metric, expectation.loss) == (score, metric, loss)
    assert (expectation.n, expectation.draws, expectation.lower_is_better) == (N, DRAWS, True)
    assert expectation.reason == ""


def test_by_hand(logits, drawn):
    labels, samples = logits
    expectation = posterior_expectation(drawn)
    p = softmax(samples, axis=2)
    values = [
        ab.aurc(p[:, s].max(axis=1), p[:, s].argmax(axis=1) != labels, estimator="plugin")
        for s in range(DRAWS)
    ]
    np.testing.assert_allclose(expectation.values, values, rtol=1e-12)
    mean = p.mean(axis=1)
    assert expectation.mean_predictor_value == pytest.approx(
        ab.aurc(mean.max(axis=1), mean.argmax(axis=1) != labels, estimator="plugin")
    )
    # Deciding by all draws together is better here than the draws are on average.
    assert expectation.mean_predictor_value < expectation.mean


def test_draws_that_are_alike_have_no_spread(logits):
    labels, samples = logits
    alike = np.repeat(samples[:, :1], 5, axis=1)
    expectation = posterior_expectation(ab.Predictions(logit_samples=alike, labels=labels))
    assert expectation.standard_deviation == pytest.approx(0, abs=1e-15)
    assert expectation.mean == pytest.approx(expectation.mean_predictor_value)


def test_the_standard_error_covers_the_expectation():
    # The draws are i.i.d.: means of 10 of them scatter about the mean of all as they say.
    rng = np.random.default_rng(2)
    labels = rng.integers(2, size=40)
    samples = 2.0 * np.eye(2)[labels][:, None] + 2 * rng.normal(size=(40, 600, 2))
    expectation = posterior_expectation(ab.Predictions(logit_samples=samples, labels=labels))
    parts = [expectation.values[i : i + 10] for i in range(0, 600, 10)]
    z = [(p.mean() - expectation.mean) / (p.std(ddof=1) / np.sqrt(10)) for p in parts]
    assert np.mean(np.abs(z) < 2.26) == pytest.approx(0.95, abs=0.09)


def test_outputs_of_all_draws_are_not_looked_at(logits, drawn):
    labels, samples = logits
    more = ab.Predictions(
        logits=np.zeros((N, CLASSES)), logit_samples=samples, labels=labels,
        prediction=np.zeros(N, int), confidence={"own": np.arange(N)},
    )  # fmt: skip
    assert posterior_expectation(more).row() == posterior_expectation(drawn).row()
    with pytest.raises(UnknownNameError, match="no score named 'own'"):
        posterior_expectation(more, score="own")


def test_weights_and_names_of_classes_belong_to_all_draws(logits):
    labels, samples = logits
    names = np.array(["a", "b", "c"])
    weight = np.arange(N) % 3
    named = ab.Predictions(
        logit_samples=samples, labels=names[labels], classes=["a", "b", "c"], weight=weight
    )
    rows = np.repeat(np.arange(N), weight)
    repeated = ab.Predictions(logit_samples=samples[rows], labels=labels[rows])
    np.testing.assert_allclose(
        posterior_expectation(named).values, posterior_expectation(repeated).values, rtol=1e-12
    )


def test_losses_of_your_own(logits, drawn):
    labels, samples = logits
    log_p = log_softmax(samples, axis=2)
    own = -np.take_along_axis(log_p, labels[:, None, None], axis=2)[:, :, 0]
    by_draw = posterior_expectation(drawn, loss=own)
    named = posterior_expectation(drawn, loss="cross_entropy")
    np.testing.assert_allclose(by_draw.values, named.values, rtol=1e-12)
    assert by_draw.loss == "own"
    assert np.isnan(by_draw.mean_predictor_value)
    assert by_draw.reason == (
        "undefined for the mean predictor: the losses given are those of the draws"
    )
    shared = posterior_expectation(drawn, loss=own[:, 0])
    assert shared.values[0] == pytest.approx(by_draw.values[0])
    assert np.isfinite(shared.mean_predictor_value)
    came_along = ab.Predictions(logit_samples=samples, labels=labels, loss=own[:, 0])
    assert posterior_expectation(came_along).mean == pytest.approx(shared.mean)
    costs = posterior_expectation(drawn, loss=ab.CostMatrix(1 - np.eye(CLASSES)))
    assert (costs.loss, costs.mean) == ("cost_matrix", pytest.approx(shared_zero_one(drawn)))
    with pytest.raises(ShapeError, match=r"`loss` must have shape \(80,\) or, a column a draw"):
        posterior_expectation(drawn, loss=own[:, :3])
    with pytest.raises(DomainError, match="`loss` must not be negative"):
        posterior_expectation(drawn, loss=-own)


def shared_zero_one(drawn):
    return posterior_expectation(drawn).mean


def test_a_fitted_score_scores_each_draw(logits, drawn):
    labels, samples = logits
    fitted = fit(
        "temperature", ab.Predictions(logits=samples[:, 0], labels=labels), criterion=ab.augrc
    )
    expectation = posterior_expectation(drawn, score=fitted)
    own = ab.confidence.score(fitted, ab.Predictions(logits=samples[:, 3], labels=labels))
    wrong = samples[:, 3].argmax(axis=1) != labels
    assert expectation.values[3] == pytest.approx(ab.aurc(own.values, wrong, estimator="plugin"))
    assert expectation.score == own.name


def test_a_score_of_logits_has_no_mean_predictor(logits, drawn):
    labels, samples = logits
    expectation = posterior_expectation(drawn, score="mls")
    wrong = samples[:, 0].argmax(axis=1) != labels
    first = ab.aurc(samples[:, 0].max(axis=1), wrong, estimator="plugin")
    assert expectation.values[0] == pytest.approx(first)
    assert np.isnan(expectation.mean_predictor_value)
    assert expectation.reason.endswith(
        "mean predictor: the score needs more than mean probabilities"
    )


def test_draws_where_the_metric_is_undefined_are_told(logits):
    labels, samples = logits
    right = samples.copy()
    right[:, :4] = 50 * np.eye(CLASSES)[labels][:, None]
    expectation = posterior_expectation(
        ab.Predictions(logit_samples=right, labels=labels), metric="failure_auroc"
    )
    assert np.isnan(expectation.values[:4]).all()
    assert expectation.mean == pytest.approx(expectation.values[4:].mean())
    assert expectation.standard_error == pytest.approx(
        expectation.values[4:].std(ddof=1) / np.sqrt(8)
    )
    assert expectation.reason.startswith("undefined in 4 of 12 draws: ")
    assert np.isfinite(expectation.mean_predictor_value)
    always = ab.Predictions(logit_samples=right[:, :4], labels=labels)
    nowhere = posterior_expectation(always, metric="failure_auroc")
    assert np.isnan([nowhere.mean, nowhere.standard_error, nowhere.mean_predictor_value]).all()
    assert nowhere.reason.startswith("undefined in 4 of 4 draws: there are no failures; undefined")


def test_what_it_returns_is_a_row_and_a_table(drawn):
    expectation = posterior_expectation(drawn)
    row = expectation.row()
    assert list(row) == [
        f.name for f in dataclasses.fields(PosteriorExpectation) if f.name != "values"
    ]
    table = expectation.frame()
    assert table.columns == ["score", "metric", "loss", "draw", "value"]
    assert table.height == DRAWS
    assert table["value"].to_list() == expectation.values.tolist()
    assert "values" not in repr(expectation)
    with pytest.raises(dataclasses.FrozenInstanceError):
        expectation.mean = 0.0
    with pytest.raises(ValueError, match="read-only"):
        expectation.values[0] = 0.0


def test_what_cannot_be_asked(logits, drawn):
    labels, samples = logits
    with pytest.raises(MissingInputError, match="needs Monte-Carlo samples; give `logit_samples`"):
        posterior_expectation(ab.Predictions(logits=samples[:, 0], labels=labels))
    several = next(
        n for n, s in ab.confidence.SCORES.items() if "needs Monte-Carlo samples" in s.needs
    )
    with pytest.raises(
        MissingInputError, match="one of a single draw from the posterior: the score"
    ):
        posterior_expectation(drawn, score=several)
    with pytest.raises(UnknownNameError, match="no metric named 'aurk'"):
        posterior_expectation(drawn, metric="aurk")
    with pytest.raises(InputError, match="'failure_auroc' does not apply: it needs a 0/1 loss"):
        posterior_expectation(drawn, metric="failure_auroc", loss="cross_entropy")
