"""Temperature scaling: one number that softens or sharpens every softmax."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_array_like
from abstain._foundation.records import NonNegative, Positive, PositiveInt
from abstain._foundation.weights import drop_zero_weights, positive_weight_mask
from abstain.calibration.state import Calibration
from abstain.errors import DomainError
from abstain.predictions.outputs import ClassScores, class_scores
from abstain.predictions.softmax import log_softmax, row_blocks
from abstain.typing import AnyArray, Array, FloatArray, IntArray

#: Where nothing but noise is left, logits are divided by this many times their spread.
_FLAT = 1000.0


@dataclass(frozen=True)
class Temperature(Calibration):
    """A fitted temperature: class probabilities become softmax(logits / temperature).

    Attributes
    ----------
    temperature : float
        Above 0; above 1 softens, below 1 sharpens.
    nll_before, nll_after : float
        Mean negative log-likelihood of the fitting data in nats, at temperature 1 and at this one.
    n : int
        Samples it was fitted on.
    note : str
        What to know about the fit, or empty: data that do not determine a temperature.

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
            Of the model that the temperature was fitted on.

        Returns
        -------
        array of shape (n, K)
            Probabilities in float64, of the caller's kind and on its device.

        Raises
        ------
        ShapeError, DomainError
            Not a finite array with at least two columns.

        Examples
        --------
        >>> from abstain.calibration import Temperature
        >>> state = Temperature(temperature=2.0, nll_before=0.7, nll_after=0.6, n=100)
        >>> state.apply([[2.0, 0.0]]).round(4).tolist()
        [[0.7311, 0.2689]]
        """
        given = class_scores(logits, None)
        out = np.empty(given.values.shape)
        for rows in row_blocks(*out.shape):
            z = given.log_scores(rows)
            # Shifted before they are divided: a difference may overflow only to -inf.
            with np.errstate(over="ignore"):
                z = (z - z.max(axis=1, keepdims=True)) / self.temperature
            out[rows] = np.exp(log_softmax(z))
        return as_array_like(out, logits)


def fit_temperature(
    logits: AnyArray, labels: AnyArray, *, weight: AnyArray | None = None
) -> Temperature:
    """Fit the temperature that makes the labels most likely.

    Answers: by which one number must the logits be divided for their softmax to be calibrated?

    Parameters
    ----------
    logits : array of shape (n, K)
        Of held-out samples, not of those the model was trained on. Any float type.
    labels : array of shape (n,)
        True class codes from 0 to K - 1.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    Temperature
        The frozen state, with the negative log-likelihood before and after on these data.

    Raises
    ------
    ShapeError
        If the lengths differ, an array is empty or there are fewer than two classes.
    DomainError
        If a logit is NaN or infinite, a label is no class code, or a weight is negative.

    Notes
    -----
    Minimizes the mean negative log-likelihood (NLL) over log T by L-BFGS with its exact
    derivative, then to the last digits by a root of that derivative. The NLL is convex in 1 / T,
    so there is one minimum, and it is never above that at T = 1. On two kinds of data there is
    none, and `note` says so:

    - *No label is outscored.* The NLL falls forever as T goes to 0. T is set where the mean
      probability of the labels is (n + 1) / (n + 2), Laplace's rule of succession, as in Platt
      scaling; or left at 1 where it is higher than that already.
    - *The scores say nothing about the labels.* The NLL falls forever as T grows, or until T is
      1000 times the spread of the logits. T is set to that (or to 1, if that is larger): nearly
      uniform probabilities that keep the order.

    Predictions never change. With two classes neither does the ranking by the maximum softmax
    response, with more it can. Cost: 20 to 40 passes over the logits.

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
    given = class_scores(logits, None)
    n, classes = given.values.shape
    codes = checks.vector(labels, "labels", length=n, reference="logits")
    w = checks.weight(weight, length=n)
    rows = positive_weight_mask(w)
    is_no_class = (codes != np.floor(codes)) | (codes < 0) | (codes >= classes)
    checks.reject_entries(
        "labels",
        f"must be a class code from 0 to {classes - 1}",
        codes,
        is_no_class if rows is None else is_no_class & rows,
        hint="Leave out samples of no known class: no temperature makes them likely.",
    )
    return temperature_of(given, codes.astype(np.int64), w)


