"""Rules without a sequence of tests: conformal risk control, and a guaranteed coverage."""

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

    Answers: how many samples can I answer with at most this generalized risk, on average over
    calibration sets?

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
        Largest possible loss, above 0: B of the paper.
    weight : None
        Weights are not accepted, because the samples must be exchangeable.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`), to control the risk in another population.

    Returns
    -------
    DecisionRule
        A rule with the guarantee "generalized risk", in expectation: it has no delta. The rule is
        unattainable, with a reason, if n is too small or the most confident samples fail too often.

    Raises
    ------
    InputError
        For weights.
    ShapeError, DomainError
        For invalid values, losses above `max_loss`, or if `max_risk` or `max_loss` is not above 0.

    See Also
    --------
    learn_then_test : The generalized or selective risk with probability 1 - delta.

    Notes
    -----
    The threshold is the lowest one with (n R + B) / (n + 1) <= max_risk, where R is the generalized
    risk on the calibration data. The theorem requires that the accepted loss never increases with
    the threshold. The selective risk may increase and decrease, so there is no such rule for it.
    The guarantee holds on average over calibration sets: about every second set misses the target
    by a small amount.

    With ratios w, it is the lowest threshold with (sum w loss + W B) / (sum w + W) <= max_risk,
    where W is the largest ratio. In the papers, W is the ratio of the sample to decide on [1]_
    [2]_, so that each sample has its own threshold. The left side increases with W, so the largest
    ratio is valid for all samples.

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
    """Return the reason: too few samples, or too many failures among the most confident ones."""
    target = aim.target
    # Total weight in units of the largest ratio, or the number of samples without ratios.
    relative_weight = s.groups.total_weight / (aim.max_ratio or 1.0)
    if largest > target * (relative_weight + 1):
        required = _choice.format_count(largest / target - 1)
        weight_text = ""
        if aim.max_ratio is not None:
            weight_text = f", with a weight of {relative_weight:.4g} largest ratios,"
        return (
            f"{s.n_rows} samples{weight_text} cannot control a generalized risk of {target:g}, "
            f"which requires at least {required}"
        )
    wrong, size = float(s.groups.cumulative_loss[0]), int(s.groups.cumulative_count[0])
    return (
        f"accepting the {size} most confident of {s.n_rows} samples alone, with a loss of "
        f"{wrong:g} in all, exceeds a generalized risk of {target:g}"
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
    """Choose the highest threshold whose true coverage is guaranteed.

    Answers: how selective can I be and still answer at least this share, with confidence
    1 - delta?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidences of samples from the population of use. Labels are not needed.
    coverage : float
        Smallest share of accepted samples, between 0 and 1.
    delta : float
        Probability, over calibration sets, that the coverage is smaller; between 0 and 1.
    weight : None
        Weights are not accepted, because the bound counts independent samples of equal weight.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`), to guarantee the coverage in another population. Samples
        are drawn as in `sgr`. Unlabeled samples of that population are better.
    rng : int, Generator or None, default=0
        Random numbers of that draw; not used without ratios.

    Returns
    -------
    DecisionRule
        A rule with the guarantee "coverage"; `bound` is the certified lower bound of the coverage.
        The rule is unattainable, with a reason, if n is too small.

    Raises
    ------
    InputError
        For weights.
    ShapeError, DomainError
        For invalid values, or if `coverage` or `delta` is not between 0 and 1.

    Notes
    -----
    The threshold is the k-th largest confidence, for the smallest k with P(Bin(n, coverage) >= k)
    <= delta. The coverage at a fixed rank has a beta distribution for any distribution of the
    confidences, and ties only increase it. The cost is one sort.

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
    s, aim = sample_by_ratio(
        s,
        RuleTarget("coverage_guarantee", share, "coverage", _choice.check_delta(delta)),
        ratio,
        rng,
    )
    rank = _smallest_rank(s.n_rows, share, delta)
    if rank > s.n_rows:
        required = _choice.format_count(np.log(delta) / np.log(share))
        reason = (
            f"{s.n_rows} samples cannot guarantee a coverage of {share:g} with delta {delta:g}, "
            f"which takes at least {required}{few_samples_hint(aim)}"
        )
        return _choice.build_unattainable_rule(s, aim, reason, has_losses=False)
    index = int(np.searchsorted(s.groups.cumulative_count, rank))
    bound = max(lower_bound(s.n_rows, rank, delta), share)
    return _choice.build_rule(s, index, aim, bound=bound, has_losses=False)


def _smallest_rank(n: int, share: float, delta: float) -> int:
    """Return the smallest k with P(Bin(n, share) >= k) <= delta; n + 1 if there is none."""
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
