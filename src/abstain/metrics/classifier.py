"""Accuracy, balanced accuracy, negative log-likelihood and Brier score at full coverage."""

import numpy as np

from abstain._foundation.array_functions import sum_by_index
from abstain._foundation.arrays import as_double, namespace
from abstain._foundation.device import validate_weight_like
from abstain._foundation.scored import ClassView, MetricValue, Scored, undefined
from abstain.metrics.classes import (
    class_view_from_predictions,
    class_view_from_probabilities,
    get_class_view,
    get_probabilities,
    is_true_class,
    log_probability_of_true_class,
    reason_few_of_either_kind,
    select_rows,
    weighted_mean,
)
from abstain.metrics.entry import (
    DisplayOptions,
    Identity,
    Measurement,
    Metric,
    Need,
    ResampledFormula,
    value_with_warning,
)
from abstain.metrics.influences import mean_influence, sample_weights
from abstain.typing import AnyArray, FloatArray, IntArray


def accuracy(prediction: AnyArray, labels: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the accuracy of the classifier at full coverage.

    Answers: which share of the predictions is correct?

    Parameters
    ----------
    prediction : array of shape (n,)
        Predicted class codes 0, 1, ...; -1 if there is no prediction.
    labels : array of shape (n,)
        True class codes; -1 for a sample of an unknown class.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a code is not an integer of at least -1, or a weight is negative.

    Notes
    -----
    Predictions for samples of unknown classes count as wrong. The value is never NaN. The running
    time is linear in the number of samples.

    References
    ----------
    .. [1] Jaeger et al. (2023), https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> from abstain.metrics import accuracy
    >>> accuracy([0, 1, 1, 0], [0, 1, 0, -1])
    0.5
    """
    view = class_view_from_predictions(prediction, labels)
    return compute_accuracy(view, validate_weight_like(weight, view.labels)).value


def balanced_accuracy(
    prediction: AnyArray, labels: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the mean accuracy of the classes.

    Answers: how accurate is the classifier if every class has the same weight?

    Parameters
    ----------
    prediction, labels, weight : array of shape (n,)
        See `accuracy`.

    Returns
    -------
    float
        Value in [0, 1]; **higher is better**. A constant prediction has the value 1/K with K
        classes. The value is NaN, with an `UndefinedMetricWarning`, if no sample has a known class.

    Raises
    ------
    ShapeError, DomainError
        See `accuracy`.

    Notes
    -----
    The mean includes only classes that occur in the labels. Samples of unknown classes are
    excluded. If a class is too rare, so that the variance is based on fewer than 4 failures or 4
    successes, the value has no confidence interval and no p-value. The running time is linear in
    the number of samples.

    References
    ----------
    .. [1] Brodersen et al. (2010), The balanced accuracy and its posterior distribution,
       https://doi.org/10.1109/ICPR.2010.764

    Examples
    --------
    >>> from abstain.metrics import balanced_accuracy
    >>> balanced_accuracy([0, 0, 0, 0], [0, 0, 0, 1])
    0.5
    """
    view = class_view_from_predictions(prediction, labels)
    w = validate_weight_like(weight, view.labels)
    return value_with_warning(compute_balanced_accuracy(view, w), "balanced_accuracy")


def nll(probabilities: AnyArray, labels: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the mean negative log-likelihood of the true classes (log loss).

    Answers: how small are the probabilities of the true classes, in nats?

    Parameters
    ----------
    probabilities : array of shape (n, K)
        Class probabilities.
    labels : array of shape (n,)
        True class codes from 0 to K - 1; -1 for a sample of an unknown class.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value of at least 0, without upper bound; **lower is better**. Uniform probabilities have
        the value ln K. The value is NaN, with an `UndefinedMetricWarning`, if a sample has an
        unknown class or a true class has probability 0.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If probabilities are negative or do not sum to 1, a label is not a class, or a weight is
        negative.

    Notes
    -----
    Probabilities are not clipped. Each row of probabilities is divided by its sum. If probabilities
    underflow, evaluate logits instead. The running time is linear in the number of samples.

    References
    ----------
    .. [1] Good (1952), Rational decisions, https://doi.org/10.1111/j.2517-6161.1952.tb00104.x

    Examples
    --------
    >>> from abstain.metrics import nll
    >>> round(nll([[0.9, 0.1], [0.5, 0.5]], [0, 1]), 4)
    0.3993
    """
    view = class_view_from_probabilities(probabilities, labels)
    w = validate_weight_like(weight, view.labels)
    return value_with_warning(compute_nll(view, w), "nll")


def brier(probabilities: AnyArray, labels: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the Brier score, the mean squared error of the class probabilities.

    Answers: how far are the class probabilities from probability 1 for the true class?

    Parameters
    ----------
    probabilities : array of shape (n, K)
        Class probabilities.
    labels : array of shape (n,)
        True class codes from 0 to K - 1; -1 for a sample of an unknown class.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 2]; **lower is better**. Uniform probabilities have the value 1 - 1/K. The
        value is NaN, with an `UndefinedMetricWarning`, if a sample has an unknown class.

    Raises
    ------
    ShapeError, DomainError
        See `nll`.

    Notes
    -----
    The score sums the squared errors over the classes, as in Brier's definition. Some libraries
    halve the score for two classes, and others divide the score by K. Each row of probabilities is
    divided by its sum. The running time is linear in the number of samples.

    References
    ----------
    .. [1] Brier (1950), Verification of forecasts expressed in terms of probability, eq. 2,
       https://doi.org/10.1175/1520-0493(1950)078%3C0001:VOFEIT%3E2.0.CO;2

    Examples
    --------
    >>> from abstain.metrics import brier
    >>> round(brier([[0.9, 0.1], [0.5, 0.5]], [0, 1]), 4)
    0.26
    """
    view = class_view_from_probabilities(probabilities, labels)
    w = validate_weight_like(weight, view.labels)
    return value_with_warning(compute_brier(view, w), "brier")


def compute_accuracy(view: ClassView, weight: FloatArray | None) -> MetricValue:
    """Compute the share of correct predictions."""
    is_correct = (view.prediction == view.labels) & (view.labels >= 0)
    return MetricValue(weighted_mean(as_double(is_correct), weight))


def compute_balanced_accuracy(view: ClassView, weight: FloatArray | None) -> MetricValue:
    """Compute the mean accuracy of the classes that occur."""
    has_class = view.labels >= 0
    labels = view.labels[has_class]
    is_correct = as_double(view.prediction[has_class] == labels)
    xp = namespace(is_correct)
    w = xp.ones_like(is_correct) if weight is None else weight[has_class]
    if not float(xp.sum(w)) > 0:
        return undefined("no sample has a known class")
    n_classes = int(xp.max(labels)) + 1
    class_weight = sum_by_index(labels, w, n_classes)
    correct_weight = sum_by_index(labels, w * is_correct, n_classes)
    is_present = class_weight > 0
    class_accuracy = correct_weight[is_present] / class_weight[is_present]
    return MetricValue(float(xp.mean(class_accuracy)))


def compute_nll(view: ClassView, weight: FloatArray | None) -> MetricValue:
    """Compute the mean negative log-probability of the true classes."""
    view, weight = _drop_zero_weights(view, weight)
    reason = _reason_unknown_classes(view.labels)
    if reason:
        return undefined(reason)
    log_p = log_probability_of_true_class(view)
    n_infinite = int(namespace(log_p).count_nonzero(log_p == -float("inf")))
    if n_infinite:
        return undefined(f"it is infinite: {n_infinite} true classes have probability 0")
    return MetricValue(weighted_mean(-log_p, weight))


def _drop_zero_weights(
    view: ClassView, weight: FloatArray | None
) -> tuple[ClassView, FloatArray | None]:
    """Return the labels, predictions and weights of the samples with positive weight."""
    if weight is None or bool(namespace(weight).all(weight > 0)):
        return view, weight
    has_weight = weight > 0
    rows = namespace(weight).nonzero(has_weight)[0]
    return select_rows(view, rows), weight[has_weight]


def _reason_unknown_classes(labels: IntArray) -> str:
    """Return a note about the number of samples of unknown classes, or an empty string."""
    n_unknown = int(namespace(labels).count_nonzero(labels < 0))
    return f"{n_unknown} samples have an unknown class" if n_unknown else ""


def compute_brier(view: ClassView, weight: FloatArray | None) -> MetricValue:
    """Compute the mean squared distance of the class probabilities from the true class."""
    view, weight = _drop_zero_weights(view, weight)
    reason = _reason_unknown_classes(view.labels)
    if reason:
        return undefined(reason)
    p = as_double(get_probabilities(view))
    error = p - as_double(is_true_class(view.labels, p))
    squared_distance = namespace(p).sum(error * error, axis=1)
    return MetricValue(weighted_mean(squared_distance, weight))


def _accuracy_of_samples(s: Scored) -> MetricValue:
    """Compute the share of correct predictions, or 1 - mean 0/1 loss if there are no labels."""
    if s.class_view is not None:
        return compute_accuracy(s.class_view, s.weight)
    return MetricValue(weighted_mean(1.0 - as_double(s.loss), s.weight))


def _accuracy_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the accuracy."""
    correctness = 1.0 - s.loss if s.class_view is None else _correctness(s.class_view)
    return mean_influence(s, correctness)


def _correctness(view: ClassView) -> FloatArray:
    """Return 1 for each correct prediction and 0 for each wrong prediction."""
    is_correct = (view.prediction == view.labels) & (view.labels >= 0)
    return np.asarray(is_correct, dtype=np.float64)


def _balanced_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the balanced accuracy."""
    view = get_class_view(s)
    all_weights = sample_weights(s)
    has_class = (view.labels >= 0) & (all_weights > 0)
    weight = all_weights[has_class]
    labels = view.labels[has_class]
    is_correct = _correctness(view)[has_class]
    class_weight = np.bincount(labels, weights=weight)
    correct_weight = np.bincount(labels, weights=weight * is_correct)
    class_accuracy = correct_weight / np.where(class_weight > 0, class_weight, 1.0)
    scale = s.total_weight / np.count_nonzero(class_weight)
    influence = np.zeros(s.n_rows)
    influence[has_class] = (is_correct - class_accuracy[labels]) * scale / class_weight[labels]
    return influence


def _nll_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the negative log-likelihood."""
    rows = np.flatnonzero(sample_weights(s) > 0)
    view = select_rows(get_class_view(s), rows)
    negative_log_likelihood = np.zeros(s.n_rows)
    negative_log_likelihood[rows] = -log_probability_of_true_class(view)
    return mean_influence(s, negative_log_likelihood)


def _brier_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the Brier score."""
    view = get_class_view(s)
    p = get_probabilities(view)
    squared_distance = np.square(p - is_true_class(view.labels, p)).sum(axis=1)
    return mean_influence(s, squared_distance)


def _loss_is_error(s: Scored) -> bool:
    """Return whether the loss is positive for all wrong predictions and 0 for all others."""
    view = s.class_view
    if view is None:
        return True
    return np.array_equal(s.loss != 0, view.prediction != view.labels)


def _accuracy_from_risk(risk: float) -> float:
    return 1 - risk


ACCURACY = Metric(
    Identity(
        name="accuracy",
        title="accuracy",
        family="classifier",
        ignores_confidence=True,
        lower_is_better=False,
        meaning="At full coverage, {value} of the predictions are correct.",
        source="share of correct predictions",
        function="accuracy(prediction, labels)",
    ),
    Measurement(
        compute=_accuracy_of_samples,
        needs=frozenset({Need.CORRECTNESS}),
        gradients=frozenset(),
        influence=_accuracy_influence,
        is_proportion=True,
        extremes=(_accuracy_from_risk, _accuracy_from_risk),
        resampled=ResampledFormula(
            frozenset(), lambda a: 1.0 - a.risk, lambda s: s.is_binary and _loss_is_error(s)
        ),
    ),
    DisplayOptions(narrow_title="Acc.", headline=1),
)

NLL = Metric(
    Identity(
        name="nll",
        title="negative log-likelihood",
        family="classifier",
        ignores_confidence=True,
        lower_is_better=True,
        meaning="The mean negative log-probability of the true classes is {value} nats.",
        source="Good (1952), https://doi.org/10.1111/j.2517-6161.1952.tb00104.x",
        function="nll(probabilities, labels)",
        violated_requirements=("R2", "R4"),
    ),
    Measurement(
        compute=lambda s: compute_nll(get_class_view(s), s.weight),
        high=float("inf"),
        needs=frozenset({Need.PROBABILITIES}),
        gradients=frozenset({"probabilities"}),
        influence=_nll_influence,
        n_failures=None,
    ),
)

ENTRIES = (
    ACCURACY,
    Metric(
        Identity(
            name="balanced_accuracy",
            title="balanced accuracy",
            family="classifier",
            ignores_confidence=True,
            lower_is_better=False,
            meaning="Averaged over the classes, {value} of the samples of a class are correct.",
            source="Brodersen et al. (2010), https://doi.org/10.1109/ICPR.2010.764",
            function="balanced_accuracy(prediction, labels)",
        ),
        Measurement(
            compute=lambda s: compute_balanced_accuracy(get_class_view(s), s.weight),
            needs=frozenset({Need.CLASSES}),
            gradients=frozenset(),
            influence=_balanced_influence,
            unreliable_reason=reason_few_of_either_kind,
        ),
    ),
    NLL,
    Metric(
        Identity(
            name="brier",
            title="Brier score",
            family="classifier",
            ignores_confidence=True,
            lower_is_better=True,
            meaning="The mean squared distance of the class probabilities from the true class is "
            "{value}.",
            source="Brier (1950), eq. 2",
            convention="summed over the classes",
            function="brier(probabilities, labels)",
            violated_requirements=("R2", "R4"),
        ),
        Measurement(
            compute=lambda s: compute_brier(get_class_view(s), s.weight),
            high=2.0,
            needs=frozenset({Need.PROBABILITIES}),
            gradients=frozenset({"probabilities"}),
            influence=_brier_influence,
            n_failures=None,
        ),
    ),
)
