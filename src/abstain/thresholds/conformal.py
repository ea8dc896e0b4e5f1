"""Choose thresholds that control the generalized risk on average or guarantee a coverage."""

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain._foundation.scored import Scored
from abstain.shift import DensityRatios
from abstain.thresholds import _choice
from abstain.thresholds._choice import ROUNDING, RuleTarget
from abstain.thresholds._walks import few_samples_hint, sample_by_ratio, weight_by_ratio
from abstain.thresholds.binomial import lower_bound
from abstain.thresholds.catalogue import Rule
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray, Rng


def conformal_risk_control(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    max_risk: float,
    max_loss: float = 1.0,
    weight: AnyArray | None = None,
    ratio: AnyArray | DensityRatios | None = None,
) -> DecisionRule:
    """Choose the largest coverage whose generalized risk is controlled on average.

    Answers: how many samples can I answer if the generalized risk, averaged over calibration sets,
    must be at most this value?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidences of held-out samples, which neither the model nor the confidence score was
        fitted on.
    loss : array of shape (n,)
        Losses in [0, `max_loss`].
    max_risk : float
        Largest generalized risk (coverage x selective risk), above 0.
    max_loss : float, default=1.0
        Largest possible loss, above 0. The paper denotes it by B.
    weight : None
        Must be None, because the samples must be exchangeable.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`) that control the risk in another population.

    Returns
    -------
    DecisionRule
        A rule whose generalized risk is guaranteed in expectation, so it has no delta. If n is too
        small or the most confident samples fail too often, the rule has no threshold and states
        the reason.

    Raises
    ------
    InputError
        For weights.
    ShapeError, DomainError
        If values are invalid, a loss is above `max_loss`, or `max_risk` or `max_loss` is not above
        0.

    See Also
    --------
    learn_then_test : Guarantees the generalized or selective risk with probability 1 - delta.

    Notes
    -----
    The rule selects the lowest threshold with (n R + B) / (n + 1) <= max_risk, where R is the
    generalized risk on the calibration data. The theorem requires a risk that never increases with
    the threshold, so it does not apply to the selective risk. The guarantee holds on average over
    calibration sets. For about half of the calibration sets, the risk of the rule is slightly
    above the target.

    With ratios w, the rule selects the lowest threshold with
    (sum w loss + W B) / (sum w + W) <= max_risk, where W is the largest ratio. In the papers [1]_
    [2]_, W is the ratio of the new sample, so each sample has its own threshold. The left side
    increases with W, so the largest ratio is valid for all samples.

    The cost is one sort.

    References
    ----------
    .. [1] Angelopoulos, Bates, Fisch, Lei and Schuster (2022), Conformal risk control,
       theorem 1, https://arxiv.org/abs/2208.02814
    .. [2] Tibshirani, Barber, Candes and Ramdas (2019), Conformal prediction under covariate
       shift, https://arxiv.org/abs/1904.06019

    Examples
    --------
    >>> import abstain as ab
    >>> confidence, loss = [0.9, 0.8, 0.7, 0.6, 0.5], [0, 0, 1, 1, 1]
    >>> rule = ab.thresholds.conformal_risk_control(confidence, loss, max_risk=0.4)
    >>> rule.threshold, rule.in_expectation
    (0.7, True)
    """
    s = _choice.check_calibration_data(confidence, loss, weight, method="conformal_risk_control")
    largest = _choice.check_open_interval(max_loss, "max_loss", high=float("inf"))
    is_too_large = s.loss > largest
    checks.reject_entries("loss", f"must be at most max_loss = {largest:g}", s.loss, is_too_large)
    target = _choice.check_open_interval(max_risk, "max_risk", high=float("inf"))
    _choice.check_not_percent(target, largest)
    aim = RuleTarget("conformal_risk_control", target, "generalized risk", in_expectation=True)
    s, aim = weight_by_ratio(s, aim, ratio)
    unit = aim.max_ratio or 1.0
    corrected = (s.groups.cumulative_loss / unit + largest) / (s.groups.total_weight / unit + 1)
    last = _choice.last_true_index(corrected <= target * (1 + ROUNDING))
    if last >= 0:
        return _choice.build_rule(s, last, aim, bound=target)
    return _choice.build_unattainable_rule(s, aim, _uncontrolled(s, aim, largest))


