"""The classifier by itself, with no rejection: accuracy, balanced accuracy, NLL and Brier score."""

from abstain._foundation.device import weights_beside
from abstain.metrics._classifier import accuracy_of, balanced_accuracy_of, brier_of, nll_of
from abstain.metrics._entry import Metric, Need, value_of
from abstain.metrics._views import of_predictions, of_probabilities, view_of
from abstain.typing import AnyArray


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
    view = of_predictions(prediction, labels)
    return accuracy_of(view, weights_beside(weight, view.labels)).value


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
    of them and do not count. Cost: one pass.

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
    view = of_predictions(prediction, labels)
    w = weights_beside(weight, view.labels)
    return value_of(balanced_accuracy_of(view, w), "balanced_accuracy")


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
    view = of_probabilities(probabilities, labels)
    return value_of(nll_of(view, weights_beside(weight, view.labels)), "nll")


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
       https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2

    Examples
    --------
    >>> from abstain.metrics import brier
    >>> round(brier([[0.9, 0.1], [0.5, 0.5]], [0, 1]), 4)
    0.26
    """
    view = of_probabilities(probabilities, labels)
    return value_of(brier_of(view, weights_beside(weight, view.labels)), "brier")


_PROBABILITIES = frozenset({Need.PROBABILITIES})

ENTRIES: tuple[Metric, ...] = (
    Metric(
        name="accuracy",
        title="accuracy",
        family="classifier",
        compute=lambda s: accuracy_of(view_of(s), s.weight),
        lower_is_better=False,
        low=0.0,
        high=1.0,
        meaning="Answering everything, {value} of the predictions are right.",
        source="share of right predictions",
        narrow="Acc.",
        headline=1,
        needs=frozenset({Need.CLASSES}),
        gradients=frozenset(),
    ),
    Metric(
        name="balanced_accuracy",
        title="balanced accuracy",
        family="classifier",
        compute=lambda s: balanced_accuracy_of(view_of(s), s.weight),
        lower_is_better=False,
        low=0.0,
        high=1.0,
        meaning="Averaged over the classes, {value} of the samples of a class are right.",
        source="Brodersen et al. (2010), https://doi.org/10.1109/ICPR.2010.764",
        needs=frozenset({Need.CLASSES}),
        gradients=frozenset(),
    ),
    Metric(
        name="nll",
        title="negative log-likelihood",
        family="classifier",
        compute=lambda s: nll_of(view_of(s), s.weight),
        lower_is_better=True,
        low=0.0,
        high=float("inf"),
        meaning="The truth surprises the class probabilities by {value} nats on average.",
        source="Good (1952), https://doi.org/10.1111/j.2517-6161.1952.tb00104.x",
        needs=_PROBABILITIES,
        gradients=frozenset({"probabilities"}),
    ),
    Metric(
        name="brier",
        title="Brier score",
        family="classifier",
        compute=lambda s: brier_of(view_of(s), s.weight),
        lower_is_better=True,
        low=0.0,
        high=2.0,
        meaning="The class probabilities are a squared distance of {value} from the truth.",
        source="Brier (1950), eq. 2",
        needs=_PROBABILITIES,
        convention="summed over the classes",
        gradients=frozenset({"probabilities"}),
    ),
)
