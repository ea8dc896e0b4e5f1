"""Rules with a guaranteed risk: selection with guaranteed risk (`sgr`) and `learn_then_test`."""

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
    """Choose a large coverage with a guaranteed error rate (selection with guaranteed risk).

    Answers: how many samples can I answer with at most this error rate, with confidence 1 - delta?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidences of held-out samples, which neither the model nor the confidence score was
        fitted on.
    loss : array of shape (n,)
        1 for a wrong prediction, 0 for a correct prediction.
    max_risk : float
        Largest error rate among the answered samples, between 0 and 1.
    delta : float
        Probability, over calibration sets, that the error rate exceeds `max_risk`; between 0 and 1.
    search : {"sequences", "binary"}, default="sequences"
        "sequences" tests thresholds downwards from the coverages 1/2, 1/4, ..., which share delta.
        The guarantee of this search is valid for any distribution, but one special case was only
        verified numerically (see `learn_then_test`). "binary" is the search of the paper, which is
        valid if the true risk increases with the coverage (see Notes).
    weight : None
        Must be None, because the bound counts independent samples of equal weight.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`) that guarantee the risk in another population. A sample is
        retained with probability ratio / largest ratio, so that the retained samples are
        independent draws from this population [2]_.
    rng : int, Generator or None, default=0
        Seed or generator of the random selection of samples. Ignored without ratios.

    Returns
    -------
    DecisionRule
        A rule with the guarantee "selective risk". Its `bound` is B* of the paper for the binary
        search, and the target otherwise. If no tested threshold can be certified, the rule has no
        threshold and states the reason.

    Raises
    ------
    InputError
        If weights are passed or `search` is unknown.
    ShapeError, DomainError
        If values are invalid, a loss is not 0 or 1, or `max_risk` or `delta` is not between 0 and
        1.

    See Also
    --------
    learn_then_test : Supports any loss in [0, 1], the generalized risk, and custom starts.
    check : Measure the performance of the rule on other data.

    Notes
    -----
    The guarantee requires independent samples of one distribution. The guarantee does not hold
    under a distribution shift.

    Each threshold is tested with the exact binomial bound (`binomial_risk_bound`) on integer
    counts. Tied samples are accepted together.

    The binary search (Algorithm 1) divides delta by ceil(log2 g), where g is the number of distinct
    confidences. The paper uses a union bound over the visited thresholds, but these thresholds
    depend on the losses at earlier thresholds. The guarantee still holds if the true risk
    increases with the coverage. For other distributions, the guarantee can fail. For one
    constructed risk that oscillates with the coverage, the guarantee fails with probability 0.109
    at a delta of 0.1 (benchmarks/threshold_guarantees.py).

    The default search instead tests fixed sequences of thresholds, which start at coverages 1/2,
    1/4, 1/8 and so on. With a few hundred samples and a target that is hard to reach,
    `learn_then_test` finds a threshold more often.

    Unlike some implementations, this function counts all samples that are tied at the threshold,
    and never returns a threshold that is not certified.

    The cost is one sort and one bound for each distinct confidence.

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
    """Return a hint to use `learn_then_test` if its first test needs fewer samples."""
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
    """Run the binary search of Algorithm 1 over the distinct confidences."""
    groups = s.groups
    n_steps = max(1, int(np.ceil(np.log2(groups.confidence.size))))
    alpha = (aim.delta or 0.0) / n_steps
    low = 0
    high = groups.confidence.size - 1
    best_group = None
    best_bound = 1.0
    for _ in range(n_steps):
        if low > high:
            break
        middle = (low + high) // 2
        n_accepted = np.asarray(groups.cumulative_count[middle])
        n_failures = np.asarray(int(np.rint(groups.cumulative_loss[middle])))
        bound = float(upper_bound(n_accepted, n_failures, alpha))
        if bound <= aim.target:
            best_group = middle
            best_bound = bound
            low = middle + 1
        else:
            high = middle - 1
    if best_group is not None:
        return _choice.build_rule(s, best_group, aim, bound=best_bound)
    required = min_count(aim.target, alpha)
    if s.n_rows < required:
        return too_few_samples_rule(s, aim, required)
    return nothing_certified_rule(s, aim, alpha)


#: Default coverages at which walks of `learn_then_test` for the selective risk start.
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
    """Choose a large coverage with a guaranteed risk for any loss in [0, 1].

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
        "selective" is the mean loss of the accepted samples. "generalized" is the total loss of the
        accepted samples divided by the number of all samples.
    starts : sequence of float, default=(0.5, 0.25, 0.125)
        Coverages in (0, 1] from which thresholds are tested downwards for the selective risk. They
        share delta. Choose these coverages before you see the losses. A larger number of starts
        helps if the target is hard to reach, and otherwise reduces the coverage slightly.
    thresholds : array of shape (k,), optional
        Thresholds that are tested from the highest on, instead of `starts`. Choose these
        thresholds before you see the data. For the selective risk, the highest threshold must
        accept enough samples to certify the risk.
    weight : None
        Must be None, because the tests count independent samples of equal weight.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`) that guarantee the risk in another population. In this
        case, the function uses all samples and tests by betting instead of binomial tests (see
        Notes).

    Returns
    -------
    DecisionRule
        A rule with the guarantee "selective risk" or "generalized risk". If no threshold can be
        certified, the rule has no threshold and states the reason.

    Raises
    ------
    InputError
        If weights are passed or `risk` is unknown.
    ShapeError, DomainError
        If values are invalid, a loss is above 1, a start is outside (0, 1], or `max_risk` or
        `delta` is not between 0 and 1.

    See Also
    --------
    sgr : Rule for the selective risk of 0/1 losses, which selects the starts automatically.
    conformal_risk_control : Rule for the generalized risk on average, with a larger coverage.

    Notes
    -----
    The method is fixed sequence testing. Thresholds are tested at level delta in a fixed order,
    from the safest threshold on, until the first failure. The p-values are exact binomial tails
    for 0/1 losses and Hoeffding-Bentkus p-values for other losses. The thresholds may depend on
    the confidences but not on the losses. All thresholds below a fixed start are tested, which
    requires one computation for each distinct confidence.

    The selective risk has no safest threshold, because the highest thresholds accept too few
    samples for any test. Therefore, sequences start at coverages that are fixed in advance. A
    start with too few samples for a certificate is moved to the smallest sufficient number. If
    only the start of a sequence passes, the threshold is the next number above the first rejected
    confidence.

    For 0/1 losses, the guarantee is proven for every distribution except for one special case: the
    most confident observed tie group contains a start, but it is not the most confident tie group
    of the population. This case is not proven, but an exact enumeration of distributions found no
    failure probability above delta (`docs/thresholds.md`). For graded losses, the guarantee is
    proven if the risk increases with the coverage or the confidences are continuous.

    With ratios, let v be the ratio of a sample divided by the largest ratio. A risk above the
    target R is rejected if the mean over bets b of the product of 1 - b v (loss - R) reaches
    1 / alpha [2]_. The bets are 1 / (1 - R) divided by powers of 2. The ratios may have any scale,
    and the result does not depend on the order of the rows. The guarantee is proven if the risk in
    the other population increases with the coverage. If few ratios are large, the function accepts
    more samples than `sgr`, which uses only a random subset of the calibration samples. If the
    ratios are nearly equal, the function accepts fewer samples than `sgr`, because a test by
    betting has less power than the exact binomial test.

    The cost is one sort and one test for each distinct confidence.

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
    """Return sorted coverages for `starts`; raise DomainError for coverages outside (0, 1]."""
    values = checks.finite(checks.vector(starts, "starts"), "starts").astype(np.float64)
    checks.reject_entries("starts", "must lie in (0, 1]", values, (values <= 0) | (values > 1))
    return tuple(float(x) for x in np.unique(values))


def _downhill(s: Scored, aim: RuleTarget) -> DecisionRule:
    """Test thresholds for a generalized risk, from the highest down to the first failure."""
    delta = aim.delta or 0.0
    required = min_count(aim.target, delta)
    if s.n_rows < required:
        return too_few_samples_rule(s, aim, required)
    is_passed = passing_groups(s, aim, delta)
    first_failure = int(_walks.next_failure(is_passed)[0])
    if first_failure == 0:
        return nothing_certified_rule(s, aim, delta)
    return _choice.build_rule(s, first_failure - 1, aim, bound=aim.target)


def _on_grid(s: Scored, aim: RuleTarget, thresholds: AnyArray) -> DecisionRule:
    """Test user-defined thresholds, from the highest down to the first failure."""
    delta = aim.delta or 0.0
    ascending = np.unique(checks.confidence(thresholds, "thresholds"))
    grid = ascending[::-1].astype(np.float64)
    last_group = np.asarray(n_accepted_groups(s.groups, grid)) - 1
    accepts_any = last_group >= 0
    if aim.guarantee == "generalized risk":
        # A threshold that accepts no sample has a generalized risk of 0 and needs no test.
        grid, last_group = grid[accepts_any], last_group[accepts_any]
        accepts_any = np.ones(grid.size, np.bool_)
    is_passed = accepts_any & passing_groups(s, aim, delta, np.maximum(last_group, 0))
    first_failure = int(_walks.next_failure(is_passed)[0])
    if first_failure == 0:
        return nothing_certified_rule(s, aim, delta)
    i = first_failure - 1
    threshold = float(grid[i])
    return _choice.build_rule(s, int(last_group[i]), aim, bound=aim.target, threshold=threshold)


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
