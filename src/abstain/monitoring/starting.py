"""`start`: from a decision rule and what is known of it to a monitor that saw nothing yet."""

import math
from typing import Final, get_args

import numpy as np

from abstain._foundation import checks
from abstain._foundation.json_records import short_repr
from abstain._foundation.lazy_imports import special
from abstain.confidence import ConfidenceScore
from abstain.errors import DomainError, InputError
from abstain.evaluation.rules.data import MAX_LOG_ODDS, score_data
from abstain.monitoring.ledger import Ledger
from abstain.monitoring.monitor import Monitor
from abstain.monitoring.plan import RISKS, MonitorPlan, RiskKind, said_risk
from abstain.monitoring.reference import Reference, reference_of
from abstain.monitoring.requests import Requests
from abstain.monitoring.state import MonitorState
from abstain.predictions import Predictions
from abstain.thresholds import DecisionRule
from abstain.typing import AnyArray, FloatArray, Scale

_NAN: Final = float("nan")
_MIN_DISTANCE: Final = 1e-9
_NOTHING: Final = (
    "there is nothing to watch: give `calibration`, `coverage` or `max_risk` "
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
    """Begin to watch a decision rule in use.

    Answers: does the rule still do what it promised, and if not, when would I know?

    Parameters
    ----------
    rule : DecisionRule
        With a threshold.
    calibration : Predictions or array of shape (n,), optional
        What the rule was chosen on, or confidences alone. Without it the distribution of the
        confidences is not watched, and labels are asked for evenly.
    delta : float, default=0.05
        The chance that *any* watch ever gives a false alarm; the watches share it evenly.
    coverage : tuple of float, optional
        Between which the coverage is as it should be. By default what the calibration data leave
        possible, at a cost of half of this watch's share of `delta`.
    max_risk : float, optional
        What the risk is held to; by default the target of the rule.
    label_share : float, optional
        Ask for the labels of this share of the answers, more of them where failures are likely.
        By default labels come by themselves and count as a random sample of the answers.
    patience : int, default=10_000
        After so many more predictions a label that was asked for is given up.
    remember : int, default=1_000_000
        So many predictions are known by their ids, at 17 bytes each: at least `patience` where
        labels are asked for. A label of an older one is not counted.
    scale : {"log-odds", "probability", "score"}, optional
        What the confidences of the stream are; to be given for a rule in log-odds.
    seed : int, default=0
        Of what is drawn: which labels are asked for, and how ties are broken.

    Returns
    -------
    Monitor
        Its `update` and `labels` take what comes.

    Raises
    ------
    InputError
        No rule with a threshold, nothing to watch, or a scale that the rule cannot be brought to.
    DomainError
        A chance, share or range that cannot be.

    Notes
    -----
    The coverage and the risk are bet against as in [1]_, the confidences by conformal p-values
    [2]_, the labels are asked for as in [3]_. docs/monitoring.md has what each watch assumes, and
    how long it takes to find a change.

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
    >>> watching = ab.monitoring.start(rule, coverage=(0.7, 0.9), max_risk=0.1)
    >>> watching.plan.watched
    ('coverage', 'risk')
    """
    _refuse_idle(rule)
    risk, kind = promised(rule, max_risk)
    delta = _chance(delta, "delta")
    on_scale, seed = scale_for(rule, scale), _seed(seed)
    known = None if calibration is None else reference_for(rule, calibration, on_scale, seed)
    # Limits can be told as soon as it is known how many watches share the chance.
    there = coverage is not None or (rule.coverage is not None and rule.n > 0)
    watches = max(there + (known is not None) + (risk is not None), 1)
    plan = MonitorPlan(
        rule=rule,
        delta=delta,
        scale=on_scale,
        coverage=coverage_limits(rule, coverage, delta / watches / 2),
        uncertain=coverage is None,
        max_risk=risk,
        kind=kind,
        label_share=None if label_share is None else _chance(label_share, "label_share"),
        patience=checks.positive_int(patience, "patience"),
        remember=checks.positive_int(remember, "remember"),
        seed=seed,
        reference=known,
    )
    _refuse_forgetful(plan)
    return Monitor(plan, MonitorState(Ledger.empty(), Requests.empty(), plan.begun(), urn=plan.urn))


def scale_for(rule: DecisionRule, scale: Scale | None) -> Scale:
    """Return what the stream is measured in; refuse to guess where a mistake would be silent."""
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
    rule: DecisionRule, given: tuple[float, float] | None, share: float
) -> tuple[float, float] | None:
    """Return between which the coverage is as on calibration, surely but for `share`.

    By the inequality of Dvoretzky, Kiefer and Wolfowitz, which holds for all thresholds at once:
    this one was chosen on the same data.
    """
    if given is not None:
        low, high = (checks.fraction(x, "coverage") for x in given)
        if not low <= high or not (low > 0 or high < 1) or low == 1 or high == 0:
            raise DomainError(
                "`coverage` must be a range within [0, 1], low and high, of which low is below 1, "
                f"high is above 0 and one of them is no end; got {given!r}"
            )
        return low, high
    if rule.coverage is None or not rule.n:
        return None
    if abs(rule.accepted / rule.n - rule.coverage) > 1e-9:
        raise InputError(
            "the calibration samples of this rule were weighted, so how sure its coverage is "
            "cannot be told: give `coverage` (--coverage), low and high"
        )
    reach = math.sqrt(math.log(2 / share) / (2 * rule.n))
    found = max(0.0, rule.coverage - reach), min(1.0, rule.coverage + reach)
    return None if found == (0.0, 1.0) else found


