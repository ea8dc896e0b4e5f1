"""Temperature scaling, which divides the logits by a fitted number."""

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

#: Upper bound of the temperature for logits without information about the labels, as a multiple of
#: the standard deviation of the logits.
_MAX_SPREADS = 1000.0


@dataclass(frozen=True)
class Temperature(Calibration):
    """A fitted temperature T, which changes class probabilities to softmax(logits / T).

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
        Reason why the data do not determine a temperature, or an empty string.

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
        for block in row_blocks(*probabilities.shape):
            block_logits = scores.log_scores(block)
            # The maximum is subtracted before the division, so that an overflow can only be -inf.
            with np.errstate(over="ignore"):
                differences = block_logits - block_logits.max(axis=1, keepdims=True)
                scaled = differences / self.temperature
            probabilities[block] = np.exp(log_softmax(scaled))
        return as_array_like(probabilities, logits)


def fit_temperature(
    logits: AnyArray, labels: AnyArray, *, weight: AnyArray | None = None
) -> Temperature:
    """Fit the temperature by maximum likelihood.

    Answers: by which number must the logits be divided so that their softmax is calibrated?

    Parameters
    ----------
    logits : array of shape (n, K)
        Logits of held-out samples that were not used for training, in any float type.
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
    L-BFGS minimizes the mean negative log-likelihood (NLL) over the logarithm of the temperature T.
    The minimum is then refined by finding the root of the derivative. The NLL is convex in 1 / T.
    In two cases, which `note` reports, the NLL has no minimum:

    - If every label has the largest logit, the NLL decreases as T approaches 0. For such labels, T
      is selected so that the mean probability of the labels is (n + 1) / (n + 2), by Laplace's rule
      of succession. If the mean probability at T = 1 is already higher, T is 1.
    - If the logits have no information about the labels, the NLL decreases as T increases. For such
      logits, T is 1000 times their standard deviation, but at least 1.

    Predictions do not change. With more than two classes, the ranking by the maximum softmax
    response can change. The cost is 20 to 40 passes over the logits.

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
    n_samples, n_classes = scores.values.shape
    codes = checks.vector(labels, "labels", length=n_samples, reference="logits")
    sample_weight = checks.weight(weight, length=n_samples)
    has_weight = positive_weight_mask(sample_weight)
    is_invalid = (codes != np.floor(codes)) | (codes < 0) | (codes >= n_classes)
    if has_weight is not None:
        is_invalid &= has_weight
    checks.reject_entries(
        "labels",
        f"must be a class code from 0 to {n_classes - 1}",
        codes,
        is_invalid,
        hint="Remove samples of no known class: their likelihood is 0 at any temperature.",
    )
    return fit_temperature_of_scores(scores, codes.astype(np.int64), sample_weight)


@dataclass(frozen=True)
class _ScoreSummary:
    """Properties of the class scores that indicate whether the likelihood has a maximum."""

    #: Whether the true class of every sample has the largest score.
    is_separable: bool
    #: Mean probability of the true class in the limit of temperature 0, if `is_separable` is True.
    limit_probability: float
    #: Root mean square deviation of the scaled scores from the mean score of their sample.
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
        """Yield blocks of the differences between scaled scores and the score of the true class."""
        for block in row_blocks(*self.scores.values.shape):
            differences = self.scores.log_scores(block)
            differences /= self.scale
            differences -= np.take_along_axis(differences, self.codes[block, None], axis=1)
            yield block, differences

    def nll(self, inverse: float) -> float:
        """Return the mean NLL at an inverse temperature."""
        return self.nll_and_slope(inverse)[0]

    def nll_and_slope(self, inverse: float) -> tuple[float, float]:
        """Return the mean NLL and its derivative with respect to the inverse temperature."""
        value = 0.0
        slope = 0.0
        for block, differences in self.score_differences():
            log_p = log_softmax(inverse * differences)
            log_p_label = np.take_along_axis(log_p, self.codes[block, None], axis=1)[:, 0]
            # A class of probability 0 has a difference of -inf and does not contribute.
            finite_differences = np.where(np.isneginf(differences), 0.0, differences)
            mean_difference = (np.exp(log_p) * finite_differences).sum(axis=1)
            value -= float(self.weight[block] @ log_p_label)
            slope += float(self.weight[block] @ mean_difference)
        return value / self.total, slope / self.total

    def label_probability(self, inverse: float) -> float:
        """Return the mean probability of the true class at an inverse temperature."""
        total = 0.0
        for block, differences in self.score_differences():
            log_p = log_softmax(inverse * differences)
            log_p_label = np.take_along_axis(log_p, self.codes[block, None], axis=1)[:, 0]
            total += float(self.weight[block] @ np.exp(log_p_label))
        return total / self.total

    def summarize(self) -> _ScoreSummary:
        """Return properties that indicate whether the likelihood has a maximum."""
        limit_probability = 0.0
        variance = 0.0
        is_separable = True
        for block, differences in self.score_differences():
            weight = self.weight[block]
            variance += float(weight @ _variance_of_finite(differences))
            is_separable = is_separable and bool((differences <= 0).all())
            n_largest = (differences == 0).sum(axis=1)
            limit_probability += float(weight @ (1.0 / n_largest))
        limit_probability /= self.total
        spread = float(np.sqrt(variance / self.total))
        return _ScoreSummary(is_separable, limit_probability, spread)


def _variance_of_finite(x: FloatArray) -> FloatArray:
    """Return the variance of each row, in which entries of -inf are ignored."""
    is_finite = ~np.isneginf(x)
    n_finite = is_finite.sum(axis=1)
    mean = np.where(is_finite, x, 0.0).sum(axis=1) / n_finite
    centered = np.where(is_finite, x - mean[:, None], 0.0)
    variance: FloatArray = (centered**2).sum(axis=1) / n_finite
    return variance


