"""Metrics for Inspect and lm-evaluation-harness, which evaluate language models.

Alternatively, the command `abstain evaluate` reads the logs of both programs.
"""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from abstain.errors import MissingInputError
from abstain.integrations.trackers import metric_values, tracker_name
from abstain.metrics import metric_named
from abstain.predictions import Predictions
from abstain.tables.logs.answers import (
    CONFIDENCE,
    choice_confidences,
    is_refusal,
    is_ungraded,
    reason_of,
    token_confidences,
)


def choice_confidence(log_likelihoods: Sequence[float]) -> float:
    """Compute the probability of the best choice of a multiple-choice question.

    The probability is normalized over all choices.

    Parameters
    ----------
    log_likelihoods : sequence of float
        Log-likelihood of each choice. At least two choices are required.

    Returns
    -------
    float
        Maximum of the softmax of the log-likelihoods, in (0, 1].

    Raises
    ------
    MissingInputError
        If there are fewer than two choices, or if all choices have probability 0.

    Examples
    --------
    >>> from abstain.integrations.language_models import choice_confidence
    >>> round(choice_confidence([-3.0, -1.0, -3.0]), 4)
    0.787
    """
    confidences = choice_confidences(log_likelihoods)
    if not confidences:
        raise MissingInputError(
            "`log_likelihoods` must have at least two entries, one of them finite; got "
            f"{list(log_likelihoods)}"
        )
    return confidences["choice_probability"]


def harness_aggregation(metric: str) -> Callable[[Iterable[Any]], float]:
    """Return an aggregation function for lm-evaluation-harness that computes a metric.

    Parameters
    ----------
    metric : str
        Name of a metric in `abstain.evaluate` that requires only a confidence and a grade.

    Returns
    -------
    callable
        Function of a list with a pair (confidence, grade) for each document. `process_results` of
        the task returns these pairs under the name of the metric. If the model refused to answer,
        the confidence must be None. It is replaced by the lowest confidence.

    Raises
    ------
    UnknownNameError
        If no metric has this name.

    Examples
    --------
    >>> from abstain.integrations.language_models import harness_aggregation
    >>> augrc = harness_aggregation("augrc")
    >>> augrc([(0.9, 1), (0.8, 1), (0.7, 0), (None, 0)])
    0.125
    """
    name = metric_named(metric).name

    def aggregate(items: Iterable[Any]) -> float:
        pairs = list(items)
        confidences = [confidence for confidence, _ in pairs]
        grades = [float(grade) for _, grade in pairs]
        return _compute_metric(name, confidences, grades)

    aggregate.__name__ = name
    return aggregate


def inspect_metric(metric: str, *, confidence: str = CONFIDENCE) -> Any:
    """Return a metric of confidences for Inspect.

    Parameters
    ----------
    metric : str
        Name of a metric in `abstain.evaluate` that requires only a confidence and a grade.
    confidence : str, default="confidence"
        Field in the metadata of a score that contains the confidence, which `inspect_scorer`
        writes.

    Returns
    -------
    inspect_ai.scorer.Metric
        A metric for the `metrics` of a scorer. Its name contains no "@" and no points, as in
        "selective_risk_at_80cov". If the value is NOANSWER, or the reason is "refusal" or
        "no_response", the answer counts as a refusal and gets the lowest confidence. Samples
        without a grade are ignored. Grades are computed with the function `value_to_float` of
        Inspect.

    Raises
    ------
    UnknownNameError
        If no metric has this name.

    Examples
    --------
    >>> from abstain.integrations.language_models import inspect_metric
    >>> @scorer(metrics=[accuracy(), inspect_metric("augrc")])  # doctest: +SKIP
    ... def judged(): ...
    """
    from inspect_ai.scorer import metric as registered
    from inspect_ai.scorer import value_to_float

    name = metric_named(metric).name
    to_grade = value_to_float()

    # Inspect writes the option to the log, and creates the metric from the log again.
    def make(confidence: str = CONFIDENCE) -> Callable[[Sequence[Any]], float]:
        def compute(scores: Sequence[Any]) -> float:
            graded_scores = [s.score for s in scores if not _is_unscored(s.score)]
            confidences = [_confidence_of(score, confidence) for score in graded_scores]
            grades = [_grade_of(score, to_grade) for score in graded_scores]
            return _compute_metric(name, confidences, grades)

        return compute

    return registered(name=tracker_name(name))(make)(confidence=confidence)