@dataclass(frozen=True)
class _Shape:
    """What decides whether the likelihood has a maximum."""

    #: Whether no class has a higher score than the true one, in any row.
    separable: bool
    #: Of separable rows, the mean probability of the true class as the temperature goes to 0.
    certainty: float
    #: Root mean square of the scaled scores around the mean of their row.
    spread: float


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """The likelihood of labels by the inverse temperature, in float64 and log space."""

    #: Shape (n, K). A class of probability 0 must be nobody's true class.
    scores: ClassScores
    codes: IntArray
    #: Above 0.
    weight: FloatArray
    #: Class scores are divided by it before anything else, so that none overflows.
    scale: float

    @property
    def total(self) -> float:
        """Weight of all samples."""
        return float(self.weight.sum())

    def leads(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield, block by block, each class's scaled score minus that of the true class."""
        for rows in row_blocks(*self.scores.values.shape):
            z = self.scores.log_scores(rows)
            z /= self.scale
            z -= np.take_along_axis(z, self.codes[rows, None], axis=1)
            yield rows, z

    def nll(self, inverse: float) -> float:
        """Mean negative log-likelihood at an inverse temperature (of the scaled scores)."""
        return self.nll_and_slope(inverse)[0]

    def nll_and_slope(self, inverse: float) -> tuple[float, float]:
        """Return it with its derivative by the inverse temperature, which rises with it."""
        value = slope = 0.0
        for rows, lead in self.leads():
            log_p = log_softmax(inverse * lead)
            of_label = np.take_along_axis(log_p, self.codes[rows, None], axis=1)[:, 0]
            p = np.exp(log_p)
            # A class of probability 0 leads by -inf and does not count.
            mean_lead = (p * np.where(np.isneginf(lead), 0.0, lead)).sum(axis=1)
            value -= float(self.weight[rows] @ of_label)
            slope += float(self.weight[rows] @ mean_lead)
        return value / self.total, slope / self.total

    def label_probability(self, inverse: float) -> float:
        """Return the mean probability of the true class."""
        out = 0.0
        for rows, lead in self.leads():
            log_p = log_softmax(inverse * lead)
            of_label = np.take_along_axis(log_p, self.codes[rows, None], axis=1)[:, 0]
            out += float(self.weight[rows] @ np.exp(of_label))
        return out / self.total

    def shape(self) -> _Shape:
        """Return what decides whether the likelihood has a maximum at all."""
        certainty = spread = 0.0
        separable = True
        for rows, lead in self.leads():
            w, possible = self.weight[rows], ~np.isneginf(lead)
            count = possible.sum(axis=1)
            known = np.where(possible, lead, 0.0)
            mean = known.sum(axis=1) / count
            apart = np.where(possible, lead - mean[:, None], 0.0)
            spread += float(w @ ((apart**2).sum(axis=1) / count))
            separable = separable and bool((lead <= 0).all())
            certainty += float(w @ (1.0 / (lead == 0).sum(axis=1)))
        return _Shape(separable, certainty / self.total, float(np.sqrt(spread / self.total)))


def _likelihood(scores: ClassScores, codes: IntArray, weight: FloatArray | None) -> _Likelihood:
    """Prepare the likelihood of validated class scores; samples of weight 0 are left out."""
    values: Array = scores.values
    if weight is None:
        weight = np.ones(codes.size)
    else:
        _, weight, values, codes = drop_zero_weights(weight, values, codes)
    kept_scores = ClassScores(values, are_logits=scores.are_logits)
    largest = 0.0
    for rows in row_blocks(*values.shape):
        z = kept_scores.log_scores(rows)
        largest = max(largest, float(np.abs(z[np.isfinite(z)]).max(initial=0.0)))
    return _Likelihood(kept_scores, codes, weight, largest or 1.0)


def temperature_of(
    scores: ClassScores, codes: IntArray, weight: FloatArray | None = None
) -> Temperature:
    """Fit the temperature of validated class scores, which may be probabilities."""
    model = _likelihood(scores, codes, weight)
    _refuse_impossible(model)
    before = 1.0 * model.scale
    inverse, note = _inverse(model, model.shape(), before)
    nll = {at: model.nll(at) for at in (before, inverse)}
    if nll[inverse] > nll[before]:
        # Two temperatures a rounding apart.
        inverse = before
    return Temperature(
        temperature=model.scale / inverse,
        nll_before=nll[before],
        nll_after=nll[inverse],
        n=int(model.codes.size),
        note=note,
    )


def _refuse_impossible(model: _Likelihood) -> None:
    if model.scores.are_logits:
        return
    rows = np.arange(model.codes.size)
    impossible = int((model.scores.values[rows, model.codes] == 0).sum())
    if impossible:
        raise DomainError(
            f"`probabilities` must not be 0 for the true class; got {impossible} such samples, "
            "which no temperature makes likely. Give logits, or raise the probabilities to the "
            "smallest number their storage holds (6e-8 for float16)."
        )


def _inverse(model: _Likelihood, shape: _Shape, before: float) -> tuple[float, str]:
    """Return the best inverse temperature of the scaled scores, and what to know about it."""
    if shape.spread == 0:
        return before, "the classes of each sample have equal scores: no temperature matters"
    if shape.separable:
        return _of_separable(model, shape, before)
    flattest = 1.0 / (_FLAT * shape.spread)
    # The derivative only rises: if it is not negative here, the minimum is at a higher one.
    if model.nll_and_slope(flattest)[1] >= 0:
        note = (
            "the scores are no better than guessing on these data, so the higher the temperature "
            f"the better: it is bounded at {_FLAT:g} times the spread of the logits"
        )
        return min(before, flattest), note
    return _minimum(model, 1.0 / shape.spread), ""


def _of_separable(model: _Likelihood, shape: _Shape, before: float) -> tuple[float, str]:
    """Bound the temperature by the rule of succession, where the NLL falls towards 0."""
    from scipy.optimize import brentq

    said = "no sample is wrong here, so the lower the temperature the better: it is "
    goal = (model.total + 1) / (model.total + 2)
    if shape.certainty <= goal or model.label_probability(before) >= goal:
        return before, said + "left at 1"

    def short_of_goal(log_inverse: float) -> float:
        return model.label_probability(float(np.exp(log_inverse))) - goal

    low = high = float(np.log(before))
    while short_of_goal(high) < 0:
        high += 1.0
    found = float(np.exp(brentq(short_of_goal, low, high, xtol=1e-12)))
    return found, said + "bounded where the mean probability of the labels is (n + 1) / (n + 2)"


def _minimum(model: _Likelihood, start: float) -> float:
    """Minimize the NLL over the logarithm of the temperature."""
    from scipy.optimize import brentq, minimize

    def nll(log_temperature: FloatArray) -> tuple[float, FloatArray]:
        inverse = float(np.exp(-log_temperature[0]))
        value, slope = model.nll_and_slope(inverse)
        return value, np.array([-inverse * slope])

    def slope(log_temperature: float) -> float:
        return model.nll_and_slope(float(np.exp(-log_temperature)))[1]

    found = minimize(nll, [-np.log(start)], jac=True, method="L-BFGS-B", options={"gtol": 1e-8})
    # The value of a minimum is flat: its place is known better from the root of the derivative,
    # which is positive below it and negative above.
    low = high = float(found.x[0])
    step = 1e-4
    while slope(low) < 0:
        low -= step
        step *= 4
    while slope(high) > 0:
        high += step
        step *= 4
    return (
        float(np.exp(-brentq(slope, low, high, xtol=1e-14))) if high > low else float(np.exp(-low))
    )
