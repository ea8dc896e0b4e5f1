"""Choose thresholds on calibration data without a guarantee, or by Chow's rule."""

import numpy as np

from abstain._foundation import checks
from abstain._foundation.scored import validate_samples_on_host
from abstain.thresholds import _choice
from abstain.thresholds._choice import ROUNDING, RuleTarget
from abstain.thresholds.catalogue import Rule
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray


def for_coverage(
    confidence: AnyArray, *, coverage: float, weight: AnyArray | None = None
) -> DecisionRule:
    """Choose the highest threshold that accepts at least a share of the samples.

    Answers: at which threshold is this share of the samples accepted?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidences of samples from the population in which the rule is applied.
    coverage : float
        Smallest share of accepted samples, in (0, 1].
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    DecisionRule
        A rule without a guarantee, which always has a threshold.

    Raises
    ------
    ShapeError, DomainError
        If values are invalid, or `coverage` is outside (0, 1].

    See Also
    --------
    coverage_guarantee : Guarantees a coverage in the population with probability 1 - delta.

    Notes
    -----
    Tied samples are accepted together, so the coverage may be larger than requested. The attribute
    `coverage` of the rule contains the actual coverage. The cost is one sort.

    Examples
    --------
    >>> import abstain as ab
    >>> rule = ab.thresholds.for_coverage([0.9, 0.8, 0.7, 0.7], coverage=0.6)
    >>> rule.threshold, rule.coverage
    (0.7, 1.0)
    """
    s = _choice.scored_without_loss(confidence, weight)
    share = checks.fraction(coverage, "coverage")
    if share == 0:
        hint = "A rule that accepts nothing needs no threshold."
        share = _choice.check_open_interval(coverage, "coverage", hint=hint)
    cumulative_weight = s.groups.cumulative_weight
    required_weight = share * s.groups.total_weight * (1 - ROUNDING)
    index = int(np.searchsorted(cumulative_weight, required_weight))
    index = min(index, cumulative_weight.size - 1)
    return _choice.build_rule(s, index, RuleTarget("coverage", share), has_losses=False)


def for_risk(
    confidence: AnyArray, loss: AnyArray, *, max_risk: float, weight: AnyArray | None = None
) -> DecisionRule:
    """Choose the largest coverage whose risk on these data is at most a target.

    Answers: how many of these samples can be accepted with at most this mean loss?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        Finite confidences, where higher means more trusted, and finite losses of at least 0.
    max_risk : float
        Largest selective risk, at least 0.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    DecisionRule
        A rule without a guarantee. If the risk exceeds the target at every threshold, the rule has
        no threshold and states the reason.

    Raises
    ------
    ShapeError, DomainError
        If values are invalid, or `max_risk` is negative.

    See Also
    --------
    sgr, learn_then_test : Guarantee a risk in the population with probability 1 - delta.

    Notes
    -----
    The observed risk at the selected threshold is optimistic. On new data, the risk of the rule
    exceeds the target in about half of the cases, and more often if few samples are accepted. The
    cost is one sort.

    Examples
    --------
    >>> import abstain as ab
    >>> rule = ab.thresholds.for_risk([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 0], max_risk=0.3)
    >>> rule.threshold, rule.risk
    (0.6, 0.25)
    """
    s = validate_samples_on_host(confidence, loss, weight)
    target = checks.fraction(max_risk, "max_risk", high=float("inf"))
    _choice.check_not_percent(target, float(s.loss.max()))
    # Ratios are compared, because 29/100 equals 0.29 in floating point but 0.29 * 100 is below 29.
    risk = s.groups.cumulative_loss / s.groups.cumulative_weight
    index = _choice.last_true_index(risk <= target * (1 + ROUNDING))
    aim = RuleTarget("risk", target)
    if index < 0:
        reason = (
            f"no threshold has a selective risk of at most {target:g} on these "
            f"{s.groups.n_samples:,} samples; the lowest risk is {risk.min():.4g}"
        )
        return _choice.build_unattainable_rule(s, aim, reason)
    return _choice.build_rule(s, index, aim)


def for_cost(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    abstention_cost: float,
    weight: AnyArray | None = None,
) -> DecisionRule:
    """Choose the threshold with the lowest mean cost on these data.

    Answers: which threshold is best if an abstention has this cost?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        Finite confidences, where higher means more trusted, and the cost of each answer, at least
        0.
    abstention_cost : float
        Cost of an abstention, at least 0, in the unit of the loss.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    DecisionRule
        A rule without a guarantee. If several thresholds have the same cost, the lowest threshold
        is selected. If abstaining on every sample is cheaper than any threshold, the rule has no
        threshold and states the reason.

    Raises
    ------
    ShapeError, DomainError
        If values are invalid, or `abstention_cost` is negative.

    See Also
    --------
    chow : Optimal threshold for calibrated probabilities, without data.

    Notes
    -----
    The cost of an accepted sample is its loss, and the cost of a rejected sample is
    `abstention_cost`. The rule minimizes the mean cost over all samples. The computation requires
    one sort.

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
    # Total cost of each threshold minus the total cost of abstaining on every sample.
    excess_cost = groups.cumulative_loss - cost * groups.cumulative_weight
    tolerance = ROUNDING * (float(groups.cumulative_loss[-1]) + cost * groups.total_weight)
    lowest = min(float(excess_cost.min()), 0.0)
    index = _choice.last_true_index(excess_cost <= lowest + tolerance)
    aim = RuleTarget("cost", cost)
    if index < 0:
        best = float(excess_cost.min()) / groups.total_weight
        reason = (
            f"abstaining on all of these {groups.n_samples:,} samples costs less than any "
            f"threshold; the difference is at least {best:.4g} per sample"
        )
        return _choice.build_unattainable_rule(s, aim, reason)
    return _choice.build_rule(s, index, aim)


def chow(*, abstention_cost: float) -> DecisionRule:
    """Return Chow's rule, which accepts a sample if P(correct) is at least 1 - cost.

    Answers: which threshold is optimal if the confidences are calibrated probabilities?

    Parameters
    ----------
    abstention_cost : float
        Cost of abstaining, in [0, 1], relative to the cost of an error.

    Returns
    -------
    DecisionRule
        A rule without data (n = 0) and without a guarantee.

    Raises
    ------
    InputError, DomainError
        If `abstention_cost` is not a number in [0, 1].

    See Also
    --------
    for_cost : Threshold with the lowest cost on data, for any confidence and loss.

    Notes
    -----
    The rule minimizes the expected cost if the confidence is the true probability of a correct
    prediction. Confidences are rarely true probabilities. Calibrate the confidences first
    (`abstain.calibration`), then use `check`.

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
        "The highest threshold that accepts at least this share of the samples.",
        "Geifman and El-Yaniv (2017)",
        needs_loss=False,
        loss="no loss needed",
        target_quantity="coverage",
    ),
    Rule(
        "risk",
        "Empirical risk",
        for_risk,
        "The largest coverage whose risk on the calibration data is at most the target.",
        "El-Yaniv and Wiener (2010)",
        target_quantity="selective risk",
    ),
    Rule(
        "cost",
        "Least cost",
        for_cost,
        "The threshold with the lowest mean cost on the calibration data.",
        "Chow (1970)",
        target_quantity="cost",
        statement="Nothing is guaranteed: it has the lowest mean cost on the calibration data, if "
        "an abstention costs {target:g} and an answer its loss.",
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
        target_quantity="cost",
        uses_probability=True,
        statement="It answers if the probability of an error is at most {target:g}, the cost of an "
        "abstention. This is optimal if the confidences are true probabilities; otherwise nothing "
        "is guaranteed.",
    ),
)