def _make_likelihood(
    scores: ClassScores, codes: IntArray, weight: FloatArray | None
) -> _Likelihood:
    """Create the likelihood of validated class scores, and drop samples of weight 0."""
    values: Array = scores.values
    if weight is None:
        weight = np.ones(codes.size)
    else:
        _, weight, values, codes = drop_zero_weights(weight, values, codes)
    weighted_scores = ClassScores(values, are_logits=scores.are_logits)
    max_size = 0.0
    for block in row_blocks(*values.shape):
        log_scores = weighted_scores.log_scores(block)
        finite_scores = log_scores[np.isfinite(log_scores)]
        max_size = max(max_size, float(np.abs(finite_scores).max(initial=0.0)))
    return _Likelihood(weighted_scores, codes, weight, max_size or 1.0)


def fit_temperature_of_scores(
    scores: ClassScores, codes: IntArray, weight: FloatArray | None = None
) -> Temperature:
    """Fit the temperature of validated class scores (logits or probabilities)."""
    likelihood = _make_likelihood(scores, codes, weight)
    _reject_impossible_labels(likelihood)
    # The inverse temperature of the scaled scores that corresponds to temperature 1.
    inverse_before = 1.0 * likelihood.scale
    inverse, note = _best_inverse_temperature(likelihood, inverse_before)
    nll_before = likelihood.nll(inverse_before)
    nll_after = likelihood.nll(inverse)
    if nll_after > nll_before:
        # The two temperatures differ only by rounding errors.
        inverse = inverse_before
        nll_after = nll_before
    return Temperature(
        temperature=likelihood.scale / inverse,
        nll_before=nll_before,
        nll_after=nll_after,
        n=int(likelihood.codes.size),
        note=note,
    )


def _reject_impossible_labels(likelihood: _Likelihood) -> None:
    """Raise a DomainError if the true class of a sample has probability 0."""
    if likelihood.scores.are_logits:
        return
    codes = likelihood.codes[:, None]
    label_probability = np.take_along_axis(likelihood.scores.values, codes, axis=1)
    n_impossible = int((label_probability == 0).sum())
    if n_impossible:
        raise DomainError(
            f"`probabilities` must not be 0 for the true class; got {n_impossible} such "
            "samples, whose likelihood is 0 at any temperature. Pass logits, or raise the "
            "probabilities to the smallest positive number of their dtype (6e-8 for float16)."
        )


def _best_inverse_temperature(likelihood: _Likelihood, inverse_before: float) -> tuple[float, str]:
    """Return the inverse temperature with the smallest NLL, and a note."""
    summary = likelihood.summarize()
    if summary.spread == 0:
        note = "the classes of each sample have equal scores: the temperature has no effect"
        return inverse_before, note
    if summary.is_separable:
        return _bound_separable(likelihood, summary, inverse_before)
    min_inverse = 1.0 / (_MAX_SPREADS * summary.spread)
    # The NLL is convex. If its slope is not negative here, the optimum is below `min_inverse`.
    _, slope = likelihood.nll_and_slope(min_inverse)
    if slope >= 0:
        note = (
            "the scores are not better than chance on these data, so the likelihood increases with "
            f"the temperature: it is bounded at {_MAX_SPREADS:g} standard deviations of the logits"
        )
        return min(inverse_before, min_inverse), note
    return _minimize_nll(likelihood, 1.0 / summary.spread), ""


def _bound_separable(
    likelihood: _Likelihood, summary: _ScoreSummary, inverse_before: float
) -> tuple[float, str]:
    """Return the inverse temperature according to the rule of succession, and a note."""
    from scipy.optimize import brentq

    note = "there are no failures, so the likelihood increases as the temperature decreases: it is "
    target = (likelihood.total + 1) / (likelihood.total + 2)
    is_unreachable = summary.limit_probability <= target
    if is_unreachable or likelihood.label_probability(inverse_before) >= target:
        return inverse_before, note + "left at 1"

    def excess_probability(log_inverse: float) -> float:
        return likelihood.label_probability(float(np.exp(log_inverse))) - target

    low = float(np.log(inverse_before))
    high = low
    while excess_probability(high) < 0:
        high += 1.0
    inverse = float(np.exp(brentq(excess_probability, low, high, xtol=1e-12)))
    return inverse, note + "bounded where the mean probability of the labels is (n + 1) / (n + 2)"


def _minimize_nll(likelihood: _Likelihood, start_inverse: float) -> float:
    """Return the inverse temperature that minimizes the NLL."""
    from scipy.optimize import minimize

    def nll(log_temperature: FloatArray) -> tuple[float, FloatArray]:
        inverse = float(np.exp(-log_temperature[0]))
        value, slope = likelihood.nll_and_slope(inverse)
        return value, np.array([-inverse * slope])

    start = [-np.log(start_inverse)]
    result = minimize(nll, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-8})
    log_temperature = _root_of_slope(likelihood, float(result.x[0]))
    return float(np.exp(-log_temperature))


def _root_of_slope(likelihood: _Likelihood, start: float) -> float:
    """Return the log-temperature near `start` where the derivative of the NLL is 0.

    Finding a root is more accurate than minimizing the NLL, which is flat at the minimum.
    """
    from scipy.optimize import brentq

    def slope(log_temperature: float) -> float:
        return likelihood.nll_and_slope(float(np.exp(-log_temperature)))[1]

    # The slope is positive below the root and negative above it.
    low = start
    high = start
    step = 1e-4
    while slope(low) < 0:
        low -= step
        step *= 4
    while slope(high) > 0:
        high += step
        step *= 4
    if low == high:
        return low
    return float(brentq(slope, low, high, xtol=1e-14))
