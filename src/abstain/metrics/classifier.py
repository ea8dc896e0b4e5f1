"""The classifier by itself, with no rejection: accuracy, balanced accuracy, NLL and Brier score."""

import numpy as np

from abstain._foundation.array_functions import sum_by_index
from abstain._foundation.arrays import namespace
from abstain._foundation.device import validate_weight_like
from abstain._foundation.gradients import as_double
from abstain._foundation.measurement import MetricValue, undefined
from abstain._foundation.scored import ClassView, Scored
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
    """Compute the accuracy of the classifier when it answers everything.

    Answers: which share of the predictions is right?

    Parameters
    ----------
    prediction : array of shape (n,)
        Predicted class codes 0, 1, ...; -1 for no prediction.
    labels : array of shape (n,)
        True class codes; -1 for a sample of no known class.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1]; **higher is better**.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a code is no integer or below -1, or a weight is negative.

    Notes
    -----
    A sample of no known class is never right, whatever was predicted. No ties, never NaN. Cost:
    one pass.

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
    """Compute the accuracy of each class, averaged over the classes.

    Answers: how accurate is the classifier when every class matters as much as any other?

    Parameters
    ----------
    prediction, labels, weight : array of shape (n,)
        As in `accuracy`.

    Returns
    -------
    float
        In [0, 1]; **higher is better**; 1/K for guessing one of K classes. NaN, with an
        `UndefinedMetricWarning`, when no sample has a known class.

    Raises
    ------
    ShapeError, DomainError
        As in `accuracy`.

    Notes
    -----
    Averages over the classes that occur in the labels. Samples of no known class belong to none
    of them and do not count. There is no interval and no p-value if a class is too rare: if the
    variance rests on fewer than 4 failures or 4 successes. Cost: one pass.

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

    Answers: how surprised are the class probabilities by the truth, in nats?

    Parameters
    ----------
    probabilities : array of shape (n, K)
        Class probabilities.
    labels : array of shape (n,)
        True class codes from 0 to K - 1; -1 for a sample of no known class.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        At least 0, no upper bound; **lower is better**; ln K for uniform probabilities. NaN, with
        an `UndefinedMetricWarning`, when a sample has no known class, or when a true class has
        probability 0, which makes the value infinite.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If probabilities are negative or do not sum to 1, a label is no class, or a weight is
        negative.

    Notes
    -----
    Probabilities are not clipped; rows are divided by their sums, which removes the rounding of
    their storage. Where probabilities underflow, logits do not: evaluate those. Cost: one pass.

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
    return value_with_warning(compute_nll(view, validate_weight_like(weight, view.labels)), "nll")


def brier(probabilities: AnyArray, labels: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the Brier score: the squared distance of the probabilities from the truth.

    Answers: how far are the class probabilities from naming the true class for certain?

    Parameters
    ----------
    probabilities : array of shape (n, K)
        Class probabilities.
    labels : array of shape (n,)
        True class codes from 0 to K - 1; -1 for a sample of no known class.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 2]; **lower is better**; 1 - 1/K for uniform probabilities. NaN, with an
        `UndefinedMetricWarning`, when a sample has no known class.

    Raises
    ------
    ShapeError, DomainError
        As in `nll`.

    Notes
    -----
    Summed over the classes, as Brier defined it; some libraries halve it for two classes, others
    divide by K. Rows are divided by their sums. Cost: one pass.

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
    return value_with_warning(
        compute_brier(view, validate_weight_like(weight, view.labels)), "brier"
    )


def compute_accuracy(view: ClassView, weight: FloatArray | None) -> MetricValue:
    """Share of right predictions."""
    is_correct = (view.prediction == view.labels) & (view.labels >= 0)
    return MetricValue(weighted_mean(as_double(is_correct), weight))


def compute_balanced_accuracy(view: ClassView, weight: FloatArray | None) -> MetricValue:
    """Mean over the classes that occur of the share of each that is right."""
    has_class = view.labels >= 0
    truth = view.labels[has_class]
    is_correct = as_double(view.prediction[has_class] == truth)
    w = namespace(is_correct).ones_like(is_correct) if weight is None else weight[has_class]
    if not float(namespace(w).sum(w)) > 0:
        return undefined("no sample has a known class")
    classes = int(namespace(truth).max(truth)) + 1
    total = sum_by_index(truth, w, classes)
    is_present = total > 0
    recall = sum_by_index(truth, w * is_correct, classes)[is_present] / total[is_present]
    return MetricValue(float(namespace(recall).mean(recall)))