def _uncontrolled(s: Scored, aim: RuleTarget, largest: float) -> str:
    """Return the reason why no threshold controls the risk."""
    target = aim.target
    # Total weight in units of the largest ratio, or the number of samples without ratios.
    relative_weight = s.groups.total_weight / (aim.max_ratio or 1.0)
    if largest > target * (relative_weight + 1):
        required = _choice.format_count(largest / target - 1)
        weight_text = ""
        if aim.max_ratio is not None:
            weight_text = f", with a weight of {relative_weight:.4g} largest ratios,"
        return (
            f"{s.n_rows:,} samples{weight_text} cannot control a generalized risk of {target:g}; "
            f"this requires at least {required} samples"
        )
    wrong, size = float(s.groups.cumulative_loss[0]), int(s.groups.cumulative_count[0])
    return (
        f"the {size:,} most confident of {s.n_rows:,} samples have a total loss of {wrong:g}, so "
        f"accepting only these samples exceeds a generalized risk of {target:g}"
    )


def coverage_guarantee(
    confidence: AnyArray,
    *,
    coverage: float,
    delta: float,
    weight: AnyArray | None = None,
    ratio: AnyArray | DensityRatios | None = None,
    rng: Rng = 0,
) -> DecisionRule:
    """Choose the highest threshold whose coverage is guaranteed.

    Answers: how high can the threshold be if at least this share must be accepted, with confidence
    1 - delta?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidences of samples from the population in which the rule is applied. No labels are
        required.
    coverage : float
        Smallest share of accepted samples, between 0 and 1.
    delta : float
        Probability, over calibration sets, that the coverage is smaller; between 0 and 1.
    weight : None
        Must be None, because the bound counts independent samples of equal weight.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`) that guarantee the coverage in another population. Samples
        are selected as in `sgr`. Prefer unlabeled samples of the other population if they are
        available.
    rng : int, Generator or None, default=0
        Seed or generator of the random selection of samples. Ignored without ratios.

    Returns
    -------
    DecisionRule
        A rule with the guarantee "coverage". Its `bound` is the certified lower bound of the
        coverage. If n is too small, the rule has no threshold and states the reason.

    Raises
    ------
    InputError
        For weights.
    ShapeError, DomainError
        If values are invalid, or `coverage` or `delta` is not between 0 and 1.

    Notes
    -----
    The threshold is the k-th largest confidence, where k is the smallest number with P(Bin(n,
    coverage) >= k) <= delta. The coverage at a fixed rank has a beta distribution for any
    continuous distribution of the confidences, and ties can only increase the coverage. The cost is
    one sort.

    References
    ----------
    .. [1] Wilks (1941), Determination of sample sizes for setting tolerance limits,
       https://doi.org/10.1214/aoms/1177731788

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rule = ab.thresholds.coverage_guarantee(np.arange(1000), coverage=0.8, delta=0.05)
    >>> rule.accepted, rule.bound >= 0.8
    (822, True)
    """
    _choice.check_no_weights(weight, method="coverage_guarantee")
    s = _choice.scored_without_loss(confidence)
    share = _choice.check_open_interval(coverage, "coverage")
    aim = RuleTarget("coverage_guarantee", share, "coverage", _choice.check_delta(delta))
    s, aim = sample_by_ratio(s, aim, ratio, rng)
    rank = _smallest_rank(s.n_rows, share, delta)
    if rank > s.n_rows:
        required = _choice.format_count(np.log(delta) / np.log(share))
        reason = (
            f"{s.n_rows:,} samples cannot guarantee a coverage of {share:g} with delta {delta:g}; "
            f"this requires at least {required} samples{few_samples_hint(aim)}"
        )
        return _choice.build_unattainable_rule(s, aim, reason, has_losses=False)
    index = int(np.searchsorted(s.groups.cumulative_count, rank))
    bound = max(lower_bound(s.n_rows, rank, delta), share)
    return _choice.build_rule(s, index, aim, bound=bound, has_losses=False)


def _smallest_rank(n: int, share: float, delta: float) -> int:
    """Return the smallest k with P(Bin(n, share) >= k) <= delta, or n + 1 if none exists."""
    ranks = np.arange(1, n + 1)
    is_enough = special.bdtrc(ranks - 1.0, np.int64(n), share) <= delta
    return int(np.argmax(is_enough)) + 1 if is_enough.any() else n + 1


ENTRIES = (
    Rule(
        "conformal_risk_control",
        "Conformal risk control",
        conformal_risk_control,
        "The largest coverage whose generalized risk is at most the target on average.",
        "Angelopoulos et al. (2022)",
        guarantee="generalized risk, in expectation",
        loss="bounded losses",
        guarantees=("generalized risk",),
    ),
    Rule(
        "coverage_guarantee",
        "Guaranteed coverage",
        coverage_guarantee,
        "The highest threshold whose true coverage is too small with probability at most delta.",
        "Wilks (1941)",
        needs_loss=False,
        guarantee="coverage, with probability 1 - delta",
        loss="no loss needed",
        guarantees=("coverage",),
    ),
)
