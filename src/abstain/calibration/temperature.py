"""Temperature scaling, which divides the logits by one number."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_array_like
from abstain._foundation.checks import drop_zero_weights, positive_weight_mask
from abstain._foundation.records import NonNegative, Positive, PositiveInt
from abstain.calibration.state import Calibration
from abstain.errors import DomainError
from abstain.predictions.outputs import ClassScores, validate_class_scores
from abstain.predictions.softmax import log_softmax, row_blocks
from abstain.typing import AnyArray, Array, FloatArray, IntArray

#: Upper bound of the temperature, in standard deviations of the logits, for scores without
#: information about the labels.
_MAX_SPREADS = 1000.0


@dataclass(frozen=True)
class Temperature(Calibration):
    """A fitted temperature, which changes class probabilities to softmax(logits / temperature).

    Attributes
    ----------
    temperature : float
        The positive temperature. A temperature above 1 makes the probabilities less confident.
    nll_before, nll_after : float
        Mean negative log-likelihood of the fitting data in nats at temperature 1 and at the fitted
        temperature.
    n : int
        Number of fitting samples.
    note : str
        A remark if the data do not determine a temperature, or empty.

    Examples
    --------
    >>> from abstain.calibration import Temperature
    >>> state = Temperature(temperature=2.0, nll_before=0.7, nll_after=0.6, n=100)
    >>> state.apply([[2.0, 0.0]]).round(4).tolist()
    [[0.7311, 0.2689]]
    """

    kind: ClassVar[str] = "temperature"

    temperature: Positive
    nll_before: NonNegative
    nll_after: NonNegative
    n: PositiveInt
    note: str = ""

    def apply(self, logits: AnyArray, /) -> AnyArray:
        """Return the calibrated class probabilities.

        Parameters
        ----------
        logits : array of shape (n, K)
            Logits of the model for which the temperature was fitted.

        Returns
        -------
        array of shape (n, K)
            Probabilities in float64, with the library and device of the input.

        Raises
        ------
        ShapeError, DomainError
            If the input is not a finite array with at least two columns.

        Examples
        --------
        >>> from abstain.calibration import Temperature
        >>> state = Temperature(temperature=2.0, nll_before=0.7, nll_after=0.6, n=100)
        >>> state.apply([[2.0, 0.0]]).round(4).tolist()
        [[0.7311, 0.2689]]
        """
        scores = validate_class_scores(logits, None)
        probabilities = np.empty(scores.values.shape)
        for rows in row_blocks(*probabilities.shape):
            z = scores.log_scores(rows)
            # The maximum is subtracted before the division, so that an overflow can only be -inf.
            with np.errstate(over="ignore"):
                z = (z - z.max(axis=1, keepdims=True)) / self.temperature
            probabilities[rows] = np.exp(log_softmax(z))
        return as_array_like(probabilities, logits)


def fit_temperature(
    logits: AnyArray, labels: AnyArray, *, weight: AnyArray | None = None
) -> Temperature:
    """Fit the temperature with the largest likelihood of the labels.

    Answers: by which number must the logits be divided so that their softmax is calibrated?

    Parameters
    ----------
    logits : array of shape (n, K)
        Logits, of any float type, of held-out samples that were not used for training.
    labels : array of shape (n,)
        True class codes from 0 to K - 1.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    Temperature
        The fitted temperature, with the negative log-likelihood before and after the fit.

    Raises
    ------
    ShapeError
        If the lengths differ, an array is empty or there are fewer than two classes.
    DomainError
        If a logit is NaN or infinite, a label is not a class code, or a weight is negative.

    Notes
    -----
    L-BFGS minimizes the mean negative log-likelihood (NLL) over log T, and the root of the exact
    derivative refines the result. The NLL is convex in 1 / T, so it has at most one minimum, which
    is not above the NLL at T = 1. For two kinds of data, the NLL has no minimum, and `note` states
    the reason:

    - *Every label has the largest logit.* The NLL decreases as T approaches 0. The function selects
      T so that the mean probability of the labels is (n + 1) / (n + 2), which is Laplace's rule of
      succession, as in Platt scaling. If the mean probability is higher at T = 1, T is 1.
    - *The logits have no information about the labels.* The NLL decreases as T increases, at least
      up to 1000 times the standard deviation of the logits. T is the larger of this value and 1.
      The probabilities are then nearly uniform and keep their order.

    Predictions do not change. With two classes, the ranking by the maximum softmax response does
    not change. With more classes, this ranking can change. The cost is 20 to 40 passes over the
    logits.

    References
    ----------
    .. [1] Guo et al. (2017), On calibration of modern neural networks, section 4.2,
       https://arxiv.org/abs/1706.04599

    Examples
    --------
    >>> from abstain.calibration import fit_temperature
    >>> state = fit_temperature([[4.0, 0.0]] * 4, [0, 0, 0, 1])
    >>> round(state.temperature, 4)
    3.641
    >>> state.apply([[4.0, 0.0]]).round(4).tolist()
    [[0.75, 0.25]]
    """
    scores = validate_class_scores(logits, None)
    n, n_classes = scores.values.shape
    codes = checks.vector(labels, "labels", length=n, reference="logits")
    w = checks.weight(weight, length=n)
    rows = positive_weight_mask(w)
    is_no_class = (codes != np.floor(codes)) | (codes < 0) | (codes >= n_classes)
    checks.reject_entries(
        "labels",
        f"must be a class code from 0 to {n_classes - 1}",
        codes,
        is_no_class if rows is None else is_no_class & rows,
        hint="Remove samples of no known class: their likelihood is 0 at any temperature.",
    )
    return fit_temperature_of_scores(scores, codes.astype(np.int64), w)


@dataclass(frozen=True)
class _ScoreSummary:
    """Properties of the class scores that determine whether the likelihood has a maximum."""

    #: Whether the true class has the largest score in every row.
    is_separable: bool
    #: Mean probability of the true class in the limit of temperature 0, for separable rows.
    limit_probability: float
    #: Root mean square deviation of the scaled scores from the mean of their row.
    spread: float


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """The likelihood of labels as a function of the inverse temperature."""

    #: Shape (n, K). The true class of each sample must have a positive probability.
    scores: ClassScores
    codes: IntArray
    #: Weights of the samples, which are all above 0.
    weight: FloatArray
    #: Number by which the class scores are divided, so that they do not overflow.
    scale: float

    @property
    def total(self) -> float:
        """Weight of all samples."""
        return float(self.weight.sum())

    def score_differences(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield blocks of the scaled score of each class minus the score of the true class."""
        for rows in row_blocks(*self.scores.values.shape):
            z = self.scores.log_scores(rows)
            z /= self.scale
            z -= np.take_along_axis(z, self.codes[rows, None], axis=1)
            yield rows, z

    def nll(self, inverse: float) -> float:
        """Return the mean NLL at an inverse temperature of the scaled scores."""
        return self.nll_and_slope(inverse)[0]

    def nll_and_slope(self, inverse: float) -> tuple[float, float]:
        """Return the mean NLL and its derivative, which increases with the inverse temperature."""
        value = slope = 0.0
        for rows, lead in self.score_differences():
            log_p = log_softmax(inverse * lead)
            of_label = np.take_along_axis(log_p, self.codes[rows, None], axis=1)[:, 0]
            p = np.exp(log_p)
            # A class of probability 0 has a difference of -inf and does not contribute.
            mean_lead = (p * np.where(np.isneginf(lead), 0.0, lead)).sum(axis=1)
            value -= float(self.weight[rows] @ of_label)
            slope += float(self.weight[rows] @ mean_lead)
        return value / self.total, slope / self.total

    def label_probability(self, inverse: float) -> float:
        """Return the mean probability of the true class."""
        out = 0.0
        for rows, lead in self.score_differences():
            log_p = log_softmax(inverse * lead)
            of_label = np.take_along_axis(log_p, self.codes[rows, None], axis=1)[:, 0]
            out += float(self.weight[rows] @ np.exp(of_label))
        return out / self.total

    def summarize(self) -> _ScoreSummary:
        """Return the properties that determine whether the likelihood has a maximum."""
        limit_probability = variance = 0.0
        is_separable = True
        for rows, difference in self.score_differences():
            w, is_possible = self.weight[rows], ~np.isneginf(difference)
            n_possible = is_possible.sum(axis=1)
            mean = np.where(is_possible, difference, 0.0).sum(axis=1) / n_possible
            centered = np.where(is_possible, difference - mean[:, None], 0.0)
            variance += float(w @ ((centered**2).sum(axis=1) / n_possible))
            is_separable = is_separable and bool((difference <= 0).all())
            n_largest = (difference == 0).sum(axis=1)
            limit_probability += float(w @ (1.0 / n_largest))
        limit_probability /= self.total
        spread = float(np.sqrt(variance / self.total))
        return _ScoreSummary(is_separable, limit_probability, spread)


