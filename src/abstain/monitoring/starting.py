"""Create a monitor for a decision rule."""

import math
from typing import Final, get_args

import numpy as np

from abstain._foundation import checks
from abstain._foundation.json_records import short_repr
from abstain._foundation.lazy_imports import special
from abstain.confidence import ConfidenceScore
from abstain.errors import DomainError, InputError
from abstain.evaluation.rules.data import MAX_LOG_ODDS, score_data
from abstain.monitoring.monitor import Monitor
from abstain.monitoring.plan import (
    RISKS,
    MonitorPlan,
    Reference,
    RiskKind,
    build_reference,
    risk_from_confidence,
)
from abstain.monitoring.state import Ledger, MonitorState, Requests
from abstain.predictions import Predictions
from abstain.thresholds import DecisionRule
from abstain.typing import AnyArray, FloatArray, Scale

_NAN: Final = float("nan")
_MIN_DISTANCE: Final = 1e-9
_NOTHING_TO_WATCH: Final = (
    "there is nothing to watch: pass `calibration`, `coverage` or `max_risk` "
    "(--calibration, --coverage, --max-risk)"
)


def start(
    rule: DecisionRule,
    *,
    calibration: Predictions | AnyArray | None = None,
    delta: float = 0.05,
    coverage: tuple[float, float] | None = None,
    max_risk: float | None = None,
    label_share: float | None = None,
    patience: int = 10_000,
    remember: int = 1_000_000,
    scale: Scale | None = None,
    seed: int = 0,
) -> Monitor:
    """Create a monitor for a decision rule that is used in production.

    The monitor detects whether the guarantee of the rule no longer holds.

    Parameters
    ----------
    rule : DecisionRule
        Decision rule with one threshold.
    calibration : Predictions or array of shape (n,), optional
        Calibration data of the rule, or their confidences. By default, the distribution of the
        confidences is not watched, and labels are requested with equal probabilities.
    delta : float, default=0.05
        Probability that *any* watch ever raises a false alarm, divided equally among the watches.
    coverage : tuple of float, optional
        Allowed range of the coverage. The default is a range that is estimated from the
        calibration data.
    max_risk : float, optional
        Maximum allowed risk. By default, the target of the rule is used.
    label_share : float, optional
        Share of the answers whose labels are requested, more often if a failure is likely. By
        default, no labels are requested, and the labels that arrive are assumed to be a random
        sample of the answers.
    patience : int, default=10_000
        Number of later predictions after which a requested label counts as missing.
    remember : int, default=1_000_000
        Number of predictions whose ids are stored, with 17 bytes each. If labels are requested,
        `remember` must be at least `patience`. Labels of older predictions are ignored.
    scale : {"log-odds", "probability", "score"}, optional
        Scale of the confidences in the stream, which is required for a rule in log-odds.
    seed : int, default=0
        Seed of the label requests and of the random order of ties.

    Returns
    -------
    Monitor
        A monitor without observations.

    Raises
    ------
    InputError
        If the rule has no threshold, if no quantity can be watched, or if the threshold cannot be
        converted to the scale.
    DomainError
        If a probability, a share or a range is invalid.

    Notes
    -----
    The coverage and the risk are tested by betting [1]_, and the confidences by conformal p-values
    [2]_. Labels are requested as in [3]_. docs/monitoring.md describes the assumptions of each
    watch, and the time that it needs to detect a change.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting,
       https://arxiv.org/abs/2010.09686
    .. [2] Vovk, Nouretdinov and Gammerman (2003), Testing exchangeability on-line, ICML
    .. [3] Zrnic and Candes (2024), Active statistical inference,
       https://arxiv.org/abs/2403.03208

    Examples
    --------
    >>> import abstain as ab
    >>> rule = ab.thresholds.DecisionRule("given", 0.5)
    >>> monitor = ab.monitoring.start(rule, coverage=(0.7, 0.9), max_risk=0.1)
    >>> monitor.plan.watched
    ('coverage', 'risk')
    """
    _check_rule(rule)
    max_risk, risk_kind = resolve_max_risk(rule, max_risk)
    delta = _check_open_fraction(delta, "delta")
    scale = resolve_scale(rule, scale)
    seed = _check_seed(seed)
    reference = None
    if calibration is not None:
        reference = calibration_reference(rule, calibration, scale, seed)
    # The watches share `delta`. Half of the share of the coverage is for its estimated range.
    has_coverage = coverage is not None or (rule.coverage is not None and rule.n > 0)
    n_watches = max(has_coverage + (reference is not None) + (max_risk is not None), 1)
    coverage_range = coverage_limits(rule, coverage, delta / n_watches / 2)
    if label_share is not None:
        label_share = _check_open_fraction(label_share, "label_share")
    plan = MonitorPlan(
        rule=rule,
        delta=delta,
        scale=scale,
        coverage=coverage_range,
        is_coverage_estimated=coverage is None,
        max_risk=max_risk,
        risk_kind=risk_kind,
        label_share=label_share,
        patience=checks.positive_int(patience, "patience"),
        remember=checks.positive_int(remember, "remember"),
        seed=seed,
        reference=reference,
    )
    _check_watches_and_memory(plan)
    state = MonitorState(Ledger.empty(), Requests.empty(), plan.initial_watches(), urn=plan.urn)
    return Monitor(plan, state)


