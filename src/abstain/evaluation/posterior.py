"""Estimate the expectation of a metric over a posterior from draws of the model."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from abstain._foundation.arrays import read_only, to_numpy
from abstain._foundation.frames import AnyFrame, Backend, convert_frame
from abstain._foundation.scored import MetricValue, undefined
from abstain.confidence import ConfidenceScore, ScoreState
from abstain.confidence import score as scored_by
from abstain.confidence.registry import BASELINE
from abstain.errors import InputError, MissingInputError, ShapeError
from abstain.evaluation.inputs import join, loss_name, positive_weight_rows
from abstain.metrics import Metric, metric_named
from abstain.metrics.catalogue import POPULATION_AREA_METRIC
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, FloatArray

#: Fields that describe all draws together. The predictions of one draw do not contain them.
_NO_OUTPUTS: dict[str, Any] = dict.fromkeys(
    ("logits", "probabilities", "logit_samples", "probability_samples", "prediction", "confidence")
)


@dataclass(frozen=True, eq=False)
class PosteriorExpectation:
    """The values of a metric for each draw from a posterior, and their mean.

    Attributes
    ----------
    score, metric, loss : str
        Names of the confidence score, the metric and the loss.
    mean : float
        Mean over the draws, which estimates the expectation over the posterior.
    standard_deviation : float
        Sample standard deviation over the draws, with divisor ``draws - 1``.
    standard_error : float
        Standard error of the mean if the draws are independent.
    values : ndarray of shape (draws,)
        The metric of each draw, or NaN if the metric is undefined.
    mean_predictor_value : float
        The metric of the mean predictor, whose class probabilities are averaged over the draws. If
        the metric is undefined, the value is NaN.
    n, draws : int
        Number of samples and of draws.
    lower_is_better : bool
        Whether lower values of the metric are better.
    reason : str
        Reasons for undefined values, or an empty string. The mean excludes undefined values.
    """

    score: str
    metric: str
    loss: str
    mean: float
    standard_deviation: float
    standard_error: float
    values: FloatArray = field(repr=False)
    mean_predictor_value: float
    n: int
    draws: int
    lower_is_better: bool
    reason: str = ""

    def row(self) -> dict[str, Any]:
        """Return the summary as a flat row, without the values of the draws."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "values"}

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return a tidy dataframe with one row for each draw."""
        import polars as pl

        columns = {
            "score": self.score,
            "metric": self.metric,
            "loss": self.loss,
            "draw": np.arange(self.draws),
            "value": self.values,
        }
        return convert_frame(pl.DataFrame(columns), backend)


def posterior_expectation(
    predictions: Predictions,
    *,
    score: str | ScoreState = BASELINE,
    metric: str = POPULATION_AREA_METRIC,
    loss: "str | CostMatrix | AnyArray | None" = None,
) -> PosteriorExpectation:
    """Estimate the expectation of a metric over a posterior distribution of the model.

    Answers: how well does a model from this posterior separate its failures from its successes, on
    average over the draws?

    Parameters
    ----------
    predictions : Predictions
        Predictions with `logit_samples` or `probability_samples` of shape (n, S, K). The entries
        ``[:, s]`` are the class scores of draw s. Labels, weights, features and groups are the
        same for all draws.
    score : str or fitted score, default="msr"
        The confidence score, which is computed from the class scores of each draw. Pass the name
        of a registered score, which may include a temperature, or a fitted score from
        `abstain.confidence.fit`. Confidence columns are not supported. Scores that combine several
        draws, such as mutual information, are also not supported.
    metric : str, default="aurc_plugin"
        Name of a registered metric. The number in a name can be changed, as in
        ``selective_risk@80cov``.
    loss : str, CostMatrix or array, optional
        Loss of a prediction. A named loss or a cost matrix is applied to the predictions of each
        draw. Column s of an array of shape (n, S) contains the losses of draw s. An array of shape
        (n,) contains losses that are the same for all draws. The default is the loss of the
        predictions if they have one, and "zero_one" otherwise.

    Returns
    -------
    PosteriorExpectation
        The metric of each draw with its mean, standard deviation and standard error.

    Raises
    ------
    MissingInputError
        If there are no Monte Carlo samples, or if the score needs inputs that a single draw does
        not have.
    UnknownNameError
        If the score, the metric or the loss does not exist.
    InputError
        If the metric does not apply to the loss or the score.
    ShapeError, DomainError
        If an array of losses has an invalid shape or invalid values.

    Notes
    -----
    The function estimates eq. 37-38 of [1]_, the expectation of the population AURC of the model
    f_theta over the posterior p(theta | data). The confidence score and the loss are computed from
    the model f_theta. The expectation is estimated by the mean of the metric over the draws. The
    mean predictor averages the class probabilities of all draws. The metric of the mean predictor,
    `mean_predictor_value`, differs from the mean of the metric.

    The standard error describes the variation over independent draws, not over samples. Draws from
    one Markov chain are dependent, so the true standard error is larger. If the estimator of the
    metric is biased, the mean has the same bias. Predicted classes in `predictions` are ignored,
    because each draw has its own predicted classes. The cost is one evaluation of the score, the
    loss and the metric for each draw.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 37-38, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import posterior_expectation
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(3, size=200)
    >>> mean = 2 * np.eye(3)[labels][:, None] + rng.normal(size=(200, 1, 3))
    >>> draws = mean + rng.normal(size=(200, 20, 3))
    >>> found = posterior_expectation(ab.Predictions(logit_samples=draws, labels=labels))
    >>> (
    ...     found.draws,
    ...     round(found.mean, 3),
    ...     round(found.standard_error, 4),
    ...     round(found.mean_predictor_value, 3),
    ... )
    (20, 0.102, 0.0049, 0.032)
    """
    entry = metric_named(metric)
    predictions, loss = positive_weight_rows(predictions, loss)
    draws = list(_predictions_of_draws(predictions))
    losses = _losses_of_draws(loss, predictions.n, len(draws))
    score_name = ""
    results = []
    for p, loss_of_draw in zip(draws, losses, strict=True):
        confidence = _score_model(score, p)
        score_name = confidence.name
        results.append(_compute_metric(entry, p, confidence, loss_of_draw))
    result_of_mean = _evaluate_mean_predictor(entry, score, predictions, loss)
    values = np.array([float(result.value) for result in results])
    defined = values[np.isfinite(values)]
    mean = deviation = standard_error = float("nan")
    if defined.size > 0:
        mean = float(defined.mean())
    if defined.size > 1:
        deviation = float(defined.std(ddof=1))
        standard_error = deviation / float(np.sqrt(defined.size))
    return PosteriorExpectation(
        score=score_name,
        metric=entry.name,
        loss=loss_name(loss, [predictions]),
        mean=mean,
        standard_deviation=deviation,
        standard_error=standard_error,
        values=read_only(values),
        mean_predictor_value=float(result_of_mean.value),
        n=predictions.n,
        draws=values.size,
        lower_is_better=entry.lower_is_better,
        reason=_undefined_reasons(results, result_of_mean),
    )


def _predictions_of_draws(predictions: Predictions) -> Iterator[Predictions]:
    """Yield the predictions of each draw, which contain only the class scores of that draw."""
    samples = predictions.samples
    if samples is None:
        raise MissingInputError(
            "the expectation over a posterior needs Monte-Carlo samples; give `logit_samples` or "
            "`probability_samples` of shape (n, S, K)"
        )
    kind = "logits" if samples.are_logits else "probabilities"
    for draw in range(samples.values.shape[1]):
        yield replace(predictions, **(_NO_OUTPUTS | {kind: samples.values[:, draw]}))


def _losses_of_draws(loss: object, n: int, n_draws: int) -> list[Any]:
    """Return the loss argument of each draw."""
    if loss is None or isinstance(loss, str | CostMatrix):
        return [loss] * n_draws
    losses = to_numpy(loss, "loss")
    if losses.shape not in {(n,), (n, n_draws)}:
        raise ShapeError(
            f"`loss` must have shape ({n},) or, a column a draw, ({n}, {n_draws}); "
            f"got {losses.shape}"
        )
    return [losses] * n_draws if losses.ndim == 1 else list(losses.T)


def _score_model(score: str | ScoreState, predictions: Predictions) -> ConfidenceScore:
    """Return the confidence score of one draw; raise an error if it needs several draws."""
    try:
        return scored_by(score, predictions)
    except MissingInputError as error:
        raise MissingInputError(
            f"the score must be one of a single draw from the posterior: {error}"
        ) from error


def _compute_metric(
    metric: Metric, predictions: Predictions, confidence: ConfidenceScore, loss: Any
) -> MetricValue:
    """Return the metric of one draw; raise InputError if it does not apply."""
    s = join(predictions, confidence, per_sample_loss(predictions, loss))
    reason = metric.reason_not_applicable(s)
    if reason:
        raise InputError(f"the metric {metric.name!r} does not apply: it {reason}")
    return metric.compute(s)


def _evaluate_mean_predictor(
    metric: Metric, score: str | ScoreState, predictions: Predictions, loss: Any
) -> MetricValue:
    """Return the metric of the predictor that averages the class probabilities over the draws."""
    is_array = loss is not None and not isinstance(loss, str | CostMatrix)
    if is_array and np.ndim(loss) == 2:
        return undefined("the losses given are those of the draws")
    # If predictions contain only Monte Carlo samples, their probabilities are the mean over draws.
    outputs = {
        **_NO_OUTPUTS,
        "logit_samples": predictions.logit_samples,
        "probability_samples": predictions.probability_samples,
    }
    mean_predictions = replace(predictions, **outputs)
    try:
        confidence = _score_model(score, mean_predictions)
        return _compute_metric(metric, mean_predictions, confidence, loss)
    except MissingInputError:
        # A score that needs logits can be computed for each draw, but not for mean probabilities.
        return undefined("the score needs more than mean probabilities")


def _undefined_reasons(results: list[MetricValue], result_of_mean: MetricValue) -> str:
    """Combine the reasons for undefined values into one text."""
    texts = []
    reasons = [result.reason for result in results if result.reason]
    if reasons:
        texts.append(f"undefined in {len(reasons)} of {len(results)} draws: {reasons[0]}")
    if result_of_mean.reason:
        texts.append(f"undefined for the mean predictor: {result_of_mean.reason}")
    return "; ".join(texts)