def _make_likelihood(
    scores: ClassScores, codes: IntArray, weight: FloatArray | None
) -> _Likelihood:
    """Create the likelihood of validated class scores after dropping samples of weight 0."""
    values: Array = scores.values
    if weight is None:
        weight = np.ones(codes.size)
    else:
        _, weight, values, codes = drop_zero_weights(weight, values, codes)
    weighted_scores = ClassScores(values, are_logits=scores.are_logits)
    max_size = 0.0
    for rows in row_blocks(*values.shape):
        z = weighted_scores.log_scores(rows)
        max_size = max(max_size, float(np.abs(z[np.isfinite(z)]).max(initial=0.0)))
    return _Likelihood(weighted_scores, codes, weight, max_size or 1.0)


def fit_temperature_of_scores(
    scores: ClassScores, codes: IntArray, weight: FloatArray | None = None
) -> Temperature:
    """Fit the temperature of validated class scores, which may be probabilities."""
    model = _make_likelihood(scores, codes, weight)
    if not model.scores.are_logits:
        of_label = np.take_along_axis(model.scores.values, model.codes[:, None], axis=1)
        if n_impossible := int((of_label == 0).sum()):
            raise DomainError(
                f"`probabilities` must not be 0 for the true class; got {n_impossible} such "
                "samples, whose likelihood is 0 at any temperature. Pass logits, or raise the "
                "probabilities to the smallest positive number of their dtype (6e-8 for float16)."
            )
    inverse_before = 1.0 * model.scale
    inverse, note = _best_inverse_temperature(model, model.summarize(), inverse_before)
    nll = {at: model.nll(at) for at in (inverse_before, inverse)}
    if nll[inverse] > nll[inverse_before]:
        # Both temperatures differ only by rounding errors.
        inverse = inverse_before
    return Temperature(
        temperature=model.scale / inverse,
        nll_before=nll[inverse_before],
        nll_after=nll[inverse],
        n=int(model.codes.size),
        note=note,
    )


