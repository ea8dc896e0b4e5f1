"""Create a `DecisionRule` from a tie group, and validate the arguments of rules."""

import math
from typing import Final, NamedTuple

import numpy as np

from abstain._foundation import checks
from abstain._foundation.scored import Scored, validate_samples_on_host
from abstain.errors import DomainError, InputError
from abstain.thresholds.catalogue import Guarantee
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray, BoolArray

#: Maximum relative difference of ratios of sums that are considered equal.
ROUNDING: Final = 1e-12
#: Maximum required number of samples that is computed. Floats are not exact for much larger
#: numbers.
MAX_COUNT: Final = 10**15


class RuleTarget(NamedTuple):
    """The target of a decision rule, and the guarantee that the target holds."""

    method: str
    target: float
    guarantee: Guarantee = "none"
    delta: float | None = None
    in_expectation: bool = False
    #: Population of the guarantee, or "" for the population of the calibration data.
    population: str = ""
    #: Upper limit of all density ratios. None unless the sample weights are density ratios.
    max_ratio: float | None = None


def build_rule(
    s: Scored,
    index: int,
    aim: RuleTarget,
    *,
    bound: float | None = None,
    has_losses: bool = True,
    threshold: float | None = None,
) -> DecisionRule:
    """Return the rule that accepts all tie groups up to and including an index.

    By default, the threshold is the confidence of the last accepted group. A threshold that the
    caller passes must accept the same samples.
    """
    groups = s.groups
    weight, loss = float(groups.cumulative_weight[index]), float(groups.cumulative_loss[index])
    if threshold is None:
        threshold = float(groups.confidence[index])
    return DecisionRule(
        method=aim.method,
        threshold=threshold,
        guarantee=aim.guarantee,
        in_expectation=aim.in_expectation,
        target=aim.target,
        delta=aim.delta,
        bound=bound,
        n=groups.n_samples,
        accepted=int(groups.cumulative_count[index]),
        failures=_count_accepted_failures(s, threshold) if has_losses else None,
        coverage=min(weight / groups.total_weight, 1.0),
        risk=loss / weight if has_losses else None,
        population=aim.population,
    )


def build_unattainable_rule(
    s: Scored, aim: RuleTarget, reason: str, *, has_losses: bool = True
) -> DecisionRule:
    """Return a rule that has no threshold and states the reason."""
    has_samples = s.confidence.size > 0
    return DecisionRule(
        method=aim.method,
        threshold=None,
        guarantee=aim.guarantee,
        in_expectation=aim.in_expectation,
        target=aim.target,
        delta=aim.delta,
        n=s.groups.n_samples if has_samples else 0,
        failures=0 if has_losses else None,
        coverage=0.0 if has_samples else None,
        reason=reason,
        population=aim.population,
    )


def _count_accepted_failures(s: Scored, threshold: float) -> int:
    with np.errstate(over="ignore"):
        threshold_of_type = np.asarray(threshold).astype(s.confidence.dtype)
    is_failure = (s.confidence >= threshold_of_type) & (s.loss > 0)
    if s.weight is not None:
        is_failure &= s.weight > 0
    return int(np.count_nonzero(is_failure))


def scored_without_loss(confidence: AnyArray, weight: AnyArray | None = None) -> Scored:
    """Validate confidences for a rule that needs no losses."""
    values = checks.confidence(confidence)
    return validate_samples_on_host(values, np.zeros(values.size, dtype=np.bool_), weight)


def check_calibration_data(
    confidence: AnyArray, loss: AnyArray, weight: AnyArray | None, *, method: str
) -> Scored:
    """Validate samples for a rule with a guarantee, which does not permit weights."""
    check_no_weights(weight, method=method)
    return validate_samples_on_host(confidence, loss)


def check_no_weights(weight: AnyArray | None, *, method: str) -> None:
    """Raise InputError if weights are passed, because no guarantee is proven for them."""
    if weight is not None:
        raise InputError(
            f"`weight` must be None for {method}: its guarantee holds for independent samples of "
            "equal weight. Keep one sample of each cluster, or use for_risk, which has no "
            "guarantee. If the weights are density ratios of another population (importance "
            "weights), pass them as `ratio`."
        )


def check_open_interval(x: float, name: str, *, high: float = 1.0, hint: str = "") -> float:
    """Validate a number between 0 and `high`, which are excluded."""
    value = checks.number(x, name)
    if 0 < value < high:
        return value
    rule = f"lie strictly between 0 and {high:g}" if high < np.inf else "be above 0"
    percent_hint = checks.percent_hint(value) if high <= 1 else ""
    message = f"`{name}` must {rule}; got {value!r}{percent_hint}. {hint}"
    raise DomainError(message.rstrip())


def check_max_risk(x: float, *, high: float = 1.0) -> float:
    """Validate the maximum risk that a rule guarantees."""
    hint = "No number of samples certifies a risk of 0; pass the largest acceptable risk."
    return check_open_interval(x, "max_risk", high=high, hint=hint)


def check_not_percent(target: float, largest: float) -> None:
    """Raise DomainError for a target above the largest loss, such as a target in percent."""
    if target > max(largest, 1.0):
        raise DomainError(
            f"`max_risk` must be at most the largest loss, {largest:g}; got "
            f"{target!r}{checks.percent_hint(target)}"
        )


def check_delta(x: float) -> float:
    """Validate the probability that a guarantee may fail."""
    return check_open_interval(
        x, "delta", hint="It is the probability that the guarantee fails, such as 0.05."
    )


def format_count(count: float) -> str:
    """Format a required number of samples, rounded up, as text."""
    return f"{math.ceil(count):,}" if count < MAX_COUNT else "more than 1e15"


def last_true_index(mask: BoolArray) -> int:
    """Return the index of the last True entry, or -1 if no entry is True."""
    indices = np.flatnonzero(mask)
    return int(indices[-1]) if indices.size else -1