def resolve_scale(rule: DecisionRule, scale: Scale | None) -> Scale:
    """Return the scale of the stream.

    If the scale is neither known nor passed, an InputError is raised.
    """
    if scale is not None:
        checks.one_of(scale, "scale", get_args(Scale))
        if rule.threshold_on(scale) is None:
            raise InputError(
                f"the threshold of this rule is on the scale {rule.scale!r}, which has no exact "
                f"counterpart in {scale!r}"
            )
        return scale
    if rule.scale == "log-odds":
        raise InputError(
            "the threshold of this rule is in log-odds: say what the confidences of the stream "
            "are with `scale` (--scale), 'log-odds' or 'probability'"
        )
    return "probability" if rule.scale == "probability" else "score"


def coverage_limits(
    rule: DecisionRule, coverage: tuple[float, float] | None, share: float
) -> tuple[float, float] | None:
    """Return a range that contains the true coverage with probability 1 - share.

    If `coverage` is passed, it is validated and returned. Otherwise, the range is computed by the
    inequality of Dvoretzky, Kiefer and Wolfowitz.
    """
    if coverage is not None:
        low, high = coverage
        low = checks.fraction(low, "coverage")
        high = checks.fraction(high, "coverage")
        is_range = low <= high and low < 1 and high > 0
        excludes_values = low > 0 or high < 1
        if not (is_range and excludes_values):
            raise DomainError(
                "`coverage` must be a range within [0, 1], low and high, of which low is below 1, "
                f"high is above 0 and one of them is no end; got {coverage!r}"
            )
        return low, high
    if rule.coverage is None or not rule.n:
        return None
    if abs(rule.accepted / rule.n - rule.coverage) > 1e-9:
        raise InputError(
            "the calibration samples of this rule were weighted, so how sure its coverage is "
            "cannot be told: give `coverage` (--coverage), low and high"
        )
    half_width = math.sqrt(math.log(2 / share) / (2 * rule.n))
    limits = max(0.0, rule.coverage - half_width), min(1.0, rule.coverage + half_width)
    return None if limits == (0.0, 1.0) else limits


def resolve_max_risk(rule: DecisionRule, max_risk: float | None) -> tuple[float | None, RiskKind]:
    """Return the maximum allowed risk, or None without one, and the kind of risk."""
    kind: RiskKind = "generalized risk" if rule.quantity == "generalized risk" else "selective risk"
    if max_risk is None and rule.quantity in RISKS:
        max_risk = rule.target
    if max_risk is None:
        return None, kind
    value = checks.fraction(max_risk, "max_risk")
    # The stakes of the bets cannot be represented closer to 0 or 1.
    if not _MIN_DISTANCE <= value <= 1 - _MIN_DISTANCE:
        raise DomainError(
            "`max_risk` must lie strictly between 0 and 1, and not closer to them than "
            f"{_MIN_DISTANCE:g}, to be watched; got {value!r}"
        )
    return value, kind


