"""Learn then test: the selective or generalized risk of any loss in [0, 1], certified."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.ranks import reached
from abstain._foundation.scored import Scored
from abstain.thresholds import _choice, _sequences
from abstain.thresholds._certified import aimed, none_certified, passes, too_few, walked
from abstain.thresholds._choice import Aim
from abstain.thresholds.binomial import least_count
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray

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

    Cost: one sort, one test for each distinct confidence.

    References
    ----------
    .. [1] Angelopoulos, Bates, Candes, Jordan and Lei (2021), Learn then test (fixed sequence
       testing, Hoeffding-Bentkus p-values), https://arxiv.org/abs/2110.01052

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
    aim = aimed("learn_then_test", guarantee, max_risk, delta)
    if thresholds is not None:
        return _on_grid(s, aim, thresholds)
    if not selective:
        return _downhill(s, aim)
    return walked(s, aim, _coverages(starts))


def _coverages(starts: Sequence[float]) -> tuple[float, ...]:
    values = checks.finite(checks.vector(starts, "starts"), "starts").astype(np.float64)
    checks.refuse("starts", "must lie in (0, 1]", values, (values <= 0) | (values > 1))
    return tuple(float(x) for x in np.unique(values))


def _downhill(s: Scored, aim: Aim) -> DecisionRule:
    """Walk from accepting nothing, which is safe for the generalized risk."""
    least = least_count(aim.target, aim.delta or 0.0)
    if s.n < least:
        return too_few(s, aim, least)
    last = int(_sequences.next_failing(passes(s, aim, aim.delta or 0.0))[0]) - 1
    if last < 0:
        return none_certified(s, aim, aim.delta or 0.0)
    return _choice.chosen(s, last, aim, bound=aim.target)


def _on_grid(s: Scored, aim: Aim, thresholds: AnyArray) -> DecisionRule:
    """Walk down thresholds that were fixed before the data."""
    grid = np.unique(checks.confidence(thresholds, "thresholds"))[::-1].astype(np.float64)
    index = np.asarray(reached(s.groups, grid)) - 1
    if aim.guarantee == "generalized risk":
        # What accepts nothing loses nothing: it passes whenever anything can.
        grid, index = grid[index >= 0], index[index >= 0]
    fine = (index >= 0) & passes(s, aim, aim.delta or 0.0, np.maximum(index, 0))
    last = int(_sequences.next_failing(fine)[0]) - 1
    if last < 0:
        return none_certified(s, aim, aim.delta or 0.0)
    return _choice.chosen(s, int(index[last]), aim, bound=aim.target, threshold=float(grid[last]))
