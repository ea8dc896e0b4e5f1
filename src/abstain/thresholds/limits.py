"""Choose one threshold with several risk limits by learn then test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

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
from abstain.thresholds._choice import RuleTarget
from abstain.thresholds._consistency import OVERALL
from abstain.thresholds._walks import (
    WalkResult,
    first_group_after_start,
    format_percentage,
    longest_walk,
    next_failure,
    refuted_by_betting,
    risk_target,
    start_ranks,
    threshold_above_next,
    weight_by_ratio,
)
from abstain.thresholds.binomial import (
    binomial_p_value,
    hoeffding_bentkus_p_value,
    max_passing_failures,
    min_count,
)
from abstain.thresholds.certified import check_starts
from abstain.thresholds.rule import USER_THRESHOLD, DecisionRule, RulePart
from abstain.typing import AnyArray, BoolArray, FloatArray, IntArray

#: Default coverages at which walks start. The coverages are larger than for one risk, because a
#: class has fewer samples than the total.
DEFAULT_STARTS = (0.75, 0.5, 0.25)
#: The method of the rule for each limit.
METHOD: Final = "learn_then_test"
#: Largest multiple of the number of samples that `find_n_required_for_limits` tries, and its step.
_MAX_MULTIPLE, _STEP = 10.0, 0.01
#: First words of the reason for a limit that could be certified without the other limits.
CERTIFIABLE_ALONE: Final = "could be certified alone"


@dataclass(frozen=True, eq=False)
class Limit:
    """An upper limit of a risk.

    Attributes
    ----------
    name : str
        Name of the limit, such as "overall", "group:night" or "label:cat".
    max_risk : float
        The limit, between 0 and 1.
    mask : array of shape (n,) or None
        Boolean mask of the samples whose risk is limited, or None for all samples. The mask may
        select the samples of one true class. With 0/1 losses, the risk of a true class is its
        false-negative rate.
    risk : {"selective", "generalized"}
        "selective" is the mean loss of the accepted samples in the mask. "generalized" is the total
        loss of these samples divided by the number of all samples in the mask.
    """

    name: str
    max_risk: float
    mask: AnyArray | None = None
    risk: Literal["selective", "generalized"] = "selective"

    def subset(self, rows: IntArray) -> "Limit":
        """Return the same limit for a subset of the samples."""
        return self if self.mask is None else replace(self, mask=np.asarray(self.mask)[rows])


def several_risks(
    confidence: AnyArray,
    loss: AnyArray,
    limits: Sequence[Limit],
    *,
    delta: float,
    starts: Sequence[float] = DEFAULT_STARTS,
    ratio: AnyArray | DensityRatios | None = None,
) -> DecisionRule:
    """Choose one threshold with a large coverage and several guaranteed risks.

    Answers: how many samples can I answer if the overall risk, the risk of each group and the false
    negatives of a class must all stay within their limits, with confidence 1 - delta?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidences of held-out samples, which neither the model nor the confidence score was
        fitted on.
    loss : array of shape (n,)
        Losses in [0, 1].
    limits : sequence of Limit
        The limits.
    delta : float
        Probability, over calibration sets, that any limit is exceeded; between 0 and 1.
    starts : sequence of float, default=(0.75, 0.5, 0.25)
        Coverages in (0, 1] at which walks start. The starts share delta. If all limits are for
        generalized risks, the tests start at the threshold that accepts no sample, and `starts` is
        ignored.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`) that guarantee the limits in another population.

    Returns
    -------
    DecisionRule
        One threshold, and a part for each limit with its results on the calibration samples. The
        rule always has a part "overall". If the limits cannot be certified jointly, the rule has no
        threshold. In this case, the reason of each part states whether its limit could be
        certified alone.

    Raises
    ------
    InputError
        If `limits` is empty, or if two limits have the same name.
    ShapeError, DomainError
        If values are invalid, a loss is above 1, a limit has no samples, or a number is not between
        0 and 1.

    See Also
    --------
    fit_groups : Selects a threshold for each group.
    fixed_sequence : Tests along any path.

    Notes
    -----
    As in `learn_then_test`, thresholds are tested from a start downwards until the first failure.
    A threshold passes if the test of every limit passes at the full level. The p-value of "some
    limit is exceeded" is the largest p-value of all limits, so the limits do not divide delta. If
    both selective and generalized risks are limited, delta is divided equally between both kinds.

    If density ratios are passed, each limit is tested by betting, as in `learn_then_test`. For the
    risk of a subset, the ratios of all other samples are set to 0. The guarantee is proven if each
    risk in the other population increases with the coverage.

    A limit that applies to few samples often fails first, so the coverage is small. At each start,
    enough samples of each limit must be accepted for a certificate. Otherwise, the reason names
    the limit with too few samples. The cost is one sort and one test for each distinct confidence
    and limit.

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
    options: dict[str, Any] = {"delta": delta, "starts": starts, "ratio": ratio}
    return fit_limits(confidence, loss, limits, **options, requires_samples=True)


def fit_limits(
    confidence: AnyArray,
    loss: AnyArray,
    limits: Sequence[Limit],
    *,
    delta: float,
    starts: Sequence[float] = DEFAULT_STARTS,
    ratio: AnyArray | DensityRatios | None = None,
    requires_samples: bool = False,
) -> DecisionRule:
    """Choose a threshold as `several_risks` does.

    A limit without samples raises an error if `requires_samples` is True. Otherwise, the result is
    a rule without a threshold, because such a limit cannot be certified.
    """
    s = _choice.check_calibration_data(confidence, loss, None, method="several_risks")
    checks.unit_interval(s.loss, "loss", hint="Divide by the largest loss possible.")
    masks = {limit.name: check_mask(limit, s.n_rows) for limit in limits}
    s, masks, base_target = _apply_ratios(s, masks, ratio)
    empty = [name for name, mask in masks.items() if not mask.any()]
    if empty and requires_samples:
        advice = "" if ratio is None else " with a ratio above 0; leave out the limit"
        raise DomainError(f"the limit {empty[0]!r} has no calibration samples{advice}")
    tests = [
        _LimitTest.from_limit(s, limit, masks[limit.name], delta, base_target) for limit in limits
    ]
    names = [test.name for test in tests]
    if not tests or len(set(names)) < len(names):
        raise InputError(f"`limits` must name at least one limit, each once; got {names}")
    coverages = check_starts(starts)
    # The proof for selective risks is conditional on the start of a walk, but the proof for
    # generalized risks is not. Each kind of risk therefore gets a share of delta.
    n_risk_kinds = len({test.is_generalized for test in tests})
    walk = _Walk.for_tests(s, tests, delta / n_risk_kinds, coverages)
    result = walk.run(tests)
    if result.last_group < 0:
        walks = {test.name: _Walk.for_tests(s, [test], delta, coverages) for test in tests}
        return _unattainable_rule(s, tests, walks)
    threshold = threshold_above_next(s.groups, result)
    if threshold is None:
        threshold = float(s.groups.confidence[result.last_group])
    parts = [RulePart(test.name, test.rule(result.last_group, threshold)) for test in tests]
    if OVERALL not in names:
        no_target = RuleTarget(USER_THRESHOLD, 0.0)
        overall = _choice.build_rule(s, result.last_group, no_target, threshold=threshold)
        parts.insert(0, RulePart(OVERALL, replace(overall, target=None)))
    return DecisionRule.from_parts("", tuple(parts), joint=True, delta=delta)


@dataclass(frozen=True, eq=False)
class _LimitTest:
    """A limit with cumulative sums over its samples, in descending order of confidence."""

    name: str
    aim: RuleTarget
    s: Scored
    #: Shape (n,). Mask of the samples of the limit.
    mask: BoolArray
    #: Shape (g,). Number, weight, weighted loss and number of failures of the accepted samples.
    count: IntArray
    weight: FloatArray
    loss: FloatArray
    failures: IntArray

    @classmethod
    def from_limit(
        cls, s: Scored, limit: Limit, mask: BoolArray, delta: float, base_target: RuleTarget
    ) -> "_LimitTest":
        """Validate a limit and compute its cumulative sums."""
        checks.one_of(limit.risk, "risk", ("selective", "generalized"))
        guarantee: Literal["selective risk", "generalized risk"] = "selective risk"
        if limit.risk == "generalized":
            guarantee = "generalized risk"
        aim = risk_target(METHOD, guarantee, limit.max_risk, delta)
        aim = aim._replace(population=base_target.population, max_ratio=base_target.max_ratio)
        group = tie_group_index(s.groups, s.confidence, None)[mask]
        n_groups = s.groups.confidence.size
        loss = s.loss[mask].astype(np.float64)
        weight = np.ones(loss.size) if s.weight is None else s.weight[mask]

        def cumulative(weights: FloatArray) -> FloatArray:
            return np.cumsum(np.bincount(group, weights=weights, minlength=n_groups))

        return cls(
            name=limit.name,
            aim=aim,
            s=s,
            mask=mask,
            count=np.cumsum(np.bincount(group, minlength=n_groups)),
            weight=cumulative(weight),
            loss=cumulative(weight * loss),
            failures=np.cumsum(np.bincount(group[loss > 0], minlength=n_groups)),
        )

    @property
    def n(self) -> int:
        """Number of samples of the limit."""
        return int(self.count[-1])

    @property
    def is_generalized(self) -> bool:
        return self.aim.guarantee == "generalized risk"

    def passes(self, alpha: float) -> BoolArray:
        """Return a mask of the thresholds that certify the limit at level alpha."""
        if self.n == 0:
            return np.zeros(self.count.size, dtype=np.bool_)
        if self.aim.max_ratio is not None:
            return refuted_by_betting(self.s, self.aim, alpha, self.mask)
        counts = np.full_like(self.count, self.n) if self.is_generalized else self.count
        p_value = binomial_p_value if self.s.is_binary else hoeffding_bentkus_p_value
        p_values = p_value(np.maximum(counts, 1), self.loss, self.aim.target)
        out: BoolArray = (counts > 0) & (p_values <= alpha)
        return out

    def describe_start(self, index: int, alpha: float) -> str:
        """Return the numbers of failures up to a tie group: the observed and the allowed number."""
        n_accepted = int(self.count[index])
        max_failures = max_passing_failures(n_accepted, self.aim.target, alpha)
        allowed = "none" if max_failures <= 0 else f"{max_failures:,}"
        return f"{int(self.failures[index]):,} of {n_accepted:,} are wrong and {allowed} may be"

    def passes_at(self, index: IntArray, multiple: float, alpha: float) -> BoolArray:
        """Return whether the limit is certified at tie groups if all counts are scaled."""
        counts = np.floor(self.count[index] * multiple).astype(np.int64)
        failures = np.ceil(self.failures[index] * multiple)
        p_values = binomial_p_value(np.maximum(counts, 1), failures, self.aim.target)
        out: BoolArray = (counts > 0) & (p_values <= alpha)
        return out

    def rule(self, group: int, threshold: float) -> DecisionRule:
        """Return the rule of this limit, with its results on the samples up to a tie group."""
        aim = self.aim
        accepted = int(self.count[group])
        weight = float(self.weight[group])
        return DecisionRule(
            aim.method,
            threshold,
            aim.guarantee,
            target=aim.target,
            delta=aim.delta,
            bound=aim.target,
            n=self.n,
            accepted=accepted,
            failures=int(self.failures[group]),
            coverage=min(weight / float(self.weight[-1]), 1.0),
            risk=float(self.loss[group]) / weight if accepted else None,
            population=aim.population,
        )

    def rule_without_threshold(self, reason: str) -> DecisionRule:
        """Return a rule for this limit that has no threshold."""
        aim = self.aim
        return DecisionRule(
            aim.method,
            None,
            aim.guarantee,
            target=aim.target,
            delta=aim.delta,
            n=self.n,
            failures=0,
            coverage=0.0 if self.n else None,
            reason=reason,
            population=aim.population,
        )


@dataclass(frozen=True, eq=False)
class _Walk:
    """The starts of sequences of tests, which share the failure probability delta."""

    s: Scored
    #: Ranks of the starts. None starts from the threshold that accepts no sample.
    ranks: list[int] | None
    delta: float

    @classmethod
    def for_tests(
        cls,
        s: Scored,
        tests: Sequence[_LimitTest],
        delta: float,
        coverages: tuple[float, ...],
        n: int | None = None,
    ) -> "_Walk":
        """Compute the starts for the number of samples, or for n samples if n is passed."""
        n = s.n_rows if n is None else n
        targets = [test.aim.target for test in tests if not test.is_generalized]
        if not targets:
            return cls(s, None, delta)
        ranks = start_ranks(coverages, n, min(targets), delta)
        ranks = [rank for rank in ranks if rank <= n]
        smallest = max(min_count(target, delta) for target in targets)
        return cls(s, ranks or [min(smallest, n)], delta)

    @property
    def alpha(self) -> float:
        """The level of each test."""
        return self.delta / (1 if self.ranks is None else len(self.ranks))

    def run(self, tests: Sequence[_LimitTest]) -> WalkResult:
        """Return the result with the largest coverage at which all limits are certified."""

        def passes(alpha: float) -> BoolArray:
            return np.asarray(np.logical_and.reduce([test.passes(alpha) for test in tests]))

        if self.ranks is None:
            last_group = int(next_failure(passes(self.alpha))[0]) - 1
            return WalkResult(last_group, ends_at_start=False)
        return longest_walk(self.s.groups, self.ranks, passes, self.delta)


def find_n_required_for_limits(
    samples: Scored, limits: Sequence[Limit], *, delta: float, starts: Sequence[float]
) -> int | None:
    """Estimate the number of samples with which the limits could be certified.

    The counts of accepted samples and failures at each confidence are assumed to increase in
    proportion to the number of samples. The losses must be 0 or 1, and the risks selective. The
    result is None if more than ten times the available number of samples are needed.
    """
    no_target = RuleTarget(METHOD, 0.0)
    tests = [
        _LimitTest.from_limit(samples, limit, check_mask(limit, samples.n_rows), delta, no_target)
        for limit in limits
    ]
    n_steps = int(np.log(_MAX_MULTIPLE) / np.log1p(_STEP))
    multiples = (1 + _STEP) ** np.arange(1, n_steps + 1)
    for n_required in map(int, np.ceil(samples.n_rows * multiples)):
        walk = _Walk.for_tests(samples, tests, delta, check_starts(starts), n_required)
        multiple = n_required / samples.n_rows
        cumulative_count = samples.groups.cumulative_count * multiple
        index = np.searchsorted(cumulative_count, walk.ranks or [], side="right") - 1
        index = np.maximum(index, 0)
        is_passed = [test.passes_at(index, multiple, walk.alpha) for test in tests]
        if np.logical_and.reduce(is_passed).any():
            return n_required
    return None


def check_no_weights(weight: AnyArray | None, *, method: str) -> None:
    """Raise InputError if weights are passed, because no guarantee is proven for them."""
    _choice.check_no_weights(weight, method=method)


def _apply_ratios(
    s: Scored, masks: dict[str, BoolArray], ratio: AnyArray | DensityRatios | None
) -> tuple[Scored, dict[str, BoolArray], RuleTarget]:
    """Return the samples with positive ratios, their masks, and the target of a rule for them."""
    base_target = RuleTarget(METHOD, 0.0)
    if ratio is None:
        return s, masks, base_target
    ratios = as_density_ratios(ratio, s.n_rows)
    weighted, base_target = weight_by_ratio(s, base_target, ratios)
    positive_masks = {name: mask[ratios.values > 0] for name, mask in masks.items()}
    return weighted, positive_masks, base_target


def check_mask(limit: Limit, n: int) -> BoolArray:
    """Return the mask of a limit for n samples."""
    if limit.mask is None:
        return np.ones(n, dtype=np.bool_)
    mask = to_numpy(limit.mask, "mask")
    if mask.shape != (n,) or mask.dtype != np.bool_:
        raise ShapeError(
            f"`mask` of the limit {limit.name!r} must be {n} booleans; got {mask.dtype} of shape "
            f"{mask.shape}"
        )
    return mask


def _unattainable_rule(
    s: Scored, tests: Sequence[_LimitTest], walks: Mapping[str, _Walk]
) -> DecisionRule:
    """Return a rule without a threshold, whose reasons name the limits that fail."""
    failing = [test.name for test in tests if walks[test.name].run([test]).last_group < 0]
    parts = []
    for test in tests:
        if test.name in failing:
            reason = _reason_for_failure(test, walks[test.name])
        elif failing:
            reason = f"{CERTIFIABLE_ALONE}, but not together with {', '.join(failing)}"
        else:
            reason = f"{CERTIFIABLE_ALONE}, but not together with the other limits"
        parts.append(RulePart(test.name, test.rule_without_threshold(reason)))
    if OVERALL not in {test.name for test in tests}:
        no_target = RuleTarget(USER_THRESHOLD, 0.0)
        overall = _choice.build_unattainable_rule(s, no_target, "some limit cannot be certified")
        parts.insert(0, RulePart(OVERALL, replace(overall, target=None)))
    return DecisionRule.from_parts("", tuple(parts), joint=True, delta=tests[0].aim.delta)


def _reason_for_failure(test: _LimitTest, walk: _Walk) -> str:
    """Return the reason why a limit could not be certified even if it were the only limit."""
    required = min_count(test.aim.target, walk.alpha)
    required_text = _choice.format_count(required)
    target_text = format_percentage(test.aim.target)
    claim = f"a {test.aim.guarantee} of at most {target_text} with delta {walk.delta:g}"
    if test.n < required:
        return (
            f"{test.n:,} samples cannot certify {claim}; this requires {required_text} accepted "
            "samples"
        )
    is_testable = (test.count >= required) | test.is_generalized
    weight = np.where(test.count > 0, test.weight, 1.0)
    risk = test.loss / (test.weight[-1] if test.is_generalized else weight)
    lowest = int(np.argmin(np.where(is_testable, risk, np.inf)))
    starts = [] if walk.ranks is None else walk.ranks
    start_groups = np.searchsorted(walk.s.groups.cumulative_count, starts)
    max_at_start = max((int(test.count[group]) for group in start_groups), default=required)
    if max_at_start < required:
        return (
            f"no walk could certify {claim}: at the starts, at most {max_at_start:,} of these "
            f"samples are accepted, and {required_text} without a failure are required; start at a "
            f"larger coverage ({format_option('starts')}) or use more samples"
        )
    lowest_risk = (
        f"the lowest observed risk is {format_percentage(risk[lowest], 3)}, with "
        f"{int(test.count[lowest]):,} of {test.n:,} accepted"
    )
    is_counted = test.s.is_binary and test.aim.max_ratio is None and not test.is_generalized
    if not is_counted:
        return f"no tested threshold certifies {claim}; {lowest_risk}"
    indices = [first_group_after_start(walk.s.groups, rank) - 1 for rank in starts]
    results = "; ".join(test.describe_start(i, walk.alpha) for i in indices if i >= 0)
    at_starts = f": at the starts, {results}" if results else ""
    untested = "" if lowest in indices else ", but no walk starts there"
    return f"no tested threshold certifies {claim}{at_starts}; {lowest_risk}{untested}"