def _best_inverse_temperature(
    model: _Likelihood, shape: _ScoreSummary, before: float
) -> tuple[float, str]:
    """Return the best inverse temperature of the scaled scores and a note."""
    if shape.spread == 0:
        return before, "the classes of each sample have equal scores: the temperature has no effect"
    if shape.is_separable:
        return _bound_separable(model, shape, before)
    flattest = 1.0 / (_MAX_SPREADS * shape.spread)
    # The derivative increases with the inverse temperature. If it is at least 0 here, the minimum
    # has a smaller inverse temperature.
    if model.nll_and_slope(flattest)[1] >= 0:
        note = (
            "the scores are not better than chance on these data, so the likelihood increases with "
            f"the temperature: it is bounded at {_MAX_SPREADS:g} standard deviations of the logits"
        )
        return min(before, flattest), note
    return _minimize_nll(model, 1.0 / shape.spread), ""


def _bound_separable(model: _Likelihood, shape: _ScoreSummary, before: float) -> tuple[float, str]:
    """Return the inverse temperature that the rule of succession selects for separable data."""
    from scipy.optimize import brentq

    note = "there are no failures, so the likelihood increases as the temperature decreases: it is "
    target = (model.total + 1) / (model.total + 2)
    if shape.limit_probability <= target or model.label_probability(before) >= target:
        return before, note + "left at 1"

    def short_of_goal(log_inverse: float) -> float:
        return model.label_probability(float(np.exp(log_inverse))) - target

    low = high = float(np.log(before))
    while short_of_goal(high) < 0:
        high += 1.0
    inverse = float(np.exp(brentq(short_of_goal, low, high, xtol=1e-12)))
    return inverse, note + "bounded where the mean probability of the labels is (n + 1) / (n + 2)"


def _minimize_nll(model: _Likelihood, start: float) -> float:
    """Minimize the NLL over the logarithm of the temperature."""
    from scipy.optimize import brentq, minimize

    def nll(log_temperature: FloatArray) -> tuple[float, FloatArray]:
        inverse = float(np.exp(-log_temperature[0]))
        value, slope = model.nll_and_slope(inverse)
        return value, np.array([-inverse * slope])

    def slope(log_temperature: float) -> float:
        return model.nll_and_slope(float(np.exp(-log_temperature)))[1]

    result = minimize(nll, [-np.log(start)], jac=True, method="L-BFGS-B", options={"gtol": 1e-8})
    # The root of the derivative is more accurate than the minimum of the flat NLL. The derivative
    # by the inverse temperature is positive if log T is below the root, and negative if log T is
    # above.
    low = high = float(result.x[0])
    step = 1e-4
    while slope(low) < 0:
        low -= step
        step *= 4
    while slope(high) > 0:
        high += step
        step *= 4
    log_temperature = brentq(slope, low, high, xtol=1e-14) if high > low else low
    return float(np.exp(-log_temperature))
