"""Thresholds by what the calibration data show, without a guarantee; and Chow's rule."""

import numpy as np

from abstain._foundation import checks
from abstain._foundation.scored import validate_samples_on_host
from abstain.thresholds import _choice
from abstain.thresholds._choice import ROUNDING, Aim
from abstain.thresholds.entry import Rule
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray


def for_coverage(
    confidence: AnyArray, *, coverage: float, weight: AnyArray | None = None
) -> DecisionRule:
    """Choose the highest threshold that keeps at least a share of the samples.

    Answers: where do I put the threshold to answer this share?

    Parameters
    ----------
    confidence : array of shape (n,)
        Of samples like those to come.
    coverage : float
        The share to accept at least, in (0, 1].
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    DecisionRule
        Always with a threshold; without a guarantee.

    Raises
    ------
    ShapeError, DomainError
        Bad values; `coverage` outside (0, 1].

    See Also
    --------
    coverage_guarantee : With probability 1 - delta on the samples to come.

    Notes
    -----
    Ties are accepted together, so that more may be kept than asked for; `coverage` of the rule
    says how much. Cost: one sort.

    Examples
    --------
    >>> import abstain as ab
    >>> rule = ab.thresholds.for_coverage([0.9, 0.8, 0.7, 0.7], coverage=0.6)
    >>> rule.threshold, rule.coverage
    (0.7, 1.0)
    """
    s = _choice.without_loss(confidence, weight)
    share = checks.fraction(coverage, "coverage")
    if share == 0:
        share = _choice.inside(coverage, "coverage", hint="A rule that accepts nothing needs none.")
    through = s.groups.cumulative_weight
    needed = share * s.groups.total_weight * (1 - ROUNDING)
    index = min(int(np.searchsorted(through, needed)), through.size - 1)
    return _choice.chosen(s, index, Aim("coverage", share), has_losses=False)


def for_risk(
    confidence: AnyArray, loss: AnyArray, *, max_risk: float, weight: AnyArray | None = None
) -> DecisionRule:
    """Choose the largest coverage whose risk on these data is at most a target; no guarantee.

    Answers: how much could I have answered here with a mean loss of at most this?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        Finite confidences, higher is more trusted; finite losses, not negative.
    max_risk : float
        The largest selective risk, at least 0.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    DecisionRule
        Without a guarantee. Unattainable, with the reason, when the risk is above the target at
        every threshold.

    Raises
    ------
    ShapeError, DomainError
        Bad values; a negative `max_risk`.

    See Also
    --------
    sgr, learn_then_test : With probability 1 - delta on the samples to come.

    Notes
    -----
    The choice looks for luck: on new data the risk is above the target about every second time,
    more often when few samples are accepted. Cost: one sort.

    Examples
    --------
    >>> import abstain as ab
    >>> rule = ab.thresholds.for_risk([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 0], max_risk=0.3)
    >>> rule.threshold, rule.risk
    (0.6, 0.25)
    """
    s = validate_samples_on_host(confidence, loss, weight)
    target = checks.fraction(max_risk, "max_risk", high=float("inf"))
    _choice.refuse_percent(target, float(s.loss.max()))
    # As a ratio: 29/100 is the number 0.29, but 0.29 * 100 is less than 29.
    risk = s.groups.cumulative_loss / s.groups.cumulative_weight
    index = _choice.last_with(risk <= target * (1 + ROUNDING))
    aim = Aim("risk", target)
    if index < 0:
        reason = (
            f"no threshold has a selective risk of at most {target:g} on these "
            f"{s.groups.n_samples} samples; the least is {risk.min():.4g}"
        )
        return _choice.unattainable(s, aim, reason)
    return _choice.chosen(s, index, aim)