def check_matches_state(
    monitor: Monitor, rule: DecisionRule, calibration: object = None, **options: object
) -> None:
    """Raise an InputError if a state belongs to another rule or was created with other options.

    `options` contains the options of `start` that were passed again.
    """
    plan = monitor.plan
    if rule != plan.rule:
        raise InputError(
            "the state belongs to another rule:\n"
            f"  state: {plan.rule}\n  requested: {rule}\nCreate another state for this rule"
        )
    for name, value in options.items():
        stored_value = getattr(plan, name)
        if stored_value != value:
            raise InputError(
                f"the state was created with {name} = {stored_value!r}; got {value!r}. Drop the "
                f"option (--{name.replace('_', '-')}), or create another state"
            )
    if calibration is None:
        return
    reference = calibration_reference(rule, calibration, plan.scale, plan.seed)
    if plan.reference is None or not _have_same_blocks(reference, plan.reference):
        raise InputError(
            "the state was created with other calibration data; drop them (--calibration)"
        )


def _have_same_blocks(first: Reference, second: Reference) -> bool:
    """Return whether two summaries of calibration data have the same blocks."""
    # With many ties, other data may have the same edges, but not the same numbers of gaps.
    have_same_edges = np.array_equal(first.blocks.edges, second.blocks.edges)
    return have_same_edges and np.array_equal(first.blocks.n_gaps, second.blocks.n_gaps)


def _check_watches_and_memory(plan: MonitorPlan) -> None:
    """Check that at least one watch is active, and that `remember` is at least `patience`."""
    if not plan.watched:
        raise InputError(_NOTHING_TO_WATCH)
    if plan.label_share is not None and plan.remember < plan.patience:
        # Otherwise, the prediction of an awaited label could be dropped before the label arrives.
        raise DomainError(
            f"`remember` must be at least `patience` ({plan.patience:,}) if labels are requested; "
            f"got {plan.remember:,}: increase `remember`, or decrease `patience` "
            "(--remember, --patience)"
        )


def _check_rule(rule: object) -> None:
    """Raise an InputError unless the rule is a decision rule with one threshold."""
    if not isinstance(rule, DecisionRule):
        raise InputError(
            f"`rule` must be a DecisionRule with a threshold; got {type(rule).__name__}"
        )
    if rule.parts:
        raise InputError(
            "`rule` must have one guarantee, and this rule has several parts: monitor "
            "rule.part(NAME) for each"
        )
    if not rule.attainable:
        raise InputError(f"`rule` must have a threshold; this rule has none: {rule.reason}")


def _check_seed(seed: int) -> int:
    """Validate that the seed is an integer from 0 to 2^64 - 1."""
    if type(seed) is not int or not 0 <= seed < 2**64:
        raise DomainError(
            f"`seed` must be an integer of at least 0 and below 2^64; got {short_repr(seed)}"
        )
    return seed


def _check_open_fraction(value: float, name: str) -> float:
    fraction = checks.fraction(value, name)
    if not 0 < fraction < 1:
        raise DomainError(f"`{name}` must lie strictly between 0 and 1; got {value!r}")
    return fraction


def calibration_reference(
    rule: DecisionRule, source: object, scale: Scale, seed: int = 0
) -> Reference:
    """Summarize the calibration data on the scale of the stream."""
    data = score_data(source, rule.score or None, None)
    if data.weight is not None:
        raise InputError(
            "`calibration` must have no weights, because the test of the ranks requires samples "
            "of equal weight"
        )
    confidence: FloatArray = np.asarray(data.values, np.float64)
    data_scale: str
    if not isinstance(data.score, ConfidenceScore):
        # An array is on the scale of the stream.
        data_scale = scale
    elif data.score.is_user_column:
        # A confidence column is on the scale of the rule.
        data_scale = rule.scale
    else:
        data_scale = data.score.scale
    if {data_scale, scale} == {"log-odds", "probability"}:
        convert = special.expit if data_scale == "log-odds" else special.logit
        confidence = np.clip(convert(confidence), -MAX_LOG_ODDS, MAX_LOG_ODDS)
    threshold = rule.threshold_on(scale)
    if threshold is None:
        threshold = _NAN
    return build_reference(
        confidence,
        data.loss,
        threshold=threshold,
        predicted=risk_from_confidence(confidence, scale),
        seed=seed,
    )
