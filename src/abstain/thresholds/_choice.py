"""From a tie group to a `DecisionRule`; what every rule shares."""

import math
from typing import Final, NamedTuple

import numpy as np

from abstain._foundation import checks
from abstain._foundation.scored import Scored, validate_samples_on_host
from abstain.errors import DomainError, InputError
from abstain.thresholds.entry import Guarantee
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray, BoolArray

#: Ratios of sums closer than this are equal.
ROUNDING: Final = 1e-12
#: Beyond this nobody has samples, and floats skip whole numbers.
COUNTABLE: Final = 10**15


class Aim(NamedTuple):
    """What a rule was asked for, and what it guarantees of that."""

    method: str
    target: float
    guarantee: Guarantee = "none"
    delta: float | None = None
    in_expectation: bool = False
    #: Whom the promise is about, where that is not data like the calibration data.
    promised_for: str = ""
    #: What no density ratio exceeds, where the weights are such ratios.
    largest: float | None = None


def chosen(
    s: Scored,
    index: int,
    aim: Aim,
    *,
    bound: float | None = None,
    has_losses: bool = True,
    threshold: float | None = None,
) -> DecisionRule:
    """Return the rule that accepts the tie groups up to that index (at least 0).

    Its threshold is the confidence of the last of them, unless another one that accepts the same
    samples is given.
    """
    groups = s.groups
    weight, wrong = float(groups.cumulative_weight[index]), float(groups.cumulative_loss[index])
    at = float(groups.confidence[index]) if threshold is None else threshold
    return DecisionRule(
        aim.method,
        at,
        aim.guarantee,
        aim.in_expectation,
        aim.target,
        aim.delta,
        bound,
        groups.n_samples,
        int(groups.cumulative_count[index]),
        _failures(s, at) if has_losses else None,
        min(weight / groups.total_weight, 1.0),
        wrong / weight if has_losses else None,
        promised_for=aim.promised_for,
    )


def unattainable(s: Scored, aim: Aim, reason: str, *, has_losses: bool = True) -> DecisionRule:
    """Return the rule without a threshold, with the reason."""
    known = s.confidence.size > 0
    return DecisionRule(
        aim.method,
        None,
        aim.guarantee,
        aim.in_expectation,
        aim.target,
        aim.delta,
        None,
        s.groups.n_samples if known else 0,
        0,
        0 if has_losses else None,
        0.0 if known else None,
        reason=reason,
        promised_for=aim.promised_for,
    )


def _failures(s: Scored, threshold: float) -> int:
    with np.errstate(over="ignore"):
        at = np.asarray(threshold).astype(s.confidence.dtype)
    inside = (s.confidence >= at) & (s.loss > 0)
    return int(np.count_nonzero(inside if s.weight is None else inside & (s.weight > 0)))


def without_loss(confidence: AnyArray, weight: AnyArray | None = None) -> Scored:
    """Validate confidences for a rule that needs no loss."""
    values = checks.confidence(confidence)
    return validate_samples_on_host(values, np.zeros(values.size, dtype=np.bool_), weight)


def guaranteed(
    confidence: AnyArray, loss: AnyArray, weight: AnyArray | None, *, method: str
) -> Scored:
    """Validate the data of a rule with a guarantee: independent samples of equal weight."""
    refuse_weights(weight, method=method)
    return validate_samples_on_host(confidence, loss)


def refuse_weights(weight: AnyArray | None, *, method: str) -> None:
    """Refuse weights: nothing here is proven for them."""
    if weight is not None:
        raise InputError(
            f"`weight` must be left out for {method}: its guarantee counts independent samples of "
            "equal weight, and weighted or clustered ones are worth fewer. Keep one sample a "
            "cluster, or use for_risk, which promises nothing. Density ratios of another law "
            "(importance weights) are no frequencies: pass them as `ratio`."
        )


def inside(x: float, name: str, *, high: float = 1.0, hint: str = "") -> float:
    """Validate one number strictly between 0 and `high`."""
    value = checks.number(x, name)
    if not 0 < value < high:
        rule = f"lie strictly between 0 and {high:g}" if high < np.inf else "be above 0"
        meant = checks.percent_hint(value) if high <= 1 else ""
        raise DomainError(
            f"`{name}` must {rule}; got {value!r}{meant}.{' ' + hint if hint else ''}"
        )
    return value


def max_risk_of(x: float, *, high: float = 1.0) -> float:
    """Validate a risk that is to be guaranteed."""
    hint = "No number of samples certifies a risk of 0; pass what you can live with."
    return inside(x, "max_risk", high=high, hint=hint)


def refuse_percent(target: float, largest: float) -> None:
    """Refuse a risk that no sample can exceed: as a rule it was meant as a percentage."""
    if target > max(largest, 1.0):
        raise DomainError(
            f"`max_risk` must be at most the largest loss, {largest:g}, to ask for anything; got "
            f"{target!r}{checks.percent_hint(target)}"
        )


def delta_of(x: float) -> float:
    """Validate the probability that a guarantee may fail."""
    return inside(x, "delta", hint="It is the chance that the guarantee fails: 0.05, say.")


def counted(least: float) -> str:
    """Write how many samples something takes; beyond all counting, only that."""
    return str(math.ceil(least)) if least < COUNTABLE else "more than 1e15"


def last_with(fine: BoolArray) -> int:
    """Return the last group where `fine` holds; -1 for none."""
    where = np.flatnonzero(fine)
    return int(where[-1]) if where.size else -1