def compute_nll(view: ClassView, weight: FloatArray | None) -> MetricValue:
    """Mean negative log-probability of the true classes."""
    view, weight = _drop_zero_weights(view, weight)
    if unknown := _reason_unknown_classes(view.labels):
        return undefined(unknown)
    log_p = log_probability_of_true_class(view)
    impossible = int(namespace(log_p).count_nonzero(log_p == -float("inf")))
    if impossible:
        return undefined(f"it is infinite: {impossible} true classes have probability 0")
    return MetricValue(weighted_mean(-log_p, weight))


def _drop_zero_weights(
    view: ClassView, weight: FloatArray | None
) -> tuple[ClassView, FloatArray | None]:
    """Return the samples that have weight, with it."""
    if weight is None or bool(namespace(weight).all(weight > 0)):
        return view, weight
    return select_rows(view, weight > 0), weight[weight > 0]


def _reason_unknown_classes(labels: IntArray) -> str:
    count = int(namespace(labels).count_nonzero(labels < 0))
    return f"{count} samples have no known class" if count else ""


def compute_brier(view: ClassView, weight: FloatArray | None) -> MetricValue:
    """Mean squared distance of the class probabilities from the true class."""
    view, weight = _drop_zero_weights(view, weight)
    if unknown := _reason_unknown_classes(view.labels):
        return undefined(unknown)
    p = as_double(get_probabilities(view))
    # The one of the true class is subtracted before anything is squared: small scores stay exact.
    distance = p - as_double(is_true_class(view.labels, p))
    return MetricValue(weighted_mean(namespace(p).sum(distance * distance, axis=1), weight))


def _accuracy_of_samples(s: Scored) -> MetricValue:
    """Share of right predictions; without labels, of samples without a loss (0/1 loss)."""
    if s.class_view is not None:
        return compute_accuracy(s.class_view, s.weight)
    return MetricValue(weighted_mean(1.0 - as_double(s.loss), s.weight))


def _accuracy_influence(s: Scored) -> FloatArray:
    return mean_influence(s, 1.0 - s.loss if s.class_view is None else _correctness(s.class_view))


def _correctness(view: ClassView) -> FloatArray:
    is_correct = (view.prediction == view.labels) & (view.labels >= 0)
    return np.asarray(is_correct, dtype=np.float64)


def _balanced_influence(s: Scored) -> FloatArray:
    view, w = get_class_view(s), sample_weights(s)
    has_class = (view.labels >= 0) & (w > 0)
    truth, is_correct, w = view.labels[has_class], _correctness(view)[has_class], w[has_class]
    total = np.bincount(truth, weights=w)
    recall = np.bincount(truth, weights=w * is_correct) / np.where(total > 0, total, 1.0)
    influence = np.zeros(s.n_rows)
    influence[has_class] = (
        (is_correct - recall[truth]) * (s.total_weight / np.count_nonzero(total)) / total[truth]
    )
    return influence


def _nll_influence(s: Scored) -> FloatArray:
    view, has_weight = get_class_view(s), sample_weights(s) > 0
    negative_log_likelihood = np.zeros(s.n_rows)
    negative_log_likelihood[has_weight] = -log_probability_of_true_class(
        select_rows(view, has_weight)
    )
    return mean_influence(s, negative_log_likelihood)


def _brier_influence(s: Scored) -> FloatArray:
    view = get_class_view(s)
    truth = view.labels[:, None] == np.arange(get_probabilities(view).shape[1])
    return mean_influence(s, np.square(get_probabilities(view) - truth).sum(axis=1))


def _loss_is_error(s: Scored) -> bool:
    """Return whether the loss is 1 exactly where the prediction is wrong."""
    view = s.class_view
    return view is None or np.array_equal(s.loss != 0, view.prediction != view.labels)


def _accuracy_from_risk(risk: float) -> float:
    return 1 - risk


ACCURACY = Metric(
    Identity(
        name="accuracy",
        title="accuracy",
        family="classifier",
        ignores_confidence=True,
        lower_is_better=False,
        meaning="Answering everything, {value} of the predictions are right.",
        source="share of right predictions",
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
        meaning="The truth surprises the class probabilities by {value} nats on average.",
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
            meaning="Averaged over the classes, {value} of the samples of a class are right.",
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
            meaning="The class probabilities are a squared distance of {value} from the truth.",
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