def promised(rule: DecisionRule, max_risk: float | None) -> tuple[float | None, RiskKind]:
    """Return the risk that the answers are held to, if any, and which risk that is."""
    kind: RiskKind = "generalized risk" if rule.quantity == "generalized risk" else "selective risk"
    if max_risk is None and rule.quantity in RISKS:
        max_risk = rule.target
    if max_risk is None:
        return None, kind
    value = checks.fraction(max_risk, "max_risk")
    # Nearer to 0 or 1 the stakes of the bets are not representable.
    if not _MIN_DISTANCE <= value <= 1 - _MIN_DISTANCE:
        raise DomainError(
            "`max_risk` must lie strictly between 0 and 1, and not closer to them than "
            f"{_MIN_DISTANCE:g}, to be watched; got {value!r}"
        )
    return value, kind


def refuse_other(
    found: Monitor, rule: DecisionRule, calibration: object = None, **given: object
) -> None:
    """Refuse to go on with a state that is of another rule, or was begun with other options.

    `given` are options of `start` that were said again; the others stay as they were.
    """
    plan = found.plan
    if rule != plan.rule:
        raise InputError(
            "the state is that of another rule:\n"
            f"  there: {plan.rule}\n  here: {rule}\nBegin a state of its own for this one"
        )
    for name, value in given.items():
        held = getattr(plan, name)
        if held != value:
            raise InputError(
                f"the state was begun with {name} = {held!r}; got {value!r}. Drop it "
                f"(--{name.replace('_', '-')}), or begin another state"
            )
    if calibration is None:
        return
    known = reference_for(rule, calibration, plan.scale, plan.seed)
    # Where many confidences tie, the edges of other data may be the same.
    parts = ("edges", "gaps")
    held = plan.reference
    if held is None or not all(
        np.array_equal(getattr(known.blocks, part), getattr(held.blocks, part)) for part in parts
    ):
        raise InputError(
            "the state was begun with other calibration data; drop them (--calibration)"
        )


def _refuse_forgetful(plan: MonitorPlan) -> None:
    """Refuse to watch nothing, and to wait for a label longer than its prediction is known."""
    if not plan.watched:
        raise InputError(_NOTHING)
    if plan.label_share is not None and plan.remember < plan.patience:
        # A label that is awaited would find its prediction forgotten, and never count.
        raise DomainError(
            f"`remember` must be at least `patience` ({plan.patience:,}) where labels are asked "
            f"for; got {plan.remember:,}: remember more, or wait less (--remember, --patience)"
        )


def _refuse_idle(rule: object) -> None:
    """Refuse what is no decision rule, or one that answers nothing."""
    if isinstance(rule, DecisionRule) and rule.parts:
        raise InputError(
            "`rule` must have one promise, and this one has several parts: monitor rule.part(NAME) "
            "of each"
        )
    if not isinstance(rule, DecisionRule):
        raise InputError(
            f"`rule` must be a DecisionRule with a threshold; got {type(rule).__name__}"
        )
    if not rule.attainable:
        raise InputError(f"`rule` must have a threshold; this one has none: {rule.reason}")


def _seed(given: int) -> int:
    """Return a seed that fits into the key of the hash of the ids."""
    if type(given) is not int or not 0 <= given < 2**64:
        raise DomainError(
            f"`seed` must be an integer of at least 0 and below 2^64; got {short_repr(given)}"
        )
    return given


def _chance(given: float, name: str) -> float:
    found = checks.fraction(given, name)
    if not 0 < found < 1:
        raise DomainError(f"`{name}` must lie strictly between 0 and 1; got {given!r}")
    return found


def reference_for(rule: DecisionRule, data: object, scale: Scale, seed: int = 0) -> Reference:
    """Return the calibration data on the scale of the stream."""
    part = score_data(data, rule.score or None, None)
    if part.weight is not None:
        raise InputError(
            "`calibration` must have no weights: where a confidence stands among samples that "
            "count unevenly is not known surely"
        )
    values: FloatArray = np.asarray(part.values, np.float64)
    computed = isinstance(part.score, ConfidenceScore) and not part.score.is_user_column
    # A bare array is on the scale of the stream, a column on that of the rule.
    own = scale if part.score is None else part.score.scale if computed else rule.scale
    if {own, scale} == {"log-odds", "probability"}:
        turned = special.expit if own == "log-odds" else special.logit
        values = np.clip(turned(values), -MAX_LOG_ODDS, MAX_LOG_ODDS)
    at = rule.threshold_on(scale)
    return reference_of(
        values,
        part.loss,
        threshold=_NAN if at is None else at,
        predicted=said_risk(values, scale),
        seed=seed,
    )
