"""Guarantees that need no walk: risk control on average, and a guaranteed coverage."""

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain._foundation.scored import Scored
from abstain.shift import DensityRatios
from abstain.thresholds import _choice
from abstain.thresholds._choice import ROUNDING, Aim
from abstain.thresholds._importance import drawn, few_drawn, weighted
from abstain.thresholds.binomial import lower
from abstain.thresholds.entry import Rule
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

    Answers: how much can I answer so that, on average over calibration sets, the loss on answered
    samples, spread over all samples, stays at most this?

    Parameters
    ----------
    confidence : array of shape (n,)
        Of held-out samples that neither the model nor the confidence score was fitted on.
    loss : array of shape (n,)
        In [0, `max_loss`].
    max_risk : float
        The generalized risk (coverage x selective risk) to keep, above 0.
    max_loss : float, default=1.0
        The largest loss that is possible, above 0: B of the paper.
    weight : None
        Weights are refused: the samples must be exchangeable.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`), to control the risk of data of another law.

    Returns
    -------
    DecisionRule
        With the guarantee "generalized risk", in expectation: no delta. Unattainable, with the
        reason, when n is too small or the most confident samples are wrong too often.

    Raises
    ------
    InputError
        Weights.
    ShapeError, DomainError
        Bad values; losses above `max_loss`; `max_risk` or `max_loss` not above 0.

    See Also
    --------
    learn_then_test : The generalized or selective risk with probability 1 - delta.

    Notes
    -----
    The lowest threshold with (n R + B) / (n + 1) <= max_risk, R the generalized risk on the
    calibration data. The loss where accepted never grows with the threshold, which is what the
    theorem needs; the selective risk does grow and shrink, so it has no such rule. On average over
    calibration sets: a single set may miss the target, about every second one by a little.

    With ratios w it is the lowest threshold with (sum w loss + W B) / (sum w + W) <= max_risk, W
    the largest ratio. The papers take the ratio of the sample to decide on for W [1]_ [2]_, and
    with it a threshold of its own for each; the left side grows with W, so the largest serves all.

    Cost: one sort.

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
    s = _choice.guaranteed(confidence, loss, weight, method="conformal_risk_control")
    largest = _choice.inside(max_loss, "max_loss", high=float("inf"))
    above = s.loss > largest
    checks.reject_entries("loss", f"must be at most max_loss = {largest:g}", s.loss, above)
    target = _choice.inside(max_risk, "max_risk", high=float("inf"))
    _choice.refuse_percent(target, largest)
    aim = Aim("conformal_risk_control", target, "generalized risk", in_expectation=True)
    s, aim = weighted(s, aim, ratio)
    unit = aim.largest or 1.0
    corrected = (s.groups.cumulative_loss / unit + largest) / (s.groups.total_weight / unit + 1)
    last = _choice.last_with(corrected <= target * (1 + ROUNDING))
    if last >= 0:
        return _choice.chosen(s, last, aim, bound=target)
    return _choice.unattainable(s, aim, _uncontrolled(s, aim, largest))


def _uncontrolled(s: Scored, aim: Aim, largest: float) -> str:
    """Say why no threshold controls the risk: too few samples, or the first are wrong too often."""
    target, worth = aim.target, s.groups.total_weight / (aim.largest or 1.0)
    if largest > target * (worth + 1):
        least = _choice.counted(largest / target - 1)
        few = f", worth {worth:.4g} of the largest ratio," if aim.largest is not None else ""
        return (
            f"{s.n_rows} samples{few} cannot control a generalized risk of {target:g}, which takes "
            f"at least {least}"
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
        Of samples like those to come. Labels are not needed.
    coverage : float
        The least share to accept, between 0 and 1.
    delta : float
        The chance that less is accepted, over calibration sets; between 0 and 1.
    weight : None
        Weights are refused: the bound counts independent samples of equal weight.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`), to promise the coverage of data of another law; samples
        are drawn by them as in `sgr`. Samples of that law without labels serve better.
    rng : int, Generator or None, default=0
        Of that draw; without ratios nothing is drawn.

    Returns
    -------
    DecisionRule
        With the guarantee "coverage"; `bound` is the certified lower bound of the coverage.
        Unattainable, with the reason, when n is too small.

    Raises
    ------
    InputError
        Weights.
    ShapeError, DomainError
        Bad values; `coverage` or `delta` not between 0 and 1.

    Notes
    -----
    The threshold is the k-th most confident sample for the least k with P(Bin(n, coverage) >= k)
    <= delta. The coverage of a fixed rank has a beta law whatever the law of the confidences, and
    ties only raise it. Cost: one sort.

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
    _choice.refuse_weights(weight, method="coverage_guarantee")
    s = _choice.without_loss(confidence)
    share = _choice.inside(coverage, "coverage")
    s, aim = drawn(
        s, Aim("coverage_guarantee", share, "coverage", _choice.delta_of(delta)), ratio, rng
    )
    rank = _least_rank(s.n_rows, share, delta)
    if rank > s.n_rows:
        least = _choice.counted(np.log(delta) / np.log(share))
        reason = (
            f"{s.n_rows} samples cannot guarantee a coverage of {share:g} with delta {delta:g}, "
            f"which takes at least {least}{few_drawn(aim)}"
        )
        return _choice.unattainable(s, aim, reason, has_losses=False)
    index = int(np.searchsorted(s.groups.cumulative_count, rank))
    bound = max(lower(s.n_rows, rank, delta), share)
    return _choice.chosen(s, index, aim, bound=bound, has_losses=False)


def _least_rank(n: int, share: float, delta: float) -> int:
    """Return the least k with P(Bin(n, share) >= k) <= delta; n + 1 when there is none."""
    ranks = np.arange(1, n + 1)
    fine = special.bdtrc(ranks - 1.0, np.int64(n), share) <= delta
    return int(np.argmax(fine)) + 1 if fine.any() else n + 1


ENTRIES = (
    Rule(
        "conformal_risk_control",
        "Conformal risk control",
        conformal_risk_control,
        "The largest coverage whose generalized risk is at most the target on average.",
        "Angelopoulos et al. (2022)",
        guarantee="generalized risk, in expectation",
        loss="bounded losses",
        promises=("generalized risk",),
    ),
    Rule(
        "coverage_guarantee",
        "Guaranteed coverage",
        coverage_guarantee,
        "The highest threshold whose true coverage is at least this, except with chance delta.",
        "Wilks (1941)",
        needs_loss=False,
        guarantee="coverage, with probability 1 - delta",
        loss="no loss needed",
        promises=("coverage",),
    ),
)
