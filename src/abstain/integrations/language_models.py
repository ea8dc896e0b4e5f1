"""Metrics in the shapes that tools for evaluating language models expect: Inspect, the harness.

Both judge after the fact as well: `abstain evaluate` reads their logs.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from abstain.errors import MissingInputError
from abstain.integrations._inspect_scores import noting
from abstain.integrations.trackers import metric_values, tracker_name
from abstain.metrics import metric_named
from abstain.predictions import Predictions
from abstain.tables.logs.answers import CONFIDENCE
from abstain.tables.logs.inspect_reasons import is_refusal, is_ungraded, reason_of
from abstain.tables.logs.log_probabilities import choice_confidences


def choice_confidence(log_likelihoods: Sequence[float]) -> float:
    """Return the probability of the likeliest of the answers to choose from.

    Answers: how sure is a model of its answer to a question of multiple choice?

    Parameters
    ----------
    log_likelihoods : sequence of float
        Of each answer, at least two.

    Returns
    -------
    float
        In (0, 1]: the softmax at the largest.

    Raises
    ------
    MissingInputError
        There are fewer than two answers, or none is possible.

    Examples
    --------
    >>> from abstain.integrations.language_models import choice_confidence
    >>> round(choice_confidence([-3.0, -1.0, -3.0]), 4)
    0.787
    """
    confidences = choice_confidences(log_likelihoods)
    if not confidences:
        raise MissingInputError(
            f"two answers or more are needed, one of them possible; got {list(log_likelihoods)}"
        )
    return confidences["choice_probability"]


def harness_aggregation(metric: str) -> Callable[[Iterable[Any]], float]:
    """Make an aggregation of lm-evaluation-harness.

    Answers: how does a metric of confidences come into the results of a task?

    Parameters
    ----------
    metric : str
        As in `abstain.evaluate`; one that needs no more than a confidence and a grade.

    Returns
    -------
    callable
        From what `process_results` returned for each document under the metric's name, pairs
        (confidence, grade), to the metric. A confidence of None is that of a refusal, which is
        among the first to be rejected.

    Raises
    ------
    UnknownNameError
        There is no such metric.

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
        return _compute_metric(name, [c for c, _ in pairs], [float(grade) for _, grade in pairs])

    aggregate.__name__ = name
    return aggregate


def inspect_metric(metric: str, *, confidence: str = CONFIDENCE) -> Any:
    """Make a metric of Inspect.

    Answers: how does a metric of confidences come among the metrics of a scorer?

    Parameters
    ----------
    metric : str
        As in `abstain.evaluate`; one that needs no more than a confidence and a grade.
    confidence : str, default="confidence"
        The field of a score's metadata with the confidence, as `inspect_scorer` writes it.

    Returns
    -------
    inspect_ai.scorer.Metric
        For the `metrics` of a scorer, "@" and points spelled out in its name
        ("selective_risk_at_80cov"). NOANSWER and the reasons "refusal" and "no_response" count as
        refusals, which are among the first to be rejected; unscored samples and those whose grader
        or scorer failed are left out. Grades are those of Inspect's `value_to_float`.

    Raises
    ------
    UnknownNameError
        There is no such metric.

    Examples
    --------
    >>> from abstain.integrations.language_models import inspect_metric
    >>> @scorer(metrics=[accuracy(), inspect_metric("augrc")])  # doctest: +SKIP
    ... def judged(): ...
    """
    from inspect_ai.scorer import metric as registered
    from inspect_ai.scorer import value_to_float

    name, grade = metric_named(metric).name, value_to_float()

    # Inspect notes the option in the log, and makes the metric anew from that.
    def make(confidence: str = CONFIDENCE) -> Callable[[Sequence[Any]], float]:
        def compute(scores: Sequence[Any]) -> float:
            graded = [s.score for s in scores if not _is_unscored(s.score)]
            stated = [_confidence_of(s, confidence) for s in graded]
            return _compute_metric(name, stated, [_grade_of(s, grade) for s in graded])

        return compute

    return registered(name=tracker_name(name))(make)(confidence=confidence)


def inspect_scorer(
    inner: Any, metrics: Sequence[Any], *, confidence: str = "mean_logprob", name: str
) -> Any:
    """Make a scorer of Inspect that grades as another does and notes the model's confidence.

    Answers: how do the log-probabilities of an answer come to its score?

    Parameters
    ----------
    inner : inspect_ai.scorer.Scorer
        Grades, such as ``match()``.
    metrics : sequence of inspect_ai.scorer.Metric
        Such as ``[accuracy(), inspect_metric("augrc")]``.
    confidence : {"mean_logprob", "sum_logprob", "least_logprob"}, default="mean_logprob"
        Of the tokens of the answer; the run needs ``logprobs=True``.
    name : str
        Of the scorer in the log.

    Returns
    -------
    inspect_ai.scorer.Scorer
        Its scores are those of `inner`, with the confidence in their metadata.

    Examples
    --------
    >>> from abstain.integrations.language_models import inspect_metric, inspect_scorer
    >>> metrics = [accuracy(), inspect_metric("augrc")]  # doctest: +SKIP
    >>> Task(dataset, scorer=inspect_scorer(match(), metrics, name="sure"))  # doctest: +SKIP
    """
    from inspect_ai.scorer import scorer as registered

    def make() -> Any:
        return noting(inner, confidence)

    return registered(metrics=list(metrics), name=name)(make)()


def _is_refusal(score: Any) -> bool:
    return is_refusal(score.value, _reason(score))


def _is_unscored(score: Any) -> bool:
    """Return whether a score has no grade; a refusal without one has the grade 0."""
    return is_ungraded(_reason(score)) or (_is_nan(score.value) and not _is_refusal(score))


def _reason(score: Any) -> str | None:
    # Versions before 0.3.245 have no attribute for it.
    return reason_of(getattr(score, "reason", None), score.metadata)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _grade_of(score: Any, grade: Callable[[Any], float]) -> float:
    return 0.0 if _is_nan(score.value) else float(grade(score.value))


def _confidence_of(score: Any, name: str) -> float | None:
    """Return the confidence of a score of Inspect; None for a refusal."""
    if _is_refusal(score):
        return None
    metadata: Mapping[str, Any] = score.metadata or {}
    if name not in metadata:
        raise MissingInputError(
            f"a score has no {name!r} in its metadata, and a metric of confidences needs it; have "
            "the scorer state it, or wrap it in `inspect_scorer` and run with logprobs=True"
        )
    return float(metadata[name])


def _compute_metric(metric: str, confidence: Sequence[float | None], grades: Sequence[float]) -> float:
    """Return a metric of graded answers; refusals have the lowest confidence of all."""
    if not grades:
        return math.nan
    lowest = min((c for c in confidence if c is not None), default=0.0)
    filled_confidence = [lowest if c is None else float(c) for c in confidence]
    predictions = Predictions(confidence={CONFIDENCE: filled_confidence}, loss=[1 - g for g in grades])
    return next(iter(metric_values(predictions, [metric]).values()))