def inspect_scorer(
    inner: Any, metrics: Sequence[Any], *, confidence: str = "mean_logprob", name: str
) -> Any:
    """Return a scorer for Inspect that adds the confidence of the model to each score.

    The confidence is computed from the log-probabilities of the tokens of an answer.

    Parameters
    ----------
    inner : inspect_ai.scorer.Scorer
        Scorer that grades the answers, such as ``match()``.
    metrics : sequence of inspect_ai.scorer.Metric
        Metrics, such as ``[accuracy(), inspect_metric("augrc")]``.
    confidence : {"mean_logprob", "sum_logprob", "least_logprob"}, default="mean_logprob"
        Mean, sum or minimum of the log-probabilities of the tokens. The evaluation must be run with
        ``logprobs=True``.
    name : str
        Name of the scorer in the log.

    Returns
    -------
    inspect_ai.scorer.Scorer
        A scorer that returns the scores of `inner`, with the confidence in the metadata of each
        score.

    Examples
    --------
    >>> from abstain.integrations.language_models import inspect_metric, inspect_scorer
    >>> metrics = [accuracy(), inspect_metric("augrc")]  # doctest: +SKIP
    >>> Task(dataset, scorer=inspect_scorer(match(), metrics, name="sure"))  # doctest: +SKIP
    """
    from inspect_ai.scorer import scorer as registered

    def make() -> Any:
        return with_confidence(inner, confidence)

    return registered(metrics=list(metrics), name=name)(make)()


def with_confidence(inner: Any, confidence: str) -> Callable[[Any, Any], Awaitable[Any]]:
    """Return a scorer that adds a confidence, computed from token probabilities, to each score."""

    async def score(state: Any, target: Any) -> Any:
        result = await inner(state, target)
        confidences = token_confidences(_token_log_probabilities(state.output))
        if confidences:
            metadata = result.metadata or {}
            result.metadata = {**metadata, CONFIDENCE: confidences[confidence]}
        return result

    return score


def _token_log_probabilities(output: Any) -> list[float]:
    """Return the log-probability of each token of the first choice, or an empty list."""
    if not output.choices or not output.choices[0].logprobs:
        return []
    return [token.logprob for token in output.choices[0].logprobs.content]


def _is_refusal(score: Any) -> bool:
    return is_refusal(score.value, _reason(score))


def _is_unscored(score: Any) -> bool:
    """Return whether a score has no grade. Refusals always have a grade, which is 0 by default."""
    if is_ungraded(_reason(score)):
        return True
    return _is_nan(score.value) and not _is_refusal(score)


def _reason(score: Any) -> str | None:
    # Versions of Inspect before 0.3.245 do not have this attribute.
    return reason_of(getattr(score, "reason", None), score.metadata)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _grade_of(score: Any, grade: Callable[[Any], float]) -> float:
    return 0.0 if _is_nan(score.value) else float(grade(score.value))


def _confidence_of(score: Any, name: str) -> float | None:
    """Return the confidence in the metadata of a score, or None for a refusal."""
    if _is_refusal(score):
        return None
    metadata: Mapping[str, Any] = score.metadata or {}
    if name not in metadata:
        raise MissingInputError(
            f"the metadata of a score have no {name!r}, which a metric of confidences requires; "
            "let the scorer write it, or wrap the scorer in `inspect_scorer` and run with "
            "logprobs=True"
        )
    return float(metadata[name])


def _compute_metric(
    metric: str, confidence: Sequence[float | None], grades: Sequence[float]
) -> float:
    """Compute a metric of graded answers. Refusals get the lowest confidence."""
    if not grades:
        return math.nan
    lowest = min((c for c in confidence if c is not None), default=0.0)
    filled_confidence = [lowest if c is None else float(c) for c in confidence]
    predictions = Predictions(
        confidence={CONFIDENCE: filled_confidence}, loss=[1 - g for g in grades]
    )
    return next(iter(metric_values(predictions, [metric]).values()))
