"""Certified risks: selection with guaranteed risk, and learn then test for graded losses."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import n_accepted_groups
from abstain.shift import DensityRatios
from abstain.thresholds import _choice, _walks
from abstain.thresholds._choice import Aim
from abstain.thresholds._importance import drawn, weighted
from abstain.thresholds._walks import aimed, none_certified, passes, too_few, walked
from abstain.thresholds.binomial import least_count, upper
from abstain.thresholds.entry import Rule
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

    Answers: how much can I answer and be wrong on at most this share of it, with confidence
    1 - delta?

    Parameters
    ----------
    confidence : array of shape (n,)
        Of held-out samples that neither the model nor the confidence score was fitted on.
    loss : array of shape (n,)
        0 or 1: whether each sample is wrong.
    max_risk : float
        The error rate among the answered that must not be exceeded, between 0 and 1.
    delta : float
        The chance that it is exceeded all the same, over calibration sets; between 0 and 1.
    search : {"sequences", "binary"}, default="sequences"
        "sequences": walks down from the coverages 1/2, 1/4, ... that share delta, valid whatever
        the law of the data (one corner is checked, not proven: see `learn_then_test`). "binary":
        the search of the paper, valid where the true risk grows with the coverage (see Notes).
    weight : None
        Weights are refused: the bound counts independent samples of equal weight.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`), to promise the risk of data of another law. A sample is
        kept with the chance ratio / largest, which leaves independent draws from that law [2]_.
    rng : int, Generator or None, default=0
        Of that draw; without ratios nothing is drawn.

    Returns
    -------
    DecisionRule
        With the guarantee "selective risk". `bound` is what is certified: B* of the paper for the
        binary search, the target for the sequences. Unattainable, with the reason, when no
        threshold that was tried can be certified.

    Raises
    ------
    InputError
        Weights; an unknown `search`.
    ShapeError, DomainError
        Bad values; losses other than 0 and 1; `max_risk` or `delta` not between 0 and 1.

    See Also
    --------
    learn_then_test : For graded losses, for the generalized risk, with chosen starts.
    check : What the rule achieves elsewhere.

    Notes
    -----
    The guarantee is over independent samples of one law: it is worth nothing under a shift.

    Each threshold is tested with the exact binomial bound (`binomial_risk_bound`) on whole counts;
    ties are accepted together. Binary search (Algorithm 1) divides delta by ceil(log2 g), g the
    number of distinct confidences, and takes a union bound over the thresholds it visits. Which
    those are depends on the losses seen at the earlier ones, and the union bound of the paper
    does not cover that. Where the true risk grows with the coverage the result still holds: an
    unsafe threshold is then reached only if every safe one before it was certified and no unsafe
    one was, which is a single path, known without the losses. For other laws it can fail: a risk
    that was built to go up and down breaks a delta of 0.1 with chance 0.109
    (benchmarks/threshold_guarantees.py). So the default walks fixed sequences instead, from as
    many halvings of the coverage as can still be certified. With few samples that is one start:
    a second one at the smallest count that can be certified takes half of delta, and costs up to
    0.2 of the coverage where the classifier is accurate. If a target is hard to reach on a few
    hundred samples, `learn_then_test` attains it more often. Measured, the walks keep up to 0.27
    more of the oracle's coverage than the search and at most 0.006 less (`docs/thresholds.md`).

    Other implementations cut ``int(m * risk)`` to a whole number, which loses a failure to
    rounding; return the last threshold visited, certified or not; return a threshold without a
    flag when the target is unattainable; search over ranks, so that tied samples are accepted in
    use that were not counted; or compare with > in use and >= in the fit.

    Cost: one sort, one bound for each distinct confidence.

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
    s = _choice.guaranteed(confidence, loss, weight, method="sgr")
    checks.binary_loss(s.loss, required_by="sgr; learn_then_test takes losses in [0, 1]")
    s, aim = drawn(s, aimed("sgr", "selective risk", max_risk, delta), ratio, rng)
    if search == "binary" and s.n_rows:
        return _binary(s, aim)
    starts = _walks.halvings(s.n_rows, aim.target, delta)
    return walked(s, aim, starts, _other_rule(s.n_rows, aim, starts))


def _other_rule(n: int, aim: Aim, starts: tuple[float, ...]) -> str:
    """Name `learn_then_test` if it starts where fewer samples are accepted than at `starts`."""
    delta = aim.delta or 0.0
    smallest = _walks.ranks_of(starts, n, aim.target, delta)[0]
    smallest_of_other = _walks.ranks_of(STARTS, n, aim.target, delta)[0]
    if smallest_of_other >= smallest:
        return ""
    return (
        f". The smallest number of accepted samples that was tried is {smallest}; learn_then_test "
        f"starts at {smallest_of_other} and may certify a threshold under the same guarantee. "
        "Choose the rule before you look at its result: of two rules on the same data, at least "
        "one fails with probability up to twice delta"
    )


def _binary(s: Scored, aim: Aim) -> DecisionRule:
    """Search as Algorithm 1 does, over the distinct confidences; return the best certified."""
    groups = s.groups
    size, accepted = groups.confidence.size, groups.cumulative_count
    steps = max(1, int(np.ceil(np.log2(size))))
    alpha = (aim.delta or 0.0) / steps
    low, high, best = 0, size - 1, (-1, 1.0)
    for _ in range(steps):
        middle = (low + high) // 2
        wrong = int(np.rint(groups.cumulative_loss[middle]))
        bound = float(upper(np.asarray(accepted[middle]), np.asarray(wrong), alpha))
        if bound <= aim.target:
            best, low = (middle, bound), middle + 1
        else:
            high = middle - 1
        if low > high:
            break
    if best[0] < 0:
        least = least_count(aim.target, alpha)
        return too_few(s, aim, least) if s.n_rows < least else none_certified(s, aim, alpha)
    return _choice.chosen(s, best[0], aim, bound=best[1])


#: Where `learn_then_test` starts its walks for the selective risk.
STARTS = (0.5, 0.25, 0.125)


def learn_then_test(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    max_risk: float,
    delta: float,
    risk: Literal["selective", "generalized"] = "selective",
    starts: Sequence[float] = STARTS,
    thresholds: AnyArray | None = None,
    weight: AnyArray | None = None,
    ratio: AnyArray | DensityRatios | None = None,
) -> DecisionRule:
    """Choose a large coverage whose true risk is guaranteed, for any loss in [0, 1].

    Answers: how much can I answer with a mean loss of at most this, with confidence 1 - delta?

    Parameters
    ----------
    confidence : array of shape (n,)
        Of held-out samples that neither the model nor the confidence score was fitted on.
    loss : array of shape (n,)
        In [0, 1].
    max_risk : float
        The risk that must not be exceeded, between 0 and 1.
    delta : float
        The chance that it is exceeded all the same, over calibration sets; between 0 and 1.
    risk : {"selective", "generalized"}, default="selective"
        Mean loss of the accepted, or the mean over all samples of the loss where accepted.
    starts : sequence of float, default=(0.5, 0.25, 0.125)
        Coverages in (0, 1] from which walks go down, for the selective risk; they share delta.
        Chosen before seeing the losses. More starts find more where the risk is hard to reach and
        cost some coverage elsewhere.
    thresholds : array of shape (k,), optional
        Walk down these instead, from the highest, chosen before seeing the data. For the selective
        risk the highest must accept enough samples for a certificate.
    weight : None
        Weights are refused: the tests count independent samples of equal weight.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`), to promise the risk of data of another law. All samples
        are used, and tests by betting take the place of binomial tails (see Notes).

    Returns
    -------
    DecisionRule
        With the guarantee "selective risk" or "generalized risk". Unattainable, with the reason,
        when nothing can be certified.

    Raises
    ------
    InputError
        Weights; an unknown `risk`.
    ShapeError, DomainError
        Bad values; losses above 1; `max_risk` or `delta` not between 0 and 1; starts outside
        (0, 1].

    See Also
    --------
    sgr : The selective error rate with as many starts as the data allow.
    conformal_risk_control : The generalized risk on average, with more coverage.

    Notes
    -----
    Fixed sequence testing: thresholds are tested at level delta one after the other from the
    safest down, and the first that fails ends the walk. The p-values are exact binomial tails for
    0/1 losses and Hoeffding-Bentkus for others; losses that are all 0 or 1 count as 0/1. The
    thresholds may depend on the confidences, not on the losses: walking over all real thresholds
    from a fixed start is a fixed sequence, and between two confidences the test repeats itself.

    The selective risk has no safest end: at the highest thresholds too few samples are accepted for
    any test to pass, and the walk would die at once. So it starts at coverages fixed in advance, or
    where a first certificate is possible if that accepts more. A walk that ends at its start
    certifies everything above the first confidence rejected; the threshold is then the number just
    above that one. Proven for every law of 0/1 losses but for one corner: a tie group that
    holds a start, is the most confident one seen, and is not the highest that exists. Exact
    enumeration of laws made for that corner found no chance above delta (`docs/thresholds.md`). For
    graded losses proven where the risk grows with the coverage or the confidences are continuous.

    With ratios a risk above the target R is refuted where the mean over bets b of the product of
    1 - b v (loss - R) reaches 1 / alpha [2]_, v the ratio by the largest. That needs no sum of the
    ratios, and so holds up to a constant. The bets are halvings of 1 / (1 - R), fixed without the
    losses: nothing is random, and rows may come in any order. Proven where the risk under the other
    law grows with the coverage. Against keeping samples at random (`sgr`) it gains where few ratios
    are large, since it uses all samples, and loses where ratios are nearly equal, since a bet is
    worth less than the exact binomial tail.

    Cost: one sort, one test for each distinct confidence.

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
    s = _choice.guaranteed(confidence, loss, weight, method="learn_then_test")
    checks.unit_interval(s.loss, "loss", hint="Divide by the largest loss possible.")
    selective = risk == "selective"
    guarantee: Literal["selective risk", "generalized risk"]
    guarantee = "selective risk" if selective else "generalized risk"
    s, aim = weighted(s, aimed("learn_then_test", guarantee, max_risk, delta), ratio)
    if thresholds is not None:
        return _on_grid(s, aim, thresholds)
    if not selective:
        return _downhill(s, aim)
    return walked(s, aim, coverages_of(starts))


def coverages_of(starts: Sequence[float]) -> tuple[float, ...]:
    """Validate coverages at which walks start."""
    values = checks.finite(checks.vector(starts, "starts"), "starts").astype(np.float64)
    checks.reject_entries("starts", "must lie in (0, 1]", values, (values <= 0) | (values > 1))
    return tuple(float(x) for x in np.unique(values))


def _downhill(s: Scored, aim: Aim) -> DecisionRule:
    """Walk from accepting nothing, which is safe for the generalized risk."""
    least = least_count(aim.target, aim.delta or 0.0)
    if s.n_rows < least:
        return too_few(s, aim, least)
    last = int(_walks.next_failing(passes(s, aim, aim.delta or 0.0))[0]) - 1
    if last < 0:
        return none_certified(s, aim, aim.delta or 0.0)
    return _choice.chosen(s, last, aim, bound=aim.target)


def _on_grid(s: Scored, aim: Aim, thresholds: AnyArray) -> DecisionRule:
    """Walk down thresholds that were fixed before the data."""
    grid = np.unique(checks.confidence(thresholds, "thresholds"))[::-1].astype(np.float64)
    index = np.asarray(n_accepted_groups(s.groups, grid)) - 1
    if aim.guarantee == "generalized risk":
        # What accepts nothing loses nothing: it passes whenever anything can.
        grid, index = grid[index >= 0], index[index >= 0]
    fine = (index >= 0) & passes(s, aim, aim.delta or 0.0, np.maximum(index, 0))
    last = int(_walks.next_failing(fine)[0]) - 1
    if last < 0:
        return none_certified(s, aim, aim.delta or 0.0)
    return _choice.chosen(s, int(index[last]), aim, bound=aim.target, threshold=float(grid[last]))


SGR = Rule(
    "sgr",
    "Selection with guaranteed risk",
    sgr,
    "A large coverage whose true error rate is at most the target, except with chance delta.",
    "Geifman and El-Yaniv (2017), Algorithm 1",
    guarantee="selective risk, with probability 1 - delta",
    loss="0/1 loss",
    binary=True,
    promises=("selective risk",),
)

ENTRIES = (
    SGR,
    Rule(
        "learn_then_test",
        "Learn then test",
        learn_then_test,
        "A large coverage whose true risk is at most the target, except with chance delta.",
        "Angelopoulos et al. (2021)",
        guarantee="selective or generalized risk, with probability 1 - delta",
        loss="losses in [0, 1]",
        promises=("selective risk", "generalized risk"),
    ),
)
