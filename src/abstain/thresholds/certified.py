"""Rules with a certified risk: selection with guaranteed risk, and learn then test."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import n_accepted_groups
from abstain.shift import DensityRatios
from abstain.thresholds import _choice, _walks
from abstain.thresholds._choice import RuleTarget
from abstain.thresholds._walks import (
    choose_by_walks,
    nothing_certified_rule,
    passing_groups,
    risk_target,
    sample_by_ratio,
    too_few_samples_rule,
    weight_by_ratio,
)
from abstain.thresholds.binomial import min_count, upper_bound
from abstain.thresholds.catalogue import Rule
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray, Rng


def sgr(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    max_risk: float,
    delta: float,
    search: Literal["sequences", "binary"] = "sequences",
    weight: AnyArray | None = None,
    ratio: AnyArray | DensityRatios | None = None,
    rng: Rng = 0,
) -> DecisionRule:
    """Choose a large coverage whose true error rate is guaranteed (selection with guaranteed risk).

    Answers: how many samples can I answer with at most this error rate, with confidence 1 - delta?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidences of held-out samples, which neither the model nor the confidence score was
        fitted on.
    loss : array of shape (n,)
        0 or 1: whether each sample is wrong.
    max_risk : float
        Largest error rate among the answered samples, between 0 and 1.
    delta : float
        Probability, over calibration sets, that the error rate exceeds `max_risk`; between 0 and 1.
    search : {"sequences", "binary"}, default="sequences"
        "sequences": walks down from the coverages 1/2, 1/4, ..., which share delta. It is valid for
        any distribution of the data (one special case is checked, not proven: see
        `learn_then_test`). "binary": the search of the paper. It is valid if the true risk
        increases with the coverage (see Notes).
    weight : None
        Weights are not accepted, because the bound counts independent samples of equal weight.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`), to guarantee the risk in another population. A sample is
        kept with probability ratio / largest ratio, which gives independent draws from that
        population [2]_.
    rng : int, Generator or None, default=0
        Random numbers of that draw; not used without ratios.

    Returns
    -------
    DecisionRule
        A rule with the guarantee "selective risk". `bound` is the certified bound: B* of the paper
        for the binary search, the target for the sequences. The rule is unattainable, with a
        reason, if no tested threshold can be certified.

    Raises
    ------
    InputError
        For weights, or an unknown `search`.
    ShapeError, DomainError
        For invalid values, losses other than 0 and 1, or if `max_risk` or `delta` is not between 0
        and 1.

    See Also
    --------
    learn_then_test : For any loss in [0, 1], for the generalized risk, and with custom starts.
    check : Measure the performance of the rule on other data.

    Notes
    -----
    The guarantee requires independent samples of one distribution. It does not hold under a shift.

    Each threshold is tested with the exact binomial bound (`binomial_risk_bound`) on whole counts.
    Ties are accepted together. The binary search (Algorithm 1) divides delta by ceil(log2 g), where
    g is the number of distinct confidences, and uses a union bound over the thresholds that it
    visits. These thresholds depend on the losses at the earlier ones, which the union bound of the
    paper does not cover. If the true risk increases with the coverage, the result still holds: an
    unsafe threshold is then reached only if every safe threshold before it was certified and no
    unsafe one was. This is a single path, which does not depend on the losses. For other
    distributions the search can fail: for a risk that was built to oscillate, the failure
    probability is 0.109 at a delta of 0.1 (benchmarks/threshold_guarantees.py). Therefore, the
    default walks along fixed sequences, from as many halvings of the coverage as can be certified.
    With few samples there is one start. A second start at the smallest count that can be certified
    would use half of delta and cost up to 0.2 of the coverage for an accurate classifier. If a
    target is hard to reach with a few hundred samples, `learn_then_test` reaches it more often. In
    measurements, the walks reach up to 0.27 more of the oracle's coverage than the search, and at
    most 0.006 less (`docs/thresholds.md`).

    Other implementations truncate ``int(m * risk)``, which loses a failure to rounding. Some return
    the last visited threshold, certified or not, or return a threshold without a flag for an
    unattainable target. Some search over ranks, so that tied samples are accepted later that were
    not counted, or compare with > in use and with >= in the fit.

    The cost is one sort, and one bound for each distinct confidence.

    References
    ----------
    .. [1] Geifman and El-Yaniv (2017), Selective classification for deep neural networks,
       Algorithm 1, https://arxiv.org/abs/1705.08500
    .. [2] Park, Dobriban, Lee and Bastani (2022), PAC prediction sets under covariate shift,
       ICLR, https://arxiv.org/abs/2106.09848

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> confidence = np.linspace(1, 0, 1000)
    >>> loss = (np.arange(1000) >= 500) & (np.arange(1000) % 5 > 2)  # none wrong, then 2 of 5
    >>> rule = ab.thresholds.sgr(confidence, loss, max_risk=0.05, delta=0.05)
    >>> rule.coverage, round(rule.risk, 3), rule.guarantee
    (0.543, 0.029, 'selective risk')
    >>> ab.thresholds.sgr([0.9, 0.8], [0, 0], max_risk=0.05, delta=0.05).attainable
    False
    """
    checks.one_of(search, "search", ("sequences", "binary"))
    s = _choice.check_calibration_data(confidence, loss, weight, method="sgr")
    checks.binary_loss(s.loss, required_by="sgr; learn_then_test takes losses in [0, 1]")
    s, aim = sample_by_ratio(s, risk_target("sgr", "selective risk", max_risk, delta), ratio, rng)
    if search == "binary" and s.n_rows:
        return _binary(s, aim)
    starts = _walks.halved_coverages(s.n_rows, aim.target, delta)
    return choose_by_walks(s, aim, starts, _other_rule(s.n_rows, aim, starts))


def _other_rule(n: int, aim: RuleTarget, starts: tuple[float, ...]) -> str:
    """Mention `learn_then_test` in the reason if it starts at fewer samples than `starts`."""
    delta = aim.delta or 0.0
    smallest = _walks.start_ranks(starts, n, aim.target, delta)[0]
    smallest_of_other = _walks.start_ranks(DEFAULT_STARTS, n, aim.target, delta)[0]
    if smallest_of_other >= smallest:
        return ""
    return (
        f". The smallest number of accepted samples that was tested is {smallest}; "
        f"learn_then_test starts at {smallest_of_other} and may certify a threshold under the same "
        "guarantee. Choose the rule before you look at its result: for two rules on the same data, "
        "the probability that at least one fails is up to twice delta"
    )


def _binary(s: Scored, aim: RuleTarget) -> DecisionRule:
    """Run Algorithm 1 over the distinct confidences; return the best certified rule."""
    groups = s.groups
    size, accepted = groups.confidence.size, groups.cumulative_count
    steps = max(1, int(np.ceil(np.log2(size))))
    alpha = (aim.delta or 0.0) / steps
    low, high, best = 0, size - 1, (-1, 1.0)
    for _ in range(steps):
        middle = (low + high) // 2
        wrong = int(np.rint(groups.cumulative_loss[middle]))
        bound = float(upper_bound(np.asarray(accepted[middle]), np.asarray(wrong), alpha))
        if bound <= aim.target:
            best, low = (middle, bound), middle + 1
        else:
            high = middle - 1
        if low > high:
            break
    if best[0] < 0:
        required = min_count(aim.target, alpha)
        return (
            too_few_samples_rule(s, aim, required)
            if s.n_rows < required
            else nothing_certified_rule(s, aim, alpha)
        )
    return _choice.build_rule(s, best[0], aim, bound=best[1])


#: Default coverages at which the walks of `learn_then_test` start, for the selective risk.
DEFAULT_STARTS = (0.5, 0.25, 0.125)


def learn_then_test(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    max_risk: float,
    delta: float,
    risk: Literal["selective", "generalized"] = "selective",
    starts: Sequence[float] = DEFAULT_STARTS,
    thresholds: AnyArray | None = None,
    weight: AnyArray | None = None,
    ratio: AnyArray | DensityRatios | None = None,
) -> DecisionRule:
    """Choose a large coverage whose true risk is guaranteed, for any loss in [0, 1].

    Answers: how many samples can I answer with at most this mean loss, with confidence 1 - delta?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidences of held-out samples, which neither the model nor the confidence score was
        fitted on.
    loss : array of shape (n,)
        Losses in [0, 1].
    max_risk : float
        Largest risk, between 0 and 1.
    delta : float
        Probability, over calibration sets, that the risk exceeds `max_risk`; between 0 and 1.
    risk : {"selective", "generalized"}, default="selective"
        Mean loss of the accepted samples, or mean over all samples of the accepted losses.
    starts : sequence of float, default=(0.5, 0.25, 0.125)
        Coverages in (0, 1] at which walks start, for the selective risk. They share delta. Choose
        them before you see the losses. More starts help if the risk is hard to reach, and otherwise
        cost some coverage.
    thresholds : array of shape (k,), optional
        Thresholds to test instead, from the highest on. Choose them before you see the data. For
        the selective risk, the highest must accept enough samples for a certificate.
    weight : None
        Weights are not accepted, because the tests count independent samples of equal weight.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`), to guarantee the risk in another population. All samples
        are used, and tests by betting replace the binomial tests (see Notes).

    Returns
    -------
    DecisionRule
        A rule with the guarantee "selective risk" or "generalized risk". The rule is unattainable,
        with a reason, if nothing can be certified.

    Raises
    ------
    InputError
        For weights, or an unknown `risk`.
    ShapeError, DomainError
        For invalid values, losses above 1, starts outside (0, 1], or if `max_risk` or `delta` is
        not between 0 and 1.

    See Also
    --------
    sgr : The selective error rate, with as many starts as the data allow.
    conformal_risk_control : The generalized risk on average, with a larger coverage.

    Notes
    -----
    The method is fixed sequence testing: thresholds are tested at level delta from the safest on,
    until the first failure. The p-values are exact binomial tails for 0/1 losses and
    Hoeffding-Bentkus p-values otherwise; losses that are all 0 or 1 count as 0/1 losses. The
    thresholds may depend on the confidences, not on the losses: a walk over all real thresholds
    from a fixed start is a fixed sequence, and the test does not change between two confidences.

    The selective risk has no safest threshold: at the highest thresholds, too few samples are
    accepted for any test, and the walk would stop at once. Therefore, it starts at coverages that
    are fixed in advance, or, if that accepts more, at the smallest count that can be certified. A
    walk that ends at its start certifies everything above the first rejected confidence; the
    threshold is the next number above that confidence. For 0/1 losses, the guarantee is proven for
    every distribution except one special case: a tie group that contains a start and is the most
    confident observed group, but not the highest that exists. Exact enumeration of distributions
    for that case found no failure probability above delta (`docs/thresholds.md`). For graded
    losses, the guarantee is proven if the risk increases with the coverage or the confidences are
    continuous.

    With ratios, a risk above the target R is rejected if the mean over bets b of the product of
    1 - b v (loss - R) reaches 1 / alpha [2]_, where v is the ratio divided by the largest ratio.
    The test needs no sum of the ratios, so the ratios may have any scale. The bets are halvings of
    1 / (1 - R) and do not depend on the losses. Nothing is random, and the order of the rows does
    not matter. The guarantee is proven if the risk in the other population increases with the
    coverage. Compared with random selection (`sgr`), this method is better if few ratios are large,
    because it uses all samples. It is worse if the ratios are nearly equal, because a bet has less
    power than the exact binomial test.

    The cost is one sort, and one test for each distinct confidence.

    References
    ----------
    .. [1] Angelopoulos, Bates, Candes, Jordan and Lei (2021), Learn then test (fixed sequence
       testing, Hoeffding-Bentkus p-values), https://arxiv.org/abs/2110.01052
    .. [2] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting,
       https://arxiv.org/abs/2010.09686

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> confidence, loss = np.linspace(1, 0, 1000), np.repeat([0.02, 0.4], 500)
    >>> rule = ab.thresholds.learn_then_test(confidence, loss, max_risk=0.1, delta=0.05)
    >>> rule.coverage, round(rule.risk, 3)
    (0.572, 0.068)
    """
    checks.one_of(risk, "risk", ("selective", "generalized"))
    s = _choice.check_calibration_data(confidence, loss, weight, method="learn_then_test")
    checks.unit_interval(s.loss, "loss", hint="Divide by the largest loss possible.")
    selective = risk == "selective"
    guarantee: Literal["selective risk", "generalized risk"]
    guarantee = "selective risk" if selective else "generalized risk"
    s, aim = weight_by_ratio(s, risk_target("learn_then_test", guarantee, max_risk, delta), ratio)
    if thresholds is not None:
        return _on_grid(s, aim, thresholds)
    if not selective:
        return _downhill(s, aim)
    return choose_by_walks(s, aim, check_starts(starts))


def check_starts(starts: Sequence[float]) -> tuple[float, ...]:
    """Validate coverages at which walks start."""
    values = checks.finite(checks.vector(starts, "starts"), "starts").astype(np.float64)
    checks.reject_entries("starts", "must lie in (0, 1]", values, (values <= 0) | (values > 1))
    return tuple(float(x) for x in np.unique(values))


def _downhill(s: Scored, aim: RuleTarget) -> DecisionRule:
    """Walk from accepting nothing, which is safe for the generalized risk."""
    required = min_count(aim.target, aim.delta or 0.0)
    if s.n_rows < required:
        return too_few_samples_rule(s, aim, required)
    last = int(_walks.next_failure(passing_groups(s, aim, aim.delta or 0.0))[0]) - 1
    if last < 0:
        return nothing_certified_rule(s, aim, aim.delta or 0.0)
    return _choice.build_rule(s, last, aim, bound=aim.target)


def _on_grid(s: Scored, aim: RuleTarget, thresholds: AnyArray) -> DecisionRule:
    """Test thresholds that were fixed before the data, from the highest on."""
    grid = np.unique(checks.confidence(thresholds, "thresholds"))[::-1].astype(np.float64)
    index = np.asarray(n_accepted_groups(s.groups, grid)) - 1
    if aim.guarantee == "generalized risk":
        # What accepts nothing loses nothing: it passes whenever anything can.
        grid, index = grid[index >= 0], index[index >= 0]
    fine = (index >= 0) & passing_groups(s, aim, aim.delta or 0.0, np.maximum(index, 0))
    last = int(_walks.next_failure(fine)[0]) - 1
    if last < 0:
        return nothing_certified_rule(s, aim, aim.delta or 0.0)
    return _choice.build_rule(
        s, int(index[last]), aim, bound=aim.target, threshold=float(grid[last])
    )


SGR = Rule(
    "sgr",
    "Selection with guaranteed risk",
    sgr,
    "A large coverage whose true error rate exceeds the target with probability at most delta.",
    "Geifman and El-Yaniv (2017), Algorithm 1",
    guarantee="selective risk, with probability 1 - delta",
    loss="0/1 loss",
    is_binary=True,
    guarantees=("selective risk",),
)

ENTRIES = (
    SGR,
    Rule(
        "learn_then_test",
        "Learn then test",
        learn_then_test,
        "A large coverage whose true risk exceeds the target with probability at most delta.",
        "Angelopoulos et al. (2021)",
        guarantee="selective or generalized risk, with probability 1 - delta",
        loss="losses in [0, 1]",
        guarantees=("selective risk", "generalized risk"),
    ),
)
