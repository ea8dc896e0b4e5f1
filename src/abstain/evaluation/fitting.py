"""`fit_score`: confidence scores fitted by any metric of the catalogue."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from abstain._foundation import checks
from abstain.calibration.temperature import temperature_of
from abstain.confidence import ConfidenceScore, FittedScore, fit
from abstain.confidence.fitting import kind_named
from abstain.errors import DomainError, InputError, MissingInputError
from abstain.evaluation.inputs import DEFAULT_METRIC, join
from abstain.metrics import Metric, metric_named
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, Array, FloatArray

#: Metrics outside the family "classifier" that do not look at the confidence either.
_BLIND = frozenset({"augrc_classifier", "classwise_ece"})


@dataclass(frozen=True, eq=False)
class MetricCriterion:
    """A metric of the catalogue as what a search makes small.

    Attributes
    ----------
    metric : Metric
        Which; one that is better when higher is negated.
    predictions : Predictions
        The samples, with the weights and class probabilities that the metric may look at.
    loss : ndarray of shape (n,)
        Their loss.
    """

    metric: Metric
    predictions: Predictions
    loss: Array

    def __call__(self, confidence: FloatArray, loss: Array) -> float:
        """Return the criterion of bare confidences; those in [0, 1] are probabilities."""
        inside = bool(confidence.min() >= 0 and confidence.max() <= 1)
        own = ConfidenceScore("", confidence, confidence if inside else None)
        return MetricCriterion(self.metric, self.predictions, loss).of_score(own)

    def of_score(self, own: ConfidenceScore) -> float:
        """Return the criterion of a score, lower is better; NaN where it is undefined."""
        value = self.value(own)
        return value if self.metric.lower_is_better else -value

    def value(self, own: ConfidenceScore) -> float:
        """Return the metric of a score; NaN where it is undefined."""
        s = join(self.predictions, own, self.loss)
        if missing := self.metric.missing(s):
            msg = f"the metric {self.metric.name!r} does not apply to {own.name!r}: it {missing}"
            raise InputError(msg)
        return float(self.metric.compute(s).value)


def fit_score(
    name: str,
    predictions: Predictions,
    *,
    metric: str | None = None,
    by: str = "metric",
    loss: "str | CostMatrix | AnyArray | None" = None,
    **options: Any,
) -> FittedScore:
    """Fit a confidence score, with its parameters chosen by a metric of the catalogue.

    Answers: what must this score know of these samples, and which of its parameters makes the
    metric best on them?

    Parameters
    ----------
    name : str
        A name in `abstain.confidence.FITTED`.
    predictions : Predictions
        What to fit on; for scores that search ("pnorm", "temperature") held-out samples.
    metric : str, optional
        What a search makes best, by its name in the catalogue; "augrc" by default. Only for
        scores that search.
    by : {"metric", "nll"}, default="metric"
        "nll" fits "temperature" to the labels by maximum likelihood instead.
    loss : str, CostMatrix or array of shape (n,), optional
        What counts as wrong in a search, as in `abstain.evaluate`.
    **options : optional
        Of the score, as for `abstain.confidence.fit`.

    Returns
    -------
    FittedScore
        Frozen; goes wherever the name of a score does.

    Raises
    ------
    UnknownNameError
        No such score or metric.
    InputError
        As for `abstain.confidence.fit`; a metric, a loss or `by` that the score has no use for;
        a metric that does not apply, or that does not look at the confidence.

    Notes
    -----
    A number that was chosen on some samples is too good on these: evaluate on others. Cost: one
    evaluation of the metric for each candidate; the likelihood takes some 20 passes.

    Examples
    --------
    >>> import abstain as ab
    >>> held_out = ab.Predictions(logits=[[4.0, 0.0]] * 4, labels=[0, 0, 0, 1])
    >>> state = ab.fit_score("temperature", held_out, by="nll")
    >>> state.score(held_out).probability.round(4).tolist()
    [0.75, 0.75, 0.75, 0.75]
    """
    checks.one_of(by, "by", ("metric", "nll"))
    if by == "nll":
        return _by_likelihood(name, predictions, metric, loss, options)
    if not searches(name, options):
        if metric is not None or loss is not None:
            msg = f"the score {name!r} searches nothing here; drop `metric` and `loss`"
            raise InputError(msg)
        return fit(name, predictions, **options)
    chosen = telling(DEFAULT_METRIC if metric is None else metric)
    criterion = MetricCriterion(chosen, predictions, per_sample_loss(predictions, loss))
    return fit(name, predictions, criterion=criterion, **options)


def telling(name: str) -> Metric:
    """Return a metric that tells scores apart; refuse one that knows only the classifier."""
    metric = metric_named(name)
    if metric.family == "classifier" or metric.name in _BLIND:
        msg = (
            f"the metric {name!r} is the same for every confidence score, so nothing can be chosen "
            "by it; use 'augrc', or fit a temperature with `by='nll'`"
        )
        raise InputError(msg)
    return metric


def searches(name: str, options: Mapping[str, Any]) -> bool:
    """Tell whether a score with these options searches, by a criterion."""
    return kind_named(name).searches and options.get("temperature") is None


def _by_likelihood(
    name: str, predictions: Predictions, metric: str | None, loss: object, options: dict[str, Any]
) -> FittedScore:
    if name != "temperature":
        msg = f"`by='nll'` fits the score 'temperature'; got {name!r}"
        raise InputError(msg)
    used = {
        "metric": metric,
        "loss": loss,
        **{k: options.get(k) for k in ("temperatures", "temperature")},
    }
    for argument, value in used.items():
        if value is not None:
            msg = f"`by='nll'` looks at the labels alone; drop `{argument}`"
            raise InputError(msg)
    scores, codes = predictions.class_scores, predictions.label_codes
    if scores is None:
        msg = "`by='nll'` needs class scores; give `logits` or `probabilities`"
        raise MissingInputError(msg)
    if (codes < 0).any():
        msg = (
            f"`by='nll'` needs samples of known classes; {int((codes < 0).sum())} are of none: "
            "leave them out with `subset`"
        )
        raise DomainError(msg)
    found = temperature_of(scores, codes, predictions.weight)
    return fit(name, predictions, **{**options, "temperature": found.temperature})
