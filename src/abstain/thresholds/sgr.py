"""Selection with guaranteed risk: the error rate of the answered, certified."""

from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.scored import Scored
from abstain.thresholds import _choice, _sequences
from abstain.thresholds._certified import aimed, none_certified, too_few, walked
from abstain.thresholds._choice import Aim
from abstain.thresholds.binomial import least_count, upper
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray


def sgr(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    max_risk: float,
    delta: float,
    search: Literal["sequences", "binary"] = "sequences",
    weight: AnyArray | None = None,
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
    many halvings of the coverage as can still be certified. Measured, that keeps up to 0.27 more of
    the oracle's coverage than the search and at most 0.006 less (`docs/thresholds.md`).

    Other implementations cut ``int(m * risk)`` to a whole number, which loses a failure to
    rounding; return the last threshold visited, certified or not; return a threshold without a
    flag when the target is unattainable; search over ranks, so that tied samples are accepted in
    use that were not counted; or compare with > in use and >= in the fit.

    Cost: one sort, one bound for each distinct confidence.

    References
    ----------
    .. [1] Geifman and El-Yaniv (2017), Selective classification for deep neural networks,
       Algorithm 1, https://arxiv.org/abs/1705.08500

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
    checks.binary_loss(s.loss, needed_by="sgr; learn_then_test takes losses in [0, 1]")
    aim = aimed("sgr", "selective risk", max_risk, delta)
    if search == "binary":
        return _binary(s, aim)
    starts = _sequences.halvings(s.n, aim.target, delta)
    return walked(s, aim, starts)


def _binary(s: Scored, aim: Aim) -> DecisionRule:
    """Search as Algorithm 1 does, over the distinct confidences; return the best certified."""
    groups = s.groups
    size = groups.confidence.size
    steps = max(1, int(np.ceil(np.log2(size))))
    alpha = (aim.delta or 0.0) / steps
    low, high, best = 0, size - 1, (-1, 1.0)
    for _ in range(steps):
        middle = (low + high) // 2
        wrong = int(np.rint(groups.loss_through[middle]))
        bound = float(upper(np.asarray(groups.count_through[middle]), np.asarray(wrong), alpha))
        if bound <= aim.target:
            best, low = (middle, bound), middle + 1
        else:
            high = middle - 1
        if low > high:
            break
    if best[0] < 0:
        least = least_count(aim.target, alpha)
        return too_few(s, aim, least) if s.n < least else none_certified(s, aim, alpha)
    return _choice.chosen(s, best[0], aim, bound=best[1])