def for_cost(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    abstention_cost: float,
    weight: AnyArray | None = None,
) -> DecisionRule:
    """Choose the threshold of the least mean cost on these data; no guarantee.

    Answers: where do I put the threshold when abstaining costs this much?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        Finite confidences, higher is more trusted; the cost of each answer, not negative.
    abstention_cost : float
        Cost of abstaining on one sample, at least 0, in the unit of the loss.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    DecisionRule
        Without a guarantee. Of equal costs the largest coverage. Unattainable, with the reason,
        when abstaining on everything is cheaper than any threshold.

    Raises
    ------
    ShapeError, DomainError
        Bad values; a negative `abstention_cost`.

    See Also
    --------
    chow : The same from calibrated probabilities, without data.

    Notes
    -----
    Minimizes the mean of the loss where accepted and the cost of abstaining elsewhere. Cost: one
    sort.

    References
    ----------
    .. [1] Chow (1970), On optimum recognition error and reject tradeoff,
       https://doi.org/10.1109/TIT.1970.1054406

    Examples
    --------
    >>> import abstain as ab
    >>> rule = ab.thresholds.for_cost([0.9, 0.8, 0.7, 0.6], [0, 0, 1, 1], abstention_cost=0.3)
    >>> rule.threshold, rule.coverage
    (0.8, 0.5)
    """
    s = validate_samples_on_host(confidence, loss, weight)
    cost = checks.fraction(abstention_cost, "abstention_cost", high=float("inf"))
    groups = s.groups
    # Against abstaining on everything, in units of weight.
    change = groups.cumulative_loss - cost * groups.cumulative_weight
    slack = ROUNDING * (float(groups.cumulative_loss[-1]) + cost * groups.total_weight)
    least = min(float(change.min()), 0.0)
    index = _choice.last_with(change <= least + slack)
    aim = Aim("cost", cost)
    if index < 0:
        best = float(change.min()) / groups.total_weight
        reason = (
            f"abstaining on everything is cheaper than any threshold on these {groups.n_samples} "
            f"samples, by at least {best:.4g} a sample"
        )
        return _choice.unattainable(s, aim, reason)
    return _choice.chosen(s, index, aim)


def chow(*, abstention_cost: float) -> DecisionRule:
    """Return Chow's rule: accept when the probability of being right is at least 1 - cost.

    Answers: where is the threshold when confidences are calibrated probabilities?

    Parameters
    ----------
    abstention_cost : float
        Cost of abstaining, in [0, 1], where an error costs 1.

    Returns
    -------
    DecisionRule
        Made without data (n = 0), without a guarantee.

    Raises
    ------
    InputError, DomainError
        `abstention_cost` is no number in [0, 1].

    See Also
    --------
    for_cost : From data, for any confidence and loss.

    Notes
    -----
    The least cost possible where the confidence is the true probability of being right. It rarely
    is: calibrate first (`abstain.calibration`), then `check`.

    References
    ----------
    .. [1] Chow (1970), On optimum recognition error and reject tradeoff,
       https://doi.org/10.1109/TIT.1970.1054406

    Examples
    --------
    >>> import abstain as ab
    >>> ab.thresholds.chow(abstention_cost=0.25).threshold
    0.75
    """
    cost = checks.fraction(abstention_cost, "abstention_cost")
    return DecisionRule("chow", 1.0 - cost, target=cost, scale="probability")


ENTRIES = (
    Rule(
        "coverage",
        "Coverage",
        for_coverage,
        "The highest threshold that keeps at least this share of the samples.",
        "Geifman and El-Yaniv (2017)",
        needs_loss=False,
        loss="no loss needed",
        aim="coverage",
    ),
    Rule(
        "risk",
        "Empirical risk",
        for_risk,
        "The largest coverage whose risk on the calibration data is at most the target.",
        "El-Yaniv and Wiener (2010)",
        aim="selective risk",
    ),
    Rule(
        "cost",
        "Least cost",
        for_cost,
        "The threshold of least mean cost on the calibration data, abstaining having its price.",
        "Chow (1970)",
        aim="cost",
        said="Nothing is promised: it has the lowest mean cost on the calibration data, where an "
        "abstention costs {target:g} and an answer its loss.",
    ),
    Rule(
        "chow",
        "Chow's rule",
        chow,
        "Accept when the probability of being right is at least 1 minus the cost of abstaining.",
        "Chow (1970)",
        needs_loss=False,
        needs_data=False,
        loss="no loss needed",
        aim="cost",
        of_probability=True,
        said="It answers when the chance to be wrong is at most {target:g}, the cost of an "
        "abstention. That is the best rule if the confidences are true probabilities; nothing is "
        "promised if they are not.",
    ),
)
