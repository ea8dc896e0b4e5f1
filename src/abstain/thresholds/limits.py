"""One threshold that keeps several risks within their limits at once: learn then test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.option_format import format_option
from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import tie_group_index
from abstain.errors import DomainError, InputError, ShapeError
from abstain.shift import DensityRatios
from abstain.shift.ratios import as_density_ratios
from abstain.thresholds import _choice
from abstain.thresholds._choice import Aim
from abstain.thresholds._importance import refuted, weighted
from abstain.thresholds._parts import OVERALL
from abstain.thresholds._walks import Reach, aimed, furthest, just_above, next_failing, ranks_of
from abstain.thresholds.binomial import binomial_p, hoeffding_bentkus_p, least_count
from abstain.thresholds.certified import coverages_of
from abstain.thresholds.rule import GIVEN, DecisionRule, RulePart
from abstain.typing import AnyArray, BoolArray, FloatArray, IntArray

#: Where the walks of `several_risks` start: a class is rarer than the whole.
STARTS = (0.75, 0.5, 0.25)
#: The rule that each limit is kept by.
METHOD: Final = "learn_then_test"
#: How the reason of a limit begins that is not the one in the way.
ALONE: Final = "could be certified alone"


@dataclass(frozen=True, eq=False)
class Limit:
    """A risk that must stay within a limit.

    Attributes
    ----------
    name : str
        Of what is limited: "overall", "group:night", "label:cat".
    max_risk : float
        The limit, between 0 and 1.
    among : array of shape (n,) or None
        Booleans: the samples that the risk is about; None for all. Those of a true class are
        allowed: with 0/1 losses the risk is then that class's false negatives.
    risk : {"selective", "generalized"}
        Mean loss of the accepted among them, or the mean over all of them of the loss where
        accepted.
    """

    name: str
    max_risk: float
    among: AnyArray | None = None
    risk: Literal["selective", "generalized"] = "selective"


def several_risks(
    confidence: AnyArray,
    loss: AnyArray,
    limits: Sequence[Limit],
    *,
    delta: float,
    starts: Sequence[float] = STARTS,
    ratio: AnyArray | DensityRatios | None = None,
) -> DecisionRule:
    """Choose a large coverage at which several risks are all guaranteed, by one threshold.

    Answers: how much can I answer and keep the overall risk, each group's, and a class's false
    negatives within their limits, all with confidence 1 - delta together?

    Parameters
    ----------
    confidence : array of shape (n,)
        Of held-out samples that neither the model nor the confidence score was fitted on.
    loss : array of shape (n,)
        In [0, 1].
    limits : sequence of Limit
        What must hold.
    delta : float
        The chance that any limit is exceeded, over calibration sets; between 0 and 1.
    starts : sequence of float, default=(0.75, 0.5, 0.25)
        Coverages in (0, 1] from which walks go down; they share delta. Without effect where every
        risk is generalized: there the walk starts from accepting nothing.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`), to keep the limits on data of another law.

    Returns
    -------
    DecisionRule
        One threshold, and a part for each limit with what the calibration samples show there; the
        part "overall" is always there. Where the limits cannot be met together it has none, and
        the reason of each part says whether that limit could be met alone.

    Raises
    ------
    InputError
        No limit, or one name twice.
    ShapeError, DomainError
        Bad values; losses above 1; a limit among no sample; numbers not between 0 and 1.

    See Also
    --------
    fit_groups : A threshold for each group.
    fixed_sequence : The test along any path.

    Notes
    -----
    As `learn_then_test`: thresholds are tested from a start downwards and the first that fails ends
    the walk. A threshold passes where every limit does, each tested at the whole level: "some limit
    is exceeded" has the largest of the p-values as its own, so that several limits share no delta.
    Proven as for one risk, limit by limit: the first threshold at which any is exceeded decides.
    Where some are selective and some generalized, either kind has half of delta: what is proven of
    the one holds given the start, of the other whatever the start.

    With ratios each limit is tested by bets, as `learn_then_test` does: the risk among some samples
    is that of a law in which all others have a ratio of 0. Proven where each limited risk under the
    other law grows with the coverage.

    A limit on few samples ends walks early, since at a start it needs as many accepted without a
    failure as a certificate takes; the reason says which limit that is. Cost: one sort, one test
    for each distinct confidence and limit.

    References
    ----------
    .. [1] Angelopoulos, Bates, Candes, Jordan and Lei (2021), Learn then test (several risks, fixed
       sequence testing), https://arxiv.org/abs/2110.01052

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.thresholds import Limit, several_risks
    >>> confidence = np.linspace(1, 0, 2000)
    >>> cat = np.arange(2000) % 4 == 0
    >>> loss = np.arange(2000) > np.where(cat, 900, 1400)
    >>> limits = [Limit("overall", 0.1), Limit("label:cat", 0.2, cat)]
    >>> rule = several_risks(confidence, loss, limits, delta=0.05)
    >>> [(p.name, round(p.rule.coverage, 2), round(p.rule.risk, 2)) for p in rule.parts]
    [('overall', 0.53, 0.04), ('label:cat', 0.53, 0.15)]
    """
    s = _choice.guaranteed(confidence, loss, None, method="several_risks")
    checks.unit_interval(s.loss, "loss", hint="Divide by the largest loss possible.")
    masks = {limit.name: _mask(limit, s.n_rows) for limit in limits}
    s, masks, there = _elsewhere(s, masks, ratio)
    asked = [_Tested.of(s, limit, masks[limit.name], delta, there) for limit in limits]
    if not asked or len({t.name for t in asked}) < len(asked):
        raise InputError(
            f"`limits` must name at least one limit, each once; got {[t.name for t in asked]}"
        )
    coverages = coverages_of(starts)
    # One kind of risk is tested given where a walk starts, the other whatever that is.
    walk = _Walk.of(s, asked, delta / len({t.whole for t in asked}), coverages)
    found = walk.down(asked)
    if found.last < 0:
        return _none(s, asked, {t.name: _Walk.of(s, [t], delta, coverages) for t in asked})
    threshold = just_above(s.groups, found)
    at = float(s.groups.confidence[found.last]) if threshold is None else threshold
    parts = [RulePart(t.name, t.rule(found.last, at)) for t in asked]
    if OVERALL not in {part.name for part in parts}:
        whole = _choice.chosen(s, found.last, Aim(GIVEN, 0.0), threshold=at)
        parts.insert(0, RulePart(OVERALL, replace(whole, target=None)))
    return DecisionRule.of_parts("", tuple(parts), joint=True, delta=delta)


@dataclass(frozen=True, eq=False)
class _Tested:
    """A limit, with what lies above each threshold of the samples that it is about."""

    name: str
    aim: Aim
    s: Scored
    #: Shape (n,). Which samples it is about.
    inside: BoolArray
    #: Shape (g,). Accepted samples, their weight and losses, and how many of these are above zero.
    count: IntArray
    weight: FloatArray
    total: FloatArray
    failed: IntArray

    @classmethod
    def of(cls, s: Scored, limit: Limit, inside: BoolArray, delta: float, there: Aim) -> "_Tested":
        whole = limit.risk == "generalized"
        checks.one_of(limit.risk, "risk", ("selective", "generalized"))
        aim = aimed(
            METHOD,
            "generalized risk" if whole else "selective risk",
            limit.max_risk,
            delta,
        )._replace(promised_for=there.promised_for, largest=there.largest)
        home, size = tie_group_index(s.groups, s.confidence, None)[inside], s.groups.confidence.size
        loss = s.loss[inside].astype(np.float64)
        weight = np.ones(loss.size) if s.weight is None else s.weight[inside]
        return cls(
            limit.name,
            aim,
            s,
            inside,
            np.cumsum(np.bincount(home, minlength=size)),
            np.cumsum(np.bincount(home, weights=weight, minlength=size)),
            np.cumsum(np.bincount(home, weights=weight * loss, minlength=size)),
            np.cumsum(np.bincount(home[loss > 0], minlength=size)),
        )

    @property
    def n(self) -> int:
        """How many samples it is about."""
        return int(self.count[-1])

    @property
    def whole(self) -> bool:
        return self.aim.guarantee == "generalized risk"

    def passes(self, alpha: float) -> BoolArray:
        """Tell at which thresholds a risk above the limit is refuted at level alpha."""
        if self.aim.largest is not None:
            return refuted(self.s, self.aim, alpha, self.inside)
        counts = np.full_like(self.count, self.n) if self.whole else self.count
        p_value = binomial_p if self.s.is_binary else hoeffding_bentkus_p
        some = counts > 0
        out: BoolArray = some & (
            p_value(np.maximum(counts, 1), self.total, self.aim.target) <= alpha
        )
        return out

    def rule(self, at: int, threshold: float) -> DecisionRule:
        """Return what is promised, and what the calibration samples show there."""
        aim, accepted, mass = self.aim, int(self.count[at]), float(self.weight[at])
        return DecisionRule(
            aim.method,
            threshold,
            aim.guarantee,
            target=aim.target,
            delta=aim.delta,
            bound=aim.target,
            n=self.n,
            accepted=accepted,
            failures=int(self.failed[at]),
            coverage=min(mass / float(self.weight[-1]), 1.0),
            risk=float(self.total[at]) / mass if accepted else None,
            promised_for=aim.promised_for,
        )

    def none(self, reason: str) -> DecisionRule:
        """Return the same promise without a threshold."""
        aim = self.aim
        return DecisionRule(
            aim.method,
            None,
            aim.guarantee,
            target=aim.target,
            delta=aim.delta,
            n=self.n,
            failures=0,
            coverage=0.0,
            reason=reason,
            promised_for=aim.promised_for,
        )


@dataclass(frozen=True, eq=False)
class _Walk:
    """Where walks start, and at which level each test is made."""

    s: Scored
    #: None: from accepting nothing.
    ranks: list[int] | None
    delta: float

    @classmethod
    def of(
        cls, s: Scored, asked: Sequence[_Tested], delta: float, coverages: tuple[float, ...]
    ) -> "_Walk":
        own = [t for t in asked if not t.whole]
        if not own:
            return cls(s, None, delta)
        least = max(least_count(t.aim.target, delta) for t in own)
        strictest = min(t.aim.target for t in own)
        ranks = [r for r in ranks_of(coverages, s.n_rows, strictest, delta) if r <= s.n_rows]
        return cls(s, ranks or [min(least, s.n_rows)], delta)

    @property
    def alpha(self) -> float:
        """The level of a test."""
        return self.delta / (1 if self.ranks is None else len(self.ranks))

    def down(self, asked: Sequence[_Tested]) -> Reach:
        """Return the last threshold at which all of these are certified."""
        if self.ranks is None:
            fine = np.logical_and.reduce([t.passes(self.alpha) for t in asked])
            return Reach(int(next_failing(fine)[0]) - 1, at_start=False)
        return furthest(
            self.s.groups,
            self.ranks,
            lambda alpha: np.logical_and.reduce([t.passes(alpha) for t in asked]),
            self.delta,
        )


def refuse_weights(weight: AnyArray | None, *, method: str) -> None:
    """Refuse weights, for which nothing here is proven."""
    _choice.refuse_weights(weight, method=method)


def _elsewhere(
    s: Scored, masks: dict[str, BoolArray], ratio: AnyArray | DensityRatios | None
) -> tuple[Scored, dict[str, BoolArray], Aim]:
    """Return the samples that come up where the rule is used, and what is promised of that."""
    aim = Aim(METHOD, 0.0)
    if ratio is None:
        return s, masks, aim
    ratios = as_density_ratios(ratio, s.n_rows)
    one, aim = weighted(s, aim, ratios)
    kept = {name: inside[ratios.values > 0] for name, inside in masks.items()}
    for name, inside in kept.items():
        if not inside.any():
            raise DomainError(
                f"the limit {name!r} is about samples that all have a ratio of 0; leave it out"
            )
    return one, kept, aim


def _mask(limit: Limit, n: int) -> BoolArray:
    if limit.among is None:
        return np.ones(n, dtype=np.bool_)
    inside = to_numpy(limit.among, "among")
    if inside.shape != (n,) or inside.dtype != np.bool_:
        msg = f"`among` of the limit {limit.name!r} must be {n} booleans; got {inside.dtype} "
        raise ShapeError(f"{msg}of shape {inside.shape}")
    if not inside.any():
        raise DomainError(f"the limit {limit.name!r} is about no calibration sample")
    return inside


def _none(s: Scored, asked: Sequence[_Tested], walks: Mapping[str, _Walk]) -> DecisionRule:
    """Say which limits could not be met alone, or that they cannot be met together."""
    alone = {t.name: walks[t.name].down([t]).last >= 0 for t in asked}
    failing = [name for name, fine in alone.items() if not fine]
    parts = []
    for t in asked:
        others = ", ".join(name for name in failing if name != t.name)
        if t.name in failing:
            reason = _why(t, walks[t.name])
        elif failing:
            reason = f"{ALONE}, but not together with {others}"
        else:
            reason = f"{ALONE}, but not together with the others"
        parts.append(RulePart(t.name, t.none(reason)))
    if OVERALL not in alone:
        nothing = _choice.unattainable(s, Aim(GIVEN, 0.0), "some limit cannot be certified")
        parts.insert(0, RulePart(OVERALL, replace(nothing, target=None)))
    return DecisionRule.of_parts("", tuple(parts), joint=True, delta=asked[0].aim.delta)


def _why(t: _Tested, walk: _Walk) -> str:
    """Say what a limit lacks by itself."""
    least = least_count(t.aim.target, walk.alpha)
    sure = f"a {t.aim.guarantee} of at most {t.aim.target:g} with delta {walk.delta:g}"
    if t.n < least:
        return f"{t.n} samples cannot certify {sure}, which takes {_choice.counted(least)} accepted"
    enough = (t.count >= least) | t.whole
    mean = t.total / (t.weight[-1] if t.whole else np.where(t.count > 0, t.weight, 1.0))
    at = int(np.argmin(np.where(enough, mean, np.inf)))
    starts = [] if walk.ranks is None else walk.ranks
    first = [int(t.count[np.searchsorted(walk.s.groups.cumulative_count, r)]) for r in starts]
    seen = f"the least seen is {mean[at]:.4g}, with {int(t.count[at])} of {t.n} accepted"
    if first and max(first) < least:
        return (
            f"no walk could certify {sure}: where they start at most {max(first)} of these samples "
            f"are accepted, and {_choice.counted(least)} without a failure are needed; start at a "
            f"larger coverage ({format_option('starts')}) or take more samples"
        )
    return f"no threshold that was tried certifies {sure}; {seen}"
