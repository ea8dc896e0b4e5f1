"""Expectation of a metric over a posterior, from Monte Carlo samples of the model."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from abstain._foundation.arrays import read_only, to_numpy
from abstain._foundation.frames import AnyFrame, Backend, convert_frame
from abstain._foundation.scored import MetricValue, undefined
from abstain.confidence import ScoreState
from abstain.confidence import score as scored_by
from abstain.confidence.registry import BASELINE
from abstain.errors import InputError, MissingInputError, ShapeError
from abstain.evaluation.inputs import join, loss_name, positive_weight_rows
from abstain.metrics import Metric, metric_named
from abstain.metrics.catalogue import POPULATION_AREA_METRIC
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, FloatArray

#: Outputs of all draws together, which are removed from the predictions of one draw.
_NO_OUTPUTS: dict[str, Any] = dict.fromkeys(
    ("logits", "probabilities", "logit_samples", "probability_samples", "prediction", "confidence")
)


@dataclass(frozen=True, eq=False)
class PosteriorExpectation:
    """A metric of each draw from a posterior, and its mean.

    Attributes
    ----------
    score, metric, loss : str
        Names of the confidence score, the metric and the loss.
    mean : float
        Mean over the draws, which estimates the expectation over the posterior.
    standard_deviation : float
        Standard deviation over the draws, with divisor draws - 1.
    standard_error : float
        Standard error of the mean for independent draws.
    values : ndarray of shape (draws,)
        The metric of each draw; NaN if it is undefined.
    mean_predictor_value : float
        The metric of the mean predictor, whose class probabilities are averaged over the draws; NaN
        if it is undefined.
    n, draws : int
        Number of samples and of draws.
    lower_is_better : bool
        Direction of the metric.
    reason : str
        Reasons of undefined values, or empty. The mean excludes undefined values.
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
        """Return the summary as a flat row; `frame` has the values of the draws."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "values"}

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return one row for each draw as a tidy dataframe."""
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
    """Estimate the expectation of a metric over a posterior, from Monte Carlo samples.

    Answers: how well does a model from this posterior separate its failures from its successes, on
    average over the draws?

    Parameters
    ----------
    predictions : Predictions
        With `logit_samples` or `probability_samples` of shape (n, S, K): draw s of the model gives
        the class scores of all n samples. Labels, weights, features and groups belong to all draws.
    score : str or fitted score, default="msr"
        What turns the class scores of one draw into confidences: a name of the catalogue, also
        with a temperature, or what `abstain.confidence.fit` returned. Columns of confidences and
        scores of several samples, such as mutual information, are of no single draw.
    metric : str, default="aurc_plugin"
        A name of the catalogue, or one with a number such as ``selective_risk@80cov``.
    loss : str, CostMatrix or array, optional
        A named loss or a cost matrix, computed from the predictions of each draw, or your own
        numbers: of shape (n, S), a column for each draw, or of shape (n,), the same for all. By
        default the loss that came with the predictions, else "zero_one".

    Returns
    -------
    PosteriorExpectation
        In the units, range and direction of the metric.

    Raises
    ------
    MissingInputError
        If there are no Monte-Carlo samples, or the score needs more than one draw has.
    UnknownNameError
        If there is no such score, metric or loss.
    InputError
        If the metric does not apply to the loss or the score.
    ShapeError, DomainError
        If your own loss has another shape or a value that no loss has.

    Notes
    -----
    Read as eq. 37-38: the expectation over the posterior p(theta | data) of the population AURC of
    the model f_theta, with the score *and* the loss of that model. Each draw gives its plug-in
    estimate on the n samples, and the draws are averaged. That is not the metric of the mean
    predictor, which decides by all draws together; `of_mean` has it beside. The standard error is
    that of finitely many independent draws; draws of one chain depend on each other and err more.
    It says nothing of other samples: for that resample each draw, or see `evaluate`. The mean of
    an estimator with a bias keeps the bias. Predicted classes that were given for all draws are
    not looked at: a draw predicts its own. Cost: one evaluation of the score, the loss and the
    metric for each draw.

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
    models = list(_draws(predictions))
    columns = _losses(loss, predictions.n, len(models))
    results = [_evaluate_model(entry, score, p, x) for p, x in zip(models, columns, strict=True)]
    of_mean = _evaluate_mean_predictor(entry, score, predictions, loss)
    values = np.array([float(value.value) for _, value in results])
    defined = values[np.isfinite(values)]
    spread = float(defined.std(ddof=1)) if defined.size > 1 else float("nan")
    return PosteriorExpectation(
        score=results[0][0],
        metric=entry.name,
        loss=loss_name(loss, [predictions]),
        mean=float(defined.mean()) if defined.size else float("nan"),
        standard_deviation=spread,
        standard_error=spread / float(np.sqrt(defined.size)) if defined.size else spread,
        values=read_only(values),
        mean_predictor_value=float(of_mean.value),
        n=predictions.n,
        draws=values.size,
        lower_is_better=entry.lower_is_better,
        reason=_undefined_reasons([value for _, value in results], of_mean),
    )


def _draws(predictions: Predictions) -> Iterator[Predictions]:
    """Yield the predictions of each draw, whose class scores replace all other outputs."""
    samples = predictions.samples
    if samples is None:
        raise MissingInputError(
            "the expectation over a posterior needs Monte-Carlo samples; give `logit_samples` or "
            "`probability_samples` of shape (n, S, K)"
        )
    kind = "logits" if samples.are_logits else "probabilities"
    for draw in range(samples.values.shape[1]):
        yield replace(predictions, **(_NO_OUTPUTS | {kind: samples.values[:, draw]}))


def _losses(loss: object, n: int, draws: int) -> list[Any]:
    """Return the argument `loss` of each draw."""
    if loss is None or isinstance(loss, str | CostMatrix):
        return [loss] * draws
    losses = to_numpy(loss, "loss")
    if losses.shape not in {(n,), (n, draws)}:
        raise ShapeError(
            f"`loss` must have shape ({n},) or, a column a draw, ({n}, {draws}); got {losses.shape}"
        )
    return [losses] * draws if losses.ndim == 1 else list(losses.T)


def _evaluate_model(
    metric: Metric, score: str | ScoreState, predictions: Predictions, loss: Any
) -> tuple[str, MetricValue]:
    """Return the name of the score and the metric of one model."""
    try:
        confidence = scored_by(score, predictions)
    except MissingInputError as error:
        raise MissingInputError(
            f"the score must be one of a single draw from the posterior: {error}"
        ) from error
    s = join(predictions, confidence, per_sample_loss(predictions, loss))
    if missing := metric.reason_not_applicable(s):
        raise InputError(f"the metric {metric.name!r} does not apply: it {missing}")
    return confidence.name, metric.compute(s)


def _evaluate_mean_predictor(
    metric: Metric, score: str | ScoreState, predictions: Predictions, loss: Any
) -> MetricValue:
    """Return the metric of the predictor with the mean class probabilities over the draws."""
    if not (loss is None or isinstance(loss, str | CostMatrix)) and np.ndim(loss) == 2:
        return undefined("the losses given are those of the draws")
    # Predictions with Monte Carlo samples only have the mean of the samples as probabilities.
    samples = {
        name: getattr(predictions, name) for name in ("logit_samples", "probability_samples")
    }
    mean = replace(predictions, **(_NO_OUTPUTS | samples))
    try:
        return _evaluate_model(metric, score, mean, loss)[1]
    except MissingInputError:
        # A score of logits applies to the draws, but not to their mean probabilities.
        return undefined("the score needs more than mean probabilities")


def _undefined_reasons(values: list[MetricValue], of_mean: MetricValue) -> str:
    """Return the reasons of undefined values."""
    texts = []
    reasons = [value.reason for value in values if value.reason]
    if reasons:
        texts.append(f"undefined in {len(reasons)} of {len(values)} draws: {reasons[0]}")
    if of_mean.reason:
        texts.append(f"undefined for the mean predictor: {of_mean.reason}")
    return "; ".join(texts)
